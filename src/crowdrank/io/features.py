"""What is known of items: features from LETOR files or tables, and their texts and links."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..data.column_names import plain_name, understand_items
from ..data.columns import understand
from ..data.features import Features
from ..data.files import PathLike
from ..data.frames import to_frame
from ..data.index import Items
from ..data.showing import EXACT
from ..errors import DataWarning, JudgmentError
from . import exports
from .letor import groups_beside, looks_like_letor, read_letor
from .output import write_table
from .preflib import SUFFIXES
from .sources import blaming, open_source
from .tables import read_source, read_table, table_format


def read_features(
    path: PathLike, *, columns: Mapping[str, str] | None = None, features: Sequence[str] | None = None
) -> Features:
    """Return the features in a LETOR or svmlight file, or in a table with item [, query] and numbers.

    Columns named like an id, a judgment or a truth are not taken for features, and a warning names those left out; a
    column named like a grade becomes the grade, as the first number of a LETOR line is.

    Parameters
    ----------
    path
        Name of the file; ``-`` reads standard input.
    columns
        Our word (``item``, ``annotator``, ...) -> name of the column, for tables whose id or grade columns have names
        of their own.
    features
        Names of the columns to use, in their order, whatever they are called; of LETOR files their numbers.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pages.csv"
    >>> _ = path.write_text("item,length,age\\nb,3,1.5\\na,5,0.5\\n")
    >>> read_features(path).matrix.tolist()
    [[5.0, 0.5], [3.0, 1.5]]
    """
    source, beside = open_source(path), extractor_file(path)
    with blaming(source.name):
        if table_format(source) == "csv" and looks_like_letor(source):
            letor = read_letor(source, groups=groups_beside(path))
            return letor if features is None else _with_absent(letor, features, source.name).select(features)
        table = Features.from_frame(read_source(source)[0], columns=columns, features=features)
        if path == "-" or not os.path.isfile(beside):
            return table
        # the extractor that lies beside the file, if it makes these columns
        from ..rankers.saving import read_extractor

        extractor = read_extractor(beside)
        return replace(table, extractor=extractor) if set(table.names) <= set(extractor.names) else table


def extractor_file(path: PathLike) -> str:
    """Return the name of the file beside a table of features that says how they were made.

    Examples
    --------
    >>> extractor_file("pages/features.csv.gz")
    'pages/features.extractor'
    """
    where = Path(path)
    while where.suffix.lower() in (".gz", ".csv", ".tsv", ".json", ".jsonl", ".parquet", ".pq"):
        where = where.with_suffix("")
    return f"{where}.extractor"


def write_features(features: Features, path: PathLike | None, format: str | None = None) -> None:
    """Write a table of features, and beside its file how they are made of raw items, for :func:`read_features`.

    Parameters
    ----------
    features
        The features.
    path
        Name of the file; ``None`` or ``-`` writes the table alone to standard output.
    format
        As for other tables.
    """
    write_table(features.frame(), path, format, digits=EXACT)
    if path is not None and path != "-" and features.extractor is not None:
        from ..rankers.saving import write_extractor

        write_extractor(features.extractor, extractor_file(path))


def _with_absent(present: Features, wanted: Sequence[str], name: str) -> Features:
    """Features of a LETOR file with those that none of its lines mentions, as those that a line leaves out."""
    known = set(present.names)
    absent = [str(number) for number in wanted if str(number) not in known and str(number).isdecimal()]
    if not absent:
        return present
    value = float("nan") if np.isnan(present.matrix).any() else 0.0
    shown = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
    taken = f"taken as {'missing' if np.isnan(value) else '0'}, as LETOR files do"
    warnings.warn(f"no line of {name} mentions feature {shown}; {taken}", DataWarning, 3)
    matrix = np.hstack([present.matrix, np.full((len(present.matrix), len(absent)), value)])
    return replace(present, matrix=matrix, names=(*present.names, *absent))


TEXT = ("text", "title", "name", "content", "description", "summary", "body", "passage", "snippet", "answer_text")
# names of columns that hold the text, and the link, of an item; the first that there is counts
LINK = ("url", "link", "href", "uri")

_WEB = re.compile(r"https?://[^\s\x00-\x1f]+", re.IGNORECASE)


def describe_items(table: Any, items: Items) -> pl.DataFrame:
    """Return text and link of each item in the order of their codes, null where there is none.

    Parameters
    ----------
    table
        A frame or file with an item column, a query column if it has one, and text or link under one of their names.
    items
        The items to describe; where queries were taken as one, any row of an item will do.

    Examples
    --------
    >>> from ..data.index import Index
    >>> import numpy as np
    >>> items = Items(Index(pl.Series([""])), np.zeros(2, np.int32), pl.Series(["x", "y"]))
    >>> describe_items({"item": ["y"], "title": ["Why?"], "url": ["https://example.org/y"]}, items).rows()
    [(None, None), ('Why?', 'https://example.org/y')]
    """
    frame = read_table(table) if isinstance(table, str | os.PathLike) else to_frame(table)
    named = understand_items(frame.columns)
    plain = {plain_name(name): name for name in reversed(frame.columns)}
    free = {word: name for word, name in plain.items() if name not in named.values()}
    keys = ["item"] if items.single or "query" not in named else ["query", "item"]
    known = _first_rows(frame, {key: named[key] for key in keys}, _columns_about(free))
    wanted = pl.DataFrame({"query": items.query_ids().cast(pl.String), "item": items.ids.cast(pl.String)})
    described = wanted.join(known, on=keys, how="left", maintain_order="left")
    return described.select("text", pl.col("link").map_elements(web_link, return_dtype=pl.String))


def describe_votes(
    paths: Sequence[PathLike], kind: str | None = None, columns: Mapping[str, str] | None = None
) -> pl.DataFrame | None:
    """Return query, item, text and link from files of judgments that tell them too, ``None`` where none does.

    For grades and rankings the columns are called as for :func:`describe_items`; for preferences with the side before
    or behind, as in ``left_text`` or ``url_b``. Standard input cannot be read again and is passed over.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text("left,right,winner,left_text,right_text\\nx,y,left,Why not?,Why?\\n")
    >>> describe_votes([path]).rows()
    [('x', 'Why not?', None), ('y', 'Why?', None)]
    """
    tables: list[pl.DataFrame] = []
    for path in (path for path in paths if str(path) != "-"):
        try:
            source = open_source(path, archives=True)
            if source.suffix in SUFFIXES or exports.detect(source) is not None:
                continue
            frame = read_source(source)[0]
            understood = understand(frame, kind, columns)
        except JudgmentError:
            # read with options that say more, so that its columns are not these
            continue
        free = {plain_name(name): name for name in reversed(understood.ignored)}
        words = understood.columns
        query = {"query": words["query"]} if "query" in words else {}
        for side in ("winner", "loser") if "loser" in words else ("item", "left", "right"):
            about = _columns_about(free, _FORMS[side])
            if side in words and any(about.values()):
                tables.append(_first_rows(frame, {**query, "item": words[side]}, about))
    return pl.concat(tables, how="diagonal") if tables else None


def _columns_about(free: Mapping[str, str], forms: Sequence[str] = ("{}",)) -> dict[str, str | None]:
    """The columns that hold the text and the link of an item, ``None`` where no free one is called so."""
    named = {"text": TEXT, "link": LINK}
    calls = {what: [form.format(word) for word in words for form in forms] for what, words in named.items()}
    return {what: next((free[name] for name in names if name in free), None) for what, names in calls.items()}


def _first_rows(frame: pl.DataFrame, ids: Mapping[str, str], about: Mapping[str, str | None]) -> pl.DataFrame:
    """What the first row of each item tells of it, as text."""
    blank = pl.lit(None, pl.String)
    cells = {word: blank if name is None else pl.col(name).cast(pl.String) for word, name in {**ids, **about}.items()}
    return frame.select(**cells).unique(list(ids), keep="first", maintain_order=True)


# which item -> how columns about it are called
_FORMS = {
    "item": ("{}",),
    "left": ("left_{}", "{}_left", "{}_a", "a_{}"),
    "right": ("right_{}", "{}_right", "{}_b", "b_{}"),
    "winner": ("winner_{}", "{}_winner", "chosen_{}", "{}_chosen"),
    "loser": ("loser_{}", "{}_loser", "rejected_{}", "{}_rejected"),
}


def web_link(text: str) -> str | None:
    """Return a text that is the address of a web page, ``None`` for any other, scripts and files among them.

    Examples
    --------
    >>> web_link(" https://example.org/a "), web_link("javascript:alert(1)")
    ('https://example.org/a', None)
    """
    address = text.strip()
    return address if _WEB.fullmatch(address) else None
