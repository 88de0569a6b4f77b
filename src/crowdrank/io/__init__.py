"""Files in and out: tables, LETOR, TREC and PrefLib; the JSON form of results. Each is imported when first used.

The names and their types are in ``__init__.pyi``.
"""

from ..lazy import names_of_stub

_HOMES, __getattr__, __dir__ = names_of_stub(__name__, __file__)
__all__ = sorted(_HOMES)
