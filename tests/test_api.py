"""The verbs: aggregate, evaluate, compare."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api import evaluate_runs
from crowdrank.api.aggregation import methods_for
from crowdrank.errors import DataWarning, JudgmentError, ParameterError, UnknownNameError
from crowdrank.io import listen, write_consensus
from crowdrank.registry import card, names

VOTES = {"item": list("xyzxyzxyz"), "annotator": list("aaabbbccc"), "grade": [3, 2, 1, 3, 1, 0, 2, 2, 1]}


@pytest.fixture
def heard():
    """What the library says."""
    said = []
    listen(said.append)
    yield said
    listen(None)


def test_aggregate_takes_judgments_frames_and_paths(tmp_path, small):
    path = tmp_path / "votes.csv"
    pl.DataFrame(VOTES).write_csv(path)
    orders = [
        cr.aggregate(source).order()
        for source in (VOTES, pl.DataFrame(VOTES), str(path), path, cr.Grades.from_frame(VOTES))
    ]
    assert orders == [["x", "y", "z"]] * 5


def test_parameters_are_read_and_checked(small):
    assert cr.aggregate(small["grade"], "mean_grade", params={"alpha": "3"}).params["alpha"] == 3.0
    assert cr.aggregate(small["grade"], "mv", params={"ties": "random"}, seed=5).params["seed"] == 5
    with pytest.raises(ParameterError, match="no parameter 'alfa'; did you mean 'alpha'"):
        cr.aggregate(small["grade"], "mean_grade", params={"alfa": 1})
    with pytest.raises(ParameterError, match="right type"):
        cr.aggregate(small["grade"], "mean_grade", params={"alpha": "much"})
    with pytest.raises(UnknownNameError, match="did you mean 'mean_grade'"):
        cr.aggregate(small["grade"], "mean_grad")
    with pytest.raises(ParameterError, match="takes no start="):
        cr.aggregate(small["grade"], "mean_grade", start=cr.aggregate(small["grade"], "mean_grade"))
    with pytest.raises(ParameterError, match="to the method itself"):
        cr.aggregate(small["grade"], cr.aggregators.MeanGrade(), params={"alpha": 1})


def test_a_method_itself_may_be_given(small):
    named = cr.aggregate(small["preference"], "bradley_terry")
    np.testing.assert_array_equal(named.scores, cr.aggregate(small["preference"], cr.aggregators.BradleyTerry()).scores)


def test_evaluate_against_partial_truth_says_what_was_left_out(heard):
    consensus = cr.aggregate(VOTES, "mean_grade")
    truth = {"item": ["x", "z"], "grade": [0, 1]}
    dropped = cr.evaluate(consensus, truth, ["ndcg@1", "tau"])
    assert dropped["value"].to_list() == [0.0, -1.0]
    assert dropped["unjudged"].to_list()[0] == 0.0
    assert any("1 of 3 items have no truth and are left out" in text for text in heard)
    zero = cr.evaluate(consensus, truth, ["ndcg@2"], unjudged="zero")
    assert zero["unjudged"].item() == 0.5
    with pytest.raises(ParameterError, match="neither 'drop' nor 'zero'"):
        cr.evaluate(consensus, truth, unjudged="skip")


def test_evaluate_checks_that_metric_and_truth_fit():
    consensus = cr.aggregate(VOTES, "mean_grade")
    pairs = {"left": ["x"], "right": ["y"], "winner": ["x"]}
    assert cr.evaluate(consensus, pairs)["value"].to_list() == [1.0]
    with pytest.raises(ParameterError, match="'ndcg@10' does not fit a truth about pairs"):
        cr.evaluate(consensus, pairs, ["ndcg@10"])
    with pytest.raises(ParameterError, match="does not fit a truth about items"):
        cr.evaluate(consensus, {"item": ["x"], "grade": [1]}, ["preference_accuracy"])
    with pytest.raises(ParameterError, match="needs grades and the truth has ranks"):
        cr.evaluate(consensus, {"item": ["x", "y"], "rank": [1, 2]}, ["ndcg@10"])
    with pytest.raises(JudgmentError, match="share no item"):
        cr.evaluate(consensus, {"item": ["w"], "grade": [1]})
    with pytest.raises(UnknownNameError, match="no metric"):
        cr.evaluate(consensus, {"item": ["x"], "grade": [1]}, ["ncdg@10"])


def write_runs(folder):
    qrels, runs = [], {"good": [], "poor": []}
    rng = np.random.default_rng(0)
    for query in range(12):
        grades = rng.integers(0, 3, 15)
        qrels += [f"{query} 0 d{item} {grade}" for item, grade in enumerate(grades)]
        for name, noise in (("good", 0.7), ("poor", 3.0)):
            seen = grades + rng.normal(0, noise, 15)
            kept = np.argsort(-seen)[:10]
            runs[name] += [f"{query} Q0 d{item} {rank + 1} {seen[item]:.5f} {name}" for rank, item in enumerate(kept)]
    paths = {name: folder / f"{name}.run" for name in runs}
    for name, lines in runs.items():
        paths[name].write_text("\n".join(lines) + "\n")
    (folder / "truth.qrels").write_text("\n".join(qrels) + "\n")
    return paths, folder / "truth.qrels"


def test_runs_agree_with_trec_eval(tmp_path):
    ir_measures = pytest.importorskip("ir_measures")
    paths, qrels = write_runs(tmp_path)
    found = cr.evaluate(paths["good"], qrels, ["ndcg@10(linear)", "map", "p@5", "mrr", "recall@10"])
    truth = list(ir_measures.read_trec_qrels(str(qrels)))
    run = list(ir_measures.read_trec_run(str(paths["good"])))
    names = ["nDCG@10", "AP", "P@5", "RR", "R@10"]
    expected = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in names], truth, run)
    wanted = [expected[ir_measures.parse_measure(name)] for name in names]
    np.testing.assert_allclose(found["value"].to_numpy(), wanted, atol=1e-9)


def test_two_runs_are_tested_against_each_other(tmp_path):
    paths, qrels = write_runs(tmp_path)
    found = evaluate_runs([paths["good"], paths["poor"]], qrels, ["ndcg@10", "map"])
    assert found.per_query.height == 2 * 2 * 12
    row = found.comparisons.row(0, named=True)
    assert (row["run"], row["other"]) == ("good", "poor")
    assert row["difference"] > 0
    assert row["p_value"] < 0.05
    assert (found.comparisons["p_holm"] >= found.comparisons["p_value"]).all()
    assert (found.table["lower"] < found.table["value"]).all()


@pytest.mark.parametrize("levels", [None, [0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
@pytest.mark.parametrize("form", ["object", "json", "parquet"])
def test_an_uncertain_truth_is_in_value_and_interval(small, tmp_path, levels, form):
    grades = small["grade"] if levels is None else cr.Grades.from_frame(small["grade"].frame(), levels=levels)
    result = cr.aggregate(grades, "mean_grade")
    labels = cr.aggregate(grades, "majority_vote")
    if form != "object":
        write_consensus(labels, tmp_path / f"labels.{form}")
    truth = labels if form == "object" else tmp_path / f"labels.{form}"
    noisy = cr.evaluate(result, truth, ["tau"], seed=1).row(0, named=True)
    plain = cr.evaluate(result, labels.items.frame().with_columns(grade=pl.Series(labels.scores)), ["tau"], seed=1)
    assert noisy["lower"] <= noisy["value"] <= noisy["upper"]
    assert noisy["value"] > 0.3
    assert noisy["upper"] - noisy["lower"] > plain["upper"].item() - plain["lower"].item()


def test_a_result_of_any_format_serves_as_truth(small, tmp_path):
    consensus = cr.aggregate(cr.Grades.from_frame(small["grade"].frame(), levels=[4, 3, 2, 1, 0]), "mean_grade")
    for form in ("json", "csv", "parquet"):
        write_consensus(consensus, tmp_path / f"result.{form}")
        assert cr.evaluate(consensus, tmp_path / f"result.{form}", ["tau"])["value"].item() == pytest.approx(1.0)


def test_negative_truth_is_measured_by_its_order(small, heard):
    consensus = cr.aggregate(small["preference"], "bradley_terry")
    found = cr.evaluate(consensus, consensus)
    assert found["metric"].to_list() == ["tau", "pair_accuracy"]
    assert any("negative grades" in text for text in heard)
    with pytest.raises(JudgmentError, match=r"ndcg@10\(negative=zero\)"):
        cr.evaluate(consensus, consensus, "ndcg@10")
    assert cr.evaluate(consensus, consensus, "ndcg@10(negative=zero)")["value"].item() == pytest.approx(1.0)


def test_classes_are_measured_by_accuracy():
    votes = {
        "item": list("xxxyyyzz"),
        "annotator": list("abcabcab"),
        "grade": ["cat", "cat", "dog", "dog", "dog", "cat", "cat", "cat"],
    }
    consensus = cr.aggregate(cr.Grades.from_frame(votes, nominal=True), "majority_vote")
    truth = {"item": ["x", "y", "z"], "grade": ["cat", "cat", "cat"]}
    found = cr.evaluate(consensus, truth)
    assert found.select("metric", "value").row(0) == ("accuracy", pytest.approx(2 / 3))
    with pytest.raises(ParameterError, match="classes have none; use accuracy"):
        cr.evaluate(consensus, truth, ["tau"])
    assert cr.evaluate(consensus, consensus)["value"].item() == 1.0
    with pytest.raises(ParameterError, match="chooses no grade"):
        cr.evaluate(cr.aggregate(VOTES, "mean_grade"), {"item": ["x"], "grade": [3]}, ["accuracy"])
    assert (
        cr.evaluate(cr.aggregate(VOTES, "majority_vote"), {"item": ["x"], "grade": [3]}, ["accuracy"])["value"].item()
        == 1
    )


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_compare_holds_out_classes_where_there_is_no_order():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    rows = [
        (f"w{a}", "q", f"i{i}", "abc"[truth[i] if rng.random() < 0.8 else rng.integers(0, 3)])
        for a in range(6)
        for i in range(40)
    ]
    found = cr.compare(cr.Grades.from_rows(rows, nominal=True), ["majority_vote", "dawid_skene"])
    assert found["grade_accuracy"].min() > 0.6
    assert found["same_as_first"][0] == 1.0


def test_a_truth_without_queries_meets_one_query_and_no_more():
    scores = {"query": ["q", "q"], "item": [1, 2], "score": [1, 2]}
    assert cr.evaluate(scores, {"item": ["1", "2"], "grade": [0, 1]}, ["tau"])["value"].item() == 1.0
    with pytest.raises(JudgmentError, match="truth name no query but the items have several"):
        cr.evaluate({"query": ["q", "r"], "item": [1, 2], "score": [1, 2]}, {"item": ["1", "2"], "grade": [0, 1]})


def test_an_item_scored_twice_is_refused():
    with pytest.raises(JudgmentError, match="row 2 repeats item 'x'"):
        cr.evaluate({"item": ["x", "x"], "score": [1, 2]}, {"item": ["x"], "grade": [1]})


def test_compare_leaves_class_methods_out_of_fine_grades(heard):
    votes = {
        "item": list(range(60)) * 2,
        "grade": [float(i) for i in range(60)] * 2,
        "annotator": ["a"] * 60 + ["b"] * 60,
    }
    assert "majority_vote" not in cr.compare(votes)["method"].to_list()
    assert any("class methods are left out" in text for text in heard)


def test_compare_says_what_a_method_takes(small):
    with pytest.raises(JudgmentError, match="as_preferences"):
        cr.compare(small["grade"], ["bradley_terry"])


def test_compare_with_and_without_truth(small):
    found = cr.compare(small["preference"])
    assert found["method"].to_list() == [n for n in names("aggregator") if "preference" in card("aggregator", n).kinds]
    assert found["pair_accuracy"].is_between(0.55, 1).all()
    assert found["log_loss"].is_between(0, 0.7).all()
    assert found["tau_to_first"][0] == pytest.approx(1.0)
    truth = {"query": ["q1"] * 5 + ["q2"] * 5, "item": list("abcde") * 2, "grade": [4, 3, 2, 1, 0] * 2}
    against = cr.compare(small["grade"], ["mean_grade", "mv"], truth=truth, metrics=["tau"])
    assert against["method"].to_list() == ["mean_grade", "majority_vote"]
    assert against["tau"].min() > 0.4
    with pytest.warns(DataWarning):
        assert cr.compare(small["ranking"])["pair_accuracy"].min() > 0.5


def test_compare_takes_aggregators_of_ones_own(small):
    settings = {f"ridge {ridge}": cr.aggregators.BradleyTerry(ridge=ridge) for ridge in (0.1, 10.0)}
    found = cr.compare(small["preference"], settings)
    assert found["method"].to_list() == ["ridge 0.1", "ridge 10.0"]
    assert found["log_loss"][0] != found["log_loss"][1]


def test_compare_reports_progress(small):
    steps = []
    cr.compare(small["grade"], ["mean_grade"], progress=lambda done, of, what: steps.append((done, of, what)))
    assert steps[-1] == (6, 6, "mean_grade")


def test_compare_with_too_little():
    with pytest.raises(ParameterError, match="too few judgments"):
        cr.compare({"item": ["x"], "grade": [1], "annotator": ["a"]}, ["mean_grade"])


def test_methods_for_nominal_grades():
    nominal = cr.Grades.from_frame({"item": ["x"], "grade": ["cat"]}, nominal=True)
    assert "majority_vote" in methods_for(nominal)
    assert "mean_grade" not in methods_for(nominal)


def test_a_truth_in_other_levels_is_not_taken_for_wrong_everywhere():
    votes = {"item": ["x", "y"] * 2, "annotator": ["ann"] * 2 + ["bob"] * 2, "grade": ["Good", "Bad"] * 2}
    consensus = cr.aggregate(cr.Grades.from_frame(votes, levels=["Bad", "Good"]), "majority_vote")
    with pytest.raises(ParameterError, match="with none in common; write both in the same levels"):
        cr.evaluate(consensus, {"item": ["x", "y"], "grade": [1, 0]}, ["accuracy"])
    assert cr.evaluate(consensus, {"item": ["x", "y"], "grade": ["Good", "Bad"]}, ["accuracy"])["value"][0] == 1
