"""What all class methods hold to: one list of checks, each method with the options that change its steps."""

import warnings

import numpy as np
import polars as pl
import pytest

from crowdrank.data.judgments import Grades
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError, ParameterError
from crowdrank.kernels import confusion
from crowdrank.models.averages.majority_vote import MajorityVote
from crowdrank.registry import make

METHODS = [
    ("dawid_skene", {}),
    ("dawid_skene", {"ordinal": True}),
    ("dawid_skene", {"prior": "crowd"}),
    ("naive_bayes", {}),
    ("naive_bayes", {"prior": "estimated"}),
    ("glad", {}),
    ("glad", {"prior": "estimated"}),
    ("glad", {"errors": "own", "prior": "estimated"}),
    ("mace", {}),
    ("mace", {"inference": "em", "smoothing": 1.0}),
    ("ensemble", {}),
]
OPTIONS = {
    "dawid_skene": [{"alpha": 0.0}, {"alpha": -1.0}, {"max_iter": 0}],
    "naive_bayes": [{"a0": 0.0}, {"b0": -1.0}, {"max_iter": 0}],
    "glad": [{"errors": "odd"}, {"prior": "flat"}, {"ability_spread": 0.0}, {"ease_spread": -1.0}],
    "mace": [{"inference": "mcmc"}, {"prior": "flat"}, {"alpha": 0.0}, {"smoothing": -1.0}, {"n_restarts": 0}],
}
"""Values that each method refuses."""

UNTAUGHT = {"glad": ("ability", 1.0), "mace": ("spam_probability", 0.5)}
"""What is said of annotators whom nobody can be compared with."""

SEPARATE = ("dawid_skene", "naive_bayes", "glad", "mace")
each_method = pytest.mark.parametrize(("name", "options"), METHODS)
each_alone = pytest.mark.parametrize("name", SEPARATE)


def crowd(n_items=60, n_levels=3, n_annotators=8, per_item=4, right=0.7, seed=0):
    """Rows of annotators who are right so often and else give any other level, and the level of each item."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_levels, n_items)
    rows = []
    for item in range(n_items):
        for who in rng.permutation(n_annotators)[:per_item]:
            other = (truth[item] + rng.integers(1, n_levels)) % n_levels
            rows.append((f"a{who:02d}", "q", f"i{item:03d}", int(truth[item] if rng.random() < right else other)))
    return rows, truth


def never_falls(trace):
    return trace.log_likelihood is None or bool((np.diff(trace.log_likelihood) >= 0).all())


def own(name, **options):
    """The method without what is learned of confidence afterwards, which joins all queries."""
    return make("aggregator", name, {"calibrated": False, **options})


@each_method
def test_probabilities_scores_and_confidence(name, options):
    grades = Grades.from_rows(crowd()[0])
    consensus = make("aggregator", name, options).fit(grades)
    np.testing.assert_allclose(consensus.probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(consensus.scores, consensus.probabilities @ grades.level_values, rtol=1e-7, atol=1e-10)
    confidence = dict(consensus.frame()["item", "confidence"].iter_rows())
    assert confidence == dict(zip(consensus.items.ids, consensus.probabilities.max(axis=1), strict=True))
    assert len(confidence) == 60
    np.testing.assert_array_equal(
        consensus.probabilities[np.arange(60), consensus.grade], consensus.probabilities.max(axis=1)
    )
    np.testing.assert_allclose(consensus.quality.parameters["confusion"].sum(axis=2), 1)
    assert never_falls(consensus.trace)


@each_method
def test_nominal_grades_have_confidence_as_score(name, options):
    if options.get("ordinal"):
        pytest.skip("refuses grades without an order")
    rows = [("ann", "q", "x", "cat"), ("bob", "q", "x", "cat"), ("cy", "q", "x", "dog"), ("ann", "q", "y", "dog")]
    consensus = make("aggregator", name, options).fit(Grades.from_rows([*rows, ("bob", "q", "y", "dog")], nominal=True))
    assert consensus.frame().sort("item")["grade"].to_list() == ["cat", "dog"]
    np.testing.assert_allclose(consensus.scores, consensus.probabilities.max(axis=1))
    assert "bias" not in consensus.quality.parameters


@each_method
def test_a_level_that_nobody_gave(name, options):
    rows, _ = crowd(n_items=40)
    fit = make("aggregator", name, options).fit
    consensus = fit(Grades.from_rows(rows, levels=[0, 1, 2, 3]))
    assert consensus.levels == (0, 1, 2, 3)
    assert consensus.probabilities.shape == (40, 4)
    assert (consensus.probabilities[:, 3] == 0).all()
    np.testing.assert_allclose(consensus.scores, fit(Grades.from_rows(rows)).scores)


@each_method
def test_weights_count_as_numbers_of_grades(name, options):
    rows, _ = crowd(n_items=30)
    with pytest.warns(DataWarning, match="repeat"):
        doubled = Grades.from_rows(rows + rows[:50])
    table = pl.DataFrame(rows, schema=["annotator", "query", "item", "grade"], orient="row")
    weighted = Grades.from_frame(table.with_columns(weight=pl.Series([2.0] * 50 + [1.0] * (len(rows) - 50))))
    fit = make("aggregator", name, options).fit
    np.testing.assert_allclose(fit(doubled).scores, fit(weighted).scores, atol=1e-7)


@each_method
def test_one_grade_for_each_item_comes_back_with_a_warning(name, options):
    rows = [("ann", "q", f"i{k}", k % 3) for k in range(6)] + [("bob", "q", f"j{k}", k % 2) for k in range(4)]
    method = make("aggregator", name, options)
    with pytest.warns(DataWarning, match="no item was graded by two annotators"):
        consensus = method.fit(Grades.from_rows(rows))
    assert consensus.scores.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 0, 1]
    # nobody else says anything of their items
    assert np.ptp(consensus.quality.quality) == 0
    assert consensus.quality.parameters["lower"].max() < 0.1
    assert consensus.quality.parameters["upper"].min() > 0.9
    if name in UNTAUGHT:
        parameter, value = UNTAUGHT[name]
        assert consensus.quality.parameters[parameter].tolist() == [value, value]
    if name in SEPARATE:
        assert method.fit(Grades.from_rows([*rows, ("ann", "q", "j0", 0)]), start=consensus).trace.converged


@each_method
def test_nobody_ever_disagrees(name, options):
    rows = [(who, "q", f"i{k}", 2) for who in ("ann", "bob") for k in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        consensus = make("aggregator", name, options).fit(Grades.from_rows(rows))
    assert consensus.scores.tolist() == [2, 2, 2]
    assert consensus.quality.quality.tolist() == [0.5, 0.5]


@pytest.mark.filterwarnings("ignore:naive_bayes. the annotators are right 55%")
@each_method
def test_two_who_always_disagree_leave_ties_to_the_seed_and_not_to_names(name, options):
    rows = [("ann", "q", f"i{k}", k % 2) for k in range(8)] + [("bob", "q", f"i{k}", 1 - k % 2) for k in range(8)]
    grades = Grades.from_rows(rows)
    consensus = make("aggregator", name, options).fit(grades)
    np.testing.assert_allclose(consensus.probabilities, 0.5, atol=1e-6)
    assert consensus.quality.quality[0] == pytest.approx(consensus.quality.quality[1])
    chosen = [make("aggregator", name, options, seed=seed).fit(grades).grade for seed in range(20)]
    assert all(np.ptp(grade) == 0 for grade in chosen)
    assert {int(grade[0]) for grade in chosen} == {0, 1}


@each_method
def test_known_items_are_certain(name, options):
    rows, truth = crowd(n_items=120)
    known = pl.DataFrame({"query": ["q"] * 60, "item": [f"i{k:03d}" for k in range(60)], "grade": truth[:60]})
    taught = make("aggregator", name, options).fit(Grades.from_rows(rows), known=known)
    assert taught.grade[:60].tolist() == truth[:60].tolist()
    assert taught.probabilities.max(axis=1)[:60] == pytest.approx(np.ones(60), abs=1e-12)


@each_method
@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"query": ["q"], "item": ["i000"], "grade": [9]}, "outside the scale"),
        ({"query": ["q"], "item": ["nowhere"], "grade": [1]}, "not among the judged items"),
    ],
)
def test_bad_known_items_are_refused(name, options, known, message):
    with pytest.raises(JudgmentError, match=message):
        make("aggregator", name, options).fit(Grades.from_rows(crowd(n_items=20)[0]), known=known)


QUERIES_AND_ITEMS = ("query", 6), ("item", 20)


@each_alone
def test_a_start_of_another_method_is_refused(name):
    grades = Grades.from_rows(crowd(n_items=20)[0])
    with pytest.raises(ParameterError, match="start= is a consensus of majority_vote, which knows no"):
        make("aggregator", name).fit(grades, start=MajorityVote().fit(grades))


@pytest.mark.parametrize("name", [*SEPARATE, "ensemble"])
def test_per_query_takes_annotators_apart(name):
    one, _ = crowd(seed=1)
    two, _ = crowd(seed=2, right=0.55)
    grades = Grades.from_rows(one + [(who, "r", item, grade) for who, _, item, grade in two])
    apart = own(name, per_query=True).fit(grades)
    for rows, own_items in ((one, slice(60)), (two, slice(60, 120))):
        alone = own(name).fit(Grades.from_rows(rows))
        np.testing.assert_allclose(apart.probabilities[own_items], alone.probabilities, atol=1e-6)
    assert apart.quality.quality.shape == (8,)
    assert never_falls(apart.trace)


@each_alone
def test_too_few_passes_warn(name):
    with pytest.warns(ConvergenceWarning, match=f"{name} did not converge in 2 steps"):
        trace = own(name, max_iter=2).fit(Grades.from_rows(crowd(n_items=30)[0])).trace
    assert not trace.converged


@each_method
def test_no_grades(name, options):
    none = Grades.from_rows([("a", "q", "x", 3)]).select(np.zeros(1, bool))
    assert make("aggregator", name, options).fit(none).scores.tolist() == [0.0]


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name, values in OPTIONS.items() for wrong in values])
def test_values_out_of_range_are_refused(name, wrong):
    [(parameter, value)] = wrong.items()
    complaint = "choose one of" if isinstance(value, str) else "must be"
    with pytest.raises(ParameterError, match=f"{parameter}.*{complaint}"):
        make("aggregator", name, wrong)


@each_alone
def test_every_query_of_unnamed_annotators_has_a_fold(name, monkeypatch):
    rng, judged = np.random.default_rng(0), confusion.held_out_likelihoods
    names = {word: [f"{word}{number}" for number in rng.integers(0, most, 600)] for word, most in QUERIES_AND_ITEMS}

    def within_bounds(packed, *args, **options):
        n_levels, held_out = len(args[1]), args[2]
        assert max(packed.code) // n_levels < len(held_out)
        return judged(packed, *args, **options)

    monkeypatch.setattr(confusion, "held_out_likelihoods", within_bounds)
    grades = Grades.from_frame(names | {"grade": rng.integers(0, 3, 600)})
    method = make("aggregator", name, {"per_query": True})
    fits = [method.fit(grades).probabilities for _ in range(3)]
    assert all(np.array_equal(fits[0], fit) for fit in fits)


@each_alone
def test_classes_without_an_order_are_not_cut_into_levels(name):
    table = {"item": ["a", "a", "b"], "annotator": ["x", "y", "x"], "grade": ["red", "blue", "red"]}
    with pytest.raises(ParameterError, match="classes without an order cannot be cut into levels; leave bins= out"):
        make("aggregator", name, {"bins": 2}).fit(Grades.from_frame(table, nominal=True))
