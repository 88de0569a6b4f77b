"""What became of the claims of Kumar and Lease."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crowdrank.protocols import Floats

from ..outcomes import Verdict
from ..paired import clear, difference_text
from .crowds import FIXED, IMPROVED, PAPER
from .kumar_figures import CLEAN, MEAN, TABLE_1
from .noise_results import Results

_NONE = "none"
_MAX_POINTS_OFF = 2.0
"""Points in per cent within which figures count as the same."""

_MIN_EXTRA_GRADES = 1600
"""Single labelling is said to be ahead from this budget on."""

_HALF_WAY = 70
"""Label accuracy that parts the points of figure 1."""

_POOR = ("N(0.4,0.2)", "lnN(0.4,0.2)", "U(0.2,0.6)")
"""Noises of mean accuracy 0.4."""


def verdicts(main: Results, others: Mapping[str, Results]) -> list[Verdict]:
    """Return a verdict on each claim; ``others`` are the other data sets by name."""
    of_main = [
        _clean(main),
        _rank_figures(main),
        _label_figures(main),
        _single_ahead(main, "MV"),
        _single_ahead(main, "NB given"),
        _single_ahead(main, "NB learned"),
        _bayes_ahead(main),
        _little_impact(main),
        _linear(main),
        _fix(main),
    ]
    return [*of_main, _other_sets_verdict(main, others)] if others else of_main


def _clean(main: Results) -> Verdict:
    """Whether single labelling without noise rises as printed."""
    ours = {extra: main.mean(_NONE, "SL", str(extra), "rank") for extra in CLEAN}
    first, last = ours[0], ours[max(ours)]
    return Verdict.of(
        "table 1: without noise, more items raise rank accuracy from 30.9 to 38.3 (scattered items, converged fit)",
        f"nDCG@10 is {', '.join(f'{value:.1f}' for value in ours.values())}.",
        why="800 clean grades are enough for a linear ranker on scaled features, so more items add little; the "
        "paper's learner seems under-fitted.",
        reproduced=all(abs(ours[extra] - CLEAN[extra]) <= _MAX_POINTS_OFF for extra in ours),
        trend=last - first >= 0.5 * (CLEAN[max(ours)] - CLEAN[0]),
    )


def _gaps(main: Results, methods: dict[str, str], measure: str) -> dict[str, float]:
    """Mean absolute difference of each method's figures from the printed ones."""
    gaps = {}
    for method, column in methods.items():
        cells = [(noise, str(extra)) for noise in main.noises for extra in main.extras(method)]
        printed = [TABLE_1[noise, f"{column} {measure}", extra] for noise, extra in cells if extra != "0"]
        ours = [main.mean(noise, method, extra, measure) for noise, extra in cells if extra != "0"]
        gaps[method] = float(np.mean(np.abs(np.subtract(ours, printed))))
    return gaps


def _rank_figures(main: Results) -> Verdict:
    """Whether the rank accuracies are the printed ones."""
    gaps = _gaps(main, {"SL": "SL", "MV": "MV", "NB given": "NB", "NB learned": "NB"}, "rank")
    ours, printed = [], []
    for noise in main.noises:
        for method, column in (("SL", "SL"), ("MV", "MV"), ("NB given", "NB")):
            ours.append(main.mean(noise, method, MEAN, "rank"))
            printed.append(TABLE_1[noise, f"{column} rank", MEAN])
    alike, higher = float(np.corrcoef(ours, printed)[0, 1]), int(np.sum(np.greater(ours, printed)))
    return Verdict.of(
        "table 1: rank accuracies",
        f"Mean absolute difference in points: {', '.join(f'{m} {gap:.1f}' for m, gap in gaps.items())}. Means over "
        f"L, of which {higher} of {len(ours)} are higher than printed, correlate with the printed ones at {alike:.2f}.",
        reproduced=max(gaps.values()) <= _MAX_POINTS_OFF,
        trend=alike >= 0.5,
    )


def _label_figures(main: Results) -> Verdict:
    """Whether the label accuracies are the printed ones."""
    gaps = _gaps(main, {"MV": "MV", "NB given": "NB", "NB learned": "NB"}, "label")
    last = str(max(main.budgets))
    example = ""
    if "U(0.2,0.6)" in main.noises:
        ours, printed = main.mean("U(0.2,0.6)", "MV", last, "label"), TABLE_1["U(0.2,0.6)", "MV label", last]
        example = f" With U(0.2,0.6) and nine grades per item MV has {ours:.1f}, printed {printed:.1f}."
    end = {method: main.mean("N(0.7,0.2)", method, last, "label") for method in ("NB given", "NB learned")}
    return Verdict.of(
        "table 1: label accuracies of MV and NB",
        f"Mean absolute difference in points: {', '.join(f'{m} {gap:.1f}' for m, gap in gaps.items())}.{example} The "
        f"last figure of NB with N(0.7,0.2) is {' and '.join(f'{v:.1f}' for v in end.values())}, printed "
        f"{TABLE_1['N(0.7,0.2)', 'NB label', last]:.1f}.",
        why="Errors spread evenly over the other grades, as the text says, and a mean accuracy above 1/3 make MV "
        "rise with the number of grades, but with a mean of 0.4 the printed figures fall; that would happen if "
        "wrong grades coincided. With two grades MV must have the mean accuracy, but the printed figure differs.",
        reproduced=max(gaps.values()) <= _MAX_POINTS_OFF,
        trend=max(gaps.values()) <= 3 * _MAX_POINTS_OFF,
    )


def _single_ahead(main: Results, method: str) -> Verdict:
    """Whether single labelling ranks better than a consensus from 1600 further grades on."""
    least = _MIN_EXTRA_GRADES if max(main.budgets) >= _MIN_EXTRA_GRADES else 1
    overall = main.difference("SL", method, least=least)
    by_noise = {noise: main.difference("SL", method, noise=noise, least=least) for noise in main.noises}
    ahead = sum(float(np.mean(values)) > 0 for values in by_noise.values())
    differences = ", ".join(f"{noise} {difference_text(values)}" for noise, values in by_noise.items())
    return Verdict.of(
        f"SL outperforms {method.replace('NB', 'NB with accuracies')} from L = {least} on (scattered items, converged "
        "fit)",
        f"SL less {method} in nDCG@10 is {difference_text(overall)} over all noises: {differences}.",
        reproduced=clear(overall) > 0 and ahead == len(by_noise),
        trend=clear(overall) > 0 or (float(np.mean(overall)) > 0 and ahead == len(by_noise)),
        decided=clear(overall) != 0,
    )


def _bayes_ahead(main: Results) -> Verdict:
    """Whether naive Bayes beats majority vote."""
    given, learned = main.difference("NB given", "MV"), main.difference("NB learned", "MV")
    label = main.difference("NB learned", "MV", measure="label")
    return Verdict.of(
        "NB typically outperforms MV",
        f"In nDCG@10 NB is ahead by {difference_text(given)} with accuracies given and {difference_text(learned)} with "
        "learned ones, in "
        f"label accuracy by {difference_text(label)} (learned).",
        reproduced=clear(given) > 0 and clear(learned) > 0,
        trend=float(np.mean(given)) > 0 and float(np.mean(label)) > 0,
    )


def _little_impact(main: Results) -> Verdict:
    """Whether the kind of distribution matters little beside its mean."""
    means = {noise: main.mean(noise, "SL", MEAN, "rank") for noise in main.noises}
    poor = [means[noise] for noise in _POOR if noise in means]
    best = max(means.values())
    width, depth = (max(poor) - min(poor), best - float(np.mean(poor))) if poor else (0.0, 0.0)
    return Verdict.of(
        "noise distributions have little impact on rank accuracy, their level has a clear one",
        f"Mean nDCG@10 of SL over L: {', '.join(f'{noise} {value:.1f}' for noise, value in means.items())}. The three "
        f"distributions of mean 0.4 differ by {width:.1f} points, and lie {depth:.1f} below the best.",
        reproduced=len(poor) > 1 and width < 0.5 * depth,
        trend=len(poor) > 1 and width < depth,
    )


def _linear(main: Results) -> Verdict:
    """Whether label accuracy predicts rank accuracy."""
    of = {method: float(np.corrcoef(*main.points(method))[0, 1]) for method in PAPER[1:]}
    together = np.hstack([main.points(method) for method in PAPER[1:]])
    with_single = np.hstack([main.points(method) for method in PAPER])
    consensus, everything = (float(np.corrcoef(points)[0, 1]) for points in (together, with_single))
    low, high = (_slope(together[:, side]) for side in (together[0] <= _HALF_WAY, together[0] > _HALF_WAY))
    label = {method: main.mean("N(0.7,0.2)", method, str(max(main.budgets)), "label") for method in PAPER}
    rank = {method: main.mean("N(0.7,0.2)", method, str(max(main.budgets)), "rank") for method in PAPER}
    return Verdict.of(
        "figure 1: label accuracy and rank accuracy are strongly linear",
        f"Correlation over noises and budgets: {', '.join(f'{m} {r:.2f}' for m, r in of.items())}, together "
        f"{consensus:.2f}, with SL {everything:.2f}. Ten points of label accuracy are worth {low:.1f} below "
        f"{_HALF_WAY} % and {high:.1f} above. With N(0.7,0.2) and the largest L, SL ranks at {rank['SL']:.1f} with "
        f"{label['SL']:.0f} % right labels, NB given at {rank['NB given']:.1f} with {label['NB given']:.0f} %.",
        reproduced=consensus >= 0.9 and high >= 0.5 * low,
        trend=consensus >= 0.6,
    )


def _slope(points: Floats) -> float:
    """Points of rank accuracy for ten points of label accuracy, 0 where there are too few to tell."""
    return 10 * float(np.polyfit(points[0], points[1], 1)[0]) if points.shape[1] > 2 else 0.0


def _fix(main: Results) -> Verdict:
    """Whether exchanging grades of adversarial annotators helps little."""
    single, vote = (main.difference(fixed, plain) for fixed, plain in zip(FIXED, ("SL", "MV"), strict=True))
    most = max(float(np.mean(single)), float(np.mean(vote)))
    label = main.difference(FIXED[1], "MV", measure="label")
    poor = [noise for noise in _POOR if noise in main.noises]
    differences = ", ".join(
        f"{noise} {difference_text(main.difference(FIXED[0], 'SL', noise=noise))}" for noise in poor
    )
    return Verdict.of(
        "a random other grade in place of one by an annotator below 1/3 has little benefit",
        f"It changes nDCG@10 of SL by {difference_text(single)} and of MV by {difference_text(vote)}, label accuracy "
        f"of MV by {difference_text(label)}; for SL by noise: {differences}. It assumes that accuracies are known; "
        f"naive Bayes, given them too, is at {difference_text(main.difference('NB given', FIXED[1]))} against the "
        "fixed MV.",
        reproduced=most <= 1.0,
        trend=most <= _MAX_POINTS_OFF,
    )


def improved_note(main: Results) -> str:
    """Return whether single labelling is best once all methods know the same, which the paper does not ask."""
    gains = {method: main.difference(method, "SL") for method in IMPROVED}
    known = "SL given, expected grade"
    against = {method: main.difference(known, method) for method in ("NB given", "NB given, expected grade")}
    gains_text = ", ".join(f"{method} {difference_text(values)}" for method, values in gains.items())
    return Verdict.of(
        "coverage beats consensus, where both know the accuracies and learn expected grades",
        f"SL improved in this way less NB given is {difference_text(against['NB given'])}, less NB given with "
        f"expected grades {difference_text(against['NB given, expected grade'])}. Gain in nDCG@10 over plain SL: "
        f"{gains_text}.",
        reproduced=all(clear(values) > 0 for values in against.values()),
        trend=all(float(np.mean(values)) > 0 for values in against.values()),
    ).note


def _other_sets_verdict(main: Results, others: Mapping[str, Results]) -> Verdict:
    """Whether the other data sets tell the same story."""
    pairs = [("SL", "MV"), ("SL", "NB given"), ("SL", "NB learned"), ("NB given", "MV")]
    differences, opposed = [], 0
    for first, second in pairs:
        of_main, *rest = (data.difference(first, second, least=_MIN_EXTRA_GRADES) for data in (main, *others.values()))
        opposed += sum(clear(of_main) * clear(one) < 0 for one in rest)
        differences.append(f"{first} less {second} {', '.join(map(difference_text, [of_main, *rest]))}")
    return Verdict.of(
        "results are similar on other LETOR collections",
        f"On {', '.join(['letor-ohsumed', *others])}: {'; '.join(differences)}.",
        reproduced=False,
        trend=not opposed,
        why="MQ2007 is run on the ranks by its rankers, not on the features of LETOR.",
    )
