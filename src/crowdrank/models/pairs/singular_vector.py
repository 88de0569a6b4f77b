"""SVD ranking: scores from the leading singular plane of the matrix of win shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus, Trace
from ...data.judgments import Preferences, expect
from ...fitting import warn_unconverged
from ...pair_counts import count_preferences, warn_apart
from ...protocols import Floats
from ...quality import held_out
from ...wording import expect_above, expect_at_least


@dataclass(frozen=True, kw_only=True)
class SingularVector:
    r"""SVD ranking: scores from the leading singular plane of the preference matrix.

    The entry :math:`H_{ij}` of the matrix is the share of preferences against item :math:`j` that item :math:`i` won
    less the share that it lost. Were it :math:`r_i - r_j` for all pairs, the matrix
    :math:`r \mathbf{1}^T - \mathbf{1} r^T` would have rank 2, and its two singular vectors would span a plane with
    :math:`\mathbf{1}` and :math:`r` in it. So the matrix is projected on the plane of its two largest singular
    values, and the score is the direction within the plane at a right angle to what :math:`\mathbf{1}` leaves there
    [Aspremont21]_. Scores are oriented and scaled so that their differences fit the entries best, in least
    squares, and have mean zero.

    When to use
    -----------
    Use it as a spectral baseline where chance decided which pairs met and items have some dozens of opponents. With few
    opponents each, or neighbours only, use ``bradley_terry``.

    Parameters
    ----------
    balanced
        Whether to divide the entries by the roots of both items' numbers of opponents before, and to undo it
        afterwards, so items that met many others do not take over the plane.
    tol
        Largest residual of the singular vector in the last step, relative to its singular value squared; raise it to
        stop earlier.
    max_iter
        Largest number of steps; raise it where a warning says that the fit did not converge.

    Notes
    -----
    **Pairs that have not met are zeros**, as if they were even. That does no harm where chance decided who met whom,
    but the noise that it adds is that of the whole matrix: with 40 opponents per item and more Kendall's tau is some
    hundredths below that of :class:`~crowdrank.models.pairs.bradley_terry.BradleyTerry`, with ten it is half of it or
    less, and where items have met only their near neighbours the plane is uninformative. Every pair that met counts
    the same, however often.

    The plane is found with products of the sparse matrix alone, begun from the row sums, which lead to the direction
    wanted without the rest of the plane. Where these are zero, as in a cycle of three, no direction is better than its
    opposite and scores are 0.

    A tie is half a win for each side, and an even pair one that met with entry 0. Groups that never met each have
    a plane of their own, with mean score zero; an unjudged item has score 0. There are no standard errors; use the
    bootstrap. Annotators are not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "y", "z", "y"), ("cy", "q", "x", "z", "x")]
    >>> SingularVector().fit(Preferences.from_rows(rows)).scores.round(3).tolist()
    [0.667, 0.0, -0.667]
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    precision: ClassVar[float] = 1e-10
    balanced: bool = True
    tol: float = 1e-9
    max_iter: int = 500

    def __post_init__(self) -> None:
        expect_above(self, 0, "tol")
        expect_at_least(self, 1, "max_iter")

    def fit(self, preferences: Preferences) -> Consensus:
        """Return the scores; warns of groups that never met."""
        from ...kernels.laplacian import link_product
        from .kernels.spectral import leading_vectors

        expect(preferences, self)
        counts, n = count_preferences(preferences, "split"), preferences.n_items
        warn_apart(preferences.items, counts)
        entry, group, first = counts.margin / counts.number, counts.group, counts.first
        degree = np.diff(counts.starts) + np.bincount(counts.second, minlength=n)
        root = np.sqrt(np.maximum(degree, 1)) if self.balanced else np.ones(n)
        times = link_product(counts.starts, counts.second, entry, -entry)

        def rotate(vector: Floats) -> Floats:
            return times(vector / root) / root

        # row sums, those of rounding made 0: a group of cycles has no direction, however small the numbers
        sums, most = rotate(1.0 / root), degree / root**2
        start = np.where(np.abs(sums) > 1e-12 * np.maximum(most, 1.0), sums, 0.0)
        # the groups numbered without gaps
        number = (np.cumsum(group == np.arange(n), dtype=np.int32) - 1)[group]
        # rotated twice, a vector of the plane is reversed and scaled by the squared singular value
        vector, n_iter, residual = leading_vectors(
            lambda part: -rotate(rotate(part)), start, number, tol=self.tol, max_iter=self.max_iter
        )
        if residual > self.tol:
            warn_unconverged("singular_vector", self.max_iter, residual, self.tol)
        scores = counts.centre(root * vector)
        # times what fits the entries of each group best, in least squares
        gap = scores[first] - scores[counts.second]
        squares = np.bincount(group[first], gap * gap, n)
        fit = np.bincount(group, scores * times(np.ones(n)), n)
        scores *= np.divide(fit, squares, out=np.zeros(n), where=squares > 0.0)[group]
        trace = Trace(n_iter, residual <= self.tol, residual)
        return Consensus.of(self, preferences, scores, trace=trace, quality=held_out(self, preferences))
