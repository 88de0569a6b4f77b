"""Features from raw items: texts, web pages and speech in, one row of numbers per item out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .extraction import like, pages, pages_with_measures, speech, texts
    from .style import StyleCounts, style_counts

_HOMES = {
    "StyleCounts": ".style",
    "like": ".extraction",
    "pages": ".extraction",
    "pages_with_measures": ".extraction",
    "speech": ".extraction",
    "style_counts": ".style",
    "texts": ".extraction",
}

__all__ = ["StyleCounts", "like", "pages", "pages_with_measures", "speech", "style_counts", "texts"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
