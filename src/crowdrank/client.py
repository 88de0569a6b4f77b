"""A small client for programs that judge a campaign of ``crowdrank serve``: retries, and every judgment once.

>>> def judge(request):
...     texts = {item.label: item.content for item in request.items}
...     return {"winner": "a" if len(texts["a"]) > len(texts["b"]) else "b"}
>>> # client = Client.join("https://votes.example.org", "cri_...", name="longest wins")
>>> # client.work(judge)
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from .errors import CrowdrankError, ParameterError, warn

MAX_BATCH = 200
_MAX_REASON = 500
_PASSING = {429, 500, 502, 503, 504, 507}
"""Answers after which the same call may go through a little later."""


class CallError(CrowdrankError):
    """The service refused a call.

    Parameters
    ----------
    status, kind
        HTTP status and the type of the fault, such as ``"invalid"``.
    detail
        What else the service said.
    """

    def __init__(self, status: int, kind: str, message: str, detail: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.detail = detail


@dataclass(frozen=True)
class Item:
    """An item of a request: its letter, and what is to be judged."""

    label: str
    content: str
    content_type: str


@dataclass(frozen=True)
class Request:
    """A question to answer.

    Parameters
    ----------
    id, kind
        Its number, and ``"grade"``, ``"preference"`` or ``"ranking"``.
    question, query
        What is asked, and about which query.
    items
        What is shown, in the order that was drawn for this request.
    scale
        Names of the grades, worst first; or whether ties are allowed.
    questions
        Where there are several: name, kind, text and what may be answered of each; the answer is
        ``{"answers": {name: ...}}``.
    seed
        A number drawn for this request, for judges that are random.
    lease_until
        Until when it is held, in microseconds since 1970.
    """

    id: int
    kind: str
    question: str
    query: str
    items: tuple[Item, ...]
    scale: Any
    seed: int
    lease_until: int
    questions: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, body: dict[str, Any]) -> Self:
        """Return the request in an answer of the service."""
        items = tuple(Item(one["label"], one["content"], one["content_type"]) for one in body["items"])
        same = {name: body[name] for name in ("id", "kind", "question", "scale", "seed", "lease_until")}
        return cls(query=body["query"]["content"], items=items, questions=tuple(body.get("questions") or ()), **same)


@dataclass(frozen=True)
class Judgment:
    """An answer to a request, with the id by which the service knows a repeat."""

    request: int
    answer: dict[str, Any]
    seconds: float | None = None
    submission: str = field(default_factory=lambda: str(uuid.uuid4()))

    def body(self) -> dict[str, Any]:
        """Return it as the service takes it."""
        return asdict(self)


@dataclass(frozen=True)
class Nothing:
    """Why there is no request, and after how many seconds to ask again, ``None`` for never."""

    reason: str
    retry_after: float | None


class Client:
    """Client of a collection service, for a program that judges.

    Parameters
    ----------
    url
        Address of the service, such as ``"https://votes.example.org"``.
    token
        The program's token, from :meth:`join`.
    timeout
        Seconds that one call may take.
    patience
        Seconds over which a call that fails in passing is repeated.
    """

    def __init__(self, url: str, token: str = "", *, timeout: float = 30.0, patience: float = 300.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(f"url={url!r} must be the address of a service, such as 'https://votes.example.org'")
        self._parts = parts
        self.token = token
        self.timeout = timeout
        self.patience = patience
        self._local = threading.local()
        """Each thread has a connection of its own."""

    @classmethod
    def join(
        cls, url: str, invite: str, name: str | None = None, *, timeout: float = 30.0, patience: float = 300.0
    ) -> Self:
        """Return the client of a new annotator; keep its ``token`` to go on later.

        Joining is not repeated by itself, as an answer that was lost may have used up the invite.
        """
        client = cls(url, timeout=timeout, patience=patience)
        body = client._once("POST", "/join", {"invite": invite, **({} if name is None else {"name": name})})
        if "token" not in body:
            raise ParameterError("this invite is for a person; ask the owner for one with kind 'program'")
        client.token = body["token"]
        return client

    def requests(self, n: int = 1) -> list[Request] | Nothing:
        """Return what is held and new requests, ``n`` in all, or why there are none."""
        body = self._call("POST", "/requests", {"n": n})
        if body["requests"]:
            return [Request.of(one) for one in body["requests"]]
        return Nothing(body.get("reason", "done"), body.get("retry_after"))

    def submit(self, judgments: Sequence[Judgment]) -> list[dict[str, Any]]:
        """Send judgments, and return what the service answers to each; those that fail in passing are sent again."""
        answers: dict[str, dict[str, Any]] = {}
        end = time.monotonic() + self.patience
        waiting = list(judgments)
        while waiting:
            part = waiting[:MAX_BATCH]
            body = self._call("POST", "/judgments/batch", {"judgments": [one.body() for one in part]})
            answers |= {one.submission: answer for one, answer in zip(part, body["results"], strict=True)}
            again = [one for one in part if answers[one.submission]["status"] in _PASSING]
            waiting = [*again, *waiting[MAX_BATCH:]]
            if again:
                if time.monotonic() > end:
                    break
                time.sleep(1.0)
        return [answers[one.submission] for one in judgments if one.submission in answers]

    def skip(self, request: int, reason: str = "") -> None:
        """Give a request back for good."""
        self._call("POST", f"/requests/{request}/skip", {"reason": reason})

    def extend(self, request: int) -> None:
        """Hold a request for longer, three leases in all; once that is over it can still be answered."""
        try:
            self._call("POST", f"/requests/{request}/extend", {})
        except CallError as error:
            if error.status != 409:
                raise

    def me(self) -> dict[str, Any]:
        """Return what the service knows about this annotator."""
        return self._call("GET", "/me", None)

    def content(self, item: Item) -> bytes:
        """Return the file of an item whose content is an address of the service, as images and audio are."""
        status, data, _ = self._raw("GET", item.content, None)
        if status >= 400:
            raise _call_error(status, data, None)
        return data

    def work(
        self,
        judge: Callable[[Request], dict[str, Any] | None],
        *,
        n: int = 20,
        most: int | None = None,
        parallel: int = 1,
    ) -> int:
        """Judge until nothing is left; return how many judgments were kept.

        Each answer is sent as soon as it is there, and what waits meanwhile is held longer. A request whose answer
        fails or is not accepted is skipped, with the reason, which the owner sees, and a warning.

        Parameters
        ----------
        judge
            Returns the answer to a request, or ``None`` to skip it.
        n
            Requests that are held at once.
        most
            Judgments after which to stop.
        parallel
            Requests that are judged at once, each in a thread, as suits a judge that waits for answers from elsewhere.
        """
        if parallel < 1:
            raise ParameterError(f"parallel={parallel} must be at least 1")
        kept, lease_seconds = 0, float(self.me()["campaign"]["lease_seconds"])
        held: set[int] = set()

        def answer(request: Request) -> bool:
            try:
                return self._judge(judge, request)
            finally:
                held.discard(request.id)
                if parallel > 1:
                    self.close()

        while most is None or kept < most:
            requests = self.requests(n if most is None else min(n, most - kept))
            if isinstance(requests, Nothing):
                if requests.retry_after is None:
                    return kept
                time.sleep(min(requests.retry_after, 60.0))
                continue
            held.update(request.id for request in requests)
            stop = threading.Event()
            # while some are judged, the others are held for longer
            holder = threading.Thread(target=self._hold, args=(held, stop, lease_seconds / 3), daemon=True)
            holder.start()
            try:
                if parallel == 1:
                    kept += sum(map(answer, requests))
                else:
                    with ThreadPoolExecutor(parallel) as threads:
                        kept += sum(threads.map(answer, requests))
            finally:
                stop.set()
                holder.join()
                held.clear()
        return kept

    def _hold(self, held: set[int], stop: threading.Event, seconds: float) -> None:
        """Hold requests for longer again and again until the end."""
        while not stop.wait(seconds):
            for request in tuple(held):
                # whatever is wrong shows when the answer is sent
                with suppress(CallError, OSError, http.client.HTTPException):
                    self.extend(request)
        self.close()

    def _judge(self, judge: Callable[[Request], dict[str, Any] | None], request: Request) -> bool:
        """Whether an answer to a request was kept; where there is none, it is skipped."""
        began = time.monotonic()
        try:
            answer = judge(request)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        else:
            if answer is None:
                self.skip(request.id)
                return False
            (told,) = self.submit([Judgment(request.id, answer, round(time.monotonic() - began, 3))])
            if told["status"] in (200, 409):
                # 409: another process that uses the same token was faster
                return bool(told["status"] == 200)
            why = told["error"]
            if told["status"] != 422:
                raise CallError(told["status"], why["type"], why["message"], why)
            reason = why["message"]
        warn(f"request {request.id} is skipped: {reason}")
        self.skip(request.id, reason[:_MAX_REASON])
        return False

    def close(self) -> None:
        """End the connection of this thread."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _call(self, method: str, path: str, body: Any) -> dict[str, Any]:
        """What the service answers, asked again while it fails in passing."""
        end, attempt = time.monotonic() + self.patience, 0
        while True:
            wait = 0.0
            try:
                return self._once(method, path, body)
            except CallError as error:
                wait = float(error.detail.get("retry_after", 0.0))
                if error.status not in _PASSING or time.monotonic() > end:
                    raise
            except (OSError, http.client.HTTPException):
                self.close()
                if time.monotonic() > end:
                    raise
            attempt += 1
            time.sleep(max(wait, random.uniform(0.5, 1.0) * min(5.0, 0.1 * 2**attempt)))

    def _once(self, method: str, path: str, body: Any) -> dict[str, Any]:
        """What the service answers to one call."""
        status, data, retry_after = self._raw(method, f"/api/v1{path}", body)
        content = _object(data)
        if status >= 400 or content is None:
            raise _call_error(status, data, retry_after)
        return content

    def _raw(self, method: str, path: str, body: Any) -> tuple[int, bytes, float | None]:
        """Status, body and wait of one answer."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            connection = kind(self._parts.hostname or "", self._parts.port, timeout=self.timeout)
            self._local.connection = connection
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        # of several campaigns each has its own below a path
        path = f"{self._parts.path.rstrip('/')}{path}"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        data, wait = response.read(), response.headers.get("retry-after", "")
        return response.status, data, float(wait) if wait.isdigit() else None


def _object(data: bytes) -> dict[str, Any] | None:
    """The object in JSON that an answer is, ``None`` where it is none."""
    try:
        content = json.loads(data)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _call_error(status: int, data: bytes, retry_after: float | None) -> CallError:
    """What an answer that is none says."""
    error = (_object(data) or {}).get("error", {"message": f"the service answered {status} without JSON"})
    detail = {**error, **({} if retry_after is None else {"retry_after": retry_after})}
    return CallError(status, error.get("type", "bad_request"), error.get("message", str(status)), detail)
