"""The verbs: what people do with judgments."""

from .aggregation import Choice, aggregate, as_judgments, auto_method
from .comparison import compare
from .diagnosis import diagnose
from .evaluation import Evaluation, evaluate, evaluate_runs
from .training import as_features, rank, train

__all__ = [
    "Choice", "Evaluation", "aggregate", "as_features", "as_judgments", "auto_method", "compare", "diagnose",
    "evaluate", "evaluate_runs", "rank", "train",
]  # fmt: skip
