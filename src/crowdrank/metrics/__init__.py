"""Measures of rankings, of orders and of agreement; arrays in, a number or one number per query out.

Public names and their types are in ``__init__.pyi``.
"""

from ..lazy import names_of_stub

_HOMES, __getattr__, __dir__ = names_of_stub(__name__, __file__)
"""Name -> module; how names are imported; what there is."""

__all__ = sorted(_HOMES)
