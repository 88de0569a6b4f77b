"""Confusion matrices and latent graders."""

import numpy as np
import pytest

from crowdrank import simulate
from crowdrank.errors import ParameterError


def test_grade_shares_of_the_latent_truth():
    drawn = simulate.draw_truth(5000, seed=1)
    shares = np.bincount(drawn.truth.grade.astype(int)) / len(drawn.z)
    # overlapping labels, section 5: about 59/21/12/6/2 %
    assert shares == pytest.approx([0.59, 0.21, 0.12, 0.06, 0.02], abs=0.015)
    assert drawn.truth.items.n_queries == 5000
    assert (np.searchsorted(simulate.CUTS, drawn.z) == drawn.truth.grade).all()


def test_latent_relevance_is_drawn_within_the_cuts_of_each_grade():
    grade = np.repeat([0, 1, 2], [700, 160, 140])
    drawn = simulate.latent_truth({"item": np.arange(1000), "grade": grade}, seed=3)
    assert (np.searchsorted(drawn.cuts, drawn.z) == drawn.truth.grade).all()
    assert drawn.z.mean() == pytest.approx(0, abs=0.1)
    assert drawn.z.std() == pytest.approx(1, abs=0.05)
    assert simulate.latent_truth(drawn) is drawn


def test_confusion_matrices_are_followed():
    grade = np.repeat([0, 1, 2], 4000)
    matrix = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]])
    drawn = simulate.grades(
        {"item": np.arange(12000), "grade": grade}, simulate.Confusions(matrix[None]), simulate.PerItem(k=1)
    )
    given = drawn.judgments.grade.astype(int)
    seen = np.zeros((3, 3))
    np.add.at(seen, (grade, given), 1 / 4000)
    assert seen == pytest.approx(matrix, abs=0.03)
    assert drawn.quality["p_0_1"].to_list() == [0.2]


def test_random_confusions_have_the_stated_accuracy():
    pool = simulate.confusion(0.6, 20.0, n_levels=4, n_annotators=3000, seed=1)
    assert pool.matrices.mean(axis=0) == pytest.approx(np.where(np.eye(4), 0.6, 0.4 / 3), abs=0.01)
    assert pool.matrices[:, 0, 0].var() == pytest.approx(0.6 * 0.4 / 21, rel=0.1)


@pytest.mark.parametrize(
    "pool",
    [
        simulate.symmetric(n_annotators=3),
        simulate.profile(n_annotators=3, seed=8),
        simulate.false_good(n_annotators=3),
        simulate.false_bad(n_annotators=3),
        simulate.growing(n_annotators=3),
    ],
    ids=["symmetric", "profile", "false_good", "false_bad", "growing"],
)
def test_confusions_of_latent_graders_match_their_draws(pool):
    from crowdrank.simulate.known import Known

    truth = simulate.draw_truth(6000, 10, seed=2)
    drawn = simulate.grades(truth, pool, simulate.PerItem(k=3), seed=2).judgments
    exact = pool.confusions(Known.of(truth), np.arange(3, dtype=np.int32))
    assert exact.sum(axis=2) == pytest.approx(np.ones((3, 5)))
    level = truth.truth.grade.astype(int)
    for annotator in range(3):
        mine = drawn.annotator == annotator
        seen = np.zeros((5, 5))
        np.add.at(seen, (level[drawn.item[mine]], drawn.grade[mine].astype(int)), 1)
        seen /= seen.sum(axis=1, keepdims=True)
        assert seen[:4] == pytest.approx(exact[annotator][:4], abs=0.03)
        assert seen[4] == pytest.approx(exact[annotator][4], abs=0.06)


def test_quality_of_latent_graders_is_their_share_of_pairs_in_order():
    truth = simulate.draw_truth(400, 19, seed=4)
    drawn = simulate.grades(truth, simulate.profile(n_annotators=5, seed=4), simulate.PerItem(k=5), seed=4)
    known = truth.truth.grade.reshape(400, 19)
    real = np.sign(known[:, :, None] - known[:, None, :])
    for annotator, quality in enumerate(drawn.quality["quality"]):
        mine = drawn.judgments.annotator == annotator
        given = np.empty(7600)
        given[drawn.judgments.item[mine]] = drawn.judgments.grade[mine]
        given = given.reshape(400, 19)
        seen = np.sign(given[:, :, None] - given[:, None, :])
        ordered = (real > 0) & (seen != 0)
        assert np.mean(seen[ordered] > 0) == pytest.approx(quality, abs=0.01)


def labelling_costs(pool, seed):
    """Cost of if-good-3, cost of good-till-bad, Fair- : Good+, with 11 of the pool per query."""
    truth = simulate.draw_truth(400, 19, seed=seed)
    rows = simulate.grades(truth, pool, simulate.PerItem(k=11, panel=11), seed=seed).judgments
    good = (rows.grade >= 2).reshape(-1, 11)
    first = good[:, 0].mean()
    return 1 + 2 * first, 1 + np.cumprod(good, axis=1)[:, :10].sum(axis=1).mean(), (1 - first) / first


def test_costs_of_profile_graders_are_those_of_the_specification():
    costs = np.mean([labelling_costs(simulate.profile(n_annotators=120, seed=s), s) for s in range(6)], axis=0)
    assert costs[0] == pytest.approx(1.48, abs=0.05)
    assert costs[1] == pytest.approx(1.90, abs=0.1)
    assert costs[2] == pytest.approx(3.15, abs=0.2)


@pytest.mark.parametrize(
    ("pool", "error"),
    [
        (simulate.symmetric(n_annotators=120), 2.71),
        (simulate.false_good(n_annotators=120), 2.61),
        (simulate.false_bad(n_annotators=120), 1.55),
        (simulate.growing(n_annotators=120), 2.58),
    ],
    ids=["symmetric", "false_good", "false_bad", "growing"],
)
def test_gain_errors_of_single_grades_are_those_of_the_specification(pool, error):
    truth = simulate.draw_truth(4000, 19, seed=5)
    grade = simulate.grades(truth, pool, simulate.PerItem(k=1), seed=5).judgments.grade
    found = np.sqrt(np.mean((2.0**grade - 2.0**truth.truth.grade) ** 2))
    assert found == pytest.approx(error, rel=0.05)


def test_levels_the_truth_does_not_show():
    truth = {"item": [1, 2, 3], "grade": [0, 0, 1]}
    for pool in (simulate.false_bad(n_annotators=4), simulate.symmetric(n_annotators=4)):
        drawn = simulate.grades(truth, pool, levels=[0, 1, 2])
        assert drawn.judgments.levels == (0, 1, 2)
        assert drawn.quality["quality"].is_finite().all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.Confusions(np.array([[[0.5, 0.6], [0.5, 0.5]]])), "row 0 of confusion matrix 0 sums to 1.1"),
        (lambda: simulate.Confusions(np.array([[[1.5, -0.5], [0.5, 0.5]]])), "between 0 and 1, not 1.5"),
        (lambda: simulate.Confusions(np.eye(3)), "shape"),
        (lambda: simulate.confusion(1.4, n_levels=3, n_annotators=2), "accuracy must be between"),
        (lambda: simulate.confusion(0.4, n_levels=1, n_annotators=2), "n_levels must be at least 2"),
        (lambda: simulate.symmetric(-1.0, n_annotators=2), "noise must be"),
        (lambda: simulate.false_good(1.2, n_annotators=2), "raised must be between 0 and 1, not 1.2"),
        (lambda: simulate.profile(-0.1, n_annotators=2), "bias must be 0 or more"),
        (lambda: simulate.draw_truth(0), "at least 1"),
        (lambda: simulate.draw_truth(3, cuts=[1.0, 0.5]), "cuts must be rising"),
    ],
)
def test_bad_parameters(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_matrices_of_another_number_of_levels_are_refused():
    with pytest.raises(ParameterError, match="of 2 levels, the truth of 3"):
        simulate.grades({"item": [1, 2, 3], "grade": [0, 1, 2]}, simulate.Confusions(np.eye(2)[None].repeat(3, 0)))
