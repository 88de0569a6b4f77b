"""May a program stand in for people, what is the figure then, and what changed between two runs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {"Audit": ".program_audit", "audit": ".program_audit", "Change": ".changes", "changed": ".changes"}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
