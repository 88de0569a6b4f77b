"""A ranker for each annotator, and their sum."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.models.joint_annotators.test_joint_annotators import crowd

import crowdrank as cr
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.joint import IndependentAnnotators
from crowdrank.models.staged.added_scores import AddedScores
from crowdrank.rankers import LambdaMART, ListNet, RankSVM
from crowdrank.registry import make

METHOD = IndependentAnnotators(ranker=RankSVM(loss="logistic"), strength=0.0)


def test_scores_are_the_mean_of_rankers_fitted_to_each_annotators_pairs():
    features, preferences, *_ = crowd()
    fit = METHOD.fit(preferences, features)
    scores = []
    for k in range(4):
        own = preferences.select(preferences.annotator == k)
        better = np.where(own.outcome > 0, own.left, own.right)
        worse = np.where(own.outcome > 0, own.right, own.left)
        rows, number = np.concatenate([better, worse]), np.tile(np.arange(len(own)), 2)
        target = np.repeat([1.0, 0.0], len(own))
        scores.append(RankSVM(loss="logistic").fit(features.matrix[rows], target, qid=number).predict(features.matrix))
    mean = np.mean(scores, axis=0)
    np.testing.assert_allclose(fit.predict(features)["score"].to_numpy(), mean, rtol=1e-6)
    np.testing.assert_allclose(fit.consensus.scores, mean - mean.mean(), atol=1e-8)


def test_the_truth_comes_back_and_annotators_by_their_quality():
    features, preferences, _, scores, _ = crowd(n_pairs=700)
    fit = METHOD.fit(preferences, features)
    assert np.corrcoef(fit.consensus.scores, scores)[0, 1] > 0.97
    assert (np.diff(fit.quality.quality) < 0).all()


def test_the_quality_of_an_annotator_is_by_the_others():
    features, preferences, *_ = crowd()
    fit = METHOD.fit(preferences, features)
    with pytest.warns(DataWarning, match="'annotator-0'"):
        others = METHOD.fit(preferences.select(preferences.annotator != 0), features).consensus.scores
    own = preferences.select(preferences.annotator == 0)
    agree = (np.sign(others[own.left] - others[own.right]) == own.outcome).sum()
    assert fit.quality.quality[0] == pytest.approx(agree / len(own), abs=0.002)


@pytest.mark.parametrize("ranker", [ListNet(), RankSVM(scale="query"), LambdaMART(n_trees=5)])
def test_any_ranker_is_saved_whole(ranker, tmp_path):
    features, preferences, *_ = crowd()
    fit = IndependentAnnotators(ranker=ranker).fit(preferences, features)
    fit.save(tmp_path / "model")
    again = cr.load_ranker(tmp_path / "model")
    assert isinstance(again, AddedScores)
    assert (again.predict(features) == fit.ranker.predict(features)).all()
    assert again.importance().height == 3


def test_grades_and_rankings_are_lists(small):
    for kind in ("grade", "ranking"):
        judgments = small[kind]
        matrix = np.array([[-float(ord(item))] for item in judgments.items.ids.to_list()])
        features = cr.Features(judgments.items, matrix, ("letter",))
        for method in (METHOD, IndependentAnnotators(ranker=LambdaMART(n_trees=20, min_leaf=1), strength=0.0)):
            assert method.fit(judgments, features).consensus.order("q1") == ["a", "b", "c", "d", "e"]


def test_weights_count_as_repeats():
    features, preferences, *_ = crowd(n_pairs=200)
    rows = np.arange(len(preferences))
    twice = METHOD.fit(preferences.select(np.concatenate([rows, rows[::7]])), features)
    heavy = METHOD.fit(replace(preferences, weight=np.where(rows % 7 == 0, 2.0, 1.0)), features)
    np.testing.assert_allclose(heavy.consensus.scores, twice.consensus.scores, atol=1e-3)


def test_annotators_who_say_nothing_are_named():
    features, preferences, *_ = crowd()
    tied = replace(preferences, outcome=np.where(preferences.annotator == 3, 0, preferences.outcome).astype(np.int8))
    with pytest.warns(DataWarning, match="1 of 4 annotators order no two items.*'annotator-3'"):
        METHOD.fit(tied, features)
    with pytest.raises(JudgmentError, match="no annotator orders two items"):
        METHOD.fit(replace(preferences, outcome=np.zeros_like(preferences.outcome)), features)


def test_the_names_of_the_paper():
    assert make("joint", "iam").ranker.loss == "logistic"
    assert make("joint", "independent_annotators").ranker.loss == "logistic"
    assert type(make("joint", "iam", {"ranker": "list_net"}).ranker) is ListNet
    assert make("joint", "jam").n_clusters == 1
    assert not make("joint", "jam").item_effects
    assert make("joint", "vrjam").n_clusters == 8
    assert make("joint", "joint_annotators", {"n_clusters": "none"}).n_clusters is None


def test_what_is_no_ranker_is_refused():
    features, preferences, *_ = crowd()
    with pytest.raises(ParameterError, match="not a ranker of crowdrank"):
        IndependentAnnotators(ranker="rank_svm").fit(preferences, features)
    with pytest.raises(ParameterError, match="fitted already"):
        AddedScores().fit([[1.0], [0.0]], [1, 0])


def test_a_damaged_sum_is_refused(tmp_path):
    features, preferences, *_ = crowd(n_pairs=50)
    fit = METHOD.fit(preferences, features)
    fit.ranker.shares_ = fit.ranker.shares_[:2]
    fit.save(tmp_path / "model")
    with pytest.raises(JudgmentError, match="is damaged"):
        cr.load_ranker(tmp_path / "model")


def few_lists(seed, n_annotators=40, n_pairs=3):
    """Three preferences each by many annotators on items with ten features, and the true scores."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(120, 10))
    scores = matrix @ rng.normal(size=10)
    left, right = rng.integers(0, 120, (2, n_annotators * n_pairs))
    right = np.where(left == right, (right + 1) % 120, right)
    annotator = np.repeat(np.arange(n_annotators), n_pairs)
    winner = np.where(scores[left] - scores[right] + rng.logistic(size=len(left)) > 0, "left", "right")
    items = [f"i{number:03}" for number in range(120)]
    votes = cr.Preferences.from_frame(
        {"left": [items[i] for i in left], "right": [items[i] for i in right], "annotator": annotator, "winner": winner}
    )
    return cr.Features.from_arrays(None, items, matrix), votes, scores


def test_rankers_of_few_judgments_are_drawn_to_the_common_one():
    features, votes, scores = few_lists(0)
    ranker = RankSVM(loss="logistic")
    drawn, paper = (IndependentAnnotators(ranker=ranker, strength=s).fit(votes, features) for s in (None, 0.0))
    tau = [cr.metrics.kendall_tau(scores, fit.predict(features)["score"].to_numpy()) for fit in (drawn, paper)]
    assert tau[0] > tau[1] + 0.05
    common = IndependentAnnotators(ranker=ranker, strength=1e9).fit(votes, features)
    assert np.corrcoef(common.predict(features)["score"], drawn.predict(features)["score"])[0, 1] > 0.9


def test_annotators_who_differ_keep_their_own_rankers():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(60, 2))
    left, right = rng.integers(0, 60, (2, 600))
    right = np.where(left == right, (right + 1) % 60, right)
    annotator = np.arange(600) % 2
    own = matrix[:, 0] * (annotator == 0)[:, None] + matrix[:, 1] * (annotator == 1)[:, None]
    rows = np.arange(600)
    winner = np.where(own[rows, left] > own[rows, right], "left", "right")
    rows = {"left": left, "right": right, "annotator": annotator, "winner": winner}
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        votes = cr.Preferences.from_frame(rows)
    features = cr.Features.from_arrays(None, np.arange(60), matrix)
    fit = IndependentAnnotators(ranker=RankSVM(loss="logistic")).fit(votes, features)
    # the common ranker would order pairs by the sum of both features, and neither annotator's pairs well
    assert len(fit.ranker.parts_) == 3
    assert fit.ranker.shares_[1:].sum() > fit.ranker.shares_[0]


def test_a_negative_strength_is_refused():
    with pytest.raises(ParameterError, match=r"strength=-1.0 must be at least 0"):
        IndependentAnnotators(ranker=RankSVM(), strength=-1.0)
