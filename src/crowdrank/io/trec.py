"""TREC files: qrels with the grade of each item of a query, and runs with the items a system ranked."""

from __future__ import annotations

import polars as pl

from ..data.files import PathLike
from ..errors import JudgmentError
from .sources import Source, open_source, show_value

_QRELS = ("query", "iteration", "item", "grade")
_RUN = ("query", "q0", "item", "rank", "score", "run")


def read_qrels(path: PathLike | Source) -> pl.DataFrame:
    """Return the grades of a qrels file (``query iteration item grade`` on each line): query, item, grade.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "robust.qrels"
    >>> _ = path.write_text("301 0 FBIS3-10082 1\\n301 0 FBIS3-10169 0\\n")
    >>> read_qrels(path).rows()
    [('301', 'FBIS3-10082', 1.0), ('301', 'FBIS3-10169', 0.0)]
    """
    return _columns(open_source(path), _QRELS, ["query", "item"], ["grade"]).select("query", "item", "grade")


def read_run(path: PathLike | Source) -> pl.DataFrame:
    """Return the items of a run file (``query Q0 item rank score run`` on each line): run, query, item, rank, score.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bm25.run"
    >>> _ = path.write_text("301 Q0 FBIS3-10082 1 7.25 bm25\\n")
    >>> read_run(path).rows()
    [('bm25', '301', 'FBIS3-10082', 1, 7.25)]
    """
    frame = _columns(open_source(path), _RUN, ["run", "query", "item"], ["rank", "score"])
    return frame.select("run", "query", "item", pl.col("rank").cast(pl.Int64), "score")


def looks_like_qrels(source: Source) -> bool:
    """Return whether a text file has no header and four columns of which the last is a number."""
    if source.suffix in (".qrels", ".qrel"):
        return True
    words = source.data[source.start : source.start + 65536].lstrip().split(b"\n", 1)[0].split()
    return len(words) == 4 and b"," not in words[0] and words[3].lstrip(b"+-").isdigit()


def looks_like_run(source: Source) -> bool:
    """Whether the first line of an opened file has the six columns of a run."""
    first = bytes(source.data[source.start : source.start + 4096]).split(b"\n", 1)[0].split()
    return len(first) == len(_RUN) and first[1].lower() in (b"q0", b"0")


def _columns(source: Source, names: tuple[str, ...], key: list[str], numbers: list[str]) -> pl.DataFrame:
    """Columns of the lines that are not blank: finite numbers where they should be, and each key once."""
    shape = f"a line should be '{' '.join(names)}'"
    lines = pl.DataFrame({"text": source.text().split("\n")}).with_row_index("line", offset=1)
    lines = lines.with_columns(pl.col("text").str.strip_chars()).filter(pl.col("text") != "")
    if not lines.height:
        raise JudgmentError(f"{source.name} holds only blank lines; check that it was written in full")
    words = lines["text"].str.split(" ")
    if (lines["text"].str.contains(r"\s{2}|[^\S ]")).any():
        words = lines["text"].str.replace_all(r"\s+", " ").str.split(" ")
    wrong = words.list.len() != len(names)
    if wrong.any():
        first = int(wrong.arg_max() or 0)
        raise source.broken_line(lines["line"][first], f"has {len(words[first])} columns", shape)
    frame = pl.DataFrame([words.list.get(number).alias(name) for number, name in enumerate(names)])
    for name in numbers:
        number = frame[name].cast(pl.Float64, strict=False)
        wrong = ~number.is_finite().fill_null(False)
        if name == "rank":
            wrong = wrong | (number != number.round()).fill_null(True) | (number.abs() > 1e15).fill_null(True)
        if wrong.any():
            first = int(wrong.arg_max() or 0)
            what = f"has the {name} {show_value(frame[name][first])}"
            raise source.broken_line(lines["line"][first], what, shape)
        frame = frame.with_columns(number.alias(name))
    again = ~frame.select(pl.struct(key).is_first_distinct()).to_series()
    if again.any():
        first = int(again.arg_max() or 0)
        item, query = (show_value(frame[word][first]) for word in ("item", "query"))
        what = f"repeats item {item} of query {query}"
        raise source.broken_line(lines["line"][first], what, "keep one of the lines")
    return frame
