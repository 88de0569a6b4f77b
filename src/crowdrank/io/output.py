"""Tables, TREC files and records for other tools out, renamed once whole, so that nothing half written ever stays."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

import polars as pl

from ..data.files import PathLike, plain, refusal, whole_file
from ..data.showing import round_floats
from ..errors import ParameterError
from ..wording import one_of, option
from .sources import show_value

_AMBIGUOUS = re.compile(r"[\",;|\s]")

FORMATS = ("csv", "tsv", "json", "jsonl", "parquet", "qrels", "run", "markdown", "latex", "xlsx")
_BY_SUFFIX = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".qrels": "qrels", ".qrel": "qrels", ".run": "run",
    ".txt": "csv", ".dat": "csv", ".out": "csv", ".md": "markdown", ".tex": "latex",
    ".xlsx": "xlsx",
}  # fmt: skip

# whether text in CSV and TSV is made safe for spreadsheets, which take some of it for formulas
SAFE_CSV: ContextVar[bool] = ContextVar("safe_csv", default=False)

_FORMULA = r"^[=+\-@\t\r]"


def write_table(
    frame: pl.DataFrame,
    path: PathLike | None = None,
    format: str | None = None,
    *,
    safe: bool | None = None,
    digits: int | None = None,
) -> None:
    """Write a table that :func:`~crowdrank.io.tables.read_table` reads back, or one for a page or a paper.

    Parameters
    ----------
    frame
        The table.
    path
        Name of the file, gzipped where it ends in ``.gz``; ``None`` or ``-`` writes to standard output.
    format
        ``"csv"``, ``"tsv"``, ``"json"`` (an array of objects), ``"jsonl"``, ``"parquet"``, ``"qrels"`` or ``"run"``, or
        for people ``"markdown"``, ``"latex"`` or ``"xlsx"``; ``None`` tells it from the name and takes CSV where that
        says nothing. A name of some other format is refused.
    safe
        Put an apostrophe before text in CSV and TSV that a spreadsheet would take for a formula (``=``, ``+``, ``-``,
        ``@``). Ids then do not come back as they were, so that by default they are written as they are.
    digits
        Significant digits of numbers in CSV, TSV, Markdown and LaTeX, 6 by default; 17 are exact, as JSON, Parquet,
        qrels and runs always are.

    Examples
    --------
    >>> write_table(pl.DataFrame({"item": ["a", "b"], "score": [1.5, None]}), format="json")
    [{"item": "a", "score": 1.5},
     {"item": "b", "score": null}]
    """
    chosen = format_for(path, format)
    if chosen in ("qrels", "run"):
        write_trec(frame, path, chosen)
        return
    if chosen == "xlsx":
        write_sheets({"table": frame}, path)
        return
    if chosen in ("csv", "tsv", "markdown", "latex"):
        frame = frame.with_columns(round_floats(frame.schema, digits))
    if chosen in ("csv", "tsv"):
        nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
        if nested:
            problem = f"column {show_value(nested[0])} holds lists, which {chosen} cannot hold"
            raise ParameterError(f"{problem}; write parquet or json")
        if SAFE_CSV.get() if safe is None else safe:
            # an apostrophe before text that a spreadsheet would compute
            for name, dtype in frame.schema.items():
                if dtype in (pl.String, pl.Categorical, pl.Enum):
                    text = pl.col(name).cast(pl.String)
                    safe_text = pl.when(text.str.contains(_FORMULA)).then("'" + text).otherwise(text)
                    frame = frame.with_columns(safe_text.alias(name))
            frame = frame.rename({name: f"'{name}" for name in frame.columns if re.match(_FORMULA, name)})

    def write(handle: IO[bytes]) -> None:
        if chosen in ("markdown", "latex"):
            handle.write((markdown_table(frame) if chosen == "markdown" else _latex(frame)).encode())
        elif chosen == "parquet":
            write_parquet(frame, handle)
        elif chosen in ("csv", "tsv"):
            _write_delimited(frame, handle, "," if chosen == "csv" else "\t")
        else:
            _write_json(frame, handle, lines=chosen == "jsonl")

    write_with(write, path)


def write_sheets(sheets: Mapping[str, pl.DataFrame], path: PathLike | None) -> None:
    """Write an Excel workbook with a sheet for each table; text is never taken for a formula."""
    try:
        import xlsxwriter
    except ImportError:
        from ..errors import MissingExtraError

        raise MissingExtraError("writing .xlsx needs xlsxwriter; pip install 'crowdrank[excel]'") from None

    def write(handle: IO[bytes]) -> None:
        memory = io.BytesIO()
        plain_text = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
        book = xlsxwriter.Workbook(memory, {"in_memory": True, "nan_inf_to_errors": True, **plain_text})
        bold = book.add_format({"bold": True, "bottom": 1})
        for name, frame in sheets.items():
            sheet = book.add_worksheet(name[:31])
            sheet.write_row(0, 0, frame.columns, bold)
            for place, column in enumerate(frame.columns):
                values = frame[column]
                cells = values.to_list()
                if not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
                    cells = [None if cell is None else str(cell)[:32_767] for cell in cells]
                sheet.write_column(1, place, cells)
            sheet.freeze_panes(1, 0)
            if len(frame):
                sheet.autofilter(0, 0, len(frame), max(len(frame.columns) - 1, 0))
            sheet.autofit(600)
        book.close()
        handle.write(memory.getbuffer())

    write_with(write, path)


def write_text(text: str, path: PathLike | None = None) -> None:
    """Write text as UTF-8; ``None`` or ``-`` writes to standard output."""
    write_with(lambda handle: handle.write(text.encode()), path)


def format_for(path: PathLike | None, format: str | None) -> str:
    """Return the format asked for, or the one the file's name says, or CSV."""
    if format is None:
        suffixes = [] if path is None else [s.lower() for s in Path(path).suffixes if s.lower() != ".gz"]
        last = suffixes[-1] if suffixes else ""
        if last == ".xlsx" and str(path).lower().endswith(".gz"):
            problem = f"{plain(str(path))}: .xlsx cannot be written"
            raise ParameterError(f"{problem}; use one of .csv, .tsv, or leave .gz out")
        # behind a point that starts no word, as in v1.2, stands no format
        if last[1:2].isalpha() and last not in _BY_SUFFIX and not str(path).startswith("/dev/"):
            known = ", ".join(name for name in _BY_SUFFIX if name[1:] in (*FORMATS, "md", "tex"))
            problem = f"{plain(str(path))}: {last} cannot be written"
            raise ParameterError(f"{problem}; use one of {known}, or say {option('format', 'csv')}")
        return _BY_SUFFIX.get(last, "csv")
    one_of(format, FORMATS, "format", of_verb=True)
    return format


def check_target(path: PathLike | None) -> None:
    """Refuse, before there is anything to write, a name that could not be written in the end."""
    if path is None or path == "-":
        return
    target, name = Path(os.path.realpath(path)), plain(str(path))
    if target.is_dir():
        raise ParameterError(refusal(name, target, IsADirectoryError()))
    if not target.parent.is_dir():
        raise ParameterError(refusal(name, target, FileNotFoundError()))
    if not os.access(target if target.exists() and not target.is_file() else target.parent, os.W_OK):
        raise ParameterError(refusal(name, target, PermissionError()))


def write_with(write: Callable[[IO[bytes]], Any], path: PathLike | None) -> None:
    """Let ``write`` fill a file that takes its name only once it is whole; ``None`` or ``-`` means standard output."""
    if path is None or path == "-":
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:
            # standard output was replaced by something that takes only text
            memory = io.BytesIO()
            write(memory)
            sys.stdout.write(memory.getvalue().decode("utf-8", errors="replace"))
            return
        sys.stdout.flush()
        write(binary)
        binary.flush()
        return
    target = Path(os.path.realpath(path))
    name = plain(str(path))
    try:
        with whole_file(target) as handle:
            if target.suffix.lower() == ".gz":
                with gzip.GzipFile(filename="", fileobj=handle, mode="wb", mtime=0) as packed:
                    write(packed)  # type: ignore[arg-type]
            else:
                write(handle)
    except OSError as error:
        raise ParameterError(refusal(name, target, error)) from None
    except pl.exceptions.PolarsError as error:
        if "No space left" in str(error):
            raise ParameterError(refusal(name, target, OSError(errno.ENOSPC, ""))) from None
        why = plain(str(error).split("\n", 1)[0][:200])
        raise ParameterError(f"{name} could not be written: {why}; try another format") from None


def write_parquet(frame: pl.DataFrame, handle: IO[bytes], metadata: Any = None) -> None:
    """Write Parquet; first to memory, since polars has no word for a full disk."""
    memory = io.BytesIO()
    frame.write_parquet(memory, metadata=metadata)
    handle.write(memory.getbuffer())


def _write_delimited(frame: pl.DataFrame, handle: IO[bytes], separator: str) -> None:
    """CSV whose header names its separator beyond doubt; a NUL, which no reader takes, is refused."""
    for name, dtype in frame.schema.items():
        if "\0" in name or (dtype == pl.String and frame[name].str.contains("\0", literal=True).any()):
            problem = f"column {show_value(name)} holds a NUL character, which a text file cannot hold"
            raise ParameterError(f"{problem}; write parquet")
    cells = [f'"{name.replace(chr(34), chr(34) * 2)}"' if _AMBIGUOUS.search(name) else name for name in frame.columns]
    handle.write(f"{separator.join(cells)}\n".encode())
    frame.write_csv(handle, separator=separator, include_header=False)


def _write_json(frame: pl.DataFrame, handle: IO[bytes], *, lines: bool) -> None:
    """One object a row; a number that JSON does not know becomes null."""
    floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    finite = frame.with_columns(pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in floats)
    between, around = ("\n", ("", "\n")) if lines else (",\n ", ("[", "]\n"))
    handle.write(around[0].encode())
    for start in range(0, max(frame.height, 1), 10_000):
        rows = finite.slice(start, 10_000).iter_rows(named=True)
        text = between.join(json.dumps(row, ensure_ascii=False, allow_nan=False, default=str) for row in rows)
        handle.write(f"{between if start else ''}{text}".encode())
    handle.write(around[1].encode())


_MARKDOWN = str.maketrans({"\n": " ", "\r": " ", "<": "&lt;", **{sign: f"\\{sign}" for sign in "\\|`*["}})
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": " ", "\r": " ",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    }
)  # fmt: skip


def in_markdown(text: str) -> str:
    """Return text that stands in Markdown as it is: it formats nothing and loads nothing.

    Examples
    --------
    >>> print(in_markdown("![x](http://a) | *b*"))
    !\\[x](http://a) \\| \\*b\\*
    """
    return text.translate(_MARKDOWN)


def markdown_table(frame: pl.DataFrame) -> str:
    """Return a table of GitHub's Markdown, numbers to the right."""
    rules = ["---:" if dtype.is_numeric() else "---" for dtype in frame.dtypes]
    rows = [[in_markdown(name) for name in frame.columns], rules]
    rows += [[in_markdown("" if cell is None else str(cell)) for cell in row] for row in frame.iter_rows()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _latex(frame: pl.DataFrame) -> str:
    """A tabular with the rules of booktabs."""
    sides = "".join("r" if dtype.is_numeric() else "l" for dtype in frame.dtypes)
    texts = (["" if cell is None else str(cell) for cell in row] for row in (frame.columns, *frame.iter_rows()))
    rows = [[text.translate(_LATEX) for text in row] for row in texts]
    head, *body = (f"{' & '.join(row)} \\\\\n" for row in rows)
    return f"\\begin{{tabular}}{{{sides}}}\n\\toprule\n{head}\\midrule\n{''.join(body)}\\bottomrule\n\\end{{tabular}}\n"


def write_qrels(frame: pl.DataFrame, path: PathLike | None = None) -> None:
    """Write a table of query, item and grade as qrels; ``None`` or ``-`` writes to standard output.

    Whole grades are written without a decimal point, as evaluation tools want them.

    Examples
    --------
    >>> write_qrels(pl.DataFrame({"query": ["q1"], "item": ["d3"], "grade": [2.0]}))
    q1 0 d3 2
    """
    grade = frame["grade"]
    if grade.dtype.is_float() and (grade == grade.round()).all() and (grade.abs() < 2**53).all():
        frame = frame.with_columns(grade.cast(pl.Int64))
    _write_lines(frame, "{} 0 {} {}", ("query", "item", "grade"), path)


def write_run(frame: pl.DataFrame, path: PathLike | None = None) -> None:
    """Write a table of run, query, item, rank and score as a run file; ``None`` or ``-`` writes to standard output.

    Examples
    --------
    >>> write_run(pl.DataFrame({"run": ["ours"], "query": ["q1"], "item": ["d3"], "rank": [1], "score": [0.5]}))
    q1 Q0 d3 1 0.5 ours
    """
    _write_lines(frame, "{} Q0 {} {} {} {}", ("query", "item", "rank", "score", "run"), path)


def write_trec(frame: pl.DataFrame, path: PathLike | None, form: str, run: str = "crowdrank") -> None:
    """Write a table as ``"qrels"`` or as a ``"run"``, or say what it lacks; a missing query is query 1."""
    needed = {"qrels": ("item", "grade"), "run": ("item", "rank", "score")}[form]
    lacking = [name for name in needed if name not in frame.columns]
    if lacking:
        other = "; a .run holds scores" if form == "qrels" and "score" in frame.columns else ""
        needs = f"{form} need{'' if form == 'qrels' else 's'} {' and '.join(needed)}"
        problem = f"{needs}, but this table has no {' and no '.join(lacking)}{other}"
        raise ParameterError(f"{problem}; write it as csv, tsv, json, jsonl or parquet")
    if "query" not in frame.columns:
        frame = frame.with_columns(pl.lit("1").alias("query"))
    if form == "qrels":
        grade = frame["grade"].cast(pl.Float64, strict=False)
        if grade.null_count():
            raise ParameterError("qrels hold numbers, but a grade is missing or a word; write it as csv or json")
        write_qrels(frame.with_columns(grade), path)
    else:
        write_run(frame if "run" in frame.columns else frame.with_columns(pl.lit(run).alias("run")), path)


def _write_lines(frame: pl.DataFrame, form: str, columns: Sequence[str], path: PathLike | None) -> None:
    """Write a line for each row, whose ids must not hold the white space that stands between columns."""
    for name in (name for name in columns if name in ("query", "item", "run")):
        text = frame[name].cast(pl.String)
        bad = text.filter((text == "") | text.str.contains(r"\s") | text.is_null())
        if len(bad):
            what = "is blank or has white space in it, which TREC files cannot hold"
            raise ParameterError(f"{name} {show_value(bad[0])} {what}")
    write_text("".join(frame.select(pl.format(f"{form}\n", *columns)).to_series().to_list()), path)


def write_records(records: Sequence[Mapping[str, Any]], to: str, path: PathLike | None = None) -> None:
    """Write records as a tool reads them; ``None`` or ``-`` writes to standard output.

    Examples
    --------
    >>> write_records([{"prompt": "p", "chosen": "x", "rejected": "y"}], "pairs")
    {"prompt": "p", "chosen": "x", "rejected": "y"}
    """
    if to == "qrels":
        write_qrels(pl.DataFrame(records), path)
        return
    if to in ("quepid", "run"):
        frame = pl.DataFrame(records)
        write_run(frame, path) if to == "run" else write_text(frame.write_csv(), path)
        return
    if to == "rre":
        write_text(json.dumps(records[0], ensure_ascii=False, allow_nan=False, indent=2) + "\n", path)
        return
    texts = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
    write_text("".join(f"{text}\n" for text in texts) if to == "pairs" else "[" + ",\n ".join(texts) + "]\n", path)
