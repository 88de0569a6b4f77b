"""The verbs: what people do with judgments."""

from .aggregation import Choice, aggregate, as_judgments, auto_method
from .comparison import compare
from .evaluation import Evaluation, evaluate, evaluate_runs

__all__ = ["Choice", "Evaluation", "aggregate", "as_judgments", "auto_method", "compare", "evaluate", "evaluate_runs"]
