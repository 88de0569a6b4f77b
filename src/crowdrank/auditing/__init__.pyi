from .changes import Change as Change
from .changes import changed as changed
from .program_audit import Audit as Audit
from .program_audit import audit as audit
