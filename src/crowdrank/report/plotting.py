"""The picture that fits a result."""

from __future__ import annotations

from typing import Any

import polars as pl

from ..api import Comparison, Evaluation
from ..data.consensus import Consensus, Quality, Trace
from ..data.judgments import Grades, Mixed, Preferences, Rankings
from ..errors import ParameterError, expect_package
from ..simulate import Campaign
from .annotator_displays import ConfusionDisplay, QualityDisplay
from .comparison_displays import CampaignDisplay, ComparisonDisplay, DifferencesDisplay, ImportanceDisplay
from .consensus_displays import ConsensusDisplay, ConvergenceDisplay, QueriesDisplay
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
    if ax is not None:
        display.plot(ax)
        return display
    with mpl.rc_context(STYLE):
        display.plot()
    return display


def _display(result: Any, query: Any) -> Display:
    """The display that fits a result."""
    if isinstance(result, Consensus):
        return _of_consensus(result, query)
    if isinstance(result, Quality):
        return QualityDisplay.from_quality(result)
    if isinstance(result, Trace):
        return ConvergenceDisplay.from_trace(result)
    if isinstance(result, Comparison):
        return ComparisonDisplay.from_comparison(result)
    if isinstance(result, Evaluation) and len(result.comparisons):
        return DifferencesDisplay.from_evaluation(result)
    if isinstance(result, pl.DataFrame) and _CURVES.issubset(result.columns):
        return CampaignDisplay.from_curves(result)
    if isinstance(result, Campaign):
        curve = result.curve.with_columns(scheme=pl.lit(result.scheme), seed=pl.lit(0))
        return CampaignDisplay.from_curves(curve)
    if hasattr(getattr(result, "ranker", result), "importance"):
        return ImportanceDisplay.from_ranker(result)
    raise ParameterError(f"there is no picture of {_result_name(result)}; {_what_to_draw_instead(result)}")


def _of_consensus(consensus: Consensus, query: Any) -> Display:
    """The display of a consensus: of its classes, its only query, the query named, or all queries."""
    if consensus.nominal:
        return ConfusionDisplay.from_consensus(consensus)
    if query is None and consensus.items.n_queries > 1 and consensus.uncertainty is not None:
        return QueriesDisplay.from_consensus(consensus)
    return ConsensusDisplay.from_consensus(consensus, query=query)


def _what_to_draw_instead(result: Any) -> str:
    """What to draw in place of a result that there is no picture of."""
    if isinstance(result, Grades | Preferences | Rankings | Mixed):
        return "draw what comes of them, as in plot(aggregate(judgments))"
    if isinstance(result, Evaluation) or (isinstance(result, pl.DataFrame) and "metric" in result.columns):
        return "methods are drawn side by side with plot(compare_methods(judgments, truth=truth))"
    if isinstance(result, pl.DataFrame) and "method" in result.columns:
        return "draw plot(compare_methods(judgments)), which holds what is behind the table"
    return f"drawn are {_DRAWN}"


def _result_name(result: Any) -> str:
    """A result in words."""
    if result is None:
        return "nothing (None)"
    name = "table" if isinstance(result, pl.DataFrame) else type(result).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
