"""Numbers on a slider: medians, trimmed means, and annotators with a scale and an offset of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus, Trace
from ...data.judgments import Grades, expect
from ...errors import ParameterError
from ...protocols import Floats, Ints
from ...quality import LearnedQuality, held_out
from ...wording import expect_at_least, one_of

_FORMS = ("learned", "scale", "offset", "none")
_FOLDS = 5
_FEWEST_GRADES = 100
"""Grades with fewer of which annotators are taken to be alike: what is held out shows nothing."""

_FEWEST = 2.0
"""Grades that the prior of an annotator's offset, scale and noise is worth."""


@dataclass(frozen=True, kw_only=True)
class TrimmedMean:
    r"""Trimmed mean: the mean of an item's grades without the lowest and the highest share; at most, the median.

    Of :math:`n` sorted grades :math:`\lfloor \tau n \rfloor` are left out at either end. With ``trim=0.5`` the score is
    the median, the mean of the two middle ones where their number is even.

    When to use
    -----------
    Use it for sliders and estimates where some annotators answer 0 or 100 whatever they see, and each gave too few
    grades to learn a scale of their own, as ``location_scale`` does.

    Parameters
    ----------
    trim
        Share that is left out at either end; raise it, up to 0.5, where more answers may be far off.

    Notes
    -----
    Weights do not count. An unjudged item has the mean score of its query's others, or of all items. Annotators are not
    needed.

    Examples
    --------
    >>> rows = [(who, "q", item, grade) for item, grades in {"x": [70, 80, 0], "y": [40, 50, 100]}.items()
    ...         for who, grade in zip("abc", grades)]
    >>> TrimmedMean(trim=0.5).fit(Grades.from_rows(rows)).scores.tolist()
    [70.0, 50.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    in_grades: ClassVar[bool] = True
    trim: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.trim <= 0.5:
            raise ParameterError(f"trim={self.trim} must lie between 0 and 0.5, which is the median")

    def fit(self, grades: Grades) -> Consensus:
        """Return the trimmed mean of each item."""
        return Consensus.of(self, expect(grades, self), self.scores(grades), quality=held_out(self, grades))

    def scores(self, grades: Grades) -> Floats:
        """Return the scores only."""
        from ...kernels.segments import fill_from_query

        expect(grades, self)
        order = np.lexsort((grades.grade, grades.item))
        item, grade = grades.item[order], grades.grade[order]
        count = np.bincount(item, minlength=grades.n_items)
        place = np.arange(len(item)) - (np.cumsum(count) - count)[item]
        # of an odd number the middle one stays, of an even one the two middle ones
        out = np.minimum(np.floor(self.trim * count + 1e-9), np.maximum((count - 1) // 2, 0))[item]
        keep = (place >= out) & (place < count[item] - out)
        kept = np.bincount(item[keep], minlength=grades.n_items)
        scores = np.bincount(item[keep], grade[keep], grades.n_items) / np.maximum(kept, 1)
        return fill_from_query(scores, kept > 0, grades.items.query, grades.n_queries)


class _Crowd(NamedTuple):
    """Offset, scale and variance of each annotator, mean and variance of items, and the posterior of each item."""

    offset: Floats
    scale: Floats
    variance: Floats
    centre: float
    spread: float
    scores: Floats
    errors: Floats
    n_iter: int
    change: float


@dataclass(frozen=True, kw_only=True)
class LocationScale:
    r"""Scale and offset of each annotator: numbers as linear functions of the score, each with a noise of their own.

    Annotator :math:`a` gives item :math:`i` the number

    .. math:: g_{ai} = o_a + c_a s_i + e_{ai}, \qquad e_{ai} \sim N(0, \sigma_a^2), \qquad s_i \sim N(m, v),

    with offsets around 0, scales around 1 and variances around that of the crowd. All are learned together by EM, the
    scores integrated out. One who answers 0 or 100 throughout has the scale 0 and does not count; one who uses only the
    upper half of the slider is stretched. Scores are on the scale of the crowd's numbers.

    When to use
    -----------
    Use it for sliders, estimates and other numbers without levels, where annotators gave ten or more each.

    Parameters
    ----------
    annotators
        What annotators have of their own. ``"scale"``: offset, scale and noise; ``"offset"``: offset and noise;
        ``"none"``: all are alike, and scores are means drawn to the centre. ``"learned"``: whichever of the three
        predicts held-out numbers best; with fewer than 100 numbers, ``"none"``.
    tol, max_iter
        Largest change of a score, as a share of their spread, in the last round; most rounds.

    Notes
    -----
    Prior and data are weighed as if each annotator had given two more grades like the crowd's. Weights of grades count
    as numbers of grades. ``quality`` is the agreement with held-out others; its parameters ``offset``, ``scale`` and
    ``noise`` are the model's own. ``estimates["form"]`` says what was taken, ``estimates["held_out"]`` the mean
    log-likelihood of the held-out numbers by each form.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(0, 100, 30)
    >>> habits = {"a": (0, 1), "b": (50, 0.5), "c": (100, 0), "d": (-9, 1)}
    >>> rows = [(who, "q", f"i{i}", g) for who, (o, c) in habits.items()
    ...         for i, g in enumerate(o + c * truth + rng.normal(0, 5, 30))]
    >>> found = LocationScale(annotators="scale").fit(Grades.from_rows(rows))
    >>> found.quality.parameters["scale"].round(1).tolist()
    [1.1, 0.6, 0.1, 1.1]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    in_grades: ClassVar[bool] = True
    precision: ClassVar[float] = 1e-6
    annotators: str = "learned"
    tol: float = 1e-8
    max_iter: int = 2000

    def __post_init__(self) -> None:
        one_of(self.annotators, _FORMS, "annotators")
        expect_at_least(self, 1, "max_iter")

    def fit(self, grades: Grades) -> Consensus:
        """Return the score of each item, and the scale of each annotator."""
        expect(grades, self)
        if not len(grades):
            return Consensus.of(self, grades, np.zeros(grades.n_items))
        form, held = self.annotators, dict[str, float]()
        if form == "learned":
            held = _held_out_likelihoods(grades, self.max_iter)
            # of forms that predict alike, the one with less
            form = max(held, key=lambda name: round(held[name], 9)) if held else "none"
        crowd = _crowd_of(grades, form, self.tol, self.max_iter)
        trace = Trace(crowd.n_iter, crowd.change <= self.tol, crowd.change)
        quality: Any = None
        if grades.n_annotators:
            own = {"offset": crowd.offset, "scale": crowd.scale, "noise": np.sqrt(crowd.variance)}
            again = LocationScale(annotators=form, tol=1e-4, max_iter=100).scores
            quality = LearnedQuality(grades, again, own)
        estimates = {"form": form, "centre": crowd.centre, "spread": crowd.spread}
        estimates |= {"held_out": held} if held else {}
        return Consensus.of(
            self, grades, crowd.scores, std_error=crowd.errors, trace=trace, quality=quality, estimates=estimates
        )

    def scores(self, grades: Grades) -> Floats:
        """Return the scores only."""
        form = "scale" if self.annotators == "learned" else self.annotators
        return _crowd_of(grades, form, self.tol, self.max_iter).scores


def _crowd_of(grades: Grades, form: str, tol: float, max_iter: int) -> _Crowd:
    """Annotators and items by EM."""
    item, grade = grades.item, grades.grade
    who: Ints = grades.annotator if grades.n_annotators else np.zeros(len(grades), np.int32)
    weight = np.asarray(grades.row_weight)
    n_items, n_who = grades.n_items, max(grades.n_annotators, 1)
    total = np.bincount(who, weight, n_who)

    def by_who(values: Floats) -> Floats:
        return np.bincount(who, weight * values, n_who).astype(np.float64)

    centre = float(np.average(grade, weights=weight))
    everything = max(float(np.average((grade - centre) ** 2, weights=weight)), 1e-12)
    offset, scale, variance = np.zeros(n_who), np.ones(n_who), np.full(n_who, everything / 2)
    spread, scores, change, n_iter = everything / 2, np.full(n_items, centre), np.inf, 0
    least = 1e-4 * everything
    while change > tol and n_iter < max_iter:
        n_iter += 1
        told = scale[who] / variance[who]
        precision = 1 / spread + np.bincount(item, weight * told * scale[who], n_items)
        pull = centre / spread + np.bincount(item, weight * told * (grade - offset[who]), n_items)
        new, errors = pull / precision, 1 / precision
        change, scores = float(np.abs(new - scores).max() / np.sqrt(everything)), new
        judged = np.bincount(item, weight, n_items) > 0
        centre = float(scores[judged].mean())
        spread = max(float(((scores - centre) ** 2 + errors)[judged].mean()), least)
        x, crowd = scores[item] - centre, float(np.average(variance, weights=total))
        squares = by_who(x**2 + errors[item])
        if form != "none":
            # ridge regression of numbers on scores: offset around 0, scale around 1
            keep = _FEWEST * crowd / everything
            if form == "scale":
                both, y = by_who(x), grade - centre
                a, b, d = total + keep, both, squares + _FEWEST * spread
                right = by_who(y), by_who(y * x) + _FEWEST * spread
                determinant = np.maximum(a * d - b * b, 1e-300)
                level, scale = (d * right[0] - b * right[1]) / determinant, (a * right[1] - b * right[0]) / determinant
            else:
                level = by_who(grade - centre - x) / (total + keep)
            offset = centre + level - scale * centre
        residual = (grade - offset[who] - scale[who] * scores[item]) ** 2 + scale[who] ** 2 * errors[item]
        pooled = max(float(np.average(residual, weights=weight)), least)
        variance = (
            (by_who(residual) + _FEWEST * pooled) / (total + _FEWEST) if form != "none" else np.full(n_who, pooled)
        )
        variance = np.maximum(variance, least)
    return _Crowd(offset, scale, variance, centre, spread, scores, np.sqrt(errors), n_iter, change)


def _held_out_likelihoods(grades: Grades, max_iter: int) -> dict[str, float]:
    """Mean log-likelihood of numbers that were left out, by what annotators have of their own.

    The fold of a number follows from what others gave the item and what the annotator gave other items. Not from the
    number itself, which would make some rarer among those held out, nor from names or the order of rows.
    """
    if not grades.n_annotators or len(grades) < _FEWEST_GRADES:
        return {}
    who, item, weight = grades.annotator, grades.item.astype(np.int64), grades.row_weight
    low, width = grades.grade.min(), max(float(np.ptp(grades.grade)), 1e-300)
    # whole numbers, whose sums do not depend on their order
    whole = np.rint(weight * np.rint((grades.grade - low) / width * 99_991)).astype(np.int64)
    own = np.unique(item * grades.n_annotators + who, return_inverse=True)[1]
    totals = [np.zeros(size, np.int64) for size in (grades.n_items, grades.n_annotators, int(own.max()) + 1)]
    for total, code in zip(totals, (item, who, own), strict=True):
        np.add.at(total, code, whole)
    others = totals[0][item] + totals[1][who] - 2 * totals[2][own]
    fold = (others * 2_654_435_761 >> 16) % _FOLDS
    # where all gave the same numbers, all are in one fold, and none are left to learn from
    if (fold == fold[0]).all():
        return {}
    found = {}
    for form in ("none", "offset", "scale"):
        likely = np.empty(len(grades))
        for part in np.unique(fold).tolist():
            out = fold == part
            crowd = _crowd_of(grades.select(~out), form, 1e-4, min(max_iter, 100))
            who, item = grades.annotator[out], grades.item[out]
            middle = crowd.offset[who] + crowd.scale[who] * crowd.scores[item]
            spread = crowd.variance[who] + (crowd.scale[who] * crowd.errors[item]) ** 2
            likely[out] = -0.5 * (np.log(2 * np.pi * spread) + (grades.grade[out] - middle) ** 2 / spread)
        found[form] = float(np.average(likely, weights=grades.row_weight))
    return found
