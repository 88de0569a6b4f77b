"""Table 1 and figure 1 of Kumar and Lease: more items or more grades, under five kinds of noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from crowdrank.data.features import Features
from crowdrank.data.judgments import Rankings
from crowdrank.datasets import Dataset

from ..figures import COLOURS, common_legend, lines, panels
from ..outcomes import Outcome, Row
from ..work import Work
from .claims import improved_note, verdicts
from .crowds import FIXED, IMPROVED, NOISES, PAPER, Split, clean, noisy
from .kumar_figures import CLEAN, CLEAN_MEAN, EXTRA, MEAN, QUICK_EXTRA, TABLE_1
from .noise_results import MEASURES, Results
from .real_crowds import SETS, real_note, real_rows
from .regimes import mechanism_note, regime_curves, regime_verdicts, run_regimes

_OHSUMED, _MQ2008, _MQ2007 = "letor-ohsumed", "letor-mq2008", "letor-mq2007-agg"
_NONE = "none"


def noisy_crowd(work: Work) -> Outcome:
    """Table 1 with its averages, figure 1, the fix for adversarial annotators, and what does better."""
    noises = list(NOISES)[: work.pick(quick=2, default=len(NOISES))]
    budgets = work.pick(quick=QUICK_EXTRA, default=EXTRA)
    others = work.seeds(quick=1, default=1, full=5)
    repeats = {_OHSUMED: work.seeds(quick=1, default=3, full=5), _MQ2008: others, _MQ2007: others}
    repeats = {_OHSUMED: repeats[_OHSUMED]} if work.quick else repeats
    n_folds = work.pick(quick=1, default=5)
    n_runs = sum(n_folds * len(seeds) for seeds in repeats.values())
    n_regimes = n_folds * len(repeats[_OHSUMED]) * (1 + len(noises))
    n_real = len(SETS[: work.pick(quick=1, default=len(SETS))]) * len(work.seeds(quick=1, default=5))
    work.expect(n_runs * (1 + len(noises)) + n_regimes + n_real, "noisy-crowd")
    regimes = run_regimes(work, _OHSUMED, repeats[_OHSUMED], n_folds, noises)
    results = {
        name: Results(noises, budgets, _runs(work, name, seeds, n_folds, noises, budgets))
        for name, seeds in repeats.items()
    }
    main, real = results[_OHSUMED], list(real_rows(work))
    return Outcome(
        rows=[*regimes.rows(), *(row for name, result in results.items() for row in _rows(name, result)), *real],
        verdicts=[
            *regime_verdicts(regimes),
            *verdicts(main, {one: results[one] for one in results if one != _OHSUMED}),
        ],
        figures={
            "regimes": lambda: regime_curves(regimes),
            "table-1": lambda: _curves(main),
            "figure-1": lambda: _scatter(main),
        },
        notes=[mechanism_note(regimes), improved_note(main), real_note(real), *_notes(work, results)],
    )


def _runs(
    work: Work, name: str, seeds: range, n_folds: int, noises: list[str], budgets: tuple[int, ...]
) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Noise and what was found, fold after fold and repetition after repetition."""
    data = _with_features(work.load(name))
    assert data.folds is not None
    for place, fold in enumerate(data.folds[:n_folds]):
        split = Split.of(data, fold)
        for seed in seeds:
            draw = 100 * seed + place
            yield _NONE, dict(work.cell((name, place, seed, _NONE), partial(clean, split, draw)))
            for noise in noises:
                compute = partial(noisy, split, noise, draw, budgets)
                yield noise, dict(work.cell((name, place, seed, noise), compute))


def _with_features(data: Dataset) -> Dataset:
    """The data set; where it has rankings in place of features, the standings of the items in these are its features.

    A standing runs from 1 for the first to 0 for the last, and for items that a ranker does not list.
    """
    if data.features is not None:
        return data
    rankings = data.judgments
    assert isinstance(rankings, Rankings)
    items, number = rankings.items, rankings.ranking
    matrix, length = np.zeros((len(items), rankings.n_annotators)), np.diff(rankings.offsets)[number]
    matrix[rankings.item, rankings.annotator[number]] = 1.0 - (rankings.rank - 1.0) / np.maximum(length - 1, 1)
    return replace(data, features=Features.from_arrays(items.query_ids(), items.ids, matrix))


def _notes(work: Work, results: dict[str, Results]) -> list[str]:
    """What a reader should know besides."""
    shares = {name: np.mean(work.load(name).truth.grade == 0) for name in results}  # type: ignore[union-attr]
    constant = " and ".join(f"{100 * share:.0f} % ({name})" for name, share in shares.items())
    return [
        "Rank accuracy is nDCG@10 in per cent: the paper does not name its measure, and MAP of a random order is above "
        "its lowest figures. MAP is given beside it.",
        f"Calling every item not relevant gives a label accuracy of {constant}.",
        "lnN(0.4,0.2) has these as mean and standard deviation of the accuracy; as parameters of its logarithm they "
        "would make every annotator perfect. Accuracies are clipped to 0 and 1.",
        "The paper does not say where naive Bayes takes the accuracies from, so its figures are shown beside both: "
        "given, and learned along with the labels.",
        "MQ2007 is at hand in its -agg form only, with the ranks by 21 rankers: where an item stands in each of these "
        "are its features, in place of the 46 of LETOR.",
    ]


_COLUMNS = {"SL": "SL", "MV": "MV", "NB given": "NB", "NB learned": "NB"}


def _rows(data: str, results: Results) -> list[Row]:
    """The table, its averages, the fix and what does better."""
    rows = list(_clean_rows(data, results))
    for noise in results.noises:
        for method in (*PAPER, *FIXED, *IMPROVED):
            place = "table 1" if method in PAPER else "adversarial fix" if method in FIXED else "improved"
            for extra in (*map(str, results.extras(method)), MEAN):
                for measure in MEASURES if method in PAPER else ("rank", "label"):
                    values = results.values(noise, method, extra, measure)
                    column = f"{_COLUMNS[method]} {measure}" if method in _COLUMNS else ""
                    printed = TABLE_1.get((noise, column, extra)) if data == _OHSUMED else None
                    labels = {"data": data, "noise": noise, "L": extra, "method": method, "measure": measure}
                    rows.append(Row(place=place, what=labels, values=values, paper=printed, over="runs"))
    for method in (*PAPER[1:], *FIXED, *IMPROVED):
        labels = {"data": data, "noise": "all", "L": MEAN, "method": method, "measure": "rank less SL"}
        values = results.less_single(method)
        rows.append(Row(place="difference from SL", what=labels, values=values, over="runs"))
    return rows


def _clean_rows(data: str, results: Results) -> Iterator[Row]:
    """Single labelling without noise."""
    for extra in (*map(str, EXTRA), MEAN):
        printed = CLEAN_MEAN if extra == MEAN else CLEAN[int(extra)]
        for measure in ("rank", "MAP"):
            labels = {"data": data, "noise": "no noise", "L": extra, "method": "SL", "measure": measure}
            yield Row(
                place="table 1", what=labels, values=results.values(_NONE, "SL", extra, measure),
                paper=printed if data == _OHSUMED and measure == "rank" else None, over="runs",
            )  # fmt: skip


def _curves(results: Results) -> Any:
    """Rank accuracy against the number of further grades, a panel for each noise."""
    figure, axes = panels(len(results.noises))
    shown = (*PAPER, "NB learned, shares estimated, expected grade", "SL given, expected grade")
    extras = results.extras("MV")
    for ax, noise in zip(axes, results.noises, strict=True):
        series = {method: [results.values(noise, method, str(extra), "rank") for extra in extras] for method in shown}
        lines(ax, extras, series, xlabel="further grades L", ylabel="nDCG@10 in %", error=True, legend=False)
        ax.set_title(noise, fontsize=9)
    common_legend(figure, axes[0])
    return figure


def _scatter(results: Results) -> Any:
    """Label accuracy against rank accuracy, a point for each noise and budget."""
    figure, (ax,) = panels(1, width=5.2, height=4.0)
    for place, method in enumerate(PAPER):
        points = results.points(method)
        ax.plot(*points, "o", color=COLOURS[place], markersize=4, label=method)
    ax.set_xlabel("label accuracy in %")
    ax.set_ylabel("rank accuracy (nDCG@10) in %")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return figure
