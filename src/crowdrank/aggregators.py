"""Aggregators by the name of their class (``cr.aggregators.CrowdBT``): judgments in, consensus out."""

from __future__ import annotations

from typing import Any

from .registry import class_named, class_names


def __getattr__(name: str) -> Any:
    """Return an aggregator by the name of its class, imported when it is first asked for."""
    return class_named("aggregator", name)


def __dir__() -> list[str]:
    """List the classes."""
    return class_names("aggregator")
