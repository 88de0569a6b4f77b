"""What a class method estimates: levels of items and confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...data.consensus import Trace
from ...protocols import Bools, Floats
from .coded_grades import ClassRows, Reading, VoteReading


class Step(NamedTuple):
    """The objective at a state, the state after an E-step and an M-step, and the shares of the levels where asked."""

    value: float
    following: Floats
    shares: Floats = np.empty(0)


def log_shares(shares: Floats, n_levels: int) -> Floats:
    """Return logarithms of the shares of levels, of even ones where they are not estimated."""
    return np.log(shares / shares.sum()) if len(shares) else np.full(n_levels, -np.log(n_levels))


@dataclass(frozen=True, eq=False)
class ClassFit:
    """What a class method estimates.

    Parameters
    ----------
    probabilities
        Probability of each level for each item, (n_items, n_levels); rows of items without grades are not used.
    prior
        Share of each level, (n_levels,).
    confusion
        Probability of each given level for each true one, (n_annotators, n_levels, n_levels): true level first.
    trace
        How the fit went.
    parameters
        What else the method knows of each annotator, (n_annotators, ...).
    as_given
        Mask of the items whose grades are kept as they are, since nothing could be learned; ``None`` for none.
    reading
        What the probabilities follow from; ``None`` where they were put together of several fits.
    own_doubt
        Whether the answers that it predicts decide alone how sure it may be: true of the hierarchy, of queries that
        were fitted apart and of given accuracies. The doubt of other models is judged by the hierarchy.
    rereads
        Whether the reading follows from annotators and shares of levels alone, so that new grades can be read by it.
    """

    probabilities: Floats
    prior: Floats
    confusion: Floats
    trace: Trace
    parameters: Mapping[str, Floats] = field(default_factory=dict)
    as_given: Bools | None = None
    reading: Reading | None = None
    own_doubt: bool = False
    rereads: bool = False

    @property
    def kept(self) -> Bools:
        """Mask of the items whose grades are kept as they are, (n_items,)."""
        return np.zeros(len(self.probabilities), bool) if self.as_given is None else self.as_given

    @property
    def without_items(self) -> ClassFit:
        """The same without what it says of items, as it is sent to parts."""
        return replace(self, probabilities=self.probabilities[:0])

    @property
    def kept_all(self) -> bool:
        """Whether all grades are kept as they are."""
        return self.as_given is not None and bool(self.as_given.all())


def votes_as_fit(rows: ClassRows, confusion: Floats) -> ClassFit:
    """Return the grades themselves as a fit, with the annotators that a method's prior supposes."""
    reading = VoteReading()
    fit = ClassFit(rows.read(reading), np.empty(0), confusion, Trace(), as_given=rows.everything, reading=reading)
    return replace(fit, prior=rows.mean_probabilities(fit))


def level_counts(rows: ClassRows) -> tuple[Floats]:
    """Return the weight of grades by annotator and level."""
    return (rows.levels_by_row[1],)
