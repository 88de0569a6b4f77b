"""Joint methods: judgments and features in, a consensus, the annotators' quality and a ranker out."""

from .two_stage import TwoStage, TwoStageFit

__all__ = ["TwoStage", "TwoStageFit"]
