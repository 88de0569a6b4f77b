"""Quality that changes with time: found and used where held-out judgments ask for it, and nowhere else."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.drift import Walk
from crowdrank.errors import JudgmentError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

N_ANNOTATORS = 20


def classes(seed, *, tired, n_items=800, n_each=5):
    """Four classes by annotators who are right in 95 % at first and 20 % at last, or constantly in 60 %."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n_items)
    item = np.tile(np.arange(n_items), n_each)
    who = np.concatenate([(np.arange(n_items) + 7 * k * k + 1 + k) % N_ANNOTATORS for k in range(n_each)])
    order = rng.permutation(len(item))
    frame = pl.DataFrame({"item": item[order], "annotator": who[order]}).with_columns(
        time=pl.int_range(pl.len()).over("annotator").cast(float), number=pl.len().over("annotator")
    )
    right = 0.95 - 0.75 * (frame["time"] / frame["number"]).to_numpy() if tired else np.full(len(item), 0.6)
    grade = np.where(rng.random(len(item)) < right, truth[frame["item"]], rng.integers(0, 4, len(item)))
    frame = frame.drop("number").with_columns(grade=pl.Series(grade).cast(pl.String))
    return cr.Grades.from_frame(frame, nominal=True), truth


def preferences(seed, *, tired, n_items=30, n_each=100):
    """Preferences by annotators who see well in their first half and hardly in the second, or the same throughout."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1.2, n_items)
    who, step = np.repeat(np.arange(N_ANNOTATORS), n_each), np.tile(np.arange(n_each), N_ANNOTATORS)
    left = rng.integers(0, n_items, len(who))
    right = (left + rng.integers(1, n_items, len(who))) % n_items
    skill = np.where(step < n_each / 2, 2.0, 0.2) if tired else np.ones(len(who))
    won = rng.logistic(size=len(who)) < skill * (scores[left] - scores[right])
    frame = {"left": left, "right": right, "annotator": who, "winner": np.where(won, "left", "right"), "time": step}
    return cr.Preferences.from_frame(pl.DataFrame(frame)), scores


def share_right(consensus, truth):
    found = consensus.frame().sort("item")
    return np.mean(found["grade"].cast(int).to_numpy() == truth)


def order_right(consensus, truth):
    return cr.metrics.kendall_tau(truth, consensus.frame().sort("item")["score"].to_numpy())


CASES = {"dawid_skene": (classes, share_right, 0.02), "latent_score": (preferences, order_right, 0.03)}


@pytest.mark.parametrize("method", CASES)
@pytest.mark.parametrize("drift", ["halves", "smooth"])
def test_a_crowd_that_tires_is_used_better(method, drift):
    make, measure, least = CASES[method]
    gains = []
    for seed in range(5):
        judged, truth = make(seed, tired=True)
        fits = [cr.aggregate(judged, method, params={"drift": one}) for one in ("none", drift)]
        gains.append(measure(fits[1], truth) - measure(fits[0], truth))
        found = fits[1].estimates["drift"]
        assert found["variance"] > 0
        assert found["gain"] > 3
        table = pl.DataFrame({name: found[name] for name in ("annotator", "window", "quality", "n_judgments")})
        by_window = table.group_by("window").agg(pl.col("quality").mean()).sort("window")["quality"].to_list()
        assert by_window[0] > by_window[-1] + 0.05
        assert table["n_judgments"].sum() == len(judged)
        # annotators are who they were
        assert fits[1].quality.frame()["annotator"].to_list() == fits[0].quality.frame()["annotator"].to_list()
    assert np.mean(gains) > least


@pytest.mark.parametrize("method", CASES)
def test_constant_annotators_have_one_quality(method):
    used = 0
    for seed in range(10):
        judged, _ = CASES[method][0](seed, tired=False)
        fits = [cr.aggregate(judged, method, params={"drift": drift}) for drift in ("none", "halves")]
        used += fits[1].estimates["drift"]["variance"] > 0
        if not fits[1].estimates["drift"]["variance"]:
            assert fits[0].frame().equals(fits[1].frame())
    assert used <= 2


def test_neither_names_nor_the_order_of_rows_matter():
    judged, _ = preferences(0, tired=True)
    frame = judged.frame()
    renamed = frame.reverse().with_columns(annotator=19 - pl.col("annotator").cast(int))
    scores = [
        cr.aggregate(cr.Preferences.from_frame(rows), "latent_score", params={"drift": "smooth"}).frame().sort("item")
        for rows in (frame, renamed)
    ]
    np.testing.assert_allclose(*(one["score"].to_numpy() for one in scores), atol=1e-6)


def test_evidence_is_carried_as_by_the_kalman_smoother():
    """A walk over three windows with known observations: the posterior is that of the joint normal."""
    variance, noise, seen = 0.5, np.array([1.0, 0.25, 2.0]), np.array([1.0, -2.0, 0.5])
    steps = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
    precision = np.diag(1 / noise) + steps.T @ steps / variance
    wanted = np.linalg.solve(precision, seen / noise), 1 / np.diag(np.linalg.inv(precision))
    walk = Walk(3, variance)
    weight = walk.carry(1 / noise, 1 / noise)
    np.testing.assert_allclose(walk.carry(seen / noise, 1 / noise) / weight, wanted[0])
    np.testing.assert_allclose(weight, wanted[1])


def test_what_has_no_times_is_refused():
    votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    for method in CASES:
        with pytest.raises(JudgmentError, match="add a time column"):
            cr.aggregate(votes, method, params={"drift": "halves"})
    with pytest.raises(ParameterError, match="drift"):
        cr.aggregate(votes, "latent_score", params={"drift": "half"})
