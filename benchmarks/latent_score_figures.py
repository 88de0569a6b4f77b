"""Pictures and tables of latent scores in simulations: ``python -m benchmarks.latent_score_figures``.

Crowds are drawn from the model itself, and from one that departs from it (see :mod:`benchmarks.latent_crowd`). Pairs of
items of one query are drawn from each fit; said is the mean probability that the fit gives to its own order, true the
share of pairs in which that order is right, and covered the share whose true difference of scores lies in the 90 %
interval.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .held_out import sigmoid
from .latent_crowd import Crowd, Design, draw

DOCS = Path(__file__).parents[1] / "docs"
SEEDS = range(6)
PER_ANNOTATOR = (10, 40, 150)
_PAIRS = 20_000
_NINETY = 1.6448536269514722
BLUE, ORANGE, GREEN, GREY = "#2b6ca3", "#c96a1b", "#3f8f5f", "#888888"


class Pairs(NamedTuple):
    """Pairs of items of a fit: probability given to the order found, whether it is right, whether covered."""

    said: Any
    right: Any
    covered: Any

    @classmethod
    def together(cls, each: list[Pairs]) -> Pairs:
        """Return the pairs of several fits."""
        return cls(*(np.concatenate(column) for column in zip(*each, strict=True)))


def pairs_of(crowd: Crowd, seed: int, *, rescale: bool = False) -> Pairs:
    """Return pairs of a fit to a crowd; with ``rescale`` the truth is brought to the scale of the fit first."""
    from scipy.special import ndtr

    from crowdrank.registry import make

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        consensus = make("aggregator", "latent_score").fit(crowd.judgments)
    items = consensus.items
    rng = np.random.default_rng([seed, 1])
    first = rng.integers(0, len(items), _PAIRS)
    start, stop = items.offsets[items.query[first]], items.offsets[items.query[first] + 1]
    second = start + (first - start + rng.integers(1, stop - start)) % (stop - start)
    gap, truth = consensus.scores[first] - consensus.scores[second], crowd.scores[first] - crowd.scores[second]
    deviation = np.array([
        np.sqrt(_variance(consensus.covariance[query], i, j))
        for query, i, j in zip(items.query[first], first - start, second - start, strict=True)
    ])  # fmt: skip
    if rescale:
        truth = truth * np.sqrt(np.mean(gap**2) / np.mean(truth**2))
    return Pairs(ndtr(np.abs(gap) / deviation), gap * truth > 0, np.abs(gap - truth) <= _NINETY * deviation)


def _variance(block: Any, i: int, j: int) -> float:
    """Variance of a difference."""
    return float(block[i, i] + block[j, j] - 2 * block[i, j])


def measured(design: Design, *, rescale: bool = False) -> Pairs:
    """Return the pairs of all seeds."""
    sys.stderr.write(f"  {design.kind}, {design.per_annotator} each, misspecified {design.misspecified}\n")
    return Pairs.together([pairs_of(draw(design, seed), seed, rescale=rescale) for seed in SEEDS])


CASES = (
    ("from the model", Design(), True),
    ("20 % guess, 10 % reversed", Design(guessing=0.2, reversed=0.1), True),
    ("not from the model", Design(misspecified=True), True),
)


def table(by_case: dict[tuple[str, str, int], Pairs]) -> str:
    """The table of calibration."""
    lines = ["| Crowd | Kind | Judgments each | 90 % intervals cover | order said right | order is right |"]
    lines.append("|---|---|--:|--:|--:|--:|")
    for (title, kind, each), pairs in by_case.items():
        cells = (pairs.covered.mean(), pairs.said.mean(), pairs.right.mean())
        shown = " | ".join(f"{value:.3f}"[1:] for value in cells)
        lines.append(f"| {title} | {kind}s | {each} | {shown} |")
    return "\n".join(lines) + "\n"


def calibration() -> dict[tuple[str, str, int], Pairs]:
    """All that is measured, by crowd, kind and judgments of each annotator."""
    by_case = {}
    for kind in ("preference", "grade"):
        for title, design, rescale in CASES:
            sizes = PER_ANNOTATOR if title == CASES[0][0] else (40,)
            for each in sizes:
                chosen = replace(design, kind=kind, per_annotator=each)
                by_case[title, kind, each] = measured(chosen, rescale=rescale)
    return by_case


FEW = (2, 5, 10, 40)


def few_judgments() -> str:
    """Kendall's tau of methods in crowds whose annotators judged little or much, as a table."""
    plain = {"preference": "bradley_terry", "grade": "mean_grade"}
    titles = [f"{name}, {crowd}" for name in ("latent_score", "plain") for crowd in ("clean", "bad")]
    lines = ["| Kind | Judgments each | " + " | ".join(titles) + " |", "|---|--:|" + "--:|" * len(titles)]
    for kind, rival in plain.items():
        for each in FEW:
            sys.stderr.write(f"  {kind}, {each} each\n")
            clean = Design(kind=kind, n_queries=10, n_items=20, n_annotators=3200 // each, per_annotator=each)
            crowds = (clean, replace(clean, guessing=0.2, reversed=0.2))
            cells = [_tau(method, design) for method in ("latent_score", rival) for design in crowds]
            lines.append(f"| {kind}s | {each} | " + " | ".join(f"{value:.2f}"[1:] for value in cells) + " |")
    return "\n".join(lines) + "\n"


GRADES_EACH = (3, 6, 12, 20)


def difficult_items() -> str:
    """Coverage of rank intervals and Kendall's tau where the noise of grades differs between items, as a table."""
    titles = [f"{what}, {model}" for what in ("cover", "tau") for model in ("items alike", "items differ")]
    lines = ["| Spread of the noise | Grades each | " + " | ".join(titles) + " |", "|--:|--:|" + "--:|" * len(titles)]
    for spread in (0.0, 0.4, 0.7, 1.0):
        for each in GRADES_EACH:
            sys.stderr.write(f"  noise of spread {spread}, {each} each\n")
            design = Design(
                kind="grade", n_queries=1, n_items=200, n_annotators=40, per_annotator=5 * each, item_noise=spread,
                spread=0.35,
            )  # fmt: skip
            figures = np.mean([_covered(draw(design, seed)) for seed in SEEDS], axis=0)
            lines.append(f"| {spread} | {each} | " + " | ".join(f"{value:.3f}"[1:] for value in figures) + " |")
    return "\n".join(lines) + "\n"


def _covered(crowd: Crowd) -> list[float]:
    """Share of true ranks in 90 % intervals without and with difficulties, then Kendall's tau of both."""
    import crowdrank as cr
    from crowdrank.registry import make

    rank, covered, taus = np.argsort(np.argsort(-crowd.scores)) + 1, [], []
    for difficulty in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            consensus = make("aggregator", "latent_score", {"difficulty": difficulty}).fit(crowd.judgments)
        shown = consensus.intervals(0.9).sort("item")
        inside = (rank >= shown["rank_lower"].to_numpy()) & (rank <= shown["rank_upper"].to_numpy())
        covered.append(float(inside.mean()))
        taus.append(cr.metrics.kendall_tau(crowd.scores, consensus.scores, consensus.items.query))
    return [*covered, *taus]


def _tau(method: str, design: Design) -> float:
    """Mean of Kendall's tau with the true scores over crowds."""
    import crowdrank as cr
    from crowdrank.registry import make

    each = []
    for seed in range(4):
        crowd = draw(design, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            consensus = make("aggregator", method).fit(crowd.judgments)
        each.append(cr.metrics.kendall_tau(crowd.scores, consensus.scores, consensus.items.query))
    return float(np.mean(each))


def draw_calibration(by_case: dict[tuple[str, str, int], Pairs]) -> Any:
    """Said against true, and how much the intervals cover."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([0.5, 1], [0.5, 1], color=GREY, linewidth=0.8)
    for kind, colour in (("preference", BLUE), ("grade", ORANGE)):
        pairs = by_case[CASES[0][0], kind, 40]
        edges = np.quantile(pairs.said, np.linspace(0, 1, 11))
        place = np.clip(np.searchsorted(edges, pairs.said) - 1, 0, 9)
        size = np.bincount(place, minlength=10)
        said, true = (np.bincount(place, values, 10) / size for values in (pairs.said, pairs.right))
        left.plot(said, true, "o-", color=colour, markersize=3.5, linewidth=1, label=f"{kind}s")
    left.set(xlabel="probability said of an order", ylabel="share in which it is right", title="40 judgments each")
    left.legend(frameon=False)
    right.axhline(0.9, color=GREY, linewidth=0.8)
    for kind, colour in (("preference", BLUE), ("grade", ORANGE)):
        covered = [by_case[CASES[0][0], kind, each].covered.mean() for each in PER_ANNOTATOR]
        right.plot(PER_ANNOTATOR, covered, "o-", color=colour, markersize=3.5, linewidth=1, label=f"{kind}s")
    right.set(xscale="log", xlabel="judgments of each annotator", ylabel="share within", ylim=(0.7, 1.0))
    right.set(title="90 % intervals of differences")
    right.set_xticks(PER_ANNOTATOR, [str(each) for each in PER_ANNOTATOR])
    right.minorticks_off()
    return figure


def draw_answers() -> Any:
    """How annotators of different discrimination grade an item of some score."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 2.4), layout="constrained")
    score = np.linspace(-4, 4, 25)
    cuts = np.array([-1.5, 0.0, 1.5])
    shades = ("#bcd4e8", "#7fb0d3", "#3f84b5", "#174a73")
    panels = (("alpha = 1.5, able", 1.5), ("alpha = 0.4, weak", 0.4), ("alpha = -1, reversed", -1.0))
    for axes, (title, alpha) in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
        below = np.vstack([0 * score, sigmoid(cuts[:, None] - alpha * score), 0 * score + 1])
        axes.stackplot(score, np.diff(below, axis=0), colors=shades, labels=["0", "1", "2", "3"])
        axes.set(title=title, xlabel="score of the item", xlim=(-4, 4), ylim=(0, 1))
    figure.axes[0].set_ylabel("share of each grade")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], title="grade", frameon=False, loc="outside right center")
    return figure


def save(figure: Any, name: str) -> None:
    """Write a picture that is the same, byte for byte, whenever it is made."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "crowdrank", "font.size": 9}):
        figure.savefig(DOCS / name, metadata={"Date": None, "Creator": None}, bbox_inches=None)


def put(name: str, text: str) -> None:
    """Put a table between its marks in the page."""
    page = DOCS / "evidence" / "latent-score-simulated.md"
    before, rest = page.read_text().split(f"<!-- {name}: made by python -m benchmarks.latent_score_figures -->\n")
    after = rest.split(f"<!-- end of {name} -->")[1]
    mark = f"<!-- {name}: made by python -m benchmarks.latent_score_figures -->"
    page.write_text(f"{before}{mark}\n\n{text}\n<!-- end of {name} -->{after}")


if __name__ == "__main__":
    save(draw_answers(), "latent-score-answers.svg")
    put("difficulty", difficult_items())
    put("few judgments", few_judgments())
    measurements = calibration()
    save(draw_calibration(measurements), "latent-score-calibration.svg")
    put("calibration", table(measurements))
