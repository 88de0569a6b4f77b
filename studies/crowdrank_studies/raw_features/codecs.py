"""Speech through codecs graded by listeners: what columns of the recordings are worth beside the grades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from crowdrank.data.features import Features
from crowdrank.data.judgments import Grades, Preferences
from crowdrank.protocols import Bools, Floats

from ..figures import common_legend, lines, panels
from ..outcomes import Outcome, Row, Verdict
from ..paired import clear, difference_text
from ..work import Cell, Work
from .held_out import accuracy, fit_scores, gaps

_DATA = "neural-codec-mushra"
SHARES = (0.02, 0.1, 1.0)
NONE, BANDWIDTH, ALL, MEAN = "none", "bandwidth", "all", "the codec's mean"
GRADED, NEW_SENTENCES, NEW_CODEC = "graded sentences", "new sentences", "a new codec"
_HELD_SENTENCE_SHARE = 0.25


def codec_listening(work: Work) -> Outcome:
    """Accuracy on preferences of listeners who were not learned from."""
    data = work.load(_DATA)
    assert isinstance(data.judgments, Grades)
    assert data.features is not None
    votes, columns = data.judgments.as_preferences(), data.features
    seeds = work.seeds(quick=1, default=10)
    shares = SHARES
    tests = work.pick(quick=(GRADED, NEW_SENTENCES), default=(GRADED, NEW_SENTENCES, NEW_CODEC))
    work.expect(len(seeds) * len(tests), _DATA)
    measured: dict[tuple[str, str, float], list[float]] = {}
    for seed in seeds:
        for test in tests:
            cell = work.cell((test, seed), partial(_run, votes, columns, test, seed, shares))
            for name, value in cell.items():
                chosen, share = name.split("|")
                measured.setdefault((test, chosen, float(share)), []).append(value)
    verdicts = [_few_grades_verdict(measured), _mean(measured)]
    if NEW_CODEC in tests:
        verdicts.append(_new_codec(measured))
    return Outcome(
        rows=list(_rows(measured)), verdicts=[], figures={"grades": lambda: _figure(measured, shares)},
        notes=[
            *(verdict.note for verdict in verdicts),
            "Grades of a listener are preferences between codecs of the same sentence; half of the listeners are "
            "learned from, and the others test. Reference and anchor are left out.",
            "The columns are those of the stored table, measured on recordings that are not part of it. They measure "
            "the quality of coded speech, not expressiveness, which Gupta and Narayanan rate.",
        ],
    )  # fmt: skip


def _run(votes: Preferences, columns: Features, test: str, seed: int, shares: Sequence[float]) -> Cell:
    """Accuracy of each set of columns with each share of the preferences."""
    rng = np.random.default_rng([seed, (GRADED, NEW_SENTENCES, NEW_CODEC).index(test)])
    listens = np.isin(np.arange(votes.n_annotators), rng.permutation(votes.n_annotators)[: votes.n_annotators // 2])
    learned = listens[votes.annotator]
    if test == NEW_CODEC:
        return {f"{name}|1.0": value for name, value in _new_codecs(votes, columns, learned).items()}
    tested = ~learned
    if test == NEW_SENTENCES:
        n_held = round(_HELD_SENTENCE_SHARE * votes.n_queries)
        held = np.isin(np.arange(votes.n_queries), rng.permutation(votes.n_queries)[:n_held])
        inside = held[votes.items.query[votes.left]]
        learned, tested = learned & ~inside, tested & inside
    accuracies = {}
    order = rng.permutation(np.flatnonzero(learned))
    for share in shares:
        kept = np.isin(np.arange(len(votes)), order[: max(round(share * len(order)), 2)])
        train = votes.select(kept)
        for name, scores in _scores(train, columns, none=test == GRADED).items():
            accuracies[f"{name}|{share}"] = accuracy(gaps(scores, votes, tested))
    return accuracies


def _scores(train: Preferences, columns: Features, *, none: bool) -> dict[str, Floats]:
    """Scores of all items by each set of columns."""
    scores = {NONE: fit_scores(train, None)} if none else {}
    scores[ALL] = fit_scores(train, columns)
    scores[BANDWIDTH] = fit_scores(train, columns.select(["bandwidth"]))
    return scores | {MEAN: _codec_means(train)}


def _codec_means(train: Preferences) -> Floats:
    """Share of the preferences that each codec wins, whatever the sentence."""
    _, codec = np.unique(train.items.ids.to_numpy(), return_inverse=True)
    n = int(codec.max()) + 1
    left, right = codec[train.left], codec[train.right]
    won = np.bincount(left, train.outcome, n) - np.bincount(right, train.outcome, n)
    total = np.bincount(left, minlength=n) + np.bincount(right, minlength=n)
    shares: Floats = (won / (total + 1.0))[codec]
    return shares


def _new_codecs(votes: Preferences, columns: Features, learned: Bools) -> dict[str, float]:
    """Mean accuracy over codecs on preferences about one that no grade is known of."""
    names = votes.items.ids.to_numpy()
    accuracies: dict[str, list[float]] = {}
    for codec in np.unique(names):
        about = (names[votes.left] == codec) | (names[votes.right] == codec)
        train = votes.select(learned & ~about)
        for name, chosen in ((ALL, columns), (BANDWIDTH, columns.select(["bandwidth"]))):
            gap = gaps(fit_scores(train, chosen), votes, about & ~learned)
            accuracies.setdefault(name, []).append(accuracy(gap))
    return {name: float(np.mean(values)) for name, values in accuracies.items()}


Figures = Mapping[tuple[str, str, float], Sequence[float]]


def _rows(figures: Figures) -> Iterator[Row]:
    """All that was measured."""
    for (test, chosen, share), values in figures.items():
        labels = {"test": test, "columns": chosen, "preferences": f"{share:.0%}"}
        yield Row(place="in place of table 5", what=labels, values=tuple(values))


def _few_grades_verdict(figures: Figures) -> Verdict:
    """Whether columns help with few grades."""
    gain = np.subtract(figures[GRADED, ALL, SHARES[0]], figures[GRADED, NONE, SHARES[0]])
    return Verdict.of(
        "features of recordings help where grades are few",
        f"With 2 % of the preferences, all columns less none: {difference_text(gain, 3)} in accuracy.",
        reproduced=clear(gain) > 0,
        trend=float(gain.mean()) > 0,
    )


def _mean(figures: Figures) -> Verdict:
    """Whether they beat the mean of a codec on new sentences."""
    share = max(share for test, _, share in figures if test == NEW_SENTENCES)
    gain = np.subtract(figures[NEW_SENTENCES, ALL, share], figures[NEW_SENTENCES, MEAN, share])
    return Verdict.of(
        "features rank known codecs on new sentences better than the mean of each codec",
        f"With {share:.0%} of the preferences, all columns less the codec's mean: {difference_text(gain, 3)}.",
        why="For codecs that were graded, the mean of their grades is as good.",
        reproduced=clear(gain) > 0,
        trend=float(gain.mean()) > 0,
    )


def _new_codec(figures: Figures) -> Verdict:
    """Whether a codec that nobody graded can be placed."""
    values = figures[NEW_CODEC, ALL, 1.0]
    return Verdict.of(
        "features place a codec that nobody graded",
        f"Accuracy on preferences about it, where no features have .500: {np.mean(values):.3f} with all columns, "
        f"{np.mean(figures[NEW_CODEC, BANDWIDTH, 1.0]):.3f} with bandwidth alone.",
        reproduced=float(np.mean(values)) > 0.6,
        trend=float(np.mean(values)) > 0.5,
    )


def _figure(figures: Figures, shares: Sequence[float]) -> Any:
    """Accuracy against the share of preferences."""
    figure, axes = panels(2)
    for ax, test in zip(axes, (GRADED, NEW_SENTENCES), strict=True):
        names = [name for name in (NONE, BANDWIDTH, ALL, MEAN) if (test, name, shares[0]) in figures]
        series = {name: [figures[test, name, share] for share in shares] for name in names}
        lines(ax, [100 * share for share in shares], series, xlabel="preferences, %", ylabel="accuracy", legend=False)
        ax.set_xscale("log")
        ax.set_title(test)
    common_legend(figure, axes[0], across=4)
    return figure
