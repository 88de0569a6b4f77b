"""Kumar and Lease's future work on a real crowd: arguments with features that are made of their texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from crowdrank import features as extraction
from crowdrank.data.features import Features
from crowdrank.data.judgments import Preferences
from crowdrank.protocols import Bools

from ..figures import common_legend, lines, panels
from ..outcomes import Outcome, Row, Verdict
from ..paired import clear, difference_text
from ..work import Cell, Work
from .held_out import accuracy, fit_scores, gaps, log_likelihood

_DATA = "ukpconvarg1-crowd"
SHARES = (0.01, 0.05, 0.2, 1.0)
NONE, LENGTH, STYLE, WORDS = "none", "length", "style", "style and words"
SETS = (NONE, LENGTH, STYLE, WORDS)
WARM, COLD, NEW = "judged arguments", "unjudged arguments", "new queries"
_N_HELD_QUERIES, _COLD_SHARE, _TEST_SHARE = 8, 0.25, 0.25
_ACCURACY, _GAIN = "accuracy", "gain in log-likelihood"


@dataclass(frozen=True, eq=False)
class Parts:
    """Which votes are learned from, and which test what."""

    train: Bools
    tests: Mapping[str, Bools]
    held_queries: Bools


def divide_votes(votes: Preferences, seed: int) -> Parts:
    """Return the votes on eight queries, on a quarter of the other items, on a quarter of the pairs, and the rest."""
    rng = np.random.default_rng(seed)
    query = votes.items.query
    held = np.isin(np.arange(votes.n_queries), rng.permutation(votes.n_queries)[:_N_HELD_QUERIES])
    old = np.flatnonzero(~held[query])
    cold = np.isin(np.arange(votes.n_items), rng.permutation(old)[: round(_COLD_SHARE * len(old))])
    new = held[query[votes.left]]
    on_cold = ~new & (cold[votes.left] | cold[votes.right])
    both_cold = on_cold & cold[votes.left] & cold[votes.right]
    low, high = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    _, pair = np.unique(low.astype(np.int64) * votes.n_items + high, return_inverse=True)
    tested = rng.random(int(pair.max()) + 1) < _TEST_SHARE
    rest = ~new & ~on_cold
    return Parts(rest & ~tested[pair], {WARM: rest & tested[pair], COLD: both_cold, NEW: new}, held)


def argument_features(work: Work) -> Outcome:
    """Accuracy on votes held out, with few and many votes, with and without features."""
    data = work.load(_DATA)
    assert isinstance(data.judgments, Preferences)
    assert data.details is not None
    texts = data.details.select("query", "item", "text")
    seeds = work.seeds(quick=1, default=10)
    shares = work.pick(quick=SHARES[:3], default=SHARES)
    sets = work.pick(quick=SETS[:3], default=SETS)
    work.expect(len(seeds) * len(shares), _DATA)
    measured: dict[tuple[str, str, float, str], list[float]] = {}
    for seed in seeds:
        for share in shares:
            cell = work.cell((seed, share), partial(run_division, data.judgments, texts, seed, share, sets))
            for name, value in cell.items():
                chosen, test, measure = name.split("|")
                measured.setdefault((chosen, test, share, measure), []).append(value)
    return Outcome(
        rows=list(_rows(measured)),
        verdicts=[],
        figures={"votes": lambda: _figure(measured, shares)},
        notes=[
            *(one(measured).note for one in (_few_votes_verdict, _all_votes_verdict, _length, _ranks_unjudged)),
            "A vote is held out with its pair, so no other annotator's answer to the same question is learned from; "
            "ties do not count. The scale of the log-likelihood is fitted crosswise on halves of the votes held out.",
            "Columns of words are fitted on the texts of the queries that are learned from.",
            "The gold ranking of this set was estimated from the same votes and is not used.",
        ],
    )


def run_division(votes: Preferences, texts: pl.DataFrame, seed: int, share: float, sets: Sequence[str]) -> Cell:
    """Return what each set of columns comes to with one division and a share of the votes."""
    parts = divide_votes(votes, seed)
    rng = np.random.default_rng([seed, round(1000 * share)])
    rows = np.flatnonzero(parts.train)
    kept = rng.permutation(rows)[: max(round(share * len(rows)), 2)]
    train = votes.select(np.isin(np.arange(len(votes)), kept))
    columns = _columns(texts, votes, parts, WORDS in sets)
    figures, plain = {}, 0.0
    for chosen in sets:
        scores = fit_scores(train, columns[chosen])
        for test, held in parts.tests.items():
            gap = gaps(scores, votes, held)
            figures[f"{chosen}|{test}|{_ACCURACY}"] = accuracy(gap)
            if test == WARM:
                likelihood = log_likelihood(gap)
                plain = likelihood if chosen == NONE else plain
                figures[f"{chosen}|{test}|{_GAIN}"] = likelihood - plain
    return figures


def _columns(texts: pl.DataFrame, votes: Preferences, parts: Parts, words: bool) -> dict[str, Features | None]:
    """The sets of columns; words are fitted on the queries that are learned from."""
    style = extraction.texts(texts, words=0)
    sets: dict[str, Features | None] = {NONE: None, LENGTH: style.select(["log_words"]), STYLE: style}
    if words:
        held = votes.items.queries.ids.filter(parts.held_queries).to_list()
        learned = extraction.texts(texts.filter(~pl.col("query").is_in(held)))
        sets[WORDS] = extraction.like(learned, texts)
    return sets


Figures = Mapping[tuple[str, str, float, str], Sequence[float]]


def _rows(figures: Figures) -> Iterator[Row]:
    """All that was measured; the paper has none of it."""
    for (chosen, test, share, measure), values in figures.items():
        labels = {"votes": f"{share:.0%}", "test": test, "columns": chosen, "measure": measure}
        yield Row(place="future work", what=labels, values=tuple(values))


def _gain(figures: Figures, chosen: str, other: str, test: str, share: float, measure: str = _ACCURACY) -> Any:
    """One set less another, for each repeat."""
    return np.subtract(figures[chosen, test, share, measure], figures[other, test, share, measure])


def _few_votes_verdict(figures: Figures) -> Verdict:
    """Whether features help with few votes."""
    gain = _gain(figures, STYLE, NONE, WARM, SHARES[0])
    likelihood = np.asarray(figures[STYLE, WARM, SHARES[0], _GAIN])
    return Verdict.of(
        "future work: features help a real crowd where votes are few",
        f"With 1 % of the votes, style less no features: accuracy {difference_text(gain, 3)}, log-likelihood "
        f"{difference_text(likelihood, 3)}.",
        reproduced=clear(gain) > 0 and clear(likelihood) > 0,
        trend=float(gain.mean()) > 0,
    )


def _all_votes_verdict(figures: Figures) -> Verdict:
    """Whether they change anything with all votes."""
    share = max(share for _, _, share, _ in figures)
    gain = _gain(figures, STYLE, NONE, WARM, share)
    return Verdict.of(
        "future work: features do no harm where votes are many",
        f"With {share:.0%} of the votes, style less no features: accuracy {difference_text(gain, 3)}.",
        reproduced=float(gain.mean()) >= -0.005,
    )


def _length(figures: Figures) -> Verdict:
    """Whether it is more than length."""
    gain = _gain(figures, STYLE, LENGTH, NEW, SHARES[0])
    plain = float(np.mean(figures[LENGTH, NEW, SHARES[0], _ACCURACY]))
    return Verdict.of(
        "future work: style predicts better than length alone",
        f"On new queries the number of words alone has an accuracy of {plain:.3f} with 1 % of the votes, and style "
        f"less that is {difference_text(gain, 3)}.",
        why="Longer arguments convince more, and most of what style adds is length.",
        reproduced=clear(gain) > 0 and float(gain.mean()) > 0.02,
        trend=float(gain.mean()) > 0,
    )


def _ranks_unjudged(figures: Figures) -> Verdict:
    """Whether what nobody judged can be ranked."""
    accuracies = {test: figures[STYLE, test, SHARES[0], _ACCURACY] for test in (COLD, NEW)}
    seen = ", ".join(f"{test} {np.mean(values):.3f}" for test, values in accuracies.items())
    return Verdict.of(
        "future work: arguments that nobody judged can be ranked",
        f"Accuracy of style with 1 % of the votes, where no features have .500: {seen}.",
        reproduced=all(float(np.mean(values)) > 0.6 for values in accuracies.values()),
        trend=all(float(np.mean(values)) > 0.5 for values in accuracies.values()),
    )


def _figure(figures: Figures, shares: Sequence[float]) -> Any:
    """Accuracy against the share of votes."""
    figure, axes = panels(3)
    for ax, test in zip(axes, (WARM, COLD, NEW), strict=True):
        names = [name for name in SETS if (name, test, shares[0], _ACCURACY) in figures]
        series = {name: [figures[name, test, share, _ACCURACY] for share in shares] for name in names}
        lines(ax, [100 * share for share in shares], series, xlabel="votes, %", ylabel="accuracy", legend=False)
        ax.set_xscale("log")
        ax.set_title(test)
    common_legend(figure, axes[0], across=4)
    return figure
