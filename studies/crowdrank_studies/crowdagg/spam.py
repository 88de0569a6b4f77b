"""Figures 3 and 4 of Niu et al.: the methods while spammers are added to the crowd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crowdrank.data.index import Index, Items
from crowdrank.data.judgments import Preferences
from crowdrank.metrics import coefficient_of_variation
from crowdrank.protocols import Counts, Floats, Ints
from crowdrank.simulate import Flips, preferences

from ..figures import common_legend, lines, panels
from ..outcomes import Outcome, Row, Verdict
from ..work import Work
from .comparison_tables import mirex_crowd, trec_gold
from .methods import HELD, NONE, Crowd, Way, listwise, table_2
from .niu_figures import MAIN, VARIATION

_FLIP = {"random": 0.5, "malicious": 1.0}
"""Kind of spammer -> probability of turning the true answer round."""

_OURS = "CrowdAgg-NDCG"
_MAX_FALL = 0.05

Curves = Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
"""Method -> measure -> for each ratio the value of each draw."""


class _Grid(NamedTuple):
    """What is measured on a crowd."""

    ratios: list[float]
    seeds: range


def spammers(work: Work) -> Outcome:
    """Figures 3 and 4 on MIREX, and the same on TREC, of which the paper says that it looks alike."""
    grids = {"MIREX": _mirex_grid(work), "TREC": _trec_grid(work)}
    grids = {name: grid for name, grid in grids.items() if len(grid.seeds)}
    crowds = {name: (mirex_crowd if name == "MIREX" else trec_gold)(work) for name in grids}
    work.expect(sum(len(_FLIP) * len(grid.ratios) * len(grid.seeds) for grid in grids.values()), "spammers")
    all_curves = {
        (name, kind): _curves(work, name, crowds[name], kind, grid) for name, grid in grids.items() for kind in _FLIP
    }
    rows = [row for (name, kind), curves in all_curves.items() for row in _rows(name, kind, curves, grids[name].ratios)]
    return Outcome(
        rows=rows,
        verdicts=_verdicts(all_curves, grids),
        figures={
            f"figure-{'3' if kind == 'random' else '4'}{'' if name == 'MIREX' else '-trec'}": (
                lambda name=name, kind=kind: _figure(kind, all_curves[name, kind], grids[name].ratios)  # type: ignore[misc]
            )
            for name, kind in all_curves
        },
        notes=(
            "A ratio of 1 means as many spammers as a query has annotators. Each answers the pairs that an annotator "
            "drawn from the same query decided, and TREC has fewer of these than annotators, since anyone who gave "
            "equal grades decided no pair. Between items of equal truth even a malicious spammer tosses a coin.",
            "MIREX is measured against a truth that its own crowd gave; TREC, the items with gold, has preferences "
            "from grades, and its spammers give preferences without grades.",
        ),
    )


def _mirex_grid(work: Work) -> _Grid:
    """The paper's ratios and draws, or some of them."""
    step = work.pick(quick=0.25, default=0.05)
    ratios = [round(step * number, 2) for number in range(round(1 / step) + 1)]
    return _Grid(ratios, work.seeds(quick=1, default=20))


def _trec_grid(work: Work) -> _Grid:
    """A few ratios and draws."""
    draws = work.pick(quick=0, default=3, full=20)
    return _Grid([0.0, 0.25, 0.5, 0.75, 1.0], work.seeds(quick=0, default=draws) if draws else range(0))


def _ways(name: str) -> list[Way]:
    """The methods of the figures, and CrowdAgg without quality and with that held out."""
    gap = "hard" if name == "MIREX" else "swapped"
    kept = [way for way in table_2(gap) if way.name != "CrowdAgg-RBP"]
    return [*kept, listwise(NONE, "ndcg", gap, "none"), listwise(HELD, "ndcg", gap, "held_out")]


def _curves(work: Work, name: str, crowd: Crowd, kind: str, grid: _Grid) -> Curves:
    """All methods at all ratios; the spammers of a ratio are among those of a higher one."""
    ways = _ways(name)
    curves: dict[str, dict[str, list[list[float]]]] = {
        way.name: {measure: [[] for _ in grid.ratios] for measure in MAIN} for way in ways
    }
    for seed in grid.seeds:
        spam: _Spam | None = None
        for place, ratio in enumerate(grid.ratios):

            def compute(ratio: float = ratio, seed: int = seed) -> dict[str, dict[str, float]]:
                nonlocal spam
                spam = spam or _Spam.draw(crowd, _FLIP[kind], seed)
                spoiled = Crowd(spam.add_spam(crowd.strict_apart, ratio), crowd.truth)
                measured = {way.name: spoiled.measure(spoiled.scores(way, seed), MAIN) for way in ways}
                return {way: {m: float(np.mean(v)) for m, v in of.items()} for way, of in measured.items()}

            cell = work.cell((name, kind if ratio else "none", ratio, seed), compute)
            for way, measures in cell.items():
                for measure, value in measures.items():
                    curves[way][measure][place].append(value)
    return curves


@dataclass(frozen=True, eq=False)
class _Copies:
    """Each spammer gets the pairs of an annotator; a design as those of simulated preferences."""

    left: Ints
    right: Ints
    annotator: Ints

    def rows(self, items: Items, n_annotators: int, *, seed: Any = 0) -> tuple[Ints, Ints, Ints]:
        """Return left item, right item and annotator of each preference."""
        return self.left, self.right, self.annotator


@dataclass(frozen=True, eq=False)
class _Spam:
    """As many spammers as there are annotators in each query.

    ``place`` is the number of each spammer within their query, ``crowd_size`` the number of annotators there.
    """

    answers: Preferences
    place: Counts
    crowd_size: Counts

    @classmethod
    def draw(cls, crowd: Crowd, flip: float, seed: int) -> _Spam:
        """Return spammers who turn the truth round with probability ``flip``."""
        judged = crowd.strict_apart
        copied_rng, answer_rng = np.random.default_rng(seed).spawn(2)
        query = np.zeros(judged.n_annotators, np.int32)
        query[judged.annotator] = crowd.query[judged.left]
        deciding = np.bincount(query, minlength=judged.n_queries)
        sizes = np.where(deciding > 0, crowd.n_annotators, 0)
        of_query = np.repeat(np.arange(len(sizes)), sizes)
        members, starts = np.argsort(query, kind="stable"), np.cumsum(deciding) - deciding
        drawn = (copied_rng.random(len(of_query)) * deciding[of_query]).astype(np.int64)
        rows, spammer = _rows_of(judged.annotator, members[starts[of_query] + drawn])
        design: Any = _Copies(judged.left[rows], judged.right[rows], spammer)
        pool = Flips(np.full(len(of_query), flip))
        answers = preferences((judged.items, crowd.truth), pool, design, seed=answer_rng).judgments
        assert isinstance(answers, Preferences)
        return cls(answers, np.arange(len(of_query)) - (np.cumsum(sizes) - sizes)[of_query], sizes[of_query])

    def add_spam(self, plain: Preferences, ratio: float) -> Preferences:
        """Return the crowd's preferences with those of this many spammers for each of its annotators."""
        chosen = self.place < np.round(ratio * self.crowd_size)
        spam, names = self.answers.select(chosen[self.answers.annotator]), plain.annotators.ids
        added = pl.Series([f"spammer {number}" for number in range(len(chosen))])
        index = Index.of(pl.concat([names, added]))
        annotator = np.concatenate([index.codes(names)[plain.annotator], index.codes(added)[spam.annotator]])
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(plain, name), getattr(spam, name)]) for name in ("left", "right", "outcome")
        }
        return replace(plain, annotators=index, annotator=annotator, time=None, recorded=None, **columns)


def _rows_of(annotator: Ints, copied: Counts) -> tuple[Counts, Ints]:
    """Rows of the annotator whom each spammer copies, and the spammer of each such row."""
    order = np.argsort(annotator, kind="stable")
    counts = np.bincount(annotator, minlength=int(copied.max()) + 1)
    starts = np.cumsum(counts) - counts
    spammer = np.repeat(np.arange(len(copied)), counts[copied])
    within = np.arange(len(spammer)) - np.repeat(np.cumsum(counts[copied]) - counts[copied], counts[copied])
    return order[starts[copied[spammer]] + within], spammer.astype(np.int32)


def _rows(name: str, kind: str, curves: Curves, ratios: list[float]) -> list[Row]:
    """Values by ratio, then coefficients of variation."""
    place = f"figure {'3' if kind == 'random' else '4'}"
    what = {"data": name, "spammers": kind}
    rows = [
        Row(place=place, what={**what, "method": way, "measure": measure, "ratio": ratio}, values=tuple(values))
        for way, measures in curves.items()
        for measure, by_ratio in measures.items()
        for ratio, values in zip(ratios, by_ratio, strict=True)
    ]
    for way, measures in curves.items():
        for measure in ("N@10", "RBP"):
            printed = VARIATION[kind, measure].get(way) if name == "MIREX" else None
            labels = {**what, "method": way, "measure": f"variation of {measure}"}
            value = _variation(measures[measure])
            rows.append(Row(place="section 6.4", what=labels, values=(value,), paper=printed, over="once"))
    return rows


def _means(by_ratio: Sequence[Sequence[float]]) -> Floats:
    """Mean over draws at each ratio."""
    return np.array([np.mean(values) for values in by_ratio])


def _variation(by_ratio: Sequence[Sequence[float]]) -> float:
    """Coefficient of variation over ratios."""
    means = _means(by_ratio)
    return coefficient_of_variation(means)


def _verdicts(curves: Mapping[tuple[str, str], Curves], grids: Mapping[str, _Grid]) -> list[Verdict]:
    """What became of the claims of section 6.4."""
    verdicts = [
        _steadiness_verdict(
            "figure 3: CrowdAgg varies least in RBP and third least in N@10 under random spam", curves, "random", 3
        ),
        _steadiness_verdict(
            "figure 4: CrowdAgg varies least in N@10 and RBP under malicious spam", curves, "malicious", 1
        ),
        *(_lead_verdict(curves["MIREX", kind], kind, grids["MIREX"].ratios) for kind in _FLIP),
        _flat(curves["MIREX", "random"]),
    ]
    return [*verdicts, *(_trec_verdict(curves, kind) for kind in _FLIP if ("TREC", kind) in curves)]


def _steadiness_verdict(claim: str, all_curves: Mapping[tuple[str, str], Curves], kind: str, n10_place: int) -> Verdict:
    """Whether CrowdAgg's coefficients of variation are among the least."""
    curves = all_curves["MIREX", kind]
    by_measure, places = [], {}
    for measure in ("N@10", "RBP"):
        printed = VARIATION[kind, measure]
        ours = {way: _variation(curves[way][measure]) for way in printed}
        places[measure] = sorted(ours, key=ours.__getitem__).index(_OURS) + 1
        shown = ", ".join(f"{way} {value:.3f} (printed {printed[way]:.4f})" for way, value in ours.items())
        by_measure.append(f"{measure}: {shown}; CrowdAgg is number {places[measure]}")
    why = {
        "random": "Two of the printed figures for N@10, .3347 and .3238, look misprinted, ten times the others.",
        "malicious": "The printed figures for N@10 are far below ours: when half of the crowd answers the reverse of "
        "the truth, every method gets worse.",
    }
    return Verdict.of(
        claim, f"{'. '.join(by_measure)}.", why=why[kind],
        reproduced=places["RBP"] == 1 and places["N@10"] <= n10_place,
        trend=max(places.values()) <= max(n10_place, 2),
    )  # fmt: skip


def _lead_verdict(curves: Curves, kind: str, ratios: list[float]) -> Verdict:
    """Whether CrowdAgg is ahead of all other methods at almost all ratios."""
    rivals = [way for way in VARIATION[kind, "N@10"] if way != _OURS]
    ours, others = _means(curves[_OURS]["N@10"]), np.array([_means(curves[way]["N@10"]) for way in rivals])
    first = ours > others.max(axis=0)
    mean = {way: float(value) for way, value in zip(rivals, others.mean(axis=1), strict=True)}
    best = max(mean, key=mean.__getitem__)
    held, none = (float(_means(curves[name]["N@10"]).mean()) for name in (HELD, NONE))
    return Verdict.of(
        f"figure {'3' if kind == 'random' else '4'}: CrowdAgg almost always outperforms the others under {kind} spam",
        f"By N@10 it is first at {first.sum()} of {len(ratios)} ratios; its mean over ratios is {ours.mean():.3f}, "
        f"that of {best} {mean[best]:.3f}, of CrowdAgg without quality {none:.3f} and held out {held:.3f}.",
        reproduced=bool(first.mean() >= 0.8), trend=bool(first.mean() > 0.5),
    )  # fmt: skip


def _flat(curves: Curves) -> Verdict:
    """Whether random spam leaves CrowdAgg as it was."""
    drop = {way: float(np.subtract(*_means(of["N@10"])[[0, -1]])) for way, of in curves.items()}
    shown = ", ".join(f"{way} {value:+.3f}" for way, value in drop.items())
    return Verdict.of(
        "figure 3: random spammers do not make CrowdAgg worse",
        f"Fall of N@10 on MIREX when the crowd is doubled by random spammers: {shown}.",
        reproduced=abs(drop[_OURS]) <= _MAX_FALL,
        trend=drop[_OURS] <= float(np.median(list(drop.values()))),
    )


def _trec_verdict(all_curves: Mapping[tuple[str, str], Curves], kind: str) -> Verdict:
    """Whether on TREC CrowdAgg falls less than the others, as it is said to."""
    curves = all_curves["TREC", kind]
    rivals = [way for way in VARIATION[kind, "N@10"] if way != _OURS]
    drop = {way: float(np.subtract(*_means(curves[way]["N@10"])[[0, -1]])) for way in (*rivals, _OURS, NONE, HELD)}
    end = {way: float(_means(curves[way]["N@10"])[-1]) for way in (*rivals, _OURS)}
    less = sum(drop[_OURS] < drop[way] for way in rivals)
    shown = ", ".join(f"{way} {value:.3f}" for way, value in drop.items())
    return Verdict.of(
        f"section 6.4: CrowdAgg is robust to {kind} spam on TREC too",
        f"Fall of N@10 when the crowd is doubled: {shown}. CrowdAgg falls less than {less} of {len(rivals)} others and "
        f"ends at {end[_OURS]:.3f}, the best other at {max(end[way] for way in rivals):.3f}.",
        reproduced=less == len(rivals) and end[_OURS] == max(end.values()),
        trend=less > len(rivals) / 2,
    )


def _figure(kind: str, curves: Curves, ratios: list[float]) -> Any:
    """The four panels of a figure."""
    figure, axes = panels(len(MAIN), rows=2)
    for ax, measure in zip(axes, MAIN, strict=True):
        series = {way: curves[way][measure] for way in curves}
        lines(ax, ratios, series, xlabel=f"ratio of {kind} spammers", ylabel=measure, legend=False)
    common_legend(figure, axes[0])
    return figure
