"""A server on loopback that speaks chat completions and answers from recorded verdicts, with faults where wanted."""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

PRICES = (2.0, 6.0)
"""Money for a million tokens of prompts and replies."""

FAULTS = (
    "429", "429 seconds", "429 date", "408", "409", "500", "502", "503", "503 seconds", "504", "cut", "slow",
    "empty body", "page", "broken json", "no choices", "choices null", "choices empty", "message null", "content null",
    "content empty", "filter", "usage broken", "prose", "wrong value", "other keys missing", "refuse response_format",
    "refuse logprobs", "refuse max_tokens",
)  # fmt: skip


class _Cut(Response):
    """A response that ends before it is whole."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"999")]})
        await send({"type": "http.response.body", "body": b'{"id": "x", "cho', "more_body": False})


class ReplayServer:
    """A server in a thread of its own; a context.

    Parameters
    ----------
    verdict
        Returns the text of a reply to the body of a request.
    faults
        Names of :data:`FAULTS`, which come in turn: every ``every``-th request gets one.
    delay
        Seconds that an answer takes.
    share
        Returns the log-probabilities of A, B and tie, where the server gives them.
    """

    def __init__(
        self, verdict: Callable[[dict[str, Any]], str], *, faults: Sequence[str] = (), every: int = 3,
        delay: float = 0.0, share: Callable[[dict[str, Any]], tuple[float, float, float]] | None = None,
    ) -> None:  # fmt: skip
        self.verdict, self.faults, self.every, self.delay, self.share = verdict, list(faults), every, delay, share
        self.n_requests = self.n_answered = self.under_way = self.most_under_way = 0
        self.cost = 0.0
        self.keys: set[str] = set()
        self.prompts: list[str] = []
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))
        app = FastAPI()
        app.post("/v1/chat/completions", response_model=None)(self._complete)
        config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        asyncio.run(self._server.serve([self._socket]))

    @property
    def url(self) -> str:
        """The address before ``/chat/completions``."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def __enter__(self) -> ReplayServer:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10)
        self._socket.close()

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        with self._lock:
            self.n_requests += 1
            number = self.n_requests
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            self.keys.add(request.headers.get("authorization", ""))
            self.prompts.append(json.dumps(body["messages"]))
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            fault = (
                self.faults[number // self.every % len(self.faults)] if self.faults and number % self.every == 0 else ""
            )
            return await self._answer(body, fault)
        finally:
            with self._lock:
                self.under_way -= 1

    async def _answer(self, body: dict[str, Any], fault: str) -> Response:
        status = re.match(r"[45][0-9][0-9]", fault)
        if status is not None:
            headers = {
                "seconds": {"retry-after": "0.05"},
                "date": {"retry-after": formatdate(time.time(), usegmt=True)},
            }
            return JSONResponse({"error": {"message": "later"}}, int(status[0]), headers.get(fault[4:]))
        if fault.startswith("refuse") and fault.split()[1] in body:
            also = ": use max_completion_tokens" if "max_tokens" in fault else ""
            return JSONResponse({"error": {"message": f"unknown parameter {fault.split()[1]}{also}"}}, 400)
        texts = {"prose": "I think that the first is better.", "wrong value": '{"winner": "C"}',
                 "other keys missing": '{"better": "A"}'}  # fmt: skip
        # who repeats a question gets a clean answer
        repaired = len(body["messages"]) > 2
        text = self.verdict(body) if repaired or fault not in texts else texts[fault]
        n_prompt, n_reply = len(json.dumps(body["messages"])) // 4, max(len(text) // 4, 1)
        with self._lock:
            self.cost += (n_prompt * PRICES[0] + n_reply * PRICES[1]) / 1e6
        if fault == "cut":
            return _Cut()
        if fault == "slow":
            await asyncio.sleep(1.5)
        if fault in ("empty body", "page", "broken json"):
            pages = {"empty body": "", "page": "<html>busy</html>", "broken json": '{"choices": [{"mess'}
            return Response(pages[fault], 200, media_type="application/json")
        message: Any = {"role": "assistant", "content": text}
        choice: Any = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        if self.share is not None and body.get("logprobs"):
            choice["logprobs"] = {"content": self._tokens(text, self.share(body))}
        if fault in ("filter", "length"):
            choice["finish_reason"] = "content_filter" if fault == "filter" else fault
        if fault in ("content null", "content empty"):
            message["content"] = None if "null" in fault else "  "
        if fault == "message null":
            choice["message"] = None
        choices: Any = {"choices null": None, "choices empty": []}.get(fault, [choice])
        usage: Any = {"prompt_tokens": n_prompt, "completion_tokens": n_reply, "total_tokens": n_prompt + n_reply}
        if fault == "usage broken":
            usage = {"prompt_tokens": "many"}
        whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"],
                 "choices": choices, "usage": usage}  # fmt: skip
        if fault == "no choices":
            del whole["choices"]
        if not fault or fault in texts or fault.startswith("refuse"):
            with self._lock:
                self.n_answered += 1
        return JSONResponse(whole)

    def _tokens(self, text: str, chances: tuple[float, float, float]) -> list[dict[str, Any]]:
        """The reply in three tokens, the verdict in the middle."""
        winner = json.loads(text)["winner"]
        start, _, end = text.partition(winner) if winner == "tie" else text.rpartition(winner)
        pairs = zip(("A", "B", "tie"), chances, strict=True)
        tops = [{"token": name, "logprob": math.log(max(chance, 1e-9)), "bytes": None} for name, chance in pairs]
        plain = {"logprob": 0.0, "bytes": None, "top_logprobs": []}
        return [{"token": start, **plain}, {"token": winner, **plain, "top_logprobs": tops}, {"token": end, **plain}]
