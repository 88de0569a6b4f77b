"""The studies of LTRMA: quick runs, the tasks they make, and what they tell of expertise."""

import numpy as np
import polars as pl
import pytest

from crowdrank.data.features import Features
from crowdrank.metrics import kendall_tau
from crowdrank.simulate import Mallows, PerQuery, rankings
from crowdrank_studies.ltrma.methods import (
    BORDA,
    CAYLEY_ML,
    HARD,
    ML,
    PRINTED_D,
    PRINTED_ML,
    TRUTH,
    D,
    Fitted,
    Methods,
    Task,
    clear,
    consensus_tau,
    difference_text,
    expertise,
    true_dispersions,
)
from crowdrank_studies.ltrma.ohsumed_results import Results
from crowdrank_studies.ltrma.ohsumed_study import GRADES, unit
from crowdrank_studies.ltrma.points import METHODS, N_ITEMS, points


def test_every_method_is_measured_on_points(ran):
    frame = ran("ltrma-synthetic").outcome.frame()
    figure = frame.filter(pl.col("place").str.starts_with("figure 2"))
    assert set(figure["place"]) == {f"figure 2({letter})" for letter in "abcd"}
    assert set(figure.filter(pl.col("measure") == "nDCG@3")["method"]) == set(METHODS)
    assert set(figure["G"]) == {"3", "6", "9", "all"}
    # the text of the paper has no numbers
    assert frame["paper"].is_null().all()


@pytest.mark.data
def test_every_method_is_measured_on_ohsumed(ran):
    frame = ran("ltrma-ohsumed").outcome.frame()
    assert set(frame["swaps"]) == {"2i+1", "scaled"}
    assert {TRUTH, BORDA, PRINTED_D, PRINTED_ML, D, ML, HARD, GRADES} <= set(frame["method"])
    assert set(frame.filter(pl.col("place") == "figure 3(d)")["method"]) == {PRINTED_D, PRINTED_ML, D, ML}
    assert frame.filter(pl.col("place") == "paired difference")["p"].cast(pl.Float64).is_between(0, 1).all()


@pytest.fixture(scope="module")
def task():
    """Rankings by six annotators of 40 queries of points."""
    return points(6, 0, 40, 10)[0]


def test_points_follow_the_rule(task):
    score = task.train.matrix @ [1.0, 10.0]
    assert (np.diff(task.train.items.offsets) == N_ITEMS).all()
    assert kendall_tau(score, task.truth, task.train.items.query) > 0.99
    assert sorted(task.truth[:N_ITEMS].tolist()) == list(range(1, N_ITEMS + 1))
    other = points(6, 0, 40, 10)[0]
    assert (other.rankings.item == task.rankings.item).all()
    assert (points(6, 1, 40, 10)[0].train.matrix != task.train.matrix).all()


def test_methods_learn_what_the_paper_says(task):
    found = Methods(ridge=1e-3).fit((TRUTH, PRINTED_D, PRINTED_ML, HARD, CAYLEY_ML), task)
    tau = {name: consensus_tau(task, one) for name, one in found.items() if name != TRUTH}
    assert tau[PRINTED_D] < 0.7
    assert min(tau[name] for name in (PRINTED_ML, HARD, CAYLEY_ML)) > 0.9
    errors = {name: expertise(task, found[name]) for name in (PRINTED_D, PRINTED_ML, HARD)}
    assert errors[HARD][0] < errors[PRINTED_ML][0] < errors[PRINTED_D][0]
    assert errors[HARD][1] > 0.99


def test_printed_consensus_knows_no_features(task):
    blind = Task(task.rankings, Features(task.train.items, -task.train.matrix, ("1", "2")), task.test, task.truth)
    seeing, turned = (Methods(ridge=1e-3).fit((PRINTED_D,), one)[PRINTED_D] for one in (task, blind))
    assert (seeing.consensus.scores == turned.consensus.scores).all()
    assert seeing.scores == pytest.approx(-turned.scores, abs=1e-4)


def test_dispersions_of_mallows_annotators_are_found_again():
    theta = np.array([0.1, 0.4, 1.0])
    query = np.repeat([f"q{number:03d}" for number in range(300)], np.where(np.arange(300) % 2, 8, 12))
    item = np.concatenate([np.arange(8 if number % 2 else 12) for number in range(300)])
    features = Features.from_arrays(query, item, np.zeros((len(item), 1)))
    truth = np.random.default_rng(1).permutation(len(item)).astype(float)
    drawn = rankings((features.items, truth), Mallows(theta), PerQuery(k=3), seed=2).judgments
    assert true_dispersions(Task(drawn, features, features, truth)) == pytest.approx(-theta, rel=0.08)


def test_features_run_from_0_to_1_within_queries():
    features = Features.from_arrays(
        ["a", "a", "a", "b", "b"], list("xyzxy"), np.array([[1, 5], [3, 5], [2, 5], [7, 1], [9, 0.0]])
    )
    assert unit(features).matrix.tolist() == [[0, 0], [1, 0], [0.5, 0], [0, 1], [1, 0]]


def test_results_compare_in_pairs():
    results = Results([5, 10])
    for size, shift in ((5, 0.0), (10, 2.0)):
        for value in (1.0, 4.0):
            figures = {"one": {"MAP": value + shift}, "two": {"MAP": 2.0}}
            results.add("2i+1", size, figures)
    assert results.values("2i+1", "one", "MAP") == [2.0, 5.0]
    assert results.less("2i+1", "one", "two", "MAP", 10).tolist() == [1.0, 4.0]
    assert results.has("one", "MAP")
    assert not results.has("one", "nDCG@3")


def test_differences_in_words():
    assert difference_text([0.5]) == "+0.5"
    assert difference_text([1.0, 1.0, 1.0, 1.0, 1.0, 1.0]) == "+1.0 ± 0.0 (p = 0.031)"
    assert clear([1.0] * 6) == 1
    assert clear([-1.0] * 6) == -1
    assert clear([1.0, -0.9, 1.0]) == 0


def test_scores_without_annotators_have_no_dispersion():
    with pytest.raises(AssertionError):
        Fitted(np.zeros(3)).theta()
