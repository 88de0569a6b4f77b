"""Pictures of results and the report that holds them.

Displays compute in ``from_...`` and draw in ``plot(ax=None)``; :func:`write` writes everything as one page.
"""

from .annotator_displays import ConfusionDisplay, PositionBiasDisplay, QualityDisplay
from .campaign_displays import CampaignDisplay
from .comparison_displays import ComparisonDisplay, OrdersDisplay
from .crowd_displays import AgreementDisplay, ConvergenceDisplay, TimeDisplay
from .drawing import picture_format, save_display
from .evaluation_page import write_evaluation
from .html import render, write
from .html import write as write_report
from .item_displays import BeatsDisplay, ConsensusDisplay, QueriesDisplay
from .plotting import plot
from .ranker_displays import ImportanceDisplay, LearningCurveDisplay
from .run_displays import DifferencesDisplay

__all__ = [
    "AgreementDisplay",
    "BeatsDisplay",
    "CampaignDisplay",
    "ComparisonDisplay",
    "ConfusionDisplay",
    "ConsensusDisplay",
    "ConvergenceDisplay",
    "DifferencesDisplay",
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
    "write_evaluation",
    "write_report",
]
