"""Measures of rankings, of orders and of agreement; arrays in, a number or one number per query out.

Types of the public names are in ``__init__.pyi``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    ".agreement": "accuracy cohen_kappa fleiss_kappa krippendorff_alpha quality_divergence",
    ".correlation": "footrule kendall_tau pair_accuracy preference_accuracy spearman tau_ap weighted_tau",
    ".measures": "Measure names parse",
    ".ranking": "average_precision dcg err ndcg precision rbp recall reciprocal_rank",
    ".significance": (
        "bootstrap_interval coefficient_of_variation holm mcnemar paired_randomisation prediction_powered_mean"
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
