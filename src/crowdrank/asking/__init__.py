"""What labelling schemes have in common: what they go by, what they want, and how it is bought."""

from .buying import Wanted, bought, thing_keys
from .costs import Priced, Runs, asked_for, cost_table, replayed
from .gains import GainErrors
from .pairs import PairsAsked, candidate_pairs, pairs_below, pairs_near
from .rules import UNJUDGED, GradeRule, GradesAsked, ask_by_rule, units_of
from .situation import Situation

__all__ = [
    "UNJUDGED",
    "GainErrors",
    "GradeRule",
    "GradesAsked",
    "PairsAsked",
    "Priced",
    "Runs",
    "Situation",
    "Wanted",
    "ask_by_rule",
    "asked_for",
    "bought",
    "candidate_pairs",
    "cost_table",
    "pairs_below",
    "pairs_near",
    "replayed",
    "thing_keys",
    "units_of",
]
