"""Pictures of results and the report that holds them, each imported when it is first used.

Displays compute in ``from_...`` and draw in ``plot(ax=None)``; :func:`write` writes everything as one page. The names
and their types are in ``__init__.pyi``.
"""

from ..lazy import names_of_stub

_HOMES, __getattr__, __dir__ = names_of_stub(__name__, __file__)
__all__ = sorted(_HOMES)
