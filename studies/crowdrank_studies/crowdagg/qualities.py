"""Figure 2 and section 6.3.2 of Niu et al.: how the quality of annotators is spread, estimated and true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdrank.metrics import preference_accuracy, quality_divergence
from crowdrank.protocols import Bools, Floats, Ints

from ..figures import COLOURS, common_legend, panels
from ..outcomes import Outcome, Row, Verdict
from ..work import Work
from .methods import HELD, Crowd, Way, listwise, table_2
from .niu_figures import DIVERGENCE

_N_BINS = 10
_PSEUDO = 0.5
"""Annotators added to each bin, without which divergences are infinite."""

_REAL, _MAX_QUERIES_SHOWN, _PANELS_PER_ROW = "real", 9, 3


def divergence_outcome(work: Work, crowd: Crowd) -> Outcome:
    """Return figure 2: in each query the share of annotators by quality, and how far estimates are from the truth."""
    ways = [way for way in table_2("hard") if way.name in DIVERGENCE] + [listwise(HELD, "ndcg", "hard", "held_out")]
    qualities = work.cell(("qualities",), lambda: _qualities(crowd, ways))
    names = [way.name for way in ways]
    apart = {name: _divergences(qualities[_REAL], qualities[name]) for name in names}
    rows = [
        Row(
            place="section 6.3.2", what={"method": name, "measure": "divergence"}, values=tuple(apart[name].tolist()),
            paper=DIVERGENCE.get(name), over="queries",
        )
        for name in names
    ]  # fmt: skip
    return Outcome(
        rows=rows,
        verdicts=[_verdict(apart)],
        figures={"figure-2": lambda: _figure_2(qualities, names)},
        notes=(
            "Quality in figure 2 is the share of an annotator's preferences in a query that an order agrees with; "
            f"divergence is that of the true distribution from the estimated one over {_N_BINS} bins, to each of which "
            f"{_PSEUDO:g} annotators are added (the paper says neither).",
        ),
    )


def _qualities(crowd: Crowd, ways: list[Way]) -> dict[str, list[list[float]]]:
    """Name -> query -> quality of its annotators, by the truth and by each method's own order."""
    compared = crowd.truth[crowd.strict.left] != crowd.truth[crowd.strict.right]
    qualities = {_REAL: _agreement(crowd, crowd.truth, compared)}
    everything = np.ones(len(compared), bool)
    for way in ways:
        held = way.name == HELD
        qualities[way.name] = (
            _held_out_qualities(crowd, way) if held else _agreement(crowd, crowd.scores(way, 0), everything)
        )
    return qualities


def _agreement(crowd: Crowd, scores: Floats, use: Bools) -> list[list[float]]:
    """How often the scores agree with the preferences of each annotator of each query."""
    chosen = crowd.strict_apart.select(use)
    present, place = np.unique(chosen.annotator, return_inverse=True)
    left, right = scores[chosen.left], scores[chosen.right]
    accuracy = preference_accuracy(left, right, chosen.outcome, place, per_query=True)
    query = np.zeros(len(present), np.int32)
    query[place] = crowd.query[chosen.left]
    return _by_query(np.asarray(accuracy), query, crowd.judgments.n_queries)


def _held_out_qualities(crowd: Crowd, way: Way) -> list[list[float]]:
    """How often an order that they had no part in agrees with each annotator of each query."""
    judged = crowd.strict_apart
    quality = crowd.consensus(way, 0).quality
    assert quality is not None
    query = np.zeros(judged.n_annotators, np.int32)
    query[judged.annotator] = crowd.query[judged.left]
    return _by_query(quality.quality, query, judged.n_queries)


def _by_query(quality: Floats, query: Ints, n_queries: int) -> list[list[float]]:
    """Qualities of the annotators of each query."""
    return [quality[query == number].tolist() for number in range(n_queries)]


def _divergences(real: list[list[float]], estimated: list[list[float]]) -> Floats:
    """Divergence of the real distribution from the estimated one, for each query."""
    return np.array(
        [quality_divergence(*both, bins=_N_BINS, pseudo_count=_PSEUDO) for both in zip(real, estimated, strict=True)]
    )


def _shares(quality: list[float]) -> Floats:
    """Share of annotators in each bin of quality."""
    counts = np.histogram(quality, _N_BINS, (0, 1))[0] + _PSEUDO
    shares: Floats = counts / counts.sum()
    return shares


def _verdict(apart: Mapping[str, Floats]) -> Verdict:
    """Whether CrowdAgg's divergence is the smallest."""
    means = {name: float(np.mean(apart[name])) for name in DIVERGENCE}
    nearest, second = sorted(means, key=means.__getitem__)[:2]
    shown = ", ".join(f"{name} {value:.2f} (printed {DIVERGENCE[name]:.2f})" for name, value in means.items())
    return Verdict.of(
        "section 6.3.2 and figure 2: CrowdAgg's qualities are nearest to the real ones",
        f"Mean divergence is {shown}; qualities held out from CrowdAgg have {np.mean(apart[HELD]):.2f}. The nearest is "
        f"{nearest}.",
        why="In sample, every method overrates the annotators it was fitted to; this truth, made from the same "
        "crowd, does too.",
        reproduced=nearest == "CrowdAgg-NDCG" and means[nearest] < 0.9 * means[second],
        trend=nearest == "CrowdAgg-NDCG",
    )


def _figure_2(qualities: Mapping[str, Any], names: list[str]) -> Any:
    """Nine queries: the real distribution as bars, estimates as lines."""
    n_shown = min(_MAX_QUERIES_SHOWN, len(qualities[_REAL]))
    figure, axes = panels(n_shown, rows=-(-n_shown // _PANELS_PER_ROW), width=3.2, height=2.4)
    middles = (np.arange(_N_BINS) + 0.5) / _N_BINS
    for number, ax in enumerate(axes):
        ax.bar(middles, _shares(qualities[_REAL][number]), 0.9 / _N_BINS, color="#BBBBBB", label="real")
        for place, name in enumerate(names):
            ax.plot(middles, _shares(qualities[name][number]), color=COLOURS[place], linewidth=1.2, label=name)
        ax.set_ylim(0, 1)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(f"query {number + 1}", fontsize=8)
    # below the last row and beside the first column, where the legend leaves room
    for ax in axes[-_PANELS_PER_ROW:]:
        ax.set_xlabel("annotator quality", fontsize=8)
    for ax in axes[::_PANELS_PER_ROW]:
        ax.set_ylabel("share of annotators", fontsize=8)
    common_legend(figure, axes[0])
    return figure
