"""Difficulty of items: found where grades show it and nowhere else, in the errors, in parts, beside other options."""

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.cluster.cut_judgments import CutJudgments
from tests.cluster.some_judgments import fitted

import crowdrank as cr
from crowdrank.aggregators import LatentScore
from crowdrank.api import touched_items
from crowdrank.cluster.executor import InMemory
from crowdrank.models.latent_score.model import hold_out_grades, lay_out
from crowdrank.models.latent_score.steps import Options, fit_scores


def graded(seed, spread, n_items=100, each=12, n_queries=1, n_levels=5):
    """Grades whose noise differs from item to item by this spread on the log scale; scores and difficulties."""
    rng = np.random.default_rng(seed)
    scores, difficulty = rng.normal(0, 1.5, n_items), spread * rng.normal(size=n_items)
    item = np.repeat(np.arange(n_items), each)
    who = np.concatenate([rng.permutation(30)[:each] for _ in range(n_items)])
    alpha, bias = rng.normal(1, 0.3, 30), rng.normal(0, 0.4, 30)
    seen = alpha[who] * scores[item] + bias[who] + np.exp(difficulty[item]) * rng.logistic(size=len(item))
    grade = np.searchsorted(np.linspace(-2, 2, n_levels - 1), seen)
    names = [f"i{number:03d}" for number in item]
    table = {"query": item * n_queries // n_items, "item": names, "annotator": who, "grade": grade}
    return cr.Grades.from_frame(table), scores, difficulty


def fit(judgments, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LatentScore(**given).fit(judgments)


def covered(consensus, scores):
    """Share of true ranks within 90 % intervals, in the order of the items."""
    table = consensus.intervals(0.9).sort("item")
    rank = np.argsort(np.argsort(-scores)) + 1
    return np.mean((rank >= table["rank_lower"].to_numpy()) & (rank <= table["rank_upper"].to_numpy()))


def test_intervals_cover_where_items_differ_in_difficulty():
    found, without = [], []
    for seed in range(4):
        grades, scores, difficulty = graded(seed, 0.9, each=15)
        consensus = fit(grades)
        assert consensus.estimates["difficulty_sd"] == pytest.approx(0.9, abs=0.3)
        assert np.corrcoef(consensus.estimates["difficulty"], difficulty)[0, 1] > 0.8
        found.append(covered(consensus, scores))
        without.append(covered(fit(grades, difficulty=False), scores))
    assert 0.86 < np.mean(found) < 0.95
    assert np.mean(without) < np.mean(found) - 0.03


def test_nothing_moves_where_items_are_equally_difficult():
    grades, _, _ = graded(0, 0.0)
    one, other = fit(grades), fit(grades, difficulty=False)
    assert "difficulty_sd" not in one.estimates
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(one.std_error, other.std_error)


def test_two_levels_and_pairs_have_no_difficulty():
    binary = fit(graded(1, 1.0, n_levels=2)[0])
    assert "difficulty_sd" not in binary.estimates
    pairs = fit(graded(1, 1.0, n_items=20)[0].as_preferences())
    assert "difficulty_sd" not in pairs.estimates


def test_parts_give_the_plain_fit_with_difficulties():
    grades, _, _ = graded(2, 0.9, n_queries=10)
    plain, found = fit(grades), fitted(LatentScore(), CutJudgments(grades, 4), InMemory())
    assert found.estimates["difficulty_sd"] == pytest.approx(plain.estimates["difficulty_sd"], rel=1e-9)
    assert found.trace.n_iter == plain.trace.n_iter
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.std_error, plain.std_error, rtol=1e-7)
    np.testing.assert_allclose(found.quality.quality, plain.quality.quality, atol=1e-3)


def test_weights_count_like_repeated_rows_with_difficulties():
    grades, _, _ = graded(3, 0.9, n_items=60, each=8)
    twice = fit(grades.select(np.repeat(np.arange(len(grades)), 2)))
    weighted = fit(replace(grades, weight=np.full(len(grades), 2.0)))
    assert "difficulty_sd" in weighted.estimates
    np.testing.assert_allclose(weighted.scores, twice.scores, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(weighted.std_error, twice.std_error, rtol=1e-8)


def test_a_fit_goes_on_from_a_former_one_with_difficulties():
    grades, _, _ = graded(2, 0.9)
    consensus = fit(grades)
    again = LatentScore().fit(grades, start=consensus)
    assert again.estimates["difficulty_sd"] == pytest.approx(consensus.estimates["difficulty_sd"], rel=0.05)
    np.testing.assert_allclose(again.scores, consensus.scores, atol=0.1)


def test_robust_errors_follow_the_difficulties():
    grades, _, difficulty = graded(4, 1.0, each=15)
    wide = cr.aggregate(grades, "latent_score", robust="annotator").std_error
    assert np.corrcoef(wide, difficulty)[0, 1] > 0.4


def test_difficulties_and_known_items_go_together():
    grades, scores, _ = graded(5, 0.9)
    known = {"query": [0, 0], "item": ["i000", "i001"], "score": scores[:2]}
    consensus = cr.aggregate(grades, "latent_score", known=known)
    assert "difficulty_sd" in consensus.estimates
    assert np.corrcoef(consensus.scores, scores)[0, 1] > 0.8


def test_items_are_read_anew_with_their_difficulty():
    grades, _, _ = graded(0, 0.9, each=15)
    before = fit(grades)
    assert before.estimates["difficulty_sd"] > 0.5
    items = [f"i{number:03d}" for number in range(60, 70)]
    rows = grades.frame().filter(pl.col("item").is_in(items))
    again = {row["item"]: row["score"] for row in touched_items(before, cr.Grades.from_frame(rows))}
    former = dict(zip(before.frame()["item"], before.frame()["score"], strict=True))
    assert again == pytest.approx({item: former[item] for item in items}, abs=0.05)


@pytest.mark.parametrize("seed", [0, 1])
def test_lapses_are_no_difficulty(seed):
    # random answers are further from the others on items at the ends of the scale, which so look more difficult
    rng = np.random.default_rng(seed)
    n_items, each, n_levels = 300, 8, 10
    scores, item = rng.normal(0, 3, n_items), np.repeat(np.arange(n_items), each)
    who = np.concatenate([rng.permutation(40)[:each] for _ in range(n_items)])
    alpha, bias = rng.normal(1, 0.2, 40), rng.normal(0, 0.4, 40)
    seen = alpha[who] * scores[item] + bias[who] + rng.logistic(size=len(item))
    grade = np.searchsorted(np.linspace(-6, 6, n_levels - 1), seen)
    grade = np.where(rng.random(len(item)) < 0.2, rng.integers(0, n_levels, len(item)), grade)
    table = {"query": "q", "item": item, "annotator": who, "grade": grade}
    grades = cr.Grades.from_frame(pl.DataFrame(table))
    assert fit_scores(lay_out(grades), Options(difficulty=True)).state.variance_of_difficulty > 0.05
    found, alike = fit(grades), fit(grades, difficulty=False)
    assert "difficulty_sd" not in found.estimates
    np.testing.assert_array_equal(found.scores, alike.scores)


def test_grades_are_held_out_from_every_item_that_has_several():
    grades, _, _ = graded(0, 0.5, n_items=40, each=3)
    grades = grades.select(np.arange(len(grades) - 2))  # one item has one grade
    layout = lay_out(grades)
    learned, held = hold_out_grades(layout, 0)
    sizes = [np.diff(of.kinds[0].cells.bounds) for of in (layout, learned, held)]
    np.testing.assert_array_equal(sizes[0], sizes[1] + sizes[2])
    assert sizes[1].min() == 1
    assert sizes[2][-1] == 0
    assert 0.1 < sizes[2].sum() / len(grades) < 0.3
    for before, one, other in ((of(layout), of(learned), of(held)) for of in (_by_annotator, _by_level)):
        np.testing.assert_allclose(before, one + other)
    turned = hold_out_grades(lay_out(grades.select(np.arange(len(grades))[::-1])), 0)[1].kinds[0].cells
    assert turned.level.tolist() == held.kinds[0].cells.level.tolist()
    # other names of annotators, whose grades then stand in another order within an item
    renamed = grades.frame().with_columns(annotator=pl.col("annotator").cast(pl.Int64) * 7 % 31)
    others = hold_out_grades(lay_out(cr.Grades.from_frame(renamed)), 0)[1].kinds[0].cells
    assert np.sort(others.level + 100 * others.cell).tolist() == np.sort(turned.level + 100 * turned.cell).tolist()


def _by_annotator(layout):
    return layout.kinds[0].weight


def _by_level(layout):
    return layout.kinds[0].shares * layout.kinds[0].weight.sum()


def test_mistakes_at_random_are_no_difficulty():
    rng = np.random.default_rng(0)
    n_items, each, n_levels = 200, 5, 10
    item, truth = np.repeat(np.arange(n_items), each), rng.integers(0, n_levels, n_items)
    grade = np.where(rng.random(len(item)) < 0.75, truth[item], rng.integers(0, n_levels, len(item)))
    who = np.concatenate([rng.choice(20, each, replace=False) for _ in range(n_items)])
    table = {"query": item % 4, "item": item, "annotator": who, "grade": grade}
    classes = cr.Grades.from_frame(table)
    found, alike = fit(classes), fit(classes, difficulty=False)
    assert "difficulty_sd" not in found.estimates
    assert found.scores.tolist() == alike.scores.tolist()
    parted = fitted(LatentScore(), CutJudgments(classes, 3), InMemory())
    np.testing.assert_allclose(parted.scores, alike.scores, rtol=1e-9, atol=1e-9)
    # from a start with difficulties as well
    difficult = replace(
        found, estimates={**found.estimates, "difficulty_sd": 1.2, "difficulty": rng.normal(0, 1.2, classes.n_items)}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "difficulty_sd" not in LatentScore().fit(classes, start=difficult).estimates
