"""Runs against each other: tests, bounds of unjudged items, slices, pages and interleaving."""

from itertools import product

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api import describe_evaluation
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.metrics.measures import parse
from crowdrank.report.evaluation_page import render_evaluation


def make_runs(n_queries=30, n_items=8, seed=0, judged=1.0):
    """A truth and two runs, the second noisier."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "query": np.repeat([f"q{n:02d}" for n in range(n_queries)], n_items),
            "item": np.tile([f"d{n}" for n in range(n_items)], n_queries),
            "grade": rng.integers(0, 3, n_queries * n_items),
        }
    )
    size = len(frame)
    runs = {
        name: frame.select("query", "item", score=frame["grade"] + rng.normal(0, noise, size))
        for name, noise in (("new", 0.4), ("old", 2.0))
    }
    return runs, frame.filter(pl.Series(rng.random(size) < judged))


def test_tests_and_counts_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    runs, truth = make_runs()
    found = cr.evaluate_runs(runs, truth, ["ndcg@5", "footrule"], baseline="old")
    for row in found.comparisons.iter_rows(named=True):
        of = found.differences.filter(metric=row["metric"])
        expected = stats.ttest_rel(of["value"], of["other_value"])
        assert row["p_t"] == pytest.approx(expected.pvalue)
        interval = expected.confidence_interval(0.95)
        assert (row["lower"], row["upper"]) == pytest.approx((interval.low, interval.high))
        # a run that is ahead wins, whichever way the measure goes
        assert row["wins"] > row["losses"]
        assert row["wins"] + row["losses"] + row["ties"] == row["n_queries"] == 30
    same = cr.evaluate_runs({"a": runs["new"], "b": runs["new"]}, truth, ["map"]).comparisons.row(0, named=True)
    assert (same["difference"], same["p_t"], same["p_value"], same["ties"]) == (0, 1, 1, 30)


def test_order_of_rows_and_names_changes_no_test():
    runs, truth = make_runs(judged=0.8)
    plain = cr.evaluate_runs(runs, truth, ["ndcg@5"], baseline="old")
    mixed = {name: run.sample(fraction=1, shuffle=True, seed=1) for name, run in runs.items()}
    again = cr.evaluate_runs(mixed, truth.reverse(), ["ndcg@5"], baseline="old")
    assert again.comparisons.equals(plain.comparisons)
    assert again.table.equals(plain.table)


@pytest.mark.parametrize("metric", ["ndcg@3", "map", "p@3", "rbp@0.8", "err@3", "dcg@3"])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_all_fillings_of_binary_grades(metric, seed):
    rng = np.random.default_rng(seed)
    n = 6
    grade, known = rng.integers(0, 2, n), np.arange(n) % 2 == 0
    grade[0] = 1
    run = {"query": ["q"] * n, "item": [f"d{i}" for i in range(n)], "score": rng.permutation(n).astype(float)}
    truth = {"query": ["q"] * 3, "item": [f"d{i}" for i in range(0, n, 2)], "grade": grade[known]}
    found = cr.evaluate_runs(run, truth, [metric]).table.row(0, named=True)
    measure, values = parse(metric), []
    for filled in product((0, 1), repeat=3):
        grades = grade.copy()
        grades[~known] = filled
        values.append(float(measure(grades, run["score"])[0]))
    assert found["lowest"] == pytest.approx(min(values))
    assert found["highest"] == pytest.approx(max(values))


def test_bounds_are_the_value_where_all_is_judged():
    runs, truth = make_runs()
    found = cr.evaluate_runs(runs, truth, ["ndcg@5"])
    assert found.table["lowest"].to_list() == pytest.approx(found.table["value"].to_list())
    assert found.table["highest"].to_list() == pytest.approx(found.table["value"].to_list())
    assert [one.bounds for one in found.verdicts()] == [None]
    partly = cr.evaluate_runs(runs, truth.gather_every(2), ["ndcg@5"], baseline="old")
    (verdict,) = partly.verdicts()
    assert verdict.bounds[0] < verdict.row["difference"] < verdict.bounds[1]
    assert any("unjudged items in the first 5 places" in one for one in describe_evaluation(partly))


def test_slices_are_tested_each():
    runs, truth = make_runs(40)
    slices = pl.DataFrame({"qid": [f"q{n:02d}" for n in range(39)], "kind": ["a", "b", "c"] * 13, "size": range(39)})
    found = cr.evaluate_runs(runs, truth, ["ndcg@5"], baseline="old", slices=slices).slices
    assert found["by"].to_list() == ["kind"] * 3 + ["size"] * 4
    assert found.filter(by="kind")["n_queries"].to_list() == [13, 13, 13]
    assert found.filter(by="size")["n_queries"].sum() == 39
    one = cr.evaluate_runs(
        runs, truth.filter(pl.col("query").is_in([f"q{n:02d}" for n in range(0, 39, 3)])), ["ndcg@5"]
    )
    assert found["difference"][0] == pytest.approx(one.comparisons["difference"].item())
    assert (found["p_holm"] >= found["p_value"]).all()
    with pytest.raises(JudgmentError, match=r"row 40 repeats query 'q00' in the slices"):
        cr.evaluate_runs(runs, truth, slices=pl.concat([slices, slices.head(1)]))
    with pytest.raises(JudgmentError, match="slices need a query column"):
        cr.evaluate_runs(runs, truth, slices={"x": [1], "y": [2]})


def test_page_shows_the_worst_queries_with_their_items():
    runs, truth = make_runs(judged=0.9)
    found = cr.evaluate_runs(runs, truth, ["ndcg@5", "map"], baseline="old", slices=make_slices(truth))
    losses, gains = found.extreme_queries(found.comparisons.row(0, named=True))
    assert gains["difference"].is_sorted(descending=True)
    assert losses["difference"].is_sorted()
    items = found.items_of_query(gains["query"][0], ("new", "old"), 3)
    best = runs["new"].filter(query=gains["query"][0]).sort("score", descending=True)
    assert items["item"][0] == best["item"][0]
    described = truth.select("query", "item", title=pl.format("<b>text of {}</b>", "item"))
    page = render_evaluation(found, items=described, command="crowdrank evaluate ...")
    assert "new is better than old by ndcg@5" in page
    assert f"Query {gains['query'][0]}, largest gain" in page
    assert "&lt;b&gt;text of d1" in page
    assert "<b>text" not in page
    lone = cr.evaluate_runs({"new": runs["new"]}, truth, ["ndcg@5"])
    assert "nothing to compare it with" in render_evaluation(lone)


def make_slices(truth):
    """A slice for each query."""
    queries = truth["query"].unique().sort()
    return pl.DataFrame({"query": queries, "part": [f"<i>{n % 2}" for n in range(len(queries))]})


def test_two_files_of_one_tag_go_by_their_names(tmp_path):
    (tmp_path / "t.qrels").write_text("".join(f"q{n} 0 d{m} {m}\n" for n in range(4) for m in range(2)))
    for name, sign in (("A", 1), ("B", -1)):
        lines = [f"q{n} Q0 d{m} 1 {sign * m} tag\n" for n in range(4) for m in range(2)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    for baseline in ("A", "A.run", str(tmp_path / "A.run")):
        found = cr.evaluate_runs([tmp_path / "A.run", tmp_path / "B.run"], tmp_path / "t.qrels", baseline=baseline)
        assert found.comparisons.select("run", "other").unique().rows() == [("B", "A")]


def test_team_draft_is_fair_and_complete():
    runs, _ = make_runs(4)
    shown = cr.interleave(runs["new"], runs["old"], k=6, n=200, seed=3)
    assert shown.equals(cr.interleave(runs["new"].reverse(), runs["old"], k=6, n=200, seed=3))
    lists = shown.group_by("query", "impression").agg(pl.col("item").n_unique(), (pl.col("team") == "a").sum())
    assert lists["item"].to_list() == [6] * 800
    assert lists["team"].to_list() == [3] * 800
    first = shown.filter(position=1)["team"].value_counts()["count"]
    assert abs(first[0] - 400) < 60
    # random clicks prefer neither
    rng = np.random.default_rng(0)
    clicks = shown.with_columns(clicked=pl.Series(rng.integers(0, 2, len(shown))))
    found = cr.credit(shown, clicks)
    assert abs(found.preference) < 0.06
    assert found.p_value > 0.01
    assert found.wins + found.losses + found.ties == 800


def test_credit_goes_to_the_better_run_and_to_the_models():
    runs, truth = make_runs()
    shown = cr.interleave(runs["new"], runs["old"], k=4, n=20)
    clicks = shown.join(truth, on=["query", "item"], how="left").select(
        "impression", "query", "item", clicked=pl.col("grade").fill_null(0) // 2
    )
    found = cr.credit(shown, clicks)
    assert found.teams == ("a", "b")
    assert found.preference > 0
    assert found.p_value < 0.001
    assert found.p_query < 0.05
    sides = cr.Preferences.from_frame(found.preferences()).across_queries()
    assert cr.aggregate(sides, "bradley_terry").order()[0] == "a"


def test_mistakes_with_interleaved_lists_are_named():
    one = {"item": list("xy"), "score": [2, 1]}
    shown = cr.interleave(one, one, n=2)
    with pytest.raises(JudgmentError, match=r"row 1 of the clicks is on item 'z' of query '', which was not shown"):
        cr.credit(shown, {"impression": [1], "query": [""], "item": ["z"]})
    with pytest.raises(JudgmentError, match="add the impression of each click"):
        cr.credit(shown, {"query": [""], "item": ["x"]})
    with pytest.raises(JudgmentError, match="clicked = -1"):
        cr.credit(shown, {"impression": [1], "query": [""], "item": ["x"], "clicked": [-1]})
    with pytest.raises(ParameterError, match="k=0"):
        cr.interleave(one, one, k=0)


def test_results_are_shown_in_a_line():
    one, two = {"item": list("xyz"), "score": [3, 2, 1]}, {"item": list("xyz"), "score": [1, 2, 3]}
    shown = cr.interleave(one, two, k=2, n=6)
    found = cr.credit(shown, shown.filter(item="x").select("impression", "query", "item"))
    assert repr(found) == "Credit(a 6, b 0, 0 ties; preference +0.500, p = 0.0312)"
    truth = {"item": list("xyz"), "grade": [2, 1, 0]}
    evaluation = cr.evaluate_runs({"old": two, "new": one}, truth, ["ndcg@3", "map"], baseline="old")
    assert repr(evaluation) == "Evaluation(old, new by ndcg@3, map against old)"
