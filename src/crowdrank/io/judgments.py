"""Judgments from files of every kind, as a whole or some rows at a time."""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.column_names import is_gold, is_surely_item, key_of, name_points, names_metric
from ..data.columns import ColumnFacts, count_cells, is_personal, short_paths
from ..data.covariates import covariate_columns
from ..data.files import PathLike
from ..data.index import id_series
from ..data.intake import count_repeats, short
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings, parts_of, together, with_pseudonyms
from ..data.presented import NOT_SWAPPED
from ..errors import CrowdrankError, DataWarning, JudgmentError, ParameterError
from ..wording import all_at_once, counted, either, option
from . import exports
from .delimited import scan_delimited
from .notices import say
from .plain_tables import IDS, Plain, at_path, plain_rows, read_plain, with_house_words
from .preflib import SUFFIXES, read_preflib
from .read_options import ReadOptions, read_options
from .sources import Source, as_utf8, blaming, each_place, files_like, open_source, without_panics
from .tables import in_any_encoding, read_table, table_format


def read_judgments(
    path: Any,
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
    judge_version: str | None = None,
) -> Judgments | Mixed:
    """Return the judgments in one or several files: exports of other tools, tables of any format, PrefLib rankings.

    Files of several kinds give them together, as :class:`~crowdrank.Mixed`: equal ids mean the same item or annotator.

    Parameters
    ----------
    path
        Name of the file, or several names whose rows belong together; ``-`` reads standard input. Also a folder or a
        pattern of Parquet files, Parquet at an ``s3://``, ``gs://``, ``hf://`` or ``https://`` address, what a database
        answers (``duckdb:///file.db?query=SELECT ...``, ``postgresql://host/db?query=...``), a table in memory (polars,
        pandas, Arrow, a DuckDB relation, a Hugging Face data set), or rows (dicts, pydantic models, a generator of
        them).
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
    judge_version
        Column of a plain table that has the version behind an annotator's name, such as the model of a judge: each
        version is an annotator of its own then, called ``name (version)``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.tsv"
    >>> _ = path.write_text("worker\\ttask\\tlabel\\nann\\tx\\t2\\nbob\\tx\\t1\\n")
    >>> grades = read_judgments(path)
    >>> grades.kind, list(grades.annotators), grades.grade.tolist()
    ('grade', ['ann', 'bob'], [2.0, 1.0])
    """
    given = {name: value for name, value in locals().items() if name != "path"}
    options, paths = read_options(**given), each_place(path)
    if not paths:
        raise JudgmentError("no file of judgments was named; give at least one")
    return read_files(paths, options)


def read_files(paths: Sequence[PathLike], options: ReadOptions) -> Judgments | Mixed:
    """Return the judgments in files, all read by the same options."""
    if isinstance(options.items, str | os.PathLike):
        options = replace(options, items=read_table(options.items))
    sources = [open_votes(one, options.encoding) for path in paths for one in files_like(path)]
    preflib = [source.suffix in SUFFIXES for source in sources]
    if all(preflib) and options.items is None:
        return _preflib(sources, options.kind)
    if any(preflib):
        raise JudgmentError("PrefLib files cannot be read together with tables or a list of items; read them apart")
    tables = [read_one(source, options) for source in sources]
    _expect(options, tuple(dict.fromkeys(table.kind for table in tables)))
    forms = dict.fromkeys(table.form for table in tables)
    parts = [build([table for table in tables if table.form == form], options) for form in forms]
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
    # whether left and right are an order of the file and not what annotators saw
    recorded: bool = False
    # how the columns were understood, where it is no export
    plain: Plain | None = None
    # what an importer made of the file, where it is one
    imported: exports.Imported | None = None

    @property
    def form(self) -> tuple[Any, ...]:
        """What must be the same in tables whose rows are put below each other."""
        levels = self.levels and tuple(self.levels)
        return self.kind, "loser" in self.frame.columns, self.nominal, levels, self.recorded


def source_name(source: Source, options: ReadOptions) -> str | None:
    """Return the tool whose export a file is, ``None`` for a plain table."""
    name = exports.detect(source) if options.source is None else options.source
    return None if name == "table" else name


def read_one(source: Source, options: ReadOptions) -> Table:
    """Return the rows of one file, by the importer of the tool that wrote it or as a plain table."""
    name = source_name(source, options)
    levels = options.levels
    if name is None:
        with blaming(source.name):
            plain = read_plain(source, options)
        for sentence in (plain.understood.sentence(), *plain.notes):
            say(f"{source.name}: {sentence}")
        levels = plain.levels if levels is None else levels
        recorded = options.swapped == NOT_SWAPPED
        return Table(source, plain.understood.kind, plain.frame, options.nominal, levels, recorded, plain=plain)
    for word, known in (("swapped", "order is known"), ("judge_version", "annotators are known")):
        if getattr(options, word) is not None:
            problem = f"{option(word)} applies to plain tables, but this is an export of {name}, whose {known}"
            raise ParameterError(f"{problem}; leave it out, or read the file with {option('source', 'table')}")
    with blaming(source.name):
        imported = in_any_encoding(source, lambda one: exports.read(one, name, options))
    kind = imported.kind
    if options.kind not in (None, kind):
        raise JudgmentError(f"{source.name} holds {kind}s, not {options.kind}s; leave {option('kind')} out")
    for sentence in imported.sentences():
        say(f"{source.name}: {sentence}", needed=bool(imported.dropped))
    if 2 * sum(imported.dropped.values()) > imported.n_read > 0:
        left_out = f"{source.name}: more than half of the file was left out; see which and why above"
        warnings.warn(left_out, DataWarning, stacklevel=4)
    levels = imported.levels if levels is None else levels
    nominal = imported.nominal or options.nominal
    return Table(source, kind, imported.frame, nominal, levels, imported.recorded, imported=imported)


def weighted_by_strength(judgments: Judgments | Mixed, weights: Sequence[float]) -> Judgments | Mixed:
    """Return the judgments with preferences of strength 1, 2, ... multiplied by these weights; ties keep theirs.

    They have no strength any more: what is a weight is not to count twice.
    """
    parts, n_graded = list(parts_of(judgments)), 0
    for place, part in enumerate(parts):
        if not isinstance(part, Preferences) or part.strength is None:
            continue
        n_graded += 1
        known = np.isin(part.strength, np.arange(len(weights) + 1))
        if not known.all():
            odd = part.strength[~known][0]
            problem = f"{option('strength_weights')} has {len(weights)} weights, and a preference has strength {odd:g}"
            raise ParameterError(f"{problem}; give one for each of 1, 2, ...")
        factor = np.concatenate([[1.0], np.asarray(weights, np.float64)])[part.strength.astype(np.int64)]
        parts[place] = replace(part, weight=part.row_weight * factor, strength=None)
    if not n_graded:
        problem = f"{option('strength_weights')} applies to graded preferences, but there are none"
        raise ParameterError(f"{problem}; leave it out")
    return parts[0] if len(parts) == 1 else Mixed(tuple(parts))


def _preflib(sources: list[Source], kind: str | None) -> Rankings:
    """Rankings of PrefLib files; each of several is a query of its own."""
    if kind not in (None, "ranking"):
        raise JudgmentError(f"{sources[0].name} is a PrefLib file, which holds rankings, not {kind}s; leave kind out")
    each = [read_preflib(source) for source in sources]
    for source, rankings in zip(sources, each, strict=True):
        say(f"{source.name}: read as rankings: {len(rankings)} orders of {rankings.n_items} items, counts as weights")
    if len(each) == 1:
        return each[0]
    names = [Path(source.name).name for source in sources]
    names = names if len(set(names)) == len(names) else [source.name for source in sources]
    say("each file is a query of its own, called by the file's name")
    rows, items = list[pl.DataFrame](), list[pl.DataFrame]()
    for name, rankings in zip(names, each, strict=True):
        weight = pl.Series(rankings.row_weight).gather(rankings.ranking)
        rows.append(rankings.frame().with_columns(query=pl.lit(name), weight=weight))
        items.append(rankings.items.frame().with_columns(query=pl.lit(name)))
    return Rankings.from_frame(pl.concat(rows, how="diagonal"), items=pl.concat(items))


def _expect(options: ReadOptions, kinds: Sequence[str]) -> None:
    """Refuse options about a kind that no file holds."""
    held = " and ".join(f"{kind}s" for kind in kinds)
    files = "the file holds" if len(kinds) == 1 else "the files hold"
    if "grade" not in kinds and (options.levels is not None or options.nominal):
        problem = f"{option('levels')} and {option('nominal')} apply to grades, but {files} {held}"
        raise ParameterError(f"{problem}; leave them out")
    asked = (
        ("control", bool(options.covariates), ["preference"]),
        ("winner_codes", options.winner_codes is not None, ["preference"]),
        ("duplicates", (options.duplicates or "keep") != "keep", ["grade", "preference"]),
    )
    for name, given, about in asked:
        if given and not set(about) & set(kinds):
            what = " and ".join(f"{kind}s" for kind in about)
            raise ParameterError(f"{option(name)} applies to {what}, but {files} {held}; leave it out")


def build(tables: list[Table], options: ReadOptions) -> Judgments:
    """Return the judgments of all rows; what is wrong is blamed on the file it stands in."""
    first = tables[0]
    shared: dict[str, Any] = {"invalid": options.invalid, "items": options.items}
    rule: dict[str, Any] = {"duplicates": options.duplicates or "keep"}

    def judgments_of(frame: pl.DataFrame) -> Judgments:
        """Judgments of the tables' kind from rows."""
        if first.kind == "grade":
            return Grades.from_frame(frame, levels=first.levels, nominal=first.nominal, **rule, **shared)
        if first.kind == "ranking":
            return Rankings.from_frame(frame, **shared)
        codes, covariates = options.winner_codes, options.covariates
        preferences = Preferences.from_frame(frame, winner_codes=codes, covariates=covariates, **rule, **shared)
        # left and right are an order of the file, where it says so
        return replace(preferences, recorded=np.ones(len(preferences), bool)) if first.recorded else preferences

    if len(tables) == 1:
        with blaming(first.source.name):
            judgments = judgments_of(first.frame)
            if first.plain is not None:
                check_repeats(first.source.name, judgments, first.plain, options)
            return judgments
    try:
        judgments = judgments_of(_stack_frames([table.frame for table in tables]))
        for table in tables:
            if table.plain is not None:
                # several files may repeat each other, which is no matter of columns
                check_repeats(table.source.name, judgments_of(table.frame), table.plain, options)
        return judgments
    except CrowdrankError:
        for table in tables:
            with blaming(table.source.name):
                judgments_of(table.frame)
        raise


def _stack_frames(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Rows of all files below each other; ids become text where one file has text."""
    words = {word for frame in frames for word in frame.columns}
    for place, frame in enumerate(frames):
        if "weight" in words and "weight" not in frame.columns:
            frames[place] = frame.with_columns(weight=pl.lit(1.0))
        if "ranking" in frame.columns:
            frames[place] = frames[place].with_columns(ranking=pl.format("{} of file {}", "ranking", pl.lit(place + 1)))
    differ = {w for w in words if len({frame.schema[w] for frame in frames if w in frame.columns}) > 1}
    stacked: list[pl.DataFrame] = []
    for frame in frames:
        ids = (*IDS, "winner") if "loser" in frame.columns else IDS
        # 7.0 as an id is 7
        texts = [id_series(cells) if cells.name in ids else cells for cells in frame if cells.name in differ]
        stacked.append(frame.with_columns(cells.cast(pl.String) for cells in texts))
    return pl.concat(stacked, how="diagonal")


# several judgments of the same thing, where a column that was not used tells them apart ------------------------------


# judgments of the same thing from which on there may be something that tells them apart
_SEVERAL = 1.5

_ONCE = 1.1
_MANY_ROWS = 20_000
"""Rows from which on judgments of some items are counted: of the 440 ms of 10 million preferences this saves 70."""
_SHOWN = 5
# a column with more values is a query rather than a criterion of which one is chosen
_MOST_CRITERIA = 12
_DIGIT = re.compile(r"\d")
_ASIDE = re.compile(
    r"(.*_)?(index|row|comment|note|text|duration|time|seconds|ms|rt|number)(_.*)?|column_\d+|unnamed.*"
)


def check_repeats(name: str, judgments: Judgments, plain: Plain, options: ReadOptions) -> None:
    """Stop where most things are judged several times by the same annotator, or by nobody, and a column says why."""
    if isinstance(judgments, Rankings):
        _check_ranks(name, plain)
        return
    if not len(judgments):
        return
    what, words = ("item", ["item"]) if "item" in plain.frame.columns else ("pair", ["left", "right"])
    keys = [word for word in ("query", *words, "annotator") if word in plain.frame.columns]
    named = judgments.n_annotators > 0
    if (named and options.duplicates is not None) or "judgment" in plain.frame.columns:
        return
    # how many judgments there are of each thing by each annotator, on average
    coded = [(judgments.annotator, judgments.n_annotators)] if named else []
    coded += [(getattr(judgments, word), judgments.n_items) for word in words if word in judgments.answers]
    n = len(judgments)
    if named and n > _MANY_ROWS:
        # the judgments of some items tell the same; bits that are 0 are found sooner than remainders
        some = np.flatnonzero(coded[1][0] & ((1 << (n // _MANY_ROWS).bit_length()) - 1) == 0)
        if len(some):
            n, coded = len(some), [(code[some], size) for code, size in coded]
    cells = n / max(n - count_repeats(coded) if len(coded) > 1 else int(judgments.judged_items.sum()), 1)
    apart = judgments.items.ids.n_unique() == judgments.n_items
    if not named and cells == 1.0 and judgments.kind == "grade" and apart:
        found = f"{name}: nothing to aggregate: each item has one grade and no annotator is named"
        say(f"{found}; is this a truth or a result?")
    graded = judgments.kind == "grade" and any(names_metric(column) is not False for column in plain.understood.ignored)
    if (cells < _SEVERAL or options.no_annotators) and not graded:
        return
    plain = plain.again() if plain.again is not None else plain
    facts = _unused_columns(plain)
    if named and cells >= _SEVERAL:
        _stop_split(name, plain, facts, keys)
    if graded:
        _stop_metrics(name, plain, facts, options)
    if named or cells < _SEVERAL or options.no_annotators:
        return
    splitting = _splitting(plain, facts, keys)
    each = f"each {what} has {cells:.3g} {judgments.kind}s and no annotator is named"
    if splitting:
        who = splitting[0].name
        values = list(dict.fromkeys(splitting[0].sample))
        few = 1 < len(values) <= _MOST_CRITERIA and not splitting[0].numbers and not all(map(_DIGIT.search, values))
        choice = f"; if it says what was judged: {option('where', {who: values[0]})}" if few else ""
        problem = f"{name}: {each}; if {who!r} names the annotator: {option('columns', {'annotator': who})}{choice}"
        raise JudgmentError(f"{problem}; if no column does: {option('no_annotators', True)}")
    say(f"{name}: {each}")


def _stop_metrics(name: str, plain: Plain, facts: list[ColumnFacts], options: ReadOptions) -> None:
    """Stop where grades of several metrics stand below each other, which an unused column tells apart."""
    for one in facts:
        known = names_metric(one.name)
        values = list(dict.fromkeys(one.sample)) if known is not False and not one.is_nested else []
        if not 1 < len(values) <= _MOST_CRITERIA or one.numbers or not one.has_repeats or one.cells is None:
            continue
        items = count_cells([plain.frame["item"]])
        # a name may be anything, but what is measured of most items by several names is no name of theirs
        if known is None and count_cells([plain.frame["item"], one.cells]) < _SEVERAL * items:
            continue
        # nor one of the annotator or the query
        others = [plain.frame[word] for word in ("annotator", "query") if word in plain.frame.columns]
        if key_of(one.name) == "name" and any(count_cells([ids, one.cells]) == count_cells([ids]) for ids in others):
            continue
        more = f" (or {either(values[1:_SHOWN])})" if len(values) > 1 else ""
        item = plain.understood.columns["item"]
        # in the rows of one metric each id stands once, and would not be taken for the item's
        again = "" if "item" in options.columns or is_surely_item(item) else f"{option('columns', {'item': item})} "
        ways = [f"{again}{option('where', {one.name: values[0]})}{more}"]
        if "query" not in plain.frame.columns:
            ways.append(f"a ranking for each: {option('columns', {'query': one.name})}")
        if known is None and "annotator" not in plain.frame.columns:
            ways.append(f"if it names the annotator: {option('columns', {'annotator': one.name})}")
        problem = f"{name}: {one.name!r} says what was graded"
        raise JudgmentError(f"{problem}; choose one: {'; '.join(ways)}{all_at_once(values)}")


def _check_ranks(name: str, plain: Plain) -> None:
    """Stop where rankings have one item each, or each rank several times and an unused column tells them apart."""
    groups = [plain.frame[word] for word in ("query", "annotator", "ranking") if word in plain.frame.columns]
    if "annotator" in plain.frame.columns and count_cells(groups) == len(plain.frame) > 1:
        who = f"if {plain.understood.columns['annotator']!r} does not say who ranked"
        remedy = f"{who}: {option('no_annotators', True)}"
        raise JudgmentError(f"{name}: each ranking has one item, which orders nothing; {remedy}")
    keys: list[str] = [word for word in ("query", "annotator", "ranking", "rank") if word in plain.frame.columns]
    if "rank" not in keys or len(plain.frame) / count_cells([plain.frame[word] for word in keys]) < _SEVERAL:
        return
    plain = plain.again() if plain.again is not None else plain
    splitting = _splitting(plain, _unused_columns(plain), keys)
    if splitting:
        column, row = splitting[0].name, _first_repeat(plain.frame, keys)
        problem = f"{name}: {counted(row['len'], 'item')} of one ranking have rank {row['rank']}"
        raise JudgmentError(f"{problem}; {column!r} distinguishes them: {option('columns', {'query': column})}")


def _first_repeat(frame: pl.DataFrame, keys: list[str]) -> dict[str, Any]:
    """The first of the keys that stand in several rows, and in how many."""
    return frame.group_by(keys, maintain_order=True).len().filter(pl.col("len") > 1).row(0, named=True)


def _unused_columns(plain: Plain) -> list[ColumnFacts]:
    """What each column holds that is not used, or what each short value in a column of objects is.

    Lists whose entries were read one by one have columns of their own.
    """
    facts, known = list[ColumnFacts](), plain.whole.columns
    for name in (name for name in plain.understood.ignored if name in known):
        cells = plain.whole[name]
        if not cells.dtype.is_nested():
            facts.append(ColumnFacts(name, cells))
        elif not any(column.startswith(f"{name}[]") for column in known):
            paths = [path for path in short_paths(name, cells) if "[]" not in path]
            facts += [ColumnFacts(path, at_path(cells, path[len(name) + 1 :].split("."))) for path in paths]
    return facts


def _splitting(plain: Plain, facts: list[ColumnFacts], keys: list[str]) -> list[ColumnFacts]:
    """The unused columns that distinguish judgments of the same thing, words before numbers."""
    n = len(plain.frame)
    key = [plain.frame[word] for word in keys]
    flat = [one for one in facts if not one.is_nested and not (is_gold(one.name) or _ASIDE.fullmatch(key_of(one.name)))]
    usable = [(one, one.cells) for one in flat if not one.times and one.has_repeats and one.cells is not None]
    columns = [one for one, cells in usable if n / count_cells([*key, cells]) < _ONCE]
    if not columns:
        # two may do what none does alone: a listener and a clip
        words = [(one, cells) for one, cells in usable if not one.numbers]
        pairs = itertools.combinations(words if len(words) > 1 else usable, 2)
        both = (pair for pair in pairs if n / count_cells([*key, *(cells for _, cells in pair)]) < _ONCE)
        columns = [one for one, _ in next(both, ())]
    return [one for one in columns if not one.numbers] or columns


def _stop_split(name: str, plain: Plain, facts: list[ColumnFacts], keys: list[str]) -> None:
    """Stop where a column distinguishes the judgments of one annotator."""
    splitting = _splitting(plain, facts, keys)
    if not splitting:
        return
    column, row = splitting[0].name, _first_repeat(plain.frame, keys)
    who = f"{plain.understood.columns['annotator']} {short(row['annotator'])}"
    things = [short(row[word]) for word in ("item", "left", "right") if word in row]
    what = f"{'grades' if 'item' in row else 'compares'} {' and '.join(things)}"
    of = f" of query {short(row['query'])}" if "query" in row else ""
    values = [value for value in dict.fromkeys(splitting[0].sample) if not is_personal(column, value)]
    more = f" (or {either(values[1:_SHOWN])})" if len(values) > 1 else ""
    last = re.split(r"[.\]]+", column)[-1]
    item = f"{option('columns', {'item': column})}, or " if "item" in row and is_surely_item(last) else ""
    ways = [f"{option('where', {column: values[0] if values else ...})}{more}"]
    if "query" not in row:  # where there is one, another column in its place would lose it
        ways.append(option("columns", {"query": column}))
    at_once = all_at_once(values) if 1 < len(values) <= _MOST_CRITERIA and names_metric(column) else ""
    if len(values) > _MOST_CRITERIA or name_points("query", last) or name_points("item", last):
        ways.reverse()
    problem = f"{name}: {who} {what}{of} {counted(row['len'], 'time')}; {column!r} distinguishes them: {item}"
    ways.append(f"{option('duplicates', 'keep')} if they are repeats{at_once}")
    raise JudgmentError(f"{problem}{', or '.join(ways)}")


# tables too long to be held: some rows at a time, understood by the first of them ------------------------------------


# bytes of a text file from which on it is read some rows at a time
# threshold (equal): bytes of a text file that pack reads as a whole
LONG_BYTES = 64 << 20

# rows of a Parquet file from which on it is read some rows at a time
# threshold (equal): rows of a Parquet file that pack reads as a whole
LONG_ROWS = 2_000_000

# rows of a long table that are held at a time
ROWS_AT_ONCE = 1_000_000

# bytes in the cells of these rows, from which on fewer of them are held
BYTES_AT_ONCE = 24 << 20

# batches that these rows are read in; polars reads a few of them ahead
_BATCHES_AT_ONCE = 10

# bytes of a text file that one core of polars reads at a time
_TEXT_BYTES_AT_ONCE = 1 << 20

# rows of a long table that say what its columns are
_HEAD = 100_000

_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


class Rows(NamedTuple):
    """Some rows of a file under the house's words, the rows of the file before them, and its number, from 0."""

    table: Table
    first: int
    file: int


def table_chunks(paths: Sequence[PathLike], options: ReadOptions, rows: int = ROWS_AT_ONCE) -> Iterator[Rows]:
    """Yield the rows of files, those of long plain tables (Parquet, CSV) some at a time.

    Exports of other tools, and tables that must be turned as a whole, are held as a whole.
    """
    for number, path in enumerate(one for given in paths for one in files_like(given)):
        source = open_votes(path, options.encoding)
        if source.suffix in SUFFIXES:
            raise JudgmentError(f"{source.name} is a PrefLib file; write it as a table of rankings first")
        chunks = None if _must_be_whole(source, options) else _long_chunks(source, options, number)
        if chunks is not None:
            with blaming(source.name):
                yield from chunks(rows)
            continue
        table = read_one(source, options)
        for start in range(0, len(table.frame), rows):
            yield Rows(table._replace(frame=table.frame.slice(start, rows), plain=None), start, number)


def _must_be_whole(source: Source, options: ReadOptions) -> bool:
    """Whether a file must be read as a whole, or may be as it is short."""
    names = ("wide", "strength", "where", "add_columns", "answer", "swapped", "judge_version", "skip_rows")
    turned = options.missing is not None or any(getattr(options, name) for name in names)
    form = table_format(source)
    if turned or form not in ("parquet", "csv"):
        return True
    if source.table is None:
        try:
            # a short text, or a table of few rows
            n_rows = 0 if form == "csv" else source.scan().select(pl.len()).collect().item()
        except (pl.exceptions.PolarsError, OSError):
            return True
        is_short = len(source.data) < LONG_BYTES if form == "csv" else n_rows < LONG_ROWS
        if is_short or isinstance(source.place, bytes):
            return True
    return source_name(source, options) is not None


def _long_chunks(source: Source, options: ReadOptions, number: int) -> Callable[[int], Iterator[Rows]] | None:
    """What yields the rows of a long plain table, so many at a time, its columns understood by the first of them.

    ``None`` where all rows are needed to understand the table.
    """
    is_text = table_format(source) == "csv"
    text = scan_delimited(source, names=options.header) if is_text else None
    if is_text and text is None:
        return None
    try:
        with without_panics(), blaming(source.name):
            scan = source.scan() if text is None else text.frame
            head = scan.head(_HEAD).collect()
            plain = plain_rows(head, {}, options, source)
    except _UNREADABLE as error:
        if source.table is not None:
            raise source.unreadable(error) from None
        return None
    understood = plain.understood
    if not set(understood.columns.values()) <= set(head.columns):
        return None
    for sentence in (understood.sentence(), *plain.notes):
        say(f"{source.name}: {sentence}")
    covariates = covariate_columns(head, options.covariates)
    columns = dict.fromkeys([*understood.columns.values(), *covariates, *([text.last] if text else [])])
    if plain.levels is not None:
        # these are turned round already
        options = replace(options, small_is_good=None)
    options = replace(options, levels=options.levels if options.levels is not None else plain.levels)

    def complain() -> None:
        """Say what is wrong with a file that polars cannot read: the careful reader names the row."""
        read_one(source, options)
        raise JudgmentError("the file cannot be read some rows at a time; check what wrote it")

    def chunks(rows: int) -> Iterator[Rows]:
        if text is not None:
            # polars cuts a long text into longer pieces, and has no parameter for it
            os.environ.setdefault("POLARS_CSV_CHUNK_SIZE", f"{_TEXT_BYTES_AT_ONCE}")
        first, doubtful, size = 0, text, max(rows // _BATCHES_AT_ONCE, 1)
        batches = scan.select(list(columns)).collect_batches(chunk_size=size, maintain_order=True)
        while True:
            # so many of the next rows, fewer where their cells are long
            held, n_rows, n_bytes = list[pl.DataFrame](), 0, 0
            try:
                while n_rows < rows and n_bytes < BYTES_AT_ONCE and (part := next(batches, None)) is not None:
                    held.append(part)
                    n_rows, n_bytes = n_rows + len(part), n_bytes + int(part.estimated_size())
            except _UNREADABLE as error:
                if source.table is not None:
                    raise source.unreadable(error) from None
                complain()
            if not held:
                return
            batch = pl.concat(held)
            if doubtful is not None and batch[doubtful.last].null_count():
                if doubtful.is_ragged():
                    complain()
                doubtful = None
            frame = with_house_words(batch, understood, options, source)[0]
            frame = frame.filter(~pl.all_horizontal(pl.all().is_null())) if text is not None else frame
            table = Table(source, understood.kind, frame, options.nominal, options.levels)
            before, first = first, first + len(batch)
            # the rows go before the next ones are read
            del batch, frame, held
            yield Rows(table, before, number)
            del table

    return chunks
