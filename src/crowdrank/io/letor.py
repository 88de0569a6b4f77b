"""LETOR and svmlight files: one line per item with its grade, query, numbered features and, as a comment, its id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from ..data.features import Features
from ..data.files import PathLike
from ..errors import JudgmentError, ParameterError
from ..protocols import Floats
from .output import write_text
from .sources import Source, blaming, open_source, plain_line_ends, show_value

# threshold (equal): bytes of LETOR parsed at once
_BYTES_AT_ONCE = 1 << 25
# threshold (refused): cells of a matrix of LETOR features
_MOST_CELLS = 1 << 31
_SHAPE = "a line should look like '2 qid:10 1:0.5 2:0 #docid = D7'"
_FIRST = re.compile(rb"\s*[-+.\deE]+\s+(qid:\S+(\s|$)|\d+:\S)")
_MISSING = ("null", "nan", "na")


def read_letor(path: PathLike | Source, *, groups: PathLike | None = None) -> Features:
    """Return the features of a LETOR or svmlight file, with its grades.

    The item's id is what the comment says (``#docid = D`` or ``# D``), otherwise its running number within the query.
    The word ``NULL``, as the LETOR aggregation sets have it, becomes NaN. A feature that a line leaves out is 0, but
    NaN in a file with ``NULL``.

    Parameters
    ----------
    path
        Name of the file, gzipped or not; ``-`` reads standard input.
    groups
        File with the number of lines of each query, as LightGBM has it, for files without ``qid:``; ``None`` looks for
        the file's own name with ``.query`` behind it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 qid:10 1:0.5 2:7 #docid = D7\\n0 qid:10 2:NULL #docid = D9\\n")
    >>> features = read_letor(path)
    >>> features.matrix.tolist(), features.grade.tolist()
    ([[0.5, 7.0], [nan, nan]], [2.0, 0.0])
    """
    source = open_source(path)
    parts = list(_blocks(source))
    lines = pl.concat([part for part, _ in parts]) if parts else pl.DataFrame()
    if not len(lines):
        raise JudgmentError(f"{source.name} holds no rows; {_SHAPE}")
    query = _queries(source, groups_beside(path) if groups is None else groups, lines)
    item = lines["item"]
    if item.null_count():
        number = pl.int_range(1, pl.len() + 1).cast(pl.String)
        keyed = pl.DataFrame({"item": item, "query": query})
        item = item.fill_null(keyed.select(number if query is None else number.over("query")).to_series())
    pairs = [pair for _, pair in parts]
    highest = max(int(pair["feature"].to_numpy().max(initial=-1)) for pair in pairs)
    lowest = min(int(pair["feature"].to_numpy().min(initial=1)) for pair in pairs)
    width = max(highest - lowest + 1, 0)
    if len(lines) * width > _MOST_CELLS:
        own, pair = next(one for one in parts if highest in one[1]["feature"])
        line = own["number"][pair["row"][int(pair["feature"].arg_max() or 0)]]
        too_many = f"has feature {highest}, too many for a matrix of {len(lines)} rows"
        raise source.broken_line(line, too_many, "renumber the features")
    absent = float("nan") if any(pair["value"].is_nan().any() for pair in pairs) else 0.0
    matrix, start = np.full((len(lines), width), absent), 0
    for own, pair in parts:
        matrix[start + pair["row"].to_numpy(), pair["feature"].to_numpy() - lowest] = pair["value"].to_numpy()
        start += len(own)
    names = tuple(map(str, range(lowest, highest + 1)))
    with blaming(source.name):
        return Features.from_arrays(query, item, matrix, names=names, grade=lines["grade"].to_numpy())


def write_letor(features: Features, path: PathLike | None) -> None:
    """Write features as a LETOR file that :func:`read_letor` reads back the same; ``None`` or ``-`` writes to stdout.

    NaN is written as ``NULL``. Features are numbered from 1, or from 0 where their names are, and a missing grade is
    written as 0.
    """
    items = features.items
    for what, ids in (("query", items.queries.ids), ("item", items.ids)):
        text = ids.cast(pl.String)
        bad = text.filter(text.str.contains(r"[\s#]"))
        if len(bad):
            problem = f"{what} {show_value(bad[0])} has white space or '#' in its id, which LETOR cannot hold"
            raise ParameterError(f"{problem}; rename it")
    matrix = features.matrix.astype(np.float64)
    if np.isinf(matrix).any():
        item = show_value(items.ids[int(np.argmax(np.isinf(matrix).any(axis=1)))])
        raise ParameterError(f"a feature of item {item} is infinite, which LETOR cannot hold; cap it")
    width = matrix.shape[1]
    first = 0 if features.names == tuple(str(number) for number in range(width)) else 1
    columns = {str(first + place): pl.Series(cells).fill_nan(None) for place, cells in enumerate(matrix.T)}
    values = {name: cells.cast(pl.String).fill_null("NULL") for name, cells in columns.items()}
    grade = np.zeros(len(items)) if features.grade is None else features.grade
    frame = pl.DataFrame({**values, "grade": grade, "query": items.query_ids(), "item": items.ids})
    query = pl.lit("") if items.single else pl.format(" qid:{}", "query")
    cells = [pl.format(f" {name}:{{}}", name) for name in values]
    line = pl.concat_str(pl.col("grade").cast(pl.String), query, *cells, pl.format(" #docid = {}\n", "item"))
    write_text("".join(frame.select(line).to_series().to_list()), path)


def write_training(features: Features, weight: Floats | None, path: PathLike) -> list[str]:
    """Write labelled features as LETOR lines and, beside them, weights and sizes of queries as LightGBM reads them.

    Return the names of the files: ``FILE``, ``FILE.query`` and, where there are weights, ``FILE.weight``.
    """
    write_letor(features, path)
    sizes = np.diff(features.items.offsets)
    beside = {".query": sizes[sizes > 0].tolist()}
    if weight is not None:
        beside[".weight"] = [f"{value:.6g}" for value in weight]
    for ending, values in beside.items():
        write_text("".join(f"{value}\n" for value in values), f"{path}{ending}")
    return [str(path), *(f"{path}{ending}" for ending in beside)]


def _blocks(source: Source) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """The file in pieces small enough to be taken apart all at once."""
    if source.data.find(b"\0") >= 0:
        raise source.nul_byte()
    for start, line, data in source.blocks(_BYTES_AT_ONCE):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise source.not_utf8(start + error.start) from None
        yield _take_apart(source, pl.Series("line", plain_line_ends(text).split("\n")), line)


def _take_apart(source: Source, lines: pl.Series, first_line: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Number, grade, query and item of some lines, null where none is said; and row, feature and value of each pair."""
    halves = pl.col("line").str.strip_chars().str.splitn("#", 2).struct.rename_fields(["body", "comment"])
    parts = pl.DataFrame({"line": lines}).with_row_index("number", offset=first_line)
    parts = parts.with_columns(halves).unnest("line")
    parts = parts.with_columns(pl.col("body").str.strip_chars()).filter(pl.col("body") != "")
    line, body = parts["number"], parts["body"]
    if body.str.contains(r"[\t ]{2}|\t").any():
        body = body.str.replace_all(r"\s+", " ")
    tokens = body.str.split(" ")
    grade = tokens.list.first().cast(pl.Float64, strict=False)
    finite = grade.is_finite().fill_null(False)
    if not finite.all():
        bad = int((~finite).arg_max() or 0)
        raise source.broken_line(line[bad], f"starts with {show_value(tokens[bad][0])} where the grade belongs", _SHAPE)
    second = tokens.list.get(1, null_on_oob=True)
    query = second.str.strip_prefix("qid:").set(~second.str.starts_with("qid:").fill_null(False), None)
    # one row for each feature given on each line
    table = pl.DataFrame({"tokens": tokens, "skip": query.is_not_null().cast(pl.Int64) + 1}).with_row_index("row")
    features = table.select(pl.col("row").cast(pl.Int32), pl.col("tokens").list.slice(pl.col("skip")).alias("token"))
    features = features.filter(pl.col("token").list.len() > 0).explode("token")
    halves = pl.col("token").str.splitn(":", 2).struct.rename_fields(["feature", "value"])
    pairs = features.with_columns(halves.alias("pair")).unnest("pair")
    comment = parts["comment"]
    named = comment.str.extract(r"(?i)docid\s*[=:]\s*(\S+)")
    item = named.fill_null(comment.str.strip_chars().str.extract(r"^#*\s*(\S+)"))
    # numbers of features, and values, NaN where the file says NULL
    feature = pairs["feature"].cast(pl.Int32, strict=False)
    value = pairs["value"].cast(pl.Float64, strict=False)
    failed = value.is_null() | ~value.is_finite().fill_null(False)
    if failed.any():
        missing = pairs["value"].filter(failed).str.to_lowercase().is_in(_MISSING).fill_null(False)
        value = value.set(failed, float("nan"))
        failed = failed.scatter(failed.arg_true(), ~missing)
    wrong = feature.is_null() | (feature < 0).fill_null(True) | failed
    if wrong.any():
        first = int(wrong.arg_max() or 0)
        token = show_value(pairs["token"][first])
        raise source.broken_line(line[pairs["row"][first]], f"has {token} where feature:value was expected", _SHAPE)
    row, number = pairs["row"].to_numpy(), feature.to_numpy()
    if (np.diff(number)[np.diff(row) == 0] <= 0).any():
        order = np.lexsort((number, row))
        twice = (np.diff(row[order]) == 0) & (np.diff(number[order]) == 0)
        if twice.any():
            first = int(order[int(np.argmax(twice))])
            raise source.broken_line(line[int(row[first])], f"has feature {number[first]} twice", _SHAPE)
    kept = pl.DataFrame({"number": line, "grade": grade, "query": query, "item": item})
    return kept, pl.DataFrame({"row": pairs["row"], "feature": feature, "value": value})


def looks_like_letor(source: Source) -> bool:
    """Return whether the first line that is no comment has a grade and numbered features."""
    start = source.data[source.start : source.start + 65536].lstrip()
    lines = (line for line in start.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#"))
    return _FIRST.match(next(lines, b"")) is not None


def _queries(source: Source, groups: PathLike | None, lines: pl.DataFrame) -> pl.Series | None:
    """Query id of each line, from the lines or from a file of group sizes; ``None`` where neither says."""
    query = lines["query"]
    if query.null_count() == 0:
        return query
    if query.null_count() < len(query):
        line = lines["number"][int(query.is_null().arg_max() or 0)]
        raise source.broken_line(line, "has no qid: while other lines have one", _SHAPE)
    if groups is None:
        return None
    listed = open_source(groups)
    sizes: list[int] = []
    for number, text in enumerate(listed.text().split("\n"), 1):
        if text.strip() and (not text.strip().isdecimal() or int(text) < 1):
            counts = "each line should count the lines of one query"
            raise JudgmentError(f"{listed.name}: line {number} holds {show_value(text)}; {counts}")
        sizes += [int(text)] if text.strip() else []
    if sum(sizes) != len(query):
        problem = f"{listed.name} counts {sum(sizes)} lines where {source.name} has {len(query)}"
        raise JudgmentError(f"{problem}; give the file of groups that belongs to it")
    return pl.Series(np.repeat(np.arange(1, len(sizes) + 1), sizes)).cast(pl.String)


def groups_beside(path: PathLike | Source) -> Path | None:
    """Return the file of group sizes that lies next to a svmlight file, or ``None``."""
    where = path.path if isinstance(path, Source) else path
    if where is None or where == "-":
        return None
    plain = str(where).removesuffix(".gz")
    candidates = [Path(f"{plain}{suffix}") for suffix in (".query", ".group", ".query.gz")]
    return next((candidate for candidate in candidates if candidate.is_file()), None)
