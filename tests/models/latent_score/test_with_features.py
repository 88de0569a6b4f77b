"""Latent scores with features: what is learned, what is predicted, and what is refused."""

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.aggregators import LatentScore as Aggregator
from crowdrank.errors import DataWarning, JudgmentError, ParameterError, UnknownNameError
from crowdrank.joint import LatentScore
from crowdrank.models.latent_score import steps, with_features
from crowdrank.models.latent_score.model import ItemInputs, known_scores, lay_out
from crowdrank.models.latent_score.steps import Options, fit_scores

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


def crowded(seed, n_items, n_columns, n_votes):
    """A few votes on items with many correlated columns, of which the first common factor matters; a tenth reversed."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_items, 40))
    matrix = factors @ rng.normal(size=(40, n_columns)) / np.sqrt(40) + 0.5 * rng.normal(size=(n_items, n_columns))
    truth = factors[:, 0] + 0.5 * rng.normal(size=n_items)
    left = rng.integers(0, n_items, n_votes)
    right = (left + rng.integers(1, n_items, n_votes)) % n_items
    annotator = rng.integers(0, 200, n_votes)
    better = rng.random(n_votes) < 1 / (1 + np.exp(-1.5 * (truth[left] - truth[right])))
    better ^= (rng.random(200) < 0.1)[annotator]
    ids = np.array([f"i{number:04d}" for number in range(n_items)])
    votes = cr.Preferences.from_frame(
        {"left": ids[left], "right": ids[right], "annotator": [f"a{number}" for number in annotator],
         "winner": np.where(better, "left", "right")}
    )  # fmt: skip
    names = [f"x{number}" for number in range(n_columns)]
    return votes, cr.Features.from_arrays(None, ids, matrix, names=names), truth


def test_more_columns_than_votes_reverse_nothing():
    # weights of variance 36 each followed single votes: the correlation was -.77, and -.58 with seed 3
    votes, features, truth = crowded(0, n_items=1000, n_columns=420, n_votes=268)
    fit = LatentScore().fit(votes, features)
    assert np.corrcoef(fit.predict(features)["score"], truth)[0, 1] > 0.6
    assert np.linalg.norm(fit.ranker.weights_) < 6


def test_items_that_nobody_judged_have_a_score():
    votes, features, _ = crowded(1, n_items=60, n_columns=3, n_votes=200)
    votes = votes.select(np.arange(len(votes)) < 20)
    fit = LatentScore().fit(votes, features)
    found = fit.consensus.frame()
    assert sorted(found["item"]) == features.items.ids.to_list()
    unjudged = set(features.items.ids) - set(votes.items.ids.filter(votes.judged_items))
    assert fit.n_unjudged == len(unjudged) > 20
    both = found.join(fit.predict(features), on="item", suffix="_predicted").filter(pl.col("item").is_in(unjudged))
    gap = both["score"] - both["score_predicted"]
    assert gap.max() - gap.min() == pytest.approx(0, abs=1e-6)


def squares(seed, n_queries=20, n_items=12):
    """Items whose score is the product of two features, graded twice each by 20 annotators."""
    rng = np.random.default_rng(seed)
    n = n_queries * n_items
    matrix = rng.normal(size=(n, 3))
    scores = 2.0 * np.sign(matrix[:, 0] * matrix[:, 1])
    query, item = np.repeat(np.arange(n_queries), n_items), np.arange(n)
    again, annotator = np.repeat(item, 2), rng.integers(0, 20, 2 * n)
    grade = np.digitize(scores[again] + rng.logistic(size=2 * n), [-1.0, 1.0])
    table = {"query": query[again], "item": again, "annotator": annotator, "grade": grade}
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        return cr.Features.from_arrays(query, item, matrix, names=NAMES), cr.Grades.from_frame(table), scores


def test_trees_as_the_mean_learn_what_a_linear_mean_cannot(tmp_path):
    features, grades, scores = squares(0)
    trees = cr.rankers.LambdaMART(n_trees=20, n_leaves=4, n_threads=1)
    bent, linear = (LatentScore(ranker=ranker).fit(grades, features) for ranker in (trees, None))
    other, _, truth = squares(1)
    tau_of = [tau(truth, fit.predict(other)["score"].to_numpy(), other.items) for fit in (bent, linear)]
    assert tau_of[0] > tau_of[1] + 0.3
    assert tau(scores, bent.consensus.scores, grades.items) > tau(scores, linear.consensus.scores, grades.items)
    bent.save(tmp_path / "model")
    assert isinstance(cr.load_ranker(tmp_path / "model"), cr.rankers.LambdaMART)


def test_any_ranker_is_the_mean_of_preferences_too(few):
    features, votes, truth = few
    fit = cr.train(votes, features, joint="latent_score", ranker="list_net")
    assert tau(truth, fit.consensus.scores, votes.items) > 0.6
    assert fit.ranker.feature_names_in_.tolist() == list(NAMES)
    with pytest.raises(ParameterError, match="is not a ranker of crowdrank"):
        LatentScore(ranker=3).fit(votes, features)


def test_many_cells_change_nothing_but_the_time(few, monkeypatch):
    features, votes, _ = few
    exact = LatentScore(tol=1e-6).fit(votes, features)
    monkeypatch.setattr(steps, "MAX_CELLS_EVERY_ROUND", 0)
    now_and_then = LatentScore(tol=1e-6).fit(votes, features)
    np.testing.assert_allclose(now_and_then.ranker.weights_, exact.ranker.weights_, atol=0.02)
    assert np.corrcoef(now_and_then.consensus.scores, exact.consensus.scores)[0, 1] > 0.999


def graded_crowd(seed, n_queries=60, size=10):
    """Features, grades by 20 annotators, and the true scores, of many small queries."""
    rng, n_items = np.random.default_rng(seed), n_queries * size
    matrix = rng.normal(size=(n_items, 3))
    scores = matrix @ WEIGHTS + 0.5 * rng.normal(size=n_items)
    who = np.argsort(rng.random((n_items, 20)), axis=1)[:, :4]
    seen = rng.normal(1.0, 0.3, 20)[who] * scores[:, None] + rng.logistic(size=who.shape)
    query, item = (np.arange(n_items) // size).astype(str), np.arange(n_items).astype(str)
    table = {
        "query": np.repeat(query, 4),
        "item": np.repeat(item, 4),
        "annotator": [f"a{code}" for code in who.ravel()],
    }
    grades = cr.Grades.from_frame({**table, "grade": np.searchsorted([-1.0, 0.0, 1.0], seen.ravel())})
    return cr.Features.from_arrays(query, item, matrix, names=NAMES), grades, scores


def test_a_start_from_a_part_of_the_queries_ends_in_the_same_scores(monkeypatch):
    features, grades, _ = graded_crowd(5)
    said = []
    plain = LatentScore(tol=1e-5).fit(grades, features)
    monkeypatch.setattr(with_features, "MIN_CELLS_TO_START_FROM_A_PART", 0)
    from_part = LatentScore(tol=1e-5).fit(grades, features, progress=lambda done, total, what: said.append(what))
    assert any(what.endswith(", part of the queries") for what in said)
    np.testing.assert_allclose(from_part.consensus.scores, plain.consensus.scores, atol=2e-3)
    np.testing.assert_allclose(from_part.ranker.weights_, plain.ranker.weights_, atol=1e-3)
    turned = grades.select(np.arange(len(grades))[::-1])
    again = LatentScore(tol=1e-5).fit(turned, features)
    np.testing.assert_allclose(again.consensus.scores, from_part.consensus.scores, atol=1e-6)


def test_fits_start_from_nothing_where_a_part_says_too_little(monkeypatch, few):
    monkeypatch.setattr(with_features, "MIN_CELLS_TO_START_FROM_A_PART", 0)
    features, grades, scores = graded_crowd(6)

    def start(judgments, described, known=None):
        layout = lay_out(judgments)
        known = ItemInputs.nothing(layout.n_items) if known is None else known
        return with_features.start_from_part(
            judgments, layout, described.matrix, known, None, bins=None, lapse=None, progress=None
        )

    assert start(grades, features)[0].scores.shape == scores.shape
    # a grade that only one query has is not in the part unless that query is
    rows = np.unique(grades.items.query[grades.item], return_index=True)[1][:8]
    rare = [replace(grades, grade=np.where(np.arange(len(grades)) == row, 9.0, grades.grade)) for row in rows]
    assert any(start(one, features) is None for one in rare)
    first = {"query": ["0"], "item": ["0"], "score": [1.0]}
    assert start(grades, features, known_scores(grades.items, first)) is None
    assert start(few[1], few[0]) is not None
    monkeypatch.setattr(with_features, "MIN_CELLS_TO_START_FROM_A_PART", features.matrix.size + 1)
    assert start(grades, features) is None
