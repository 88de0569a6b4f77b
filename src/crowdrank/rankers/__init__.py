"""Rankers: features in, scores out; scikit-learn estimators, one per file, imported when first asked for."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a ranker by the name of its class: ``ListNet`` lives in ``list_net.py``; or the nDCG scorer."""
    if name in ("NDCGScorer", "ndcg_scorer"):
        return getattr(import_module("..learning.scoring", __name__), name)
    file = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    if name[:1].isupper():
        try:
            return getattr(import_module(f".{file}", __name__), name)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{file}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
