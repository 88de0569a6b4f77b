"""Calibrated probabilities: sure where annotators are independent, doubtful where they share mistakes."""

from dataclasses import replace

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.models.classes import coded_grades
from crowdrank.models.classes.coded_grades import ClassRows
from crowdrank.models.classes.dawid_skene import DawidSkene
from crowdrank.models.classes.glad import GLAD
from crowdrank.models.classes.mace import MACE
from crowdrank.models.classes.naive_bayes import NaiveBayes

METHODS = (DawidSkene, NaiveBayes, GLAD, MACE)


def crowd(seed=0, n_items=300, n_annotators=24, per_item=8, right=0.8, hard=0.0, n_levels=4):
    """Grades of classes; on hard items half of the answers are one and the same wrong class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_levels, n_items)
    lure = (truth + rng.integers(1, n_levels, n_items)) % n_levels
    difficult = rng.random(n_items) < hard
    rows = []
    for item in range(n_items):
        for who in rng.choice(n_annotators, per_item, replace=False):
            answer = truth[item] if rng.random() < right else (truth[item] + rng.integers(1, n_levels)) % n_levels
            answer = lure[item] if difficult[item] and rng.random() < 0.5 else answer
            rows.append((f"a{who:02d}", "q", f"i{item:03d}", f"c{answer}"))
    return rows, truth


def loss_and_share_right(consensus, truth, sure=0.99):
    """Log-loss of the true class, and how often the surest items are right."""
    code = np.array([int(item[1:]) for item in consensus.items.ids])
    chance = consensus.probabilities[np.arange(len(code)), truth[code]]
    high = consensus.probabilities.max(axis=1) >= sure
    right = consensus.probabilities.argmax(axis=1) == truth[code]
    return float(-np.log(np.maximum(chance, 1e-6)).mean()), float(right[high].mean()) if high.any() else 1.0


@pytest.mark.parametrize("method", METHODS)
def test_independent_annotators_keep_what_the_model_says(method):
    rows, truth = crowd(n_items=500, per_item=5, right=0.7)
    grades = cr.Grades.from_rows(rows, nominal=True)
    own, found = method(calibrated=False).fit(grades), method().fit(grades)
    assert found.estimates["calibration"]["correlation"] < 0.1
    assert loss_and_share_right(found, truth)[0] < loss_and_share_right(own, truth)[0] + 0.05
    np.testing.assert_array_equal(found.grade, own.grade)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_items_that_mislead_annotators_make_all_of_them_doubtful(method):
    rows, truth = crowd(hard=0.4)
    grades = cr.Grades.from_rows(rows, nominal=True)
    own, found = method(calibrated=False).fit(grades), method().fit(grades)
    assert found.estimates["calibration"]["correlation"] > 0.1
    assert loss_and_share_right(found, truth)[0] < 0.6 * loss_and_share_right(own, truth)[0]
    assert loss_and_share_right(own, truth)[1] < 0.9 < loss_and_share_right(found, truth)[1]
    np.testing.assert_array_equal(found.grade, own.grade)


def leaning_crowd(seed=1, n_items=400, n_annotators=40, per_item=5):
    """Grades of two classes by a crowd of which two in three hardly look and mostly say 1."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < 0.45).astype(int)
    rows = []
    for item in range(n_items):
        for who in rng.choice(n_annotators, per_item, replace=False):
            looks = rng.random() < (0.75 if who % 3 == 0 else 0.1)
            answer = truth[item] if looks else int(rng.random() < 0.85)
            rows.append((f"a{who:02d}", "q", f"i{item:03d}", f"c{answer}"))
    return rows, truth


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("method", [NaiveBayes(errors="even"), GLAD(), DawidSkene(prior="none"), NaiveBayes(), MACE()])
def test_a_model_too_plain_for_its_crowd_is_no_surer_than_the_hierarchy(method):
    rows, truth = leaning_crowd()
    grades = cr.Grades.from_rows(rows, nominal=True)
    votes = loss_and_share_right(cr.aggregate(grades, "majority_vote"), truth)[0]
    found, own = method.fit(grades), replace(method, calibrated=False).fit(grades)
    assert loss_and_share_right(found, truth)[0] < 0.8 * votes
    # the first three are far too sure by themselves, and what is cautious costs the others little
    too_sure = loss_and_share_right(own, truth)[0] > 0.8 * votes
    assert too_sure == (method in (NaiveBayes(errors="even"), GLAD(), DawidSkene(prior="none")))
    assert loss_and_share_right(found, truth)[0] < loss_and_share_right(own, truth)[0] + (-0.3 if too_sure else 0.15)
    assert loss_and_share_right(found, truth)[1] >= 0.95
    np.testing.assert_array_equal(found.grade, own.grade)
    # what is said of the crowd is the same whatever the method
    said = found.estimates["calibration"]
    assert [said[name] for name in ("correlation", "shared_error")] == pytest.approx(
        [DawidSkene().fit(grades).estimates["calibration"][name] for name in ("correlation", "shared_error")], abs=0.02
    )


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("method", [NaiveBayes(errors="even"), NaiveBayes(errors="own"), MACE(), GLAD()])
def test_items_that_are_even_anyway_do_not_say_how_much_is_given_away(method):
    # the one item with two answers is even but for the last digit, which used to decide on the others
    columns = {"annotator": ["ann", "bob", "ann", "bob"], "query": ["q1", "q1", "q1", "q2"], "item": list("aaba")}
    columns |= {"grade": [0, 1, 0, 1], "weight": [1, 1, 2, 2]}
    again = [0, 1, 2, 2, 3, 3]
    doubled = {name: [values[row] for row in again] for name, values in columns.items() if name != "weight"}
    weighted = cr.Grades.from_frame(columns)
    for grades in (weighted, cr.Grades.from_frame(doubled, duplicates="keep")):
        np.testing.assert_allclose(method.fit(grades).scores, method.fit(weighted).scores, atol=1e-9)


def test_given_accuracies_are_not_doubted_by_the_hierarchy():
    rows, _ = leaning_crowd(n_items=60)
    grades = cr.Grades.from_rows(rows, nominal=True)
    given = {who: 0.8 if int(who[1:]) % 3 == 0 else 0.52 for who in grades.annotators}
    said = NaiveBayes().fit(grades, accuracies=given).estimates["calibration"]
    assert said["tempering"] == said["correlation"]


@pytest.mark.filterwarnings("ignore")
def test_names_rows_weights_and_known_items():
    rows, truth = crowd(n_items=80, hard=0.4)
    first = DawidSkene().fit(cr.Grades.from_rows(rows, nominal=True))
    renamed = [("z" + who[::-1], query, "y" + item, grade) for who, query, item, grade in reversed(rows)]
    again = DawidSkene().fit(cr.Grades.from_rows(renamed, nominal=True))
    assert again.estimates["calibration"] == pytest.approx(first.estimates["calibration"])
    twice = {"item": [r[2] for r in rows], "annotator": [r[0] for r in rows], "grade": [r[3] for r in rows]}
    weighted = cr.Grades.from_frame({**twice, "weight": [2.0] * len(rows)}, nominal=True)
    doubled = cr.Grades.from_frame(
        {name: values * 2 for name, values in twice.items()}, nominal=True, duplicates="keep"
    )
    one, other = (DawidSkene().fit(grades) for grades in (weighted, doubled))
    assert one.estimates["calibration"] == pytest.approx(other.estimates["calibration"])
    known = {"item": [f"i{k:03d}" for k in range(10)], "grade": [f"c{k}" for k in truth[:10]]}
    certain = DawidSkene().fit(cr.Grades.from_rows(rows, nominal=True), known=known)
    assert certain.probabilities[np.arange(10), truth[:10]] == pytest.approx(np.ones(10))


def test_a_shared_mistake_is_a_finding_and_a_few_known_answers_turn_it():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 120)
    # 12 annotators take most items of class 1 for 0 and most of class 0 for 1; 8 know better
    rows = []
    for who in range(20):
        right = 0.25 if who < 12 else 0.85
        rows += [
            (f"a{who:02d}", "q", f"i{item:03d}", f"c{truth[item] if rng.random() < right else 1 - truth[item]}")
            for item in rng.choice(120, 60, replace=False)
        ]
    grades = cr.Grades.from_rows(rows, nominal=True)
    plain = DawidSkene().fit(grades)
    known = {"item": [f"i{k:03d}" for k in range(12)], "grade": [f"c{k}" for k in truth[:12]]}
    taught = DawidSkene().fit(grades, known=known)
    rest = np.array([int(item[1:]) for item in grades.items.ids]) >= 12
    of = truth[[int(item[1:]) for item in grades.items.ids]]
    assert (plain.grade[rest] == of[rest]).mean() < 0.3
    assert (taught.grade[rest] == of[rest]).mean() > 0.9


def test_the_finding_says_how_many_annotators_count():
    rows, _ = crowd(hard=0.4)
    grades = cr.Grades.from_rows(rows, nominal=True)
    found = cr.findings(DawidSkene().fit(grades), grades).of("shared_errors")
    assert found.severity == "warning"
    assert found.numbers["effective_each"] < 0.7 * found.numbers["n_each"]
    assert "even many like them would settle on a wrong class" in found.sentence
    independent = cr.Grades.from_rows(crowd(n_items=500, per_item=5, right=0.7)[0], nominal=True)
    assert cr.findings(DawidSkene().fit(independent), independent).of("shared_errors") is None


def asked_again_where_annotators_differ(seed=0, n_items=400, n_annotators=30, n_levels=4, right=0.7):
    """Two answers for each item by independent annotators, and three more where the two differ, with their times."""
    rng = np.random.default_rng(seed)
    truth, rows = rng.integers(0, n_levels, n_items), []
    for item, level in enumerate(truth):
        answers = np.where(rng.random(5) < right, level, (level + rng.integers(1, n_levels, 5)) % n_levels)
        people = rng.choice(n_annotators, 5, replace=False)
        rows += [
            (f"a{people[place]:02d}", f"i{item:03d}", f"c{answers[place]}", float(place))
            for place in range(2 if answers[0] == answers[1] else 5)
        ]
    return dict(zip(("annotator", "item", "grade", "time"), zip(*rows, strict=True), strict=True)), truth


@pytest.mark.parametrize("method", METHODS)
def test_asking_again_where_annotators_differ_raises_no_doubt_about_independent_ones(method):
    columns, truth = asked_again_where_annotators_differ()
    grades = cr.Grades.from_frame(columns, nominal=True)
    own, found = method(calibrated=False).fit(grades), method().fit(grades)
    assert found.estimates["calibration"]["correlation"] < 0.1
    assert loss_and_share_right(found, truth)[0] < loss_and_share_right(own, truth)[0] + 0.05
    # from all others, later ones too, each first answer looks as if annotators depended on each other
    timeless = method().fit(cr.Grades.from_frame({k: v for k, v in columns.items() if k != "time"}, nominal=True))
    assert timeless.estimates["calibration"]["correlation"] > 0.15


def test_answers_at_one_time_are_predicted_from_each_other_and_rows_may_stand_in_any_order():
    rows, _ = crowd(n_items=80, hard=0.4)
    columns = {"annotator": [r[0] for r in rows], "item": [r[2] for r in rows], "grade": [r[3] for r in rows]}
    without = DawidSkene().fit(cr.Grades.from_frame(columns, nominal=True)).estimates["calibration"]
    at_once = DawidSkene().fit(cr.Grades.from_frame({**columns, "time": [7.0] * len(rows)}, nominal=True))
    assert at_once.estimates["calibration"] == pytest.approx(without)
    times = {**columns, "time": np.random.default_rng(1).permutation(len(rows)).astype(float)}
    turned = {name: list(values)[::-1] for name, values in times.items()}
    one, other = (DawidSkene().fit(cr.Grades.from_frame(given, nominal=True)) for given in (times, turned))
    assert one.estimates["calibration"] == pytest.approx(other.estimates["calibration"])
    assert one.estimates["calibration"]["correlation"] > 0.1


def random_labels(n_items, n_annotators, n_levels, seed, right=None):
    """Grades of classes by annotators who guess, or who are right in a share of cases, and the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_levels, n_items)
    given = rng.integers(0, n_levels, (n_items, n_annotators))
    if right is not None:
        wrong = (truth[:, None] + rng.integers(1, n_levels, given.shape)) % n_levels
        given = np.where(rng.random(given.shape) < right, truth[:, None], wrong)
    rows = [
        (f"a{who}", "q", f"i{item:03d}", f"c{given[item, who]:03d}")
        for item in range(n_items)
        for who in range(n_annotators)
    ]
    return cr.Grades.from_rows(rows, nominal=True), truth


def said_and_right(method, grades, truth):
    """Mean confidence, and the share of items that are right."""
    found = method.fit(grades)
    code = np.array([int(level[1:]) for level in found.levels])
    item = [int(one[1:]) for one in found.items.ids]
    said = found.probabilities[np.arange(len(item)), found.grade].mean()
    return float(said), float((code[found.grade] == truth[item]).mean())


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n_items", "n_annotators", "n_levels"), [(20, 3, 3), (40, 5, 10), (60, 10, 3)])
def test_of_pure_noise_nobody_is_sure(method, n_items, n_annotators, n_levels):
    said = [said_and_right(method(), *random_labels(n_items, n_annotators, n_levels, seed))[0] for seed in range(6)]
    assert np.mean(said) < 1.0 / n_levels + (0.1 if n_items == 20 else 0.05)


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("method", METHODS)
def test_a_good_crowd_is_believed_however_small(method):
    found = [said_and_right(method(), *random_labels(40, 5, 10, seed, right=0.8)) for seed in range(3)]
    said, right = np.mean(found, axis=0)
    assert right > 0.85
    assert abs(said - right) < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_where_nothing_shows_accuracies_a_grade_is_right_in_two_of_three_cases(method):
    grades = cr.Grades.from_rows([("a", "q", "x", 2), ("b", "q", "y", 0), ("a", "q", "z", 1)])
    with pytest.warns(cr.errors.DataWarning, match="no item was graded by two annotators"):
        found = method().fit(grades)
    assert found.scores.tolist() == [2.0, 0.0, 1.0]
    assert found.probabilities.max(axis=1) == pytest.approx(np.full(3, 2 / 3))


def test_the_sample_follows_from_ids_and_not_from_answers():
    rows, _ = crowd(n_items=80)
    other = [(who, query, item, f"c{(int(grade[1:]) + 1) % 4}") for who, query, item, grade in rows]
    one, turned = (cr.Grades.from_rows(part, nominal=True) for part in (rows, other))
    samples = [ClassRows.of(grades).sampled_items(100 * coded_grades.MOST_CELLS // 4 * 2) for grades in (one, turned)]
    assert 0 <= samples[0].sum() < 20
    halves = [ClassRows.of(grades).sampled_items(2 * coded_grades.MOST_CELLS // 4) for grades in (one, turned)]
    assert 20 < halves[0].sum() < 60
    for first, second in (samples, halves):
        np.testing.assert_array_equal(first, second)
