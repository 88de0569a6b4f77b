"""Judgments from files of every kind."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.coding import id_series
from ..data.files import PathLike
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings
from ..data.mixed import parts_of, together
from ..data.presented import NOT_SWAPPED
from ..data.pseudonyms import with_pseudonyms
from ..errors import CrowdrankError, DataWarning, JudgmentError, ParameterError
from ..wording import option
from . import exports
from .notices import say
from .plain_tables import Plain, read_plain
from .preflib import SUFFIXES, preflib_of
from .read_options import ReadOptions, read_options
from .repeats import check_repeats
from .sources import Source, as_utf8, blaming, open_source
from .tables import in_any_encoding, read_table, table_format

_IDS = ("query", "item", "left", "right", "loser", "annotator", "ranking", "group")


def read_judgments(
    path: PathLike | Sequence[PathLike],
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    levels: Sequence[Any] | None = None,
    nominal: bool = False,
    winner_codes: Mapping[Any, str] | None = None,
    duplicates: str | None = None,
    invalid: str = "error",
    items: Any | None = None,
    source: str | None = None,
    answer: str | None = None,
    where: Mapping[str, Any] | None = None,
    keep: Sequence[str] | None = None,
    wide: Sequence[str] | None = None,
    strength: Mapping[str, str] | None = None,
    small_is_good: bool | None = None,
    swapped: str | Mapping[str, Any] | None = None,
    missing: Sequence[Any] | None = None,
    skip_rows: int = 0,
    baseline_model: str | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    header: Sequence[str] | None = None,
    no_annotators: bool = False,
    agreeing: bool = False,
    pseudonyms: bool = False,
    strength_weights: Sequence[float] | None = None,
) -> Judgments | Mixed:
    """Return the judgments in one or several files: exports of other tools, tables of any format, PrefLib rankings.

    Files of several kinds give them together, as :class:`~crowdrank.Mixed`: equal ids mean the same item or annotator.

    Parameters
    ----------
    path
        Name of the file, or several names whose rows belong together; ``-`` reads standard input.
    kind
        ``"grade"``, ``"preference"`` or ``"ranking"``; ``None`` tells it from the columns.
    columns
        Our word (``item``, ``annotator``, ...) -> name of the column, for names that are not understood by themselves.
    levels, nominal
        Order of grades given as text, worst first; or that they have none.
    winner_codes
        What the numbers of a numeric winner column mean, as in ``{1: "left", 2: "right", 0: "tie"}``.
    duplicates
        What to do when an annotator judges the same thing twice: ``"keep"``, ``"first"``, ``"last"`` or ``"error"``;
        ``None`` keeps them too, unless most do and another column tells the judgments apart.
    invalid
        ``"error"`` refuses rows without a usable answer, ``"drop"`` leaves them out.
    items
        A table or file of items (query, item), so that those nobody judged are known too.
    source
        Name of the tool whose export a file is; ``None`` tells it from the contents, ``"table"`` reads it plainly.
    answer
        Which question, metric or answer column, where a file has several.
    where
        Column or JSON path -> value: only such rows are read.
    keep
        Statuses of answers to keep, in place of those that the tool's importer keeps.
    wide
        Columns that hold the grades of one annotator, or of one item, each; ``["Q1_*"]`` means all that begin so.
    strength
        ``{"score": "left"}``: a column of signed numbers, positive where left is better; ``"right"`` the other way.
        Also a difference: ``{"score_a-score_b": "left"}`` of two columns, ``{"rating-4": "right"}`` from the middle.
    small_is_good
        Numbers count downwards.
    swapped
        ``"COLUMN"`` or ``"COLUMN=VALUE"``: rows in which the right item was shown first, where winners are in the order
        shown; left and right are then as they were shown. ``"none"``: winners are about the columns as they stand.
    missing
        Answers that say that there is none, such as ``[-1, "N/A"]``; their rows are left out.
    skip_rows
        Lines above the header of a text table or a sheet; a title alone in its line is found by itself.
    baseline_model
        Arena-Hard's other model, in files that do not name it.
    sheet, encoding, header
        Sheet of a spreadsheet; encoding of a text file; column names for a file without a header line.
    no_annotators
        Nobody is named, and that is meant: several judgments of an item are by several annotators.
    agreeing
        MT-Bench pairs as FastChat counts them: both games of a pair, a tie where they differ.
    pseudonyms
        Annotators are called A1, A2, ... in the result.
    strength_weights
        Weights of preferences of strength 1, 2, ..., such as ``[1, 3]``, in place of strengths.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.tsv"
    >>> _ = path.write_text("worker\\ttask\\tlabel\\nann\\tx\\t2\\nbob\\tx\\t1\\n")
    >>> grades = read_judgments(path)
    >>> grades.kind, list(grades.annotators), grades.grade.tolist()
    ('grade', ['ann', 'bob'], [2.0, 1.0])
    """
    options = read_options(
        kind=kind, columns=columns, levels=levels, nominal=nominal, winner_codes=winner_codes, duplicates=duplicates,
        invalid=invalid, items=items, source=source, answer=answer, where=where, keep=keep, wide=wide,
        strength=strength, small_is_good=small_is_good, swapped=swapped, missing=missing, skip_rows=skip_rows,
        baseline_model=baseline_model, sheet=sheet, encoding=encoding, header=header, no_annotators=no_annotators,
        agreeing=agreeing, pseudonyms=pseudonyms, strength_weights=strength_weights,
    )  # fmt: skip
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise JudgmentError("no file of judgments was named; give at least one")
    return read_files(paths, options)


def read_files(paths: Sequence[PathLike], options: ReadOptions) -> Judgments | Mixed:
    """Return the judgments in files, all read by the same options."""
    if isinstance(options.items, str | os.PathLike):
        options = replace(options, items=read_table(options.items))
    sources = [open_votes(one, options.encoding) for one in paths]
    preflib = [source.suffix in SUFFIXES for source in sources]
    if all(preflib) and options.items is None:
        return _preflib(sources, options.kind)
    if any(preflib):
        raise JudgmentError("PrefLib files cannot be read together with tables or a list of items; read them apart")
    tables = [read_one(source, options) for source in sources]
    _expect(options, tuple(dict.fromkeys(table.kind for table in tables)))
    parts = [
        build([table for table in tables if table.form == form], options)
        for form in dict.fromkeys(table.form for table in tables)
    ]
    judgments = parts[0] if len(parts) == 1 else together(parts)
    if options.strength_weights is not None:
        judgments = weighted_by_strength(judgments, options.strength_weights)
    return with_pseudonyms(judgments) if options.pseudonyms else judgments


def open_votes(path: PathLike, encoding: str | None) -> Source:
    """Return the file, its text in UTF-8 if the user says what it is in."""
    source = open_source(path, archives=True)
    if encoding is None or encoding.lower() in ("utf-8", "utf8"):
        return source
    if table_format(source) in ("parquet", "excel"):
        raise ParameterError(f"{option('encoding')} applies to text files, and {source.name} is not one; leave it out")
    return as_utf8(source, encoding)


class Table(NamedTuple):
    """The rows of one file under the house's words, and what they are."""

    source: Source
    kind: str
    frame: pl.DataFrame
    nominal: bool = False
    levels: Sequence[Any] | None = None
    recorded: bool = False
    """Whether left and right are an order of the file and not what annotators saw."""
    plain: Plain | None = None
    """How the columns were understood, where it is no export."""
    imported: exports.Imported | None = None
    """What an importer made of the file, where it is one."""

    @property
    def form(self) -> tuple[Any, ...]:
        """What must be the same in tables whose rows are put below each other."""
        levels = self.levels and tuple(self.levels)
        return self.kind, "loser" in self.frame.columns, self.nominal, levels, self.recorded


def read_one(source: Source, options: ReadOptions) -> Table:
    """Return the rows of one file, by the importer of the tool that wrote it or as a plain table."""
    name = source_name(source, options)
    if name is not None:
        if options.swapped is not None:
            raise ParameterError(
                f"{option('swapped')} applies to plain tables, but this is an export of {name}, whose order is known; "
                f"leave it out, or read the file with {option('source', 'table')}"
            )
        with blaming(source.name):
            return _import_rows(source, in_any_encoding(source, lambda one: exports.read(one, name, options)), options)
    return _plain(source, options)


def source_name(source: Source, options: ReadOptions) -> str | None:
    """Return the tool whose export a file is, ``None`` for a plain table."""
    name = exports.detect(source) if options.source is None else options.source
    return None if name == "table" else name


def _import_rows(source: Source, imported: exports.Imported, options: ReadOptions) -> Table:
    """The rows that an importer made, once it is said what was left out."""
    if options.kind not in (None, imported.kind):
        raise JudgmentError(f"{source.name} holds {imported.kind}s, not {options.kind}s; leave {option('kind')} out")
    for sentence in imported.sentences():
        say(f"{source.name}: {sentence}", needed=bool(imported.dropped))
    if imported.mostly_dropped:
        warnings.warn(
            f"{source.name}: more than half of the file was left out; see which and why above",
            DataWarning,
            stacklevel=5,
        )
    levels = options.levels if options.levels is not None else imported.levels
    return Table(
        source,
        imported.kind,
        imported.frame,
        imported.nominal or options.nominal,
        levels,
        imported.recorded,
        imported=imported,
    )


def weighted_by_strength(judgments: Judgments | Mixed, weights: Sequence[float]) -> Judgments | Mixed:
    """Return the judgments with preferences of strength 1, 2, ... multiplied by these weights; ties keep theirs.

    They have no strength any more: what is a weight is not to count twice.
    """
    graded = [part for part in parts_of(judgments) if isinstance(part, Preferences) and part.strength is not None]
    if not graded:
        raise ParameterError(
            f"{option('strength_weights')} applies to graded preferences, but there are none; leave it out"
        )
    parts: list[Judgments] = []
    for part in parts_of(judgments):
        if not isinstance(part, Preferences) or part.strength is None:
            parts.append(part)
            continue
        strength = part.strength
        known = np.isin(strength, np.arange(len(weights) + 1))
        if not known.all():
            odd = strength[~known][0]
            raise ParameterError(
                f"{option('strength_weights')} has {len(weights)} weights, and a preference has strength {odd:g}; give "
                "one for each of 1, 2, ..."
            )
        factor = np.concatenate([[1.0], np.asarray(weights, np.float64)])[strength.astype(np.int64)]
        parts.append(replace(part, weight=part.row_weight * factor, strength=None))
    return parts[0] if len(parts) == 1 else Mixed(tuple(parts))


def _ids(words: Iterable[str]) -> tuple[str, ...]:
    """Those words that stand for columns of ids; the winner is one where there is a loser."""
    return (*_IDS, "winner") if "loser" in words else _IDS


def _preflib(sources: list[Source], kind: str | None) -> Rankings:
    """Rankings of PrefLib files; each of several is a query of its own."""
    if kind not in (None, "ranking"):
        raise JudgmentError(f"{sources[0].name} is a PrefLib file, which holds rankings, not {kind}s; leave kind out")
    each = [preflib_of(source) for source in sources]
    for source, rankings in zip(sources, each, strict=True):
        say(f"{source.name}: read as rankings: {len(rankings)} orders of {rankings.n_items} items, counts as weights")
    if len(each) == 1:
        return each[0]
    names = [Path(source.name).name for source in sources]
    if len(set(names)) < len(names):
        names = [source.name for source in sources]
    say("each file is a query of its own, called by the file's name")
    rows = [
        rankings.frame().with_columns(
            query=pl.lit(name), weight=pl.Series(rankings.row_weight).gather(rankings.ranking)
        )
        for name, rankings in zip(names, each, strict=True)
    ]
    items = [r.items.frame().with_columns(query=pl.lit(name)) for name, r in zip(names, each, strict=True)]
    return Rankings.from_frame(pl.concat(rows, how="diagonal"), items=pl.concat(items))


def _plain(source: Source, options: ReadOptions) -> Table:
    """The columns that matter of a plain table, under their house words."""
    with blaming(source.name):
        plain = read_plain(source, options)
    say(f"{source.name}: {plain.understood.sentence()}")
    for note in plain.notes:
        say(f"{source.name}: {note}")
    levels = options.levels if options.levels is not None else plain.levels
    recorded = options.swapped == NOT_SWAPPED
    return Table(source, plain.understood.kind, plain.frame, options.nominal, levels, recorded, plain=plain)


def _expect(options: ReadOptions, kinds: Sequence[str]) -> None:
    """Refuse options about a kind that no file holds."""
    held = " and ".join(f"{kind}s" for kind in kinds)
    files = "the file holds" if len(kinds) == 1 else "the files hold"
    if "grade" not in kinds and (options.levels is not None or options.nominal):
        raise ParameterError(
            f"{option('levels')} and {option('nominal')} apply to grades, but {files} {held}; leave them out"
        )
    if "preference" not in kinds and options.covariates:
        raise ParameterError(f"{option('control')} applies to preferences, but {files} {held}; leave it out")
    if "preference" not in kinds and options.winner_codes is not None:
        raise ParameterError(f"{option('winner_codes')} applies to preferences, but {files} {held}; leave it out")
    if tuple(kinds) == ("ranking",) and (options.duplicates or "keep") != "keep":
        raise ParameterError(
            f"{option('duplicates')} applies to grades and preferences, but {files} {held}; leave it out"
        )


def _builder(table: Table, options: ReadOptions) -> Callable[[pl.DataFrame], Judgments]:
    """What makes judgments of the table's kind from rows."""
    shared: dict[str, Any] = {"invalid": options.invalid, "items": options.items}
    rule: dict[str, Any] = {"duplicates": options.duplicates or "keep"}
    if table.kind == "grade":
        return lambda frame: Grades.from_frame(frame, levels=table.levels, nominal=table.nominal, **rule, **shared)
    if table.kind == "preference":
        return lambda frame: _with_sides(
            Preferences.from_frame(
                frame, winner_codes=options.winner_codes, covariates=options.covariates, **rule, **shared
            ),
            table.recorded,
        )
    return lambda frame: Rankings.from_frame(frame, **shared)


def _with_sides(preferences: Preferences, recorded: bool) -> Preferences:
    """The preferences, told that their sides are an order of the file where they are."""
    return replace(preferences, recorded=np.ones(len(preferences), bool)) if recorded else preferences


def build(tables: list[Table], options: ReadOptions) -> Judgments:
    """Return the judgments of all rows; what is wrong is blamed on the file it stands in."""
    builder = _builder(tables[0], options)
    if len(tables) == 1:
        with blaming(tables[0].source.name):
            return _check_table(tables[0], builder(tables[0].frame), options)
    try:
        judgments = builder(_stack_frames([table.frame for table in tables]))
        for table in tables:
            # several files may repeat each other, which is no matter of columns
            _check_table(table, builder(table.frame) if table.plain else judgments, options)
        return judgments
    except CrowdrankError:
        for table in tables:
            with blaming(table.source.name):
                builder(table.frame)
        raise


def _check_table(table: Table, judgments: Judgments, options: ReadOptions) -> Judgments:
    """The judgments, unless a column that was not used tells repeated ones apart."""
    if table.plain is not None:
        check_repeats(table.source.name, judgments, table.plain, options)
    return judgments


def _stack_frames(frames: list[pl.DataFrame]) -> pl.DataFrame:
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
