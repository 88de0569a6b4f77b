"""Rankers: scikit-learn estimators from features to scores, one per file, imported on first use; see estimator.py."""

from ..lazy import names_of_stub

_HOMES, __getattr__, __dir__ = names_of_stub(__name__, __file__)
