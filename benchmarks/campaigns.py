"""Labelling schemes played through on simulated and recorded crowds: ``python -m benchmarks.campaigns [NAME...]``.

Recorded crowds are looked for in ``CROWDRANK_DATA``. Tables go to ``docs/evidence/campaigns.md`` and pictures to
``docs/images``, from where the pages take them.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

ROOT = Path(__file__).parents[1]
SEEDS = 10
PAIR_SCHEMES = (
    ("random", "random"),
    ("each pair in turn", "40-overlap"),
    ("information", "information"),
    ("uncertainty", "uncertainty"),
)
GRADE_SCHEMES = ("single", "2-overlap", "3-overlap", "if-good-3", "good-till-bad", "information")


BEST = "p@1(relevant_from=2)"
"""Share of queries whose first item is the best one, where that has a grade of 2."""


@dataclass(frozen=True, kw_only=True)
class AtRandom:
    """Pairs drawn at random, whether they were judged already or not: what the others are compared with."""

    def propose(self, situation: Any) -> Any:
        """Return as many random pairs as the budget pays for."""
        from crowdrank.schemes.situation import WishList, candidate_pairs

        number, rng = situation.n_affordable, np.random.default_rng(situation.seed)
        left, right = candidate_pairs(situation, None, 0, rng)
        drawn = rng.integers(0, len(left), number)
        wanted = WishList(
            things={"left": left[drawn], "right": right[drawn]}, gain=np.ones(number), reasons=("drawn at random",),
            reason=np.zeros(number, np.int32), measure="nothing", before=None,
        )  # fmt: skip
        return wanted.requests(self, situation)


def scheme_of(name: str) -> Any:
    """Return a scheme by name, random pairs among them."""
    from crowdrank import registry

    return AtRandom() if name == "random" else registry.make("scheme", name)


@dataclass(frozen=True)
class Setting:
    """A crowd to play schemes on: what its curves are called, what is measured, and what plays one seed."""

    name: str
    title: str
    measures: tuple[str, ...]
    play: Callable[[int], dict[str, Any]]


def latent(noise: str) -> Callable[[int], dict[str, Any]]:
    """Graders of 19 items of each of 60 queries; four judgments an item may be bought."""

    def play(seed: int) -> dict[str, Any]:
        from crowdrank import registry, simulate

        truth = simulate.draw_truth(n_queries=60, n_items=19, seed=seed)
        pool = simulate.parse_noise(noise).pool(60, seed=seed)
        schemes = {name: registry.make("scheme", name) for name in (*GRADE_SCHEMES, "agreement", "pilot")}
        schemes["information about gains"] = registry.make("scheme", "information", {"about": "gain"})
        return {
            name: simulate.campaign(
                scheme, pool, truth, 4560, n_rounds=16, seed=seed, name=name, measures=("gain_error", "ndcg@10", "tau")
            )
            for name, scheme in schemes.items()
        }

    return play


def discriminating(seed: int) -> dict[str, Any]:
    """150 items of 10 queries; 40 annotators, a quarter guessing and one in twenty reversed; 250 pairs a round."""
    from crowdrank import simulate

    rng = np.random.default_rng(1000 + seed)
    items = simulate.draw_truth(n_queries=10, n_items=15, seed=seed).truth.items
    scores = rng.normal(0, 1.5, 150)
    slope = np.clip(rng.normal(1, 0.3, 40), 0.2, None)
    role = rng.permutation(40)
    slope[role[:10]] = 0
    slope[role[10:12]] *= -1
    played = {}
    for name, scheme, chosen in (
        ("random", "random", False),
        ("each pair in turn", "40-overlap", False),
        ("uncertainty", "uncertainty", False),
        ("information, as they come", "information", False),
        ("information, chosen", "information", True),
    ):
        crowd = simulate.SimulatedCrowd(
            simulate.PlackettLuce(slope), (items, scores), kind="preference", chosen=chosen, seed=seed
        )
        played[name] = simulate.campaign(
            scheme_of(scheme), crowd, (items, scores), 3500, n_rounds=14, seed=seed, name=name,
            measures=("tau",),
        )  # fmt: skip
    return played


def leaderboard(seed: int) -> dict[str, Any]:
    """Four leaderboards of 50 items, 100 annotators; is the top five, and the best item, the true one?"""
    from crowdrank import registry, simulate

    rng = np.random.default_rng(1000 + seed)
    items = simulate.draw_truth(n_queries=4, n_items=50, seed=seed).truth.items
    scores, slope = rng.normal(0, 1, 200), np.clip(rng.normal(1, 0.3, 100), 0.2, None)
    # 2 the best of each query, 1 the four next, 0 the others
    place = np.argsort(np.argsort(-scores.reshape(4, 50), axis=1), axis=1).ravel()
    relevant = np.select([place == 0, place < 5], [2.0, 1.0], 0.0)
    played = {}
    for name in ("random", "goal order", "goal top-5", "goal best"):
        scheme = AtRandom() if name == "random" else registry.make("scheme", "information", {"goal": name[5:]})
        crowd = simulate.SimulatedCrowd(simulate.PlackettLuce(slope), (items, scores), kind="preference", seed=seed)
        played[name] = simulate.campaign(
            scheme, crowd, (items, relevant), 4000, n_rounds=10, seed=seed, name=name, measures=("p@5", BEST),
        )  # fmt: skip
    return played


def recorded_grades(name: str) -> Callable[[int], dict[str, Any]]:
    """Recorded grades with gold; a class method is measured on the gold items."""

    def play(seed: int) -> dict[str, Any]:
        import crowdrank as cr
        from crowdrank import registry, simulate
        from crowdrank.aggregators import DawidSkene

        data = cr.datasets.load(name)
        budget = min(4 * data.judgments.n_items, len(data.judgments))
        return {
            scheme: simulate.campaign(
                registry.make("scheme", scheme), data.judgments, data.truth, budget, n_rounds=12, seed=seed,
                name=scheme, aggregator=DawidSkene(ordinal=True), measures=("log_loss", "accuracy"),
            )
            for scheme in (*GRADE_SCHEMES, "agreement")
        }  # fmt: skip

    return play


def recorded_preferences(name: str, share: float) -> Callable[[int], dict[str, Any]]:
    """Recorded preferences; measured against the consensus of all of them, since gold is the crowd's own or missing."""

    def play(seed: int) -> dict[str, Any]:
        import crowdrank as cr
        from crowdrank import simulate
        from crowdrank.aggregators import LatentScore

        judgments = cr.datasets.load(name).judgments
        if name == "llmfao":
            judgments = judgments.across_queries()
        whole = LatentScore().fit(judgments)
        truth = (judgments.items, whole.scores)
        budget = share * len(judgments)
        return {
            called: simulate.campaign(
                scheme_of(scheme), judgments, truth, budget, n_rounds=8, seed=seed, name=called,
                measures=("tau",),
            )
            for called, scheme in PAIR_SCHEMES
        }  # fmt: skip

    return play


SETTINGS = (
    Setting("profile", "simulated: biased graders", ("gain_error", "ndcg@10"), latent("profile()")),
    Setting("false-good", "simulated: a tenth much too good", ("gain_error", "ndcg@10"), latent("false_good()")),
    Setting("false-bad", "simulated: a quarter much too bad", ("gain_error", "ndcg@10"), latent("false_bad()")),
    Setting("pairs", "simulated: preferences", ("tau",), discriminating),
    Setting("leaderboard", "simulated: leaderboards", ("p@5", BEST), leaderboard),
    Setting(
        "trec-rf10-labels-full", "TREC, replayed", ("log_loss", "accuracy"), recorded_grades("trec-rf10-labels-full")
    ),
    Setting(
        "web-search-relevance5", "web search, replayed", ("log_loss", "accuracy"),
        recorded_grades("web-search-relevance5"),
    ),
    Setting("ukpconvarg1-crowd", "UKP arguments, replayed", ("tau",), recorded_preferences("ukpconvarg1-crowd", 0.4)),
    Setting("llmfao", "LLMFAO, replayed", ("tau",), recorded_preferences("llmfao", 0.6)),
    Setting("webis-rag-crowd", "RAG answers, replayed", ("tau",), recorded_preferences("webis-rag-crowd", 0.6)),
)  # fmt: skip


def curves(setting: Setting, n_seeds: int) -> pl.DataFrame:
    """Curves of all schemes over seeds."""
    tables = []
    for seed in range(n_seeds):
        for name, played in setting.play(seed).items():
            tables.append(played.curve.select(pl.lit(name).alias("scheme"), pl.lit(seed).alias("seed"), pl.all()))
    return pl.concat(tables)


def table(frame: pl.DataFrame, measure: str, n_columns: int = 4) -> list[str]:
    """Markdown: a scheme a line, the measure at some costs, with the standard deviation over seeds at the last."""
    rounds = frame["round"].max()
    assert isinstance(rounds, int)
    shown = sorted({max(1, round(rounds * (place + 1) / n_columns)) for place in range(n_columns)})
    costs = [frame.filter(pl.col("round") == number)["cost"].max() for number in shown]
    lines = ["| scheme | " + " | ".join(f"{cost:,.0f}" for cost in costs) + " | ends at |"]
    lines.append("|---" * (len(shown) + 2) + "|")
    for (name,), mine in frame.group_by("scheme", maintain_order=True):
        cells = []
        for number in shown:
            # a scheme that has stopped keeps what it has
            at = mine.filter(pl.col("round") <= number).sort("round").group_by("seed", maintain_order=True).last()
            spread = at[measure].std() or 0.0
            cells.append(f"{at[measure].mean():.3f} ± {spread:.3f}")
        end = mine.sort("round").group_by("seed").last()["cost"].mean()
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {end:,.0f} |")
    return lines


def main(names: Sequence[str]) -> None:
    """Play the settings that are named, or all."""
    from crowdrank.report import CampaignDisplay, save_display

    warnings.simplefilter("ignore")
    parts = ["# Labelling schemes, measured", "", "<!-- written by benchmarks/campaigns.py -->", ""]
    for setting in SETTINGS:
        kept = ROOT / "docs" / "evidence" / f"campaign-{setting.name}.csv"
        if not names or setting.name in names:
            begun = time.perf_counter()
            kept.parent.mkdir(exist_ok=True)
            frame = curves(setting, SEEDS)
            frame.with_columns(pl.selectors.float().round(4)).write_csv(kept)
            print(f"{setting.name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
        if not kept.exists():
            continue
        frame = pl.read_csv(kept)
        save_display(
            CampaignDisplay.from_curves(frame, measure=setting.measures[0]),
            ROOT / "docs" / "images" / f"campaign-{setting.name}.svg",
        )
        parts += [f"![{setting.title}, {setting.measures[0]}](../images/campaign-{setting.name}.svg)", ""]
        for measure in setting.measures:
            seeds = frame["seed"].n_unique()
            parts += [f"**{setting.title}**, {measure} after this many judgments ({seeds} seeds):", ""]
            parts += [*table(frame, measure), ""]
    (ROOT / "docs" / "evidence" / "campaigns.md").write_text("\n".join(parts))


if __name__ == "__main__":
    main(sys.argv[1:])
