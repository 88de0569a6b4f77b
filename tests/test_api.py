"""The verbs: aggregate, evaluate, compare."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api import evaluate_runs
from crowdrank.api.aggregation import AUTO, AUTO_CLASS, auto_method, methods_for
from crowdrank.errors import JudgmentError, ParameterError, UnknownNameError
from crowdrank.io import listen

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


@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
def test_auto_picks_by_kind_and_says_why(kind, small, heard):
    consensus = cr.aggregate(small[kind])
    assert consensus.method == AUTO[kind].method
    assert heard == [f"method {AUTO[kind].method}, since {AUTO[kind].reason}"]


def test_auto_for_a_grade_and_for_classes(small, heard):
    assert auto_method(small["grade"], "grade") == AUTO_CLASS["levels"]
    consensus = cr.aggregate(small["grade"], want="grade")
    assert consensus.method == "dawid_skene"
    assert consensus.params["ordinal"] is True
    assert heard[0].startswith("method dawid_skene, ordinal=True, since ")
    assert cr.aggregate(small["grade"], want="grade", params={"ordinal": False}).params["ordinal"] is False
    votes = {"item": ["x", "x", "y"], "annotator": ["a", "b", "a"], "grade": ["cat", "dog", "cat"]}
    assert auto_method(cr.Grades.from_frame(votes, nominal=True)) == AUTO_CLASS["classes"]
    nameless = cr.Grades.from_frame({"item": ["x"], "grade": ["cat"]}, nominal=True)
    assert auto_method(nameless) == AUTO_CLASS["no annotators"]
    alone = cr.Grades.from_frame({"item": ["x", "y"], "annotator": ["a", "b"], "grade": [1, 2]})
    assert auto_method(alone, "grade") == AUTO_CLASS["no overlap"]
    with pytest.raises(ParameterError, match="tell no grade"):
        auto_method(small["preference"], "grade")
    with pytest.raises(ParameterError, match="neither 'order' nor 'grade'"):
        auto_method(small["grade"], "rank")


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


def test_an_uncertain_truth_widens_the_interval(small):
    sure = cr.aggregate(small["grade"], "mean_grade")
    labels = cr.aggregate(small["grade"], "majority_vote")
    assert labels.probabilities is not None
    noisy = cr.evaluate(sure, labels, ["ndcg@3"], seed=1)
    truth = labels.items.frame().with_columns(grade=pl.Series(labels.scores))
    plain = cr.evaluate(sure, truth, ["ndcg@3"], seed=1)
    assert noisy["value"].item() == pytest.approx(plain["value"].item())
    width = noisy["upper"].item() - noisy["lower"].item()
    assert width > plain["upper"].item() - plain["lower"].item()


def test_compare_with_and_without_truth(small):
    found = cr.compare(small["preference"])
    assert found["method"].to_list() == ["borda", "bradley_terry", "elo"]
    assert found["pair_accuracy"].is_between(0.55, 1).all()
    assert found["log_loss"].is_between(0, 0.7).all()
    assert found["tau_to_first"][0] == pytest.approx(1.0)
    truth = {"query": ["q1"] * 5 + ["q2"] * 5, "item": list("abcde") * 2, "grade": [4, 3, 2, 1, 0] * 2}
    against = cr.compare(small["grade"], ["mean_grade", "mv"], truth=truth, metrics=["tau"])
    assert against["method"].to_list() == ["mean_grade", "majority_vote"]
    assert against["tau"].min() > 0.4
    assert cr.compare(small["ranking"])["pair_accuracy"].min() > 0.5


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
