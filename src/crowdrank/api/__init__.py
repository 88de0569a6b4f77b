"""The verbs: what people do with judgments."""

from ..review.actions import Actions
from ..review.findings import Finding, Findings
from ..validation.comparison import Comparison
from ..validation.evaluation import Evaluation
from .actions import actions
from .aggregation import aggregate, as_judgments, check_aggregation, check_level, expect_one_kind
from .campaigns import campaign_ends, campaign_sentences, campaigns
from .choosing import Choice, auto_method
from .comparison import check_comparison, compare, compare_methods
from .diagnosis import diagnose
from .door import at_the_door
from .evaluation import evaluate, evaluate_runs
from .findings import findings
from .methods import Described, methods
from .proposals import check_requests, propose, requests, scheme_costs
from .training import as_features, check_training, rank, train

actions = at_the_door(actions)
aggregate = at_the_door(aggregate)
campaigns = at_the_door(campaigns)
compare = at_the_door(compare)
compare_methods = at_the_door(compare_methods)
diagnose = at_the_door(diagnose)
evaluate = at_the_door(evaluate)
evaluate_runs = at_the_door(evaluate_runs)
findings = at_the_door(findings)
propose = at_the_door(propose)
rank = at_the_door(rank)
train = at_the_door(train)

__all__ = [
    "Actions",
    "Choice",
    "Comparison",
    "Described",
    "Evaluation",
    "Finding",
    "Findings",
    "actions",
    "aggregate",
    "as_features",
    "as_judgments",
    "auto_method",
    "campaign_ends",
    "campaign_sentences",
    "campaigns",
    "check_aggregation",
    "check_comparison",
    "check_level",
    "check_requests",
    "check_training",
    "compare",
    "compare_methods",
    "diagnose",
    "evaluate",
    "evaluate_runs",
    "expect_one_kind",
    "findings",
    "methods",
    "propose",
    "rank",
    "requests",
    "scheme_costs",
    "train",
]  # fmt: skip
