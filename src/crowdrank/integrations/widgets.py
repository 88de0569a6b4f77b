"""Notebooks: a leaderboard that sorts, and a cell in which one judges pairs or grades while ``propose`` chooses."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import crowdrank as cr
from crowdrank.errors import DataWarning, JudgmentError, MissingExtraError, ParameterError

_HERE = Path(__file__).parent
_MOST_ITEMS = 1000
_LOOK_AHEAD = 50
"""Proposals among which the first that was not judged yet is asked."""


def widget(
    of: Any, *, levels: Sequence[Any] | None = None, annotator: str = "me", level: float = 0.95, seed: int = 0
) -> Any:
    """Return a widget for a notebook: of a consensus a leaderboard, of a table of items a cell in which one judges.

    The leaderboard sorts by a click on a column and draws the interval of each score. The other asks for the better of
    two items, or for a grade where ``levels`` are given: by mouse, or by the keys that the buttons name. What to ask
    next is chosen by :func:`crowdrank.propose` from the answers so far. Its ``judgments`` are the answers as
    preferences or grades, and ``consensus`` what they come to. Needs ``pip install 'crowdrank[notebook]'``.

    Parameters
    ----------
    of
        A consensus; or items: a frame or a dict of columns with item, and where wanted query and text.
    levels
        Levels of a scale from worst to best, up to ten; without them pairs are asked.
    annotator
        Whose judgments they are.
    level
        Of the leaderboard's intervals.
    seed
        Of the order before anything is known.

    Examples
    --------
    >>> import crowdrank as cr
    >>> asked = cr.widget({"item": ["a", "b", "c"]}, levels=["bad", "good"])  # doctest: +SKIP
    >>> asked.judgments.frame()  # doctest: +SKIP
    """
    try:
        import anywidget  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "widgets need the package anywidget; install it with pip install 'crowdrank[notebook]'"
        ) from None
    if isinstance(of, cr.Consensus):
        if len(of) > _MOST_ITEMS:
            raise ParameterError(
                f"a leaderboard of {len(of):,} items is too long for a notebook; show consensus.frame().head(100)"
            )
        table = of.frame() if of.uncertainty is None else of.intervals(level).drop("basis")
        return _classes()[0](rows=table.to_dicts(), asks=False)
    import polars as pl

    frame = of if isinstance(of, pl.DataFrame) else pl.DataFrame(of)
    if "item" not in frame.columns or len(frame) < 2:
        raise ParameterError("what is to be judged needs a column item with two items or more; text beside it")
    if levels is not None and not 2 <= len(levels) <= 10:
        raise ParameterError(f"levels are {len(levels)}; give two to ten, worst first")
    return _classes()[1](frame.with_columns(pl.col("item").cast(pl.String)), levels, annotator, seed)


@cache
def _classes() -> tuple[Any, Any]:
    """The widgets' classes, made when the package that they need is there."""
    import anywidget
    import traitlets

    class Leaderboard(anywidget.AnyWidget):  # type: ignore[misc]
        """A ranking that sorts."""

        _esm, _css = _HERE / "widget.js", _HERE / "widget.css"
        asks = traitlets.Bool(False).tag(sync=True)
        rows = traitlets.List([]).tag(sync=True)

    class Judge(anywidget.AnyWidget):  # type: ignore[misc]
        """A cell in which one judges; ``judgments`` holds the answers."""

        _esm, _css = _HERE / "widget.js", _HERE / "widget.css"
        asks = traitlets.Bool(True).tag(sync=True)
        question = traitlets.Dict({}).tag(sync=True)

        def __init__(self, items: Any, levels: Sequence[Any] | None, annotator: str, seed: int) -> None:
            super().__init__()
            self._asker = Asker(items, levels, annotator, seed)
            self.on_msg(self._hear)
            self.question = self._asker.question()

        @property
        def judgments(self) -> Any:
            """The answers so far, as preferences or grades."""
            return self._asker.judgments()

        @property
        def consensus(self) -> Any:
            """What the answers so far come to."""
            return cr.aggregate(self.judgments)

        def _hear(self, _: Any, message: dict[str, Any], __: Any) -> None:
            self.question = self._asker.hear(message)

    return Leaderboard, Judge


class Asker:
    """What is asked next, and what was answered; a widget shows it, whatever the framework."""

    def __init__(self, items: Any, levels: Sequence[Any] | None, annotator: str, seed: int) -> None:
        import random

        import polars as pl

        query = "query" if "query" in items.columns else pl.lit("").alias("query")
        self.items = items.with_columns(query).with_columns(pl.col("query").cast(pl.String))
        text = next((name for name in ("text", "content", "answer", "item") if name in items.columns), "item")
        self.texts = {(row["query"], row["item"]): str(row[text]) for row in self.items.iter_rows(named=True)}
        self.levels = None if levels is None else list(levels)
        self.annotator, self.rows = annotator, list[tuple[Any, ...]]()
        keys = list(self.texts)
        random.Random(seed).shuffle(keys)
        self.first: list[tuple[str, ...]] = list(keys)
        if self.levels is None:
            # neighbours of a shuffled round: each item twice before propose has anything to go by
            same = {query: [item for q, item in keys if q == query] for query, _ in keys}
            self.first = [(q, *pair) for q, ids in same.items() for pair in pairwise(ids)]
        self.asked = self._next()

    def judgments(self) -> Any:
        """Return the answers as judgments."""
        if not self.rows:
            raise JudgmentError("nothing was judged yet; answer in the cell of the widget first")
        names: tuple[str, ...] = ("annotator", "query", "left", "right", "winner")
        if self.levels is not None:
            names = ("annotator", "query", "item", "grade")
        columns: dict[str, list[Any]] = {
            name: list(cells) for name, cells in zip(names, zip(*self.rows, strict=True), strict=True)
        }
        if not any(columns["query"]):
            del columns["query"]
        if self.levels is None:
            return cr.Preferences.from_frame(columns)
        return cr.Grades.from_frame(columns, levels=self.levels)

    def _next(self) -> tuple[str, ...] | None:
        """Query and items to ask next, ``None`` where all was asked."""
        # a pair is the same either way round
        done = {(query, *sorted(ids)) for _, query, *ids, _ in self.rows}
        fresh = [one for one in self.first if (one[0], *sorted(one[1:])) not in done]
        # grades are first given once to each item, and a pair is first asked of each item
        if self.levels is not None or len(fresh) > len(self.first) / 2 or not self.rows:
            return fresh[0] if fresh else None
        names = ["query", "item"] if any(query for query, _ in self.texts) else ["item"]
        with warnings.catch_warnings():
            # that little is known yet is why one is asked
            warnings.simplefilter("ignore", DataWarning)
            table = cr.propose(self.judgments(), "uncertainty", items=self.items.select(names), budget=_LOOK_AHEAD)
        for row in table.iter_rows(named=True):
            query, pair = row.get("query") or "", (row["left"], row["right"])
            if (query, *sorted(pair)) not in done:
                return (query, *pair)
        return fresh[0] if fresh else None

    def question(self, message: str = "") -> dict[str, Any]:
        """Return what the page shows."""
        asked = self.asked
        answers: list[list[Any]] = [["1", "left", "left"], ["2", "right", "right"], ["0", "equal", "tie"]]
        if self.levels is not None:
            answers = [[str((n + 1) % 10), str(one), n] for n, one in enumerate(self.levels)]
        items = [] if asked is None else [{"id": one, "text": self.texts[asked[0], one]} for one in asked[1:]]
        return {
            "number": len(self.rows), "done": len(self.rows), "left_over": asked is not None, "message": message,
            "query": "" if asked is None else asked[0], "items": items, "answers": answers,
        }  # fmt: skip

    def hear(self, message: dict[str, Any]) -> dict[str, Any]:
        """Take an answer or an undo, and return the next question; what is late or not understood changes nothing."""
        if message.get("number") != len(self.rows):
            return self.question("that answer was to an earlier question and was not kept")
        if message.get("undo"):
            if not self.rows:
                return self.question("there is nothing to undo")
            self.asked = self.rows.pop()[1:-1]
            return self.question()
        answer = message.get("answer")
        known = ("left", "right", "tie") if self.levels is None else range(len(self.levels))
        if self.asked is None or answer not in known:
            return self.question(f"the answer {answer!r} is none of those offered")
        value = answer if self.levels is None else self.levels[int(str(answer))]
        self.rows.append((self.annotator, *self.asked, value))
        self.asked = self._next()
        return self.question()
