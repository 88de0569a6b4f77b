"""Plackett-Luce over parts of the rankings: queries share nothing where annotators count alike."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...data.consensus import Trace
from ...data.judgments import Rankings
from ...data.parted import PartColumns, PartedFit, read_sample, share_of_rows
from ...fitting import warn_unconverged
from ...protocols import Blocks, Statistics
from ...quality import quality_of_sample


@dataclass(frozen=True, eq=False)
class PlackettLucePasses:
    """The fit of each part by itself, in one pass."""

    method: Any
    judged: Any

    def lay_out(self, part: Rankings) -> Rankings:
        """Return the rankings themselves."""
        return part

    def solve(self, sums: Blocks) -> PartedFit:
        """Return the scores and standard errors of all items."""
        n_annotators = max(len(self.judged.annotators), 1)
        (given,) = sums.total(partial(_weights, n_annotators))
        fits = list(sums.read(partial(_fit_part, self.method)))
        traces = [trace for *_, trace in fits]
        trace = Trace(
            max(one.n_iter for one in traces), all(one.converged for one in traces), max(one.change for one in traces)
        )
        if not trace.converged:
            warn_unconverged("plackett_luce", self.method.max_iter, trace.change, self.method.tol)
        sample = partial(read_sample, _rankings_of_part, given, share_of_rows(self.judged.rows))
        quality = quality_of_sample(self.method, [part for (part,) in sums.read(sample)], given, {})
        return PartedFit([PartColumns(scores, std_error) for scores, std_error, _ in fits], trace, quality)


def _rankings_of_part(part: Rankings) -> Rankings:
    """The rankings of a part."""
    return part


def _weights(n_annotators: int, part: Rankings, state: Any) -> tuple[Statistics, Any]:
    """Weight of the rankings of each annotator."""
    by = part.row_annotator
    return (np.bincount(by, part.weight, n_annotators).astype(np.float64),), None


def _fit_part(method: Any, part: Rankings, state: Any) -> tuple[Statistics, Any]:
    """Scores and standard errors of the items of a part, and how the fit went."""
    with warnings.catch_warnings():
        # what is said of single items would be said of thousands
        warnings.simplefilter("ignore")
        consensus = method.fit(part)
    return (consensus.scores, consensus.std_error, consensus.trace), None
