"""The picture that fits a result."""

from __future__ import annotations

from typing import Any

import polars as pl

from ..api import Comparison, Evaluation
from ..data.consensus import Consensus, Quality, Trace
from ..data.judgments import Grades, Mixed, Preferences, Rankings
from ..errors import ParameterError, expect_package
from ..simulate import Campaign
from . import displays
from .drawing import STYLE, Display

_CURVES = {"scheme", "seed", "round", "cost"}
_DRAWN = (
    "a consensus, its quality or trace, a comparison of methods (compare_methods), two runs (evaluate_runs), "
    "curves of campaigns, and a trained ranker"
)


def plot(result: Any, ax: Any = None, *, query: Any = None) -> Display:
    """Draw the picture that fits a result, and return its display, whose ``ax_`` and ``figure_`` are what was drawn on.

    The scores of a consensus with their intervals; of several queries how sure the first item of each is, or the scores
    of the one named; of classes which are mixed up. The quality of annotators against the number of their judgments;
    methods by the first measure of a comparison; what schemes reach for what they cost; the log-likelihood of a fit;
    the features that count most for a ranker.

    Parameters
    ----------
    result
        What :func:`crowdrank.aggregate`, :func:`crowdrank.compare_methods`, :func:`crowdrank.campaigns` or
        :func:`crowdrank.train` returned; or the ``quality`` or ``trace`` of a consensus.
    ax
        Axes of matplotlib to draw on; ``None`` makes a new figure.
    query
        The query to draw, for a consensus of several.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> from matplotlib.figure import Figure
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> display = plot(aggregate(votes, "mean_grade"), Figure().subplots())
    >>> type(display).__name__, display.ax_.get_xlabel()
    ('ConsensusDisplay', 'score (larger is better), with 95 % interval')
    """
    expect_package("matplotlib")
    import matplotlib as mpl

    if query is not None and not isinstance(result, Consensus):
        raise ParameterError(f"query= is for a consensus, not for {_result_name(result)}; leave it out")
    display = _display(result, query)
    with mpl.rc_context({} if ax is not None else STYLE):
        return display.plot(ax)


def _display(result: Any, query: Any) -> Display:
    """The display that fits a result."""
    columns = set(result.columns) if isinstance(result, pl.DataFrame) else set()
    match result:
        case Consensus(nominal=True):
            return displays.ConfusionDisplay.from_consensus(result)
        case Consensus() if query is None and result.items.n_queries > 1 and result.uncertainty is not None:
            return displays.QueriesDisplay.from_consensus(result)
        case Consensus():
            return displays.ConsensusDisplay.from_consensus(result, query=query)
        case Quality():
            return displays.QualityDisplay.from_quality(result)
        case Trace():
            return displays.ConvergenceDisplay.from_trace(result)
        case Comparison():
            return displays.ComparisonDisplay.from_comparison(result)
        case Evaluation() if len(result.comparisons):
            return displays.DifferencesDisplay.from_evaluation(result)
        case pl.DataFrame() if columns >= _CURVES:
            return displays.CampaignDisplay.from_curves(result)
        case Campaign():
            curve = result.curve.with_columns(scheme=pl.lit(result.scheme), seed=pl.lit(0))
            return displays.CampaignDisplay.from_curves(curve)
        case _ if hasattr(getattr(result, "ranker", result), "importance"):
            return displays.ImportanceDisplay.from_ranker(result)
        case Grades() | Preferences() | Rankings() | Mixed():
            instead = "draw what comes of them, as in plot(aggregate(judgments))"
        case _ if isinstance(result, Evaluation) or "metric" in columns:
            instead = "methods are drawn side by side with plot(compare_methods(judgments, truth=truth))"
        case _ if "method" in columns:
            instead = "draw plot(compare_methods(judgments)), which holds what is behind the table"
        case _:
            instead = f"drawn are {_DRAWN}"
    raise ParameterError(f"there is no picture of {_result_name(result)}; {instead}")


def _result_name(result: Any) -> str:
    """A result in words."""
    if result is None:
        return "nothing (None)"
    name = "table" if isinstance(result, pl.DataFrame) else type(result).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
