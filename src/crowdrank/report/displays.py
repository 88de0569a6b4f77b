"""Every display, and what writes them."""

from .annotators import ConfusionDisplay, PositionBiasDisplay, QualityDisplay
from .crowd import AgreementDisplay, ConvergenceDisplay, TimeDisplay
from .drawing import BLUE, ORANGE, PICTURES, Display, picture_format, save_display
from .items import BeatsDisplay, ConsensusDisplay, QueriesDisplay
from .rankers import ImportanceDisplay, LearningCurveDisplay

__all__ = [
    "BLUE",
    "ORANGE",
    "PICTURES",
    "AgreementDisplay",
    "BeatsDisplay",
    "ConfusionDisplay",
    "ConsensusDisplay",
    "ConvergenceDisplay",
    "Display",
    "ImportanceDisplay",
    "LearningCurveDisplay",
    "PositionBiasDisplay",
    "QualityDisplay",
    "QueriesDisplay",
    "TimeDisplay",
    "picture_format",
    "save_display",
]
