"""Preference and ranking methods on public sets beside peers: ``python -m benchmarks.real_preferences [SET ...]``.

The sets are looked for in ``CROWDRANK_DATA``; the peers are those of the ``bench`` extra. The figures of the sets named
(of all without a name) go to ``docs/evidence/preferences.csv``, and the page ``docs/evidence/preferences.md``, with the
sentences that follow from them, is made of that file.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from .peers import PREFERENCE_PEERS, RANKING_PEERS

EVIDENCE = Path(__file__).parents[1] / "docs" / "evidence"
N_DRAWS = 4000
LEVEL = 0.05
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

    methods: dict[str, Any] = {}
    for name in names("aggregator"):
        kinds = card("aggregator", name).kinds
        if name == "elo" and judgments.kind != "preference":
            continue  # the preferences within a grade or a ranking have no order in time
        if judgments.kind in kinds and (judgments.n_annotators or judgments.kind != "grade"):
            methods[name] = make("aggregator", name, seed=0)
        elif "preference" in kinds:
            methods[name] = FromPreferences(make("aggregator", name, seed=0))
    if not judgments.n_annotators:
        methods = {name: method for name, method in methods.items() if name not in NEED_ANNOTATORS}
    return methods | (_peers(judgments) if peers else {})


NEED_ANNOTATORS = ("crowd_agg", "crowd_bt", "em_elo", "multinomial_preference")


def _peers(judgments: Any) -> dict[str, Any]:
    """The peers' methods that take the judgments in reasonable time."""
    methods: dict[str, Any] = {peer.name: peer for peer in RANKING_PEERS if judgments.kind == "ranking"}
    preferences = judgments if judgments.kind == "preference" else judgments.as_preferences(ties=False)
    for peer in PREFERENCE_PEERS:
        slow = len(preferences) > MOST_ROWS.get(peer.name, len(preferences))
        if slow or (not judgments.n_annotators and "crowd-kit" in peer.name):
            continue
        if preferences is judgments:
            methods[peer.name] = peer
        elif peer.name != "evalica elo":
            methods[peer.name] = FromPreferences(peer)
    return methods


def measure(case: Set, peers: bool = True) -> list[dict[str, Any]]:
    """A row for each method on a set: its value with an interval, and how far it is ahead of what ``auto`` takes.

    Intervals are of a bootstrap over units, the same draws for all methods: queries against a truth, annotators for
    answers held out. That of the lead is corrected for the number of methods of its side, ours or the peers'.
    """
    import crowdrank as cr
    from crowdrank import datasets
    from crowdrank.api.aggregation import auto_method

    loaded = datasets.load(case.name)
    judgments = case.prepare(loaded.judgments)
    metrics = None if case.metric is None else [case.metric]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        comparison = cr.compare_methods(
            judgments, applicable(judgments, peers), loaded.truth if case.metric else None, metrics, progress=_progress
        )
        auto = auto_method(judgments).method
    figures = comparison.figures[case.metric or "pair_accuracy"]
    n_units = len(figures[auto].weight)
    counts = np.random.default_rng(0).multinomial(n_units, np.full(n_units, 1.0 / n_units), N_DRAWS)
    draws = {name: (counts @ one.sums) / np.maximum(counts @ one.weight, 1e-12) for name, one in figures.items()}
    theirs = {peer.name for peer in (*PREFERENCE_PEERS, *RANKING_PEERS)}
    rows = []
    for name, figure in figures.items():
        n_side = sum((other in theirs) == (name in theirs) for other in figures) - (name not in theirs)
        ends = np.quantile(draws[name], [0.5 * LEVEL, 1.0 - 0.5 * LEVEL])
        lead = np.quantile(draws[name] - draws[auto], 0.5 * LEVEL / max(n_side, 1))
        numbers = (figure.value, *ends, figure.value - figures[auto].value, lead)
        rows.append(
            {
                "set": case.name,
                "method": name,
                "peer": name in theirs,
                "auto": auto,
                "unit": comparison.unit,
                "n": n_units,
            }
            | {key: round(float(v), 4) for key, v in zip(NUMBERS, numbers, strict=True)}
        )
    return rows


NUMBERS = ("value", "lower", "upper", "lead", "lead_lower")


def _progress(done: int, of: int, what: str) -> None:
    """Say which fit is done."""
    sys.stderr.write(f"  {done} of {of}: {what}\n")


def table(figures: pl.DataFrame) -> str:
    """The table, methods down and sets across, what ``auto`` takes first."""
    from crowdrank.registry import names

    known = [*names("aggregator"), *(peer.name for peer in (*PREFERENCE_PEERS, *RANKING_PEERS))]
    measured = set(figures["method"])
    cells = {(row["set"], row["method"]): _cell(row) for row in figures.iter_rows(named=True)}
    chosen = {row["set"]: row["auto"] for row in figures.iter_rows(named=True)}
    cases = [case for case in SETS if case.name in chosen]
    lines = ["| Method | " + " | ".join(case.title for case in cases) + " |", "|---|" + "---|" * len(cases)]
    lines.append("| `auto` | " + " | ".join(f"`{chosen[case.name]}`" for case in cases) + " |")
    lines += [
        f"| {name} | " + " | ".join(cells.get((case.name, name), "–") for case in cases) + " |"
        for name in known if name in measured
    ]  # fmt: skip
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    """A value with its interval, which a single unit does not have; what ``auto`` takes is bold."""
    value, lower, upper = (f"{row[key]:.3f}".lstrip("0") for key in ("value", "lower", "upper"))
    value = f"**{value}**" if row["method"] == row["auto"] else value
    return f"{value} ({lower} to {upper})" if row["n"] > 1 else value


def claims(figures: pl.DataFrame) -> list[str]:
    """What the table shows, in words."""
    title = {case.name: case.title for case in SETS}
    tested = figures.filter(pl.col("n") > 1)
    n_sets, n_all = tested["set"].n_unique(), figures["set"].n_unique()
    sentences = []
    for peer, whom in ((False, "another of our methods"), (True, "a method of a peer")):
        side = tested.filter(pl.col("peer") == peer)
        ahead = side.filter(pl.col("lead_lower") > 0).sort("lead", descending=True)
        ahead = ahead.unique("set", keep="first", maintain_order=True)
        behind = [f"{title[r['set']]}: {r['lead']:.3f} behind `{r['method']}`" for r in ahead.iter_rows(named=True)]
        sentences.append(
            f"What `auto` takes is behind {whom} by more than a paired bootstrap interval, corrected for their number, "
            f"on {len(behind)} of {n_sets} sets" + (f" ({'; '.join(behind)})." if behind else ".")
        )
    ours, theirs = (
        figures.filter(pl.col("peer") == peer).group_by("set").agg(pl.col("value").max()) for peer in (False, True)
    )
    both = figures.filter(pl.col("method") == pl.col("auto")).select("set", "value")
    both = both.join(ours, on="set", suffix="_ours").join(theirs, on="set", suffix="_theirs")
    below = both.filter(pl.col("value") < pl.col("value_theirs"))
    sentences.append(
        f"The value of what `auto` takes is at least that of the best of the peers, chosen by this table, on "
        f"{len(both) - len(below)} of {len(both)} sets, and of the best of our own on "
        f"{len(both.filter(pl.col('value') >= pl.col('value_ours')))}."
    )
    alone = [title[name] for name in figures.filter(pl.col("n") == 1)["set"].unique(maintain_order=True)]
    if alone:
        sentences.append(f"{n_all - n_sets} sets are of one query and have no interval ({'; '.join(alone)}).")
    return sentences


def page(figures: pl.DataFrame) -> str:
    """The table, and what it shows."""
    return TEXT.format(claims="\n".join(f"- {one}" for one in claims(figures)), table=table(figures))


TEXT = """# Preferences and rankings, measured

Public sets, our defaults, seed 0, with peers below (evalica 0.4, choix 0.4, crowd-kit 1.4.2; each query fitted alone,
since they know none). Methods for preferences take grades and rankings through `as_preferences(ties=False)`. The table
and the sentences after the list are made by `python -m benchmarks.real_preferences`.

- nDCG@10: mean over queries against expert grades.
- tau: with the known order (dots, puzzle); for MIREX with an order that was made from this very crowd, so that
  learning quality only moves the result away from it.
- pairs: share of the gold winners agreed with, ties half. UKP's gold was estimated from this very crowd; LLMBar's is
  objective or by experts; PandaLM's is the majority of three people.
- held out: share of the preferences of the fifth left out that the other four fifths predict, models (LLMFAO) or
  systems (WMT13) over all queries.

What follows from the table, with intervals of 95 % of a paired bootstrap over queries, or over annotators for answers
held out; what `auto` takes is bold:

{claims}

{table}
"""


def main(names: Sequence[str]) -> None:
    """Measure the sets named, or all, and write the figures and the page."""
    store = EVIDENCE / "preferences.csv"
    figures = pl.read_csv(store) if store.exists() else pl.DataFrame()
    for case in SETS:
        if names and case.name not in names:
            continue
        sys.stderr.write(f"{case.name}\n")
        kept = figures.filter(pl.col("set") != case.name) if len(figures) else figures
        figures = pl.concat([kept, pl.DataFrame(measure(case))], how="diagonal_relaxed")
        figures.write_csv(store)
    (EVIDENCE / "preferences.md").write_text(page(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
