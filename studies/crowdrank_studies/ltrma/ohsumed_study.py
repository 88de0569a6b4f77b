"""Figure 3 of Wu et al.: rankers learned from swapped rankings of OHSUMED."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from crowdrank.data.features import Features
from crowdrank.data.judgments import Rankings
from crowdrank.datasets import Dataset, Fold
from crowdrank.metrics import average_precision, ndcg
from crowdrank.protocols import Floats
from crowdrank.rankers import ListMLE
from crowdrank.simulate import PerQuery, ltrma_swaps, rankings

from ..figures import common_legend, lines, panels
from ..outcomes import Outcome, Row
from ..work import Cell, Work
from .claims import beside_in_words, verdicts
from .methods import (
    BORDA,
    HARD,
    ML,
    PRINTED_D,
    PRINTED_ML,
    TRUTH,
    D,
    Fitted,
    Methods,
    Task,
    consensus_tau,
    expertise,
    p_value,
)
from .ohsumed_results import ALIKE, ERROR, MEASURES, SWAPS, TAU, Results

MAIN, BESIDE = "letor2-ohsumed", "letor-ohsumed"
GRADES = "ListMLE on grades"

_ALWAYS = (TRUTH, BORDA, PRINTED_D, PRINTED_ML, D, ML)
_METHODS = (GRADES, *_ALWAYS, HARD)
_DISPERSED = (PRINTED_D, PRINTED_ML, D, ML)
_PLACES = dict(zip((*MEASURES, ERROR), "abcd", strict=True))
_SHORT_LIST = 15
"""Items of the lists that 2i + 1 swaps were made for."""

_STEPS = (1.0, 0.1, 0.01)
"""Lengths of the printed descent's steps to choose from, as shares of 0.01; the paper does not name one."""

_RELEVANT = 2.0
_PAIRS = ((PRINTED_ML, PRINTED_D), (PRINTED_ML, TRUTH), (PRINTED_D, TRUTH), (D, PRINTED_D), (ML, D), (ML, BORDA))


def ohsumed(work: Work) -> Outcome:
    """NDCG@3, nDCG@5, MAP and the error of the annotators' dispersions against their number, five folds."""
    sizes = work.pick(quick=(5, 10, 15), default=(5, 10, 15), full=tuple(range(5, 16)))
    repeats = {MAIN: work.seeds(quick=1, default=10), BESIDE: work.seeds(quick=1, default=1, full=10)}
    repeats = {MAIN: repeats[MAIN]} if work.quick else repeats
    n_folds, n_queries, turns = work.pick(quick=(1, 4, 6), default=(5, None, 30))
    data = {name: work.load(name) for name in repeats}
    # dispersions take the longest to measure, and hardly differ from fold to fold
    n_measured, n_draws = work.pick(quick=(1, 1), default=(1, 1), full=(5, 2))
    measured = [(place, seed) for place in range(n_measured) for seed in repeats[MAIN][:n_draws]]
    # for each fold its steps are chosen once
    n_runs = n_folds * sum(1 + len(seeds) for seeds in repeats.values()) + len(measured)
    work.expect(n_runs * len(SWAPS) * len(sizes), "ltrma-ohsumed")
    results, chosen = {name: Results(sizes) for name in repeats}, []
    for name, seeds in repeats.items():
        for place in range(n_folds):
            task_of = partial(_task, data[name], place, n_queries)
            for swaps, size in ((swaps, size) for swaps in SWAPS for size in sizes):
                compute = partial(_tune_steps, partial(task_of, swaps, size, 0, tuning=True), turns)
                steps = work.cell((name, place, swaps, size, "steps"), compute)["steps"]
                chosen.append(steps)
                for seed in seeds:
                    drawn = partial(task_of, swaps, size, seed)
                    names = (*_ALWAYS, HARD) if name == MAIN and seed == 0 else _ALWAYS
                    key = (name, place, swaps, size, seed, steps)
                    cell = work.cell(key, partial(_run, drawn, steps, seed, names, turns))
                    results[name].add(swaps, size, cell)
                    if name == MAIN and (place, seed) in measured:
                        cell = work.cell((*key, ERROR), partial(_experts, drawn, steps, seed, turns))
                        results[name].add(swaps, size, cell)
    return Outcome(
        rows=[row for name, cell in results.items() for row in _rows(name, cell)],
        verdicts=verdicts(results[MAIN]),
        figures=dict(_figures(results)),
        notes=_notes(results, len(repeats[MAIN]), chosen),
    )


def _task(
    data: Dataset, place: int, n_queries: int | None, swaps: str, size: int, seed: int, *, tuning: bool = False
) -> tuple[Task, Floats]:
    """Training items of a fold with swapped rankings of one perfect order, test items, and the training grades.

    For ``tuning`` the fold's validation items stand in place of its test items.
    """
    assert data.folds is not None
    assert data.features is not None
    fold: Fold = data.folds[place]
    scored = fold.vali if tuning else fold.test
    train, test = (unit(_part(data.features, ids[:n_queries])) for ids in (fold.train, scored))
    assert train.grade is not None
    rng = np.random.default_rng([seed, place])
    order = np.lexsort((rng.random(len(train)), train.grade, train.items.query))
    truth = np.empty(len(order))
    truth[order] = np.arange(len(order))
    pool = ltrma_swaps(n_annotators=size, per_items=None if swaps == SWAPS[0] else _SHORT_LIST)
    draws = int(np.random.default_rng([seed, place, size]).integers(1 << 31))
    drawn = rankings((train.items, truth), pool, PerQuery(k=size), seed=draws).judgments
    assert isinstance(drawn, Rankings)
    return Task(drawn, train, test, truth), train.grade


def _part(features: Features, queries: Iterable[str]) -> Features:
    """The rows of some queries."""
    assert features.grade is not None
    kept = features.items.query_ids().is_in(list(queries)).to_numpy()
    ids = features.items.frame().filter(kept)
    return Features.from_arrays(
        ids["query"], ids["item"], features.matrix[kept], names=features.names, grade=features.grade[kept]
    )


def unit(features: Features) -> Features:
    """Return the features from 0 to 1 within each query, as LETOR normalises them."""
    starts, query = features.items.offsets[:-1], features.items.query
    low = np.minimum.reduceat(features.matrix, starts)[query]
    width = np.maximum.reduceat(features.matrix, starts)[query] - low
    scaled = np.divide(features.matrix - low, width, out=np.zeros(features.matrix.shape), where=width > 0)
    return Features(features.items, scaled, features.names, features.grade)


def _tune_steps(drawn: Any, turns: int) -> Cell:
    """The steps of the printed descent that do best on the validation queries, with the first draw of rankings."""
    task, _ = drawn()
    reached = {}
    for steps in _STEPS:
        fitted = _methods(steps, 0, turns).fit((PRINTED_ML,), task)[PRINTED_ML]
        reached[steps] = float(np.mean(_measure_scores(task.test, fitted.scores)))
    return {"steps": max(reached, key=lambda steps: reached[steps]), "reached": list(reached.values())}


def _run(drawn: Any, steps: float, seed: int, names: Sequence[str], turns: int) -> Cell:
    """All measures of some methods with one draw of the annotators' rankings of one fold."""
    task, grade = drawn()
    fitted = _methods(steps, seed, turns).fit(names, task)
    graded = ListMLE(scale="none", ridge=0.01).fit(task.train.matrix, grade, qid=task.train.items.query)
    scores = graded.predict(task.test.matrix, task.test.items.query)
    fitted[GRADES] = Fitted(np.asarray(scores, np.float64))
    cell = {}
    for name, one in fitted.items():
        cell[name] = dict(zip(MEASURES, _measure_scores(task.test, one.scores), strict=True))
        if one.consensus is not None:
            cell[name][TAU] = consensus_tau(task, one)
    return cell


def _experts(drawn: Any, steps: float, seed: int, turns: int) -> Cell:
    """Error and correlation of the dispersions that each method learns."""
    task, _ = drawn()
    fits = _methods(steps, seed, turns).fit(_DISPERSED, task).items()
    return {name: dict(zip((ERROR, ALIKE), expertise(task, one), strict=True)) for name, one in fits}


def _methods(steps: float, seed: int, turns: int) -> Methods:
    """The methods with steps of some length."""
    return Methods(ridge=0.01, turns=turns, printed_turns=12, n_samples=40, steps=steps, seed=seed)


def _measure_scores(test: Features, scores: Floats) -> list[float]:
    """The measures in per cent, in the order of their names."""
    assert test.grade is not None
    query = test.items.query
    gains = [ndcg(test.grade, scores, query, k=k) for k in (3, 5)]
    precision = average_precision(test.grade, scores, query, relevant_from=_RELEVANT)
    return [100 * float(value) for value in (*gains, precision)]


def _rows(data: str, results: Results) -> Iterator[Row]:
    """The figure, what is measured besides, and paired differences with their p values."""
    for swaps in SWAPS:
        for measure in (*MEASURES, ERROR, ALIKE, TAU):
            place = f"figure 3({_PLACES[measure]})" if measure in _PLACES else "beside figure 3"
            for method in (name for name in _METHODS if results.has(name, measure)):
                for size in (*results.sizes, None):
                    labels = {**_labels(data, swaps, method, measure), "G": "all" if size is None else str(size)}
                    values = tuple(results.values(swaps, method, measure, size))
                    yield Row(place=place, what=labels, values=values, over="runs")
        for first, second in _PAIRS:
            for measure in MEASURES:
                for size in (*results.sizes, None):
                    values = tuple(results.less(swaps, first, second, measure, size))
                    labels = {**_labels(data, swaps, f"{first} less {second}", measure), "p": f"{p_value(values):.2g}"}
                    labels["G"] = "all" if size is None else str(size)
                    yield Row(place="paired difference", what=labels, values=values, over="runs")


def _labels(data: str, swaps: str, method: str, measure: str) -> dict[str, str | float]:
    """What a figure is of."""
    return {"data": data, "swaps": swaps, "method": method, "measure": measure}


def _notes(results: dict[str, Results], n_seeds: int, chosen: Sequence[float]) -> list[str]:
    """What a reader should know besides."""
    main = results[MAIN]
    spread = float(np.std(main.values(SWAPS[0], TRUTH, MEASURES[0], main.sizes[0])))
    often = ", ".join(f"{0.01 * steps:g} in {sum(one == steps for one in chosen)}" for steps in _STEPS)
    beside = [beside_in_words(main, results[BESIDE])] if BESIDE in results else []
    return [
        "The paper prints curves and no numbers, so there is no figure to put beside ours. All measures are in per "
        f"cent; MAP counts grade 2 alone. nDCG@3 of ListMLE on truth has a standard deviation of {spread:.1f} points "
        "over folds, so methods are compared in pairs; p values are of random exchanges of the two over folds and "
        f"noise seeds, of which there are {n_seeds} on {MAIN}. Seeds share the test queries of a fold, so the p "
        "values cover the noise but not other queries.",
        "The paper does not say whether swaps stay 2i + 1 for lists of 150 items. If they do, annotators are nearly "
        f"perfect; 'scaled' makes them in proportion to the length, 2i + 1 for {_SHORT_LIST} items.",
        "The truth is one perfect order of each query drawn at random, as in the paper; 'ListMLE on grades' learns the "
        "grades themselves, equal ones in no order.",
        "Printed is the procedure with random starts and 500 swaps, 12 iterations at most. The paper does not give "
        "the step length of its descent; it is chosen on the validation queries of each fold, with the first draw of "
        f"rankings: {often} of {len(chosen)} cases.",
        "LTRMA-D and LTRMA-ML without the word printed begin with Borda's order, carry the chains on and average 30 "
        "iterations. All have features from 0 to 1 within queries, and a ridge of 0.01 but for the printed descent.",
        "Dispersions are compared on one fold alone, unless the study is run in full.",
        *beside,
    ]


_DRAWN = (TRUTH, PRINTED_D, PRINTED_ML, D, ML, BORDA)


def _figures(results: dict[str, Results]) -> Iterator[tuple[str, Any]]:
    """Figure 3 for both data sets and both kinds of swaps."""
    for name, result in results.items():
        for swaps in SWAPS:
            label = f"figure-3{'' if name == MAIN else '-letor3'}{'' if swaps == SWAPS[0] else '-scaled'}"
            yield label, partial(_figure, result, swaps)


def _figure(results: Results, swaps: str) -> Any:
    """Figure 3, a panel for each measure; bands leave out by how much all methods differ from run to run."""
    measures: Sequence[str] = [measure for measure in (*MEASURES, ERROR) if results.has(PRINTED_D, measure)]
    figure, axes = panels(len(measures), width=4.6)
    for ax, measure in zip(axes, measures, strict=True):
        names = [name for name in _DRAWN if results.has(name, measure)]
        series: dict[str, list[list[float]]] = {name: [] for name in names}
        for size in results.sizes:
            values = np.array([results.values(swaps, name, measure, size) for name in names])
            level = values.mean(axis=0)
            for name, curve in zip(names, values - level + level.mean(), strict=True):
                series[name].append(curve.tolist())
        label = measure if measure == ERROR else f"{measure} in %"
        lines(ax, results.sizes, series, xlabel="annotators G", ylabel=label, error=True, legend=False, among=_DRAWN)
        ax.set_title(f"({_PLACES[measure]})", fontsize=9)
        ax.set_xticks(results.sizes)
    common_legend(figure, axes[0], across=3)
    return figure
