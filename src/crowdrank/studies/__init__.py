"""Tables and figures of the papers, measured again and shown beside the printed numbers."""

from .catalog import STUDIES, Study, study
from .outcomes import VERDICTS, Outcome, Row, Verdict
from .running import Ran, run_study
from .work import SCOPES, Work

__all__ = ["SCOPES", "STUDIES", "VERDICTS", "Outcome", "Ran", "Row", "Study", "Verdict", "Work", "run_study", "study"]
