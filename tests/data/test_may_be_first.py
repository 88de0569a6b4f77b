"""Which items may be first: one answer for intervals, findings and report."""

import warnings

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.data.consensus import Consensus
from crowdrank.data.judgments import Grades
from crowdrank.errors import DataWarning


def consensus_of(scores, std_error, covariance=None, replicates=None):
    items = Grades.from_rows([("a", "q", f"i{code:04d}", 1) for code in range(len(scores))]).items
    return Consensus(
        items=items, scores=np.array(scores, float), method="made", std_error=std_error, covariance=covariance,
        replicates=replicates,
    )  # fmt: skip


def reaching_one(consensus, level=0.95):
    table = consensus.intervals(level)
    return table.filter(table["rank_lower"] == 1)["item"].to_list()


def test_near_equal_leaders_of_many_items_may_all_be_first():
    # each of 300 equals is first in one draw of 300, and still nothing speaks against it
    scores = np.append(np.linspace(0.01, 0.0, 300), np.full(300, -9.0))
    assert len(reaching_one(consensus_of(scores, np.ones(600)))) == 300


def test_an_item_that_another_surely_beats_cannot_be_first_though_the_leader_does_not_beat_it():
    scores, error = [3.0, 2.0, 0.0], np.array([5.0, 0.1, 0.1])
    assert reaching_one(consensus_of(scores, error)) == ["i0000", "i0001"]


def test_covariance_and_replicates_decide_where_they_are_known():
    scores, block = [1.0, 0.5], np.array([[1.0, 0.999], [0.999, 1.0]])
    assert len(reaching_one(consensus_of(scores, np.ones(2)))) == 2
    assert len(reaching_one(consensus_of(scores, np.ones(2), covariance=(block,)))) == 1
    rng = np.random.default_rng(0)
    drawn = (np.array(scores) + rng.normal(size=(200, 1)) + 0.05 * rng.normal(size=(200, 2))).astype(np.float32)
    assert len(reaching_one(consensus_of(scores, np.ones(2), replicates=drawn))) == 1


@pytest.mark.parametrize("bootstrap", [None, 60])
def test_findings_name_the_items_whose_rank_intervals_begin_at_one(bootstrap):
    rng = np.random.default_rng(3)
    truth = rng.normal(size=40)
    rows = [(f"a{a}", "q", f"i{i:02d}", float(truth[i] + rng.normal())) for a in range(4) for i in range(40)]
    with warnings.catch_warnings():
        # resamples lack items
        warnings.simplefilter("ignore", DataWarning)
        consensus = cr.aggregate(Grades.from_rows(rows), "mean_grade", bootstrap=bootstrap)
    named = [one for one in cr.findings(consensus) if one.kind == "may_be_first"]
    assert len(named) == 1
    assert list(named[0].ids) == reaching_one(consensus)
    assert len(named[0].ids) > 1
