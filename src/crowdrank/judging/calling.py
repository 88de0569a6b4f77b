"""Calls to servers that speak chat completions: retries, pace, pauses and money; or to Python functions."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import os
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from ..api.sentences import words_of
from ..errors import CrowdrankError, MissingExtraError, ParameterError
from ..wording import counted, did_you_mean
from .prompts import Prompter, Question, Unparsed, Verdict
from .store import Ledger, Reply, Store, request_key

MAX_ATTEMPTS = 8
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before the second attempt, which double from then on, and the most of them; half of each is random."""

FAILURES_TO_PAUSE = 20
PAUSES_TO_GIVE_UP = 3
FIRST_PAUSE = 15.0
"""Seconds that a model is left alone after so many failures in a row; each further pause is twice as long."""

_OPTIONAL = ("logprobs", "response_format", "temperature")
"""Parameters that a server may not know; what it refuses is left out from then on."""

STOPPED, UNAFFORDABLE = "stopped", "not affordable"
"""Why a request was not sent, where nothing went wrong."""

_MESSAGE_TOKENS = 64
"""Tokens that a server may add around messages."""


@dataclass(frozen=True)
class Model:
    """A judge: a model behind a server, or a Python function.

    Parameters
    ----------
    name, url
        What the server calls it, and the address before ``/chat/completions``.
    function
        What is called with a :class:`Question` in place of a server.
    price
        Money for a million tokens of prompts and of replies; ``None`` where it is not known.
    key
        What the server knows us by; never shown.
    """

    name: str
    url: str = ""
    function: Callable[[Question], Any] | None = None
    price: tuple[float, float] | None = None
    key: str = field(default="", repr=False)

    def cost(self, prompt_tokens: float, reply_tokens: float) -> float:
        """Return what tokens cost."""
        of_prompt, of_reply = self.price or (0.0, 0.0)
        return (prompt_tokens * of_prompt + reply_tokens * of_reply) / 1e6


def read_models(given: Any, price: Mapping[str, Any] | None = None, key_from: Any = None) -> list[Model]:
    """Return the models that texts ``NAME@URL`` and functions stand for.

    Examples
    --------
    >>> read_models(["gpt-x@http://127.0.0.1:8000/v1"], price={"gpt-x": (1, 2)})
    [Model(name='gpt-x', url='http://127.0.0.1:8000/v1', function=None, price=(1.0, 2.0))]
    """
    given = [] if given is None else given
    if isinstance(given, Mapping):
        entries: list[tuple[str | None, Any]] = list(given.items())
    else:
        entries = [(None, one) for one in ([given] if isinstance(given, str) or callable(given) else list(given))]
    if not entries:
        raise ParameterError("there is no model to ask; name one as --model NAME@URL (models=[...])")
    models = []
    for called, one in entries:
        if callable(one):
            models.append(Model(called or str(getattr(one, "__name__", "function")), function=one))
            continue
        text = one if called is None else f"{called}@{one}"
        matched = re.fullmatch(r"(\S.*?)@(https?://\S+)", str(text).strip())
        if matched is None:
            raise ParameterError(words_of("no_address", model=text))
        parts = urlsplit(matched[2])
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ParameterError(words_of("more_than_address", model=matched[1]))
        models.append(Model(matched[1], matched[2].rstrip("/").removesuffix("/chat/completions")))
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"two models are called {name!r}; give each judge a name of its own")
    variables = key_from if isinstance(key_from, Mapping) else dict.fromkeys(names, key_from) if key_from else {}
    for what, named in (("price", price or {}), ("key", variables)):
        for name in named:
            if name not in names:
                raise ParameterError(words_of("no_such_model", what=what, name=name, hint=did_you_mean(name, names)))
    prices: dict[str, Any] = {}
    for name, value in (price or {}).items():
        with suppress(TypeError, ValueError):
            prices[name] = tuple(map(float, value.split(",") if isinstance(value, str) else value))
        if len(prices.get(name, ())) != 2 or not all(0 <= one < math.inf for one in prices[name]):
            raise ParameterError(words_of("two_prices", name=name))
    known = []
    for model in models:
        variable = variables.get(model.name, "OPENAI_API_KEY")
        key = os.environ.get(variable, "").strip() if model.url else ""
        if model.url and model.name in variables and not key:
            raise ParameterError(f"environment variable {variable!r} is not set; export it with {model.name}'s key")
        if not (key.isascii() and key.isprintable()):
            raise ParameterError(f"the key in {variable} has a character that no key has; copy it there once more")
        cost = (0.0, 0.0) if model.function else prices.get(model.name)
        known.append(replace(model, price=cost, key=key))
    return known


def most_cost(model: Model, messages: Sequence[Mapping[str, str]], max_tokens: int) -> float:
    """Return what a request can cost at most: no token is shorter than a byte."""
    size = sum(len(message["content"].encode("utf-8", "surrogatepass")) + 16 for message in messages)
    return model.cost(size + _MESSAGE_TOKENS, max_tokens)


@dataclass(frozen=True)
class Outcome:
    """What came of a question: a verdict, or why there is none."""

    verdict: Verdict | None = None
    trouble: str = ""
    cost: float = 0.0
    calls: int = 0


class _NoReply(CrowdrankError):
    """Why a request has no reply."""


class _Fault(Exception):
    """An attempt that failed: what to call it, what it may have cost, and when to try again, if ever."""

    def __init__(
        self, what: str, cost: float = 0.0, wait: float | None = None, *, busy: bool = False, final: bool = False
    ) -> None:
        super().__init__(what)
        self.what, self.cost, self.wait, self.busy, self.final = what, cost, wait, busy, final


class _Pace:
    """How many requests of a model may be under way: halved when it is busy, raised by one for each full round."""

    def __init__(self, most: int, stop: asyncio.Event) -> None:
        self.most, self.limit, self.running, self.stop = most, float(most), 0, stop
        self.opens_at, self.in_a_row, self.pauses = 0.0, 0, 0
        self.given_up = ""
        self._changed = asyncio.Condition()

    async def enter(self) -> None:
        """Wait until another request may be sent."""
        while True:
            if self.given_up or self.stop.is_set():
                raise _NoReply(self.given_up or STOPPED)
            wait = self.opens_at - time.monotonic()
            if wait > 0:
                await _nap(wait, self.stop)
                continue
            async with self._changed:
                if self.running < int(self.limit):
                    self.running += 1
                    return
                await self._changed.wait()

    async def leave(self) -> None:
        """Count a request as ended."""
        async with self._changed:
            self.running -= 1
            self._changed.notify_all()

    def succeed(self) -> None:
        """Take note of a reply."""
        self.in_a_row = self.pauses = 0
        self.limit = min(self.most, self.limit + 1 / self.limit)

    def fail(self, fault: _Fault, name: str) -> None:
        """Take note of a failure."""
        now = time.monotonic()
        if fault.busy:
            # many that were sent together come back together: they are one sign
            if now >= self.opens_at:
                self.limit = max(1.0, self.limit / 2)
            self.opens_at = max(self.opens_at, now + (fault.wait or 0.0))
            return
        self.in_a_row += 1
        if self.in_a_row >= FAILURES_TO_PAUSE:
            self.in_a_row, self.pauses, self.limit = 0, self.pauses + 1, 1.0
            self.opens_at = now + FIRST_PAUSE * 2 ** (self.pauses - 1)
            if self.pauses >= PAUSES_TO_GIVE_UP:
                self.give_up(f"{name} failed {FAILURES_TO_PAUSE * PAUSES_TO_GIVE_UP} times in a row ({fault.what})")

    def give_up(self, why: str) -> None:
        """Send nothing to this model any more."""
        self.given_up, self.opens_at = why, 0.0


class Caller:
    """Asks models, and keeps what they reply.

    Parameters
    ----------
    models, prompter
        Whom to ask, and what.
    store, ledger
        Where replies are kept, and what may be spent.
    parallel, timeout, max_tokens, temperature
        Requests under way at most, seconds of one, tokens of a reply at most, and how random replies are.
    """

    def __init__(
        self, models: Sequence[Model], prompter: Prompter, store: Store, ledger: Ledger,
        *, parallel: int = 16, timeout: float = 120.0, max_tokens: int = 256, temperature: float = 0.0,
    ) -> None:  # fmt: skip
        self.models = {model.name: model for model in models}
        self.prompter, self.store, self.ledger = prompter, store, ledger
        self.max_tokens, self.timeout = max_tokens, timeout
        self.parameters: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature}
        self.troubles: Counter[str] = Counter()
        self.stop = asyncio.Event()
        self._sends = asyncio.Semaphore(parallel)
        self._paces = {model.name: _Pace(parallel, self.stop) for model in models}
        self._refused: dict[str, set[str]] = {model.name: set() for model in models}
        self._client: Any = None
        if any(model.url for model in models):
            try:
                import httpx
            except ImportError:
                raise MissingExtraError("models are asked by the package httpx; install crowdrank[judge]") from None
            limits = httpx.Limits(max_connections=parallel, max_keepalive_connections=parallel)
            times = httpx.Timeout(timeout, connect=min(timeout, 10.0))
            self._client = httpx.AsyncClient(timeout=times, limits=limits)

    async def close(self) -> None:
        """End the connections."""
        if self._client is not None:
            await self._client.aclose()

    def lost_models(self) -> dict[str, str]:
        """Return the models that are not asked any more, and why."""
        return {name: pace.given_up for name, pace in self._paces.items() if pace.given_up}

    def is_waiting(self, name: str) -> bool:
        """Return whether a model is left alone for a while, or for good."""
        pace = self._paces[name]
        return bool(pace.given_up) or pace.opens_at > time.monotonic()

    async def ask(self, name: str, question: Question) -> Outcome:
        """Return what a model says to a question; a reply that cannot be read is asked for once more, then given up."""
        model, n = self.models[name], len(question.texts)
        messages: list[Mapping[str, str]] = list(question.messages)
        cost, calls, why = 0.0, 0, ""
        for _ in range(2):
            try:
                reply, new = await self._reply(model, question, messages)
            except _NoReply as error:
                if str(error) not in (STOPPED, UNAFFORDABLE):
                    self.troubles[f"{name}: {error}"] += 1
                return Outcome(None, str(error), cost, calls)
            cost, calls = cost + new * reply.cost, calls + new
            try:
                return Outcome(self.prompter.verdict(reply.content, n, reply.logprobs), "", cost, calls)
            except Unparsed as error:
                why = str(error)
            again = (
                f"That could not be read: {why}. Reply with one JSON object and nothing else: {self.prompter.reply(n)}"
            )
            messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": again}]
        self.troubles[f"{name}: unparsed, {why}"] += 1
        return Outcome(None, "unparsed", cost, calls)

    async def _reply(
        self, model: Model, question: Question, messages: Sequence[Mapping[str, str]]
    ) -> tuple[Reply, bool]:
        """The reply to messages, from before or from a call, and whether a call was made."""
        key = request_key(f"{model.name}@{model.url}", {**self.parameters, "kind": question.kind}, messages)
        if model.function is None:
            before = self.store.find(key)
            if before is not None:
                # what this run paid before it was stopped is in its ledger already
                return before, False
        send = self._call_function if model.function is not None else self._call_server
        reserved = most_cost(model, messages, self.max_tokens)
        pace, what = self._paces[model.name], ""
        for attempt in range(MAX_ATTEMPTS):
            await pace.enter()
            try:
                async with self._sends:
                    if self.stop.is_set() or pace.given_up:
                        raise _NoReply(pace.given_up or STOPPED)
                    if not self.ledger.reserve(reserved):
                        raise _NoReply(UNAFFORDABLE)
                    number = self.store.begin(reserved)
                    reply, cost = None, reserved
                    try:
                        reply = await send(model, question, messages, reserved)
                        cost = reply.cost
                    except (_Fault, _NoReply) as failed:
                        cost = failed.cost if isinstance(failed, _Fault) else 0.0
                        raise
                    finally:
                        # also when this is cancelled: what was sent may have to be paid
                        self.ledger.settle(reserved, cost, answered=reply is not None)
                        if reply is None:
                            self.store.end(number, cost)
                        else:
                            self.store.keep(number, key, model.name, question.ids, reply)
                pace.succeed()
                return reply, True
            except _Fault as failed:
                fault = failed
            finally:
                await pace.leave()
            what = fault.what
            pace.fail(fault, model.name)
            if fault.final:
                break
            if attempt + 1 < MAX_ATTEMPTS:
                wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0)
                await _nap(max(wait, fault.wait or 0.0), self.stop)
        raise _NoReply(what)

    async def _call_function(self, model: Model, question: Question, *_: Any) -> Reply:
        """What a Python function says; what it raises is the user's to see."""
        assert model.function is not None
        if inspect.iscoroutinefunction(model.function):
            said = await model.function(question)
        else:
            said = await asyncio.to_thread(model.function, question)
            if isinstance(said, Awaitable):
                said = await said
        return Reply(said if isinstance(said, str) else json.dumps(said))

    async def _call_server(
        self, model: Model, question: Question, messages: Sequence[Mapping[str, str]], reserved: float
    ) -> Reply:
        """What a server answers to one call."""
        import httpx

        headers = {"authorization": f"Bearer {model.key}"} if model.key else {}
        refused = self._refused[model.name]
        schema = {"name": question.kind, "strict": True, "schema": self.prompter.schema(len(question.texts))}
        whole: dict[str, Any] = {
            "model": model.name, "messages": list(messages), **self.parameters,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }  # fmt: skip
        if question.kind == "preference":
            whole |= {"logprobs": True, "top_logprobs": 5}
        while True:
            # without what the server refused before
            without = {*refused, *(f"top_{name}" for name in refused)}
            body = {name: value for name, value in whole.items() if name not in without}
            if "max_tokens" in refused:
                body["max_completion_tokens"] = self.max_tokens
            try:
                response = await self._client.post(f"{model.url}/chat/completions", json=body, headers=headers)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
                raise _Fault("no connection") from None
            except httpx.TimeoutException:
                raise _Fault(f"no reply in {self.timeout:g} seconds", reserved) from None
            except (httpx.TransportError, httpx.DecodingError):
                raise _Fault("the connection was cut", reserved) from None
            if response.status_code in (400, 404, 415, 422, 501) and self._leave_out(model.name, response.text):
                continue
            return self._read(model, response, reserved)

    def _leave_out(self, name: str, text: str) -> bool:
        """Leave out what a server refuses: what it names, or else one thing after the other; say if there is any."""
        refused = self._refused[name]
        if "max_completion_tokens" in text and "max_tokens" not in refused:
            refused.add("max_tokens")
            return True
        left = [one for one in _OPTIONAL if one not in refused]
        named = [one for one in left if one in text]
        refused.update(named or left[:1])
        return bool(left)

    def _read(self, model: Model, response: Any, reserved: float) -> Reply:
        """The reply in a response; nothing of what the server wrote is shown to anybody."""
        status = response.status_code
        if status in (401, 403):
            why = f"{model.name} refused the key ({status}); set the environment variable that --key-from names"
            self._paces[model.name].give_up(why)
            raise _NoReply(why)
        if status in (408, 409, 425, 429) or status >= 500:
            wait = _retry_after(response.headers.get("retry-after"))
            raise _Fault(f"status {status}", wait=wait, busy=status == 429 or (status == 503 and wait is not None))
        if status != 200:
            raise _Fault(f"the server refused the request ({status})", final=True)
        try:
            body = response.json()
            usage = body.get("usage") or {}
            cost = model.cost(float(usage["prompt_tokens"]), float(usage["completion_tokens"])) if usage else reserved
        except (ValueError, TypeError, KeyError, AttributeError):
            raise _Fault("the server sent broken JSON", reserved) from None
        try:
            choice = body["choices"][0]
            text = choice["message"]["content"]
        except (LookupError, TypeError):
            raise _Fault("the server sent no choices", cost) from None
        if choice.get("finish_reason") == "length" and not str(text or "").rstrip().endswith(("}", "`")):
            raise _Fault(f"the reply was cut at {self.max_tokens} tokens; raise --max-tokens", cost, final=True)
        if choice.get("finish_reason") == "content_filter":
            raise _Fault("a content filter held the reply back", cost)
        if not isinstance(text, str) or not text.strip():
            raise _Fault("the reply was empty", cost)
        probabilities = choice.get("logprobs")
        tokens = probabilities.get("content") if isinstance(probabilities, Mapping) else None
        return Reply(text, tokens if isinstance(tokens, list) else None, cost)

    def sentences(self) -> list[str]:
        """Return what was dropped and why, a sentence each, the most frequent first."""
        return [f"{counted(number, 'request')} dropped: {what}" for what, number in self.troubles.most_common()]


async def _nap(seconds: float, stop: asyncio.Event) -> None:
    """Wait so long, or until the run is stopped."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


def _retry_after(text: str | None) -> float | None:
    """Seconds that a server asks to wait, in a number or a date; never more than ten minutes."""
    seconds = math.nan
    with suppress(TypeError, ValueError):
        seconds = parsedate_to_datetime(text or "").timestamp() - time.time()
    with suppress(ValueError):
        seconds = float(text or "")
    return None if math.isnan(seconds) else min(max(seconds, 0.0), 600.0)
