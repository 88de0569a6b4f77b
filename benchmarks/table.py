"""The workloads by name."""

from __future__ import annotations

from crowdrank.registry import names as methods

from . import (
    bootstrap,
    bradley_terry,
    controlled,
    crowd_agg,
    crowd_bt,
    dawid_skene,
    elo,
    first_call,
    glad,
    html_report,
    imports,
    joint_annotators,
    lambda_mart,
    lambda_rank,
    latent_score,
    linear_rankers,
    list_net,
    load_preferences,
    ltrma,
    mace,
    majority_vote,
    mallows,
    ndcg,
    one_coin,
    plackett_luce,
    propose,
    rank_centrality,
    raw_items,
    sparse_preferences,
    win_rates,
)
from .workload import Workload

CLASS_MODELS = {
    "dawid_skene": (dawid_skene.WORKLOAD, dawid_skene.GROWTH),
    "naive_bayes": (one_coin.WORKLOAD,),
    "mace": (mace.WORKLOAD,),
    "glad": (glad.WORKLOAD,),
}
"""Workloads that are there as soon as the registry knows their method."""

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        bradley_terry.WORKLOAD,
        controlled.WORKLOAD,
        bootstrap.WORKLOAD,
        bootstrap.PEER,
        crowd_agg.WORKLOAD,
        crowd_bt.WORKLOAD,
        elo.WORKLOAD,
        html_report.WORKLOAD,
        ltrma.WORKLOAD,
        majority_vote.WORKLOAD,
        latent_score.WORKLOAD,
        latent_score.FEATURES,
        mallows.WORKLOAD,
        raw_items.WORKLOAD,
        *(workload for method in methods("aggregator") for workload in CLASS_MODELS.get(method, ())),
        ndcg.WORKLOAD,
        plackett_luce.WORKLOAD,
        plackett_luce.SPARSE,
        propose.WORKLOAD,
        rank_centrality.WORKLOAD,
        sparse_preferences.WORKLOAD,
        joint_annotators.RED,
        joint_annotators.WHITE,
        joint_annotators.CROWD,
        list_net.WORKLOAD,
        linear_rankers.WORKLOAD,
        lambda_mart.WORKLOAD,
        lambda_mart.MEMORY,
        lambda_mart.PREDICT,
        lambda_rank.WORKLOAD,
        load_preferences.WORKLOAD,
        win_rates.WORKLOAD,
        imports.WORKLOAD,
        *first_call.WORKLOADS,
    )
}


def find(name: str) -> Workload:
    """Return the workload of that very name."""
    return WORKLOADS[name]


def chosen(names: list[str]) -> list[Workload]:
    """Return the named workloads, all if none is named; ``first_call`` stands for all ``first_call/...``."""
    for name in names:
        if not any(_means(name, known) for known in WORKLOADS):
            raise SystemExit(f"there is no workload {name!r}; known: {', '.join(WORKLOADS)}")
    return [w for known, w in WORKLOADS.items() if not names or any(_means(name, known) for name in names)]


def _means(name: str, known: str) -> bool:
    """Whether a name is that of a workload or of its group."""
    return name in (known, known.split("/")[0])
