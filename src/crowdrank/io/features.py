"""Features of items from LETOR files or tables."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..data.features import Features
from ..data.files import PathLike
from ..data.showing import EXACT
from ..errors import DataWarning
from .letor import groups_beside, letor_of, looks_like_letor
from .output import write_table
from .sources import blaming, open_source
from .tables import read_source, table_format


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
    source = open_source(path)
    with blaming(source.name):
        if table_format(source) == "csv" and looks_like_letor(source):
            letor = letor_of(source, groups_beside(path))
            return letor if features is None else _with_absent(letor, features, source.name).select(features)
        table = Features.from_frame(read_source(source)[0], columns=columns, features=features)
        return _with_extractor(table, path)


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


def _with_extractor(features: Features, path: PathLike) -> Features:
    """The features with the extractor that lies beside their file, if it makes their columns."""
    beside = extractor_file(path)
    if path == "-" or not os.path.isfile(beside):
        return features
    from ..rankers.saving import read_extractor

    extractor = read_extractor(beside)
    return replace(features, extractor=extractor) if set(features.names) <= set(extractor.names) else features


def _with_absent(present: Features, wanted: Sequence[str], name: str) -> Features:
    """Features of a LETOR file with those that none of its lines mentions, as those that a line leaves out."""
    known = set(present.names)
    absent = [str(number) for number in wanted if str(number) not in known and str(number).isdecimal()]
    if not absent:
        return present
    value = float("nan") if np.isnan(present.matrix).any() else 0.0
    shown = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
    value_text = "missing" if np.isnan(value) else "0"
    warnings.warn(
        f"no line of {name} mentions feature {shown}; taken as {value_text}, as LETOR files do", DataWarning, 3
    )
    matrix = np.hstack([present.matrix, np.full((len(present.matrix), len(absent)), value)])
    return replace(present, matrix=matrix, names=(*present.names, *absent))
