"""Prolific: its own table of submissions, which holds no answers."""

from __future__ import annotations

from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import Source
from .imported import Imported


def read(source: Source, options: ReadOptions) -> Imported:
    """Refuse the file, and say which one to bring."""
    raise JudgmentError(
        "this is Prolific's list of submissions, which holds no answers; export them from the survey that participants "
        "were sent to, such as Qualtrics or jsPsych"
    )
