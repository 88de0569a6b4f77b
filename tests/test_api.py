"""The verbs: aggregate, evaluate, compare."""

import ast
import re
from collections import namedtuple
from pathlib import Path
from string import Formatter

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api import evaluate_runs
from crowdrank.api.aggregation import methods_for
from crowdrank.api.sentences import SENTENCES
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


class Split:
    """What a data set of Hugging Face does that matters here."""

    def __init__(self, rows):
        self.rows = rows
        self.column_names = list(rows[0])

    def to_polars(self):
        return pl.DataFrame(self.rows)

    def __getitem__(self, key):
        return self.rows[key] if isinstance(key, int) else [row[key] for row in self.rows]

    def __len__(self):
        return len(self.rows)


class Stream:
    """Rows that come one by one and have no length."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)


ROWS = pl.DataFrame(VOTES).to_dicts()
Vote = namedtuple("Vote", "item annotator grade")


@pytest.mark.parametrize(
    "rows",
    [ROWS, tuple(ROWS), iter(ROWS), [Vote(**row) for row in ROWS], Split(ROWS), Stream(ROWS), (row for row in ROWS)],
    ids=["list", "tuple", "iterator", "named tuples", "split", "stream", "generator"],
)
def test_rows_that_name_their_columns_are_a_table(rows):
    assert cr.aggregate(rows, "mean_grade").order() == ["x", "y", "z"]


def test_rows_may_lack_a_column_and_lists_of_tables_stay_tables():
    with pytest.raises(JudgmentError, match="the weight is blank in row 1"):
        cr.Grades.from_frame([{"item": "x", "grade": 1}, {"item": "y", "grade": 2, "weight": 2}])
    columns = {"item": list("xy"), "annotator": list("dd"), "grade": [2, 1]}
    assert cr.aggregate([VOTES, columns], "mean_grade").order() == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [tuple(row.values()) for row in ROWS],
            "row 1 is a tuple, which does not name its columns; give each row as a dict",
        ),
        ([*ROWS, ["x", "ann", 3]], "row 10 is a list, which does not name its columns"),
        ({"train": Split(ROWS), "test": Split(ROWS)}, "holds the tables 'train' and 'test'; choose one, as in data"),
        (np.ones((3, 2)), "a ndarray is not a table; give"),
        ("https://example.org/votes.csv", "download it first: curl -LO https://example.org/votes.csv"),
        (
            "s3://bucket/votes.csv",
            "only Parquet is read from elsewhere, and s3://bucket/votes.csv is not Parquet; download it first",
        ),
    ],
)
def test_what_is_no_table_is_refused_truly(rows, says):
    with pytest.raises(JudgmentError, match=re.escape(says)):
        cr.aggregate(rows)


def test_across_queries_is_an_argument_and_other_changes_are_named(small):
    preferences = small["preference"]
    asked = cr.aggregate(preferences, "bradley_terry", across_queries=True)
    assert asked.frame().equals(cr.aggregate(preferences.across_queries(), "bradley_terry").frame())
    for given, says in (
        ({"as_preferences": True}, r"aggregate\(judgments.as_preferences\(\)\)"),
        ({"swaps": "tie"}, r"aggregate\(judgments.settle_swaps\('tie'\)\)"),
        (
            {"levels": ["Bad", "Good"]},
            "levels=; it says how judgments are read: give it to read_judgments or from_frame",
        ),
        ({"tyes": "davidson"}, "parameter of the method goes into params="),
    ):
        with pytest.raises(ParameterError, match=says):
            cr.aggregate(preferences, **given)
    with pytest.raises(ParameterError, match=r"compare\(judgments.across_queries\(\)\)"):
        cr.compare(preferences, across_queries=True)


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


def write_partial_runs(folder):
    """A run of 8 queries, 3 of which the truth of 12 lacks; some of its items are unjudged."""
    rng = np.random.default_rng(3)
    qrels, run = [], []
    for query in range(15):
        grades = rng.integers(0, 3, 12) * (query != 4)  # one query without a relevant item
        if query < 12:
            qrels += [f"{query} 0 d{item} {grade}" for item, grade in enumerate(grades)]
        if query >= 12 or query < 5:
            seen = np.append(grades + rng.normal(0, 1, 12), rng.normal(0, 1, 3))
            kept = np.argsort(-seen)[:9]
            run += [f"{query} Q0 d{item} {rank + 1} {seen[item]:.5f} ours" for rank, item in enumerate(kept)]
    (folder / "part.run").write_text("\n".join(run) + "\n")
    (folder / "all.qrels").write_text("\n".join(qrels) + "\n")
    return folder / "part.run", folder / "all.qrels"


TREC = {"ndcg@5(linear)": "ndcg_cut_5", "map": "map", "p@5": "P_5", "mrr": "recip_rank", "recall@5": "recall_5"}


def test_queries_that_one_side_lacks_count_as_in_trec_eval(tmp_path, heard):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run, qrels = write_partial_runs(tmp_path)
    with run.open() as lines, qrels.open() as known:
        parsed = pytrec_eval.parse_run(lines)
        peer = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(known), set(TREC.values())).evaluate(parsed)
    assert len(peer) == 5
    expected = [np.mean([values[name] for values in peer.values()]) for name in TREC.values()]
    found = cr.evaluate(run, qrels, list(TREC), unjudged="zero")
    np.testing.assert_allclose(found["value"].to_numpy(), expected, atol=1e-9)
    assert found["n_queries"].unique().to_list() == [5]
    assert (
        "ours: 7 of 12 queries of the truth are not ranked and are left out (all_queries=True counts them as 0)"
        in heard
    )
    assert "ours: 3 of 8 ranked queries have no truth and are left out" in heard
    complete = cr.evaluate(run, qrels, list(TREC), unjudged="zero", all_queries=True)
    np.testing.assert_allclose(complete["value"].to_numpy(), np.array(expected) * 5 / 12, atol=1e-9)
    assert complete["n_queries"].unique().to_list() == [12]
    ir_measures = pytest.importorskip("ir_measures")  # which counts all queries of the qrels
    names = ["nDCG@5", "AP", "P@5", "RR", "R@5"]
    wanted = [ir_measures.parse_measure(name) for name in names]
    truth, ours = ir_measures.read_trec_qrels(str(qrels)), ir_measures.read_trec_run(str(run))
    peers = ir_measures.calc_aggregate(wanted, list(truth), list(ours))
    np.testing.assert_allclose(complete["value"].to_numpy(), [peers[measure] for measure in wanted], atol=1e-9)


def test_queries_that_a_consensus_lacks():
    scores = {"query": ["a", "a", "b", "b"], "item": list("xyxy"), "score": [2, 1, 2, 1]}
    truth = {"query": list("aaccdd"), "item": list("xyxyxy"), "grade": [1, 0, 1, 0, 0, 0]}
    plain = evaluate_runs(scores, truth, ["ndcg@10", "tau", "pair_accuracy", "footrule"])
    assert plain.table["value"].to_list() == [1, 1, 1, 0]
    assert plain.table["n_queries"].to_list() == [1] * 4
    assert len(plain.notes) == 2
    names = ["ndcg@10", "ndcg@10(skip)", "tau", "pair_accuracy", "footrule"]
    complete = cr.evaluate(scores, truth, names, all_queries=True)
    # a measure that leaves out queries without a relevant item, or without two unequal ones, leaves them out here too
    assert complete["value"].to_list() == pytest.approx([1 / 3, 1 / 2, 1 / 2, 1 / 2, 1 / 2])
    pairs = {"query": ["a", "c"], "left": ["x", "x"], "right": ["y", "y"], "winner": ["left", "left"]}
    assert cr.evaluate(scores, pairs)["value"].item() == 1
    assert cr.evaluate(scores, pairs, all_queries=True)["value"].item() == 0.5
    votes = cr.Grades.from_rows([("w", q, i, g) for q in "ab" for i, g in (("x", 2), ("y", 1))])
    compared = cr.compare(votes, ["mean_grade"], truth=truth, metrics=["ndcg@10"], all_queries=True)
    assert compared["ndcg@10"].item() == pytest.approx(1 / 3)
    assert cr.compare(votes, ["mean_grade"], truth=truth, metrics=["ndcg@10"])["ndcg@10"].item() == 1


def test_nothing_in_common_is_an_error(tmp_path):
    run, qrels = write_partial_runs(tmp_path)
    other = tmp_path / "other.qrels"
    other.write_text("q1 0 d1 1\nq2 0 d1 1\n")
    with pytest.raises(JudgmentError, match=r"ours and the truth share no query: '0', ... here and 'q1', ... in the"):
        cr.evaluate(run, other)
    with pytest.raises(JudgmentError, match="share no query"):
        cr.evaluate(run, other, all_queries=True)
    other.write_text("1 0 x1 1\n2 0 x1 1\n")
    with pytest.raises(JudgmentError, match="share no item"):
        cr.evaluate(run, other)
    votes = cr.Grades.from_rows([("w", "q", "x", 2), ("w", "q", "y", 1)])
    with pytest.raises(JudgmentError, match="the judgments and the truth share no query"):
        cr.compare(votes, ["mean_grade"], truth=qrels)


def test_a_run_of_one_query_meets_a_truth_without_queries(tmp_path):
    (tmp_path / "one.run").write_text("7 Q0 x 1 2.0 r\n7 Q0 y 2 1.0 r\n")
    truth = {"item": ["x", "y", "z"], "grade": [0, 1, 1]}
    assert cr.evaluate(tmp_path / "one.run", truth, ["recall@5"])["value"].item() == 0.5


def test_correction_is_within_a_metric_and_against_a_baseline(tmp_path):
    rng = np.random.default_rng(0)
    truth = pl.DataFrame({"query": np.repeat(np.arange(40), 6), "item": np.tile(np.arange(6), 40)})
    truth = truth.with_columns(grade=pl.Series(rng.integers(0, 3, 240)))
    runs = {
        f"run{number}": truth.select("query", "item", score=truth["grade"] + rng.normal(0, 0.2 + 0.15 * number, 240))
        for number in range(6)
    }
    metrics = ["ndcg@5", "map", "tau"]
    for baseline, n_tests in ((None, 15), ("run5", 5)):
        found = evaluate_runs(runs, truth, metrics, baseline=baseline).comparisons
        assert found.group_by("metric").len()["len"].to_list() == [n_tests] * 3
        for (_,), part in found.group_by("metric"):
            np.testing.assert_allclose(part["p_holm"], cr.metrics.holm(part["p_value"]))
        alone = evaluate_runs(runs, truth, "map", baseline=baseline).comparisons
        assert alone.equals(found.filter(metric="map"))
    assert found["other"].unique().to_list() == ["run5"]
    better = found.filter(run="run0", metric="tau")
    assert better["difference"].item() > 0
    assert better["p_holm"].item() <= 5 * 2 / 10_001
    with pytest.raises(UnknownNameError, match=r"no run 'run9' for a baseline; did you mean .* known: run0, run1"):
        evaluate_runs(runs, truth, baseline="run9")
    with pytest.raises(ParameterError, match="is the only run"):
        evaluate_runs({"one": runs["run0"]}, truth, baseline="one")


def test_what_is_asked_is_checked_before_files_are_read():
    for given, said in (
        ({"level": 95}, "level=95 is not a probability"),
        ({"metrics": ["ncdg"]}, "no metric"),
        ({"unjudged": "some"}, "neither"),
    ):
        with pytest.raises((ParameterError, UnknownNameError), match=said):
            evaluate_runs("no.csv", "no.csv", **given)
    for given, said in (
        ({"metrics": ["ncdg"], "truth": "no.csv"}, "no metric"),
        ({"methods": ["mean_grade"], "baseline": "borda"}, "no method 'borda' for a baseline"),
        ({"methods": ["mean_grad"]}, "did you mean 'mean_grade'"),
        ({"baseline": "brda"}, "did you mean 'borda'"),
    ):
        with pytest.raises((ParameterError, UnknownNameError), match=said):
            cr.compare("no.csv", **given)


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
    with pytest.raises(JudgmentError, match="no query in the truth but several in the items"):
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


@pytest.mark.parametrize("package", [cr, cr.api, cr.metrics, cr.simulate])
def test_types_are_declared_of_all_public_names_and_of_no_others(package):
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    declared = {alias.asname: node.module for node in imports for alias in node.names}
    assert set(declared) == set(package.__all__)
    for name, module in declared.items():
        home = package._HOMES.get(name)
        assert home is None or home.lstrip(".") == (module or "")


def test_sentences_are_given_all_that_they_have_in_braces():
    given = {}
    package = Path(cr.__file__).parent
    for path in [*package.glob("api/*.py"), *package.glob("judging/*.py")]:
        for call in ast.walk(ast.parse(path.read_text())):
            said = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "words_of"
            if said and isinstance(call.args[0], ast.Constant):
                given[call.args[0].value] = {keyword.arg for keyword in call.keywords}
    for code, sentence in SENTENCES.items():
        names = {name for _, name, _, _ in Formatter().parse(sentence) if name} - {"option"}
        assert code.startswith("step_") or names == given.pop(code), code
    assert not given
