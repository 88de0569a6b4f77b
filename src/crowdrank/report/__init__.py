"""Pictures of results and the report that holds them.

Displays compute in ``from_...`` and draw in ``plot(ax=None)``; :func:`write` writes everything as one page.
"""

from .displays import (
    AgreementDisplay,
    BeatsDisplay,
    CampaignDisplay,
    ComparisonDisplay,
    ConfusionDisplay,
    ConsensusDisplay,
    ConvergenceDisplay,
    DifferencesDisplay,
    ImportanceDisplay,
    LearningCurveDisplay,
    OrdersDisplay,
    PositionBiasDisplay,
    QualityDisplay,
    QueriesDisplay,
    TimeDisplay,
    plot,
)
from .drawing import picture_format, save_display
from .evaluation_page import write_evaluation
from .html import render, write
from .html import write as write_report
from .moderation_page import write_moderation

__all__ = [
    "AgreementDisplay", "BeatsDisplay", "CampaignDisplay", "ComparisonDisplay", "ConfusionDisplay", "ConsensusDisplay",
    "ConvergenceDisplay", "DifferencesDisplay", "ImportanceDisplay", "LearningCurveDisplay", "OrdersDisplay",
    "PositionBiasDisplay", "QualityDisplay", "QueriesDisplay", "TimeDisplay", "picture_format", "plot", "render",
    "save_display", "write", "write_evaluation", "write_moderation", "write_report",
]  # fmt: skip
