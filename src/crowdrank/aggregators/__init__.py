"""Aggregators: judgments in, consensus out; one method per file, imported when it is first asked for."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return an aggregator by the name of its class: ``BradleyTerry`` lives in ``bradley_terry.py``."""
    file = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    if name[:1].isupper():
        try:
            return getattr(import_module(f".{file}", __name__), name)
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
