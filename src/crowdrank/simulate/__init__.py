"""Annotators of known quality and judgments drawn from them; types of the public names are in ``__init__.pyi``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    ".campaigns": "Campaign Recorded SimulatedCrowd Trained campaign",
    ".corpora": "Corpus draw_clicks draw_corpus",
    ".designs": "AllPairs ConnectedPairs PerItem PerQuery RandomPairs RoundRobin",
    ".judgments": "Simulation check_simulation grades preferences rankings simulate",
    ".known": "CUTS LatentTruth draw_truth latent_truth",
    ".noise": "NOISES Noise NoiseModel parse_noise",
    ".pools": (
        "CayleyMallows Confusions Crowd Flips LatentGraders Mallows OneCoin PlackettLuce Pool Swaps confusion "
        "false_bad false_good growing log_normal ltrma_swaps normal profile symmetric uniform with_spammers"
    ),
}
"""Module -> the names that are had from here."""

_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOMES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
