"""A consensus as JSON, Parquet or CSV, and back; command line and web share the JSON form. Saved rankers read back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from ..data.column_names import quote_names, understand_items
from ..data.consensus import Consensus, Diagnostics, Quality, Trace
from ..data.files import PathLike, plain
from ..data.index import Index, Items, id_series, plain_cells
from ..errors import JudgmentError, ParameterError, UnknownNameError
from ..protocols import Counts, Floats
from ..registry import FITTED, blank_ranker
from .output import format_for, write_parquet, write_table, write_text, write_trec, write_with
from .sources import Source, blaming, open_source, without_panics
from .tables import read_document, read_source, table_format

if TYPE_CHECKING:
    from ..rankers.estimator import Ranker
    from ..rankers.saving import Saved


FORMAT = "crowdrank.consensus/1"
_METADATA = "crowdrank"
_FLOATS = ("score", "confidence", "std_error")
# what a file of ours that was changed or damaged may lead to
_BROKEN = (
    LookupError, TypeError, ValueError, AttributeError, AssertionError, ArithmeticError, pl.exceptions.PolarsError
)  # fmt: skip


def to_json(
    consensus: Consensus,
    *,
    replicates: bool = False,
    covariance: bool = False,
    quality: bool = True,
    level: float | None = None,
    findings: Sequence[Mapping[str, Any]] | None = None,
    ratings: pl.DataFrame | None = None,
) -> dict[str, Any]:
    """Return a consensus as plain values that strict JSON can hold.

    ``items`` lists the rows of ``consensus.frame()``, best first; ``probabilities``, ``covariance`` and ``replicates``
    follow the same order. NaN is null, and infinity the text ``"inf"``.

    Parameters
    ----------
    consensus
        What a method found.
    replicates, covariance
        Whether to put these in, which are large.
    quality
        Whether to put in the quality of the annotators and what is odd about them, which may have to be computed first.
    level
        Level of the intervals of score and rank to put in; ``None`` for none.
    findings
        What there is to say, as plain values, to put in.
    ratings
        What ``consensus.rating()`` gave, to put beside the items.

    Examples
    --------
    >>> items = Items(Index(pl.Series([""])), np.zeros(2, np.int32), pl.Series(["x", "y"]))
    >>> document = to_json(Consensus(items=items, scores=np.array([0.0, 1.5]), method="mean_grade"))
    >>> document["items"]
    [{'item': 'y', 'score': 1.5, 'rank': 1}, {'item': 'x', 'score': 0.0, 'rank': 2}]
    >>> from_json(document).order()
    ['y', 'x']
    """
    best = consensus._best_first()
    document = _header(consensus, quality)
    if findings is not None:
        document["findings"] = [encode_params(one) for one in findings]
    rows = consensus_table(consensus, level, ratings).iter_rows(named=True)
    document["items"] = [{name: _cell(value) for name, value in row.items()} for row in rows]
    if consensus.probabilities is not None:
        document["probabilities"] = encode_array(consensus.probabilities[best])
    if covariance and consensus.covariance is not None:
        blocks = _reorder(consensus.covariance, consensus.items, best)
        document["covariance"] = [None if block is None else encode_array(block) for block in blocks]
    if replicates and consensus.replicates is not None:
        document["replicates"] = encode_array(consensus.replicates[:, best])
    return document


def from_json(document: Mapping[str, Any]) -> Consensus:
    """Return the consensus that :func:`to_json` made plain values of."""
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        problem = f"this is not a consensus in JSON: its format should be {FORMAT!r}"
        raise JudgmentError(f"{problem}; write it with format='json'")
    try:
        rows, covariance = document["items"], document.get("covariance")
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
        columns |= {name: decode_array(columns[name], "float64") for name in _FLOATS if name in columns}
        blocks = covariance and [None if one is None else decode_array(one, "float64") for one in covariance]
        shapes = {"probabilities": (np.float64, (len(rows), -1)), "replicates": (np.float32, (-1, len(rows)))}
        given = [name for name in shapes if document.get(name)]
        arrays = {name: decode_array(document[name], shapes[name][0]).reshape(shapes[name][1]) for name in given}
        return _rebuild(document, pl.DataFrame(columns), blocks, **arrays)
    except JudgmentError:
        raise
    except _BROKEN:
        raise JudgmentError("this JSON file of a consensus is incomplete or damaged; write it again") from None


def write_consensus(
    consensus: Consensus,
    path: PathLike | None = None,
    format: str | None = None,
    *,
    quality: bool = True,
    level: float | None = None,
    findings: Sequence[Mapping[str, Any]] | None = None,
    ratings: pl.DataFrame | None = None,
    digits: int | None = None,
) -> None:
    """Write a consensus that :func:`read_consensus` reads back.

    Parameters
    ----------
    consensus
        What a method found.
    path
        Name of the file; ``None`` or ``-`` writes to standard output.
    format
        ``"csv"`` (the table only), ``"json"`` (all but replicates and covariance) or ``"parquet"`` (everything), or
        for evaluation tools ``"run"`` (scores) and ``"qrels"`` (grades); ``None`` tells it from the name and takes CSV
        where that says nothing.
    quality
        Whether JSON and Parquet hold the quality of the annotators, and what is odd about them, too.
    level
        Level of the intervals of score and rank to write as lower, upper, rank_lower and rank_upper.
    findings
        What there is to say, as plain values, which JSON holds too.
    ratings
        What ``consensus.rating()`` gave, to write as rating, rating_lower, rating_upper and tier.
    digits
        Significant digits in CSV and other text, 6 by default; ranks are those of the exact scores.
    """
    chosen = format_for(path, format)
    if chosen == "json":
        document = to_json(consensus, quality=quality, level=level, findings=findings, ratings=ratings)
        write_text(json_text(document), path)
    elif chosen == "parquet":
        # probabilities, covariance and replicates are a list in each row
        best, lists = consensus._best_first(), dict[str, pl.Series]()
        if consensus.probabilities is not None:
            lists["probabilities"] = _lists(consensus.probabilities[best])
        if consensus.covariance is not None:
            rows: list[Any] = []
            blocks = _reorder(consensus.covariance, consensus.items, best)
            for block, size in zip(blocks, np.diff(consensus.items.offsets), strict=True):
                rows += [None] * int(size) if block is None else block.tolist()
            lists["covariance"] = pl.Series(rows, dtype=pl.List(pl.Float64))
        if consensus.replicates is not None:
            lists["replicates"] = _lists(np.ascontiguousarray(consensus.replicates.T[best]))
        frame = consensus_table(consensus, level, ratings).with_columns(**lists)
        metadata = {_METADATA: _dumps(_header(consensus, quality))}
        write_with(lambda handle: write_parquet(frame, handle, metadata), path)
    elif chosen in ("qrels", "run"):
        write_trec(consensus_table(consensus), path, chosen, consensus.method)
    else:
        write_table(consensus_table(consensus, level, ratings), path, chosen, digits=digits)


def json_text(document: Mapping[str, Any]) -> str:
    """Return strict JSON text with one line for each key and each row of its lists of objects."""
    parts = []
    for key, value in document.items():
        rows = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
        inner = ",\n  ".join(_dumps(row) for row in value) if rows else ""
        parts.append(f" {_dumps(key)}: " + (f"[\n  {inner}]" if rows else _dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read_consensus(path: PathLike | Source) -> Consensus:
    """Return the consensus in a file: JSON or Parquet as written here, or any table with item and score (or rank).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "ranks.csv")
    >>> _ = path.write_text("item,score\\nx,2.5\\ny,1.0\\n")
    >>> read_consensus(path).order()
    ['x', 'y']
    """
    source = open_source(path)
    with blaming(source.name):
        consensus = written_consensus(source)
        return _from_table(read_source(source)[0]) if consensus is None else consensus


def written_consensus(source: Source) -> Consensus | None:
    """Return the consensus in an opened file that we wrote, or ``None`` where it is some other file."""
    start = source.data[source.start : source.start + 256].lstrip()
    if start[:1] == b"{" and f'"format": "{FORMAT}"'.encode() in start:
        return from_json(read_document(source))
    if table_format(source) == "parquet":
        try:
            with without_panics():
                header = json.loads(pl.read_parquet_metadata(source.place)[_METADATA])
        except (*_BROKEN, pl.exceptions.PanicException, OSError, RecursionError):
            return None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            return None
        frame = read_source(source)[0]
        try:
            held = [name for name in ("probabilities", "replicates") if name in frame.columns]
            arrays = {name: frame[name].explode().to_numpy().reshape(frame.height, -1) for name in held}
            if "replicates" in arrays:
                arrays["replicates"] = arrays["replicates"].T
            covariance: list[Floats | None] | None = None
            if "covariance" in frame.columns:
                # a block for each query, those without items included
                covariance, parts = [], {("",): frame}
                if "query" in frame.columns:
                    parts = frame.partition_by("query", as_dict=True)
                for query in header["queries"] if header["queries"] is not None else [""]:
                    rows = parts[query,]["covariance"].to_list() if (query,) in parts else []
                    missing = bool(rows) and rows[0] is None
                    covariance.append(None if missing else np.array(rows, np.float64).reshape(len(rows), len(rows)))
            return _rebuild(header, frame, covariance, **arrays)
        except JudgmentError:
            raise
        except _BROKEN:
            raise JudgmentError("this Parquet file of a consensus is incomplete or damaged; write it again") from None
    if table_format(source) == "csv":
        frame = read_source(source)[0]
        return _from_table(frame) if {"item", "score", "rank"} <= set(frame.columns) else None
    return None


def _trace_to_json(trace: Trace) -> dict[str, Any]:
    """How a fit went, with the parts that it has."""
    return {
        "n_iter": int(trace.n_iter),
        "converged": bool(trace.converged),
        "change": encode_array(np.float64(trace.change)),
        "log_likelihood": None if trace.log_likelihood is None else encode_array(np.array(trace.log_likelihood)),
        **({} if trace.errors is None else {"errors": trace.errors}),
        **({"parts": {name: _trace_to_json(part) for name, part in trace.parts.items()}} if trace.parts else {}),
    }


def _trace_from_json(trace: Mapping[str, Any]) -> Trace:
    """A trace from what was written of it."""
    change, likelihood = decode_array(trace["change"], "float64"), trace["log_likelihood"]
    likelihood = None if likelihood is None else tuple(decode_array(likelihood, "float64").tolist())
    parts = {name: _trace_from_json(part) for name, part in trace.get("parts", {}).items()}
    return Trace(trace["n_iter"], trace["converged"], float(change), likelihood, trace.get("errors"), parts)


def _header(consensus: Consensus, quality: bool) -> dict[str, Any]:
    """Everything but what there is of each item."""
    own, odd = (consensus.quality, consensus.diagnostics) if quality else (None, None)
    return {
        "format": FORMAT,
        "method": consensus.method,
        "params": encode_params(consensus.params),
        "estimates": encode_params(consensus.estimates),
        "trace": _trace_to_json(consensus.trace),
        "nominal": consensus.nominal,
        "levels": None if consensus.levels is None else [_cell(level) for level in consensus.levels],
        "queries": None if consensus.items.single else consensus.items.queries.ids.to_list(),
        "quality": None if own is None else _quality_to_json(own),
        "diagnostics": None if odd is None else _diagnostics_to_json(odd),
    }


def consensus_table(
    consensus: Consensus, level: float | None = None, ratings: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return the rows of a consensus, with intervals where a level is given, and ratings where these are."""
    frame = consensus.frame()
    if level is not None:
        frame = frame.hstack(consensus.intervals(level).select("lower", "upper", "rank_lower", "rank_upper"))
    if ratings is not None:
        keys = [name for name in ("query", "item") if name in ratings.columns]
        names = {name: f"rating_{name}" if name in ("lower", "upper") else name for name in ratings.columns}
        frame = frame.join(ratings.rename(names), on=keys, how="left", maintain_order="left")
    return frame


def _lists(matrix: NDArray[Any]) -> pl.Series:
    """One list of numbers for each row of a matrix."""
    return pl.Series(matrix).cast(pl.List(pl.Series(matrix[:0].ravel()).dtype))


def _rebuild(
    header: Mapping[str, Any], frame: pl.DataFrame, covariance: list[Floats | None] | None,
    probabilities: Floats | None = None, replicates: NDArray[np.float32] | None = None,
) -> Consensus:  # fmt: skip
    """Consensus from its parts, whose rows stand in the order of the table."""
    queries = header["queries"]
    query = None if queries is None else frame["query"]
    items, order = _items(frame["item"], query, None if queries is None else pl.Series("id", queries))
    levels = None if header["levels"] is None else tuple(header["levels"])
    return Consensus(
        items=items,
        scores=_numbers(frame["score"])[order],
        method=header["method"],
        params=decode_params(header["params"]),
        estimates=decode_params(header["estimates"]),
        nominal=bool(header["nominal"]),
        trace=_trace_from_json(header["trace"]),
        std_error=_numbers(frame["std_error"])[order] if "std_error" in frame.columns else None,
        covariance=None if covariance is None else tuple(_reorder(covariance, items, order)),
        replicates=None if replicates is None else np.ascontiguousarray(replicates[:, order]),
        probabilities=None if probabilities is None else probabilities[order],
        levels=levels,
        grade=_level_codes(frame["grade"], levels)[order] if levels and "grade" in frame.columns else None,
        quality_source=None if header["quality"] is None else _quality_from_json(header["quality"]),
        diagnostics=_diagnostics_from_json(header["diagnostics"]) if header.get("diagnostics") else None,
    )


def _from_table(frame: pl.DataFrame) -> Consensus:
    """Consensus from a table with item [, query] and score or rank."""
    from ..kernels.segments import join_ties

    columns = understand_items(frame.columns, also=("rank",))
    if "score" not in frame.columns and "rank" not in columns:
        problem = f"a consensus needs a score or a rank column (its columns: {quote_names(frame.columns)})"
        raise JudgmentError(f"{problem}; rename the one that holds it")
    query = frame[columns["query"]] if "query" in columns else None
    items, order = _items(frame[columns["item"]], query, None)
    score = _numbers(frame["score"]) if "score" in frame.columns else -_numbers(frame[columns["rank"]])
    if not np.isfinite(score).all():
        row = int(np.argmax(~np.isfinite(score))) + 1
        raise JudgmentError(f"row {row} has a score or rank that is not a number; correct it")
    numbers: dict[str, Any] = {n: _numbers(frame[n])[order] for n in ("std_error", "confidence") if n in frame.columns}
    grades = plain_cells(frame["grade"]) if "grade" in frame.columns else None
    grades = grades.fill_nan(None) if grades is not None and grades.dtype.is_float() else grades
    levels, grade = None, None
    if grades is not None and grades.null_count() < len(grades):
        # levels of low scores first
        graded = pl.DataFrame({"grade": grades, "score": score}).drop_nulls("grade")
        means = graded.group_by("grade").agg(pl.col("score").mean()).sort("score", "grade")
        levels = tuple(means["grade"].to_list())
        grade = _level_codes(grades, levels)[order]
    if "confidence" in numbers:
        numbers["confidence"] = np.nan_to_num(numbers["confidence"], nan=0.0, posinf=0.0, neginf=0.0)
    scores = join_ties(score[order], items.offsets)
    if "score" in frame.columns and "rank" in columns:
        scores = _apart_by_rank(scores, _numbers(frame[columns["rank"]])[order], items)
    return Consensus(items=items, scores=scores, method="file", levels=levels, grade=grade, **numbers)


def _apart_by_rank(scores: Floats, rank: Floats, items: Items) -> Floats:
    """Scores of which equal ones with different ranks differ as little as counts: they were rounded when written."""
    from ..kernels import ROUNDING
    from ..kernels.segments import segment_sizes

    order = np.lexsort((rank, -scores, items.query))
    query, score, place = items.query[order], scores[order], rank[order]
    same = (query[1:] == query[:-1]) & (score[1:] == score[:-1])
    group = np.append(0, np.cumsum(~same))
    steps = np.append(0, np.cumsum(same & (place[1:] > place[:-1])))
    starts = np.flatnonzero(np.append(True, ~same))
    steps -= steps[starts][group]
    # together they stay clear of the next lower score
    gaps = np.append(-np.diff(score[starts]), np.inf)
    gaps[np.append(np.diff(query[starts]) != 0, True)] = np.inf
    n_steps = np.append(steps[starts[1:] - 1], steps[-1:])
    sizes = segment_sizes(scores, items.offsets)[query[starts]]
    step = np.minimum(10.0 * ROUNDING * np.where(sizes > 0, sizes, 1.0), gaps / (2 * np.maximum(n_steps, 1)))
    apart = np.empty(len(scores))
    apart[order] = score - steps * step[group]
    return apart


def _items(item: pl.Series, query: pl.Series | None, queries: pl.Series | None) -> tuple[Items, Counts]:
    """Items of a table, and the table's rows in their order."""
    item = id_series(item)
    query = pl.Series("query", [""]).new_from_index(0, len(item)) if query is None else id_series(query)
    index = Index((query if queries is None else id_series(queries)).unique().sort().alias("id"))
    code = index.codes(query)
    table = pl.DataFrame({"query": code, "item": item}).with_row_index("row")
    blank = (code < 0) | item.is_null().to_numpy()
    if blank.any():
        raise JudgmentError(f"row {int(np.argmax(blank)) + 1} has a blank or unknown item or query; fill it in")
    again = table.select(~pl.struct("query", "item").is_first_distinct()).to_series()
    if again.any():
        row = int(again.arg_max() or 0)
        raise JudgmentError(f"row {row + 1} repeats item {item[row]!r}; keep one of the rows")
    table = table.sort("query", "item")
    return Items(index, table["query"].to_numpy(), table["item"]), table["row"].to_numpy().astype(np.int64)


def _reorder(blocks: Sequence[Floats | None], items: Items, order: Counts) -> list[Floats | None]:
    """Covariance of each query with rows and columns in another order of the items."""
    within = (order[start:stop] - start for start, stop in pairwise(items.offsets))
    pairs = ((block, own, len(own)) for block, own in zip(blocks, within, strict=True))
    return [None if one is None else np.asarray(one).reshape(n, n)[np.ix_(own, own)] for one, own, n in pairs]


def _level_codes(grade: pl.Series, levels: tuple[Any, ...]) -> NDArray[np.int32]:
    """Position of each grade among the levels, -1 where there is none."""
    position = {level: code for code, level in enumerate(levels)}
    return np.array([-1 if value is None else position[value] for value in grade.to_list()], np.int32)


def _numbers(column: pl.Series) -> Floats:
    """Numbers of a column, NaN where blank or no number."""
    return plain_cells(column).cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def _cell(value: object) -> Any:
    """A cell as JSON holds it."""
    value = value.item() if isinstance(value, np.generic) else value
    return encode_array(value) if isinstance(value, float) and not math.isfinite(value) else value


def _dumps(value: Any) -> str:
    """Strict JSON text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# arrays and parameters as values that strict JSON can hold: NaN as null, infinity as text ----------------------------


# key under which a parameter that is infinite or NaN is kept as text, apart from parameters that are text
_NUMBER = "float"


def encode_array(values: Any) -> Any:
    """Return an array, or one number, as nested lists without NaN and infinity.

    Examples
    --------
    >>> encode_array(np.array([1.5, np.nan, -np.inf]))
    [1.5, None, '-inf']
    """
    array = np.asarray(values)
    if array.dtype == np.float32:
        # the fewest digits that read back as the same number, half of those of a double
        array = array.astype(str).astype(np.float64)
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    plain = array.astype(object)
    plain[np.isnan(array)] = None
    plain[np.isposinf(array)] = "inf"
    plain[np.isneginf(array)] = "-inf"
    return plain.tolist()


def decode_array(values: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return the array that :func:`encode_array` made nested lists of.

    Examples
    --------
    >>> decode_array([1.5, None, "-inf"], "float64")
    array([ 1.5,  nan, -inf])
    """
    wanted = np.dtype(dtype)
    if wanted.kind != "f":
        return np.array(values, wanted)
    return np.array(values, object).astype(np.float64).astype(wanted)


def encode_params(value: object) -> Any:
    """Return parameters, or one, as plain values; what JSON has no form for becomes its text."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): encode_params(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [encode_params(inner) for inner in value]
    return str(value)


def decode_params(value: Any) -> Any:
    """Return parameters, or one, from plain values; lists come back as tuples, as frozen methods hold them."""
    if isinstance(value, list):
        return tuple(decode_params(inner) for inner in value)
    if isinstance(value, dict):
        number = value.keys() == {_NUMBER}
        return float(value[_NUMBER]) if number else {key: decode_params(inner) for key, inner in value.items()}
    return value


# quality and diagnostics of annotators -------------------------------------------------------------------------------


_TYPES = {str(dtype): dtype for dtype in (pl.String(), pl.Int64(), pl.Float64(), pl.Boolean(), pl.Null())}


def _quality_to_json(quality: Quality) -> dict[str, Any]:
    """The quality of the annotators as plain values: a row for each, in the order of their ids."""
    n = len(quality.annotators)
    arrays = {name: np.asarray(value) for name, value in quality.parameters.items()}
    each = {name: array for name, array in arrays.items() if array.ndim and len(array) == n and array.dtype != object}
    columns = {
        "annotator": quality.annotators.ids.to_list(),
        "quality": encode_array(quality.quality),
        "n_judgments": encode_array(quality.n_judgments),
        **{name: encode_array(array) for name, array in each.items()},
    }
    return {
        "annotators": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        "parameters": {name: {"dtype": str(array.dtype), "shape": list(array.shape)} for name, array in each.items()},
        "shared": encode_params({name: value for name, value in quality.parameters.items() if name not in each}),
    }


def _quality_from_json(document: Mapping[str, Any]) -> Quality:
    """The quality that was made plain values of."""
    rows = document["annotators"]
    ids = pl.Series("id", [row["annotator"] for row in rows], None if rows else pl.String)
    parameters = {}
    for name, form in document["parameters"].items():
        parameters[name] = decode_array([row[name] for row in rows], form["dtype"]).reshape(form["shape"])
    quality, n = (decode_array([row[name] for row in rows], "float64") for name in ("quality", "n_judgments"))
    return Quality(Index(ids), quality, n, {**parameters, **decode_params(document["shared"])})


_VALUES = ("kind", "n_annotators", "effective_annotators")
_SENTENCES = ("annotator_messages", "group_messages", "notes")
_TABLES = {"annotators": "annotator_table", "families": "family_table"}
# of the diagnostics, pairs of annotators and groups of items stay out


def _diagnostics_to_json(diagnostics: Diagnostics) -> dict[str, Any]:
    """Diagnostics as plain values: the sentences, and the rows of annotators and families."""
    values: dict[str, Any] = {name: getattr(diagnostics, name) for name in _VALUES}
    values |= {name: list(getattr(diagnostics, name)) for name in _SENTENCES}
    for key, name in _TABLES.items():
        frame: pl.DataFrame = getattr(diagnostics, name)
        wide = frame.with_columns(pl.selectors.integer().cast(pl.Int64), pl.selectors.float().cast(pl.Float64))
        types = {column: str(dtype) for column, dtype in wide.schema.items()}
        values[key] = {"types": types, "rows": list(map(list, wide.iter_rows()))}
    return values


def _diagnostics_from_json(document: Mapping[str, Any]) -> Diagnostics:
    """The diagnostics that were made plain values of."""
    values: dict[str, Any] = {name: document[name] for name in _VALUES}
    values |= {name: tuple(document[name]) for name in _SENTENCES}
    for key, name in _TABLES.items():
        schema = {column: _TYPES[dtype] for column, dtype in document[key]["types"].items()}
        values[name] = pl.DataFrame(document[key]["rows"], schema=schema, orient="row")
    return Diagnostics(**values)


# saved rankers -------------------------------------------------------------------------------------------------------


def load_ranker(path: PathLike) -> Ranker:
    """Return the fitted ranker that was saved to a file by its ``save``.

    The file holds numbers and JSON only, so that reading one runs no code of its writer, and a checksum, which is
    compared first. A file of a newer version, a damaged one and one that is no ranker at all are refused with a
    :class:`~crowdrank.errors.JudgmentError`; one of an older version is read with a
    :class:`~crowdrank.errors.DataWarning`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdrank.rankers import ListNet
    >>> ranker = ListNet().fit([[1.0], [0.0]], [1, 0], qid=[1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranker.save(Path(folder) / "model")
    ...     again = load_ranker(Path(folder) / "model")
    >>> bool((again.predict([[3.0], [2.0]]) == ranker.predict([[3.0], [2.0]])).all())
    True
    """
    from ..rankers.saving import damage_error, read_saved

    saved = read_saved(path)
    name = plain(str(path))
    try:
        return _restore_ranker(saved)
    except UnknownNameError:
        problem = f"{name} holds a ranker {plain(saved.method[:50])!r}, which this version does not know"
        raise JudgmentError(f"{problem}; install a newer one") from None
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ParameterError):
            raise JudgmentError(f"{name}: {error}; the file was saved by another version, or is damaged") from None
        raise damage_error(name, error) from None


def _restore_ranker(saved: Saved) -> Ranker:
    """The fitted ranker, of parts that are rebuilt first where it has any."""
    ranker: Ranker = blank_ranker(saved.method, saved.params)
    if saved.method not in FITTED:
        ranker.check()
    if saved.parts:
        ranker.parts_ = tuple(_restore_ranker(part) for part in saved.parts)
    return ranker.restore(saved)
