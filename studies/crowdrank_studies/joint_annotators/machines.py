"""Five classifiers that see a few features each, as annotators of digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crowdrank.data.features import Features
from crowdrank.data.judgments import Grades, Preferences
from crowdrank.datasets import Dataset
from crowdrank.protocols import Floats

from .gupta_figures import TABLE_3
from .item_draws import ItemDraws, mcnemar
from .schemes import (
    EFFECTS,
    JAM,
    MV,
    PAPER,
    PRINTED,
    PRINTED_JAM,
    PRINTED_VRJAM,
    VOTES,
    VRJAM,
    Fused,
    Pairs,
    fuse,
    printed_steps,
)

SCHEMES = (*PAPER, *PRINTED, VOTES, EFFECTS)
TOSSED = (MV, PRINTED_JAM, PRINTED_VRJAM)
"""Schemes that are also measured with ties decided by a coin."""

COMPARED = (
    (PRINTED_VRJAM, MV), (PRINTED_VRJAM, PRINTED_JAM), (PRINTED_JAM, MV), (VRJAM, MV), (VRJAM, JAM), (JAM, MV),
    (VOTES, MV), (EFFECTS, MV),
)  # fmt: skip
FOLDS = 10
_FEATURES = (3, 4)
"""How many features a classifier sees, at least and at most."""

_CANDIDATES = 6
"""Draws of features for each classifier, of which the one nearest to its printed accuracy is kept."""


@dataclass(frozen=True, eq=False)
class Machines:
    """Digits, and what five classifiers take them for.

    Parameters
    ----------
    features, digit
        Features of the drawn digits, and what they are.
    predictions
        Digit that each classifier predicts, a column for each.
    seed
        Seed of all draws.
    """

    features: Features
    digit: Floats
    predictions: Floats
    seed: int

    @classmethod
    def draw(cls, data: Dataset, n: int, seed: int, *, matched: bool = False, folds: int = FOLDS) -> Machines:
        """Return this many digits drawn from all, predicted by classifiers in cross-validation of so many folds.

        Where they are ``matched``, each classifier's features are those of six draws by which it is nearest to its
        accuracy in table 3.
        """
        from sklearn.model_selection import cross_val_predict

        assert data.features is not None
        assert data.truth is not None
        rng = np.random.default_rng(seed)
        chosen = rng.choice(len(data.features), n, replace=False)
        matrix, digit = data.features.matrix[chosen], data.truth.align(data.features.items)[chosen]
        answers = []
        for name, classifier in _classifiers(seed).items():
            predicted = []
            for _ in range(_CANDIDATES if matched else 1):
                columns = rng.choice(matrix.shape[1], rng.integers(_FEATURES[0], _FEATURES[1] + 1), replace=False)
                predicted.append(cross_val_predict(classifier, matrix[:, columns], digit.astype(np.int64), cv=folds))
            answers.append(min(predicted, key=lambda one, name=name: abs(_right_pairs(one, digit) - TABLE_3[name])))  # type: ignore[misc]
        names = [f"{number:04d}" for number in range(n)]
        features = Features.from_arrays(None, names, matrix, names=data.features.names)
        return cls(features, digit, np.column_stack(answers).astype(np.float64), seed)

    @cached_property
    def judgments(self) -> Preferences:
        """Preferences that the predicted digits are, for pairs of unequal digits."""
        rows = pl.DataFrame({"item": self.features.items.ids, **dict(zip(TABLE_3, self.predictions.T, strict=True))})
        grades = Grades.from_frame(rows.unpivot(index="item", variable_name="annotator", value_name="grade"))
        preferences = grades.as_preferences()
        return preferences.select(self.digit[preferences.left] != self.digit[preferences.right])

    @cached_property
    def with_coin_tosses(self) -> Preferences:
        """The same preferences, with a coin tossed for each tie."""
        coin = np.random.default_rng(self.seed).choice(np.array([-1, 1], np.int8), len(self.judgments))
        return replace(self.judgments, outcome=np.where(self.judgments.outcome == 0, coin, self.judgments.outcome))

    def measure(self) -> Mapping[str, Any]:
        """Return right pairs by annotator and by scheme, how sure differences are, and ties."""
        pairs = Pairs.of(self.judgments)
        truth = pairs.truth(self.digit)
        fused = {one: fuse(one, self.judgments, self.features, pairs, seed=self.seed) for one in SCHEMES}
        tossed_pairs = Pairs.of(self.with_coin_tosses)
        tossed = {one: fuse(one, self.with_coin_tosses, self.features, tossed_pairs, seed=self.seed) for one in TOSSED}
        draws = ItemDraws(pairs, len(self.digit), np.ones(len(pairs), bool), seed=self.seed)
        return {
            "n_pairs": len(pairs),
            "ties": 100 * float((self.judgments.outcome == 0).mean()),
            "annotators": [self._annotator(number, pairs) for number in range(len(TABLE_3))],
            "schemes": {one: votes.accuracy(truth) for one, votes in fused.items()},
            "tossed": {one: votes.accuracy(truth) for one, votes in tossed.items()},
            "differences": [draws.difference(fused[one], fused[two], truth) for one, two in COMPARED],
            "mcnemar": [mcnemar(fused[one], fused[two], truth) for one, two in COMPARED],
            "overruled": fused[PRINTED_JAM].overruled,
            "flips": fused[PRINTED_JAM].flips,
        }

    def printed_steps(self) -> Mapping[str, Any]:
        """Return right pairs by the papers' own optimisers."""
        pairs = Pairs.of(self.judgments)
        return printed_steps(self.judgments, self.features, pairs, pairs.truth(self.digit), seed=self.seed)

    def _annotator(self, number: int, pairs: Pairs) -> tuple[float, float]:
        """Pairs that a classifier puts in the right order, ties counted as wrong and as one half, in per cent."""
        answers = self.predictions[:, number]
        lead, truth = np.sign(answers[pairs.left] - answers[pairs.right]), pairs.truth(self.digit)
        return 100 * float((lead == truth).mean()), Fused(lead).accuracy(truth)


def _right_pairs(answers: Floats, digit: Floats) -> float:
    """Pairs of unequal digits that a classifier puts in the right order, ties counted as wrong, in per cent."""
    order = np.sign(np.subtract.outer(digit, digit))
    right = np.sign(np.subtract.outer(answers, answers)) == order
    return 100 * float(right[order != 0].mean())


def _classifiers(seed: int) -> dict[str, Any]:
    """The classifiers of table 3."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, Perceptron
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "KNN": KNeighborsClassifier(),
        "LR": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "NB": GaussianNB(),
        "RF": RandomForestClassifier(random_state=seed),
        "Perc.": make_pipeline(StandardScaler(), Perceptron(random_state=seed)),
    }
