"""Measures of rankings, of orders and of agreement; arrays in, a number or one number per query out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agreement import accuracy, cohen_kappa, fleiss_kappa, krippendorff_alpha, quality_divergence
    from .correlation import footrule, kendall_tau, pair_accuracy, preference_accuracy, spearman, tau_ap, weighted_tau
    from .measures import Measure, names, parse
    from .prediction_powered import prediction_powered_mean
    from .ranking import average_precision, dcg, err, ndcg, precision, rbp, recall, reciprocal_rank
    from .significance import bootstrap_interval, coefficient_of_variation, holm, mcnemar, paired_randomisation

_HOMES = {
    "accuracy": "agreement",
    "average_precision": "ranking",
    "bootstrap_interval": "significance",
    "coefficient_of_variation": "significance",
    "cohen_kappa": "agreement",
    "dcg": "ranking",
    "err": "ranking",
    "fleiss_kappa": "agreement",
    "footrule": "correlation",
    "holm": "significance",
    "kendall_tau": "correlation",
    "krippendorff_alpha": "agreement",
    "mcnemar": "significance",
    "Measure": "measures",
    "names": "measures",
    "ndcg": "ranking",
    "pair_accuracy": "correlation",
    "paired_randomisation": "significance",
    "parse": "measures",
    "precision": "ranking",
    "prediction_powered_mean": "prediction_powered",
    "preference_accuracy": "correlation",
    "quality_divergence": "agreement",
    "rbp": "ranking",
    "recall": "ranking",
    "reciprocal_rank": "ranking",
    "spearman": "correlation",
    "tau_ap": "correlation",
    "weighted_tau": "correlation",
}

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
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
