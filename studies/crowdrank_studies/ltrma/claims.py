"""What became of the claims of Wu et al. on OHSUMED."""

from __future__ import annotations

import numpy as np

from crowdrank.protocols import Floats

from ..outcomes import Verdict
from .methods import BORDA, ML, PRINTED_D, PRINTED_ML, TRUTH, D, clear, difference_text
from .ohsumed_results import ALIKE, ERROR, MEASURES, SWAPS, TAU, Results

_MAX_POINTS_OFF = 1.5
"""Points within which a method counts as close to the truth."""

_NAMES = {SWAPS[0]: "2i + 1 swaps", SWAPS[1]: "swaps in proportion to the length"}


def verdicts(main: Results) -> list[Verdict]:
    """Return a verdict on each claim."""
    return [
        *(_close(main, swaps) for swaps in SWAPS),
        *(_joint_verdict(main, swaps) for swaps in SWAPS),
        *(_highest(main, swaps) for swaps in SWAPS),
        _expertise(main),
        *(_unified_verdict(main, swaps) for swaps in SWAPS),
    ]


def _rises(gains: dict[str, Floats]) -> bool:
    """Whether all measures rise, and one of them by more than chance."""
    rises = all(float(np.mean(gain)) > 0 for gain in gains.values())
    return rises and any(clear(gain) > 0 for gain in gains.values())


def _differences_text(values: dict[str, Floats]) -> str:
    """Differences by measure, in words."""
    return ", ".join(f"{measure} {difference_text(differences)}" for measure, differences in values.items())


def _close(main: Results, swaps: str) -> Verdict:
    """Whether the joint method is as good as the truth."""
    gaps = {measure: main.less(swaps, PRINTED_ML, TRUTH, measure) for measure in MEASURES}
    behind = {measure: main.less(swaps, PRINTED_D, TRUTH, measure) for measure in MEASURES}
    near = [abs(float(np.mean(gap))) <= _MAX_POINTS_OFF for gap in gaps.values()]
    return Verdict.of(
        f"figures 3(a)-(c), {_NAMES[swaps]}: LTRMA-ML is close to ListMLE on the truth",
        f"In points, LTRMA-ML as printed less the truth: {_differences_text(gaps)}; LTRMA-D as printed less the truth: "
        f"{_differences_text(behind)}.",
        reproduced=all(near),
        trend=all(float(np.mean(gaps[m])) > float(np.mean(behind[m])) for m in MEASURES),
    )


def _joint_verdict(main: Results, swaps: str) -> Verdict:
    """Whether the joint method beats the two stages."""
    gains = {measure: main.less(swaps, PRINTED_ML, PRINTED_D, measure) for measure in MEASURES}
    return Verdict.of(
        f"figures 3(a)-(c), {_NAMES[swaps]}: LTRMA-ML is significantly better than LTRMA-D",
        f"In points, LTRMA-ML less LTRMA-D, both as printed: {_differences_text(gains)}.",
        why=_mixing_words(main, swaps),
        reproduced=all(clear(gain) > 0 for gain in gains.values()),
        trend=_rises(gains),
    )


def _mixing_words(main: Results, swaps: str) -> str:
    """How far the printed chains come, in words."""
    tau = {name: main.mean(swaps, name, TAU) for name in (PRINTED_D, PRINTED_ML, D, BORDA)}
    return (
        f"Kendall's tau of the consensus with the truth is {', '.join(f'{name} {t:.2f}' for name, t in tau.items())}: "
        "500 swaps from a random start cannot sort 150 items, in either of the printed procedures."
    )


def _highest(main: Results, swaps: str) -> Verdict:
    """Whether the joint method has the highest MAP for every number of annotators."""
    rivals = {
        size: {name: main.mean(swaps, name, "MAP", size) for name in (PRINTED_ML, PRINTED_D, TRUTH)}
        for size in main.sizes
    }
    first = sum(figures[PRINTED_ML] == max(figures.values()) for figures in rivals.values())
    above = sum(figures[PRINTED_ML] > figures[PRINTED_D] for figures in rivals.values())
    by_size = "; ".join(
        f"G = {size}: {', '.join(f'{name} {value:.1f}' for name, value in figures.items())}"
        for size, figures in rivals.items()
    )
    over = main.less(swaps, PRINTED_ML, TRUTH, "MAP")
    return Verdict.of(
        f"figure 3(c), {_NAMES[swaps]}: LTRMA-ML has the highest MAP with any number of annotators",
        f"MAP of {by_size}; it is highest in {first} of {len(rivals)}. Less the truth: {difference_text(over)}.",
        reproduced=first == len(rivals),
        trend=above == len(rivals),
    )


def _expertise(main: Results) -> Verdict:
    """Whether the joint method knows the annotators better."""
    gains = {
        swaps: np.concatenate([main.less(swaps, PRINTED_D, PRINTED_ML, ERROR, size) for size in main.sizes])
        for swaps in SWAPS
    }
    by_swaps = []
    for swaps in SWAPS:
        errors = ", ".join(f"{name} {main.mean(swaps, name, ERROR):.3f}" for name in (PRINTED_D, PRINTED_ML, D, ML))
        alike = ", ".join(f"{name} {main.mean(swaps, name, ALIKE):.2f}" for name in (PRINTED_D, PRINTED_ML, D, ML))
        by_swaps.append(f"{_NAMES[swaps]}: error of theta {errors}; correlation {alike}")
    return Verdict.of(
        "figure 3(d): LTRMA-ML estimates expertise slightly better than LTRMA-D",
        f"With {'. With '.join(by_swaps)}.",
        why="Both printed procedures measure distances to rankings that are far from sorted; chains that continue "
        "from one iteration to the next find the dispersions with or without features.",
        reproduced=all(bool((gain > 0).all()) for gain in gains.values()),
        trend=all(float(np.mean(gain)) > 0 for gain in gains.values()),
    )


def _unified_verdict(main: Results, swaps: str) -> Verdict:
    """Whether the joint method is still better once both are sampled well."""
    gains = {measure: main.less(swaps, ML, D, measure) for measure in MEASURES}
    sampled = {measure: main.less(swaps, D, PRINTED_D, measure) for measure in MEASURES}
    plain = {measure: main.less(swaps, ML, BORDA, measure) for measure in MEASURES}
    return Verdict.of(
        f"section 5.5, {_NAMES[swaps]}: LTRMA-ML is better since it unifies truth and learning",
        f"With sound sampling in both, LTRMA-ML less LTRMA-D in points: {_differences_text(gains)}; less Borda: "
        f"{_differences_text(plain)}. "
        f"Sound sampling alone changes LTRMA-D by {_differences_text(sampled)}.",
        why="Features explain little of OHSUMED's grades, and nothing of the random order of equal ones, so they "
        "add little to what rankings say.",
        reproduced=all(clear(gain) > 0 for gain in gains.values()),
        trend=_rises(gains),
    )


def beside_in_words(main: Results, beside: Results) -> str:
    """Return how methods compare on both releases of the data."""
    differences = [
        f"{first} less {second}, {_NAMES[swaps]}, "
        f"{' and '.join(difference_text(release.less(swaps, first, second, 'nDCG@3')) for release in (main, beside))}"
        for swaps in SWAPS
        for first, second in ((PRINTED_ML, PRINTED_D), (ML, D))
    ]
    return f"In points of nDCG@3 on the release with 25 features and on that with 45: {'; '.join(differences)}."
