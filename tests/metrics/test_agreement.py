"""Agreement coefficients against published examples, slow twins, krippendorff, scikit-learn and statsmodels."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import measures as slow

from crowdrank.data.grades import Grades
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.metrics import cohen_kappa, fleiss_kappa, krippendorff_alpha

LEVELS = ["nominal", "ordinal", "interval"]

# K. Krippendorff, Computing Krippendorff's alpha-reliability (2011), example C: four annotators, twelve items
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]

# J. L. Fleiss, Measuring nominal scale agreement among many raters (1971); the table of ten items and fourteen
# annotators that is commonly worked through: kappa = .210
TABLE = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def long(rows):
    """Item, annotator and grade arrays of a table of annotators x items."""
    matrix = np.array(rows, dtype=float)
    annotator, item = np.indices(matrix.shape)
    return item.ravel(), annotator.ravel(), matrix.ravel()


def as_grades(item, annotator, grade, **kind):
    kept = ~np.isnan(grade)
    columns = {"item": item[kept], "annotator": annotator[kept], "grade": grade[kept]}
    return Grades.from_frame({name: values.astype(int).tolist() for name, values in columns.items()}, **kind)


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(level, value):
    item, annotator, grade = long(PUBLISHED)
    assert krippendorff_alpha(item, annotator, grade, level=level) == pytest.approx(value, abs=5e-4)
    assert krippendorff_alpha(item, grade=grade, level=level) == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_krippendorff_package_agrees(level):
    package = pytest.importorskip("krippendorff")
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 5, (8, 60)) + rng.integers(0, 3, 60).astype(float)
    matrix[rng.random(matrix.shape) < 0.6] = np.nan
    expected = package.alpha(reliability_data=matrix, level_of_measurement=level)
    assert krippendorff_alpha(*long(matrix), level=level) == pytest.approx(expected)
    if level == "interval":
        expected = package.alpha(reliability_data=matrix / 3 + 1e6, level_of_measurement=level)
        assert krippendorff_alpha(*long(matrix / 3 + 1e6), level=level) == pytest.approx(expected, rel=1e-6)


@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=6, max_size=30))
@settings(deadline=None)
def test_alpha_equals_its_twin(rows):
    items, values = zip(*rows, strict=True)
    for level in LEVELS:
        expected = slow.krippendorff_alpha(items, values, level)
        ours = krippendorff_alpha(items, grade=values, level=level)
        assert np.isnan(ours) if expected is None else ours == pytest.approx(expected, abs=1e-9)


def test_many_levels_and_items_take_the_sparse_way(monkeypatch):
    rng = np.random.default_rng(1)
    item, grade = rng.integers(0, 300, 2000), rng.integers(0, 40, 2000)
    dense = krippendorff_alpha(item, grade=grade, level="nominal"), fleiss_kappa(item, grade=grade)
    monkeypatch.setattr("crowdrank.metrics.agreement._TABLE_CELLS", 1)
    assert (krippendorff_alpha(item, grade=grade, level="nominal"), fleiss_kappa(item, grade=grade)) == dense


def test_alpha_takes_grades():
    item, annotator, grade = long(PUBLISHED)
    grades = as_grades(item, annotator, grade)
    assert krippendorff_alpha(grades) == pytest.approx(0.815, abs=5e-4)
    assert krippendorff_alpha(grades, level="interval") == pytest.approx(0.849, abs=5e-4)
    nominal = as_grades(item, annotator, grade, nominal=True)
    assert krippendorff_alpha(nominal) == pytest.approx(0.743, abs=5e-4)
    with pytest.raises(ParameterError, match="nominal grades have no order"):
        krippendorff_alpha(nominal, level="interval")


def test_alpha_of_text_is_nominal_only():
    item, grade = ["x", "x", "y", "y"], ["good", "bad", "bad", "bad"]
    assert krippendorff_alpha(item, grade=grade, level="nominal") == pytest.approx(0)
    assert krippendorff_alpha(pl.Series(item), grade=pl.Series(grade), level="nominal") == pytest.approx(0)
    with pytest.raises(JudgmentError, match="level='nominal'"):
        krippendorff_alpha(item, grade=grade)


def test_fleiss_of_the_published_table():
    item, grade = np.repeat(np.arange(10), 14), np.concatenate([np.repeat(np.arange(5), row) for row in TABLE])
    assert fleiss_kappa(item, grade=grade) == pytest.approx(0.210, abs=5e-4)
    assert fleiss_kappa(item, grade=grade) == pytest.approx(slow.fleiss_kappa(TABLE))
    shuffle = np.random.default_rng(2).permutation(len(item))
    text = np.array(list("abcde"))[grade]
    assert fleiss_kappa(item[shuffle], grade=text[shuffle]) == pytest.approx(slow.fleiss_kappa(TABLE))
    assert fleiss_kappa(as_grades(item, np.tile(np.arange(14), 10), grade)) == pytest.approx(slow.fleiss_kappa(TABLE))


def test_statsmodels_agrees():
    reliability = pytest.importorskip("statsmodels.stats.inter_rater")
    matrix = np.random.default_rng(3).integers(0, 4, (50, 5))
    table, _ = reliability.aggregate_raters(matrix)
    item = np.repeat(np.arange(50), 5)
    assert fleiss_kappa(item, grade=matrix.ravel()) == pytest.approx(reliability.fleiss_kappa(table))


def test_fleiss_with_unequal_numbers_by_hand():
    # x: a a b (1 of 3 pairs agree), y: b b (1 of 1), z: a alone; mean shares a: (2/3 + 0 + 1) / 3 = 5/9
    kappa = fleiss_kappa(list("xxxyyz"), grade=list("aabbba"))
    chance = (5 / 9) ** 2 + (4 / 9) ** 2
    assert kappa == pytest.approx((2 / 3 - chance) / (1 - chance))


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_scikit_learn_agrees_on_cohen(weights):
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(4)
    first = rng.integers(0, 4, 200)
    second = np.clip(first + rng.integers(-1, 2, 200), 0, 4)
    expected = cohen_kappa_score(first, second, weights=weights)
    assert cohen_kappa(first, second, weights=weights) == pytest.approx(expected)
    words = np.array(["bad", "poor", "fair", "good", "best"])
    levels = words.tolist()
    assert cohen_kappa(words[first], words[second], weights=weights, levels=levels) == pytest.approx(expected)
    rows = [
        (f"a{who}", "q", f"i{i:03d}", int(g))
        for who, column in enumerate((first, second))
        for i, g in enumerate(column)
    ]
    grades = Grades.from_rows([*rows, ("a0", "q", "alone", 1), ("a2", "q", "i000", 1)])
    assert cohen_kappa(grades, weights=weights, annotators=("a0", "a1")) == pytest.approx(expected)


def test_cohen_by_hand():
    # 20 both yes, 5 yes/no, 10 no/yes, 15 both no: observed .7, chance .5
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)


def test_no_variation_is_undefined():
    assert np.isnan(krippendorff_alpha([1, 1, 2, 2], grade=[3, 3, 3, 3]))
    assert np.isnan(krippendorff_alpha([1, 1, 2, 2], grade=[3, 3, 3, 3], level="nominal"))
    assert np.isnan(fleiss_kappa([1, 1, 2, 2], grade=[3, 3, 3, 3]))
    assert np.isnan(cohen_kappa([1, 1], [1, 1]))


def three():
    return Grades.from_rows(
        [("a", "q", "x", 1), ("b", "q", "x", 2), ("c", "q", "y", 2), ("a", "q", "z", 2), ("a", "q", "z", 1)]
    )


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: krippendorff_alpha([1, 2], grade=[1, 2]), JudgmentError, "no item has two grades"),
        (lambda: fleiss_kappa([1, 2], grade=[1, 2]), JudgmentError, "no item has two grades"),
        (lambda: krippendorff_alpha([1, 1]), ParameterError, "grades are missing"),
        (lambda: krippendorff_alpha([1, 1], grade=[1.0, 2.0, 3.0]), JudgmentError, "item has shape"),
        (lambda: krippendorff_alpha([1, 1], [1], [1.0, 2.0]), JudgmentError, "annotator has shape"),
        (lambda: krippendorff_alpha([1, 1], grade=[[1, 2]]), JudgmentError, "grade has shape"),
        (lambda: krippendorff_alpha([1, 1], grade=[np.nan, np.nan]), JudgmentError, "no grade"),
        (lambda: krippendorff_alpha([], grade=[]), JudgmentError, "no grade"),
        (lambda: krippendorff_alpha([1, 1], grade=[1, np.inf]), JudgmentError, "row 2 is infinite"),
        (lambda: krippendorff_alpha([1, None], grade=[1, 2]), JudgmentError, "item is missing in row 2"),
        (lambda: krippendorff_alpha([1, 1], grade=[1, 2], level="ratio"), ParameterError, "'interval'"),
        (lambda: krippendorff_alpha(three(), grade=[1]), ParameterError, "already"),
        (lambda: cohen_kappa([1, 2], [1]), JudgmentError, "same length"),
        (lambda: cohen_kappa([], []), JudgmentError, "same length"),
        (lambda: cohen_kappa([1, np.nan], [1, 2]), JudgmentError, "missing"),
        (lambda: cohen_kappa([1, 2], [1, 2], weights="cubic"), ParameterError, "'quadratic'"),
        (lambda: cohen_kappa(["a", "b"], ["b", "a"], weights="linear"), JudgmentError, "levels="),
        (lambda: cohen_kappa([1, 2], [1, 3], levels=[1, 2]), JudgmentError, "grade 3"),
        (lambda: cohen_kappa(three()), JudgmentError, "there are 3"),
        (lambda: cohen_kappa(three(), [1, 2]), ParameterError, "second argument"),
        (lambda: cohen_kappa(three(), annotators=("a", "b")), JudgmentError, "twice"),
        (lambda: cohen_kappa(three(), annotators=("b", "c")), JudgmentError, "no item in common"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
