"""Measures of rankings, of orders and of agreement; arrays in, a number or one number per query out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agreement import accuracy, cohen_kappa, fleiss_kappa, krippendorff_alpha, quality_divergence
    from .correlation import footrule, kendall_tau, pair_accuracy, preference_accuracy, spearman, tau_ap, weighted_tau
    from .measures import Measure, names, parse
    from .ranking import average_precision, dcg, err, ndcg, precision, rbp, recall, reciprocal_rank
    from .significance import (
        bootstrap_interval,
        coefficient_of_variation,
        holm,
        mcnemar,
        paired_randomisation,
        prediction_powered_mean,
    )

_MODULES = ("agreement", "correlation", "measures", "ranking", "significance")

__all__ = [
    "Measure",
    "accuracy",
    "average_precision",
    "bootstrap_interval",
    "coefficient_of_variation",
    "cohen_kappa",
    "dcg",
    "err",
    "fleiss_kappa",
    "footrule",
    "holm",
    "kendall_tau",
    "krippendorff_alpha",
    "mcnemar",
    "names",
    "ndcg",
    "pair_accuracy",
    "paired_randomisation",
    "parse",
    "precision",
    "prediction_powered_mean",
    "preference_accuracy",
    "quality_divergence",
    "rbp",
    "recall",
    "reciprocal_rank",
    "spearman",
    "tau_ap",
    "weighted_tau",
]


def __getattr__(name: str) -> Any:
    """Import a measure when it is first asked for."""
    for module in _MODULES if name in __all__ else ():
        measures = import_module(f".{module}", __name__)
        if hasattr(measures, name):
            return getattr(measures, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
