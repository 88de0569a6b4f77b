"""The fusion schemes of Gupta and Narayanan, and others beside them: which item of each pair is the better."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdrank.aggregators import Borda
from crowdrank.data.features import Features
from crowdrank.data.judgments import Preferences
from crowdrank.errors import ConvergenceWarning, DataWarning
from crowdrank.joint import IndependentAnnotators, JointAnnotators
from crowdrank.metrics import preference_accuracy
from crowdrank.protocols import Counts, Floats, Ints, Outcomes
from crowdrank.rankers import RankSVM
from crowdrank.registry import PRESETS

MV, IAM, JAM, VRJAM = PAPER = ("MV", "IAM", "JAM", "VRJAM")
VOTES, HINGE, EFFECTS, BORDA = "votes alone", "JAM, hinge", "JAM, item effects", "Borda"
PRINTED_IAM, PRINTED_JAM, PRINTED_VRJAM = PRINTED = tuple(f"{name}, as printed" for name in ("IAM", "JAM", "VRJAM"))
"""With the hinge, raw clusters of a number that is found, and no prior, as iam-paper, jam-paper and vrjam-paper have
it, but fitted to the maximum; ``printed_steps`` has their gradient steps."""

SINGLE = "rankers of single annotators"
FEWER, MORE, UNFOLDED = "VRJAM, 4 clusters", "VRJAM, 16 clusters", "VRJAM, not folded"

N_CLUSTERS = 8
LEARNED_PAIRS = 50_000
"""Pairs that IAM learns from where there are more: so few weights need no more, and its time grows with pairs."""

LEARNING_RATES = (1e-4, 1e-3, 1e-2)
"""Rates of printed steps, of which the paper prints none."""

_TO_THE_MAXIMUM = {"solver": "newton", "ridge": 1e-3}

_JOINT: dict[str, dict[str, Any]] = {
    JAM: {"item_effects": False},
    VRJAM: {"item_effects": False, "n_clusters": N_CLUSTERS},
    FEWER: {"item_effects": False, "n_clusters": 4},
    MORE: {"item_effects": False, "n_clusters": 16},
    UNFOLDED: {"item_effects": False, "n_clusters": N_CLUSTERS, "clustering": "raw"},
    HINGE: {"item_effects": False, "loss": "hinge"},
    PRINTED_JAM: {**PRESETS["joint"]["jam-paper"], **_TO_THE_MAXIMUM},
    PRINTED_VRJAM: {**PRESETS["joint"]["vrjam-paper"], **_TO_THE_MAXIMUM},
    EFFECTS: {},
    VOTES: {},
}
_OVERRULED = "overrule the preferences"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of items that somebody judged, each once and in the same order whatever the scheme.

    Parameters
    ----------
    left, right
        Codes of both items, the lower one left.
    net
        Votes for left less votes for right.
    """

    left: Ints
    right: Ints
    net: Floats

    @classmethod
    def of(cls, judgments: Preferences) -> Pairs:
        """Return the pairs of some preferences."""
        low, high = np.minimum(judgments.left, judgments.right), np.maximum(judgments.left, judgments.right)
        key = low.astype(np.int64) * judgments.n_items + high
        votes = np.where(judgments.left < judgments.right, judgments.outcome, -judgments.outcome)
        if len(key) and (np.diff(key) < 0).any():
            order = np.argsort(key, kind="stable")
            key, low, high, votes = key[order], low[order], high[order], votes[order]
        starts = np.flatnonzero(np.append(True, np.diff(key) != 0))
        return cls(low[starts], high[starts], np.add.reduceat(votes.astype(np.float64), starts))

    def __len__(self) -> int:
        return len(self.net)

    def truth(self, grade: Floats) -> Outcomes:
        """Return 1 where left is truly better, -1 where right is, and 0 where both are alike."""
        return np.sign(grade[self.left] - grade[self.right]).astype(np.int8)


@dataclass(frozen=True, eq=False)
class Fused:
    """What a scheme made of the votes.

    Parameters
    ----------
    lead
        Above 0 for each of the pairs whose left item is taken for the better.
    scores
        Score of each item; ``None`` where the scheme tells pairs only.
    flips
        Flip rate of each annotator, the mean over clusters where there are some; ``None`` where none are learned.
    overruled
        Whether it was warned that features overrule votes more often than errors by chance would explain.
    """

    lead: Floats
    scores: Floats | None = None
    flips: Floats | None = None
    overruled: bool = False

    def accuracy(self, truth: Outcomes) -> float:
        """Return the share of pairs told right, in per cent; a tie is a coin and counts one half."""
        return 100 * float(preference_accuracy(self.lead, np.zeros(len(self.lead)), truth))


def fuse(scheme: str, judgments: Preferences, features: Features, pairs: Pairs, *, seed: int = 0) -> Fused:
    """Return what a scheme makes of preferences."""
    if scheme == MV:
        return Fused(pairs.net)
    if scheme in (IAM, PRINTED_IAM):
        loss = "logistic" if scheme == IAM else "hinge"
        return _by_scores(independent(judgments, features, pairs, loss=loss, seed=seed), pairs)
    if scheme == BORDA:
        with warnings.catch_warnings():
            _ignore_ours()
            return _by_scores(Borda().fit(judgments).scores, pairs)
    return joint(judgments, None if scheme == VOTES else features, pairs, **_JOINT[scheme], seed=seed)


def joint(judgments: Preferences, features: Features | None, pairs: Pairs, **params: Any) -> Fused:
    """Return what a joint model of annotators makes of preferences; without features, of the votes alone."""
    with warnings.catch_warnings(record=True) as warned:
        _ignore_ours()
        warnings.filterwarnings("always", f".*{_OVERRULED}", DataWarning)
        fit = JointAnnotators(**params).fit(judgments, features)
    assert fit.pairs is not None
    assert fit.consensus is not None
    assert fit.quality is not None
    assert len(fit.pairs) == len(pairs)
    assert (fit.pairs.left == pairs.left).all()
    rates = fit.quality.parameters
    flips = rates["cluster_flip"].mean(axis=1) if "cluster_flip" in rates else rates["flip"]
    return Fused(fit.pairs.probability - 0.5, fit.consensus.scores, flips, bool(warned))


def printed_steps(
    judgments: Preferences, features: Features, pairs: Pairs, truth: Outcomes, *, seed: int = 0
) -> dict[str, list[float]]:
    """Return right pairs by the papers' own presets at each of the rates, and by rankers of single annotators."""
    found: dict[str, list[float]] = {IAM: [], JAM: [], VRJAM: [], SINGLE: []}
    for rate in LEARNING_RATES:
        # another start for each annotator, as a start is drawn for each ranker
        own = [
            independent(judgments, features, pairs, only=one, seed=seed, ranker=_stepped(rate, seed, one))
            for one in range(judgments.n_annotators)
        ]
        found[SINGLE] += [_by_scores(scores, pairs).accuracy(truth) for scores in own]
        found[IAM].append(_by_scores(np.sum(own, axis=0), pairs).accuracy(truth))
        for scheme, preset in ((JAM, "jam-paper"), (VRJAM, "vrjam-paper")):
            params = {**PRESETS["joint"][preset], "learning_rate": rate, "seed": seed}
            found[scheme].append(joint(judgments, features, pairs, **params).accuracy(truth))
    return found


def _stepped(rate: float, seed: int, annotator: int) -> RankSVM:
    """The ranker of ``iam-paper`` at a rate, from a start of its own."""
    start = int(np.random.default_rng([seed, annotator]).integers(1 << 31))
    return RankSVM(**PRESETS["ranker"]["rank-svm-paper"], learning_rate=rate, seed=start)


def steps_text(cells: Sequence[Mapping[str, Sequence[float]]], printed: Mapping[str, float]) -> str:
    """Return how far printed steps lead, and which printed figures they can explain."""
    ranges = {one: _range([value for cell in cells for value in cell[one]]) for one in (IAM, JAM, VRJAM)}
    inside = {one: low <= printed[one] <= high for one, (low, high) in ranges.items()}
    figures = ", ".join(
        f"{one} {low:.1f} to {high:.1f} (printed {printed[one]})" for one, (low, high) in ranges.items()
    )
    told = [
        f"{'' if can else 'not '}that of {' and '.join(one for one in inside if inside[one] is can)}"
        for can in (True, False)
        if can in inside.values()
    ]
    return (
        f"By gradient steps on raw features from random starts, at rates from {LEARNING_RATES[0]:g} to "
        f"{LEARNING_RATES[-1]:g} as none is printed, they reach: {figures}. So, of the printed figures, the "
        f"procedure can explain {' but '.join(told)}."
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest."""
    return min(values), max(values)


def independent(
    judgments: Preferences,
    features: Features,
    pairs: Pairs,
    *,
    only: int | None = None,
    loss: str = "logistic",
    seed: int = 0,
    ranker: RankSVM | None = None,
) -> Floats:
    """Return the scores that rankers of single annotators give together, or that of only one of them gives."""
    chosen = np.ones(len(judgments), bool)
    if len(pairs) > LEARNED_PAIRS:
        drawn = np.random.default_rng(seed).choice(len(pairs), LEARNED_PAIRS, replace=False)
        chosen = np.isin(_keys(judgments.left, judgments.right), _keys(pairs.left[drawn], pairs.right[drawn]))
    if only is not None:
        chosen &= judgments.annotator == only
    with warnings.catch_warnings():
        _ignore_ours()
        ranker = ranker or RankSVM(loss=loss)
        fit = IndependentAnnotators(ranker=ranker, strength=0.0).fit(judgments.select(chosen), features)
    assert fit.consensus is not None
    scores: Floats = fit.consensus.scores
    return scores


def _ignore_ours() -> None:
    """Let the methods keep to themselves what the protocol brings about."""
    for category in (DataWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", category)


def _keys(left: Ints, right: Ints) -> Counts:
    """A number for each pair, whichever side its items stand on."""
    keys: Counts = np.minimum(left, right).astype(np.int64) << 32 | np.maximum(left, right)
    return keys


def _by_scores(scores: Floats, pairs: Pairs) -> Fused:
    """Pairs by the scores of their items."""
    return Fused(scores[pairs.left] - scores[pairs.right], scores)


def mean_text(values: Sequence[float], digits: int = 1) -> str:
    """Return a mean, with the standard deviation of several values."""
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"
