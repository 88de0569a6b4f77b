"""Latent scores with features: what is learned, what is predicted, and what is refused."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.aggregators import LatentScore as Aggregator
from crowdrank.errors import DataWarning, JudgmentError, ParameterError, UnknownNameError
from crowdrank.joint import LatentScore
from crowdrank.models.latent_score.layout import lay_out
from crowdrank.models.latent_score.rounds import Options, fit_scores

NAMES = ("length", "age", "noise")
WEIGHTS = np.array([1.0, -0.6, 0.0])


def crowd(seed, n_preferences, n_items=150, n_queries=5):
    """Features, preferences on them by 30 annotators, and the true scores: a weighted sum and a little of their own."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n_items, 3))
    scores = matrix @ WEIGHTS + 0.3 * rng.normal(size=n_items)
    size = n_items // n_queries
    left = rng.integers(0, n_items, n_preferences)
    right = left // size * size + (left % size + rng.integers(1, size, n_preferences)) % size
    wins = scores[left] - scores[right] + rng.logistic(size=n_preferences) > 0
    ids = [f"i{number:04d}" for number in range(n_items)]
    queries = [f"q{number // size:02d}" for number in range(n_items)]
    features = cr.Features.from_arrays(queries, ids, matrix, names=NAMES)
    rows = {
        (f"a{number % 30:02d}", queries[i], ids[i], ids[j]): "left" if won else "right"
        for number, (i, j, won) in enumerate(zip(left, right, wins, strict=True))
    }
    votes = cr.Preferences.from_rows([(*key, winner) for key, winner in rows.items()])
    whole = cr.Preferences.from_frame(votes.frame(), items=features.items.frame())
    return features, whole, scores


@pytest.fixture(scope="module")
def few():
    """300 preferences on 150 items."""
    return crowd(1, 300)


def tau(truth, scores, items):
    return cr.metrics.kendall_tau(truth, scores, items.query)


def test_features_help_where_preferences_are_few(few):
    features, votes, truth = few
    fit = LatentScore().fit(votes, features)
    alone = Aggregator().fit(votes)
    assert tau(truth, fit.consensus.scores, votes.items) > 0.6
    assert tau(truth, fit.consensus.scores, votes.items) > tau(truth, alone.scores, votes.items) + 0.2
    assert fit.ranker.importance()["feature"].to_list()[:2] == ["length", "age"]
    weights = fit.ranker.weights_
    assert weights[0] > 0 > weights[1]
    assert abs(weights[2]) < 0.3 * weights[0]


def test_items_that_nobody_judged_are_ranked_by_their_features(few):
    features, votes, _ = few
    fit = LatentScore().fit(votes, features)
    other, _, truth = crowd(2, 10)
    found = fit.predict(other)
    assert found.columns == ["query", "item", "score"]
    assert tau(truth, found["score"].to_numpy(), other.items) > 0.6


def test_weights_are_the_ridge_of_the_scores(few):
    features, votes, _ = few
    matrix = features.matrix - features.matrix.mean(axis=0)
    fit = fit_scores(lay_out(votes), Options(tol=1e-8, max_iter=2000), features=matrix)
    state = fit.state
    own, shared = state.variance_of_items, state.variance_of_weights
    # of all weights, those are likeliest that explain the likeliest scores best
    wanted = np.linalg.solve(matrix.T @ matrix / own + np.eye(3) / shared, matrix.T @ state.scores / own)
    np.testing.assert_allclose(state.weights, wanted, atol=1e-5)


def test_without_features_it_is_the_aggregator(few):
    _, votes, _ = few
    fit = LatentScore().fit(votes)
    np.testing.assert_array_equal(fit.consensus.scores, Aggregator().fit(votes).scores)
    assert fit.ranker is None
    with pytest.raises(ParameterError, match="fitted without features"):
        fit.predict({"item": ["x"], "length": [1.0]})


def test_useless_features_do_no_harm():
    features, votes, truth = crowd(3, 3000)
    noise = replace(features, matrix=np.random.default_rng(0).normal(size=features.matrix.shape))
    fit, alone = LatentScore().fit(votes, noise), Aggregator().fit(votes)
    assert tau(truth, fit.consensus.scores, votes.items) > tau(truth, alone.scores, votes.items) - 0.01


def test_the_scale_of_a_feature_does_not_matter(few):
    features, votes, _ = few
    stretched = replace(features, matrix=features.matrix * [1000.0, 0.01, 1.0] + [5.0, -3.0, 1e6])
    one, other = LatentScore().fit(votes, features), LatentScore().fit(votes, stretched)
    np.testing.assert_allclose(one.consensus.scores, other.consensus.scores, atol=1e-6)
    np.testing.assert_allclose(one.predict(features)["score"], other.predict(stretched)["score"], atol=1e-6)


def test_a_constant_feature_has_no_weight(few):
    features, votes, _ = few
    matrix = features.matrix.copy()
    matrix[:, 2] = 7.0
    assert LatentScore().fit(votes, replace(features, matrix=matrix)).ranker.weights_[2] == 0.0


def test_items_without_features_are_average_ones(few):
    features, votes, truth = few
    some = features.items.ids.to_numpy() >= "i0040"
    part = cr.Features.from_arrays(
        features.items.query_ids().filter(some), features.items.ids.filter(some), features.matrix[some], names=NAMES
    )
    with pytest.warns(DataWarning, match="judged items have no features and are taken for average ones: 'i0000'"):
        fit = LatentScore().fit(votes, part)
    assert np.isfinite(fit.consensus.scores).all()
    assert np.isfinite(fit.consensus.std_error).all()
    held = votes.items.query[some]
    assert cr.metrics.kendall_tau(truth[some], fit.consensus.scores[some], held) > 0.6
    assert fit.n_items == int((votes.judged_items & some).sum())


def test_listed_items_without_judgments_have_the_score_of_their_features(few):
    features, votes, _ = few
    bare = votes.select(np.arange(len(votes)) < 40)
    fit = LatentScore().fit(bare, features)
    unjudged = ~bare.judged_items
    assert unjudged.sum() > 50
    predicted = fit.predict(features)["score"].to_numpy()
    gaps = fit.consensus.scores[unjudged] - predicted[unjudged]
    for query in range(bare.n_queries):
        # the level of a query is free where all is preferences
        assert np.ptp(gaps[bare.items.query[unjudged] == query]) < 1e-3
    assert fit.n_unjudged == int(unjudged.sum())


def test_several_kinds_teach_the_same_weights(few):
    features, votes, truth = few
    rng = np.random.default_rng(5)
    graded = rng.choice(150, 60, replace=False)
    rows = [
        ("a01", features.items.query_ids()[int(i)], features.items.ids[int(i)], int(truth[i] + rng.logistic() > 0))
        for i in graded
    ]
    fit = LatentScore().fit(cr.Mixed.of([votes, cr.Grades.from_rows(rows)]), features)
    assert fit.ranker.weights_[0] > 0 > fit.ranker.weights_[1]
    assert fit.quality.frame()["n_judgments"].sum() == len(votes) + 60


def test_features_of_other_items_are_refused(few):
    features, votes, _ = few
    other = cr.Features.from_arrays(["q00"], ["elsewhere"], features.matrix[:1], names=NAMES)
    with pytest.raises(JudgmentError, match=r"none of the .* judged items has features"):
        LatentScore().fit(votes, other)


def test_missing_features_are_refused(few):
    features, votes, _ = few
    matrix = features.matrix.copy()
    matrix[3, 1] = np.nan
    with pytest.raises(JudgmentError, match=r"feature 'age' of item 'i0003' \(query 'q00'\) is missing"):
        LatentScore().fit(votes, replace(features, matrix=matrix))


def test_trusted_and_known_turn_a_reversed_crowd_round():
    features, votes, truth = crowd(6, 3000)
    bad = votes.annotator >= 9
    turned = replace(votes, outcome=np.where(bad, -votes.outcome, votes.outcome).astype(np.int8))
    trusted = LatentScore().fit(turned, features, trusted=["a00", "a01", "a02"])
    assert tau(truth, trusted.consensus.scores, votes.items) > 0.7
    known = features.items.frame().with_columns(score=pl.Series(truth))[::15]
    fit = LatentScore().fit(turned, features, known=known)
    assert tau(truth, fit.consensus.scores, votes.items) > 0.7
    assert fit.ranker.weights_[0] > 0
    with pytest.raises(UnknownNameError, match="there is no annotator 'a99'"):
        LatentScore().fit(votes, features, trusted=["a99"])


def test_everybody_may_be_trusted(few):
    features, votes, truth = few
    fit = LatentScore().fit(votes, features, trusted=list(votes.annotators))
    assert tau(truth, fit.consensus.scores, votes.items) > 0.6


def test_a_known_item_that_nobody_knows_is_refused(few):
    features, votes, _ = few
    with pytest.raises(JudgmentError, match=r"known item 'elsewhere' \(query 'q00'\) is not among the judged items"):
        LatentScore().fit(votes, features, known={"query": ["q00"], "item": ["elsewhere"], "score": [1.0]})


def test_one_judgment_in_all_is_enough(few):
    features, votes, _ = few
    fit = LatentScore().fit(votes.select(np.array([0])), features)
    assert np.isfinite(fit.consensus.scores).all()
    winner, loser = votes.left[0], votes.right[0]
    gap = fit.consensus.scores[winner] - fit.consensus.scores[loser]
    assert gap * votes.outcome[0] > 0


def test_a_former_fit_is_saved_and_read(few, tmp_path):
    features, votes, _ = few
    fit = cr.train(votes, features, joint="latent_score")
    fit.save(tmp_path / "model")
    np.testing.assert_array_equal(cr.load_ranker(tmp_path / "model").predict(features), fit.predict(features)["score"])
    assert repr(fit).startswith("JointFit(latent_score: LinearScore, ")


def test_nothing_to_learn_from_is_refused(few):
    features, votes, _ = few
    with pytest.raises(ParameterError, match="there are no judgments to learn from"):
        LatentScore().fit(votes.select(np.zeros(len(votes), bool)), features)
    for wrong in ({"tol": 0.0}, {"max_iter": 0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            LatentScore(**wrong)
