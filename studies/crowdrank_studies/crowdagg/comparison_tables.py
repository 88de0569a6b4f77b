"""Table 2 of Niu et al. on both crowds, with paired tests, and figure 1."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crowdrank.data.judgments import Grades
from crowdrank.protocols import Floats

from ..figures import bars, panels
from ..outcomes import Outcome, Row, Verdict
from ..work import Work
from .methods import (
    GRADED,
    HELD,
    LITERAL,
    NONE,
    POOLED,
    STEPPED,
    WITHOUT,
    Crowd,
    PerQuery,
    n_cells,
    p_greater,
    run,
    run_both,
    table_2,
    table_rows,
    variants,
)
from .niu_figures import BASELINES, GAINS, MAIN, MEASURES, METHODS, OURS, TABLE_2A, TABLE_2B
from .qualities import divergence_outcome

_MAX_DIFFERENCE = 0.03
"""Figures that differ by less on average count as the same: about two standard errors over 100 queries."""

_RELEVANT = 1
_TREC_MPM_RATE, _MIREX_MPM_RATE = 1e-4, 0.1
"""Learning rates of MPM that the paper prints for each crowd."""


def trec(work: Work) -> Outcome:
    """Table 2 (a): all 19,033 items ranked as the paper has them, measured in both ways, and those with gold alone."""
    crowds = {"all items": _trec_all(work), "gold items": trec_gold(work)}
    crowds = crowds if not work.quick else {"gold items": crowds["gold items"]}
    ways = [*table_2("swapped"), *variants("swapped", _TREC_MPM_RATE), *GRADED]
    work.expect(len(crowds) * n_cells(work, ways), "crowdagg-trec")
    main: Mapping[str, PerQuery] | None = None
    measured = {}
    for setting, crowd in crowds.items():
        measured[_PROTOCOLS[setting]], everything = run_both(work, crowd, ways, setting)
        if setting == "all items":
            main = measured[_TREC_EVAL] = everything
    gold = measured[_PROTOCOLS["all items" if main is not None else "gold items"]]
    shown = gold if main is None else main
    rows = [
        row
        for protocol, of_methods in measured.items()
        for row in table_rows("table 2 (a)", of_methods, TABLE_2A, items=protocol)
    ]
    return Outcome(
        rows=[*rows, *_tests("table 2 (a), tests", shown, TABLE_2A)],
        verdicts=[
            _figures_verdict("table 2 (a): the figures", measured, shown),
            _optimiser_verdict(measured, shown),
            _greedy_verdict(measured, shown),
            _best_verdict("table 2 (a): CrowdAgg outperforms the baselines in most cases", measured, shown),
        ],
        figures={"table-2a": lambda: _comparison_bars(shown, TABLE_2A)},
        notes=(
            *_protocol_notes(crowds, measured),
            _equation_verdict(gold).note,
            *(_held_out_verdict(of_methods, f", {protocol}").note for protocol, of_methods in measured.items()),
            "CrowdAgg is run with the cases of Eq. 6 exchanged (gap 'swapped') and its quality learned in sample, as "
            "in the paper (crowdagg-paper); 'Eq. 6 as printed' leaves the cases as they stand (crowdagg-printed).",
            "MPM is shown with its multinomial likelihood; 'MPM, logistic' is the form given the pairs. EMEloRating "
            "has confusion matrices and leaves annotators below 0.5 out (em-elo-paper); 'one coin' has a quality each.",
            f"Methods for grades, which the paper leaves out, reach an N@10 of {_grades_text(gold)} on the items with "
            "gold: preferences lose the grades of annotators who grade all items alike.",
        ),
    )


_TREC_EVAL = "all ranked, those without gold not relevant"
_PROTOCOLS = {"all items": "all ranked, gold measured", "gold items": "gold alone ranked and measured"}
"""What is fitted -> the protocol."""


def _protocol_notes(crowds: Mapping[str, Crowd], measured: Mapping[str, Mapping[str, PerQuery]]) -> list[str]:
    """What the protocols are, which cannot be the paper's, and what each favours."""
    gold = crowds["gold items"]
    best = float(np.mean(gold.measure(np.nan_to_num(gold.truth, nan=-1.0), ["RBP"])["RBP"]))
    printed = max(TABLE_2A[method]["RBP"] for method in METHODS)
    notes = [
        f"Measured on items with gold alone, RBP of a perfect order is {best:.3f}, and the paper prints up to "
        f"{printed:.3f}: it must have used another protocol. trec_eval ranks all items of a query and counts those "
        "without gold as not relevant; verdicts use that protocol where it was run. Relevance is binary, as in the "
        "paper; ties count by expectation."
    ]
    if _TREC_EVAL in measured:
        order = {name: sorted(METHODS, key=lambda m, of=of: -_means(of, m)["N@10"]) for name, of in measured.items()}  # type: ignore[misc]
        ranks = "; ".join(f"{name}: {', '.join(methods)}" for name, methods in order.items())
        notes.append(
            "Counting items without gold as not relevant favours methods that place items by how much is known of "
            "them: gold was made for items that many systems found and many annotators saw. Gold alone asks only in "
            f"which order these stand. Methods by N@10 under each protocol: {ranks}."
        )
    return notes


def _greedy_verdict(measured: Mapping[str, Mapping[str, PerQuery]], shown: Mapping[str, PerQuery]) -> Verdict:
    """Whether greedy order is the best baseline; told for each protocol, by N@10."""
    said, lead, order = [], np.zeros(1), [""]
    for protocol, of_methods in measured.items():
        means = {name: _means(of_methods, name)["N@10"] for name in BASELINES}
        ranked = sorted(means, key=lambda name: -means[name])
        rival = ranked[1] if ranked[0] == "GreedyOrder" else ranked[0]
        ahead = of_methods["GreedyOrder"]["N@10"] - of_methods[rival]["N@10"]
        said.append(
            f"{protocol}: {', '.join(f'{name} {means[name]:.3f}' for name in ranked)}; GreedyOrder less {rival} is "
            f"{np.mean(ahead):+.3f} ± {_error(ahead):.3f}"
        )
        if of_methods is shown:
            lead, order = ahead, ranked
    return Verdict.of(
        "table 2 (a): GreedyOrder is the best baseline",
        f"Baselines by N@10, {'. '.join(said)}.",
        reproduced=order[0] == "GreedyOrder",
        trend=order[1] == "GreedyOrder",
        decided=abs(float(np.mean(lead))) > 2 * _error(lead),
    )


def _grades_text(measured: Mapping[str, PerQuery]) -> str:
    """N@10 of methods for grades, in words."""
    return " and ".join(f"{np.mean(measured[way.name]['N@10']):.3f} ({way.name})" for way in GRADED)


_TREC_WHY = "Here 33 of the 190 items of a query have gold, 54 % of it relevant."


def _trec_all(work: Work) -> Crowd:
    """Grades of all items, relevant or not."""
    data = work.load("trec-rf10-labels-full")
    assert isinstance(data.judgments, Grades)
    assert data.truth is not None
    grades, truth = data.judgments, data.truth.align(data.judgments.items)
    binary = replace(grades, grade=(grades.grade >= _RELEVANT).astype(float), declared=None)
    return Crowd(binary, np.where(np.isfinite(truth), truth >= _RELEVANT, np.nan))


def trec_gold(work: Work) -> Crowd:
    """Return grades of the items with gold, relevant or not."""
    data = work.load("trec-rf10-crowd-gold")
    assert isinstance(data.judgments, Grades)
    assert data.truth is not None
    return Crowd(data.judgments, data.truth.align(data.judgments.items))


def mirex(work: Work) -> Outcome:
    """Table 2 (b), figures 1 and 2 and section 6.3.2, against a truth that the crowd itself gave."""
    crowd = mirex_crowd(work)
    ways = [*table_2("hard"), *variants("hard", _MIREX_MPM_RATE), *WITHOUT.values()]
    work.expect(n_cells(work, ways) + 1, "crowdagg-mirex")
    measured = run(work, crowd, ways, "mirex")
    shown = {name: values for name, values in measured.items() if not name.endswith("-eq")}
    divergence = divergence_outcome(work, crowd)
    return Outcome(
        rows=[
            *table_rows("table 2 (b)", shown, TABLE_2B),
            *_tests("table 2 (b), tests", shown, TABLE_2B),
            *_figure_1_rows(measured),
            *divergence.rows,
        ],
        verdicts=[
            Verdict("table 2 (b): the figures", "not decidable", _MIREX_WHY),
            _best_verdict("table 2 (b): CrowdAgg outperforms the baselines in most cases", {"": shown}, shown),
            *(_figure_1_verdict(measured, method) for method in WITHOUT),
            *divergence.verdicts,
        ],
        figures={"figure-1": lambda: _figure_1(measured), **divergence.figures},
        notes=(
            _held_out_verdict(shown).note,
            "The truth was estimated from this crowd, so figures measure agreement with its majority, not correctness; "
            "its groups are taken as five grades, the highest group 4 and the lowest 0.",
            f"{int((crowd.judgments.outcome == 0).sum()):,} of {len(crowd.judgments):,} answers say 'same' and are not "  # type: ignore[union-attr]
            "preferences.",
            "Preferences are taken as they are (gap 'hard'): numbers of pairs won mislead where annotators saw few "
            "pairs.",
            *divergence.notes,
        ),
    )


_MIREX_WHY = (
    "The expert grades of 2005 that the paper measured against are not public; the only truth at hand was estimated "
    "from this very crowd, on which every method scores far higher."
)


def mirex_crowd(work: Work) -> Crowd:
    """Return the melodies, the groups of the truth as grades from 4 down to 0 in each query."""
    data = work.load("mirex2005-crowd")
    assert data.judgments is not None
    assert not isinstance(data.judgments, Grades)
    assert data.truth is not None
    items = data.judgments.items
    group = -data.truth.align(items)
    lowest = np.array([group[items.query == query].max() for query in range(items.n_queries)])[items.query]
    return Crowd(data.judgments, np.round(4 * (lowest - group) / (lowest - 1)))  # type: ignore[arg-type]


def _tests(place: str, measured: Mapping[str, PerQuery], printed: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """CrowdAgg less each baseline, with the one-tailed p value of a paired t test."""
    return [
        Row(
            place=place,
            what={
                "method": ours, "against": other, "measure": measure,
                "p": f"{p_greater(measured[ours][measure], measured[other][measure]):.3f}",
            },
            values=tuple((measured[ours][measure] - measured[other][measure]).tolist()),
            paper=printed[ours][measure] - printed[other][measure] if ours in printed else None, over="queries",
        )
        for ours in (*OURS, HELD)
        for other in BASELINES
        for measure in MAIN
    ]  # fmt: skip


def _figures_verdict(
    claim: str, measured: Mapping[str, Mapping[str, PerQuery]], shown: Mapping[str, PerQuery]
) -> Verdict:
    """Whether the figures are the printed ones, or at least the methods stand in the same order, by protocol."""
    said, same, trend = [], False, False
    for protocol, of_methods in measured.items():
        off = {method: _distance(of_methods, TABLE_2A, method) for method in METHODS}
        printed = [TABLE_2A[method]["N@10"] for method in METHODS]
        order = _agreement([_means(of_methods, method)["N@10"] for method in METHODS], printed)
        random = _means(of_methods, "random order")["N@10"]
        said.append(
            f"{protocol}: {', '.join(f'{m} {v:.3f}' for m, v in off.items())}; Kendall's tau of the methods' order by "
            f"N@10 with the printed one is {order:.2f}, and a random order reaches {random:.3f}"
        )
        if of_methods is shown:
            same, trend = max(off.values()) <= _MAX_DIFFERENCE, order >= 0.5
    reason = f"Mean absolute difference over the twelve measures, {'. '.join(said)}."
    return Verdict.of(claim, reason, reproduced=same, trend=trend, why=_TREC_WHY)


def _distance(measured: Mapping[str, PerQuery], printed: Mapping[str, Mapping[str, float]], method: str) -> float:
    """Mean absolute difference of a method's figures from the printed ones."""
    means = _means(measured, method)
    return float(np.mean([abs(means[name] - printed[method][name]) for name in MEASURES]))


def _agreement(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's tau of two lists."""
    from crowdrank.metrics import kendall_tau

    return float(kendall_tau(np.array(first), np.array(second)))


def _means(measured: Mapping[str, PerQuery], method: str) -> dict[str, float]:
    """Means over queries."""
    return {measure: float(np.mean(values)) for measure, values in measured[method].items()}


def _optimiser_verdict(measured: Mapping[str, Mapping[str, PerQuery]], shown: Mapping[str, PerQuery]) -> Verdict:
    """Whether Bradley-Terry and Crowd-BT are as bad as printed, and whether the printed optimisers make them so."""
    names = ("BradleyTerry", "Crowd-BT")
    printed = {name: TABLE_2A[name]["N@10"] for name in STEPPED}
    told, explained = [], set[str]()
    for protocol, of_methods in measured.items():
        figures = []
        for name, stepped in STEPPED.items():
            by_steps = _means(of_methods, stepped)["N@10"]
            if name in names and abs(by_steps - printed[name]) <= _MAX_DIFFERENCE:
                explained.add(f"{name} ({protocol})")
            figures.append(f"{name} {_means(of_methods, name)['N@10']:.3f} and {by_steps:.3f}")
        best = max(_means(of_methods, name)["N@10"] for name in BASELINES)
        told.append(f"{protocol}: {', '.join(figures)}, the best baseline {best:.3f}")
    ours = {name: _means(shown, name)["N@10"] for name in names}
    best = max(_means(shown, name)["N@10"] for name in BASELINES)
    why = f"of {', '.join(sorted(explained))}" if explained else "of neither under any protocol"
    return Verdict.of(
        "table 2 (a): BradleyTerry and Crowd-BT are far behind the other methods",
        f"Printed N@10 is {', '.join(f'{name} {value:.3f}' for name, value in printed.items())}. Fitted to "
        "convergence, and by gradient steps at the printed rates (bt-paper, mpm-paper, crowd-bt-paper), "
        f"{'. '.join(told)}.",
        why=f"The printed steps explain the printed figure {why}.",
        reproduced=all(abs(ours[name] - printed[name]) <= _MAX_DIFFERENCE for name in names),
        trend=all(ours[name] < best - 0.1 for name in names),
    )


def _best_verdict(claim: str, measured: Mapping[str, Mapping[str, PerQuery]], shown: Mapping[str, PerQuery]) -> Verdict:
    """Whether CrowdAgg is significantly above every baseline in most measures, or above them on average."""
    told, half = [], len(MEASURES) / 2
    most_significant = most_ahead = False
    for protocol, of_methods in measured.items():
        significant, ahead = [], []
        for measure in MEASURES:
            means = {name: float(np.mean(of_methods[name][measure])) for name in METHODS}
            ours = max(OURS, key=means.__getitem__)
            tests = [p_greater(of_methods[ours][measure], of_methods[name][measure]) for name in BASELINES]
            if max(tests) < 0.05:
                significant.append(measure)
            if means[ours] > max(means[name] for name in BASELINES):
                ahead.append(measure)
        n10 = {name: float(np.mean(of_methods[name]["N@10"])) for name in METHODS}
        told.append(
            f"{protocol}{': ' if protocol else ''}in {len(ahead)} of {len(MEASURES)}, significantly in "
            f"{len(significant)}; N@10 is {n10[OURS[0]]:.3f} and {n10[OURS[1]]:.3f} against "
            f"{max(n10[name] for name in BASELINES):.3f} for the best baseline"
        )
        if of_methods is shown:
            most_significant, most_ahead = len(significant) > half, len(ahead) > half
    reason = (
        "Measures in which CrowdAgg as the paper learns quality is ahead of every baseline (one-tailed paired t tests, "
        f"p < .05), {'. '.join(told)}."
    )
    return Verdict.of(claim, reason, reproduced=most_significant, trend=most_ahead)


def _equation_verdict(measured: Mapping[str, PerQuery]) -> Verdict:
    """Whether Eq. 6 does as it is printed."""
    literal, random = measured[LITERAL]["N@10"], measured["random order"]["N@10"]
    exchanged = measured[OURS[0]]["N@10"]
    return Verdict.of(
        "Eq. 6 as printed",
        f"With the cases as printed, a narrow winner counts as the loser: N@10 is {np.mean(literal):.3f}, a random "
        f"order has {np.mean(random):.3f}, and with the cases exchanged it is {np.mean(exchanged):.3f}.",
        reproduced=bool(np.mean(literal) >= np.mean(exchanged) - _MAX_DIFFERENCE),
    )


def _held_out_verdict(measured: Mapping[str, PerQuery], where: str = "") -> Verdict:
    """Whether quality learned as the paper does helps, and what held-out quality gives."""
    with_quality, without, held, pooled = (measured[name]["N@10"] for name in (OURS[0], NONE, HELD, POOLED))
    p_helps, p_hurts = p_greater(with_quality, without), p_greater(without, with_quality)
    best = max(BASELINES, key=lambda name: float(np.mean(measured[name]["N@10"])))
    gain, over_best = held - without, held - measured[best]["N@10"]
    return Verdict.of(
        f"annotator quality improves CrowdAgg{where}",
        f"N@10 is {np.mean(with_quality):.3f} with quality learned in sample and {np.mean(without):.3f} without (p "
        f"{min(p_helps, p_hurts):.3f}). Held out it is {np.mean(held):.3f}, which is {np.mean(gain):+.3f} ± "
        f"{_error(gain):.3f} against none and {np.mean(over_best):+.3f} ± {_error(over_best):.3f} against {best}; "
        f"pooled over queries it is {np.mean(pooled):.3f}.",
        reproduced=p_helps < 0.05,
        trend=bool(np.mean(with_quality) > np.mean(without)),
        why="The order that annotators are measured against contains their own answers; with few pairs each, they "
        "confirm themselves.",
    )


def _error(values: Floats) -> float:
    """Standard error of a mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _figure_1_rows(measured: Mapping[str, PerQuery]) -> list[Row]:
    """Measures without quality, and the improvement that quality brings in per cent."""
    rows = table_rows("figure 1", {way.name: {m: measured[way.name][m] for m in MAIN} for way in WITHOUT.values()}, {})
    for method, way in WITHOUT.items():
        for measure in MAIN:
            with_quality, without = (float(np.mean(measured[name][measure])) for name in (method, way.name))
            rows.append(
                Row(
                    place="figure 1, improvement in %", what={"method": method, "measure": measure},
                    values=(100 * (with_quality / without - 1),), paper=GAINS.get((method, measure)), over="once",
                )
            )  # fmt: skip
    return rows


def _figure_1_verdict(measured: Mapping[str, PerQuery], method: str) -> Verdict:
    """Whether a method is better with quality than without."""
    plain = WITHOUT[method].name
    change = {measure: float(np.mean(measured[method][measure] - measured[plain][measure])) for measure in MAIN}
    tests = {measure: p_greater(measured[method][measure], measured[plain][measure]) for measure in MAIN}
    shown = ", ".join(f"{measure} {change[measure]:+.3f} (p {tests[measure]:.2f})" for measure in MAIN)
    return Verdict.of(
        f"figure 1: {method} is better with annotator quality",
        f"Changes with quality: {shown}.",
        why="Eleven queries and a truth made by this crowd are too little for a verdict.",
        reproduced=all(p < 0.05 for p in tests.values()),
        trend=sum(value > 0 for value in change.values()) > len(MAIN) / 2,
    )


def _figure_1(measured: Mapping[str, PerQuery]) -> Any:
    """Bars with and without quality, a panel for each method."""
    figure, axes = panels(len(WITHOUT), rows=2)
    for ax, (method, way) in zip(axes, WITHOUT.items(), strict=True):
        shown = {name: [float(np.mean(measured[name][m])) for m in MAIN] for name in (way.name, method)}
        bars(ax, MAIN, shown, ylabel="mean over queries")
    return figure


def _comparison_bars(measured: Mapping[str, PerQuery], printed: Mapping[str, Mapping[str, float]]) -> Any:
    """Bars of the printed figures and ours, a panel for each of four measures."""
    figure, axes = panels(len(MAIN), rows=2, width=5.5)
    for ax, measure in zip(axes, MAIN, strict=True):
        ours = [float(np.mean(measured[method][measure])) for method in METHODS]
        shown = {"printed": [printed[method][measure] for method in METHODS], "ours": ours}
        names = [re.sub(r"-|(?<=[a-z])(?=Order|Terry|Rating|Fuse)", "\n", method) for method in METHODS]
        bars(ax, names, shown, ylabel=measure)
        ax.tick_params(axis="x", labelsize=7)
    return figure
