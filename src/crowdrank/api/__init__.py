"""The verbs: what people do with judgments. Each is imported when it is first used, with what it alone needs.

The names and their types are in ``__init__.pyi``.
"""

from __future__ import annotations

from inspect import isfunction
from typing import Any

from ..lazy import names_of_stub

_HOMES, _load, __dir__ = names_of_stub(__name__, __file__)
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a verb, which then says what to write for an argument it lacks, or what goes with one."""
    value = _load(name)
    if isfunction(value) and value.__module__.startswith(__name__):
        from .arguments import explain_unknown

        value = globals()[name] = explain_unknown(value)
    return value
