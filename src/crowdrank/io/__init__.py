"""Files in and out: tables, LETOR, TREC and PrefLib; the JSON form of results. Each is imported when first used.

The types of what is had from here are in ``__init__.pyi``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "features": "read_features",
    "inspection": "inspect",
    "judgments": "read_judgments",
    "letor": "read_letor write_letor",
    "notices": "listen say",
    "output": "write_qrels write_run write_table",
    "preflib": "read_preflib",
    "results": "from_json load_ranker read_consensus to_json write_consensus",
    "tables": "read_table",
    "trec": "read_qrels read_run",
    "truth": "read_clicks read_truth",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a reader or writer when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
