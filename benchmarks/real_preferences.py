"""Preference and ranking methods on public sets, peers beside them: ``python -m benchmarks.real_preferences``.

The sets are looked for in ``CROWDRANK_DATA``; the peers are those of the ``bench`` extra. The table goes to
``docs/evidence/preferences.md``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .peers import PREFERENCE_PEERS, RANKING_PEERS

ROOT = Path(__file__).parents[1]
MOST_ROWS = {"crowd-kit NoisyBradleyTerry": 100_000}
"""Peers that would take hours on more preferences."""


@dataclass(frozen=True)
class Set:
    """A public set: what its column is called, the measure, and what is done to its judgments first.

    Without a metric, methods are judged on answers held out from them.
    """

    name: str
    title: str
    metric: str | None
    prepare: Callable[[Any], Any] = lambda judgments: judgments


SETS = (
    Set("trec-rf10-labels-full", "TREC, nDCG@10", "ndcg@10"),
    Set("trec-rf10-crowd-gold", "TREC gold part, nDCG@10", "ndcg@10"),
    Set("letor-mq2008-agg", "MQ2008-agg, nDCG@10", "ndcg@10"),
    Set("mirex2005-crowd", "MIREX, tau (crowd's own)", "tau"),
    Set("ukpconvarg1-crowd/pairs", "UKP, pairs (crowd's own)", "preference_accuracy"),
    Set("llmbar-judges", "LLMBar, pairs", "preference_accuracy"),
    Set("pandalm-testset/judges", "PandaLM judges, pairs", "preference_accuracy"),
    Set("preflib/dots", "dots, tau", "tau"),
    Set("preflib/puzzle", "puzzle, tau", "tau"),
    Set("llmfao", "LLMFAO, held out", None, lambda judgments: judgments.across_queries()),
    Set("wmt13-fr-en-rankings", "WMT13, held out", None, lambda judgments: judgments.across_queries()),
)


@dataclass(frozen=True)
class FromPreferences:
    """A method for preferences that takes grades or rankings, by turning them into preferences first."""

    method: Any
    kinds: ClassVar[tuple[str, ...]] = ("grade", "ranking")

    def scores(self, judgments: Any) -> Any:
        return self._fit(judgments).scores

    def fit(self, judgments: Any) -> Any:
        return self._fit(judgments)

    def _fit(self, judgments: Any) -> Any:
        return self.method.fit(judgments.as_preferences(ties=False))


def applicable(judgments: Any, peers: bool = True) -> dict[str, Any]:
    """Every method that takes the judgments, or the preferences in them, by name; then the peers' methods."""
    from crowdrank.registry import card, make, names

    found: dict[str, Any] = {}
    for name in names("aggregator"):
        kinds = card("aggregator", name).kinds
        if name == "elo" and judgments.kind != "preference":
            continue  # the preferences within a grade or a ranking have no order in time
        if judgments.kind in kinds and (judgments.n_annotators or judgments.kind != "grade"):
            found[name] = make("aggregator", name, seed=0)
        elif "preference" in kinds:
            found[name] = FromPreferences(make("aggregator", name, seed=0))
    if not judgments.n_annotators:
        found = {name: method for name, method in found.items() if name not in NEED_ANNOTATORS}
    return found | (_peers(judgments) if peers else {})


NEED_ANNOTATORS = ("crowd_agg", "crowd_bt", "em_elo", "multinomial_preference")


def _peers(judgments: Any) -> dict[str, Any]:
    """The peers' methods that take the judgments in reasonable time."""
    found: dict[str, Any] = {peer.name: peer for peer in RANKING_PEERS if judgments.kind == "ranking"}
    preferences = judgments if judgments.kind == "preference" else judgments.as_preferences(ties=False)
    for peer in PREFERENCE_PEERS:
        slow = len(preferences) > MOST_ROWS.get(peer.name, len(preferences))
        if slow or (not judgments.n_annotators and "crowd-kit" in peer.name):
            continue
        if preferences is judgments:
            found[peer.name] = peer
        elif peer.name != "evalica elo":
            found[peer.name] = FromPreferences(peer)
    return found


def column(case: Set, peers: bool = True) -> dict[str, float]:
    """The figure of each method on a set."""
    import crowdrank as cr
    from crowdrank import datasets

    loaded = datasets.load(case.name)
    judgments = case.prepare(loaded.judgments)
    metrics = None if case.metric is None else [case.metric]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cr.compare(
            judgments, applicable(judgments, peers), loaded.truth if case.metric else None, metrics, progress=_progress
        )
    return dict(zip(found["method"], found[case.metric or "pair_accuracy"], strict=True))


def _progress(done: int, of: int, what: str) -> None:
    """Say which fit is done."""
    sys.stderr.write(f"  {done} of {of}: {what}\n")


def page(columns: dict[str, dict[str, float]]) -> str:
    """The table, methods down and sets across."""
    from crowdrank.registry import names

    methods = [name for name in names("aggregator") if any(name in column for column in columns.values())]
    methods += [peer.name for peer in (*PREFERENCE_PEERS, *RANKING_PEERS)]
    lines = ["| Method | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name in methods:
        cells = [f"{column[name]:.3f}".lstrip("0") if name in column else "–" for column in columns.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return TEXT.format(table="\n".join(lines))


TEXT = """# Preferences and rankings, measured

Public sets, our defaults, seed 0, with peers below (evalica 0.4, choix 0.4, crowd-kit 1.4.2; each query fitted alone,
since they know none). Methods for preferences take grades and rankings through `as_preferences(ties=False)`.

- nDCG@10: mean over 100 (TREC) or 784 (MQ2008-agg) queries against expert grades, 95 % intervals about ± .04 and ± .02.
- tau: with the known order (dots, puzzle); for MIREX with an order that was made from this very crowd.
- pairs: share of the gold winners agreed with, ties half. UKP's gold was estimated from this very crowd; LLMBar's is
  objective or by experts; PandaLM's is the majority of three people.
- held out: share of the preferences of the fifth left out that the other four fifths foretell, models (LLMFAO) or
  systems (WMT13) over all queries.

LLMBar has 65 judges of very different ability and two items a query: `em_elo` and `multinomial_preference`, which learn
whom to heed or reverse, are far ahead of counting, while the ridge of `crowd_bt` hides who is able where each query has
one pair. On MIREX, whose order the crowd itself made, learning quality only moves the result away from it. On grades,
methods that keep the levels (`dawid_skene`, `mace`) beat those that only see who stood above whom. Items that won or
lost everything make evalica's Bradley-Terry, which has no ridge, fall behind where items have few judgments.

{table}
"""


if __name__ == "__main__":
    (ROOT / "docs" / "evidence" / "preferences.md").write_text(page({case.title: column(case) for case in SETS}))
