"""Features of items from LETOR files or tables."""

from __future__ import annotations

from collections.abc import Mapping

from ..data.features import Features
from ..data.files import PathLike
from .letor import groups_beside, letor_of, looks_like_letor
from .sources import blaming, open_source
from .tables import read_source, table_format


def read_features(path: PathLike, *, columns: Mapping[str, str] | None = None) -> Features:
    """Return the features in a LETOR or svmlight file, or in a table with item [, query] and numbers.

    Parameters
    ----------
    path
        Name of the file; ``-`` reads standard input.
    columns
        House word -> column name, for tables whose id columns have names of their own.

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
            return letor_of(source, groups_beside(path))
        return Features.from_frame(read_source(source)[0], columns=columns)
