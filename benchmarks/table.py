"""The workloads by name."""

from __future__ import annotations

from . import bradley_terry, elo, first_call, imports, load_preferences, majority_vote, ndcg
from .workload import Workload

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        bradley_terry.WORKLOAD,
        elo.WORKLOAD,
        majority_vote.WORKLOAD,
        ndcg.WORKLOAD,
        load_preferences.WORKLOAD,
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
