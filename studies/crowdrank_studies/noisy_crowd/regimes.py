"""Where single labelling wins: whole queries against scattered items, a short descent against a converged fit.

ListNet as published takes a gradient step for each query. If the first 800 examples are whole queries they are five or
six, and L further grades of new items bring new queries, hence further steps, while grades of the same items bring
none. From weights of 0 the first steps already point the way, and how far they go does not change the order; from
random weights a learner that stops early is under-fitted. The paper says neither how its examples were chosen nor
where its learner began nor how long it ran, so all combinations are shown.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from crowdrank.protocols import Floats
from crowdrank.rankers import ListNet

from ..figures import common_legend, lines, panels
from ..outcomes import Row, Verdict
from ..paired import clear, difference_text
from ..work import Work
from .crowds import PAPER, Figures, Split, crowd_of, query_by_query
from .kumar_figures import CLEAN, EXTRA, QUICK_EXTRA, SEED_SIZE, TABLE_1

WHOLE, SCATTERED = "whole queries", "scattered items"
CONVERGED, AS_MANY = "converged", "start 0.1, step 0.01, as many steps as SL"
SHORT = {
    f"start {start:g}, step {step:g}, {passes} passes": (start, step, passes)
    for start in (0.0, 0.01, 0.1)
    for step in (0.003, 0.01)
    for passes in (5, 10)
}
"""The short descents that were tried, all of them: spread of the first weights, step and passes over the queries."""

RANDOM = tuple(name for name, (start, _, _) in SHORT.items() if start > 0)
"""Those that begin with random weights, as networks do."""

_TYPICAL = "start 0.1, step 0.01, 5 passes"

_NO_NOISE = "no noise"
_MIN_EXTRA_GRADES = 1600
_MAX_POINTS_OFF = 2.0
_AS_MANY = (0.1, 0.01, 5)


def regime_cell(split: Split, noise: str, seed: int, budgets: Sequence[int]) -> Figures:
    """Return ``"design|learner|method|L"`` -> nDCG@10 and share of right labels for one run of one noise."""
    cell: Figures = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for design in (WHOLE, SCATTERED):
            for extra in budgets:
                for method, (item, target, right) in _targets(split, noise, seed, extra, design).items():
                    for learner, ranker in _rankers(design, method, extra, seed).items():
                        rank = split.learn(item, target, ranker)[0]
                        cell[f"{design}|{learner}|{method}|{extra}"] = [rank, right]
    return cell


def _targets(split: Split, noise: str, seed: int, extra: int, design: str) -> dict[str, tuple[Any, Floats, float]]:
    """Method -> items, what is learned of them, and the share of right labels."""
    if noise == _NO_NOISE:
        rng = np.random.default_rng(seed)
        order = query_by_query(split.train.query, rng) if design == WHOLE else rng.permutation(len(split.train.grade))
        item = order[: SEED_SIZE + extra]
        return {"SL": (item, split.train.grade[item], 100.0)}
    crowd = crowd_of(split, noise, seed, whole_queries=design == WHOLE)
    outcomes = crowd.outcomes(extra, improved=False)
    return {one: (outcomes[one].item, outcomes[one].target, outcomes[one].right) for one in PAPER if one in outcomes}


def _rankers(design: str, method: str, extra: int, seed: int) -> dict[str, ListNet | None]:
    """Learner -> the ranker, ``None`` for the converged fit."""
    rankers: dict[str, ListNet | None] = {name: _stochastic(*setting, seed) for name, setting in SHORT.items()}
    if design == SCATTERED:
        return rankers
    start, step, passes = _AS_MANY
    rankers[AS_MANY] = _stochastic(start, step, passes * (1 if method == "SL" else 1 + extra // SEED_SIZE), seed)
    return {**rankers, CONVERGED: None}


def _stochastic(start: float, step: float, passes: int, seed: int) -> ListNet:
    """A short descent."""
    return ListNet(solver="stochastic", scale="none", start=start, learning_rate=step, max_iter=passes, seed=seed)


class Regimes:
    """What all runs found, by design, learner, noise, method and budget; runs stand in the same order everywhere."""

    def __init__(self, runs: Sequence[tuple[str, Mapping[str, Sequence[float]]]]) -> None:
        self._found: dict[tuple[str, ...], list[Sequence[float]]] = {}
        for noise, cell in runs:
            for name, figures in cell.items():
                self._found.setdefault((noise, *name.split("|")), []).append(figures)

    @property
    def noises(self) -> list[str]:
        """Kinds of noise."""
        return [one for one in dict.fromkeys(key[0] for key in self._found) if one != _NO_NOISE]

    @property
    def budgets(self) -> list[int]:
        """Further grades L."""
        return sorted({int(key[-1]) for key in self._found})

    def values(self, noise: str, design: str, learner: str, method: str, extra: int) -> tuple[float, ...]:
        """Return nDCG@10 of each run."""
        return tuple(one[0] for one in self._found[noise, design, learner, method, str(extra)])

    def has(self, design: str, learner: str) -> bool:
        """Return whether a combination was run."""
        return any(key[1:3] == (design, learner) for key in self._found)

    def clean(self, design: str, learner: str) -> list[float]:
        """Return mean nDCG@10 of single labelling without noise, by budget."""
        return [float(np.mean(self.values(_NO_NOISE, design, learner, "SL", extra))) for extra in self.budgets]

    def ahead(self, method: str, design: str, learner: str, extras: Sequence[int]) -> Floats:
        """Return SL less a method in each run, the mean over noises and budgets."""
        several = [
            np.subtract(
                self.values(noise, design, learner, "SL", extra), self.values(noise, design, learner, method, extra)
            )
            for noise in self.noises
            for extra in extras
        ]
        differences: Floats = np.mean(several, axis=0)
        return differences

    def rows(self) -> Iterator[Row]:
        """Return the figures: rank accuracy of every combination, and SL less each method."""
        for key, runs in self._found.items():
            noise, design, learner, method, extra = key
            printed = CLEAN[int(extra)] if noise == _NO_NOISE else _printed_figure(noise, method, extra)
            yield Row(
                place="table 1, regimes",
                what={"examples": design, "learner": learner, "noise": noise, "L": extra, "method": method},
                values=tuple(one[0] for one in runs), paper=printed if (design, learner) in _SHOWN else None,
                over="runs",
            )  # fmt: skip
        for design in (WHOLE, SCATTERED):
            for learner in (*SHORT, AS_MANY, CONVERGED):
                for method in PAPER[1:]:
                    for budget in [one for one in self.budgets if one]:
                        if (self.noises[0], design, learner, method, str(budget)) in self._found:
                            labels = {"examples": design, "learner": learner, "against": method, "L": str(budget)}
                            values = self.ahead(method, design, learner, [budget])
                            yield Row(place="SL less consensus", what=labels, values=tuple(values), over="runs")


_SHOWN = {(WHOLE, _TYPICAL)}
"""Combination whose rank accuracies stand beside the printed ones; files have all."""


def _printed_figure(noise: str, method: str, extra: str) -> float | None:
    """Rank accuracy of a method in print."""
    return TABLE_1.get((noise, f"{method.split(' ')[0]} rank", extra))


def run_regimes(work: Work, name: str, seeds: range, n_folds: int, noises: Sequence[str]) -> Regimes:
    """Return what all combinations reached, fold after fold and repetition after repetition."""
    data, runs = work.load(name), []
    assert data.folds is not None
    budgets = work.pick(quick=QUICK_EXTRA, default=EXTRA)
    for place, fold in enumerate(data.folds[:n_folds]):
        split = Split.of(data, fold)
        for seed in seeds:
            for noise in (_NO_NOISE, *noises):
                compute = partial(regime_cell, split, noise, 100 * seed + place, budgets)
                runs.append((noise, dict(work.cell(("regimes", len(SHORT), name, place, seed, noise), compute))))
    return Regimes(runs)


def regime_verdicts(regimes: Regimes) -> list[Verdict]:
    """Return verdicts on table 1 where examples are whole queries and a short descent begins with random weights."""
    last = [extra for extra in regimes.budgets if extra >= _MIN_EXTRA_GRADES] or regimes.budgets[-1:]
    verdicts = [_clean_verdict(regimes)]
    for method in PAPER[1:]:
        by_setting = {learner: regimes.ahead(method, WHOLE, learner, last) for learner in RANDOM}
        together = np.mean(list(by_setting.values()), axis=0)
        differences = ", ".join(f"{learner}: {difference_text(values)}" for learner, values in by_setting.items())
        most = difference_text(regimes.ahead(method, WHOLE, _TYPICAL, last[-1:]))
        verdicts.append(
            Verdict.of(
                f"SL outperforms {method.replace('NB', 'NB with accuracies')} from L = {last[0]} on (whole queries, "
                "short descent from random weights)",
                f"SL less {method} in nDCG@10, mean over noises: {difference_text(together)} over all eight descents "
                f"({differences}); at L = {last[-1]} with {_TYPICAL} {most}.",
                reproduced=clear(together) > 0 and all(float(np.mean(one)) > 0 for one in by_setting.values()),
                trend=clear(together) > 0,
                decided=clear(together) != 0,
            )
        )
    return verdicts


def _clean_verdict(regimes: Regimes) -> Verdict:
    """Whether more items raise rank accuracy without noise as printed."""
    curves = {learner: regimes.clean(WHOLE, learner) for learner in RANDOM}
    printed = [CLEAN[extra] for extra in regimes.budgets]
    curves_text = "; ".join(f"{learner}: {_curve_text(curve)}" for learner, curve in curves.items())
    rise = [curve[-1] - curve[0] for curve in curves.values()]
    wanted = printed[-1] - printed[0]
    return Verdict.of(
        "table 1: without noise, more items raise rank accuracy from 30.9 to 38.3 (whole queries, short descent from "
        "random weights)",
        f"nDCG@10 by L: {curves_text}; printed {_curve_text(printed)}.",
        reproduced=any(max(abs(np.subtract(curve, printed))) <= _MAX_POINTS_OFF for curve in curves.values()),
        trend=float(np.median(rise)) >= 0.5 * wanted,
    )


def _curve_text(values: Sequence[float]) -> str:
    """Figures by budget."""
    return " / ".join(f"{one:.1f}" for one in values)


def mechanism_note(regimes: Regimes) -> str:
    """Return what the lead of single labelling rests on, with the figures of each combination."""
    last = regimes.budgets[-1:]
    by_regime = []
    for design in (WHOLE, SCATTERED):
        for learner in (*SHORT, AS_MANY, CONVERGED):
            if not regimes.has(design, learner):
                continue
            leads = " and ".join(
                f"{method} {difference_text(regimes.ahead(method, design, learner, last))}"
                for method in ("MV", "NB learned")
            )
            by_regime.append(f"{design}, {learner}: {leads}, no noise {_curve_text(regimes.clean(design, learner))}")
    return (
        "Single labelling wins where the learner stops early, because more labelled queries mean more gradient "
        f"steps. SL less MV and NB at L = {last[0]}, mean over noises, and the curve without noise: "
        f"{'; '.join(by_regime)}. {AS_MANY!r} lets MV and NB pass over their few queries as often as SL has steps; "
        "items scattered over all queries are as many steps for all methods. The converged fit on scattered items "
        "stands in table 1 below."
    )


def regime_curves(regimes: Regimes) -> Any:
    """Draw rank accuracy by L, the mean over noises, a panel for each combination."""
    shown = [(WHOLE, _TYPICAL), (WHOLE, AS_MANY), (WHOLE, CONVERGED), (SCATTERED, _TYPICAL)]
    extras = [extra for extra in regimes.budgets if extra]
    figure, axes = panels(len(shown))
    for ax, (design, learner) in zip(axes, shown, strict=True):
        series = {
            method: [
                np.mean([regimes.values(noise, design, learner, method, extra) for noise in regimes.noises], axis=0)
                for extra in extras
            ]
            for method in PAPER
        }
        lines(ax, extras, series, xlabel="further grades L", ylabel="nDCG@10 in %", error=True, legend=False)
        ax.set_title(f"{design}, {learner}", fontsize=9)
    common_legend(figure, axes[0])
    return figure
