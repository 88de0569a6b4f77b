"""Aggregators: judgments in, consensus out; one method per file, imported when it is first asked for."""

from __future__ import annotations

from typing import Any

from ..protocols import method_named


def __getattr__(name: str) -> Any:
    """Return an aggregator by the name of its class."""
    return method_named(__name__, name)
