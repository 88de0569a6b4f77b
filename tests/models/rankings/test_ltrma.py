"""LTRMA: the slow twin, recovery, the paper's claims, edge cases, conversions."""

import time
import warnings

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from tests.models.conftest import SWAPPED, ltrma_data
from tests.oracles import ltrma as slow
from tests.oracles import orders as slow_orders

import crowdrank as cr
from crowdrank.aggregators import Mallows
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError
from crowdrank.joint import LTRMA
from crowdrank.metrics import kendall_tau, ndcg
from crowdrank.models.rankings.kernels.true_rankings import expected_distance
from crowdrank.registry import make


def quietly(method, judged, features, **extra):
    """Fit without the warnings about tiny data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return method.fit(judged, features, **extra)


def theta(fit):
    return fit.quality.parameters["theta"]


def ranked(*orders, query="q"):
    """Rows of rankings from (annotator, items best first); a tuple within is a tie."""
    return [(who, query, item, p + 1) for who, order in orders for p, tied in enumerate(order) for item in tied]


def on_line(n_queries=1, n_items=4, seed=0):
    """One feature that falls from the first item to the last, and one that tells nothing."""
    rng, ids = np.random.default_rng(seed), "abcdefgh"[:n_items]
    matrix = np.column_stack([np.tile(np.arange(n_items, 0.0, -1), n_queries), rng.normal(size=n_queries * n_items)])
    query = np.repeat([f"q{k}" if n_queries > 1 else "q" for k in range(n_queries)], n_items)
    return cr.Features.from_arrays(query, list(ids) * n_queries, matrix, names=("good", "noise"))


def mallows_data(spread, *, strength=1.0, n_queries=50, n_items=6, seed=0):
    """Rankings by annotators of known spread of queries whose truth five features explain by some strength."""
    rng = np.random.default_rng(seed)
    matrix, weights = rng.normal(size=(n_queries, n_items, 5)), rng.normal(size=5)
    score = matrix @ (strength * weights / np.linalg.norm(weights))
    grade = (score + rng.gumbel(size=score.shape)).argsort(axis=1).argsort(axis=1) + 1.0
    ids = (
        np.repeat([f"q{k:03d}" for k in range(n_queries)], n_items),
        np.tile([f"i{k}" for k in range(n_items)], n_queries),
    )
    features = cr.Features.from_arrays(*ids, matrix.reshape(-1, 5), grade=grade.ravel())
    truth = features.items.frame().with_columns(grade=pl.Series(features.grade))
    design = cr.simulate.PerQuery(k=len(spread))
    return cr.simulate.rankings(truth, cr.simulate.Mallows(np.array(spread)), design, seed=seed).judgments, features


def own_theta(judged, features):
    """The dispersion at which each annotator's mean distance to the truth is expected."""
    truth = -features.grade[judged.item].reshape(-1, SWAPPED)
    wrong = (truth[:, :, None] > truth[:, None, :])[:, *np.triu_indices(SWAPPED, 1)].sum(axis=1)
    grid = np.linspace(-2, 0, 4001)
    return np.interp(np.bincount(judged.annotator, wrong) / 100, expected_distance(grid, SWAPPED), grid)


def unseen(fit, test, k=3):
    return float(ndcg(test.grade, fit.predict(test)["score"], test.items.query, k=k))


@pytest.fixture(scope="module")
def small_queries():
    """Six queries of four items, each ranked by three annotators, and features of two kinds."""
    rng, features = np.random.default_rng(5), on_line(6)
    rows = []
    for query in range(6):
        for who, noise in (("ann", 0.8), ("bob", 1.5), ("cid", 3.0)):
            order = np.argsort(np.arange(4) + rng.normal(0, noise, 4))
            kept = order[: 3 if (query + len(who + str(noise))) % 3 == 0 else 4]
            rows += ranked((who, ["abcd"[i] for i in kept]), query=f"q{query}")
    return cr.Rankings.from_rows(rows), features


def test_exact_soft_fit_is_a_maximum_of_the_enumerated_likelihood(small_queries):
    judged, features = small_queries
    fit = LTRMA(step="soft", alpha=0.0, ridge=0.1, tol=1e-7, max_iter=3000).fit(judged, features)
    matrices = fit.ranker.scaling_.apply(features.matrix, np.zeros(1, int)).reshape(6, 4, 2)
    queries = [[] for _ in range(6)]
    for number, who in enumerate(judged.annotator):
        items = judged.item[judged.offsets[number] : judged.offsets[number + 1]]
        queries[items[0] // 4].append((who, (items % 4).tolist(), list(range(1, len(items) + 1))))

    def objective(x):
        return slow.log_likelihood(queries, matrices, x[:3], x[3:]) - 0.5 * 0.1 * 6 * float(x[3:] @ x[3:])

    found = np.concatenate([theta(fit), fit.ranker.weights_])
    assert fit.trace.converged
    assert fit.trace.log_likelihood[-1] == pytest.approx(objective(found), abs=1e-6)
    assert (np.diff(fit.trace.log_likelihood) > -1e-9).all()
    best = minimize(lambda x: -objective(x), found, bounds=[(-12, 0)] * 3 + [(None, None)] * 2)
    assert -best.fun - objective(found) < 1e-5
    place = slow_orders.posterior(
        4, [pair[1:] for pair in queries[0]], [theta(fit)[who] for who, *_ in queries[0]],
        matrices[0] @ fit.ranker.weights_,
    )[2]  # fmt: skip
    np.testing.assert_allclose(fit.consensus.scores[:4], 1.5 - place, atol=1e-6)


@pytest.mark.parametrize("step", ["hard", "soft"])
def test_sampled_and_exact_fits_agree(step):
    judged, features = mallows_data([1.5, 1.0, 0.6, 0.3])
    exact = LTRMA(step=step, ridge=0.3, max_iter=200).fit(judged, features)
    sampled = LTRMA(step=step, ridge=0.3, n_exact=0).fit(judged, features)
    assert exact.trace.log_likelihood is not None
    assert sampled.trace.log_likelihood is None
    np.testing.assert_allclose(theta(sampled), theta(exact), atol=0.06)
    np.testing.assert_allclose(sampled.ranker.weights_, exact.ranker.weights_, rtol=0.1, atol=0.1)
    assert np.sqrt(np.mean((sampled.consensus.scores - exact.consensus.scores) ** 2)) < 0.2


def test_recovers_the_ranker_the_truth_and_the_dispersions(swapped):
    judged, features, test = swapped
    fit = LTRMA().fit(judged, features)
    assert unseen(fit, test) >= 0.99
    assert np.corrcoef(theta(fit), own_theta(judged, features))[0, 1] >= 0.99
    assert kendall_tau(features.grade, fit.consensus.scores, features.items.query) > 0.97
    assert fit.trace.n_iter == 60
    assert fit.trace.converged
    assert (fit.n_items, fit.n_queries, fit.n_unjudged) == (1500, 100, 0)
    # what the annotators have in common with the truth without them
    far = expected_distance(own_theta(judged, features), SWAPPED) / (SWAPPED * (SWAPPED - 1) / 2)
    np.testing.assert_allclose(fit.quality.quality, 1 - far, atol=0.03)
    start = time.perf_counter()
    LTRMA().fit(judged, features)
    assert time.perf_counter() - start < 8


def test_is_clearly_better_than_a_consensus_first():
    gaps = []
    for seed, n_annotators in ((1, 3), (2, 9), (3, 15)):
        judged, features, test = ltrma_data(n_annotators, seed, n_queries=60)
        first = make("joint", "ltrma-d").fit(judged, features)
        assert type(first.ranker).__name__ == "ListMLE"
        assert first.consensus.method == "mallows"
        gaps.append(unseen(make("joint", "ltrma-ml").fit(judged, features), test) - unseen(first, test))
    assert np.mean(gaps) > 0.002


@pytest.mark.parametrize("distance", ["kendall", "cayley"])
def test_the_printed_procedure(distance):
    judged, features, test = ltrma_data(4, n_queries=40)
    method = make("joint", "ltrma-paper", {"distance": distance, "max_iter": 60})
    assert (method.variant, method.scale) == ("printed", "query")
    fit, again = method.fit(judged, features), method.fit(judged, features)
    np.testing.assert_array_equal(fit.consensus.scores, again.consensus.scores)
    assert unseen(fit, test) > 0.98
    assert kendall_tau(features.grade, fit.consensus.scores, features.items.query) > 0.9
    # one ranking of each query, and no averages
    assert (np.sort(fit.consensus.scores.reshape(-1, SWAPPED), axis=1) == np.arange(SWAPPED) - 7).all()
    assert fit.trace.n_iter <= 60


def test_cayley_distance_sees_through_swaps():
    judged, features, test = ltrma_data(4, n_queries=40)
    fit = LTRMA(distance="cayley").fit(judged, features)
    assert unseen(fit, test) > 0.99
    assert (np.diff(theta(fit)) > 0).all()
    truth = Mallows(distance="cayley", max_iter=30).fit(judged)
    ours, theirs = (kendall_tau(features.grade, s, features.items.query) for s in (fit.consensus.scores, truth.scores))
    assert ours > theirs


def test_reversing_rankings_and_features_reverses_the_order(swapped):
    judged, features, test = swapped
    rows = judged.frame()
    turned = cr.Rankings.from_frame(rows.with_columns(rank=SWAPPED + 1 - pl.col("rank")))
    negated = cr.Features(features.items, -features.matrix, features.names)
    fit = LTRMA().fit(turned, negated)
    assert kendall_tau(-features.grade, fit.consensus.scores, features.items.query) > 0.97
    np.testing.assert_allclose(theta(fit), theta(LTRMA().fit(judged, features)), atol=0.02)
    backwards = cr.Features(test.items, -test.matrix, test.names, SWAPPED + 1 - test.grade)
    assert unseen(fit, backwards) >= 0.99


def test_an_annotator_without_a_fault_has_the_bound():
    rows = [row for q in range(8) for row in ranked(("ann", "abcd"), ("bob", "abdc"), ("cid", "bacd"), query=f"q{q}")]
    judged = cr.Rankings.from_rows(rows)
    fit = LTRMA(alpha=0.0, bound=-9.0, max_iter=300).fit(judged, on_line(8))
    assert theta(fit)[0] == pytest.approx(-9.0)
    assert np.isfinite(fit.consensus.scores).all()
    assert fit.consensus.order("q0") == list("abcd")


def test_reversed_annotators_count_as_guessing_unless_they_may_be_turned_over():
    rows = [row for q in range(10) for row in ranked(
        ("ann", "abcd"), ("bob", "abdc"), ("cid", "bacd"), ("dan", "dcba" if q % 2 else "dcab"), query=f"q{q}",
    )]  # fmt: skip
    judged, features = cr.Rankings.from_rows(rows), on_line(10)
    assert theta(LTRMA().fit(judged, features))[3] == 0.0
    free = LTRMA(allow_reversed=True).fit(judged, features)
    assert theta(free)[3] > 0.5
    assert free.quality.quality[3] < 0.3


@pytest.mark.parametrize(("n", "text"), [(1, "only one annotator put"), (2, "only two annotators put")])
def test_one_or_two_annotators_are_fitted_with_a_warning(n, text):
    judged, features, test = ltrma_data(n, n_queries=30)
    with pytest.warns(DataWarning, match=text):
        fit = LTRMA().fit(judged, features)
    assert np.isfinite(fit.consensus.scores).all()
    assert np.isfinite(theta(fit)).all()
    assert unseen(fit, test) > 0.95
    nameless = cr.Rankings.from_frame(judged.frame().drop("annotator"))
    fit = LTRMA().fit(nameless, features)
    assert fit.quality is None
    assert fit.consensus.estimates["theta"] < 0


@pytest.mark.parametrize("spread", [[0.5, 0.3, 0.1], [0.3, 0.25]])
def test_few_annotators_and_weak_features_do_not_collapse(spread):
    # features that tell little must not outweigh the annotators and confirm themselves
    taus = []
    for seed in range(3):
        judged, features = mallows_data(spread, strength=0.3, n_items=10, seed=seed)
        fit = quietly(LTRMA(), judged, features)
        borda = make("aggregator", "borda").fit(judged)
        taus.append([kendall_tau(features.grade, s.scores, features.items.query) for s in (fit.consensus, borda)])
    ours, theirs = np.mean(taus, axis=0)
    assert ours > theirs - 0.02
    if len(spread) > 2:
        assert ours > theirs + 0.04


def test_features_help_where_votes_are_few():
    judged, features = mallows_data([0.3, 0.2, 0.1, 0.05, 0.02], n_items=10)
    fit, votes = LTRMA().fit(judged, features), Mallows().fit(judged)
    ours, theirs = (kendall_tau(features.grade, s.scores, features.items.query) for s in (fit.consensus, votes))
    assert ours > theirs + 0.05


def test_partial_rankings_queries_of_any_length_and_unranked_items():
    rows = ranked(("ann", "abc"), ("bob", "ab"), ("cid", [("a", "c"), "b"]), ("dan", "cbd"), query="q0")
    rows += ranked(("ann", "ab"), ("bob", "ab"), ("cid", "ba"), query="q1")
    rows += ranked(("ann", "a"), ("bob", "c"), query="q2")
    items = pl.DataFrame({"query": [f"q{k}" for k in range(5) for _ in range(4)], "item": list("abcd") * 5})
    judged = cr.Rankings.from_frame(
        pl.DataFrame(rows, schema=["annotator", "query", "item", "rank"], orient="row"), items=items
    )
    fit = LTRMA().fit(judged, on_line(5))
    assert np.isfinite(fit.consensus.scores).all()
    weight = fit.ranker.weights_[0]
    assert weight > 0
    # an unranked query is ordered by features alone, and so is one whose rankings have one item
    for query in ("q2", "q3", "q4"):
        best = fit.predict(on_line(5)).filter(pl.col("query") == query).sort("score", descending=True)
        assert fit.consensus.order(query) == best["item"].to_list()
    # unranked items stand below the ranked ones that their features put them below
    scores = dict(zip(fit.consensus.items.ids[4:8], fit.consensus.scores[4:8], strict=True))
    assert scores["a"] > scores["b"]
    assert scores["c"] > scores["d"]
    assert (fit.n_items, fit.n_queries) == (6, 2)


def test_items_without_features_are_ranked_by_votes_alone():
    rows = [row for q in range(6) for row in ranked(("ann", "axbc"), ("bob", "axbc"), ("cid", "xabc"), query=f"q{q}")]
    features = on_line(6, n_items=3)
    with pytest.warns(DataWarning, match="6 of 24 judged items have no features"):
        fit = LTRMA().fit(cr.Rankings.from_rows(rows), features)
    assert fit.consensus.order("q0") == list("axbc")
    assert fit.n_items == 18
    with pytest.warns(DataWarning, match="no features"):
        soft = LTRMA(step="soft", max_iter=10).fit(cr.Rankings.from_rows(rows), features)
    assert soft.consensus.order("q0") == list("axbc")


def test_items_with_equal_features_keep_apart_by_votes_and_tie_without():
    rows = [row for q in range(4) for row in ranked(("ann", "abcd"), ("bob", "abdc"), ("cid", "abcd"), query=f"q{q}")]
    features = on_line(4)
    matrix = features.matrix.copy()
    matrix[:] = [1.0, 2.0]
    same = cr.Features(features.items, matrix, features.names)
    fit = LTRMA().fit(cr.Rankings.from_rows(rows), same)
    assert fit.ranker.weights_.tolist() == [0.0, 0.0]
    assert fit.consensus.order("q0") == list("abcd")
    tied = [
        row for q in range(4) for who in ("ann", "bob", "cid") for row in ranked((who, ["ab", "cd"]), query=f"q{q}")
    ]
    scores = LTRMA().fit(cr.Rankings.from_rows(tied), same).consensus.scores
    assert scores[0] == scores[1]
    assert scores[2] == scores[3]
    # and by features where there are some
    assert LTRMA().fit(cr.Rankings.from_rows(tied), features).consensus.order("q1") == list("abcd")


def test_weights_of_any_size_stay_finite():
    # rankings without a fault, by a feature alone, hardly any ridge: weights grow until scores lie far apart
    rows = [row for q in range(5) for who in "xyz" for row in ranked((who, "abcdefgh"), query=f"q{q}")]
    with np.errstate(all="raise", under="ignore"):
        for n_exact in (8, 0):
            fit = LTRMA(ridge=1e-7, alpha=0.0, n_exact=n_exact).fit(cr.Rankings.from_rows(rows), on_line(5, 8))
            assert np.isfinite(fit.consensus.scores).all()
            assert np.isfinite(theta(fit)).all()
            assert fit.ranker.weights_[0] > 5


def test_trusted_annotators_are_believed():
    rng, rows = np.random.default_rng(0), []
    for q in range(12):
        good = np.argsort(np.arange(4) + rng.normal(0, 0.7, 4))
        rows += ranked(("ann", ["abcd"[i] for i in good]), ("bob", "dcba"), ("cid", "dcab"), query=f"q{q}")
    judged, features = cr.Rankings.from_rows(rows), on_line(12)
    assert LTRMA().fit(judged, features).consensus.order("q0")[0] == "d"
    fit = LTRMA().fit(judged, features, trusted=["ann"])
    assert fit.consensus.order("q0")[0] == "a"
    assert theta(fit).argmin() == 0


def test_grades_and_preferences_go_through_rankings():
    judged, features = mallows_data([1.5, 1.0, 0.6, 0.3])
    rows = judged.frame()
    grades = cr.Grades.from_frame(rows.with_columns(grade=6 - pl.col("rank")).drop("rank", "ranking"))
    plain = LTRMA().fit(judged, features)
    for given, remedy in ((grades, "grades"), (grades.as_preferences(), "preferences")):
        with pytest.raises(
            JudgmentError,
            match=rf"LTRMA takes rankings, not {remedy}; .* with .as_rankings\(\)",
        ):
            LTRMA().fit(given, features)
    np.testing.assert_allclose(LTRMA().fit(grades.as_rankings(), features).consensus.scores, plain.consensus.scores)
    pairs = LTRMA().fit(grades.as_preferences().as_rankings(), features)
    ours, theirs = (kendall_tau(features.grade, s.consensus.scores, features.items.query) for s in (pairs, plain))
    assert ours > theirs - 0.05
    assert (np.diff(theta(pairs)) > 0).all()


def test_progress_is_told(small_queries):
    told = []
    LTRMA(n_exact=0, max_iter=5).fit(*small_queries, progress=lambda *step: told.append(step))
    assert told == [(k, 5, "ltrma") for k in range(1, 6)]


def test_too_few_iterations_are_told_of(monkeypatch):
    monkeypatch.setattr("crowdrank.models.rankings.mallows_crowd._MOST_DRIFT", 1e-6)
    judged, features, _ = ltrma_data(3, n_queries=10)
    with pytest.warns(ConvergenceWarning, match=r"ltrma: after 4 iterations the distances .*; raise max_iter"):
        assert not LTRMA(max_iter=4).fit(judged, features).trace.converged


def test_nothing_to_learn_is_said(small_queries):
    single = cr.Rankings.from_rows([("ann", "q1", "a", 1), ("bob", "q1", "b", 1)])
    with pytest.raises(JudgmentError, match="nothing to learn: no ranking puts an item with features above another"):
        LTRMA().fit(single, small_queries[1])
    features = on_line(6)
    broken = cr.Features(features.items, np.where(np.arange(24)[:, None] == 3, np.nan, features.matrix), features.names)
    with pytest.raises(JudgmentError, match="feature 'good' of item 'd'"):
        LTRMA().fit(small_queries[0], broken)


@pytest.mark.data
def test_one_fold_of_a_public_set(data_folder):
    data = cr.datasets.load("letor2-ohsumed")
    queries = data.features.items.query_ids().cast(pl.String).is_in(list(data.folds[0].train[:20])).to_numpy()
    ids = data.features.items.frame().filter(pl.Series(queries))
    features = cr.Features.from_arrays(ids["query"], ids["item"], data.features.matrix[queries])
    grade = data.features.grade[queries] + np.random.default_rng(0).random(len(ids))
    truth = ids.with_columns(grade=pl.Series(grade))
    pool = cr.simulate.ltrma_swaps(n_annotators=5)
    judged = cr.simulate.rankings(truth, pool, cr.simulate.PerQuery(k=5)).judgments
    fit = LTRMA(max_iter=20).fit(judged, features)
    assert kendall_tau(grade, fit.consensus.scores, features.items.query) > 0.95
    assert (np.diff(theta(fit)) > 0).all()


@pytest.mark.parametrize("params", [{}, {"step": "hard"}, {"distance": "cayley"}])
def test_names_change_nothing_where_queries_are_sampled(params):
    judged, features = mallows_data([1.0, 0.6, 0.3], n_queries=12)
    query = {f"q{k:03d}": f"x{(5 * k) % 12:02d}" for k in range(12)}
    item, who = {f"i{k}": f"j{(5 * k + 1) % 6}" for k in range(6)}, {"a0": "zoe", "a1": "ann", "a2": "kim"}
    rows = judged.frame().drop("ranking")
    people = dict(zip(sorted(rows["annotator"].unique()), who.values(), strict=True))
    renamed = [pl.col("query").replace(query), pl.col("item").replace(item)]
    ids = features.items.frame().with_columns(renamed)
    other = cr.Rankings.from_frame(rows.with_columns(*renamed, pl.col("annotator").replace(people)))
    moved = cr.Features.from_arrays(ids["query"], ids["item"], features.matrix, names=features.names)
    method = LTRMA(n_exact=0, max_iter=12, **params)
    one, two = method.fit(judged, features), method.fit(other, moved)
    np.testing.assert_allclose(two.ranker.weights_, one.ranker.weights_, atol=1e-9)
    there = two.consensus.scores[two.consensus.items.codes(ids["query"], ids["item"])]
    np.testing.assert_allclose(there, one.consensus.scores, atol=1e-9)
    np.testing.assert_allclose(np.sort(two.quality.quality), np.sort(one.quality.quality), atol=1e-9)


def test_a_ranking_of_weight_two_is_that_ranking_twice(small_queries):
    judged, features = small_queries
    weight = np.where(judged.annotator == 1, 2.0, 1.0)
    twice = judged.select(np.append(np.arange(len(judged)), np.flatnonzero(judged.annotator == 1)))
    # a ranking given twice makes the usual one no longer, so that the prior is left out
    one, two = (LTRMA(alpha=0.0).fit(given, features) for given in (judged.with_weights(weight), twice))
    np.testing.assert_allclose(theta(one), theta(two), atol=1e-6)
    np.testing.assert_allclose(one.consensus.scores, two.consensus.scores, atol=1e-6)
