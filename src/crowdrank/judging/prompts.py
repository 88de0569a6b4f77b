"""What a language model is asked, and what its reply means: prompts, schemas, strict parsing, log-probabilities."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import ParameterError

LETTERS = "ABCDEFGHIJKLMNOPQRST"
TIE = "tie"
KINDS = ("preference", "grade", "ranking")

WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
"""What is asked of each kind of judgment, and why a run stops."""

_SYSTEM, _USER = (Path(__file__).with_name(name).read_text("utf-8").rstrip() for name in ("system.j2", "user.j2"))

_REPLY = re.compile(r"(?:\s*<think>.*?</think>)?(?:\s*```(?:json)?\s*\n(.*)\n\s*```\s*|(.*))", re.DOTALL)
"""A reply: after what a model thinks aloud, in a fence or without."""


class Unparsed(ValueError):
    """A reply that does not say what was asked; the message says why, and holds nothing of the texts."""


@dataclass(frozen=True)
class Question:
    """What a judge is asked about some texts; a Python function in place of a model is called with it.

    Parameters
    ----------
    kind
        ``"preference"``, ``"grade"`` or ``"ranking"``.
    query
        Text of the query, empty where there is none.
    texts
        The texts in the order shown: the first is A.
    ids
        Query and items that are shown, for functions that look something up; never part of a prompt.
    messages
        The prompt as chat messages.
    """

    kind: str
    query: str
    texts: tuple[str, ...]
    ids: tuple[Any, ...]
    messages: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class Verdict:
    """What a reply says: a winner (``"A"``, ``"B"``, ``"tie"``), a grade, or letters best first."""

    answer: Any
    share: float | None = None
    """Probability that the first is better, ties half, by the log-probabilities of the verdict."""


@dataclass(frozen=True)
class Prompter:
    """Makes prompts of one kind, and reads the replies.

    Parameters
    ----------
    kind, question, rubric
        What is asked, and what to go by.
    levels
        Of grades: the levels, worst first.
    template
        A Jinja2 text of one's own in place of the built-in one.
    """

    kind: str
    question: str = ""
    rubric: str = ""
    levels: tuple[Any, ...] = (1, 2, 3, 4, 5)
    template: str = _USER

    @classmethod
    def of(cls, kind: str, question: str | None, rubric: str | None, levels: Sequence[Any] | None) -> Prompter:
        """Return the prompter; ``rubric`` is a text, a file of one, or a Jinja2 file (``.j2``) of the whole prompt."""
        if levels is not None and kind != "grade":
            raise ParameterError(f"levels are for grades, and these are {kind}s; leave them out, or ask for grades")
        if levels is not None and len(set(levels)) < max(2, len(levels)):
            raise ParameterError("levels needs two or more different levels, worst first, such as bad,fair,good")
        scale: tuple[Any, ...] = (1, 2, 3, 4, 5) if levels is None else tuple(map(_level, levels))
        text, template = rubric or "", _USER
        path = Path(text) if text and "\n" not in text and len(text) < 1000 else None
        if path is not None and path.suffix.lower() in (".md", ".txt", ".j2", ".jinja", ".jinja2"):
            try:
                text = path.read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
                raise ParameterError(f"the rubric {path} cannot be read: {reason.lower()}; check its name") from None
            if path.suffix.lower().startswith(".j"):
                text, template = "", text
        prompter = cls(kind, question or WORDS["questions"][kind], text, scale, template)
        prompter.ask("", ["first", "second"][: 1 if kind == "grade" else 2], ())
        return prompter

    @property
    def fingerprint(self) -> str:
        """Checksum of what is asked, apart from the texts."""
        parts = (self.kind, self.question, self.rubric, list(map(str, self.levels)), self.template, _SYSTEM)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]

    @cached_property
    def numbers(self) -> dict[Any, int]:
        """Level -> the number that is written for it, which any command reads: itself, or its place from 1."""
        rising = all(isinstance(level, int) for level in self.levels) and list(self.levels) == sorted(self.levels)
        return {level: level if rising else place for place, level in enumerate(self.levels, 1)}

    @cached_property
    def _templates(self) -> tuple[Any, Any]:
        """The compiled templates of the system's and the user's message."""
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import SandboxedEnvironment

        environment = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False)
        try:
            return environment.from_string(_SYSTEM), environment.from_string(self.template)
        except TemplateError as error:
            raise ParameterError(f"the template is not Jinja2: {error}; correct it") from None

    def reply(self, n: int) -> str:
        """Return what a reply about ``n`` texts looks like."""
        letters = ", ".join(f'"{letter}"' for letter in reversed(LETTERS[:n]))
        grades = ", ".join(json.dumps(level, ensure_ascii=False) for level in self.levels)
        return {
            "preference": '{"winner": "A"}, {"winner": "B"} or {"winner": "tie"}',
            "grade": f'{{"grade": G}} where G is one of {grades}, the first the worst',
            "ranking": f'{{"ranking": [{letters}]}} with every letter once, the best first',
        }[self.kind]

    def ask(self, query: str, texts: Sequence[str], ids: Sequence[Any]) -> Question:
        """Return the question about texts in the order given.

        The mark between texts is a checksum of all that is shown: nobody who writes one of them can know it, and the
        same texts give the same prompt again.
        """
        from jinja2 import TemplateError

        shown = json.dumps([query, *texts], ensure_ascii=False).encode("utf-8", "surrogatepass")
        mark = f"===={hashlib.sha256(shown).hexdigest()[:16]}===="
        values = {
            "mark": mark, "query": query, "rubric": self.rubric, "question": self.question, "kind": self.kind,
            "texts": [{"label": LETTERS[place], "content": text} for place, text in enumerate(texts)],
            "levels": self.levels, "reply": self.reply(len(texts)),
        }  # fmt: skip
        try:
            system, user = (template.render(values) for template in self._templates)
        except TemplateError as error:
            raise ParameterError(
                f"the template cannot be filled in: {error}; it has {', '.join(sorted(values))}"
            ) from None
        messages = ({"role": "system", "content": system}, {"role": "user", "content": user})
        return Question(self.kind, query, tuple(texts), tuple(ids), messages)

    def schema(self, n: int) -> dict[str, Any]:
        """Return the JSON schema of a reply about ``n`` texts."""
        letters = list(LETTERS[:n])
        values: dict[str, Any] = {
            "preference": {"type": "string", "enum": [*letters[:2], TIE]},
            "grade": {"enum": list(self.levels)},
            "ranking": {"type": "array", "items": {"type": "string", "enum": letters}, "minItems": n, "maxItems": n},
        }
        name = {"preference": "winner"}.get(self.kind, self.kind)
        return {
            "type": "object", "properties": {name: values[self.kind]}, "required": [name], "additionalProperties": False
        }  # fmt: skip

    def parse(self, reply: Any, n: int) -> Any:
        """Return the answer in a reply about ``n`` texts; what is not one exactly is refused."""
        if isinstance(reply, str):
            found = _REPLY.fullmatch(reply)
            assert found is not None
            try:
                reply = json.loads(found[1] or found[2])
            except ValueError:
                raise Unparsed("the reply is not JSON") from None
        name = {"preference": "winner"}.get(self.kind, self.kind)
        if not isinstance(reply, Mapping) or name not in reply:
            raise Unparsed(f'the reply has no "{name}"')
        value = reply[name]
        if self.kind == "ranking":
            if not isinstance(value, list) or sorted(map(str, value)) != list(LETTERS[:n]):
                raise Unparsed(f'"ranking" must name each of {", ".join(LETTERS[:n])} once')
            return value
        allowed = ["A", "B", TIE] if self.kind == "preference" else list(self.levels)
        if isinstance(value, bool) or value not in allowed:
            raise Unparsed(f'"{name}" must be one of {", ".join(map(str, allowed))}')
        return allowed[allowed.index(value)]

    def verdict(self, reply: Any, n: int, logprobs: Any = None) -> Verdict:
        """Return what a reply says, with the share of the first text where there are log-probabilities."""
        answer = self.parse(reply, n)
        return Verdict(answer, verdict_share(logprobs, answer) if self.kind == "preference" else None)


def verdict_share(logprobs: Any, answer: str) -> float | None:
    """Return the probability that A is better, ties half, by the alternatives to the token of the verdict.

    Examples
    --------
    >>> token = {"token": "A", "top_logprobs": [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2.3}]}
    >>> round(verdict_share([{"token": '{"winner": "'}, token, {"token": '"}'}], "A"), 2)
    0.9
    """
    if not isinstance(logprobs, list):
        return None
    text = ""
    for one in logprobs:
        token = str(one.get("token", "")) if isinstance(one, Mapping) else ""
        if "winner" in text and _bare(token) == answer:
            chances = dict.fromkeys(("A", "B", TIE), 0.0)
            for other in one.get("top_logprobs") or []:
                name, value = _bare(str(other.get("token", ""))), other.get("logprob")
                if name in chances and isinstance(value, int | float) and value <= 0:
                    chances[name] += math.exp(value)
            total = sum(chances.values())
            return (chances["A"] + 0.5 * chances[TIE]) / total if total > 0 else None
        text += token
    return None


def _bare(token: str) -> str:
    """A token without quotes and spaces."""
    return token.strip(' "\n\t:')


def _level(level: Any) -> Any:
    """A level as a whole number where it is one."""
    text = str(level).strip()
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else text
