"""The methods of Wu et al., as printed and improved, and how well they learn who ranks well."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from crowdrank.aggregators import Borda, Mallows
from crowdrank.data.consensus import Consensus
from crowdrank.data.features import Features
from crowdrank.data.joint_fit import JointFit
from crowdrank.data.judgments import Rankings
from crowdrank.joint import LTRMA
from crowdrank.metrics import kendall_tau, paired_randomisation
from crowdrank.protocols import Counts, Floats
from crowdrank.rankers import ListMLE
from crowdrank.simulate import Mallows as MallowsPool

from .. import paired

TRUTH, BORDA = "ListMLE on truth", "Borda"
PRINTED_D, PRINTED_ML = "LTRMA-D printed", "LTRMA-ML printed"
D, ML, HARD = "LTRMA-D", "LTRMA-ML", "LTRMA-ML, hard steps"
CAYLEY_D, CAYLEY_ML = "LTRMA-D, Cayley", "LTRMA-ML, Cayley"

_DISPERSIONS = np.concatenate([[0.0], np.geomspace(1e-4, 12, 800)])


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned: rankings of the training items, and the true order of these.

    Parameters
    ----------
    rankings
        What annotators said of the items of ``train``.
    train, test
        Features to learn from, and to be scored.
    truth
        True score of each training item, larger is better.
    """

    rankings: Rankings
    train: Features
    test: Features
    truth: Floats


@dataclass(frozen=True, eq=False)
class Fitted:
    """Scores of the test items, with the consensus and what was learned of the annotators."""

    scores: Floats
    consensus: Consensus | None = None

    def theta(self) -> Floats:
        """Return the dispersion of each annotator."""
        assert self.consensus is not None
        assert self.consensus.quality is not None
        theta: Floats = np.asarray(self.consensus.quality.parameters["theta"], float)
        return theta


@dataclass(frozen=True, kw_only=True)
class Methods:
    """The methods under one choice of their parameters.

    Parameters
    ----------
    ridge
        Pull of the weights of all methods but the printed LTRMA-ML, which has none.
    scale
        Scaling of the features.
    turns
        Iterations of the improved methods.
    printed_turns
        Most iterations of the printed ones.
    n_samples
        Random rankings that scores are taken from.
    steps
        Length of the printed descent's steps, as a share of 0.01.
    seed
        Of all methods.
    """

    ridge: float | None
    scale: str = "none"
    turns: int = 60
    printed_turns: int = 200
    n_samples: int = 200
    steps: float = 1.0
    seed: int = 0

    def fit(self, names: Sequence[str], task: Task) -> dict[str, Fitted]:
        """Return what each of the named methods learns from the task."""
        with warnings.catch_warnings():
            # annotators close to guessing and chains that do not settle are what is studied
            warnings.simplefilter("ignore")
            return {name: self._runners[name](task) for name in names}

    @property
    def _runners(self) -> Mapping[str, Callable[[Task], Fitted]]:
        """What runs each method."""
        return {
            TRUTH: lambda task: Fitted(self._rank_test_items(task, task.truth)),
            BORDA: lambda task: self._two_stages(task, Borda().fit(task.rankings)),
            PRINTED_D: self._printed_consensus,
            PRINTED_ML: self._fit_as_printed,
            D: lambda task: self._two_stages(task, self._mallows("kendall").fit(task.rankings)),
            CAYLEY_D: lambda task: self._two_stages(task, self._mallows("cayley").fit(task.rankings)),
            ML: partial(self._joint, step="soft"),
            HARD: partial(self._joint, step="hard"),
            CAYLEY_ML: partial(self._joint, step="hard", distance="cayley"),
        }

    def _rank_test_items(self, task: Task, target: Floats) -> Floats:
        """Scores of the test items by ListMLE, trained on targets of the training items."""
        ranker = ListMLE(scale=self.scale, ridge=self.ridge, seed=self.seed)
        ranker.fit(task.train.matrix, target, qid=task.train.items.query)
        return np.asarray(ranker.predict(task.test.matrix, task.test.items.query), np.float64)

    def _two_stages(self, task: Task, consensus: Consensus) -> Fitted:
        """The consensus first, the ranker afterwards."""
        return Fitted(self._rank_test_items(task, consensus.scores), consensus)

    def _mallows(self, distance: str) -> Mallows:
        """The consensus of LTRMA-D, improved."""
        return Mallows(distance=distance, max_iter=self.turns, n_samples=self.n_samples, seed=self.seed)

    def _joint(self, task: Task, *, step: str, distance: str = "kendall") -> Fitted:
        """LTRMA-ML, improved."""
        method = LTRMA(
            step=step, distance=distance, scale=self.scale, ridge=self.ridge, max_iter=self.turns,
            n_samples=self.n_samples, seed=self.seed,
        )  # fmt: skip
        return _score_fit(method.fit(task.rankings, task.train), task.test)

    def _fit_as_printed(self, task: Task) -> Fitted:
        """LTRMA-ML as printed; features so much smaller make the steps of its descent so much shorter."""
        method = LTRMA(variant="printed", scale="none", max_iter=self.printed_turns, seed=self.seed)
        train, test = (_times(features, np.sqrt(self.steps)) for features in (task.train, task.test))
        return _score_fit(method.fit(task.rankings, train), test)

    def _printed_consensus(self, task: Task) -> Fitted:
        """LTRMA-D as printed: with a feature that tells nothing the joint procedure is the consensus by itself."""
        nothing = replace(task.train, matrix=np.zeros((len(task.train), 1)), names=("nothing",))
        method = LTRMA(variant="printed", scale="none", max_iter=self.printed_turns, seed=self.seed)
        consensus = method.fit(task.rankings, nothing).consensus
        assert consensus is not None
        return self._two_stages(task, consensus)


def _score_fit(fit: JointFit, test: Features) -> Fitted:
    """The scores of a joint fit."""
    table: Any = fit.predict(test)
    return Fitted(table["score"].to_numpy(), fit.consensus)


def _times(features: Features, factor: float) -> Features:
    """The features, made smaller."""
    return features if factor == 1 else replace(features, matrix=features.matrix * factor)


def consensus_tau(task: Task, fitted: Fitted) -> float:
    """Return Kendall's tau of the consensus with the truth."""
    assert fitted.consensus is not None
    return float(kendall_tau(task.truth, fitted.consensus.scores, task.train.items.query))


def true_dispersions(task: Task) -> Floats:
    """Return for each annotator the dispersion at which the mean distance to the truth is the one that was drawn.

    All annotators must have ranked all items of all queries.
    """
    rankings = task.rankings
    sizes: Counts = np.diff(rankings.offsets)
    row = np.repeat(np.arange(len(sizes)), sizes)
    tau = kendall_tau(task.truth[rankings.item], -rankings.rank, row, per_query=True)
    apart = np.bincount(rankings.annotator, (1 - np.asarray(tau)) / 4 * sizes * (sizes - 1))
    lengths, number = np.unique(np.diff(task.train.items.offsets), return_counts=True)
    pool = MallowsPool(_DISPERSIONS)
    expected = sum(n * pool.expected_distance(int(length)) for length, n in zip(lengths, number, strict=True))
    dispersions: Floats = -np.interp(apart, np.asarray(expected)[::-1], _DISPERSIONS[::-1])
    return dispersions


def expertise(task: Task, fitted: Fitted) -> tuple[float, float]:
    """Return the root mean square error of the dispersions, and their correlation with the true ones."""
    truth, estimated = true_dispersions(task), fitted.theta()
    error = float(np.sqrt(np.mean((estimated - truth) ** 2)))
    return error, float(np.corrcoef(truth, estimated)[0, 1]) if np.ptp(estimated) > 0 else 0.0


def difference_text(values: Sequence[float] | Floats, digits: int = 1) -> str:
    """Return a mean difference in words, with its standard error and the p value of exchanging signs."""
    text = paired.difference_text(values, digits)
    return text if len(values) < 2 else f"{text} (p = {p_value(values):.2g})"


def p_value(values: Sequence[float] | Floats) -> float:
    """Return the two-sided p value of paired differences."""
    return paired_randomisation(np.asarray(values), np.zeros(len(values)))


def clear(values: Sequence[float] | Floats, level: float = 0.05) -> int:
    """Return the sign of a mean difference that chance does not explain, else 0."""
    return int(np.sign(np.mean(values))) if p_value(values) <= level else 0
