"""Rank aggregation by nuclear norm: the matrix of preferences completed with as few directions as it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus, Trace
from ...data.judgments import Preferences, expect
from ...errors import JudgmentError
from ...fitting import warn_unconverged
from ...pair_counts import PairCounts, count_preferences, warn_apart
from ...protocols import Floats
from ...quality import held_out
from ...wording import expect_above, expect_at_least

# threshold (refused): items of a query whose matrix `nuclear_norm` completes
_MAX_ITEMS = 2_000


@dataclass(frozen=True, kw_only=True)
class NuclearNorm:
    r"""Nuclear-norm rank aggregation: row means of the preference matrix, completed by soft-impute.

    The entry :math:`Y_{ij}` of a pair that met is the share of its preferences that item :math:`i` won less the share
    that it lost. Were all of them :math:`r_i - r_j`, the matrix would have rank 2. So the pairs that have not met are
    filled in by the matrix that is the solution of

    .. math:: \min_X \; \tfrac12 \sum_{(i, j) \text{ met}} (X_{ij} - Y_{ij})^2 + \lambda \lVert X \rVert_*,

    the nuclear norm :math:`\lVert X \rVert_*`, the sum of the singular values, standing in for the rank [Gleich11]_. It
    is found by soft-impute: fill in, take :math:`\lambda` off every singular value, again [Mazumder10]_. The score is
    an item's mean over the row, its mean lead over the items that it is connected with.

    When to use
    -----------
    Use it as the baseline SVP of [Niu15]_, or where most pairs of some hundred items did not meet and entries are
    shares rather than votes. ``singular_vector`` takes the plane of the matrix as observed; ``bradley_terry`` is the
    usual choice.

    Parameters
    ----------
    shrinkage
        :math:`\lambda` as a share of the largest singular value of the observed matrix of the query; raise it for fewer
        directions and smaller scores. Near 0 observed entries are kept as they are.
    tol
        Largest change of an entry in the last round; raise it to stop earlier.
    max_iter
        Largest number of rounds; raise it where a warning says that the fit did not converge.

    Notes
    -----
    [Gleich11]_ finds the matrix of rank 2 by singular value projection; the convex problem here has one solution, which
    no start decides. Matrix and solution are skew-symmetric. A tie is half a win for each side, and every pair that met
    counts the same, however often. Groups that never met have scores of their own around 0, and an unjudged item has 0.
    ``estimates`` has the largest rank of a query's solution. Each round takes an eigen-decomposition, so queries have
    up to 2,000 items. There are no standard errors; use the bootstrap. Annotators are not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "y", "z", "y"), ("cy", "q", "x", "z", "x")]
    >>> NuclearNorm().fit(Preferences.from_rows(rows)).scores.round(3).tolist()
    [0.533, 0.0, -0.533]
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    one_pass: ClassVar[tuple[str, ...]] = ("pairs",)
    precision: ClassVar[float] = 1e-6
    shrinkage: float = 0.2
    tol: float = 1e-7
    max_iter: int = 2000

    def __post_init__(self) -> None:
        expect_above(self, 0, "shrinkage", "tol", hint="use a small one such as 1e-3")
        expect_at_least(self, 1, "max_iter")

    def fit(self, preferences: Preferences) -> Consensus:
        """Return the scores; warns of groups that never met."""
        from ...kernels.threads import one_blas_thread

        expect(preferences, self)
        counts, items = count_preferences(preferences, "split"), preferences.items
        warn_apart(items, counts)
        sizes = np.diff(items.offsets)
        if sizes.max(initial=0) > _MAX_ITEMS:
            query = items.queries.ids[int(np.argmax(sizes))]
            raise JudgmentError(
                f"nuclear_norm fills a matrix of up to {_MAX_ITEMS:,} items, and query {query!r} has {sizes.max():,}; "
                "use bradley_terry"
            )
        scores, rank, n_iter, change = np.zeros(len(items)), 0, 0, 0.0
        group_size = np.bincount(counts.group, minlength=len(items))[counts.group]
        # small matrices gain nothing by a library's own threads, which would wait for each other on a busy machine
        with one_blas_thread():
            for first, last in zip(items.offsets[:-1].tolist(), items.offsets[1:].tolist(), strict=True):
                observed, met = _preference_matrix(counts, first, last)
                if observed.any():
                    completed, n_rounds, last_change = _complete(observed, met, self)
                    n_iter, change = max(n_iter, n_rounds), max(change, last_change)
                    rank = max(rank, int(np.linalg.matrix_rank(completed)))
                    # items outside an item's group have zeros in its row
                    scores[first:last] = completed.sum(axis=1) / group_size[first:last]
        trace = Trace(n_iter, change <= self.tol, change) if n_iter else Trace()
        if not trace.converged:
            warn_unconverged("nuclear_norm", self.max_iter, trace.change, self.tol)
        return Consensus.of(
            self, preferences, counts.centre(scores), trace=trace, quality=held_out(self, preferences),
            estimates={"rank": rank},
        )  # fmt: skip


def _preference_matrix(counts: PairCounts, first: int, last: int) -> tuple[Floats, Floats]:
    """Shares won less shares lost of the pairs of a query, and 1 where two items met, (n, n) each."""
    begin, end = counts.starts[first], counts.starts[last]
    row = np.repeat(np.arange(last - first), np.diff(counts.starts[first : last + 1]))
    column = counts.second[begin:end] - first
    whole, met = np.zeros((2, last - first, last - first))
    whole[row, column] = counts.margin[begin:end] / counts.number[begin:end]
    met[row, column] = 1.0
    return whole - whole.T, met + met.T


def _complete(observed: Floats, met: Floats, method: NuclearNorm) -> tuple[Floats, int, float]:
    """The completed matrix by rounds of filling in and shrinking, their number, and the change in the last."""
    shrinkage = method.shrinkage * float(np.linalg.norm(observed, 2))
    completed, change, n_iter = np.zeros_like(observed), np.inf, 0
    while n_iter < method.max_iter and change > method.tol:
        filled = observed + (1.0 - met) * completed
        # the singular values by their squares: a function of X X' needs no choice among equal directions
        squares, vectors = np.linalg.eigh(filled @ filled.T)
        values = np.sqrt(np.maximum(squares, 0.0))
        keep = np.maximum(values - shrinkage, 0.0) / np.maximum(values, 1e-300)
        following = (vectors * keep) @ (vectors.T @ filled)
        following = 0.5 * (following - following.T)
        change, completed, n_iter = float(np.abs(following - completed).max()), following, n_iter + 1
    return completed, n_iter, change
