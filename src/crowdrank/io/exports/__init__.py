"""Exports of other tools: which tool wrote a file, and its judgments; readers are loaded when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ...data.files import PathLike
from ...errors import JudgmentError
from ...wording import one_of
from ..read_options import ReadOptions
from ..sources import Source, blaming, open_source
from .detection import EXPORTS
from .detection import detect as _detect
from .streaming import PACKED, is_sheet, sheet_as_text

if TYPE_CHECKING:
    from .imported import Imported

IMPORTERS = tuple(EXPORTS)
"""Name of each export that is read."""

RATED = ("quepid", "rre", "letor", "opensearch")
"""Tools whose files are settled ratings, so that they serve as a truth too."""

__all__ = ["IMPORTERS", "RATED", "Imported", "detect", "read"]


def detect(where: PathLike | Source) -> str | None:
    """Return the importer whose signature a file has; ``None`` where it is a table like any other.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.jsonl"
    >>> _ = path.write_text('{"model_1": "x", "model_2": "y", "g1_winner": "tie", "g2_winner": "tie"}')
    >>> detect(path)
    'mt-bench'
    """
    return _detect(where if isinstance(where, Source) else open_source(where, archives=True))


def read(where: PathLike | Source, name: str, options: ReadOptions | None = None) -> Imported:
    """Return what an importer makes of a file.

    Parameters
    ----------
    where
        The file, or one that was opened.
    name
        Name of the importer, one of :data:`IMPORTERS`.
    options
        Which question, which rows, which statuses; ``None`` leaves all of that to the importer.
    """
    from .imported import Collector

    options = options or ReadOptions()
    export = EXPORTS[one_of(name, EXPORTS, "source", of_verb=True)]
    source = where if isinstance(where, Source) else open_source(where, archives=True)
    if source.data[:4] in PACKED and is_sheet(source):
        source = sheet_as_text(source, options.sheet)
    with blaming(source.name):
        if export.refusal:
            raise JudgmentError(export.refusal)
        module, function = export.reader.split(".")
        rows = Collector(source, options, export)
        try:
            imported: Imported = getattr(import_module(f".{module}", __name__), function)(rows)
        except UnicodeEncodeError:
            raise JudgmentError("the file holds half of a character; correct its \\u escapes") from None
        except RecursionError:
            raise JudgmentError("the file is nested too deeply; export it again") from None
    return imported
