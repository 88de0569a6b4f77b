"""A run: ask, keep what comes, learn, choose what to ask next, and stop when the goal is reached or the money spent.

What is doubtful afterwards goes to people: as a campaign for ``crowdrank serve``, whose votes are trusted.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from ..api.aggregation import STYLE, as_judgments
from ..api.arguments import takes_arguments_of
from ..api.sentences import words_of
from ..data.column_names import plain_name
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.files import os_reason
from ..data.frames import to_frame
from ..data.judgments import Grades, Preferences, Rankings
from ..errors import CrowdrankError, DataWarning, JudgmentError, ParameterError
from ..features.extraction import texts as features_of_texts
from ..features.raw_items import CONTENT_COLUMNS
from ..io.tables import read_table
from ..protocols import Progress
from ..schemes.information import Goal
from ..wording import counted, first_few, one_of, option
from .answers import Answers, family_of
from .calling import UNAFFORDABLE, Caller, Outcome, most_cost, read_models
from .choosing import Case, Certainty, Chooser
from .prompts import KINDS, LETTERS, WORDS, Prompter, Question
from .store import Store

PROGRAM = "program"
_LARGEST_ROUND = 100
_SECONDS_BETWEEN_SYNCS = 0.5
_WINNERS = {"A": "left", "B": "right", "tie": "tie"}


class JudgeError(CrowdrankError, RuntimeError):
    """No model gave an answer; the message says why."""


@dataclass(frozen=True, eq=False)
class JudgeRun:
    """What models said, what follows from it, and what it cost.

    Parameters
    ----------
    judgments
        The judgments, with covariates where they are preferences.
    consensus, compared
        Scores of all items, with their errors, and the preferences they come from: grades and rankings are compared
        within their query.
    calls, cost
        Answered requests and money of this run, with what it spent before it was stopped.
    sure
        How sure the goal is reached.
    stopped
        Why nothing more was asked, and what more would bring, in a sentence.
    notes
        What else there is to know: answers that speak to the judge, requests that were dropped.
    disputed
        Query and items on which judges, or the two orders of one judge, contradict each other.

    Examples
    --------
    >>> texts = {"item": ["short", "longer"], "content": ["tea", "green tea"]}
    >>> run = judge(texts, lambda question: {"winner": "A"}, calls=2)
    >>> run.calls, run.disputed
    (2, ((None, ('longer', 'short')),))
    """

    judgments: Preferences | Grades | Rankings
    consensus: Consensus
    compared: Preferences
    calls: int
    cost: float
    sure: float
    stopped: str
    notes: tuple[str, ...]
    disputed: tuple[tuple[Any, tuple[Any, ...]], ...]
    rows: tuple[Mapping[str, Any], ...]

    def frame(self) -> pl.DataFrame:
        """Return the judgments as the table that goes to a file."""
        return pl.DataFrame(list(self.rows), infer_schema_length=None)

    def __repr__(self) -> str:
        return f"JudgeRun({counted(self.calls, 'call')}, cost {self.cost:.4g}, sure {self.sure:.2f}: {self.stopped})"


@dataclass(frozen=True)
class Preview:
    """What a run would ask: its first prompts, and the most calls and money it can take."""

    prompts: tuple[Question, ...]
    calls: int
    cost: float | None
    notes: tuple[str, ...]


class Runner:
    """One run over answers, all arguments checked before it begins; they are those of :func:`judge`."""

    def __init__(
        self,
        answers: Any,
        models: Any,
        *,
        kind: str = "preference",
        question: str | None = None,
        rubric: str | None = None,
        levels: Sequence[Any] | None = None,
        budget: float | None = None,
        calls: int | None = None,
        price: Mapping[str, Any] | None = None,
        goal: str = "order",
        sure: float = 0.95,
        orders: str = "both",
        scheme: str = "information",
        set_size: int = 4,
        per_query: bool = False,
        people: Any = None,
        features: Features | None = None,
        out: str | os.PathLike[str] | None = None,
        cache: str | os.PathLike[str] | bool = True,
        key_from: Any = None,
        parallel: int = 16,
        timeout: float = 120.0,
        max_tokens: int = 256,
        temperature: float = 0.0,
        columns: Mapping[str, str] | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        one_of(kind, KINDS, "kind", of_verb=True)
        one_of(orders, ("both", "random"), "orders", of_verb=True)
        one_of(scheme, ("information", "k-overlap"), "scheme", of_verb=True)
        wanted = Goal.parse(goal)
        for name, value, least, most in (
            ("sure", sure, 0.5, 1.0), ("set_size", set_size, 2, len(LETTERS)), ("parallel", parallel, 1, 1000),
            ("timeout", timeout, 0.01, 86_400), ("max_tokens", max_tokens, 1, 10**6),
            ("temperature", temperature, 0, 2), ("calls", 1 if calls is None else calls, 1, 10**9),
            ("budget", 0 if budget is None else budget, 0, 10**9),
        ):  # fmt: skip
            if not least <= value <= most:
                raise ParameterError(f"{option(name, value)} must lie between {least:g} and {most:g}")
        self.models = read_models(models, price, key_from)
        lacking = [model.name for model in self.models if model.price is None]
        if budget is not None and lacking:
            raise ParameterError(words_of("no_price", names=first_few(map(repr, lacking)), first=lacking[0]))
        self.prompter = Prompter.of(kind, question, rubric, levels)
        self.answers = texts = Answers.read(answers, columns)
        voices = None if people is None else as_judgments(people)
        if voices is not None and not isinstance(voices, Preferences):
            voices = voices.as_preferences()
        if voices is not None and not voices.n_annotators:
            raise JudgmentError("the judgments of people do not say who gave them; add an annotator column")
        across = texts.recurs and not per_query
        self.chooser = Chooser(
            texts, [model.name for model in self.models], kind=kind, orders=orders, set_size=set_size, goal=wanted,
            across=across, scheme=scheme, seed=seed, features=features, people=voices,
        )  # fmt: skip
        if not self.chooser.n_cases or (kind == "grade" and len(texts) < 2):
            raise ParameterError("no query has two answers, so nothing can be compared; add answers of another item")
        largest = max(self.chooser.sizes)
        if wanted.k >= largest:
            where = f"{'there are' if across else 'no query has more than'} {counted(largest, 'item')}"
            raise ParameterError(words_of("easy_goal", goal=option("goal", goal), where=where, most=largest - 1))
        if out == "-":
            raise ParameterError(words_of("unnamed_run"))
        self.path = None if out is None else Path(out)
        self.cache: Any = cache or None
        if cache is True:
            self.cache = None if out is None else Path(f"{out}.cache")
        self.sure, self.budget, self.calls, self.parallel, self.progress = sure, budget, calls, parallel, progress
        self.settings = dict[str, Any](
            parallel=parallel, timeout=timeout, max_tokens=max_tokens, temperature=temperature
        )
        self.rows: list[dict[str, Any]] = []
        self.certainty: Certainty | None = None
        self._first_wrong: float | None = None
        self._file: BinaryIO | None = None
        self._synced = 0.0
        self._family = {model.name: texts.family.get(model.name) or family_of(model.name) for model in self.models}
        finding = texts.finding()
        self._notes = () if finding is None else (finding,)

    # texts in and rows out --------------------------------------------------------------------------------------------

    def question(self, case: Case) -> Question:
        """Return what a case asks."""
        texts = [self.answers.content[self.answers.rows[case.query, item]] for item in case.items]
        return self.prompter.ask(self.answers.query_content.get(case.query, ""), texts, [case.query, *case.items])

    def _new_rows(self, case: Case, outcome: Outcome) -> list[dict[str, Any]]:
        """The judgments in a verdict, with what controlling for style and family needs."""
        assert outcome.verdict is not None
        answer, share = outcome.verdict.answer, outcome.verdict.share
        shared: dict[str, Any] = {} if case.query is None else {"query": case.query}
        after = {
            "annotator": case.judge, "group": PROGRAM, "cost": round(outcome.cost, 9), "calls": outcome.calls,
            "prompt": self.prompter.fingerprint, "time": int(time.time()),
        }  # fmt: skip
        style = [self.answers.style[self.answers.rows[case.query, one]] for one in case.items]
        if self.prompter.kind == "grade":
            grade = self.prompter.numbers[answer]
            said = {} if grade == answer else {"said": answer}
            return [{**shared, "item": case.items[0], "grade": grade, **said, **after, **style[0]}]
        if self.prompter.kind == "ranking":
            number = uuid.uuid4().hex[:12]
            rows: list[dict[str, Any]] = []
            for rank, shown in enumerate(map(LETTERS.index, answer), 1):
                place = {"item": case.items[shown], "rank": rank, "ranking": number, "shown": shown + 1}
                rows.append({**shared, **place, **after, **style[shown]})
                # one call told all of them
                after |= {"cost": 0.0, "calls": 0}
            return rows
        sides = {
            f"{name}_{side}": one[name] for name in STYLE for side, one in zip(("left", "right"), style, strict=True)
        }
        own = [int(self.answers.family[item] == self._family[case.judge]) for item in case.items]
        # a verdict without probabilities is a sure one
        strength = 0.0 if answer == "tie" else 1.0 if share is None else max(round(abs(2 * share - 1), 4), 1e-4)
        said = {"left": case.items[0], "right": case.items[1], "winner": _WINNERS[answer]}
        own_family = {"self_left": own[0], "self_right": own[1]}
        return [{**shared, **said, **after, "strength": strength, **sides, **own_family}]

    def _take_up(self, undo: ExitStack) -> None:
        """Read what a former run left in the file, without a last line that was cut off, and go on from there."""
        if self.path is None:
            return
        try:
            self._file = undo.enter_context(self.path.open("a+b"))
            self._file.seek(0)
            lines = self._file.read().split(b"\n")
            if lines[-1]:
                self._file.truncate(self._file.tell() - len(lines[-1]))
        except OSError as error:
            raise ParameterError(
                f"{self.path} cannot be written: {os_reason(error)}; name another with --out"
            ) from None
        for number, line in enumerate(lines[:-1], 1):
            try:
                row = json.loads(line)
                same = row["prompt"] == self.prompter.fingerprint
            except (ValueError, LookupError, TypeError):
                same = False
            if not same:
                raise ParameterError(words_of("other_run", number=number, path=self.path))
            self.rows.append(row)
        together: dict[Any, list[dict[str, Any]]] = {}
        for number, row in enumerate(self.rows):
            together.setdefault(row.get("ranking", number), []).append(row)
        for rows in together.values():
            one = rows[0]
            shown = sorted(rows, key=itemgetter("shown")) if len(rows) > 1 else rows
            items = [one["left"], one["right"]] if "left" in one else [row["item"] for row in shown]
            self.chooser.take([Case(one["annotator"], one.get("query"), tuple(items))])

    def _write(self, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows to the file, which is forced to the disk every half a second."""
        self.rows += rows
        if self._file is None or not rows:
            return
        self._file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "replace"))
        self._file.flush()
        if time.monotonic() - self._synced > _SECONDS_BETWEEN_SYNCS:
            self._sync()

    def _sync(self) -> None:
        """Force the file to the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    # asking -----------------------------------------------------------------------------------------------------------

    def preview(self) -> Preview:
        """Return the first prompts and the most that can be asked, and ask nothing."""
        cases = self.chooser.design(self.calls)
        questions = [self.question(case) for case in cases[:3]]
        number = self.chooser.n_cases if self.calls is None else min(self.calls, self.chooser.n_cases)
        cost: float | None = None
        if all(model.price is not None for model in self.models):
            longest = sorted(self.answers.content, key=lambda text: len(text.encode()))[-2:]
            query = max(self.answers.query_content.values(), key=len, default="")
            n = {"grade": 1, "preference": 2}.get(self.prompter.kind, self.chooser.set_size)
            worst = self.prompter.ask(query, (longest * n)[:n], ())
            # any call may be asked for once more
            most = max(most_cost(model, worst.messages, self.settings["max_tokens"]) for model in self.models)
            cost = min(2 * number * most, math.inf if self.budget is None else self.budget)
        return Preview(tuple(questions), number, cost, self._notes)

    async def run(self, *, interruptible: bool = False) -> JudgeRun:
        """Ask until there is a reason to stop, and return what came of it."""
        run = uuid.uuid4().hex if self.path is None else str(self.path.resolve())
        with ExitStack() as undo:
            self._take_up(undo)
            store = Store(self.cache, run)
            undo.callback(store.close)
            ledger = store.ledger(self.budget, self.calls)
            if self.cache is None:
                ledger.spent = math.fsum(row.get("cost", 0.0) for row in self.rows)
                ledger.answered = sum(row.get("calls", 1) for row in self.rows)
            # replies that arrived before a former run was killed and are not in its file
            for name, shown, reply in store.replies():
                case = Case(name, shown[0], tuple(shown[1:]))
                known = all((case.query, item) in self.answers.rows for item in case.items)
                if not known or name not in self._family or case in self.chooser.asked:
                    continue
                with suppress(ValueError):
                    verdict = self.prompter.verdict(reply.content, len(case.items), reply.logprobs)
                    self.chooser.take([case])
                    self._write(self._new_rows(case, Outcome(verdict, "", reply.cost, 1)))
            caller = Caller(self.models, self.prompter, store, ledger, **self.settings)
            if interruptible and threading.current_thread() is threading.main_thread():
                loop = asyncio.get_running_loop()

                def interrupt() -> None:
                    caller.stop.set()
                    loop.remove_signal_handler(signal.SIGINT)

                with suppress(NotImplementedError):
                    loop.add_signal_handler(signal.SIGINT, interrupt)
                    undo.callback(loop.remove_signal_handler, signal.SIGINT)
            try:
                why = await self._ask_all(caller)
            finally:
                await caller.close()
                self._sync()
            return self._finish(caller, why)

    async def _ask_all(self, caller: Caller) -> str:
        """Ask round after round; return why it ended."""
        queue = deque(self.chooser.other_orders())
        if len(self.rows) < len(self.chooser.targets):
            queue.extend(self.chooser.design(self.calls))
        tasks: dict[asyncio.Task[Any], Case] = {}
        choosing: asyncio.Task[Any] | None = None
        parked: list[Case] = []
        why, poor, exhausted = "", set[str](), False
        try:
            while True:
                if not why:
                    without = caller.lost_models().keys() | poor
                    if caller.stop.is_set():
                        why = "interrupted"
                    elif caller.ledger.is_spent:
                        why = "calls"
                    elif all(model.name in without for model in self.models):
                        why = "money" if poor else "lost"
                if not why:
                    self._start(caller, queue, tasks)
                elif not tasks:
                    break
                else:
                    # what waits for a model that is paused is not sent any more
                    caller.stop.set()
                # models that wait do not hold up the others
                left_out = poor | {model.name for model in self.models if caller.is_waiting(model.name)}
                ready = sum(case.judge not in left_out for case in (*queue, *tasks.values()))
                if not why and choosing is None and not exhausted and ready <= self.parallel // 2:
                    if not self.rows and not tasks and not queue:
                        why = "nothing"
                        continue
                    if len(left_out) == len(self.models) and not tasks and not queue:
                        left_out = poor
                    if self.rows and len(left_out) < len(self.models):
                        known = list(self.rows), self._prices(caller, left_out), list(tasks.values())
                        choosing = asyncio.create_task(asyncio.to_thread(self._next_round, *known))
                waiting: set[asyncio.Task[Any]] = {*tasks, *([] if choosing is None else [choosing])}
                if not waiting:
                    exhausted = False
                    continue
                # a model may also be paused while nothing ends
                done, _ = await asyncio.wait(waiting, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                settled = False
                exhausted = exhausted and not done & tasks.keys()
                for task in done & tasks.keys():
                    case = tasks.pop(task)
                    outcome: Outcome = task.result()
                    settled = settled or outcome.trouble != UNAFFORDABLE
                    if outcome.verdict is not None:
                        self._write(self._new_rows(case, outcome))
                    elif outcome.trouble == UNAFFORDABLE:
                        parked.append(case)
                # what was under way may have cost less than was reserved for it
                if parked and settled:
                    queue.extendleft(parked)
                    parked.clear()
                elif parked and not tasks:
                    poor |= {case.judge for case in parked}
                    parked.clear()
                if choosing is not None and choosing.done():
                    cases, reason = choosing.result()
                    choosing = None
                    queue.extend(cases)
                    exhausted = reason == "nothing"
                    # a paused model is not waited for where nothing else is left
                    if reason and not (exhausted and any(not caller.is_waiting(case.judge) for case in tasks.values())):
                        why = reason
                if self.progress is not None:
                    self.progress(*self._progress(caller))
        finally:
            for task in tasks:
                task.cancel()
            if choosing is not None:
                # its thread cannot be stopped, and nothing may learn beside it
                await asyncio.wait([choosing])
        return why

    def _start(self, caller: Caller, queue: deque[Case], tasks: dict[asyncio.Task[Any], Case]) -> None:
        """Send what may be sent; models that wait do not hold up the others."""
        running = dict.fromkeys(caller.models, 0)
        for case in tasks.values():
            running[case.judge] += 1
        later: list[Case] = []
        lost = caller.lost_models()
        while queue and len(tasks) < self.parallel * len(self.models):
            case = queue.popleft()
            if case.judge in lost:
                continue
            if running[case.judge] >= self.parallel or (caller.is_waiting(case.judge) and running[case.judge]):
                later.append(case)
                continue
            running[case.judge] += 1
            tasks[asyncio.create_task(caller.ask(case.judge, self.question(case)))] = case
        queue.extendleft(reversed(later))

    def _prices(self, caller: Caller, without: set[str]) -> dict[str, float]:
        """What a call of each judge costs: the mean so far, or a guess; 1 where there are no prices."""
        left = [model for model in self.models if model.name not in {*caller.lost_models(), *without}]
        if not any(any(model.price or ()) for model in self.models):
            return {model.name: 1.0 for model in left}
        costs = {}
        for model in left:
            paid = [row["cost"] / row["calls"] for row in self.rows if row["annotator"] == model.name and row["calls"]]
            costs[model.name] = max(math.fsum(paid) / max(len(paid), 1) or model.cost(500, 20), 1e-9)
        return costs

    def _next_round(
        self, rows: Sequence[Mapping[str, Any]], prices: Mapping[str, float], under_way: Sequence[Case]
    ) -> tuple[list[Case], str]:
        """Learn from the rows; the cases of the next round, or why there is none."""
        preferences = self.chooser.preferences(rows)
        model, told = self.chooser.fit(preferences)
        self.certainty = Certainty.of(told, self.chooser.goal)
        # nothing is ever quite sure: 1 asks for all that may be asked
        if self.certainty.sure >= self.sure < 1:
            return [], "sure"
        if self._first_wrong is None:
            self._first_wrong = max(self.certainty.wrong, 1e-9)
        share = min(self.certainty.wrong / self._first_wrong, 1.0)
        number = max(min(self.parallel, _LARGEST_ROUND), math.ceil(_LARGEST_ROUND * share))
        cases, _ = self.chooser.choose(preferences, model, number, prices, under_way)
        return cases, "" if cases else "nothing"

    def _progress(self, caller: Caller) -> tuple[int, int, str]:
        """How far the run is."""
        ledger = caller.ledger
        money = f", cost {ledger.spent:.4g}" if any(model.price and any(model.price) for model in self.models) else ""
        known = self.certainty
        doubt = "" if known is None else f", {known.sure:.1%} sure, {known.wrong:.3g} in doubt"
        most = self.calls if self.calls is not None else max(self.chooser.n_cases, ledger.answered)
        waiting = [name for name in caller.models if caller.is_waiting(name)]
        pause = f", waiting for {first_few(waiting)}, which failed or is busy" if waiting else ""
        return ledger.answered, most, f"{counted(ledger.answered, 'call')}{money}{doubt}{pause}"

    # the end ----------------------------------------------------------------------------------------------------------

    def _finish(self, caller: Caller, why: str) -> JudgeRun:
        """What the run comes to."""
        lost = caller.lost_models()
        if not self.rows:
            reasons = [*lost.values(), *caller.sentences()]
            if reasons:
                raise JudgeError(f"no model gave an answer: {first_few(reasons)}")
            if why == "interrupted":
                raise JudgeError("you interrupted it before any answer came; the same command goes on")
            raise ParameterError("the budget does not pay for a single call; raise it, or use --dry-run to see costs")
        preferences = self.chooser.preferences(self.rows)
        model, consensus = self.chooser.fit(preferences)
        self.certainty = Certainty.of(consensus, self.chooser.goal)
        goal, sure = self.chooser.goal, self.certainty.sure
        first = "best item is" if goal.k == 1 else f"top {goal.k} are"
        known = f"the {first} right with a probability of {sure:.3f}"
        if not goal.k:
            known = f"{sure:.1%} of pairs are expected in the right order"
        more = ""
        if why in ("calls", "money", "interrupted") and sure < self.sure:
            cases, gain = self.chooser.choose(preferences, model, _LARGEST_ROUND, self._prices(caller, set()))
            if cases and gain:
                before, measure = self.certainty.wrong, self.certainty.measure
                after, calls = max(before - gain, 0.0), counted(len(cases), "more call")
                more = f"; {calls} would lower the expected {measure} from {before:.3g} to {after:.3g}"
        # pairs of answers on which verdicts contradict each other
        said: dict[tuple[Any, tuple[Any, ...]], set[int]] = {}
        for row in self.rows if self.prompter.kind == "preference" else ():
            pair = tuple(sorted((row["left"], row["right"]), key=str))
            sign = {"left": 1, "right": -1, "tie": 0}[row["winner"]] * (1 if pair[0] == row["left"] else -1)
            said.setdefault((row.get("query"), pair), set()).add(sign)
        disputed = tuple(key for key, signs in said.items() if {1, -1} <= signs)
        table = pl.DataFrame(self.rows, infer_schema_length=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            judgments: Preferences | Grades | Rankings
            if self.prompter.kind == "preference":
                judgments = Preferences.from_frame(table, covariates=[*STYLE, "self"])
            else:
                judgments = (Rankings if self.prompter.kind == "ranking" else Grades).from_frame(table)
        return JudgeRun(
            judgments=judgments, consensus=consensus, compared=preferences, calls=caller.ledger.answered,
            cost=caller.ledger.spent, sure=sure, stopped=f"stopped since {WORDS['stopped'][why].format(known)}{more}",
            notes=(*self._notes, *lost.values(), *caller.sentences()), disputed=disputed,
            rows=tuple(self.rows),
        )  # fmt: skip


@takes_arguments_of(Runner)
def judge(*args: Any, **given: Any) -> JudgeRun:
    """Ask models which answers are better, only what is worth its price, until the order is sure.

    Parameters
    ----------
    answers
        Table or file of item and content [, query] [, query_content] [, family], or a folder with a file per item.
    models
        Judges, as ``NAME@URL`` of servers that speak chat completions; or Python functions that take a question with
        ``kind``, ``query`` and ``texts`` and return ``{"winner": "A"}``; or a dict of names and either.
    kind
        ``"preference"`` of two answers, a ``"grade"`` of one, or a ``"ranking"`` of ``set_size``.
    question, rubric
        What is asked; and what to go by, as a text, its file, or a Jinja2 file (``.j2``) for the whole prompt.
    levels
        Of grades: the levels, worst first; 1 to 5 by default.
    budget, calls
        The most money, which needs a ``price`` for every model, and the most answered requests. Neither is exceeded.
    price
        Model -> money for a million tokens in and out, as in ``{"gpt-x": (0.5, 1.5)}``.
    goal, sure
        What should be sure: the ``"order"`` (that share of all pairs), the first places (``"top-3"``) or the
        ``"best"`` (with that probability).
    orders
        ``"both"`` orders of a pair are shown, or one at ``"random"``.
    scheme
        ``"information"``, or ``"k-overlap"`` for all pairs in turn.
    per_query
        Whether items are ranked within each query, though they are in several.
    people
        Judgments of people, which are trusted.
    features
        Features of the items, so that what is learned of some tells of the others, and most are never asked about.
    out
        File to which judgments are appended as they come, as JSON lines; a run that was stopped goes on from there.
    cache
        File of replies, by default beside ``out``; ``False`` for none.
    key_from
        Environment variable of the key, OPENAI_API_KEY by default; or a dict of models and variables.
    parallel, timeout, max_tokens, temperature
        Requests under way at most, seconds of one, tokens of a reply, and how random replies are.
    columns
        Our word (item, query, content, query_content, family) -> name of the column.
    seed
        Seed of orders and draws.
    progress
        Called with (calls, most calls, what is known).

    Examples
    --------
    >>> texts = {"item": ["short", "longer", "longest"], "content": ["tea", "green tea", "hot green tea"]}
    >>> def longer(question):
    ...     first, second = map(len, question.texts)
    ...     return {"winner": "A" if first > second else "B" if second > first else "tie"}
    >>> run = judge(texts, [longer], calls=12, sure=1)
    >>> run.consensus.order(), run.calls <= 12
    (['longest', 'longer', 'short'], True)
    """
    runner = Runner(*args, **given)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(runner.run(interruptible=True))
    # in a notebook a loop runs already
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, runner.run()).result()


@takes_arguments_of(Runner)
async def ajudge(*args: Any, **given: Any) -> JudgeRun:
    """Ask models as :func:`judge` does, inside a running event loop.

    Examples
    --------
    >>> import asyncio
    >>> def longer(question):
    ...     return {"winner": "A" if len(question.texts[0]) > len(question.texts[1]) else "B"}
    >>> answers = {"query": ["q", "q"], "item": ["x", "y"], "content": ["yes", "yes, since it is"]}
    >>> asyncio.run(ajudge(answers, longer, calls=4)).consensus.order()
    ['y', 'x']
    """
    return await Runner(*args, **given).run()


_MIN_THINGS_TO_LEARN = 30
"""Fewer things are all asked about, so that features would tell nothing more."""


def sort(
    things: Any, ask: str, models: Any, *, goal: str = "top-10", orders: str = "random",
    columns: Mapping[str, str] | None = None, **given: Any,
) -> JudgeRun:  # fmt: skip
    """Order texts by a question, such as which is more urgent, and ask models about few of them.

    Features of the texts (style and words) learn along: most things are never asked about, and have the score that
    their texts predict.

    Parameters
    ----------
    things
        A list of texts; or a table or file with text [, item]; or a text file with a thing on each line.
    ask
        The question, which two texts are shown with.
    models
        As for :func:`judge`.
    goal
        What should be sure: the first places (``"top-10"``), the ``"best"`` or the whole ``"order"``.
    orders
        One order of each pair at ``"random"``, or ``"both"``.
    columns
        Our word (item, content) -> name of the column.
    **given
        Further arguments of :func:`judge`, such as ``calls``, ``budget`` and ``out``.

    Examples
    --------
    >>> def more_urgent(question):
    ...     first, second = (text.count("!") for text in question.texts)
    ...     return {"winner": "A" if first > second else "B" if second > first else "tie"}
    >>> things = ["later", "soon!", "now!!", "at once!!!"]
    >>> sort(things, "Which is more urgent?", more_urgent, goal="best", calls=30).consensus.order()[0]
    '4'
    """
    if isinstance(things, str | os.PathLike) and Path(things).suffix.lower() in (".txt", ".md"):
        lines = Path(things).read_text("utf-8").splitlines()
        things, columns = [line for line in lines if line.strip()], None
    if isinstance(things, str | os.PathLike):
        frame = read_table(things)
    elif isinstance(things, list | tuple) and all(isinstance(one, str) for one in things):
        frame = pl.DataFrame({"content": list(things)})
    else:
        frame = to_frame(things)
    if not len(frame):
        raise ParameterError("there is nothing to sort; give a row or a line for each thing")
    names = {plain_name(name) for name in frame.columns}
    if frame.width == 1 and ("content" in (columns or {}) or names & {"content", *CONTENT_COLUMNS["text"]}):
        # those without an id are numbered
        frame = frame.with_columns(item=pl.Series([str(row) for row in range(1, len(frame) + 1)]))
    answers = Answers.of(frame, columns)
    if answers.recurs:
        raise ParameterError("an item stands twice in the list; give each thing an id of its own")
    table = pl.DataFrame({"item": answers.item, "content": answers.content})
    if len(table) >= _MIN_THINGS_TO_LEARN:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            given["features"] = features_of_texts(table, columns={"item": "item", "text": "content"})
    return judge(table, models, question=ask, goal=goal, orders=orders, **given)


_PEOPLE_PER_CASE = 3
_ITEMS = ".items.csv"
_COLUMNS = ("left", "right", "winner", "annotator", "time")


def write_campaign(
    run: JudgeRun, answers: Answers, path: str | Path, *, question: str, share: float = 0.1, seed: int = 0
) -> int:
    """Write a campaign about what judges contradict each other on and a random share of the rest; return how many.

    Each pair is a query of its own there, so that nothing else is asked; the column ``of_query`` of the items says
    whose query it is.
    """
    if not 0 <= share <= 1:
        raise ParameterError(f"--people-share {share:g} must be a share from 0 to 1")
    pairs = {
        (row.get("query"), tuple(sorted((row["left"], row["right"]), key=str))) for row in run.rows if "left" in row
    }
    rest = sorted(pairs - set(run.disputed), key=str)
    chosen = np.flatnonzero(np.random.default_rng(seed).random(len(rest)) < share)
    cases = [*run.disputed, *(rest[place] for place in chosen)]
    if not cases:
        return 0
    path = Path(path)
    rows = [
        (f"case {number}", item, answers.content[answers.rows[query, item]], answers.query_content.get(query), query)
        for number, (query, items) in enumerate(cases, 1)
        for item in items
    ]
    columns = ["query", "item", "content", "query_content", "of_query"]
    table = path.with_suffix(_ITEMS)
    pl.DataFrame(rows, columns, orient="row", infer_schema_length=None).write_csv(table)
    lines = {
        "name": path.stem, "kind": "preference", "items": table.name, "question": question, "scheme": "3-overlap",
        "budget": _PEOPLE_PER_CASE * len(cases),
    }  # fmt: skip
    # strings and whole numbers are written alike in TOML and JSON
    text = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in lines.items())
    path.write_text(text, "utf-8")
    return len(cases)


def votes_of_people(rows: Iterable[Mapping[str, Any]], path: str | Path) -> pl.DataFrame | None:
    """Return what people answered in a campaign, with the queries that the pairs are of; ``None`` where nobody did."""
    table = Path(path).with_suffix(_ITEMS)
    of_query = dict(read_table(table).select("query", "of_query").iter_rows()) if table.exists() else {}
    votes = []
    for row in rows:
        if row.get("annotator_kind") == "person":
            # what is exported of a single case does not name it
            query = row.get("query", "case 1")
            given = {"query": of_query.get(query, query), **{name: row.get(name) for name in _COLUMNS}}
            votes.append({name: value for name, value in given.items() if value is not None} | {"group": "person"})
    return pl.DataFrame(votes) if votes else None
