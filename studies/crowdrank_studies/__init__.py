"""Tables and figures of the papers, measured again and shown beside the printed numbers."""

from .catalog import CORES, STUDIES, Study, study
from .outcomes import VERDICTS, Outcome, Row, Verdict
from .pivots import Pivot, pivots
from .running import Ran, run_study
from .work import SCOPES, Work

__all__ = [
    "CORES",
    "SCOPES",
    "STUDIES",
    "VERDICTS",
    "Outcome",
    "Pivot",
    "Ran",
    "Row",
    "Study",
    "Verdict",
    "Work",
    "pivots",
    "run_study",
    "study",
]
