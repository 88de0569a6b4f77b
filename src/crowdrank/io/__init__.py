"""Files in and out: tables, LETOR, TREC and PrefLib; the JSON form of results. Each is imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .click_logs import read_clicks
    from .features import read_features
    from .inspection import inspect
    from .judgments import read_judgments
    from .letor import read_letor, write_letor
    from .notices import listen, say
    from .output import write_table
    from .preflib import read_preflib
    from .rankers import load_ranker
    from .results import from_json, read_consensus, to_json, write_consensus
    from .tables import read_table
    from .trec import read_qrels, read_run, write_qrels, write_run
    from .truth import read_truth

_HOMES = {
    "from_json": ".results",
    "inspect": ".inspection",
    "listen": ".notices",
    "load_ranker": ".rankers",
    "read_clicks": ".click_logs",
    "read_consensus": ".results",
    "read_features": ".features",
    "read_judgments": ".judgments",
    "read_letor": ".letor",
    "read_preflib": ".preflib",
    "read_qrels": ".trec",
    "read_run": ".trec",
    "read_table": ".tables",
    "read_truth": ".truth",
    "say": ".notices",
    "to_json": ".results",
    "write_consensus": ".results",
    "write_letor": ".letor",
    "write_qrels": ".trec",
    "write_run": ".trec",
    "write_table": ".output",
}

__all__ = [
    "from_json",
    "inspect",
    "listen",
    "load_ranker",
    "read_clicks",
    "read_consensus",
    "read_features",
    "read_judgments",
    "read_letor",
    "read_preflib",
    "read_qrels",
    "read_run",
    "read_table",
    "read_truth",
    "say",
    "to_json",
    "write_consensus",
    "write_letor",
    "write_qrels",
    "write_run",
    "write_table",
]


def __getattr__(name: str) -> Any:
    """Import a reader or writer when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value
