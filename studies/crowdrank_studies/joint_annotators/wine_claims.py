"""What became of what Gupta and Narayanan say of wines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crowdrank.protocols import Floats

from ..outcomes import Verdict
from .cellars import limits
from .gupta_figures import N_ANNOTATORS, SINGLE_RANKERS, TABLE_1, TABLE_2
from .schemes import BORDA, EFFECTS, HINGE, IAM, JAM, MV, SINGLE, UNFOLDED, VOTES, VRJAM, mean_text, steps_text

_MAX_POINTS_OFF = 0.2
"""Points in per cent within which accuracies count as the same."""

_NEAR_RATE = 0.005
_MAX_STEP_POINTS = 0.1

_RATES = np.arange(1, N_ANNOTATORS + 1) / 20


class Results:
    """What all cells found, by part, colour of the wine, place on the x axis and scheme."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, float, str], list[Mapping[str, Any]]] = {}

    def add(self, part: str, colour: str, at: float, scheme: str, cell: Mapping[str, Any]) -> None:
        """Add a cell."""
        self._found.setdefault((part, colour, at, scheme), []).append(cell)

    def places(self, part: str, colour: str) -> list[float]:
        """Return the places on the x axis."""
        return sorted({at for one, wine, at, _ in self._found if (one, wine) == (part, colour)})

    def values(self, part: str, colour: str, at: float, scheme: str, measure: str = "pairs") -> tuple[float, ...]:
        """Return the figure of each repetition; none where the scheme does not have it."""
        figures = (cell[measure] for cell in self._found[part, colour, at, scheme])
        return tuple(value for value in figures if value is not None)

    def mean(self, part: str, colour: str, at: float, scheme: str, measure: str = "pairs") -> float:
        """Return the mean over repetitions."""
        return float(np.mean(self.values(part, colour, at, scheme, measure)))

    def curve(self, part: str, colour: str, scheme: str, measure: str = "pairs") -> Floats:
        """Return the means along the x axis."""
        return np.array([self.mean(part, colour, at, scheme, measure) for at in self.places(part, colour)])

    def flips(self, part: str, colour: str, at: float, scheme: str) -> Floats:
        """Return the flip rates, a row for each repetition."""
        return np.array([cell["flips"] for cell in self._found[part, colour, at, scheme]])


def verdicts(
    results: Results, n_pairs: Mapping[str, int], singles: Sequence[float], steps: Mapping[str, Sequence[Any]]
) -> list[Verdict]:
    """Return a verdict on each claim.

    ``n_pairs`` are all there are, ``singles`` the rankers of one annotator, ``steps`` what printed steps lead to.
    """
    return [
        _rates_found(results, n_pairs["red"]),
        _same_rates(results),
        *(_accuracies(results, colour, n_pairs[colour], steps[colour]) for colour in TABLE_2),
        _lead_verdict(results),
        _weak_rankers(results, singles, steps["red"]),
        _no_gain(results),
        _noise_verdict(results),
        _convergence_verdict(results),
        _annotators_verdict(results),
        _baselines(results),
        _same_at_three(results),
        _hinge_verdict(results),
        _vrjam_verdict(results),
    ]


def _list(values: Sequence[float] | Floats, digits: int = 1) -> str:
    """Numbers beside each other."""
    return ", ".join(f"{value:.{digits}f}" for value in values)


def _rates_found(results: Results, n_pairs: int) -> Verdict:
    """Whether table 1 has the flip rates that are found."""
    ours, printed = results.flips("table", "red", 1, JAM).mean(axis=0), np.array(TABLE_1[JAM])
    white = results.flips("table", "white", 1, JAM).mean(axis=0)
    error = float(np.sqrt(0.3 * 0.7 / n_pairs))
    return Verdict.of(
        "table 1: the noisier an annotator, the higher the flip rate that JAM finds",
        f"Red wine: {_list(ours, 3)}, printed {_list(printed, 3)}, true {_list(_RATES, 2)}; white wine: "
        f"{_list(white, 3)}. Ours miss the true rates by {np.abs(ours - _RATES).max():.4f} at most, the printed ones "
        f"by {np.abs(printed - _RATES).max():.3f}.",
        why=f"A rate found from {n_pairs:,} pairs has a standard error below {error:.4f}, so the printed ones come "
        "from fewer pairs, or from an optimiser that was stopped early.",
        reproduced=bool(np.abs(ours - printed).max() <= _NEAR_RATE),
        trend=bool((np.diff(ours) > 0).all() and (np.diff(white) > 0).all()),
    )


def _same_rates(results: Results) -> Verdict:
    """Whether VRJAM has the same rates on average."""
    gaps = {
        colour: float(np.abs(np.subtract(*(results.flips("table", colour, 1, one) for one in (JAM, VRJAM)))).max())
        for colour in TABLE_2
    }
    return Verdict.of(
        "table 1: the mean rates of VRJAM are close to those of JAM",
        f"They differ by {gaps['red']:.4f} at most on red wine and {gaps['white']:.4f} on white, in print by 0.001.",
        reproduced=max(gaps.values()) <= _NEAR_RATE,
        trend=max(gaps.values()) <= 4 * _NEAR_RATE,
    )


def _accuracies(results: Results, colour: str, n_pairs: int, steps: Sequence[Any]) -> Verdict:
    """Whether table 2 has the accuracies of MV and the joint models."""
    printed = TABLE_2[colour]
    ours = {scheme: results.values("table", colour, 1, scheme) for scheme in (MV, JAM, VRJAM)}
    exact, best = limits(_RATES)
    error = 100 * float(np.sqrt(exact / 100 * (1 - exact / 100) / n_pairs))
    figures = ", ".join(f"{scheme} {mean_text(values, 2)} ({printed[scheme]})" for scheme, values in ours.items())
    gaps = [abs(float(np.mean(values)) - printed[scheme]) for scheme, values in ours.items()]
    votes, effects = (results.mean("table", colour, 1, scheme) for scheme in (VOTES, EFFECTS))
    return Verdict.of(
        f"table 2: accuracies of MV, JAM and VRJAM on {colour} wine",
        f"Ours with the printed ones in brackets: {figures}; votes alone reach {votes:.2f}, "
        f"item effects {effects:.2f}.",
        why=f"A majority of such annotators is right on {exact:.2f} % of pairs, exactly: the printed {printed[MV]} is "
        f"{abs(printed[MV] - exact) / error:.0f} standard errors of {n_pairs:,} pairs away. Votes alone reach "
        f"{best:.2f} % where the rates are known, and the printed JAM is below that. So the printed figures are "
        f"not of all pairs, or not of the best fit. {steps_text(steps, printed)}",
        reproduced=max(gaps) <= _MAX_POINTS_OFF,
        trend=float(np.mean(ours[JAM])) > float(np.mean(ours[MV])),
    )


def _lead_verdict(results: Results) -> Verdict:
    """Whether the joint models are ahead of both baselines."""
    by_colour, ahead = [], True
    for colour in TABLE_2:
        joint = min(results.mean("table", colour, 1, scheme) for scheme in (JAM, VRJAM))
        others = {scheme: results.mean("table", colour, 1, scheme) for scheme in (MV, IAM)}
        ahead &= joint > max(others.values())
        by_colour.append(f"{colour} wine: at least {joint:.2f} against MV {others[MV]:.2f} and IAM {others[IAM]:.2f}")
    return Verdict.of(
        "table 2: JAM and VRJAM outperform MV and IAM", f"Right pairs: {'; '.join(by_colour)}.", reproduced=ahead
    )


def _weak_rankers(results: Results, singles: Sequence[float], steps: Sequence[Any]) -> Verdict:
    """Whether rankers of single annotators are weak."""
    ours = {colour: results.mean("table", colour, 1, IAM) for colour in TABLE_2}
    low, high = SINGLE_RANKERS
    stepped = [value for cell in steps for value in cell[SINGLE]]
    explained = min(stepped) <= low and max(stepped) >= high
    return Verdict.of(
        "section 4.1.1: IAM is poor, between its best and its worst annotator's ranker",
        f"IAM reaches {ours['red']:.1f} on red wine (printed {TABLE_2['red'][IAM]}) and {ours['white']:.1f} on white "
        f"({TABLE_2['white'][IAM]}); rankers of single annotators reach {min(singles):.1f} to {max(singles):.1f} "
        f"(printed {low} to {high}).",
        why="With features on one scale and weights found exactly, the ranker of every annotator comes near what a "
        "linear ranker of the truth can do. By gradient steps on raw features from random starts they reach "
        f"{min(stepped):.1f} to {max(stepped):.1f}, and IAM {min(min(cell[IAM]) for cell in steps):.1f} to "
        f"{max(max(cell[IAM]) for cell in steps):.1f}: the printed optimiser {'can' if explained else 'cannot'} "
        "explain those of single annotators. IAM stays far below the joint models in any case, because it does not use "
        "the votes on the pair.",
        reproduced=abs(ours["red"] - TABLE_2["red"][IAM]) <= 5,
    )


def _no_gain(results: Results) -> Verdict:
    """Whether VRJAM and JAM are the same where noise is."""
    gaps = [
        results.mean(part, colour, at, VRJAM) - results.mean(part, colour, at, JAM)
        for part in ("table", "noise", "crowd")
        for colour in TABLE_2
        for at in results.places(part, colour)
    ]
    return Verdict.of(
        "table 2, figures 2 and 3: VRJAM and JAM do not differ where noise does not depend on the pair",
        f"VRJAM less JAM is between {min(gaps):+.2f} and {max(gaps):+.2f} points in {len(gaps)} settings.",
        reproduced=max(map(abs, gaps)) <= _MAX_POINTS_OFF,
        trend=abs(float(np.mean(gaps))) <= _MAX_POINTS_OFF,
    )


def _noise_verdict(results: Results) -> Verdict:
    """Whether accuracy falls with noise."""
    curves = {(colour, scheme): results.curve("noise", colour, scheme) for colour in TABLE_2 for scheme in (MV, JAM)}
    falls = [bool((np.diff(curve) < 0).all()) for curve in curves.values()]
    figures = "; ".join(f"{scheme} on {colour} wine {_list(curve)}" for (colour, scheme), curve in curves.items())
    return Verdict.of(
        "figure 2: performance drops as the noise of annotators increases",
        f"From factor {results.places('noise', 'red')[0]:g} to {results.places('noise', 'red')[-1]:g}: {figures}.",
        why="Beyond a rate of one half an annotator's reversed answers are informative again.",
        reproduced=all(falls),
        trend=all(curve[-1] < curve[0] for curve in curves.values()),
    )


def _convergence_verdict(results: Results) -> Verdict:
    """Whether MV and JAM meet as noise rises."""
    gaps = {colour: results.curve("noise", colour, JAM) - results.curve("noise", colour, MV) for colour in TABLE_2}
    return Verdict.of(
        "figure 2: MV, JAM and VRJAM converge as the noise of annotators increases",
        f"JAM less MV: {_list(gaps['red'])} points on red wine, {_list(gaps['white'])} on white.",
        why="They diverge: MV counts everybody the same, while JAM gives the few good annotators more weight, and "
        "reverses those who are wrong more often than right.",
        reproduced=all(curve[-1] < 0.5 * curve[0] for curve in gaps.values()),
        trend=all(curve[-1] < curve[0] for curve in gaps.values()),
    )


def _annotators_verdict(results: Results) -> Verdict:
    """Whether more annotators help the joint models."""
    curves = {(colour, one): results.curve("crowd", colour, one) for colour in TABLE_2 for one in (JAM, VRJAM)}
    figures = "; ".join(f"{scheme} on {colour} wine {_list(curve)}" for (colour, scheme), curve in curves.items())
    sizes = results.places("crowd", "red")
    return Verdict.of(
        "figure 3: JAM and VRJAM rise with the number of annotators",
        f"From {sizes[0]:.0f} to {sizes[-1]:.0f} annotators: {figures}.",
        why="The last annotators to join flip nearly half of their answers and add little.",
        reproduced=all((np.diff(curve) > -_MAX_STEP_POINTS).all() for curve in curves.values()),
        trend=all(curve[-1] > curve[0] for curve in curves.values()),
    )


def _baselines(results: Results) -> Verdict:
    """Whether more annotators help MV and harm IAM."""
    curves = {(colour, one): results.curve("crowd", colour, one) for colour in TABLE_2 for one in (MV, IAM)}
    figures = "; ".join(f"{scheme} on {colour} wine {_list(curve)}" for (colour, scheme), curve in curves.items())
    exact = [limits(np.arange(1, int(size) + 1) / 20)[0] for size in results.places("crowd", "red")]
    rises = [bool((np.diff(curves[colour, MV]) > 0).all()) for colour in TABLE_2]
    falls = [bool((np.diff(curves[colour, IAM]) < _MAX_STEP_POINTS).all()) for colour in TABLE_2]
    return Verdict.of(
        "figure 3: MV rises with the number of annotators, IAM falls",
        f"{figures}; MV exactly {_list(exact)}.",
        why="MV tosses a coin where votes are tied, so an even number of annotators does worse than one fewer, "
        "and accuracy falls once those who join are too noisy. IAM does not change: the rankers of noisy "
        "annotators are nearly as good as those of the others.",
        reproduced=all(rises) and all(falls),
        trend=all(curves[colour, MV][-1] > curves[colour, MV][0] for colour in TABLE_2),
    )


def _same_at_three(results: Results) -> Verdict:
    """Whether the joint models' gain over MV begins at none and grows."""
    gaps = {colour: results.curve("crowd", colour, JAM) - results.curve("crowd", colour, MV) for colour in TABLE_2}
    return Verdict.of(
        "figure 3: MV, JAM and VRJAM are the same with three annotators, and the gain grows with their number",
        f"JAM less MV: {_list(gaps['red'], 2)} on red wine, {_list(gaps['white'], 2)} on white.",
        why="With three such annotators none outweighs the other two, so votes alone give the answer of MV; features "
        "already help. The gain grows with every two annotators.",
        reproduced=all(
            abs(curve[0]) <= _MAX_POINTS_OFF and curve[-1] > curve[0] + _MAX_POINTS_OFF for curve in gaps.values()
        ),
        trend=all(curve[-1] > curve[0] + _MAX_POINTS_OFF for curve in gaps.values()),
    )


def _hinge_verdict(results: Results) -> Verdict:
    """Whether the hinge does what the logistic loss does."""
    at = np.linspace(-5, 5, 1001)
    apart = np.abs(-np.logaddexp(0, -at) + np.maximum(1 - at, 0))
    both = {colour: [results.values("table", colour, 1, scheme) for scheme in (HINGE, JAM)] for colour in TABLE_2}
    gaps = {colour: float(np.mean(logistic) - np.mean(hinge)) for colour, (hinge, logistic) in both.items()}
    figures = "; ".join(
        f"{colour} wine {mean_text(hinge, 2)} with the hinge, {mean_text(logistic, 2)} with the logistic loss"
        for colour, (hinge, logistic) in both.items()
    )
    rate = float(np.abs(results.flips("table", "red", 1, HINGE).mean(axis=0) - _RATES).max())
    return Verdict.of(
        "figure 4, appendix 3: the hinge in place of the logistic loss gives similar results",
        f"Right pairs: {figures}. The two functions differ by up to {apart.max():.2f} between -5 and 5, and by 1 far "
        f"to the left; their slopes agree far from 0. Flip rates miss the true ones by {rate:.4f} with the hinge.",
        why="The logistic loss is the likelihood of the model and more accurate.",
        reproduced=max(map(abs, gaps.values())) <= _MAX_POINTS_OFF,
        trend=max(map(abs, gaps.values())) <= 5 * _MAX_POINTS_OFF,
    )


def sparse_note(results: Results) -> str:
    """Return whether joint models are ahead where few pairs are judged, and what else is."""
    by_colour, ahead = [], []
    for colour in TABLE_2:
        curves = {one: results.curve("sparse", colour, one) for one in (MV, VOTES, JAM, VRJAM, EFFECTS)}
        ahead += [bool((np.minimum(curves[JAM], curves[VRJAM]) > curves[MV]).all())]
        order = {one: results.curve("sparse", colour, one, "order") for one in (JAM, EFFECTS, BORDA)}
        by_colour.append(
            f"{colour} wine: {'; '.join(f'{one} {_list(curve)}' for one, curve in curves.items())}; order of all "
            f"wines: {'; '.join(f'{one} {_list(curve)}' for one, curve in order.items())}"
        )
    sizes = ", ".join(f"{n:,.0f}" for n in results.places("sparse", "red"))
    total = results.mean("table", "red", 1, BORDA, "order")
    return Verdict.of(
        "table 2 where few pairs are judged: JAM and VRJAM outperform MV",
        f"With {sizes} pairs, {'. With as many, '.join(by_colour)}. All pairs of red wine determine a total order, of "
        f"which even Borda finds {total:.2f} %, so few pairs distinguish methods better.",
        reproduced=all(ahead),
    ).note


def _vrjam_verdict(results: Results) -> Verdict:
    """Whether VRJAM gains where noise depends on the pair."""
    by_colour, gains = [], []
    for colour in TABLE_2:
        means = {one: results.mean("varying", colour, 1, one) for one in (MV, VOTES, JAM, VRJAM, UNFOLDED)}
        gains.append(means[VRJAM] - means[JAM])
        by_colour.append(f"{colour} wine: {', '.join(f'{one} {value:.2f}' for one, value in means.items())}")
    return Verdict.of(
        "section 4.1.1: VRJAM gains nothing only since noise does not depend on the pair",
        f"Where it does, {'; '.join(by_colour)}.",
        why="The gain is small: the clusters of differences are not the groups that the noise depends on.",
        reproduced=min(gains) > _MAX_POINTS_OFF,
        trend=min(gains) > 0,
    )
