"""Nuclear-norm rank aggregation: an example by hand, the conditions of the optimum, recovery, refusals."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from tests.known_preferences import simulated
from tests.strategies import judgments, preference_rows

from crowdrank.data.judgments import Preferences
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError
from crowdrank.metrics import kendall_tau
from crowdrank.models.pairs import nuclear_norm
from crowdrank.models.pairs.nuclear_norm import NuclearNorm
from crowdrank.pair_counts import count_preferences


def test_a_golden_case_by_hand():
    # x > y > z and x > z once each: all entries are 1 or -1, with singular values root 3, root 3, 0. A fifth is taken
    # off, which leaves four fifths of each entry; x leads y and z by 4/5, and its mean over three items is 8/15
    rows = [("ann", "q", "x", "y", "left"), ("ann", "q", "y", "z", "left"), ("ann", "q", "x", "z", "left")]
    consensus = NuclearNorm(shrinkage=0.2).fit(Preferences.from_rows(rows))
    np.testing.assert_allclose(consensus.scores, [8 / 15, 0, -8 / 15], atol=1e-12)
    assert consensus.estimates["rank"] == 2


@settings(max_examples=25)
@given(preference_rows())
def test_completed_matrices_meet_the_conditions_of_the_optimum(rows):
    """Where X = U S V' solves the problem, (Y - X) on the pairs that met is lambda (U V' + W), W of norm 1 at most."""
    preferences = judgments("preference", rows)
    counts, offsets = count_preferences(preferences, "split"), preferences.items.offsets
    for first, last in pairwise(offsets):
        observed, met = nuclear_norm._preference_matrix(counts, first, last)
        if not observed.any():
            continue
        method = NuclearNorm(shrinkage=0.3, tol=1e-11, max_iter=20_000)
        completed, _, change = nuclear_norm._complete(observed, met, method)
        assert change <= method.tol
        scale = 0.3 * np.linalg.norm(observed, 2)
        rest = met * (observed - completed) / scale
        left, values, right = np.linalg.svd(completed)
        kept = values > 1e-6 * scale
        assert np.linalg.norm(rest, 2) <= 1 + 1e-5
        np.testing.assert_allclose(left[:, kept].T @ rest @ right[kept].T, np.eye(kept.sum()), atol=1e-4)
        np.testing.assert_allclose(completed, -completed.T, atol=1e-12)


def test_recovers_the_order():
    preferences, truth = simulated(40, 8_000)
    assert kendall_tau(truth, NuclearNorm().fit(preferences).scores) > 0.8


def test_says_what_it_cannot_do(monkeypatch):
    rows = [("ann", "q", "x", "y", "left"), ("ann", "q", "v", "w", "left")]
    with pytest.warns(DataWarning, match="never"):
        assert sorted(np.round(NuclearNorm().fit(Preferences.from_rows(rows)).scores, 6)) == [-0.4, -0.4, 0.4, 0.4]
    chain = [("ann", "q", one, other, "left") for one, other in zip("abcdef", "bcdefg", strict=True)]
    with pytest.warns(ConvergenceWarning, match="nuclear_norm"):
        NuclearNorm(max_iter=2).fit(Preferences.from_rows(chain))
    monkeypatch.setattr(nuclear_norm, "_MAX_ITEMS", 3)
    with pytest.raises(JudgmentError, match="matrix of up to 3 items, and query 'q' has 7; use bradley_terry"):
        NuclearNorm().fit(Preferences.from_rows(chain))
