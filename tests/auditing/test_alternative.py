"""The alternative annotator test: equal to an independent version on real sets, and exact where items are few."""

import itertools

import numpy as np
import polars as pl
import pytest
from tests.oracles import alternative as slow

import crowdrank as cr
from crowdrank.auditing.labels import Labels, Sides
from crowdrank.auditing.program_audit import alternative_test, below, rejections

NOMINAL = {"wax": True, "mtbench": True, "summeval": False, "lesion": False, "cebab_stars": False}


def parts(folder, name):
    """Each criterion of a set."""
    table = pl.read_csv(folder / "people-and-programs" / f"{name}.csv.gz", infer_schema_length=None)
    table = table.with_columns(pl.col("criterion").cast(pl.String).fill_null(""))
    return {key[0]: part for key, part in table.group_by("criterion", maintain_order=True)}


@pytest.mark.data
@pytest.mark.parametrize("name", NOMINAL)
@pytest.mark.parametrize("margin", [0.1, 0.2])
def test_equal_to_an_independent_version_on_real_sets(data_folder, name, margin):
    nominal = NOMINAL[name]
    for criterion, part in parts(data_folder, name).items():
        columns = {"grade": "label", "group": "kind"}
        frame = part.drop("criterion").with_columns(pl.col("label").cast(pl.String if nominal else pl.Float64))
        grades = cr.Grades.from_frame(frame, columns=columns, nominal=nominal)
        sides = Sides.of(grades, None, "group=person")
        labels = Labels.of(sides.judgments)
        people = labels.of_annotators(sides.is_person)
        rows = {}
        for item, who, kind, label in frame.select("item", "annotator", "kind", "label").iter_rows():
            rows.setdefault(kind, {}).setdefault(str(who), {})[item] = label
        score = (lambda a, b: float(a == b)) if nominal else (lambda a, b: -abs(a - b))
        for code in sides.programs:
            found = alternative_test(people, labels.by_cell(code), margin, 0.9, grades.annotators.ids)
            if found.table["n_items"].min() < 30:
                continue
            wanted = slow.alternative_test(rows["person"], rows["program"][str(sides.name(code))], score, margin)
            assert (found.winning_rate, found.advantage) == pytest.approx(wanted, abs=1e-12), (criterion, code)


def test_few_items_are_tested_by_all_signs():
    rng = np.random.default_rng(0)
    lead = rng.integers(-1, 2, 11).astype(float)
    gap = lead - 0.1
    sums = [np.dot(signs, np.abs(gap)) for signs in itertools.product((-1, 1), repeat=11)]
    assert below(lead, 0.1) == pytest.approx(np.mean(np.array(sums) <= gap.sum() + 1e-9))


def test_false_discoveries_by_hand():
    # 0.05 * k / (4 * (1 + 1/2 + 1/3 + 1/4)) = 0.006, 0.012, 0.018, 0.024
    assert rejections(np.array([0.02, 0.004, 0.013, 0.5])).tolist() == [False, True, False, False]
    assert rejections(np.array([0.02, 0.004, 0.013, 0.02])).tolist() == [True] * 4
    assert rejections(np.array([0.2])).tolist() == [False]


def judged(agreement, n=200, n_people=4, seed=0):
    """Grades 1 to 5 by people of one quality, and a program that agrees with the truth so often."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, n)
    rows = []
    for who in range(n_people):
        keep = rng.random(n) < 0.7
        grade = np.where(rng.random(n) < 0.6, truth, rng.integers(1, 6, n))
        rows += [(f"p{who}", "q", f"i{k}", int(grade[k])) for k in range(n) if keep[k]]
    grade = np.where(rng.random(n) < agreement, truth, rng.integers(1, 6, n))
    rows += [("bot", "q", f"i{k}", int(grade[k])) for k in range(n)]
    return cr.Grades.from_rows(rows)


@pytest.mark.parametrize(("agreement", "rate"), [(0.9, 1.0), (0.0, 0.0)])
def test_a_good_program_wins_and_a_random_one_loses(agreement, rate):
    sides = Sides.of(judged(agreement), None, "p*")
    labels = Labels.of(sides.judgments)
    found = alternative_test(
        labels.of_annotators(sides.is_person), labels.by_cell(sides.programs[0]), 0.1, 0.9,
        sides.judgments.annotators.ids,
    )  # fmt: skip
    assert found.winning_rate == rate
    assert found.lower < found.advantage < found.upper
    assert found.share_lost == 1.0 - rate
