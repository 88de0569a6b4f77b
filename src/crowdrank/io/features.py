"""Features of items from LETOR files or tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..data.features import Features
from ..data.files import PathLike
from .letor import groups_beside, letor_of, looks_like_letor
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
        House word -> column name, for tables whose id or grade columns have names of their own.
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
            found = letor_of(source, groups_beside(path))
            return found if features is None else found.select(features)
        return Features.from_frame(read_source(source)[0], columns=columns, features=features)
