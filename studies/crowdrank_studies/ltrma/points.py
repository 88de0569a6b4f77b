"""Figure 2 of Wu et al.: rankers learned from swapped rankings of random points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from crowdrank.data.features import Features
from crowdrank.data.judgments import Rankings
from crowdrank.metrics import average_precision, ndcg
from crowdrank.protocols import Floats
from crowdrank.simulate import PerQuery, ltrma_swaps, rankings

from ..figures import common_legend, lines, panels
from ..outcomes import Outcome, Row, Verdict
from ..work import Cell, Work
from .methods import (
    BORDA,
    CAYLEY_D,
    CAYLEY_ML,
    HARD,
    ML,
    PRINTED_D,
    PRINTED_ML,
    TRUTH,
    D,
    Methods,
    Task,
    clear,
    consensus_tau,
    difference_text,
    expertise,
)

N_ITEMS = 15
_TOP = 5
"""Number of items that count as relevant for MAP."""

METHODS = (TRUTH, PRINTED_D, PRINTED_ML, D, ML, HARD, CAYLEY_D, CAYLEY_ML, BORDA)
_DISPERSED = (PRINTED_D, PRINTED_ML, D, ML, HARD)
"""Methods whose dispersions are on the scale of the Kendall distance."""

MEASURES = ("nDCG@3", "nDCG@5", "MAP", "nDCG@3, linear gain", "nDCG@5, linear gain")
ERROR, ALIKE, TAU = "error of theta", "correlation of theta", "tau of consensus"
_PLACES = {"nDCG@3": "figure 2(a)", "nDCG@5": "figure 2(b)", "MAP": "figure 2(c)", ERROR: "figure 2(d)"}
_DRAWN = (TRUTH, PRINTED_D, PRINTED_ML, D, ML)

_MAX_DIFFERENCE = 0.002
"""nDCG that counts as very close."""


def synthetic(work: Work) -> Outcome:
    """NDCG@3, nDCG@5, MAP and the error of the annotators' dispersions against their number."""
    sizes = work.pick(quick=(3, 6, 9), default=tuple(range(3, 16)))
    seeds = work.seeds(quick=1, default=3, full=10)
    n_train, n_test, turns, printed_turns = work.pick(quick=(25, 100, 20, 40), default=(100, 500, 60, 200))
    methods = Methods(ridge=1e-3, turns=turns, printed_turns=printed_turns)
    work.expect(len(sizes) * len(seeds), "ltrma-synthetic")
    runs = Runs()
    for seed in seeds:
        for n_annotators in sizes:
            compute = partial(_run, methods, n_annotators, seed, n_train, n_test)
            runs.add(n_annotators, work.cell((n_annotators, seed, n_train, n_test), compute))
    return Outcome(
        rows=list(_rows(runs)),
        verdicts=[_close(runs), _joint_verdict(runs), _erratic(runs), _expertise(runs), _unified_verdict(runs)],
        figures={"figure-2": lambda: _figure(runs)},
        notes=_notes(runs),
    )


class Runs:
    """What was found, by method, measure and number of annotators."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int], list[float]] = {}

    def add(self, n_annotators: int, cell: Cell) -> None:
        """Take over one run."""
        for method, figures in cell.items():
            for measure, value in figures.items():
                self._found.setdefault((method, measure, n_annotators), []).append(value)

    @property
    def sizes(self) -> list[int]:
        """Numbers of annotators."""
        return sorted({size for _, _, size in self._found})

    def has(self, method: str, measure: str) -> bool:
        """Return whether a method was measured so."""
        return (method, measure, self.sizes[0]) in self._found

    def values(self, method: str, measure: str, size: int | None = None) -> list[float]:
        """Return the figure of each run, for all numbers of annotators unless one is given."""
        sizes = self.sizes if size is None else [size]
        return [value for size in sizes for value in self._found[method, measure, size]]

    def mean(self, method: str, measure: str, size: int | None = None) -> float:
        """Return the mean over runs."""
        return float(np.mean(self.values(method, measure, size)))

    def less(self, first: str, second: str, measure: str) -> Floats:
        """Return first less second for each run."""
        differences: Floats = np.subtract(self.values(first, measure), self.values(second, measure))
        return differences


def points(n_annotators: int, seed: int, n_train: int, n_test: int) -> tuple[Task, Floats]:
    """Return points of the unit square with swapped rankings of their order, and the true grades of the test points."""
    rng = np.random.default_rng([seed, n_annotators])
    n = n_train + n_test
    matrix = rng.random((n, N_ITEMS, 2))
    score = matrix @ [1.0, 10.0] + rng.normal(0, 0.005, (n, N_ITEMS))
    # the item of rank r has grade 16 - r
    grade: Floats = (np.argsort(np.argsort(score, axis=1), axis=1) + 1).astype(np.float64)
    query = np.repeat([f"q{number:04d}" for number in range(n)], N_ITEMS)
    item = np.tile([f"i{number:02d}" for number in range(N_ITEMS)], n)
    train, test = (
        Features.from_arrays(query[part], item[part], matrix.reshape(-1, 2)[part])
        for part in (slice(0, n_train * N_ITEMS), slice(n_train * N_ITEMS, None))
    )
    truth = grade[:n_train].ravel()
    pool = ltrma_swaps(n_annotators=n_annotators)
    # numbers of their own, not those that drew the points
    drawn = rankings((train.items, truth), pool, PerQuery(k=n_annotators), seed=int(rng.integers(1 << 31))).judgments
    assert isinstance(drawn, Rankings)
    return Task(drawn, train, test, truth), grade[n_train:].ravel()


def _run(methods: Methods, n_annotators: int, seed: int, n_train: int, n_test: int) -> Cell:
    """All measures of all methods on one drawn data set."""
    task, grade = points(n_annotators, seed, n_train, n_test)
    cell = {}
    for name, fitted in replace(methods, seed=seed).fit(METHODS, task).items():
        figures = dict(zip(MEASURES, _measure_scores(grade, fitted.scores, task.test), strict=True))
        if fitted.consensus is not None:
            figures[TAU] = consensus_tau(task, fitted)
        if name in _DISPERSED:
            figures[ERROR], figures[ALIKE] = expertise(task, fitted)
        cell[name] = figures
    return cell


def _measure_scores(grade: Floats, scores: Floats, test: Features) -> list[float]:
    """The measures, in the order of their names."""
    query = test.items.query
    by_gain = [ndcg(grade, scores, query, k=k, gain=gain) for gain in ("exponential", "linear") for k in (3, 5)]
    precision = average_precision(grade, scores, query, relevant_from=N_ITEMS + 1.0 - _TOP)
    return [float(value) for value in (*by_gain[:2], precision, *by_gain[2:])]


def _rows(runs: Runs) -> Iterator[Row]:
    """The figure, what is measured besides, and means over all numbers of annotators."""
    for measure in (*MEASURES, ERROR, ALIKE, TAU):
        for method in METHODS:
            if not runs.has(method, measure):
                continue
            place = _PLACES.get(measure, "beside figure 2")
            for size in (*runs.sizes, None):
                labels = {"method": method, "measure": measure, "G": "all" if size is None else size}
                yield Row(place=place, what=labels, values=tuple(runs.values(method, measure, size)))
    for first, second in ((PRINTED_ML, PRINTED_D), (TRUTH, PRINTED_ML), (ML, D), (HARD, ML), (CAYLEY_D, D)):
        labels = {"method": f"{first} less {second}", "measure": "nDCG@3", "G": "all"}
        yield Row(place="paired difference", what=labels, values=tuple(runs.less(first, second, "nDCG@3")))


def _notes(runs: Runs) -> list[str]:
    """What a reader should know besides."""
    best = max((name for name in METHODS if name != TRUTH), key=lambda name: runs.mean(name, "nDCG@3"))
    return [
        "The paper prints curves and no numbers, so there is no figure to put beside ours. It does not name the "
        "gain of its nDCG: the exponential one distinguishes methods, the linear one puts all of them close to 1.",
        "Error of theta is the root mean square difference, over annotators, from the dispersion at which the expected "
        "distance is the one that was drawn; the paper gives no scale.",
        "Printed is the procedure to the letter: random starts, 500 swaps, chains begun again in each iteration, and a "
        "stop by changes of 0.01 a parameter, after which LTRMA-D does about three iterations. LTRMA-D and LTRMA-ML "
        "without that word begin with Borda's order, carry the chains on and average 60 iterations.",
        f"{best} is the best method without the truth, with a mean nDCG@3 of {runs.mean(best, 'nDCG@3'):.4f} against "
        f"{runs.mean(TRUTH, 'nDCG@3'):.4f} on truth. Swapping two items is what the Cayley distance counts; Mallows' "
        "model with Kendall distance, which the paper has, is a wrong model of it.",
        "The validation queries of the paper are not used: nothing is tuned.",
    ]


def _close(runs: Runs) -> Verdict:
    """Whether the joint method is as good as the truth."""
    gaps = {measure: runs.less(TRUTH, PRINTED_ML, measure) for measure in MEASURES[:3]}
    behind = {measure: float(np.mean(runs.less(TRUTH, PRINTED_D, measure))) for measure in MEASURES[:3]}
    differences = ", ".join(f"{name} {np.mean(gap):+.4f} (LTRMA-D {behind[name]:+.4f})" for name, gap in gaps.items())
    return Verdict.of(
        "figures 2(a)-(c): LTRMA-ML is very close to ListMLE on the truth",
        f"Truth less LTRMA-ML as printed: {differences}, over {len(gaps['MAP'])} runs.",
        reproduced=all(np.mean(gap) <= _MAX_DIFFERENCE for gap in gaps.values()),
        trend=all(np.mean(gap) <= 0.5 * behind[name] for name, gap in gaps.items()),
    )


def _joint_verdict(runs: Runs) -> Verdict:
    """Whether the joint method beats the two stages."""
    gains = {measure: runs.less(PRINTED_ML, PRINTED_D, measure) for measure in MEASURES[:3]}
    won = int((gains["nDCG@3"] > 0).sum())
    return Verdict.of(
        "figures 2(a)-(c): LTRMA-ML is better than LTRMA-D",
        "LTRMA-ML less LTRMA-D, both as printed: "
        f"{', '.join(f'{m} {difference_text(v, 4)}' for m, v in gains.items())}; "
        f"nDCG@3 is higher in {won} of {len(gains['nDCG@3'])} runs.",
        reproduced=all(clear(gain) > 0 for gain in gains.values()),
        trend=all(np.mean(gain) > 0 for gain in gains.values()) and any(clear(gain) > 0 for gain in gains.values()),
    )


def _erratic(runs: Runs) -> Verdict:
    """Whether the two stages vary with the number of annotators, and where."""
    spread = {name: float(np.std(runs.values(name, "nDCG@3"), ddof=1)) for name in (PRINTED_D, PRINTED_ML, TRUTH)}
    worst = {name: min(runs.values(name, "nDCG@3")) for name in spread}
    named = [size for size in (9, 10, 12) if size in runs.sizes]
    at = ", ".join(f"{runs.mean(PRINTED_D, 'nDCG@3', size):.3f} at G = {size}" for size in named)
    as_said = len(named) == 3 and _lower(runs, (9, 10), 12)
    return Verdict.of(
        "section 5.2: LTRMA-D is not robust, good with 12 annotators and bad with 9 or 10",
        f"Standard deviation of nDCG@3 over runs: {_figures_text(spread)}; worst run: {_figures_text(worst)}. LTRMA-D "
        f"has {at}.",
        why="It is erratic, but the numbers of annotators at which it is bad differ from draw to draw.",
        reproduced=spread[PRINTED_D] >= 2 * spread[PRINTED_ML] and as_said,
        trend=spread[PRINTED_D] >= 2 * spread[PRINTED_ML],
    )


def _lower(runs: Runs, low: Sequence[int], high: int) -> bool:
    """Whether some numbers of annotators are below another one by more than two standard errors of a difference."""
    first = [value for size in low for value in runs.values(PRINTED_D, "nDCG@3", size)]
    second = runs.values(PRINTED_D, "nDCG@3", high)
    if min(len(first), len(second)) < 2:
        return False
    error = float(np.sqrt(np.var(first, ddof=1) / len(first) + np.var(second, ddof=1) / len(second)))
    return float(np.mean(second) - np.mean(first)) > 2 * error


def _figures_text(figures: dict[str, float]) -> str:
    """Figures by method, in words."""
    return ", ".join(f"{name} {value:.4f}" for name, value in figures.items())


def _expertise(runs: Runs) -> Verdict:
    """Whether the joint method knows the annotators better."""
    gain = runs.less(PRINTED_D, PRINTED_ML, ERROR)
    errors = {name: runs.mean(name, ERROR) for name in _DISPERSED}
    alike = {name: runs.mean(name, ALIKE) for name in _DISPERSED}
    return Verdict.of(
        "figure 2(d): LTRMA-ML estimates expertise better than LTRMA-D",
        f"Error of theta: {_figures_text(errors)}; correlation: {_figures_text(alike)}.",
        reproduced=clear(gain) > 0 and alike[PRINTED_ML] > alike[PRINTED_D],
        trend=float(np.mean(gain)) > 0,
    )


def _unified_verdict(runs: Runs) -> Verdict:
    """Whether the joint method is still better once both are sampled well."""
    gain, sampled = runs.less(ML, D, "nDCG@3"), runs.less(D, PRINTED_D, "nDCG@3")
    left = runs.less(TRUTH, ML, "nDCG@3")
    return Verdict.of(
        "section 5.5: LTRMA-ML is better since it unifies truth and learning",
        f"With sound sampling in both, LTRMA-ML less LTRMA-D in nDCG@3 is {difference_text(gain, 4)}, and the truth is "
        "ahead of "
        f"LTRMA-ML by {difference_text(left, 4)}; sound sampling alone changes LTRMA-D by "
        f"{difference_text(sampled, 4)}. The truth is an "
        "almost noise-free weighted sum of the features here, which is the joint method's best case.",
        reproduced=clear(gain) > 0,
        trend=float(np.mean(gain)) > 0,
    )


def _figure(runs: Runs) -> Any:
    """Figure 2, a panel for each measure."""
    figure, axes = panels(4, rows=2, width=4.6)
    for ax, letter, measure in zip(axes, "abcd", (*MEASURES[:3], ERROR), strict=True):
        series = {
            name: [runs.values(name, measure, size) for size in runs.sizes]
            for name in (*_DRAWN, CAYLEY_ML)
            if runs.has(name, measure)
        }
        lines(
            ax, runs.sizes, series, xlabel="annotators G", ylabel=measure, error=True, legend=False,
            among=(*_DRAWN, CAYLEY_ML),
        )  # fmt: skip
        ax.set_title(f"({letter})", fontsize=9)
    common_legend(figure, axes[0], across=3)
    return figure
