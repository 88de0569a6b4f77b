"""The verbs train and rank: names, frames, paths, and what they refuse."""

import dataclasses
import re

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank import simulate
from crowdrank.api.aggregation import METHODS, auto_method
from crowdrank.errors import DataWarning, JudgmentError, ParameterError, UnknownNameError
from crowdrank.io import write_letor
from crowdrank.io.notices import collect_notices


def make_features(seed=0, n_queries=12):
    """Features of eight items a query with true grades."""
    rng = np.random.default_rng(seed)
    n = 8 * n_queries
    matrix = rng.normal(size=(n, 4)).round(3)
    grade = np.clip(np.round(1 + matrix[:, 0] + 0.5 * matrix[:, 1]), 0, 3)
    query, item = np.repeat([f"q{q:02}" for q in range(n_queries)], 8), [f"d{i:03}" for i in range(n)]
    return cr.Features.from_arrays(query, item, matrix, grade=grade)


@pytest.fixture(scope="module")
def features():
    return make_features()


@pytest.fixture(scope="module")
def truth(features):
    return features.items.frame().with_columns(grade=features.grade)


@pytest.fixture(scope="module")
def grades(truth):
    return simulate.simulate(truth, annotators=10, noise="normal(0.8,0.1)", per_item=4, seed=1).judgments


@pytest.mark.parametrize("ranker", ["list_net", "ListMLE", "rank-svm", "lambda_mart"])
@pytest.mark.parametrize("aggregator", ["auto", "dawid_skene", "borda", None])
def test_rankers_learn_from_grades(features, truth, grades, ranker, aggregator):
    params = {"n_trees": 30, "min_leaf": 5} if ranker == "lambda_mart" else None
    fit = cr.train(grades, features, ranker, aggregator, params=params)
    table = cr.evaluate(cr.rank(fit, features), truth, ["ndcg@10"])
    assert table["value"][0] > 0.9
    assert (fit.consensus is None) == (aggregator is None)


@pytest.mark.parametrize("kind", ["preference", "ranking"])
def test_rankers_learn_from_other_kinds(features, truth, kind):
    noise = {"preference": "flip(0.1..0.3)", "ranking": "mallows(0.5)"}[kind]
    votes = simulate.simulate(truth, annotators=10, noise=noise, kind=kind, seed=1).judgments
    for ranker in ("list_net", "list_mle"):
        fit = cr.train(votes, features, ranker, "borda")
        assert cr.evaluate(cr.rank(fit, features), truth, ["ndcg@10"])["value"][0] > 0.85
    assert fit.quality is not None


def test_frames_and_files_do_as_well(features, grades, tmp_path):
    table = features.items.frame().hstack(pl.DataFrame(features.matrix, schema=list(features.names)))
    table.write_csv(tmp_path / "f.csv")
    write_letor(features, tmp_path / "f.txt")
    grades.frame().write_csv(tmp_path / "g.csv")
    expected = cr.rank(cr.train(grades, features, "list_net"), features)
    fit = cr.train(grades.frame().to_dict(as_series=False), table, "list_net")
    fit.save(tmp_path / "model")
    for model in (fit, fit.ranker, tmp_path / "model", str(tmp_path / "model")):
        for given in (table, tmp_path / "f.csv", str(tmp_path / "f.txt")):
            found = cr.rank(model, given)
            assert found.select("query", "item", "rank").equals(expected.select("query", "item", "rank"))
            np.testing.assert_allclose(found["score"], expected["score"], atol=1e-9)
    assert cr.train(str(tmp_path / "g.csv"), tmp_path / "f.txt", "list_net").n_items == len(features)


def test_ranks_are_within_queries_and_best_first(features, grades):
    table = cr.rank(cr.train(grades, features, "list_net"), features)
    assert table.columns == ["query", "item", "score", "rank"]
    for _, part in table.group_by("query"):
        assert part["rank"].to_list() == list(range(1, 9))
        assert part["score"].is_sorted(descending=True)


def test_a_single_query_needs_no_name():
    votes = {"item": ["x", "y", "x", "y"], "annotator": ["a", "a", "b", "b"], "grade": [3, 1, 2, 1]}
    table = cr.rank(cr.train(votes, {"item": ["x", "y", "z"], "f": [3, 1, 5]}, "list_net"), {"item": ["v"], "f": [0]})
    assert table.columns == ["item", "score", "rank"]
    fit = cr.train(votes, {"query": ["q", "q"], "item": ["x", "y"], "f": [3, 1]}, "list_net")
    assert fit.n_items == 2


def test_grades_of_the_features_will_do(features):
    fit = cr.train(None, features, "list_net")
    np.testing.assert_allclose(fit.ranker.weights_, cr.rankers.ListNet().fit(features).weights_, atol=1e-12)
    with pytest.raises(JudgmentError, match="neither judgments nor grades in the features"):
        cr.train(None, {"item": ["x"], "f": [1]})


def test_parts_can_be_given_themselves(features, grades):
    own = cr.train(grades, features, cr.rankers.ListNet(ridge=3.0), cr.aggregators.MeanGrade(alpha=1.0))
    named = cr.train(
        grades, features, "list_net", "mean_grade", params={"ridge": "3"}, aggregator_params={"alpha": 1.0}
    )
    np.testing.assert_array_equal(own.ranker.weights_, named.ranker.weights_)
    assert named.consensus.params["alpha"] == 1.0


def test_gain_is_linear_for_scores_unless_it_is_set(features, grades):
    def gain(aggregator, **params):
        return cr.train(grades, features, aggregator=aggregator, params={"n_trees": 1, **params}).ranker.gain

    assert gain("mean_grade") == "exponential"
    assert gain("borda") == "linear"
    assert gain("borda", gain="exponential") == "exponential"
    assert gain("mean_grade", gain="given") == "given"


@pytest.mark.parametrize("validation", [0.25, "features", "path", "truth", "ranks"])
def test_trees_stop_by_validation_queries(features, grades, truth, validation, tmp_path):
    held = make_features(seed=9, n_queries=6)
    write_letor(held, tmp_path / "vali.txt")
    known = held.items.frame().with_columns(grade=held.grade)
    given = {
        "features": held, "path": str(tmp_path / "vali.txt"), "truth": (held, known[:20]),
        "ranks": (held, known.select("query", "item", rank=4 - pl.col("grade"))),
    }.get(validation, validation)  # fmt: skip
    told = []
    fit = cr.train(
        grades, features, params={"n_trees": 40, "min_leaf": 3, "patience": 3}, validation=given,
        progress=lambda *step: told.append(step),
    )  # fmt: skip
    curve = fit.ranker.curve_
    assert curve["valid"].null_count() == 0
    assert fit.ranker.n_trees_ == curve["iteration"][curve["valid"].arg_max()]
    assert told[-1][1:] == (40, "lambda_mart")
    assert fit.n_queries == (9 if validation == 0.25 else 12)


def test_the_same_seed_gives_the_same_ranker(features, grades):
    params = {"n_trees": 10, "feature_share": 0.5}
    a, b, c = (cr.train(grades, features, params=params, validation=0.2, seed=seed) for seed in (1, 1, 2))
    assert cr.rank(a, features).equals(cr.rank(b, features))
    assert not cr.rank(a, features).equals(cr.rank(c, features))


def test_mistakes_are_said_in_one_sentence(features, grades, truth, tmp_path):
    pairs = {"query": ["q"], "left": ["x"], "right": ["y"], "winner": ["x"]}
    cases = [
        ({"ranker": "lamda_mart"}, "did you mean 'lambda_mart'"),
        ({"aggregator": "meen_grade"}, "did you mean 'mean_grade'"),
        ({"params": {"trees": 3}}, "lambda_mart has no parameter 'trees'"),
        ({"ranker": cr.rankers.ListNet(), "params": {"ridge": 1}}, "give them to the ranker itself"),
        ({"aggregator": None, "aggregator_params": {"alpha": 1}}, "goes with the name of an aggregator"),
        ({"aggregator": "bradley_terry"}, "takes preferences, not grades"),
        ({"validation": (features, pairs)}, "validation takes a truth of grades or ranks of items"),
        ({"validation": 3}, "must lie between 0 and 1"),
        ({"features": {"item": ["x"], "f": [1]}}, "there is no query in the features but several in the judgments"),
        ({"features": {"query": ["q"], "item": ["x"], "f": [1]}}, "none of the 96 judged items has features"),
        ({"features": str(tmp_path / "none.csv")}, "none.csv"),
        ({"judgments": {"item": ["x"]}}, "grade"),
    ]
    for given, message in cases:
        with pytest.raises((JudgmentError, ParameterError, UnknownNameError), match=message) as caught:
            cr.train(**{"judgments": grades, "features": features} | given)
        assert "\n" not in str(caught.value)


def test_what_cannot_be_ranked(features, grades, tmp_path):
    fit = cr.train(grades, features, "list_net")
    fewer = cr.Features(features.items, features.matrix[:, :3], features.names[:3])
    with pytest.raises(JudgmentError, match="the features lack '4'; add it or name other columns"):
        cr.rank(fit, fewer)
    with pytest.raises(JudgmentError, match="X has 3 features, but ListNet is expecting 4 features"):
        fit.predict(features.matrix[:, :3])
    (tmp_path / "model").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(JudgmentError, match=r"is damaged .its end is missing.; save the ranker again"):
        cr.rank(tmp_path / "model", features)


LEAKS = {"grade": 3, "label": 2, "relevance": 1, "true_grade": 3, "worker": 7, "session_id": 9, "rank": 1}
"""Columns that must not be learned from, with a value."""


def with_leaks(features, columns=tuple(LEAKS)):
    """The features as a table, the grade and the like beside the numbers and in front of them."""
    table = features.items.frame().hstack(pl.DataFrame(features.matrix, schema=["a", "score", "c", "d"]))
    leaks = [pl.Series(name, features.grade * LEAKS[name] + len(name)) for name in columns]
    return pl.DataFrame([*leaks[:2], *table, *leaks[2:]])


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_a_label_is_no_feature(features, grades, tmp_path, form):
    table = with_leaks(features)
    given = table if form == "frame" else tmp_path / f"f.{form}"
    if form != "frame":
        getattr(table, f"write_{form}")(given)
    said = r"left out of the features: 'grade', .*'rank' \(named like a judgment .* and 'worker', 'session_id' \(named"
    with pytest.warns(DataWarning, match=said):
        fit = cr.train(grades, given, "list_net")
    assert fit.ranker.feature_names_in_.tolist() == ["a", "score", "c", "d"]
    plain = cr.Features.from_arrays(features.items.query_ids(), features.items.ids, features.matrix)
    expected = cr.train(grades, plain, "list_net")
    np.testing.assert_allclose(fit.ranker.weights_, expected.ranker.weights_)
    # the model knows its features by name, wherever they stand and whatever else is there: nothing to warn of
    ranked = cr.rank(fit, given)
    assert ranked["item"].to_list() == cr.rank(expected, plain)["item"].to_list()
    mixed = table.select(reversed(table.columns)).with_columns(title=pl.lit("some text"))
    assert cr.rank(fit, mixed).equals(ranked)
    assert fit.predict(mixed).equals(fit.predict(table))
    fit.save(tmp_path / "model")
    assert cr.rank(tmp_path / "model", given).equals(ranked)


def test_features_can_be_named(features, grades, tmp_path):
    with_leaks(features).write_csv(tmp_path / "f.csv")
    named = cr.read_features(tmp_path / "f.csv", features=["label", "a"])
    assert (named.names, named.grade.tolist()) == (("label", "a"), (features.grade * 3 + 5).tolist())
    assert cr.train(grades, named, "list_net").ranker.importance()["feature"][0] == "label"
    assert cr.read_features(tmp_path / "f.csv", features=["grade"]).grade is None
    write_letor(features, tmp_path / "f.txt")
    assert cr.read_features(tmp_path / "f.txt", features=["3", "1"]).matrix.shape == (96, 2)
    with pytest.raises(JudgmentError, match=r"the features lack 'lable'; did you mean 'label'\?"):
        cr.read_features(tmp_path / "f.csv", features=["lable"])
    with pytest.raises(ParameterError, match="names 'a' twice"):
        cr.read_features(tmp_path / "f.csv", features=["a", "a"])


@pytest.mark.parametrize("form", ["csv", "parquet", "letor", "frame", "truth"])
def test_validation_files_have_their_grades_beside_the_features(features, grades, tmp_path, form):
    held = make_features(seed=9, n_queries=6)
    table = held.items.frame().hstack(pl.DataFrame(held.matrix, schema=list(held.names)))
    labelled = pl.DataFrame([pl.Series("relevance", held.grade), *table.select(reversed(table.columns))])
    given = tmp_path / f"v.{form}"
    if form == "letor":
        write_letor(held, given)
    elif form in ("csv", "parquet"):
        getattr(labelled, f"write_{form}")(given)
    else:
        truth = held.items.frame().with_columns(grade=held.grade)
        given = labelled if form == "frame" else (table.with_columns(label=pl.lit(0)), truth)
    fit = cr.train(grades, features, "list_net", validation=given)
    expected = cr.train(grades, features, "list_net", validation=held)
    assert fit.ranker.curve_["valid"].to_list() == pytest.approx(expected.ranker.curve_["valid"].to_list())


def test_a_validation_truth_of_other_items(features, grades):
    with pytest.raises(JudgmentError, match="the truth covers none of the validation items"):
        cr.train(grades, features, "list_net", validation=(features, {"query": ["z"], "item": ["d1"], "grade": [1]}))


def test_options_are_checked_before_the_work():
    # there are no such files, which would be said if they were looked for first
    files = {"judgments": "no.csv", "features": "no.csv"}
    for given, said in (
        ({"ranker": "list_net", "params": {"ridge": "0"}}, "ridge=0.0 must be"),
        ({"params": {"n_trees": 0}}, "n_trees=0 must be"),
        ({"params": {"shrubs": 1}}, "has no parameter 'shrubs'"),
        ({"aggregator": "dawid_skene", "aggregator_params": {"alhpa": 1}}, "did you mean 'alpha'"),
        ({"joint": "two_stage", "validation": 20}, "must lie between 0 and 1"),
        ({"joint": "jam", "params": {"n_cluster": 1}}, "did you mean 'n_clusters'"),
    ):
        with pytest.raises(ParameterError, match=said):
            cr.train(**files, **given)


def test_nothing_is_written_to_what_was_given(features, grades):
    before = features.matrix.copy()
    cr.train(grades, features, "list_net", None, validation=0.2)
    np.testing.assert_array_equal(features.matrix, before)


@pytest.mark.data
def test_rankers_from_noisy_grades_of_ohsumed(data_folder):
    from crowdrank import datasets

    found = datasets.load("letor-ohsumed")
    fold, known = found.folds[0], found.features
    query = known.items.query_ids().cast(pl.String)
    train, test = (query.is_in(part).to_numpy() for part in (fold.train, fold.test))
    truth = known.items.frame().with_columns(grade=known.grade)
    grades = simulate.simulate(truth.filter(train), annotators=30, noise="normal(0.7,0.2)", seed=0).judgments
    fit = cr.train(grades, known, "list_net", "dawid_skene")
    assert fit.n_items == train.sum()
    assert fit.n_unjudged == (~train).sum()
    scores = fit.predict(known)["score"].to_numpy()
    assert cr.metrics.ndcg(known.grade[test], scores[test], known.items.query[test], k=10, empty="zero") > 0.34


def test_a_joint_method_is_named_or_given(features, truth):
    votes = simulate.simulate(truth, annotators=10, noise="mallows(0.5)", kind="ranking", seed=1).judgments
    fit = cr.train(votes, features, joint="LTRMA-D")
    assert (fit.consensus.method, type(fit.ranker).__name__) == ("mallows", "ListMLE")
    given = cr.joint.TwoStage(aggregator=cr.aggregators.Mallows(), ranker=cr.rankers.ListMLE())
    same = cr.train(votes, features, joint=given)
    np.testing.assert_allclose(same.ranker.weights_, fit.ranker.weights_)
    other = cr.train(votes, features, "list_net", joint="ltrma-d")
    assert type(other.ranker).__name__ == "ListNet"
    plain = cr.train(votes, features, "list_mle", "mallows", joint="two_stage")
    np.testing.assert_allclose(plain.ranker.weights_, fit.ranker.weights_)


def test_what_a_joint_method_does_not_take_is_refused(features, truth, grades):
    given = cr.joint.TwoStage(aggregator=None, ranker=cr.rankers.ListNet())
    with pytest.raises(ParameterError, match="params= goes with the name of a joint method"):
        cr.train(grades, features, joint=given, params={"gain": "linear"})
    with pytest.raises(UnknownNameError, match=r"there is no joint method 'ltrma-e'; did you mean 'ltrma-d'\?"):
        cr.train(grades, features, joint="ltrma-e")


def test_trusted_annotators_reach_the_aggregator(features, truth):
    noise = "flip(0.3..0.4)"
    votes = simulate.simulate(truth, annotators=6, noise=noise, kind="preference", per_item=40, seed=1).judgments
    first = next(iter(votes.annotators))
    fit = cr.train(votes, features, "list_net", "crowd_bt", trusted=[first])
    alone = cr.aggregators.CrowdBT().fit(votes, trusted=[first])
    np.testing.assert_allclose(fit.consensus.scores, alone.scores)
    assert not np.allclose(fit.consensus.scores, cr.aggregators.CrowdBT().fit(votes).scores)


def test_known_items_reach_the_aggregator(features, truth, grades):
    known = truth.head(8)
    fit = cr.train(grades, features, "list_net", "dawid_skene", known=known)
    assert fit.consensus.frame().join(known, on=["query", "item"])["confidence"].min() == pytest.approx(1)
    with pytest.raises(ParameterError, match="MeanGrade takes no trusted="):
        cr.train(grades, features, "list_net", "mean_grade", trusted=["boss"])
    with pytest.raises(ParameterError, match="trusted= is for an aggregator, and there is none"):
        cr.train(grades, features, "list_net", None, trusted=["boss"])


def graded_by_a_crowd(n_reversed, n_queries=60, seed=0):
    """Grades of eight items a query by 20 annotators, five an item, some of whom grade in reverse; and 30 features."""
    rng = np.random.default_rng(seed)
    n = 8 * n_queries
    matrix = rng.normal(size=(n, 30)).round(3)
    true = np.digitize(matrix @ rng.normal(size=30) / 30**0.5, [-0.5, 0.3, 1.0])
    who = np.array([rng.permutation(20)[:5] for _ in range(n)])
    given = np.clip(np.round(true[:, None] + 0.6 * rng.normal(size=who.shape)), 0, 3)
    given = np.where(who < n_reversed, 3 - given, given)
    query, item = np.repeat([f"q{q:03}" for q in range(n_queries)], 8), np.array([f"d{i:04}" for i in range(n)])
    columns = {"query": np.repeat(query, 5), "item": np.repeat(item, 5), "grade": given.ravel()}
    grades = cr.Grades.from_frame({"annotator": [f"a{a:02}" for a in who.ravel()], **columns})
    return grades, cr.Features.from_arrays(query, item, matrix)


def learned_from(*arguments, **options):
    """The method that a ranker learns from, and what is said of it."""
    with collect_notices() as heard:
        fit = cr.train(*arguments, ranker="list_net", **options)
    return fit.consensus.method, [line for line in heard if line.startswith("method ")]


def test_a_ranker_learns_from_a_class_method_where_that_pays_on_held_out_queries():
    grades, features = graded_by_a_crowd(n_reversed=8)
    method, said = learned_from(grades, features)
    assert method == cr.aggregate(grades, want="grade").method == "ensemble"
    better = r"method ensemble, since a ranker that learns from it does better on held-out queries than from "
    assert re.fullmatch(better + r"mean_grade \(nDCG@10 0\.\d{3} against 0\.\d{3} on 60 queries\)", said[0])
    # neither names nor the order of rows play a part
    rng = np.random.default_rng(1)
    table, names = grades.frame(), rng.permutation(60)
    new = {f"q{q:03}": f"n{names[q]:03}" for q in range(60)}
    shuffled = table.with_columns(pl.col("query").replace(new)).sample(fraction=1, shuffle=True, seed=1)
    renamed = features.frame().with_columns(pl.col("query").replace(new)).sample(fraction=1, shuffle=True, seed=2)
    assert learned_from(shuffled, renamed) == (method, said)


def test_a_ranker_learns_from_mean_grades_where_a_class_method_does_not_pay():
    method, said = learned_from(*graded_by_a_crowd(n_reversed=0))
    assert method == "mean_grade"
    assert "and one that learns from ensemble is not clearly better on held-out queries (nDCG@10 0.9" in said[0]


@pytest.mark.parametrize("case", ["named", "parameters", "few queries", "missing features", "far apart"])
def test_targets_are_not_compared_where_that_cannot_be_or_is_not_asked(case):
    grades, features = graded_by_a_crowd(n_reversed=8, n_queries=19 if case == "few queries" else 20)
    options = {
        "named": {"aggregator": "mean_grade"}, "parameters": {"aggregator_params": {"alpha": 0.5}},
    }.get(case, {})  # fmt: skip
    if case == "missing features":
        matrix = features.matrix.copy()
        matrix[0, 0] = np.nan
        features = dataclasses.replace(features, matrix=matrix)
        assert auto_method(grades, "target", features=features) == METHODS["target"]
        return
    if case == "far apart":
        grades = dataclasses.replace(grades, grade=grades.grade * 1000)
    if case == "few queries":
        assert "nDCG@10" in learned_from(*graded_by_a_crowd(n_reversed=8, n_queries=20))[1][0]
    usual = [] if case == "named" else [f"method mean_grade, since {METHODS['target'].reason}"]
    assert learned_from(grades, features, **options) == ("mean_grade", usual)
