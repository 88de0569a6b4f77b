"""Cluster-robust standard errors: gradients of judgments, coverage, defaults, refusals."""

import json
from itertools import combinations

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api.robust_errors import depends_by_construction
from crowdrank.errors import DataWarning, ParameterError
from crowdrank.io.results import write_consensus
from crowdrank.registry import make
from crowdrank.standard_errors import ScoreGradients, cluster_robust


def own_orders(seed: int, n_annotators: int, *, own: float = 0.8, n_items: int = 8, n_rankings: int = 3):
    """Rankings of four items by annotators who each see scores of their own around the true ones."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.0, 1.0, n_items)
    rows = []
    for annotator in range(n_annotators):
        seen = scores + rng.normal(0.0, own, n_items)
        for number in range(n_rankings):
            items = rng.choice(n_items, 4, replace=False)
            order = items[np.argsort(-(seen[items] + rng.gumbel(size=4)))]
            who = f"a{annotator:02d}"
            rows += [(who, f"{who}-{number}", f"i{item}", place) for place, item in enumerate(order)]
    table = pl.DataFrame(rows, schema=["annotator", "ranking", "item", "rank"], orient="row")
    return scores, cr.Rankings.from_frame(table.with_columns(pl.col("rank") + 1))


def covered(consensus, truth, level=1.645):
    """Share of the differences whose 90 % interval holds the true one, the truth brought to the scale of the fit."""
    truth = truth[[int(str(item)[1:]) for item in consensus.items.ids]]
    truth, scores = truth - truth.mean(), consensus.scores - consensus.scores.mean()
    truth = truth * (scores @ truth) / (truth @ truth)
    first, second = np.triu_indices(len(truth), 1)
    block = consensus.covariance[0]
    error = np.sqrt(block[first, first] + block[second, second] - 2.0 * block[first, second])
    return float((np.abs((scores - truth)[first] - (scores - truth)[second]) < level * error).mean())


def test_covariance_by_hand():
    model = np.array([[0.5, -0.5], [-0.5, 0.5]])
    gradients = ScoreGradients(np.arange(3).repeat(2), np.tile([0, 1], 3), np.array([1.0, -1, 1, -1, -2, 2]), 0.1)
    found = cluster_robust((model,), np.array([0, 2]), gradients, np.array([0, 0, 1]))
    # the clusters move the first score by 2 and by -2; two clusters double that, and t has one degree of freedom
    meat = 2 * (2.0**2 + 2.0**2) * 4 * model @ np.array([[1.0, 0], [0, 0]]) @ model
    factor = (12.706204736 / 1.959963985) ** 2
    np.testing.assert_allclose(found.covariance[0], factor * (meat + 0.1 * model @ model), rtol=1e-6)
    assert found.n_clusters.tolist() == [2]
    alone = cluster_robust((model,), np.array([0, 2]), gradients, np.zeros(3, int))
    np.testing.assert_array_equal(alone.covariance[0], model)


@pytest.mark.parametrize("name", ["bradley_terry", "crowd_bt", "plackett_luce"])
def test_gradients_of_all_judgments_are_what_the_prior_pulls(name):
    _, rankings = own_orders(0, 12)
    judged = rankings if name == "plackett_luce" else rankings.as_preferences()
    method = make("aggregator", name)
    consensus = method.fit(judged)
    gradients = method.score_gradients(judged, consensus)
    total = np.bincount(gradients.item, gradients.value, judged.n_items)
    np.testing.assert_allclose(total, gradients.prior * consensus.scores, atol=2e-3)


@pytest.mark.parametrize("kind", ["preference", "ranking"])
def test_gradients_of_latent_scores_by_hand(kind):
    _, rankings = own_orders(1, 20, own=0.2, n_rankings=6)
    pairs = rankings.as_preferences()
    method, judged = cr.aggregators.LatentScore(), rankings if kind == "ranking" else pairs
    consensus = method.fit(judged)
    gradients = method.score_gradients(judged, consensus)
    alpha = consensus.learned[1]["alpha"][pairs.annotator]
    gap = consensus.scores[pairs.left] - consensus.scores[pairs.right]
    # six pairs of a ranking of four weigh as much as 3.83 single preferences between equals
    weight = 4 * (4 - 25 / 12) / 12 if kind == "ranking" else 1.0
    slope = weight * alpha * (0.5 * (1 + pairs.outcome) - 1.0 / (1.0 + np.exp(-alpha * gap)))
    n = len(slope)
    np.testing.assert_allclose(gradients.value[:n], slope, atol=1e-6)
    np.testing.assert_allclose(gradients.value[n:], -slope, atol=1e-6)
    judgment = np.arange(len(judged)).repeat(6) if kind == "ranking" else np.arange(n)
    np.testing.assert_array_equal(gradients.judgment, np.tile(judgment, 2))
    assert gradients.prior == pytest.approx(consensus.estimates["score_sd"] ** -2)


def test_gradients_of_graded_latent_scores_are_near_what_the_prior_pulls():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=30)
    seen = np.clip(np.round(scores + rng.normal(0.0, 0.7, (12, 30))), -2, 2).astype(int)
    judged = cr.Grades.from_rows([(f"a{a}", "q", f"i{i:02d}", int(seen[a, i])) for a in range(12) for i in range(30)])
    method = cr.aggregators.LatentScore()
    consensus = method.fit(judged)
    gradients = method.score_gradients(judged, consensus)
    total = np.bincount(gradients.item, gradients.value, judged.n_items)
    # the fit averages over the uncertainty of annotators and scores, which gradients take as known
    assert np.abs(total - gradients.prior * consensus.scores).max() < 1.0


def test_intervals_hold_where_annotators_see_scores_of_their_own():
    shares = {"none": [], "annotator": []}
    for seed in range(8):
        truth, rankings = own_orders(seed, 25)
        for robust, found in shares.items():
            found.append(covered(cr.aggregate(rankings.as_preferences(), "bradley_terry", robust=robust), truth))
    assert np.mean(shares["none"]) < 0.82
    assert 0.85 < np.mean(shares["annotator"]) < 0.98


def test_preferences_that_imply_each_other_are_clustered_unasked():
    _, rankings = own_orders(0, 10)
    made = rankings.as_preferences()
    assert depends_by_construction(made)
    consensus = cr.aggregate(made, "bradley_terry")
    assert consensus.trace.errors == "cluster-robust by annotator"
    assert consensus.trace.frame()["errors"].item() == "cluster-robust by annotator"
    assert consensus.estimates["robust"]["wider"] > 1.0
    plain = cr.aggregate(made, "bradley_terry", robust="none")
    assert plain.trace.errors is None
    np.testing.assert_array_equal(plain.scores, consensus.scores)
    assert not depends_by_construction(rankings)
    grades = cr.Grades.from_frame({"item": list("xyzxyz"), "annotator": list("aaabbb"), "grade": [1, 2, 3, 2, 1, 3]})
    assert depends_by_construction(grades.as_preferences())


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_a_few_annotators_who_agree_do_not_narrow_errors_unasked(monkeypatch):
    rows = [(who, *pair, "left") for who in "abcd" for _ in range(3) for pair in combinations("uvwx", 2)]
    votes = cr.Preferences.from_frame(pl.DataFrame(rows, schema=["annotator", "left", "right", "winner"], orient="row"))
    plain = cr.aggregate(votes, "bradley_terry", robust="none")
    asked = cr.aggregate(votes, "bradley_terry", robust="annotator")
    assert (asked.std_error < plain.std_error).any()
    heard = []
    monkeypatch.setattr("crowdrank.api.robust_errors.say", heard.append)
    unasked = cr.aggregate(votes, "bradley_terry")
    assert unasked.trace.errors == "cluster-robust by annotator"
    assert (unasked.std_error >= plain.std_error).all()
    np.testing.assert_allclose(np.sqrt(np.diagonal(unasked.covariance[0])), unasked.std_error)
    assert np.linalg.eigvalsh(unasked.covariance[0])[0] > -1e-9
    assert "keep the model's" in heard[-1]


def test_preferences_asked_once_are_not():
    rng = np.random.default_rng(0)
    pairs = [(a, i, j) for a in range(6) for i in range(8) for j in range(i + 1, 8) if rng.random() < 0.5]
    table = {
        "annotator": [f"a{a}" for a, _, _ in pairs], "left": [f"i{i}" for _, i, _ in pairs],
        "right": [f"i{j}" for _, _, j in pairs],
        "winner": ["left" if rng.random() < 0.7 else "right" for _ in pairs],
    }  # fmt: skip
    once = cr.Preferences.from_frame(table)
    assert not depends_by_construction(once)
    # winners and losers written down by somebody have no sides either, but annotators contradict themselves
    written = {"annotator": table["annotator"]}
    left = [winner == "left" for winner in table["winner"]]
    written["winner"] = [a if won else b for won, a, b in zip(left, table["left"], table["right"], strict=True)]
    written["loser"] = [b if won else a for won, a, b in zip(left, table["left"], table["right"], strict=True)]
    assert not depends_by_construction(cr.Preferences.from_frame(written))
    twice = cr.Preferences.from_frame(
        {name: column + (table["left"] if name == "right" else table["right"] if name == "left" else column)
         for name, column in table.items()}
    )  # fmt: skip
    assert depends_by_construction(twice)


def test_one_annotator_keeps_the_errors_of_the_model():
    _, rankings = own_orders(0, 1, n_rankings=12)
    made = rankings.as_preferences()
    assert depends_by_construction(made)
    assert cr.aggregate(made, "bradley_terry").trace.errors is None
    with pytest.raises(ParameterError, match="two or more"):
        cr.aggregate(made, "bradley_terry", robust="annotator")


def test_queries_taken_together_are_clusters():
    rng = np.random.default_rng(1)
    rows = []
    for query in range(30):
        own = rng.normal(0.0, 1.0, 5)
        for number in range(20):
            i, j = rng.choice(5, 2, replace=False)
            won = rng.random() < 1.0 / (1.0 + np.exp(own[j] - own[i]))
            rows.append((f"a{number}", f"q{query}", f"m{i}", f"m{j}", "left" if won else "right"))
    votes = cr.Preferences.from_rows(rows).across_queries()
    wide = cr.aggregate(votes, "bradley_terry", robust="query")
    assert wide.estimates["robust"]["wider"] > 1.2
    assert wide.trace.errors == "cluster-robust by query"
    assert cr.aggregate(votes, "bradley_terry").trace.errors is None
    few = cr.Preferences.from_rows([row for row in rows if int(row[1][1:]) < 6]).across_queries()
    with pytest.warns(DataWarning, match="only 6 queries.*Student's t with 5 degrees of freedom"):
        cr.aggregate(few, "bradley_terry", robust="query")


def test_what_cannot_be_had_is_refused(tmp_path):
    _, rankings = own_orders(0, 10)
    made = rankings.as_preferences()
    for arguments, words in (
        ({"robust": "judge"}, "annotator"),
        ({"robust": "query"}, "across_queries"),
        ({"robust": "annotator", "bootstrap": 20}, "two ways"),
        ({"robust": "annotator", "method": "borda"}, "borda has no cluster-robust errors; use .*bradley_terry"),
    ):
        method = arguments.pop("method", "bradley_terry")
        with pytest.raises((ParameterError, LookupError), match=words):
            cr.aggregate(made, method, **arguments)
    nobody = cr.Preferences.from_frame({"left": ["x", "y"], "right": ["y", "x"], "winner": ["left", "left"]})
    with pytest.raises(ParameterError, match="name no annotators"):
        cr.aggregate(nobody, "bradley_terry", robust="annotator")


def test_the_trace_is_kept_in_files(tmp_path):
    _, rankings = own_orders(0, 10)
    consensus = cr.aggregate(rankings, "plackett_luce", robust="annotator")
    write_consensus(consensus, tmp_path / "result.json")
    assert json.loads((tmp_path / "result.json").read_text())["trace"]["errors"] == "cluster-robust by annotator"
    assert cr.read_consensus(tmp_path / "result.json").trace.errors == "cluster-robust by annotator"


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize(("n_judges", "copies", "wider"), [(6, True, 2**0.5), (6, False, 1.0), (1, False, 2**0.5)])
def test_what_few_annotators_are_asked_again_counts_by_how_far_it_repeats(n_judges, copies, wider):
    """Copies of an answer count as one, independent ones as two; one annotator alone shows neither."""
    rng = np.random.default_rng(0)
    won = rng.normal(size=(300, 1, 1)) + rng.logistic(size=(300, n_judges, 2)) > 0
    answer = np.where(won[..., [0, 0]] if copies else won, "left", "right")
    rows = [(f"j{j}", f"q{q}", "x", "y", one) for (q, j, _), one in np.ndenumerate(answer)]
    found = cr.aggregate(cr.Preferences.from_rows(rows), "latent_score").estimates["repeats"]
    assert found["wider"] == pytest.approx(wider, abs=0.06)
