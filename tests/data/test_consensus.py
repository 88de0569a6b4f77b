"""The consensus: its table, ranks, intervals and comparisons."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from crowdrank import aggregate, read_consensus
from crowdrank.aggregators import BradleyTerry
from crowdrank.data.consensus import Consensus, Quality, Trace
from crowdrank.data.grades import Grades
from crowdrank.data.index import Index
from crowdrank.errors import ParameterError, UnknownNameError

ITEMS = Grades.from_rows([("a", "q1", "x", 1), ("a", "q1", "y", 1), ("a", "q1", "z", 1), ("a", "q2", "x", 1)]).items


def consensus(**fields):
    return Consensus(items=ITEMS, scores=np.array([1.0, 3.0, 3.0, 0.5]), method="made_up", **fields)


def test_frame_is_sorted_best_first_with_shared_ranks():
    frame = consensus().frame()
    assert frame.columns == ["query", "item", "score", "rank"]
    assert frame.rows() == [("q1", "y", 3.0, 1), ("q1", "z", 3.0, 1), ("q1", "x", 1.0, 3), ("q2", "x", 0.5, 1)]


def test_order_needs_the_query_when_there_are_several():
    assert consensus().order("q1") == ["y", "z", "x"]
    with pytest.raises(ParameterError, match="name one"):
        consensus().order()
    with pytest.raises(UnknownNameError, match="did you mean 'q1'"):
        consensus().order("q11")


def test_grades_and_confidence_are_shown_in_the_users_values():
    probabilities = np.array([[0.2, 0.8], [0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    shown = consensus(probabilities=probabilities, levels=("Bad", "Good"), grade=np.array([1, 0, 0, -1])).frame()
    by_item = {(q, i): (g, c) for q, i, g, c in shown.select("query", "item", "grade", "confidence").rows()}
    assert by_item["q1", "x"] == ("Good", 0.8)
    assert by_item["q1", "y"] == ("Bad", 0.9)
    assert by_item["q2", "x"][0] is None


def test_without_uncertainty_intervals_say_what_to_do():
    with pytest.raises(ParameterError, match="made_up gives no uncertainty"):
        consensus().intervals()
    with pytest.raises(ParameterError, match="made_up gives no uncertainty"):
        consensus().beats("x", "y", "q1")


def test_std_errors_give_normal_intervals_and_independent_comparisons():
    made = consensus(std_error=np.array([1.0, 1.0, 0.0, 1.0]))
    frame = made.intervals(0.95)
    row = frame.filter((pl.col("query") == "q1") & (pl.col("item") == "x")).row(0, named=True)
    assert row["lower"] == pytest.approx(1 - 1.959964, abs=1e-5)
    assert row["upper"] == pytest.approx(1 + 1.959964, abs=1e-5)
    assert row["basis"] == "std_error"
    assert 1 <= row["rank_lower"] <= 3 == row["rank_upper"]
    # a gap of two with standard deviation sqrt(2)
    assert made.beats("y", "x", "q1") == pytest.approx(0.92135, abs=1e-4)
    assert made.beats("x", "y", "q1") == pytest.approx(1 - 0.92135, abs=1e-4)
    assert made.uncertainty == "std_error"


def test_covariance_counts_what_scores_share():
    block = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    made = consensus(covariance=(block, np.eye(1)), std_error=np.ones(4))
    assert made.uncertainty == "covariance"
    assert made.beats("y", "x", "q1") == 1.0
    assert made.beats("y", "z", "q1") == pytest.approx(0.5)
    lower = made.intervals().filter(pl.col("query") == "q1")
    assert lower.filter(pl.col("item") == "x")["rank_lower"].item() >= 2


def test_large_queries_without_a_block_fall_back_to_std_errors_and_say_so():
    made = consensus(covariance=(None, np.eye(1)), std_error=np.ones(4))
    assert made.uncertainty == "covariance, std_error in large queries"
    assert made.beats("y", "x", "q1") == pytest.approx(0.92135, abs=1e-4)
    assert made.intervals().height == 4


def test_replicates_come_first():
    rng = np.random.default_rng(0)
    replicates = (consensus().scores + rng.normal(0, [1.0, 0.1, 0.1, 0.1], (500, 4))).astype(np.float32)
    made = consensus(replicates=replicates, std_error=np.full(4, 99.0))
    assert made.uncertainty == "replicates"
    assert made.beats("y", "x", "q1") == pytest.approx(0.976, abs=0.02)
    frame = made.intervals(0.9)
    assert (frame["lower"] < frame["score"]).all()
    assert (frame["upper"] > frame["score"]).all()


def test_levels_and_items_are_checked():
    made = consensus(std_error=np.ones(4))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        made.intervals(95)
    with pytest.raises(ParameterError, match="two items"):
        made.beats("x", "x", "q1")
    with pytest.raises(UnknownNameError, match="needs its query"):
        made.beats("x", "y")
    with pytest.raises(UnknownNameError, match="no item 'w' in query 'q1'"):
        made.beats("x", "w", "q1")


def test_quality_is_computed_when_it_is_first_asked_for():
    calls = []

    def compute():
        calls.append(1)
        return Quality(Index.of(pl.Series(["ann"])), np.array([0.7]), np.array([4.0]))

    made = consensus(quality_source=compute)
    assert not calls
    assert made.quality.frame().rows() == [("ann", 0.7, 4.0)]
    assert made.quality is made.quality
    assert calls == [1]
    assert replace(made, estimates={}).quality is made.quality


def test_results_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        consensus().scores[0] = 1
    assert consensus().trace == Trace()


def test_quality_parameters_of_one_number_become_columns():
    index = Index.of(pl.Series(["ann", "bob"]))
    quality = Quality(
        index, np.array([0.4, 0.9]), np.array([3, 5]), {"bias": np.array([0.1, 0.2]), "confusion": np.ones((2, 2, 2))}
    )
    frame = quality.with_parameters(lapse=np.zeros(2)).frame()
    assert frame.columns == ["annotator", "quality", "n_judgments", "bias", "lapse"]
    assert frame["annotator"].to_list() == ["bob", "ann"]


def test_intervals_of_one_query_are_those_of_all(small):
    fitted = BradleyTerry().fit(small["preference"])
    every = fitted.intervals(0.9)
    for query in ("q1", "q2"):
        assert fitted.intervals(0.9, query).equals(every.filter(query=query))


def test_many_pairs_at_once_are_each_pair_by_itself(small):
    fitted = BradleyTerry().fit(small["preference"])
    rng = np.random.default_rng(0)
    drawn = replace(fitted, replicates=rng.normal(size=(50, 10)).astype(np.float32))
    bare = replace(fitted, covariance=None)
    first, second = np.array([0, 7, 3, 9]), np.array([1, 5, 4, 8])
    ids, query = fitted.items.ids, fitted.items.query_ids()
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    for found in (fitted, drawn, bare):
        single = [found.beats(ids[a], ids[b], query[a]) for a, b in pairs]
        assert found.beats_each(first, second).tolist() == single
    certain = replace(bare, std_error=np.zeros(10))
    assert set(certain.beats_each(first, second)) <= {0.0, 0.5, 1.0}


def test_a_consensus_is_iterated_best_first_and_cut_into_tiers(small, tmp_path):
    votes = {"item": list("xyzxyzxyz"), "annotator": list("aaabbbccc"), "grade": [3, 3, 1, 2, 3, 0, 3, 2, 1]}
    one = aggregate(votes, "mean_grade")
    assert [item for item, _ in one] == one.order()
    assert dict(one) == dict(one.frame().select("item", "score").iter_rows())
    several = aggregate(small["grade"], "mean_grade")
    assert [row[:2] for row in several] == several.frame().select("query", "item").rows()
    assert one.tiers()["tier"].to_list() == [1, 1, 2]
    tiers = several.tiers(level=0.5)
    assert tiers.drop("tier").equals(several.frame().select("query", "item", "score", "rank"))
    for (query,), part in tiers.group_by("query"):
        assert part["tier"][0] == 1, query
        assert (part["tier"].diff().drop_nulls().is_in([0, 1])).all()
    with pytest.raises(ParameterError, match="borda does not say how sure"):
        aggregate(votes, "borda").tiers()
    one.to_csv(tmp_path / "ranks.csv")
    assert (tmp_path / "ranks.csv").read_text() == one.to_csv()
    assert one.to_csv().splitlines()[1].startswith("x,2.66667,1,")
    assert read_consensus(tmp_path / "ranks.csv").order() == one.order()
    with pytest.raises(ParameterError, match="its folder does not exist"):
        one.to_csv(tmp_path / "none" / "ranks.csv")
