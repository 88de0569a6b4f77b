"""Judgments from files of every kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ..data.answers import check_codes, checked_levels
from ..data.coding import id_series
from ..data.columns import Understood, check_words, understand
from ..data.files import PathLike
from ..data.intake import check_rules
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings
from ..data.mixed import together
from ..errors import CrowdrankError, JudgmentError, ParameterError
from ..wording import option
from .notices import say
from .preflib import SUFFIXES, preflib_of
from .sources import Source, blaming, open_source, shown
from .tables import read_source, read_table

_IDS = ("query", "item", "left", "right", "loser", "annotator", "ranking", "group")


def read_judgments(
    path: PathLike | Sequence[PathLike],
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    levels: Sequence[Any] | None = None,
    nominal: bool = False,
    winner_codes: Mapping[Any, str] | None = None,
    duplicates: str = "keep",
    invalid: str = "error",
    items: Any | None = None,
) -> Judgments | Mixed:
    """Return the judgments in one or several files: tables of any format, or PrefLib rankings.

    Files of several kinds give them together, as :class:`~crowdrank.Mixed`: equal ids mean the same item or annotator.

    Parameters
    ----------
    path
        Name of the file, or several names whose rows belong together; ``-`` reads standard input.
    kind
        ``"grade"``, ``"preference"`` or ``"ranking"``; ``None`` tells it from the columns.
    columns
        House word -> column name, for names that are not understood by themselves.
    levels, nominal
        Order of grades given as text, worst first; or that they have none.
    winner_codes
        What the numbers of a numeric winner column mean, as in ``{1: "left", 2: "right", 0: "tie"}``.
    duplicates
        What to do when an annotator judges the same thing twice: ``"keep"``, ``"first"``, ``"last"`` or ``"error"``.
    invalid
        ``"error"`` refuses rows without a usable answer, ``"drop"`` leaves them out.
    items
        A table or file of items (query, item), so that those nobody judged are known too.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.tsv"
    >>> _ = path.write_text("worker\\ttask\\tlabel\\nann\\tx\\t2\\nbob\\tx\\t1\\n")
    >>> grades = read_judgments(path)
    >>> grades.kind, list(grades.annotators), grades.grade.tolist()
    ('grade', ['ann', 'bob'], [2.0, 1.0])
    """
    check_words(columns or {}, kind)
    check_rules(duplicates, invalid)
    check_codes(winner_codes or {})
    if levels is not None:
        checked_levels(levels)
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise JudgmentError("no file of judgments was named; give at least one")
    if isinstance(items, str | os.PathLike):
        items = read_table(items)
    sources = [open_source(one) for one in paths]
    preflib = [source.suffix in SUFFIXES for source in sources]
    if all(preflib) and items is None:
        return _preflib(sources, kind)
    if any(preflib):
        raise JudgmentError("PrefLib files cannot be read together with tables or a list of items; read them apart")
    tables = [_table(source, kind, columns) for source in sources]
    forms = [(understood.kind, "loser" in understood.columns) for _, understood in tables]
    options = _Options(levels, nominal, winner_codes, duplicates, invalid, items)
    options.expect(tuple(dict.fromkeys(kind for kind, _ in forms)))
    found = [
        _build([sources[n] for n in chosen], [tables[n][0] for n in chosen], options.builder(form[0]))
        for form in dict.fromkeys(forms)
        if (chosen := [n for n, other in enumerate(forms) if other == form])
    ]
    return found[0] if len(found) == 1 else together(found)


def _ids(words: Iterable[str]) -> tuple[str, ...]:
    """Those words that stand for columns of ids; the winner is one where there is a loser."""
    return (*_IDS, "winner") if "loser" in words else _IDS


def _preflib(sources: list[Source], kind: str | None) -> Rankings:
    """Rankings of PrefLib files; each of several is a query of its own."""
    if kind not in (None, "ranking"):
        raise JudgmentError(f"{sources[0].name} is a PrefLib file, which holds rankings and no {kind}s; leave kind out")
    found = [preflib_of(source) for source in sources]
    for source, rankings in zip(sources, found, strict=True):
        say(f"{source.name}: read as rankings: {len(rankings)} orders of {rankings.n_items} items, counts as weights")
    if len(found) == 1:
        return found[0]
    names = [Path(source.name).name for source in sources]
    if len(set(names)) < len(names):
        names = [source.name for source in sources]
    say("each file is a query of its own, called by the file's name")
    rows = [
        rankings.frame().with_columns(
            query=pl.lit(name), weight=pl.Series(rankings.row_weight).gather(rankings.ranking)
        )
        for name, rankings in zip(names, found, strict=True)
    ]
    items = [r.items.frame().with_columns(query=pl.lit(name)) for name, r in zip(names, found, strict=True)]
    return Rankings.from_frame(pl.concat(rows, how="diagonal"), items=pl.concat(items))


def _table(source: Source, kind: str | None, columns: Mapping[str, str] | None) -> tuple[pl.DataFrame, Understood]:
    """The columns that matter, under their house words, and what was understood."""
    seen: list[Understood] = []

    def choose(names: list[str]) -> list[str]:
        seen.append(understand(names, kind, columns))
        return list(dict.fromkeys(seen[0].columns.values()))

    with blaming(source.name):
        frame, mixed = read_source(source, choose=choose)
        if not seen:
            choose(frame.columns)
        for word, name in seen[0].columns.items():
            if word in _ids(seen[0].columns) and name in mixed:
                value = shown(frame[name][mixed[name] - 1])
                raise JudgmentError(
                    f"column {shown(name)} mixes numbers and text, first in row {mixed[name]} ({value}); "
                    "write all ids as text"
                )
    say(f"{source.name}: {seen[0].sentence()}")
    return frame.select(pl.col(name).alias(word) for word, name in seen[0].columns.items()), seen[0]


class _Options(NamedTuple):
    """How rows are read, as the arguments of :func:`read_judgments` say."""

    levels: Sequence[Any] | None
    nominal: bool
    winner_codes: Mapping[Any, str] | None
    duplicates: str
    invalid: str
    items: Any | None

    def expect(self, kinds: Sequence[str]) -> None:
        """Refuse options about a kind that no file holds."""
        held = " and ".join(f"{kind}s" for kind in kinds)
        files = "the file holds" if len(kinds) == 1 else "the files hold"
        if "grade" not in kinds and (self.levels is not None or self.nominal):
            raise ParameterError(
                f"{option('levels')} and {option('nominal')} are about grades, and {files} {held}; leave them out"
            )
        if "preference" not in kinds and self.winner_codes is not None:
            raise ParameterError(f"{option('winner_codes')} is about preferences, and {files} {held}; leave it out")
        if tuple(kinds) == ("ranking",) and self.duplicates != "keep":
            raise ParameterError(
                f"{option('duplicates')} is about grades and preferences, and {files} {held}; leave it out"
            )

    def builder(self, kind: str) -> Callable[[pl.DataFrame], Judgments]:
        """Return what makes judgments of the kind from a table."""
        shared: dict[str, Any] = {"invalid": self.invalid, "items": self.items}
        if kind == "grade":
            return lambda frame: Grades.from_frame(
                frame, levels=self.levels, nominal=self.nominal, duplicates=self.duplicates, **shared
            )
        if kind == "preference":
            return lambda frame: Preferences.from_frame(
                frame, winner_codes=self.winner_codes, duplicates=self.duplicates, **shared
            )
        return lambda frame: Rankings.from_frame(frame, **shared)


def _build(sources: list[Source], frames: list[pl.DataFrame], build: Callable[[pl.DataFrame], Judgments]) -> Judgments:
    """Judgments of all rows; what is wrong is blamed on the file it stands in."""
    if len(frames) == 1:
        with blaming(sources[0].name):
            return build(frames[0])
    try:
        return build(_stacked(frames))
    except CrowdrankError:
        for source, frame in zip(sources, frames, strict=True):
            with blaming(source.name):
                build(frame)
        raise


def _stacked(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Rows of all files below each other; ids become text where one file has text."""
    words = {word for frame in frames for word in frame.columns}
    if "weight" in words:
        frames = [frame if "weight" in frame.columns else frame.with_columns(weight=pl.lit(1.0)) for frame in frames]
    if "ranking" in words:
        frames = [
            frame.with_columns(
                pl.format("{} of file {}", word, pl.lit(number)).alias(word)
                for word in frame.columns
                if word == "ranking"
            )
            for number, frame in enumerate(frames, 1)
        ]
    differ = {w for w in words if len({frame.schema[w] for frame in frames if w in frame.columns}) > 1}
    return pl.concat([_as_text(frame, differ) for frame in frames], how="diagonal")


def _as_text(frame: pl.DataFrame, words: set[str]) -> pl.DataFrame:
    """The table with some columns as text, in which 7.0 as an id is 7."""
    texts = {
        word: (id_series(frame[word]) if word in _ids(frame.columns) else frame[word]).cast(pl.String)
        for word in frame.columns
        if word in words
    }
    return frame.with_columns(**texts)
