"""Make the stored files of a data set from its public source's own files."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from ...errors import MissingDataError, ParameterError
from ..catalog import folder_of
from ..store import data_folder
from .work import Work

__all__ = ["prepare"]


def prepare(name: str, source: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """Make the stored files of a data set and return where they are.

    Parameters
    ----------
    name
        Name of a data set or of a data folder.
    source
        Folder with the public repository's files; its top folder or the folder that holds the files.
    out
        Folder that holds all data sets, by default the one that loading looks in; files in it are never replaced.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> source, out = (pathlib.Path(tempfile.mkdtemp()) for _ in range(2))
    >>> _ = (source / "label.csv").write_text("item,worker,label\\na,kim,4\\n")
    >>> _ = (source / "truth.csv").write_text("item,truth\\na,4\\n")
    >>> [path.name for path in prepare("web-search-relevance5", source, out)]
    ['label.csv', 'truth.csv']
    """
    folder = folder_of(name)
    work = Work(folder, Path(source).expanduser(), data_folder(out))
    if not work.terms.source.repository:
        raise ParameterError(f"{folder!r} cannot be made from public files: it is {work.terms.source}")
    if not work.source.is_dir():
        raise MissingDataError(f"there is not a folder {work.source}; it should be a copy of {work.terms.source}")
    work.check_free()
    if work.terms.prepare == "copy":
        copy(work)
    else:
        module, function = work.terms.prepare.split(":")
        getattr(import_module(f"{__name__}.{module}"), function)(work)
    return work.finish()


def copy(work: Work) -> None:
    """Take every file as it is in the source."""
    for file, origin in work.terms.files.items():
        work.write(file, work.read(origin))
