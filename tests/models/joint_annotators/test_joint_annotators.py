"""JAM, VRJAM and items' own parts: against a slow twin, on simulated votes, and in every corner."""

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.oracles.joint_annotators import jam, one_coin

import crowdrank as cr
from crowdrank.data.index import Index, Items
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError, ParameterError, UnknownNameError
from crowdrank.joint import JointAnnotators
from crowdrank.models.joint_annotators.joint_annotators import FeatureScores, FlipPrior, JointModel, JudgedPairs
from crowdrank.models.joint_annotators.kernels.pair_patterns import find_patterns

EXACTLY = {"tol": 1e-10, "max_iter": 2000}
FLIPS = np.array([0.05, 0.15, 0.25, 0.35])


def crowd(seed=0, *, n_items=40, n_pairs=400, flips=FLIPS, spread=0.0, missing=0.0, n_features=3):
    """Features, preferences, the votes as a table (n_pairs, n_annotators), the true scores, and items of each pair."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n_items, n_features))
    scores = matrix @ np.linspace(1, 2, n_features) + spread * rng.normal(size=n_items)
    cells = rng.choice(n_items * (n_items - 1) // 2, n_pairs, replace=False)
    first, second = (side[np.sort(cells)].astype(np.int32) for side in np.triu_indices(n_items, 1))
    better = rng.random(n_pairs) < 1 / (1 + np.exp(scores[second] - scores[first]))
    wrong = rng.random((n_pairs, len(flips))) < flips
    votes = np.where(wrong, -1, 1) * np.where(better, 1, -1)[:, None] * (rng.random(wrong.shape) >= missing)
    items = Items(Index(pl.Series("id", [""])), np.zeros(n_items, np.int32), pl.Series("item", range(n_items)))
    features = cr.Features(items, matrix, tuple(f"x{k}" for k in range(n_features)))
    return features, preferences_of(items, first, second, votes), votes, scores, (first, second)


def preferences_of(items, first, second, votes):
    """Preferences with a row for each vote."""
    pair, who = np.nonzero(votes)
    annotators = Index(pl.Series("id", [f"annotator-{k}" for k in range(votes.shape[1])]))
    return cr.Preferences(
        items=items, annotators=annotators, left=first[pair], right=second[pair],
        annotator=who.astype(np.int32), outcome=votes[pair, who].astype(np.int8),
    )  # fmt: skip


def scaled(features):
    """Features less their mean, by their standard deviation."""
    return (features.matrix - features.matrix.mean(axis=0)) / features.matrix.std(axis=0)


def flips_of(fit):
    return fit.quality.parameters["flip"]


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_jam_equals_its_slow_twin(missing):
    features, preferences, votes, _, (first, second) = crowd(missing=missing)
    judged = (votes != 0).any(axis=1)
    matrix = scaled(features)
    fit = JointAnnotators(item_effects=False, **EXACTLY).fit(preferences, features)
    weights, flips, values = jam((matrix[first] - matrix[second])[judged], votes[judged], ridge=1e-3, alpha=1.0)
    np.testing.assert_allclose(fit.ranker.weights_, weights, rtol=1e-5)
    np.testing.assert_allclose(flips_of(fit), flips, atol=1e-6)
    assert fit.trace.log_likelihood[-1] == pytest.approx(values[-1], abs=1e-6)
    assert fit.trace.log_likelihood[0] == pytest.approx(values[0], abs=1e-6)


def test_without_features_it_is_one_coin_dawid_skene_on_pairs():
    features, preferences, votes, _, (first, second) = crowd(missing=0.2)
    fit = JointAnnotators(**EXACTLY).fit(preferences)
    judged = (votes != 0).any(axis=1)
    flips, better = one_coin(votes[judged], alpha=1.0)
    np.testing.assert_allclose(flips_of(fit), flips, atol=1e-6)
    np.testing.assert_allclose(fit.pairs.probability, better, atol=1e-5)
    assert (fit.pairs.left == first[judged]).all()
    assert (fit.pairs.right == second[judged]).all()
    assert fit.ranker is None
    lead = np.bincount(first[judged], 2 * better - 1, 40) - np.bincount(second[judged], 2 * better - 1, 40)
    number = np.bincount(first[judged], minlength=40) + np.bincount(second[judged], minlength=40)
    np.testing.assert_allclose(fit.consensus.scores, lead / number, atol=1e-4)
    with pytest.raises(ParameterError, match="without features"):
        fit.predict(features)


def test_features_that_do_not_vary_are_none():
    features, preferences, *_ = crowd()
    constant = replace(features, matrix=np.ones_like(features.matrix))
    fit = JointAnnotators(**EXACTLY).fit(preferences, constant)
    alone = JointAnnotators(**EXACTLY).fit(preferences)
    np.testing.assert_allclose(flips_of(fit), flips_of(alone), atol=1e-8)
    assert not fit.ranker.weights_.any()
    assert fit.predict(constant)["score"].to_list() == [0.0] * 40


@pytest.mark.parametrize("n_parts", [1, 3])
def test_clusters_that_all_pairs_share_change_nothing(n_parts):
    features, preferences, votes, _, (first, second) = crowd(missing=0.3)
    judged = (votes != 0).any(axis=1)
    patterns = find_patterns(
        preferences.left, preferences.right, preferences.outcome, preferences.annotator,
        weight=None, offsets=np.array([0, 40]), n_sources=4,
    )  # fmt: skip
    split = patterns.split_by_cluster(np.zeros(patterns.n_pairs, np.int32), n_parts)
    none = np.zeros(4 * n_parts)
    prior = FlipPrior(none + 0.3, none + 0.7, none + np.nan)
    pairs = JudgedPairs.in_memory(split, 4 * n_parts)
    model = JointModel(pairs, FeatureScores(scaled(features), 1e-3), prior)
    found = model.run(model.start(), **EXACTLY)
    weights, flips, _ = jam(
        (scaled(features)[first] - scaled(features)[second])[judged], votes[judged], ridge=1e-3, alpha=1
    )
    np.testing.assert_allclose(found.state.flip_rates[::n_parts], flips, atol=1e-6)
    np.testing.assert_allclose(found.state.parameters, weights, rtol=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"item_effects": False}, {"item_effects": False, "n_clusters": 4}, {"n_clusters": 4}]
)
@pytest.mark.parametrize("with_features", [True, False])
def test_the_likelihood_never_falls(options, with_features):
    features, preferences, *_ = crowd(spread=1.0, missing=0.3)
    fit = JointAnnotators(**options).fit(preferences, features if with_features else None)
    assert fit.trace.converged
    assert (np.diff(fit.trace.log_likelihood) >= 0).all()


def test_many_features_take_another_way_to_the_same_weights(monkeypatch):
    features, preferences, *_ = crowd(n_pairs=700, n_features=6)
    method = JointAnnotators(item_effects=False, **EXACTLY)
    direct = method.fit(preferences, features)
    monkeypatch.setattr("crowdrank.models.joint_annotators.joint_annotators._MOST_SOLVED_FEATURES", 5)
    around = method.fit(preferences, features)
    np.testing.assert_allclose(around.ranker.weights_, direct.ranker.weights_, rtol=1e-4)


def test_patterns_and_single_votes_lead_to_the_same(monkeypatch):
    features, preferences, *_ = crowd(missing=0.3, spread=1.0)
    few = JointAnnotators(tol=1e-8).fit(preferences, features)
    monkeypatch.setattr("crowdrank.models.joint_annotators.kernels.pair_patterns.MOST_TABLE_SOURCES", 3)
    many = JointAnnotators(tol=1e-8).fit(preferences, features)
    np.testing.assert_allclose(flips_of(many), flips_of(few), atol=1e-6)
    np.testing.assert_allclose(many.pairs.probability, few.pairs.probability, atol=1e-5)


def test_a_vote_given_twice_is_a_vote_of_weight_two():
    features, preferences, *_ = crowd(n_pairs=200)
    rows = np.arange(len(preferences))
    twice = JointAnnotators(tol=1e-8).fit(preferences.select(np.concatenate([rows, rows[::7]])), features)
    weight = np.where(rows % 7 == 0, 2.0, 1.0)
    heavy = JointAnnotators(tol=1e-8).fit(replace(preferences, weight=weight), features)
    np.testing.assert_allclose(flips_of(heavy), flips_of(twice), atol=1e-6)
    np.testing.assert_allclose(heavy.consensus.scores, twice.consensus.scores, atol=1e-4)


def test_rates_scores_and_spread_come_back():
    flips = np.array([0.1, 0.15, 0.2, 0.3, 0.3])
    features, preferences, _, scores, _ = crowd(n_items=300, n_pairs=6000, flips=flips, spread=1.0)
    fit = JointAnnotators().fit(preferences, features)
    np.testing.assert_allclose(flips_of(fit), flips, atol=0.02)
    assert fit.consensus.estimates["spread"] == pytest.approx(1.0, abs=0.15)
    assert np.corrcoef(fit.consensus.scores, scores)[0, 1] > 0.98
    plain = JointAnnotators(item_effects=False).fit(preferences, features)
    assert np.corrcoef(plain.consensus.scores, scores)[0, 1] < np.corrcoef(fit.consensus.scores, scores)[0, 1]
    np.testing.assert_allclose(fit.quality.quality, 1 - flips_of(fit))


def test_rates_of_clusters_come_back():
    rng = np.random.default_rng(5)
    features, preferences, *_ = crowd(3, n_items=300, n_pairs=20_000, n_features=2)
    gap = np.abs(features.matrix[preferences.left] - features.matrix[preferences.right])
    side = (gap[:, 0] > gap[:, 1]).astype(int)
    rates = np.array([[0.05, 0.4], [0.4, 0.05], [0.05, 0.4], [0.4, 0.05]])
    lead = (features.matrix[preferences.left] - features.matrix[preferences.right]) @ [0.5, 0.5]
    truth = np.repeat(np.where(rng.random(20_000) < 1 / (1 + np.exp(-lead[::4])), 1, -1), 4)
    wrong = rng.random(len(truth)) < rates[preferences.annotator, side]
    preferences = replace(preferences, outcome=np.where(wrong, -truth, truth).astype(np.int8))
    fit = JointAnnotators(item_effects=False, n_clusters=8).fit(preferences, features)
    plain = JointAnnotators(item_effects=False).fit(preferences, features)
    better = truth[::4] > 0
    assert ((fit.pairs.probability > 0.5) == better).mean() > ((plain.pairs.probability > 0.5) == better).mean() + 0.01
    found = fit.quality.parameters["cluster_flip"]
    assert found.shape == (4, 8)
    assert found.min() < 0.12
    assert found.max() > 0.33
    automatic = JointAnnotators(item_effects=False, n_clusters=None).fit(preferences, features)
    assert 2 <= automatic.consensus.estimates["n_clusters"] <= 16


def test_the_cluster_of_each_pair_is_told_and_its_rates_are_those_of_its_preferences():
    features, preferences, *_ = crowd()
    fit = JointAnnotators(item_effects=False, n_clusters=3, cluster_alpha=0.0).fit(preferences, features)
    assert fit.pairs.frame().columns[-2:] == ["probability", "cluster"]
    assert sorted(set(fit.pairs.cluster.tolist())) == [0, 1, 2]
    # without a prior the rate of a cluster is the expected share of flipped preferences in it
    number = {pair: row for row, pair in enumerate(zip(fit.pairs.left, fit.pairs.right, strict=True))}
    rows = [number[min(pair), max(pair)] for pair in zip(preferences.left, preferences.right, strict=True)]
    says_left = (preferences.outcome > 0) == (preferences.left < preferences.right)
    flipped = np.where(says_left, 1 - fit.pairs.probability[rows], fit.pairs.probability[rows])
    rates = fit.quality.parameters["cluster_flip"]
    for annotator, cluster in np.ndindex(rates.shape):
        own = (preferences.annotator == annotator) & (fit.pairs.cluster[rows] == cluster)
        assert rates[annotator, cluster] == pytest.approx(flipped[own].mean(), abs=1e-3)
    assert JointAnnotators().fit(preferences, features).pairs.cluster is None


def test_folded_clusters_do_not_depend_on_which_item_comes_first():
    features, preferences, *_ = crowd(missing=0.2)
    method = JointAnnotators(item_effects=False, n_clusters=3, cluster_alpha=5.0)
    backwards = np.arange(40)[::-1].astype(np.int32)
    turned = replace(features, matrix=features.matrix[::-1])
    renamed = replace(preferences, left=backwards[preferences.left], right=backwards[preferences.right])
    one, other = method.fit(preferences, features), method.fit(renamed, turned)
    np.testing.assert_allclose(flips_of(one), flips_of(other), atol=1e-6)
    raw = replace(method, clustering="raw")
    assert raw.fit(preferences, features).trace.converged


def test_the_hinge_is_near_the_likelihood():
    features, preferences, *_ = crowd(n_pairs=700)
    hinge = JointAnnotators(item_effects=False, loss="hinge").fit(preferences, features)
    logistic = JointAnnotators(item_effects=False).fit(preferences, features)
    np.testing.assert_allclose(flips_of(hinge), flips_of(logistic), atol=0.02)
    assert np.corrcoef(hinge.consensus.scores, logistic.consensus.scores)[0, 1] > 0.99


def test_most_votes_are_taken_to_be_right():
    features, preferences, *_ = crowd(flips=np.array([0.1, 0.2, 0.85]))
    fit = JointAnnotators().fit(preferences, features)
    np.testing.assert_allclose(flips_of(fit), [0.1, 0.2, 0.85], atol=0.06)
    turned = JointAnnotators().fit(replace(preferences, outcome=-preferences.outcome), features)
    np.testing.assert_allclose(flips_of(turned), flips_of(fit), atol=1e-3)
    np.testing.assert_allclose(turned.consensus.scores, -fit.consensus.scores, atol=0.05)


@pytest.mark.parametrize("item_effects", [False, True])
def test_trusted_annotators_and_known_pairs_turn_a_reversed_crowd_round(item_effects):
    flips = np.array([0.1, 0.8, 0.85, 0.9])
    features, preferences, _, scores, (first, second) = crowd(flips=flips, n_pairs=700)
    method = JointAnnotators(item_effects=item_effects)
    misled = method.fit(preferences, features)
    np.testing.assert_allclose(flips_of(misled), 1 - flips, atol=0.06)
    trusting = method.fit(preferences, features, trusted=["annotator-0"])
    np.testing.assert_allclose(flips_of(trusting), flips, atol=0.06)
    chosen = np.flatnonzero(np.abs(scores[first] - scores[second]) > 1)[:40]
    winner = np.where(scores[first] > scores[second], first, second)[chosen]
    known = {"left": first[chosen], "right": second[chosen], "winner": winner}
    told = method.fit(preferences, features, known=known)
    np.testing.assert_allclose(flips_of(told), flips, atol=0.06)
    sure = told.pairs.probability[chosen]
    np.testing.assert_allclose(sure, winner == first[chosen], atol=1e-6)
    graded = method.fit(preferences, features, known={"item": list(range(20)), "grade": scores[:20]})
    np.testing.assert_allclose(flips_of(graded), flips, atol=0.06)


def test_known_pairs_need_no_votes_but_may_not_contradict_themselves():
    features, preferences, *_ = crowd(n_pairs=300)
    without = preferences.select((preferences.left != 3) & (preferences.right != 3))
    fit = JointAnnotators().fit(without, features, known={"left": [3], "right": [5], "winner": [5]})
    row = fit.pairs.frame().filter((pl.col("left") == 3) & (pl.col("right") == 5))
    assert row["probability"].to_list() == pytest.approx([0.0], abs=1e-9)
    both = {"left": [3, 5], "right": [5, 3], "winner": [5, 3]}
    with pytest.raises(JudgmentError, match="orders the items"):
        JointAnnotators().fit(preferences, features, known=both)
    with pytest.raises(UnknownNameError, match="annotator-9"):
        JointAnnotators().fit(preferences, features, trusted=["annotator-9"])


def test_a_crowd_at_chance_is_named():
    features, preferences, *_ = crowd(flips=np.array([0.1, 0.9, 0.5]))
    with pytest.warns(DataWarning, match="hardly better than chance"):
        JointAnnotators(item_effects=False).fit(preferences, features)


def test_errors_that_follow_the_features_are_named():
    features, preferences, *_ = crowd(n_items=200, n_pairs=4000, flips=np.zeros(5))
    # each annotator orders items by what they see of the truth, and two of them are misled by one feature
    rng = np.random.default_rng(1)
    seen = rng.normal(size=(200, 1)) + 0.8 * rng.normal(size=(200, 5))
    seen[:, :2] += 1.5 * features.matrix[:, :1]
    gap = seen[preferences.left, preferences.annotator] - seen[preferences.right, preferences.annotator]
    preferences = replace(preferences, outcome=np.sign(gap).astype(np.int8))
    with pytest.warns(DataWarning, match="set item_effects=True, or leave them out"):
        JointAnnotators(item_effects=False).fit(preferences, features)


def test_annotators_who_hardly_meet_are_not_held_against_the_features():
    rng = np.random.default_rng(4)
    features, preferences, _, scores, _ = crowd(n_items=300, n_pairs=6000, flips=np.full(2, 0.2), spread=1.0)
    who = Index(pl.Series("id", [f"annotator-{k}" for k in range(400)]))
    many = replace(preferences, annotators=who, annotator=rng.integers(0, 400, len(preferences)).astype(np.int32))
    fit = JointAnnotators().fit(many, features)
    assert np.corrcoef(fit.consensus.scores, scores)[0, 1] > 0.95
    assert fit.quality.quality.mean() == pytest.approx(0.8, abs=0.03)


def test_an_annotator_without_votes_is_named_and_has_no_quality_to_speak_of():
    features, preferences, *_ = crowd()
    tied = replace(preferences, outcome=np.where(preferences.annotator == 3, 0, preferences.outcome).astype(np.int8))
    with pytest.warns(DataWarning, match="annotators named no better item.*'annotator-3'"):
        fit = JointAnnotators().fit(tied, features)
    assert fit.quality.quality[3] == 0.5
    assert len(fit.pairs) == 400


def test_ties_are_no_votes_but_their_pairs_are_told_by_features():
    features, preferences, *_ = crowd()
    only = (preferences.left == preferences.left[0]) & (preferences.right == preferences.right[0])
    tied = replace(preferences, outcome=np.where(only, 0, preferences.outcome).astype(np.int8))
    fit = JointAnnotators(item_effects=False, **EXACTLY).fit(tied, features)
    gap = fit.consensus.scores[fit.pairs.left[0]] - fit.consensus.scores[fit.pairs.right[0]]
    assert fit.pairs.probability[0] == pytest.approx(1 / (1 + np.exp(-gap)))
    gone = JointAnnotators(item_effects=False, **EXACTLY).fit(preferences.select(~only), features)
    np.testing.assert_allclose(flips_of(fit), flips_of(gone), atol=1e-7)


def test_one_annotator_is_warned_of():
    features, preferences, *_ = crowd()
    alone = preferences.select(preferences.annotator == 0)
    alone = replace(alone, annotators=Index(pl.Series("id", ["ann"])), annotator=np.zeros(len(alone), np.int32))
    with pytest.warns(DataWarning, match="one annotator.*from the features alone"):
        JointAnnotators().fit(alone, features)
    nobody = replace(alone, annotators=Index.empty(), annotator=np.empty(0, np.int32))
    with pytest.warns(DataWarning, match="one annotator.*cannot be estimated"):
        fit = JointAnnotators().fit(nobody)
    assert fit.quality is None


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_annotators_who_all_agree_are_nearly_infallible(alpha):
    features, preferences, *_ = crowd(flips=np.zeros(3))
    fit = JointAnnotators(item_effects=False, alpha=alpha).fit(preferences, features)
    np.testing.assert_allclose(flips_of(fit), 1e-3, atol=1e-3)
    assert np.isfinite(fit.consensus.scores).all()


def test_both_orientations_of_a_pair_are_one_pair():
    features, preferences, *_ = crowd(missing=0.2)
    turn = np.random.default_rng(2).random(len(preferences)) < 0.5
    mixed = replace(
        preferences, left=np.where(turn, preferences.right, preferences.left),
        right=np.where(turn, preferences.left, preferences.right),
        outcome=np.where(turn, -preferences.outcome, preferences.outcome).astype(np.int8),
    )  # fmt: skip
    one, other = JointAnnotators().fit(preferences, features), JointAnnotators().fit(mixed, features)
    np.testing.assert_allclose(other.pairs.probability, one.pairs.probability)


def test_queries_share_weights_and_rates():
    features, preferences, *_ = crowd(n_items=40, n_pairs=700)
    within = (preferences.left < 20) == (preferences.right < 20)
    items = Items(Index(pl.Series("id", ["a", "b"])), np.repeat(np.int32([0, 1]), 20), features.items.ids)
    split = replace(preferences.select(within), items=items)
    shifted = features.matrix + np.repeat([[0.0], [50.0]], 20, axis=0)
    fit = JointAnnotators().fit(split, replace(features, items=items, matrix=shifted))
    np.testing.assert_allclose(flips_of(fit), FLIPS, atol=0.06)
    assert np.abs(np.add.reduceat(fit.consensus.scores, [0, 20])).max() < 1e-6
    assert fit.n_queries == 2


def test_unseen_items_and_items_without_features():
    features, preferences, _, scores, _ = crowd(n_pairs=700)
    few = preferences.select((preferences.left < 30) & (preferences.right < 30))
    fit = JointAnnotators().fit(few, features)
    assert fit.n_items == 30
    assert fit.n_unjudged == 10
    predicted = fit.predict(features)["score"].to_numpy()
    assert np.corrcoef(predicted[30:], scores[30:])[0, 1] > 0.95
    np.testing.assert_allclose(np.diff(fit.consensus.scores[30:]), np.diff(predicted[30:]))
    part = cr.Features.from_arrays(None, features.items.ids[:38], features.matrix[:38], names=features.names)
    with pytest.warns(DataWarning, match="2 of 40 judged items have no features and are taken as average ones"):
        known = JointAnnotators().fit(preferences, part)
    assert np.isfinite(known.consensus.scores).all()


def test_the_ranker_is_saved_and_read(tmp_path):
    features, preferences, *_ = crowd()
    fit = JointAnnotators().fit(preferences, features)
    fit.save(tmp_path / "model")
    assert (cr.load_ranker(tmp_path / "model").predict(features) == fit.ranker.predict(features)).all()


def test_no_preferences_lead_to_equal_scores():
    features, preferences, *_ = crowd()
    with pytest.warns(DataWarning, match="named no better item"):
        fit = JointAnnotators().fit(preferences.select(np.zeros(len(preferences), bool)), features)
    assert not fit.consensus.scores.any()


def test_what_is_wrong_with_judgments_and_features_is_said():
    features, preferences, *_ = crowd()
    grades = cr.Grades.from_rows([("ann", "q", "x", 1)])
    with pytest.raises(JudgmentError, match="as_preferences"):
        JointAnnotators().fit(grades, features)
    hole = features.matrix.copy()
    hole[3, 1] = np.nan
    with pytest.raises(JudgmentError, match="feature 'x1' of item 3 is missing"):
        JointAnnotators().fit(preferences, replace(features, matrix=hole))
    with pytest.warns(ConvergenceWarning, match="joint_annotators did not converge in 2 steps"):
        JointAnnotators(item_effects=False, max_iter=2).fit(preferences, features)


def test_grades_and_rankings_come_through_their_preferences(small):
    ids = small["grade"].items
    features = cr.Features(ids, np.arange(len(ids) * 2.0).reshape(-1, 2) % 7, ("x", "y"))
    for kind in ("grade", "ranking"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            fit = JointAnnotators().fit(small[kind].as_preferences(), features)
        assert np.isfinite(fit.consensus.scores).all()


@pytest.fixture(scope="module")
def red_wine(data_folder):
    """Red wines, all pairs of unequal quality, and whether the first of each is the better."""
    wine = cr.datasets.load("wine-quality/red")
    quality = wine.truth.align(wine.features.items)
    first, second = (side.astype(np.int32) for side in np.triu_indices(len(quality), 1))
    unequal = quality[first] != quality[second]
    return wine.features, first[unequal], second[unequal], quality


def drawn(red_wine, chosen, seed):
    """Preferences of six annotators, the k-th of whom flips k in 20 pairs, and the truth."""
    features, first, second, quality = red_wine
    first, second = first[chosen], second[chosen]
    better = quality[first] > quality[second]
    wrong = np.random.default_rng(seed).random((len(first), 6)) < np.arange(1, 7) / 20
    return preferences_of(features.items, first, second, np.where(wrong != better[:, None], 1, -1)), better


@pytest.mark.parametrize("options", [{}, {"item_effects": False}, {"item_effects": False, "n_clusters": 8}])
def test_flip_rates_of_red_wine(red_wine, options):
    preferences, better = drawn(red_wine, slice(None), 0)
    fit = JointAnnotators(**options).fit(preferences, red_wine[0])
    np.testing.assert_allclose(flips_of(fit), np.arange(1, 7) / 20, atol=0.003)
    assert ((fit.pairs.probability > 0.5) == better).mean() >= 0.987


@pytest.mark.parametrize("n_pairs", [800, 3200])
def test_few_pairs_of_red_wine_are_ordered_better_than_by_borda(red_wine, n_pairs):
    features, first, second, quality = red_wine
    chosen = np.sort(np.random.default_rng(1).choice(len(first), n_pairs, replace=False))
    preferences, _ = drawn(red_wine, chosen, 1)

    def right(scores):
        gap = scores[first] - scores[second]
        return np.where(gap == 0, 0.5, (gap > 0) == (quality[first] > quality[second])).mean()

    borda = cr.aggregators.Borda().fit(preferences).scores
    assert right(JointAnnotators().fit(preferences, features).consensus.scores) > right(borda)
