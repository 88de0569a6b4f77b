"""Several judgments of the same thing where one was to be expected: a column that was not used tells them apart."""

from __future__ import annotations

import itertools
import re

import numpy as np
import polars as pl

from ..data.column_facts import ColumnFacts, count_cells
from ..data.column_names import is_gold, is_surely_item, key_of, name_points, names_metric
from ..data.column_questions import is_personal, short_paths
from ..data.intake import count_repeats, short
from ..data.judgments import Judgments, Rankings
from ..errors import JudgmentError
from ..wording import counted, either, option
from .notices import say
from .paths import at_path
from .plain_tables import Plain
from .read_options import ReadOptions

_SEVERAL = 1.5
"""Judgments of the same thing from which on there may be something that tells them apart."""

_ONCE = 1.1
_MANY_ROWS = 20_000
_SHOWN = 5
_MOST_CRITERIA = 12
"""A column with more values is a query rather than a criterion of which one is chosen."""
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
    words = ("item",) if "item" in plain.frame.columns else ("left", "right")
    keys = [word for word in ("query", *words, "annotator") if word in plain.frame.columns]
    named = judgments.n_annotators > 0
    if (named and options.duplicates is not None) or "judgment" in plain.frame.columns:
        return
    cells = judgments_per_cell(judgments)
    apart = judgments.items.ids.n_unique() == judgments.n_items
    if not named and cells == 1.0 and judgments.kind == "grade" and apart:
        say(
            f"{name}: nothing to aggregate: each item has one grade and no annotator is named; is this a truth or a "
            "result?"
        )
    graded = judgments.kind == "grade" and any(names_metric(column) is not False for column in plain.understood.ignored)
    if (cells < _SEVERAL or options.no_annotators) and not graded:
        return
    plain = plain.again() if plain.again is not None else plain
    whole = plain.whole.columns
    # entries of lists that were read one by one have columns of their own
    rest = [
        column for column in plain.understood.ignored
        if column in whole and not any(name.startswith(f"{column}[]") for name in whole)
    ]  # fmt: skip
    facts = [one for column in rest for one in _facts(column, plain.whole[column])]
    if named and cells >= _SEVERAL:
        _stop_split(name, plain, facts, keys)
    if graded:
        _stop_metrics(name, plain, facts, options)
    if named or cells < _SEVERAL or options.no_annotators:
        return
    splitting = _splitting(plain, facts, keys)
    what = "item" if "item" in keys else "pair"
    each = f"each {what} has {cells:.3g} {judgments.kind}s and no annotator is named"
    if splitting:
        who = splitting[0].name
        values = list(dict.fromkeys(splitting[0].sample))
        few = 1 < len(values) <= _MOST_CRITERIA and not splitting[0].numbers and not all(map(_DIGIT.search, values))
        choice = f"; if it says what was judged: {option('where', {who: values[0]})}" if few else ""
        raise JudgmentError(
            f"{name}: {each}; if {who!r} names the annotator: {option('columns', {'annotator': who})}{choice}; if no "
            f"column does: {option('no_annotators', True)}"
        )
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
        raise JudgmentError(f"{name}: {one.name!r} says what was graded; choose one: {'; '.join(ways)}")


def _check_ranks(name: str, plain: Plain) -> None:
    """Stop where rankings have one item each, or each rank several times and an unused column tells them apart."""
    groups = [plain.frame[word] for word in ("query", "annotator", "ranking") if word in plain.frame.columns]
    if "annotator" in plain.frame.columns and count_cells(groups) == len(plain.frame) > 1:
        raise JudgmentError(
            f"{name}: each ranking has one item, which orders nothing; if {plain.understood.columns['annotator']!r} "
            f"does not say who ranked: {option('no_annotators', True)}"
        )
    words = ("query", "annotator", "ranking", "rank")
    keys: list[str] = [word for word in words if word in plain.frame.columns]
    if "rank" not in keys or len(plain.frame) / count_cells([plain.frame[word] for word in keys]) < _SEVERAL:
        return
    plain = plain.again() if plain.again is not None else plain
    rest = [column for column in plain.understood.ignored if column in plain.whole.columns]
    splitting = _splitting(plain, [one for column in rest for one in _facts(column, plain.whole[column])], keys)
    if splitting:
        column = splitting[0].name
        row = plain.frame.group_by(keys, maintain_order=True).len().filter(pl.col("len") > 1).row(0, named=True)
        raise JudgmentError(
            f"{name}: {counted(row['len'], 'item')} of one ranking have rank {row['rank']}; {column!r} distinguishes "
            f"them: {option('columns', {'query': column})}"
        )


def judgments_per_cell(judgments: Judgments) -> float:
    """Return how many judgments there are of each thing by each annotator, on average."""
    n, words = len(judgments), [word for word in ("item", "left", "right") if word in judgments.answers]
    keys = [(getattr(judgments, word), judgments.n_items) for word in words]
    if judgments.n_annotators:
        keys.insert(0, (judgments.annotator, judgments.n_annotators))
        # the judgments of some items tell the same; bits that are 0 are found sooner than remainders
        some = np.flatnonzero(keys[1][0] & ((1 << (n // _MANY_ROWS).bit_length()) - 1) == 0)
        if n > _MANY_ROWS and len(some):
            n, keys = len(some), [(code[some], size) for code, size in keys]
    elif len(keys) == 1:
        return n / max(int(judgments.judged_items.sum()), 1)
    return n / max(n - count_repeats(keys), 1)


def _facts(name: str, cells: pl.Series) -> list[ColumnFacts]:
    """What a column holds, or what each short value in a column of objects is."""
    whole = ColumnFacts(name, cells)
    if not whole.is_nested:
        return [whole]
    paths = [path for path in short_paths(name, cells) if "[]" not in path]
    return [ColumnFacts(path, at_path(cells, path[len(name) + 1 :].split("."))) for path in paths]


def _splitting(plain: Plain, facts: list[ColumnFacts], keys: list[str]) -> list[ColumnFacts]:
    """The unused columns that distinguish judgments of the same thing, words before numbers."""
    n = len(plain.frame)
    key = [plain.frame[word] for word in keys]
    usable = [
        (one, one.cells) for one in facts
        if not one.is_nested and not one.times and one.has_repeats and not is_gold(one.name) and one.cells is not None
        and not _ASIDE.fullmatch(key_of(one.name))
    ]  # fmt: skip
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
    column = splitting[0].name
    counts = plain.frame.group_by(keys, maintain_order=True).len()
    row = counts.filter(pl.col("len") > 1).row(0, named=True)
    who = f"{plain.understood.columns['annotator']} {short(row['annotator'])}"
    what = (
        f"grades {short(row['item'])}" if "item" in row else f"compares {short(row['left'])} and {short(row['right'])}"
    )
    of = f" of query {short(row['query'])}" if "query" in row else ""
    values = [value for value in dict.fromkeys(splitting[0].sample) if not is_personal(column, value)]
    more = f" (or {either(values[1:_SHOWN])})" if len(values) > 1 else ""
    last = re.split(r"[.\]]+", column)[-1]
    item = f"{option('columns', {'item': column})}, or " if "item" in row and is_surely_item(last) else ""
    ways = [f"{option('where', {column: values[0] if values else ...})}{more}", option("columns", {"query": column})]
    if len(values) > _MOST_CRITERIA or name_points("query", last) or name_points("item", last):
        ways.reverse()
    raise JudgmentError(
        f"{name}: {who} {what}{of} {counted(row['len'], 'time')}; {column!r} distinguishes them: {item}{ways[0]}, or "
        f"{ways[1]}, or {option('duplicates', 'keep')} if they are repeats"
    )
