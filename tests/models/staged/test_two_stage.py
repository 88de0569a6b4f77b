"""A ranker trained on a consensus or on every grade: targets, rows, matching, validation."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.aggregators import Borda, BradleyTerry, DawidSkene, MeanGrade
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.joint import TwoStage
from crowdrank.rankers import LambdaMART, ListMLE, ListNet, RankSVM

NAMES = ("length", "age", "clicks")


@pytest.fixture
def known():
    """Features of ten queries of six items, whose true grades 0 to 3 follow the first two."""
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(60, 3))
    grade = np.clip(np.round(1.5 + matrix[:, 0] - 0.5 * matrix[:, 1]), 0, 3)
    query, item = np.repeat([f"q{n}" for n in range(10)], 6), np.tile([f"i{n}" for n in range(6)], 10)
    return cr.Features.from_arrays(query, item, matrix, names=NAMES, grade=grade)


@pytest.fixture
def grades(known):
    """Five noisy grades an item, of annotators a0 to a4."""
    rng = np.random.default_rng(4)
    query, item = known.items.query_ids().to_list(), known.items.ids.to_list()
    noisy = np.clip(known.grade[:, None] + rng.integers(-1, 2, (60, 5)), 0, 3)
    rows = [(f"a{a}", query[i], item[i], noisy[i, a]) for i in range(60) for a in range(5)]
    return cr.Grades.from_rows(rows)


def test_the_consensus_is_what_is_learned(known, grades):
    fit = TwoStage(aggregator=DawidSkene(), ranker=ListNet()).fit(grades, known)
    alone = DawidSkene().fit(grades)
    np.testing.assert_allclose(fit.consensus.scores, alone.scores)
    plain = ListNet().fit(known.matrix, alone.scores, qid=known.items.query)
    np.testing.assert_allclose(fit.ranker.weights_, plain.weights_, atol=1e-9)
    assert fit.quality.frame().equals(alone.quality.frame())
    assert (fit.n_items, fit.n_queries, fit.n_unjudged) == (60, 10, 0)
    assert repr(fit) == "JointFit(two_stage: ListNet from the consensus of dawid_skene, 60 items, 10 queries)"


def test_predictions_name_the_items(known, grades, tmp_path):
    fit = TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades, known)
    table = fit.predict(known)
    assert table.columns == ["query", "item", "score"]
    np.testing.assert_array_equal(table["score"], fit.ranker.predict(known))
    bare = pl.DataFrame(known.matrix, schema=list(NAMES))
    np.testing.assert_allclose(fit.predict(bare, qid=known.items.query), table["score"], atol=1e-12)
    named = known.items.frame().hstack(bare)
    assert fit.predict(named).equals(table)
    fit.save(tmp_path / "model")
    np.testing.assert_array_equal(cr.load_ranker(tmp_path / "model").predict(known), table["score"])
    assert fit.ranker.importance()["feature"][0] == "length"


def test_the_ranker_given_stays_as_it_was(known, grades):
    ranker = LambdaMART(n_trees=2)
    TwoStage(aggregator=BradleyTerry(), ranker=ranker).fit(grades.as_preferences(), known)
    assert not hasattr(ranker, "booster_")
    assert ranker.gain == "exponential"


@pytest.mark.parametrize("ranker", [ListNet(), ListMLE(), RankSVM()])
def test_every_grade_is_a_row_of_its_own(ranker, known, grades):
    fit = TwoStage(aggregator=None, ranker=ranker).fit(grades, known)
    assert fit.consensus is None
    assert fit.quality is None
    assert fit.n_items == 60
    row = known.items.codes_of(grades.items, "features", "judgments")[grades.item]
    plain = type(ranker)().fit(known.matrix[row], grades.grade, qid=known.items.query[row], item=row)
    np.testing.assert_allclose(fit.ranker.weights_, plain.weights_, atol=1e-7)


def test_weights_of_grades_are_weights_of_rows(known, grades):
    weight = np.where(grades.annotator == 0, 2.0, 1.0)
    doubled = np.append(np.arange(len(grades)), np.flatnonzero(grades.annotator == 0))
    weighted = TwoStage(aggregator=None, ranker=ListNet()).fit(grades.with_weights(weight), known)
    repeated = TwoStage(aggregator=None, ranker=ListNet()).fit(grades.select(doubled), known)
    unweighted = TwoStage(aggregator=None, ranker=ListNet()).fit(grades, known)
    np.testing.assert_allclose(weighted.ranker.weights_, repeated.ranker.weights_, atol=1e-8)
    assert np.abs(weighted.ranker.weights_ - unweighted.ranker.weights_).max() > 1e-3


@pytest.mark.parametrize("aggregator", [None, MeanGrade()])
def test_the_order_of_judgments_changes_nothing(aggregator, known, grades):
    shuffled = grades.select(np.random.default_rng(0).permutation(len(grades)))
    method = TwoStage(aggregator=aggregator, ranker=LambdaMART(n_trees=5, min_leaf=2))
    scores = [method.fit(given, known, validation=0.3).predict(known)["score"] for given in (grades, shuffled)]
    np.testing.assert_array_equal(*scores)


def test_scores_of_free_level_start_at_zero_and_are_gains(known, grades):
    preferences = grades.as_preferences()
    scores = BradleyTerry().fit(preferences).scores
    lowest = np.minimum.reduceat(scores, known.items.offsets[:-1])[known.items.query]
    fit = TwoStage(aggregator=BradleyTerry(), ranker=LambdaMART(n_trees=5)).fit(preferences, known)
    assert fit.ranker.gain == "linear"
    plain = LambdaMART(n_trees=5, gain="linear").fit(known.matrix, scores - lowest, qid=known.items.query)
    np.testing.assert_allclose(fit.ranker.predict(known), plain.predict(known.matrix))
    own = TwoStage(aggregator=BradleyTerry(), ranker=LambdaMART(n_trees=5), gain="exponential").fit(preferences, known)
    assert own.ranker.gain == "exponential"
    # what takes grades among other kinds gives no grades
    assert TwoStage(aggregator=Borda(), ranker=LambdaMART(n_trees=1)).fit(grades, known).ranker.gain == "linear"
    assert (
        TwoStage(aggregator=MeanGrade(), ranker=LambdaMART(n_trees=1)).fit(grades, known).ranker.gain == "exponential"
    )
    with pytest.raises(ParameterError, match="ListNet has no gain; leave gain='linear' out"):
        TwoStage(aggregator=Borda(), ranker=ListNet(), gain="linear").fit(grades, known)


def test_linear_rankers_measure_free_scores_as_gains_too(known, grades):
    preferences = grades.as_preferences()
    fit = TwoStage(aggregator=BradleyTerry(), ranker=ListNet(), seed=5).fit(preferences, known, validation=0.3)
    assert (fit.n_queries, fit.n_items) == (7, 42)
    held = np.random.default_rng(5).permutation(10)[:3]
    rows = np.flatnonzero(np.isin(known.items.query, held))
    scores = fit.consensus.scores[rows]
    lowest = {query: scores[known.items.query[rows] == query].min() for query in held}
    gain = scores - [lowest[query] for query in known.items.query[rows]]
    found = cr.metrics.ndcg(gain, fit.predict(known)["score"].to_numpy()[rows], known.items.query[rows], gain="linear")
    assert fit.ranker.curve_["valid"][-1] == pytest.approx(found)


def test_negative_grades_start_at_zero(known, grades):
    rows = [(a, q, i, g - 2) for q, i, g, a in grades.frame().select("query", "item", "grade", "annotator").rows()]
    lower = cr.Grades.from_rows(rows)
    method = TwoStage(aggregator=None, ranker=LambdaMART(n_trees=3))
    with pytest.warns(DataWarning, match="targets were moved up by 2 to start at 0"):
        moved = method.fit(lower, known)
    np.testing.assert_allclose(moved.ranker.predict(known), method.fit(grades, known).ranker.predict(known))
    TwoStage(aggregator=None, ranker=ListNet()).fit(lower, known, validation=0.2)


def test_items_are_matched_and_counted(known, grades):
    some = grades.select(grades.item < 30)
    fit = TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(some, known)
    assert (fit.n_items, fit.n_unjudged) == (30, 30)
    assert len(fit.predict(known)) == 60
    fewer = known.items.frame().with_columns(f=known.matrix[:, 0]).filter(pl.col("item") != "i5")
    message = r"10 of 60 judged items have no features and teach nothing: 'i5' \(query 'q0'\), .* and 5 more"
    with pytest.warns(DataWarning, match=message):
        fit = TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades, cr.Features.from_frame(fewer))
    assert fit.n_items == 50


def test_no_match_is_said_in_one_sentence(known, grades):
    other = cr.Features.from_arrays(known.items.query_ids(), "x" + known.items.ids, known.matrix)
    message = (
        r"none of the 60 judged items has features: judged were 'i0' \(query 'q0'\), .* and 55 more, "
        r"the first features are of item 'xi0' \(query 'q0'\); make ids of queries and items agree"
    )
    with pytest.raises(JudgmentError, match=message):
        TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades, other)
    bare = cr.Features.from_frame({"item": ["i0", "i1"], "f": [1, 2]})
    with pytest.raises(JudgmentError, match="there is no query in the features but several in the judgments"):
        TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades, bare)


def changed(known, row, column, value):
    """The features with one number changed."""
    matrix = known.matrix.copy()
    matrix[row, column] = value
    return cr.Features(known.items, matrix, known.names, known.grade)


def test_features_that_are_no_numbers_are_named(known, grades):
    missing = changed(known, 8, 1, np.nan)
    message = r"feature 'age' of item 'i2' \(query 'q1'\) is missing; give it a number, or use lambda_mart"
    with pytest.raises(JudgmentError, match=message):
        TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades, missing)
    fit = TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades.select(grades.item != 8), missing)
    assert fit.n_items == 59
    with pytest.raises(JudgmentError, match=message):
        fit.predict(missing)
    trees = TwoStage(aggregator=MeanGrade(), ranker=LambdaMART(n_trees=2)).fit(grades, missing)
    assert trees.predict(missing)["score"].is_finite().all()
    with pytest.raises(JudgmentError, match=r"feature 'age' of item 'i2' \(query 'q1'\) is infinite; give it a number"):
        TwoStage(aggregator=MeanGrade(), ranker=LambdaMART(n_trees=2)).fit(grades, changed(known, 8, 1, np.inf))


@pytest.mark.parametrize(("kind", "instead"), [("preference", "bradley_terry"), ("ranking", "plackett_luce")])
def test_only_grades_can_be_learned_one_by_one(small, kind, instead):
    items = small[kind].items
    features = cr.Features(items, np.ones((len(items), 1)), ("f",))
    with pytest.raises(JudgmentError, match=rf"{kind}s cannot be learned from one by one.*aggregator='{instead}'"):
        TwoStage(aggregator=None, ranker=ListNet()).fit(small[kind], features)


@pytest.mark.parametrize("aggregator", [None, DawidSkene()])
def test_classes_without_an_order_teach_nothing(aggregator):
    rows = [("ann", "q", "x", "cat"), ("bob", "q", "x", "cat"), ("ann", "q", "y", "dog"), ("bob", "q", "y", "dog")]
    features = cr.Features.from_frame({"query": ["q", "q"], "item": ["x", "y"], "f": [1, 2]})
    with pytest.raises(JudgmentError, match="classes without an order say nothing of which item is better"):
        TwoStage(aggregator=aggregator, ranker=ListNet()).fit(cr.Grades.from_rows(rows, nominal=True), features)


def test_validation_by_features_with_grades(known, grades):
    fit = TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades, known, validation=known)
    score = fit.ranker.score(pl.DataFrame(known.matrix, schema=list(NAMES)), known.grade, qid=known.items.query)
    assert fit.ranker.curve_["valid"][-1] == pytest.approx(score)
    part = changed(known, 0, 0, 0.0)
    part.__dict__["grade"] = np.where(np.arange(60) < 30, known.grade, np.nan)
    TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades, known, validation=part)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        (0.0, "validation=0.0 must lie between 0 and 1; it is the share of queries held out"),
        (1.0, "must lie between 0 and 1"),
        (cr.Features.from_frame({"query": ["q"], "item": ["x"], "f": [1]}), "the features lack '.*'; add it"),
        ("no grades", "the validation features have no grades to be measured by"),
    ],
)
def test_validation_that_cannot_be(known, grades, validation, message):
    given = cr.Features(known.items, known.matrix, known.names) if validation == "no grades" else validation
    with pytest.raises((JudgmentError, ParameterError), match=message):
        TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades, known, validation=given)


def test_one_query_cannot_be_held_out(known, grades):
    one = grades.select(grades.item < 6)
    with pytest.raises(ParameterError, match="holds out whole queries, but there is only one; leave it out"):
        TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(one, known, validation=0.5)


@pytest.mark.parametrize("ranker", [ListNet, "list_net", MeanGrade()])
def test_only_rankers_can_be_trained(known, grades, ranker):
    with pytest.raises(ParameterError, match="is not a ranker of crowdrank; give one such as"):
        TwoStage(aggregator=MeanGrade(), ranker=ranker).fit(grades, known)
