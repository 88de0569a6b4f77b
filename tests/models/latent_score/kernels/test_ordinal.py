"""Ordinal answers: gradients by finite differences, the slow twin, sorting, and threads."""

import numpy as np
import pytest
from tests.oracles import ordinal as slow

from crowdrank.models.latent_score.kernels.ordinal import (
    ResponseModel,
    annotator_pass,
    difficulty_pass,
    item_pass,
    own_rows,
)
from crowdrank.models.latent_score.model import sort_cells


class Case:
    """Random answers of one kind, and what annotators are like."""

    def __init__(self, n_levels, pairs, seed=0, n=200, n_items=8, n_annotators=5, lapse=0.0, difficult=0.0):
        rng = np.random.default_rng(seed)
        first = rng.integers(0, n_items, n).astype(np.int32)
        second = ((first + rng.integers(1, n_items, n)) % n_items).astype(np.int32)
        self.annotator, self.level = rng.integers(0, n_annotators, n), rng.integers(0, n_levels, n)
        self.weight = rng.uniform(0.5, 2.0, n)
        turned = first > second if pairs else None
        level = np.where(turned, n_levels - 1 - self.level, self.level) if pairs else self.level
        low, high = (np.minimum(first, second), np.maximum(first, second)) if pairs else (first, None)
        annotator = self.annotator.astype(np.int32)
        # of some rows nobody knows on which side the items were shown
        shown = rng.random(n) < (0.7 if pairs else 1.0)
        position = None if turned is None else np.where(shown, 2 * turned, 1).astype(np.int32)
        self.cells = sort_cells(low, high, annotator, position, level.astype(np.int32), self.weight)
        other = second if pairs else np.full(n, -1)
        # a row as asked: the left item first, and its bias in favour of it
        self.rows = list(zip(self.annotator, first, other, shown * 1.0, self.level, self.weight, strict=True))
        self.scores, self.alpha = rng.normal(size=n_items), rng.normal(1, 0.5, n_annotators)
        self.bias, self.spread = rng.normal(0, 0.5, n_annotators), rng.normal(0, 0.3, n_annotators)
        self.centre = 0.0 if pairs else 0.2
        self.cuts = np.sort(rng.normal(0, 1, n_levels - 1)) if not pairs else np.linspace(-0.4, 0.4, n_levels - 1)
        self.cuts = np.zeros(1) if pairs and n_levels == 2 else self.cuts
        self.log_scale, self.lapse = 0.1, np.full(n_annotators, lapse)
        self.favourites = rng.dirichlet(np.ones(n_levels), n_annotators if lapse else 0)
        self.difficulty = difficult * rng.normal(size=n_items)

    def value(self, **changes):
        """Log-likelihood with some numbers changed."""
        at = {name: changes.get(name, getattr(self, name)) for name in ("scores", "alpha", "bias", "spread", "cuts")}
        scale = np.exp(changes.get("log_scale", self.log_scale))
        lapse = changes.get("lapse", self.lapse) if len(self.favourites) else None
        difficulty = changes.get("difficulty", self.difficulty)
        return slow.log_likelihood(
            self.rows, at["scores"], at["alpha"], at["bias"], at["spread"], self.centre, at["cuts"], scale, lapse,
            self.favourites, difficulty,
        )  # fmt: skip

    def model(self):
        n, scale = len(self.alpha), float(np.exp(self.log_scale))
        own = own_rows(scale, self.alpha, np.zeros(n), np.zeros(n), self.bias, np.zeros(n), self.spread, self.lapse)
        clarity = np.exp(-self.difficulty[self.cells.first]) if self.difficulty.any() else np.empty(0)
        return ResponseModel(own, self.favourites, self.centre, self.cuts, scale, True, clarity=clarity)

    def gap(self):
        second = self.cells.second
        return self.scores[self.cells.first] - (self.scores[second] if len(second) else 0.0)

    def sums(self):
        return annotator_pass(self.cells, self.model(), self.gap(), np.zeros(len(self.cells.first)))

    def slope(self, name, step=1e-6):
        """Gradient by central differences."""
        here = np.atleast_1d(np.asarray(getattr(self, name), float))
        found = []
        for place in range(len(here)):
            ends = []
            for sign in (1, -1):
                moved = here.copy()
                moved[place] += sign * step
                ends.append(self.value(**{name: moved if np.ndim(getattr(self, name)) else moved[0]}))
            found.append((ends[0] - ends[1]) / (2 * step))
        return np.array(found)


CASES = [(2, True), (3, True), (2, False), (3, False), (5, False)]


@pytest.mark.parametrize(("n_levels", "pairs"), CASES)
@pytest.mark.parametrize(("lapse", "difficult"), [(0.0, 0.0), (0.2, 0.0), (0.2, 0.5)])
def test_gradients_are_those_of_the_log_likelihood(n_levels, pairs, lapse, difficult):
    case = Case(n_levels, pairs, lapse=lapse, difficult=0.0 if pairs else difficult)
    sums = case.sums()
    assert sums.log_likelihood == pytest.approx(case.value(), rel=1e-12)
    assert sums.weight == pytest.approx(case.weight.sum())
    for found, name in (
        (sums.alpha, "alpha"), (sums.bias, "bias"), (sums.spread, "spread"), (sums.scale, "log_scale"),
    ):  # fmt: skip
        np.testing.assert_allclose(found, case.slope(name).squeeze(), atol=2e-7, rtol=1e-6)
    if lapse:
        np.testing.assert_allclose(sums.lapse, case.slope("lapse"), atol=1e-6, rtol=1e-6)
    if not pairs:
        np.testing.assert_allclose(sums.cuts, case.slope("cuts"), atol=2e-7, rtol=1e-6)
    elif n_levels == 3:
        # the two cuts move together
        there, back = (case.value(cuts=case.cuts * (1 + step / 0.4)) for step in (1e-6, -1e-6))
        assert sums.cuts @ [-1, 1] == pytest.approx((there - back) / 2e-6, abs=1e-6)
    push, _ = item_pass(case.cells, case.model(), case.gap(), np.zeros(len(case.cells.first)))
    of_items = np.bincount(case.cells.first, push, len(case.scores))
    if pairs:
        of_items -= np.bincount(case.cells.second, push, len(case.scores))
    np.testing.assert_allclose(of_items, case.slope("scores"), atol=2e-7, rtol=1e-6)


@pytest.mark.parametrize("n_levels", [3, 5])
@pytest.mark.parametrize("difficult", [0.0, 0.5])
def test_slopes_in_difficulties_are_those_of_the_log_likelihood(n_levels, difficult):
    case = Case(n_levels, False, difficult=difficult)
    gap, step = case.gap(), 1e-4
    slope, curve, cross = difficulty_pass(case.cells, case.model(), gap, np.zeros(len(gap)))
    np.testing.assert_allclose(slope, case.slope("difficulty"), atol=2e-7, rtol=1e-6)
    for place in range(len(gap)):
        moved = np.zeros(len(gap))
        moved[place] = step
        values = [case.value(difficulty=case.difficulty + sign * moved) for sign in (1, 0, -1)]
        assert curve[place] == pytest.approx(-(values[0] - 2 * values[1] + values[2]) / step**2, rel=1e-3, abs=1e-3)
        corners = [
            case.value(difficulty=case.difficulty + one * moved, scores=case.scores + other * moved)
            for one, other in ((1, 1), (1, -1), (-1, 1), (-1, -1))
        ]
        mixed = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * step**2)
        assert cross[place] == pytest.approx(-mixed, rel=1e-3, abs=1e-3)


def test_slopes_in_difficulties_of_lapses():
    case = Case(4, False, lapse=0.2, difficult=0.5)
    gap = case.gap()
    slope = difficulty_pass(case.cells, case.model(), gap, np.zeros(len(gap)))[0]
    np.testing.assert_allclose(slope, case.slope("difficulty"), atol=2e-7, rtol=1e-6)


@pytest.mark.parametrize(("n_levels", "pairs"), CASES)
def test_curvature_is_the_second_derivative(n_levels, pairs):
    case = Case(n_levels, pairs)
    sums, step = case.sums(), 1e-4
    for place in range(len(case.alpha)):
        for name, found in (("alpha", sums.alpha_alpha), ("bias", sums.bias_bias)):
            values = []
            for sign in (1, 0, -1):
                moved = getattr(case, name).copy()
                moved[place] += sign * step
                values.append(case.value(**{name: moved}))
            second = (values[0] - 2 * values[1] + values[2]) / step**2
            assert found[place] == pytest.approx(-second, rel=1e-3, abs=1e-3)
    if not pairs:
        for place in range(len(case.cuts)):
            values = []
            for sign in (1, 0, -1):
                moved = case.cuts.copy()
                moved[place] += sign * step
                values.append(case.value(cuts=moved))
            second = (values[0] - 2 * values[1] + values[2]) / step**2
            assert sums.cuts_cuts[0, place] == pytest.approx(-second, rel=1e-3, abs=1e-3)


def test_averaging_over_what_is_not_known_is_as_the_twin_says():
    case, rng = Case(3, True), np.random.default_rng(4)
    n, cells = len(case.alpha), case.cells
    va, vb, vd = rng.uniform(0.05, 0.3, n), rng.uniform(0.05, 0.3, n), rng.uniform(0.1, 1.0, len(cells.first))
    cab = 0.3 * np.sqrt(va * vb)
    own = own_rows(1.0, case.alpha, va, cab, case.bias, vb, case.spread, np.zeros(n))
    push, bend = item_pass(cells, ResponseModel(own, np.empty((0, 3)), 0.0, case.cuts, 1.0, True), case.gap(), vd)
    for cell in range(len(cells.first)):
        expected = np.zeros(2)
        for row in range(cells.bounds[cell], cells.bounds[cell + 1]):
            a, side = cells.annotator_side[row] >> 2, 1 - (cells.annotator_side[row] & 3)
            cuts = np.exp(case.spread[a]) * case.cuts
            expected += cells.weight[row] * np.array(
                slow.averaged_push(
                    case.gap()[cell], vd[cell], case.alpha[a], va[a], side * case.bias[a],
                    abs(side) * vb[a], side * cab[a], cuts,
                    int(cells.level[row]),
                )
            )  # fmt: skip
        np.testing.assert_allclose((push[cell], bend[cell]), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("gap", [2.0, 6.0, 12.0, 24.0])
def test_push_of_a_certain_answer_is_the_mean_over_discriminations(gap):
    # 100 annotators of discrimination 1 +- .375 who all say left; the mean by quadrature, on a fine grid
    n, variance = 100, 0.14
    cells = sort_cells(
        *(np.full(n, code, np.int32) for code in (0, 1)), np.arange(n, dtype=np.int32), np.zeros(n, bool),
        np.ones(n, np.int32), np.ones(n),
    )  # fmt: skip
    none = np.zeros(n)
    own = own_rows(1.0, none + 1.0, none + variance, none, none, none, none, none)
    model = ResponseModel(own, np.empty((0, 2)), 0.0, np.zeros(1), 1.0, False)
    push = item_pass(cells, model, np.array([gap]), np.zeros(1))[0][0] / n
    alpha = np.linspace(-3.0, 5.0, 200_001)
    density = np.exp(-0.5 * (alpha - 1.0) ** 2 / variance)
    mean = (density * alpha / (1.0 + np.exp(np.minimum(alpha * gap, 700.0)))).sum() / density.sum()
    # a mean log-likelihood is not raised by ever larger gaps: the few who may be reversed weigh as much
    assert push == pytest.approx(mean, abs=0.004 if gap > 5 else 0.02)


def test_wide_columns_are_sorted_alike():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 5, 50).astype(np.int32), rng.integers(5, 9, 50).astype(np.int32)
    annotator, level = rng.integers(0, 4, 50).astype(np.int32), rng.integers(0, 3, 50).astype(np.int32)
    turned, weight = rng.random(50) < 0.5, rng.uniform(size=50)
    far = np.int32(2**30)
    near = sort_cells(first, second, annotator, turned, level, weight)
    wide = sort_cells(first + far, second + far, annotator, turned, level, weight)
    np.testing.assert_array_equal(near.first, wide.first - far)
    for name in ("bounds", "annotator_side", "level", "weight"):
        np.testing.assert_array_equal(getattr(near, name), getattr(wide, name))


@pytest.mark.parametrize(("n_levels", "pairs"), [(3, True), (4, False)])
def test_more_threads_change_nothing_but_rounding(n_levels, pairs):
    case = Case(n_levels, pairs, lapse=0.1)
    n = len(case.cells.first)
    split = case.cells._replace(parts=np.array([0, n // 3, n // 2, n]))
    given = (case.model(), case.gap(), np.full(n, 0.3))
    for one, other in zip(item_pass(case.cells, *given), item_pass(split, *given), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(annotator_pass(case.cells, *given), annotator_pass(split, *given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_levels", [2, 3, 5])
def test_all_cuts_together_move_like_the_predictor(n_levels):
    """Also where predictors are uncertain; else exact annotators would run away from the others."""
    case = Case(n_levels, pairs=False)
    case.spread = 0.0 * case.spread
    sums = annotator_pass(case.cells, case.model(), case.gap(), np.full(len(case.cells.first), 4.0))
    assert sums.cuts.sum() == pytest.approx(-sums.bias.sum(), rel=1e-9)


@pytest.mark.parametrize(("lapse", "difficult"), [(0.0, 0.0), (0.2, 0.5)])
def test_squares_of_slopes_are_those_of_single_grades(lapse, difficult):
    case = Case(5, pairs=False, n=40, lapse=lapse, difficult=difficult)
    case.cells = case.cells._replace(weight=np.empty(0))
    gap, variance = case.gap(), np.full(len(case.cells.first), 0.3)
    whole, squares = annotator_pass(case.cells, case.model(), gap, variance), np.zeros((3, len(case.alpha)))
    for row in range(len(case.cells.level)):
        bounds = np.clip(case.cells.bounds - row, 0, 1)
        one = case.cells._replace(
            bounds=bounds, annotator_side=case.cells.annotator_side[[row]], level=case.cells.level[[row]]
        )
        alone = annotator_pass(one, case.model(), gap, variance)
        squares += alone.alpha**2, alone.alpha * alone.spread, alone.spread**2
    np.testing.assert_allclose(whole.alpha_square, squares[0], rtol=1e-9)
    np.testing.assert_allclose(whole.alpha_times_spread, squares[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole.spread_square, squares[2], rtol=1e-9)
