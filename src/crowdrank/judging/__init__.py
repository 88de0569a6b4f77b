"""Asking language models what is worth its price: prompts, calls, budget, choice and stop rule, for ``cr.judge``."""

from .running import JudgeRun, ajudge, judge, sort

__all__ = ["JudgeRun", "ajudge", "judge", "sort"]
