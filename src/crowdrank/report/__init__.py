"""Pictures of results: displays that compute in ``from_...`` and draw in ``plot(ax=None)``."""

from .displays import ImportanceDisplay, LearningCurveDisplay, picture_format, save_display

__all__ = ["ImportanceDisplay", "LearningCurveDisplay", "picture_format", "save_display"]
