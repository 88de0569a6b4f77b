"""Consensus rankings, annotator quality and trained rankers from noisy judgments by many annotators.

Public names are imported when they are first asked for, so that importing the package stays quick; their types are in
``__init__.pyi``.
"""

from .lazy import names_of_stub

__version__ = "1.0.0rc1"

_HOMES, __getattr__, __dir__ = names_of_stub(__name__, __file__)
__all__ = sorted(_HOMES)
