"""Files in and out: tables, LETOR, TREC and PrefLib; the JSON form of results. Each is imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .features import read_features as read_features
    from .inspection import inspect as inspect
    from .judgments import read_judgments as read_judgments
    from .letor import read_letor as read_letor
    from .letor import write_letor as write_letor
    from .notices import listen as listen
    from .notices import say as say
    from .output import write_qrels as write_qrels
    from .output import write_run as write_run
    from .output import write_table as write_table
    from .preflib import read_preflib as read_preflib
    from .results import from_json as from_json
    from .results import load_ranker as load_ranker
    from .results import read_consensus as read_consensus
    from .results import to_json as to_json
    from .results import write_consensus as write_consensus
    from .tables import read_table as read_table
    from .trec import read_qrels as read_qrels
    from .trec import read_run as read_run
    from .truth import read_clicks as read_clicks
    from .truth import read_truth as read_truth

_NAMES = {
    "features": ("read_features",),
    "inspection": ("inspect",),
    "judgments": ("read_judgments",),
    "letor": ("read_letor", "write_letor"),
    "notices": ("listen", "say"),
    "output": ("write_qrels", "write_run", "write_table"),
    "preflib": ("read_preflib",),
    "results": ("from_json", "load_ranker", "read_consensus", "to_json", "write_consensus"),
    "tables": ("read_table",),
    "trec": ("read_qrels", "read_run"),
    "truth": ("read_clicks", "read_truth"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a reader or writer when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
