"""Mallows: by hand, the slow twin, recovery, edge cases, and what names and threads must not change."""

import time
import warnings
from itertools import combinations, pairwise, permutations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from tests.oracles import orders as slow

import crowdrank as cr
from crowdrank import datasets, simulate
from crowdrank.data.judgments import Rankings
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError, ParameterError
from crowdrank.metrics import kendall_tau
from crowdrank.models.averages.borda import Borda
from crowdrank.models.rankings.kernels.true_rankings import expected_distance
from crowdrank.models.rankings.mallows import Mallows


def rankings(*orders, query="q"):
    """Rankings from (annotator, items best first); a tuple within is a tie."""
    rows = []
    for who, order in orders:
        rows += [(who, query, item, p + 1) for p, tied in enumerate(order) for item in tied]
    return Rankings.from_rows(rows)


def fitted(judged, *, trusted=None, prior=None, **parameters):
    """Fit without the warnings about tiny data and few iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Mallows(**parameters).fit(judged, trusted=trusted, prior=prior)


def theta(consensus):
    return consensus.quality.parameters["theta"]


def drawn(pool, n_queries, n_items, per_query, seed=0, length=None):
    """Rankings by a pool of annotators, and the true grades."""
    grade = np.tile(np.arange(n_items, 0, -1.0), n_queries)
    names = [[f"{letter}{k:04d}" for k in range(n)] for letter, n in (("q", n_queries), ("i", n_items))]
    frame = {"query": np.repeat(names[0], n_items).tolist(), "item": names[1] * n_queries, "grade": grade}
    design = simulate.PerQuery(k=per_query, length=length)
    return simulate.rankings(pl.DataFrame(frame), pool, design, seed=seed).judgments, grade


def tau(judged, scores, grade):
    return kendall_tau(grade, scores, judged.items.query)


def test_two_items_by_hand():
    # seven of eight without a name put x first; with p the chance of the right order and s = p (1 - p), their
    # probability is (s - 6 s^2 + 9 s^3 - 2 s^4) / 2, largest where 1 - 12 s + 27 s^2 - 8 s^3 = 0
    table = {"ranking": np.repeat(np.arange(8), 2), "item": ["x", "y"] * 8, "rank": [1, 2] * 7 + [2, 1]}
    consensus = Mallows(alpha=0.0).fit(Rankings.from_frame(table))
    (s,) = (root.real for root in np.roots([-8, 27, -12, 1]) if 0 < root.real < 0.25)
    p = 0.5 + np.sqrt(0.25 - s)
    assert consensus.estimates["theta"] == pytest.approx(np.log((1 - p) / p), abs=1e-4)
    chance = 1 / (1 + ((1 - p) / p) ** 6)
    np.testing.assert_allclose(consensus.scores, [chance - 0.5, 0.5 - chance], atol=1e-6)
    np.testing.assert_allclose(consensus.std_error, np.sqrt(chance * (1 - chance)), atol=1e-5)
    assert consensus.quality is None


TWIN = [
    ("ann", "abcd"), ("bob", "abdc"), ("cid", ["b", "a", "cd"]), ("dan", "dcba"), ("ann", "badc"), ("bob", "ba"),
    ("cid", "abc"), ("dan", ["cd", "ab"]), ("ann", ["ab", "c", "d"]), ("bob", "acbd"), ("cid", "bacd"), ("dan", "bdac"),
]  # fmt: skip


@pytest.mark.parametrize("allow_reversed", [False, True])
def test_equals_the_slow_twin(allow_reversed):
    # three queries of four items, each ranked by all four annotators, partly and with ties
    queries = [[(who, list(order)) for who, order in TWIN[k : k + 4]] for k in (0, 4, 8)]
    rows = []
    for number, query in enumerate(queries):
        for who, order in query:
            rows += [(who, f"q{number}", item, p + 1) for p, tied in enumerate(order) for item in tied]
    consensus = Mallows(alpha=0.0, tol=1e-9, allow_reversed=allow_reversed).fit(Rankings.from_rows(rows))

    def lists(query):
        return [
            (["abcd".index(item) for tied in order for item in tied], [p for p, tied in enumerate(order) for _ in tied])
            for _, order in query
        ]

    def objective(thetas):
        return sum(slow.likelihood(4, lists(query), thetas) for query in queries)

    bounds = [(-12.0, 12.0 if allow_reversed else 0.0)] * 4
    best = minimize(lambda x: -objective(x), np.full(4, -0.5), bounds=bounds, options={"ftol": 1e-13, "gtol": 1e-9})
    assert consensus.trace.converged
    assert consensus.trace.log_likelihood[-1] == pytest.approx(objective(theta(consensus)), abs=1e-9)
    assert consensus.trace.log_likelihood[-1] == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(theta(consensus), best.x, atol=2e-3)
    assert (np.diff(consensus.trace.log_likelihood) > -1e-9).all()
    for number, query in enumerate(queries):
        place = slow.posterior(4, lists(query), theta(consensus))[2]
        part = slice(*consensus.items.offsets[number : number + 2])
        np.testing.assert_allclose(consensus.scores[part], 1.5 - place, atol=1e-6)


def test_sampled_and_exact_fits_agree():
    judged, _ = drawn(simulate.Mallows(np.array([1.0, 0.6, 0.3, 0.1])), 60, 7, 4)
    exact, sampled = Mallows(n_samples=1000).fit(judged), Mallows(n_exact=0, n_samples=1000).fit(judged)
    np.testing.assert_allclose(theta(sampled), theta(exact), atol=0.06)
    assert np.abs(sampled.scores - exact.scores).max() < 0.5
    assert np.sqrt(np.mean((sampled.scores - exact.scores) ** 2)) < 0.1
    assert exact.trace.log_likelihood is not None
    assert sampled.trace.log_likelihood is None
    assert sampled.trace.n_iter == 60


@pytest.mark.parametrize("n_items", [6, 15])
def test_recovers_order_and_dispersions(n_items):
    spread = np.array([1.5, 1.0, 0.6, 0.4, 0.2, 0.1, 0.02])
    judged, grade = drawn(simulate.Mallows(spread), 150, n_items, 7)
    consensus = Mallows().fit(judged)
    np.testing.assert_allclose(theta(consensus), -spread, atol=0.05, rtol=0.15)
    assert tau(judged, consensus.scores, grade) > tau(judged, Borda().fit(judged).scores, grade) + 0.03
    quality = consensus.quality.quality
    expected = [1 - expected_distance(-s, n_items) / (n_items * (n_items - 1) / 2) for s in spread]
    # the consensus of the others is not the truth, which makes the best look a little worse
    np.testing.assert_allclose(quality, expected, atol=0.1)


def test_recovers_dispersions_of_swapping_annotators():
    # the protocol of LTRMA, for which Kendall distance is not quite the right one; compared with the dispersion
    # that has the mean distance of 100,000 such rankings
    swaps = simulate.ltrma_swaps(n_annotators=9)
    far, _ = drawn(swaps, 9000, 15, 9, seed=1)
    place = np.empty(len(far.item))
    truth = far.item % 15
    for start, stop in pairwise(far.offsets):
        pairs = truth[start:stop]
        place[start] = (pairs[:, None] > pairs[None, :])[np.triu_indices(15, 1)].sum()
    distance = np.bincount(far.annotator, place[far.offsets[:-1]]) / np.bincount(far.annotator)
    grid = -np.geomspace(1e-4, 1, 4000)
    expected = np.interp(distance, expected_distance(grid, 15)[::-1], grid[::-1])
    found = []
    for seed in range(4):
        judged, grade = drawn(swaps, 100, 15, 9, seed=seed)
        consensus = Mallows(seed=seed).fit(judged)
        estimate = consensus.learned[1]["theta"]
        found.append(np.corrcoef(estimate, expected)[0, 1])
        assert tau(judged, consensus.scores, grade) > tau(judged, Borda().fit(judged).scores, grade) + 0.05
    assert np.mean(found) > 0.97


def test_cayley_distance_suits_misplaced_items():
    judged, grade = drawn(simulate.CayleyMallows(np.array([3.0, 2.5, 2.0, 1.5, 0.5])), 60, 12, 5)
    cayley, plain = Mallows(distance="cayley").fit(judged), Mallows().fit(judged)
    np.testing.assert_allclose(theta(cayley), [-3.0, -2.5, -2.0, -1.5, -0.5], atol=0.35)
    assert tau(judged, cayley.scores, grade) > tau(judged, plain.scores, grade) + 0.05
    assert cayley.trace.log_likelihood is None


def test_partial_rankings():
    judged, grade = drawn(simulate.Mallows(np.array([1.2, 1.0, 0.8, 0.5, 0.1, 0.01])), 80, 12, 6, length=5)
    consensus = Mallows().fit(judged)
    np.testing.assert_allclose(theta(consensus), [-1.2, -1.0, -0.8, -0.5, -0.1, -0.01], atol=0.25)
    assert tau(judged, consensus.scores, grade) > tau(judged, Borda().fit(judged).scores, grade) + 0.02


# edge cases ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_exact", [8, 0])
def test_an_annotator_equal_to_the_consensus_ends_at_the_bound(n_exact):
    judged = rankings(("ann", "abcdef"), ("bob", "abcdef"), ("cid", "abcdef"), ("dan", "fedcba"))
    consensus = Mallows(alpha=0.0, n_exact=n_exact).fit(judged)
    np.testing.assert_allclose(theta(consensus)[:3], -12.0)
    assert consensus.order("q") == list("abcdef")
    assert (theta(Mallows().fit(judged)) > -12.0).all()


def test_a_reversed_annotator_guesses_unless_allowed_to_be_reversed():
    judged, grade = drawn(simulate.Mallows(np.array([1.0, 0.5, 0.5, 1.0])), 40, 8, 4)
    turned = judged.annotator[judged.ranking] == 3
    length = np.diff(judged.offsets)[judged.ranking]
    rank = np.where(turned, length + 1 - judged.rank, judged.rank)
    frame = judged.frame().with_columns(rank=rank)
    judged = Rankings.from_frame(frame)
    plain, used = Mallows().fit(judged), Mallows(allow_reversed=True).fit(judged)
    assert theta(plain)[3] == 0.0
    assert theta(used)[3] == pytest.approx(1.0, abs=0.3)
    assert tau(judged, used.scores, grade) > tau(judged, plain.scores, grade)
    assert used.quality.quality[3] < 0.3


@pytest.mark.parametrize("n_items", [5, 12])
def test_one_ranking_comes_back_with_a_warning(n_items):
    judged, grade = drawn(simulate.Mallows(np.array([800.0])), 2, n_items, 1)
    with pytest.warns(DataWarning, match="no two rankings share two items"):
        consensus = Mallows().fit(judged)
    assert tau(judged, consensus.scores, grade) == 1.0
    assert np.isfinite(consensus.learned[1]["theta"]).all()


def test_several_rankings_of_one_annotator_are_enough():
    frame = {
        "ranking": np.repeat([0, 1, 2], 3),
        "item": list("abcabcacb"),
        "rank": [1, 2, 3] * 3,
        "annotator": ["a"] * 9,
    }
    assert Mallows().fit(Rankings.from_frame(frame)).order() == ["a", "b", "c"]


def test_two_annotators_warn():
    with pytest.warns(DataWarning, match="only two annotators"):
        consensus = Mallows().fit(rankings(("ann", "abcd"), ("bob", "abdc")))
    assert consensus.scores[:2].tolist() == sorted(consensus.scores, reverse=True)[:2]


def test_queries_of_one_and_two_items():
    rows = [(who, "one", "x", 1) for who in ("ann", "bob", "cid")]
    rows += [
        (who, "two", item, p + 1)
        for who, order in (("ann", "xy"), ("bob", "xy"), ("cid", "yx"))
        for p, item in enumerate(order)
    ]
    consensus = fitted(Rankings.from_rows(rows))
    assert consensus.scores[0] == 0
    assert consensus.order("two") == ["x", "y"]


def test_unranked_items_and_queries_may_stand_anywhere():
    table = rankings(("ann", "abc"), ("bob", "abc"), ("cid", "acb")).frame()
    items = {"query": ["q", "q", "r", "r"], "item": ["x", "y", "a", "b"]}
    consensus = Mallows(n_samples=4000).fit(Rankings.from_frame(table, items=items))
    assert consensus.scores[3:].tolist() == [0.0] * 4
    assert consensus.beats("x", "y", "q") == pytest.approx(0.5, abs=0.04)
    assert consensus.beats("a", "b", "r") == pytest.approx(0.5, abs=0.04)
    # of four slots above, between and below three ranked items, one is above the first: mostly a
    above = sum(rank * chance for rank, chance in enumerate([0.9, 0.1], 1)) / 4
    assert consensus.beats("x", "a", "q") == pytest.approx(above, abs=0.05)
    np.testing.assert_allclose(consensus.std_error[3:], [4 / 12**0.5] * 2 + [1 / 12**0.5] * 2)


def test_ties_say_nothing_of_the_order_of_what_they_tie():
    tied = rankings(("ann", ["a", "bcd"]), ("bob", ["a", "bcd"]), ("cid", ["ab", "cd"]))
    consensus = fitted(tied)
    a, b, c, d = consensus.scores
    assert a > b > c
    assert c == d
    assert fitted(rankings(("ann", ["abc"]), ("bob", ["abc"]))).scores.tolist() == [0.0] * 3


def test_a_ranking_of_weight_two_is_two_rankings():
    rows = rankings(("ann", "abcd"), ("bob", "badc"), ("cid", "acbd")).frame().with_columns(weight=pl.lit(1.0))
    heavy = rows.with_columns(weight=pl.when(pl.col("annotator") == "bob").then(2.0).otherwise(1.0))
    again = rows.filter(pl.col("annotator") == "bob").with_columns(ranking=pl.lit(9, pl.Int32))
    one, other = (
        Mallows(alpha=0.5).fit(Rankings.from_frame(heavy)),
        Mallows(alpha=0.5).fit(Rankings.from_frame(pl.concat([rows, again]))),
    )
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


def test_too_few_iterations_warn(monkeypatch):
    monkeypatch.setattr("crowdrank.models.rankings.mallows_crowd._MOST_DRIFT", 1e-6)
    judged, _ = drawn(simulate.Mallows(np.array([0.5, 0.05, 0.02])), 10, 20, 3)
    with pytest.warns(ConvergenceWarning, match=r"after 4 iterations the distances .*; raise max_iter"):
        assert not Mallows(max_iter=4).fit(judged).trace.converged


# uncertainty -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_exact", [8, 0])
def test_beats_is_the_share_of_rankings_given_the_annotators(n_exact):
    orders = [("ann", "abcde"), ("bob", "bacde"), ("cid", "badce"), ("dan", "ecabd")]
    consensus = Mallows(n_exact=n_exact, n_samples=5000).fit(rankings(*orders))
    lists = [(["abcde".index(item) for item in order], [1, 2, 3, 4, 5]) for _, order in orders]
    _, _, mean, variance, above = slow.posterior(5, lists, consensus.learned[1]["theta"])
    for one in range(5):
        for other in range(5):
            if one != other:
                assert consensus.beats("abcde"[one], "abcde"[other], "q") == pytest.approx(above[one, other], abs=0.03)
    np.testing.assert_allclose(consensus.scores, 2 - mean, atol=0.05)
    np.testing.assert_allclose(consensus.std_error, np.sqrt(variance), atol=0.05)
    assert consensus.uncertainty == "replicates"


def test_intervals_cover_the_truth():
    judged, grade = drawn(simulate.Mallows(np.array([0.5, 0.4, 0.3, 0.2, 0.1])), 100, 10, 5)
    table = Mallows().fit(judged).intervals(level=0.9).sort("query", "item")
    rank = 11 - grade
    inside = (table["rank_lower"].to_numpy() <= rank) & (rank <= table["rank_upper"].to_numpy())
    assert 0.85 < inside.mean() < 0.99


def test_few_random_rankings_are_kept_of_many_items(monkeypatch):
    monkeypatch.setattr("crowdrank.models.rankings.mallows_crowd._MOST_SAMPLE_CELLS", 60 * 80)
    judged, _ = drawn(simulate.Mallows(np.ones(3)), 10, 8, 3)
    assert Mallows().fit(judged).replicates.shape == (60, 80)
    monkeypatch.setattr("crowdrank.models.rankings.mallows_crowd._MOST_SAMPLE_CELLS", 1)
    assert Mallows().fit(judged).replicates.shape == (50, 80)


def test_the_mode_is_the_ranking_of_least_cost():
    orders = [("ann", "abcdef"), ("bob", "bacdfe"), ("cid", "cabdef"), ("dan", "fedcba")]
    consensus = Mallows(consensus="mode").fit(rankings(*orders))
    pull = theta(consensus)

    def cost(order):
        return sum(t * slow.kendall(list(order), list(own)) for t, (_, own) in zip(pull, orders, strict=True))

    assert cost(consensus.order("q")) == pytest.approx(max(cost(order) for order in slow.permutations("abcdef")))
    assert sorted(consensus.scores) == [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]


# names, rows, seeds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, {"distance": "cayley"}, {"consensus": "mode"}])
def test_names_and_rows_do_not_matter_where_queries_are_sampled(parameters):
    judged, _ = drawn(simulate.Mallows(np.array([1.0, 0.5, 0.2, 0.05])), 4, 12, 4, length=9)
    frame = judged.frame().with_columns(rank=(pl.col("rank") + 1) // 2)
    one = fitted(Rankings.from_frame(frame), max_iter=20, **parameters)
    names = {
        column: dict(
            zip(
                ids,
                np.random.default_rng(len(ids)).permutation([f"n{k:03d}" for k in range(len(ids))]).tolist(),
                strict=True,
            )
        )
        for column in ("query", "item", "annotator")
        for ids in [frame[column].unique().sort().to_list()]
    }
    renamed = frame.with_columns(pl.col(column).replace_strict(new) for column, new in names.items())
    other = fitted(Rankings.from_frame(renamed.sample(fraction=1.0, shuffle=True, seed=1)), max_iter=20, **parameters)
    scores = {
        key: score for *key, score in other.frame().select("query", "item", "score").rows() for key in [tuple(key)]
    }
    for query, item, score in one.frame().select("query", "item", "score").rows():
        assert scores[names["query"][query], names["item"][item]] == pytest.approx(score, abs=1e-9)


def test_turned_rankings_turn_the_scores_up_to_sampling():
    judged, _ = drawn(simulate.Mallows(np.array([1.0, 0.5, 0.3])), 20, 12, 3)
    turned = Rankings.from_frame(judged.frame().with_columns(rank=13 - pl.col("rank")))
    one, other = Mallows().fit(judged), Mallows().fit(turned)
    assert np.corrcoef(one.scores, -other.scores)[0, 1] > 0.995


def test_the_seed_decides():
    judged, _ = drawn(simulate.Mallows(np.array([0.5, 0.3, 0.1])), 3, 12, 3)
    first, again, other = (Mallows(seed=seed).fit(judged).scores for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(Mallows(seed=1).scores(judged), first)


# trusted annotators and bad crowds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_items", [6, 12])
def test_trusted_annotators_turn_a_reversed_majority(n_items):
    judged, grade = drawn(simulate.Mallows(np.full(7, 0.8)), 30, n_items, 7)
    turned = judged.annotator[judged.ranking] >= 3
    frame = judged.frame().with_columns(rank=np.where(turned, n_items + 1 - judged.rank, judged.rank))
    judged = Rankings.from_frame(frame)
    assert tau(judged, Mallows().fit(judged).scores, grade) < -0.5
    for allow_reversed in (False, True):
        consensus = Mallows(allow_reversed=allow_reversed).fit(judged, trusted=["a1", "a2"])
        assert tau(judged, consensus.scores, grade) > (0.8 if allow_reversed else 0.65)
        assert (theta(consensus)[:3] < -0.5).all()
        assert (theta(consensus)[3:] >= 0).all()


def test_a_crowd_near_chance_warns():
    # a crowd that guesses but for what seven of seven thousand pairs let one hope
    judged, _ = drawn(simulate.Mallows(np.zeros(40)), 2, 6, 40)
    with pytest.warns(DataWarning, match="hardly better than chance"):
        Mallows().fit(judged)


def test_unknown_trusted_annotators_are_named():
    with pytest.raises(LookupError, match="'annn'; did you mean 'ann'"):
        Mallows().fit(rankings(("ann", "ab"), ("bob", "ab")), trusted=["annn"])


# size, speed, parameters ---------------------------------------------------------------------------------------------


def test_too_large_queries_are_refused_with_the_way_out(monkeypatch):
    monkeypatch.setitem(__import__("crowdrank.models.rankings.mallows_crowd", fromlist=["x"]).MOST_ITEMS, "kendall", 5)
    judged = rankings(("ann", "abcdef"), ("bob", "abcdef"), ("cid", "abcdef"))
    with pytest.raises(JudgmentError, match=r"up to 5 ranked items, and here are 6 \(query 'q'\); use plackett_luce"):
        Mallows().fit(judged)


def test_a_query_of_many_items():
    judged, grade = drawn(simulate.Mallows(np.array([0.2, 0.1, 0.05, 0.02])), 1, 600, 4)
    consensus = Mallows(max_iter=20, n_samples=100).fit(judged)
    assert tau(judged, consensus.scores, grade) > 0.965
    np.testing.assert_allclose(consensus.learned[1]["theta"], [-0.2, -0.1, -0.05, -0.02], rtol=0.4)


def test_speed():
    judged, _ = drawn(simulate.ltrma_swaps(n_annotators=10), 100, 15, 10)
    Mallows(max_iter=4).fit(judged)
    begin = time.process_time()
    Mallows().fit(judged)
    # the floor is 1 s; the benchmark measures it, this only finds out if it is out of reach
    assert time.process_time() - begin < 1.5


# public data -----------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("name", ["preflib/dots", "preflib/puzzle"])
def test_known_orders_come_back(name, data_folder):
    loaded = datasets.load(name)
    consensus = Mallows().fit(loaded.judgments)
    known = loaded.truth.items.frame().with_columns(truth=-loaded.truth.grade)
    both = consensus.frame().join(known, on=["query", "item"])
    order = both.sort("query", "score", descending=[False, True]).group_by("query", maintain_order=True)
    for _, part in order:
        assert part["item"].cast(pl.Int64).is_sorted()


@pytest.mark.data
def test_learned_dispersions_beat_borda_on_search_engines(data_folder):
    loaded = datasets.load("letor-mq2008-agg")
    queries = loaded.judgments.query < 150
    judged = loaded.judgments.select(queries)
    consensus, borda = Mallows(max_iter=20, n_samples=100).fit(judged), Borda().fit(judged)
    grade = np.zeros(judged.n_items)
    found = judged.items.codes(loaded.truth.items.query_ids(), loaded.truth.items.ids)
    grade[found[found >= 0]] = loaded.truth.grade[found >= 0]
    part = judged.items.query < 150
    query = judged.items.query[part]
    ours, theirs = (kendall_tau(grade[part], c.scores[part], query) for c in (consensus, borda))
    assert ours > theirs + 0.02


def _all_orders(given, theta, scores):
    """Every true order of a query's items with its probability given rankings, by Eq. 3 and 4 of Wu et al."""
    n = len(scores)
    orders = [np.array(order) for order in permutations(range(n))]
    log = []
    for order in orders:
        strength = np.exp(scores[order])
        prior = np.sum(np.log(strength) - np.log(np.cumsum(strength[::-1])[::-1]))
        places = np.argsort(order)
        distances = [
            sum((places[a] - places[b]) * (rank[a] - rank[b]) < 0 for a, b in combinations(range(n), 2))
            for rank in given
        ]
        log.append(prior + theta @ distances)
    weight = np.exp(np.array(log) - max(log))
    return orders, weight / weight.sum()


def test_a_prior_of_rankings_is_weighed_in_as_enumeration_says():
    orders = {"ann": "wxyz", "bob": "xwyz", "cy": "zywx"}
    rows = [(who, "q", item, place + 1) for who, items in orders.items() for place, item in enumerate(items)]
    reversed_rows = [("dee", "q", item, place + 1) for place, item in enumerate("zyxw")]
    before = Borda().fit(Rankings.from_rows(reversed_rows))
    plain, weighed = (fitted(Rankings.from_rows(rows), prior=prior) for prior in (None, before))
    given = [np.array([items.index(item) for item in "wxyz"]) for items in orders.values()]
    aligned = before.scores[before.items.codes_of(plain.items, "prior", "rankings")]
    for consensus, scores in ((weighed, aligned), (plain, np.zeros(4))):
        every, probability = _all_orders(given, theta(consensus), scores)
        places = sum(p * np.argsort(order) for order, p in zip(every, probability, strict=True))
        np.testing.assert_allclose(consensus.scores, 1.5 - places, atol=1e-9)
    assert weighed.scores[3] > plain.scores[3]


def test_cranking_makes_known_orders_most_probable():
    """At its dispersions the expected distances are those to the known orders, by enumeration."""
    rng, rows, known, given, reached = np.random.default_rng(4), [], [], [], np.zeros(3)
    for query in range(12):
        truth = rng.permutation(4)
        ranks = []
        for who, n_swaps in enumerate((1, 2, 3)):
            order = truth.copy()
            for _ in range(n_swaps):
                one, other = rng.choice(4, 2, replace=False)
                order[[one, other]] = order[[other, one]]
            ranks.append(np.argsort(order))
            rows += [(f"a{who}", f"q{query:02d}", f"i{item}", place + 1) for place, item in enumerate(order)]
            places = np.argsort(truth)
            reached[who] += sum(
                (places[a] - places[b]) * (ranks[-1][a] - ranks[-1][b]) < 0 for a, b in combinations(range(4), 2)
            )
        given.append(ranks)
        known += [(f"q{query:02d}", f"i{item}", place + 1) for place, item in enumerate(truth)]
    # one query of unknown order, which is ranked by what the others taught
    rows += [(f"a{who}", "unknown", f"i{item}", item + 1) for who in range(3) for item in range(4)]
    table = pl.DataFrame(known, schema=["query", "item", "rank"], orient="row")
    consensus = cr.aggregate(Rankings.from_rows(rows), "cranking", known=table)
    learned = theta(consensus)
    expected = np.zeros(3)
    for ranks in given:
        every, probability = _all_orders(ranks, learned, np.zeros(4))
        for who, rank in enumerate(ranks):
            for order, p in zip(every, probability, strict=True):
                places = np.argsort(order)
                expected[who] += p * sum(
                    (places[a] - places[b]) * (rank[a] - rank[b]) < 0 for a, b in combinations(range(4), 2)
                )
    inside = (learned < 0) & (learned > -12)
    assert inside.any()
    np.testing.assert_allclose(expected[inside], reached[inside], atol=1e-3)
    assert consensus.order("unknown") == ["i0", "i1", "i2", "i3"]


@pytest.mark.parametrize(
    ("variant", "known", "words"),
    [
        ("conditional", None, "learns from queries of known order; give known="),
        ("conditional", {"query": ["other"], "item": ["x"], "grade": [1]}, "and none is there"),
        ("conditional", {"query": ["q"] * 2, "item": ["x", "y"], "grade": [1, 1]}, "and none is there"),
        ("carried", {"query": ["q"], "item": ["x"], "grade": [1]}, "with variant='conditional' only"),
    ],
)
def test_cranking_says_what_it_needs(variant, known, words):
    rankings = Rankings.from_rows([("ann", "q", item, place + 1) for place, item in enumerate("xy")])
    with pytest.raises(ParameterError, match=words):
        Mallows(variant=variant).fit(rankings, known=None if known is None else pl.DataFrame(known))
