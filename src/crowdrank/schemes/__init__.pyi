"""Types of what is had from here."""

from .chained import Chained as Chained
from .grade_rules import GoodTillBad as GoodTillBad
from .grade_rules import IfGoodK as IfGoodK
from .grade_rules import KOverlap as KOverlap
from .grade_rules import Pilot as Pilot
from .information import Information as Information
from .uncertainty import Agreement as Agreement
from .uncertainty import Uncertainty as Uncertainty
