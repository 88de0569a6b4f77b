"""Pictures of results and the report that holds them.

Displays compute in ``from_...`` and draw in ``plot(ax=None)``; :func:`write` writes everything as one page.
"""

from .campaigns import CampaignDisplay
from .comparison import ComparisonDisplay, OrdersDisplay
from .displays import (
    AgreementDisplay,
    BeatsDisplay,
    ConfusionDisplay,
    ConsensusDisplay,
    ConvergenceDisplay,
    ImportanceDisplay,
    LearningCurveDisplay,
    PositionBiasDisplay,
    QualityDisplay,
    QueriesDisplay,
    TimeDisplay,
    picture_format,
    save_display,
)
from .html import render, write
from .plotting import plot

__all__ = [
    "AgreementDisplay",
    "BeatsDisplay",
    "CampaignDisplay",
    "ComparisonDisplay",
    "ConfusionDisplay",
    "ConsensusDisplay",
    "ConvergenceDisplay",
    "ImportanceDisplay",
    "LearningCurveDisplay",
    "OrdersDisplay",
    "PositionBiasDisplay",
    "QualityDisplay",
    "QueriesDisplay",
    "TimeDisplay",
    "picture_format",
    "plot",
    "render",
    "save_display",
    "write",
]
