"""Schemes: what is known in, requests out; which judgments to buy next, of whom, and when to stop.

A scheme is a frozen dataclass of hyper-parameters, one in a file, imported when it is first asked for. It has

- ``kinds``: the kinds of judgment it takes;
- ``needs``: the aggregator whose consensus it goes by, by kind of judgment; nothing where it needs none;
- ``propose(situation)``: from a :class:`~crowdrank.asking.Situation` to :class:`~crowdrank.data.proposals.Requests`.

Schemes that look at one item's grades only also have ``wanted(grade, offsets)``: how many grades each item should have
from those it has, in the order in which they were given; and ``expected(runs)``: what they cost, by formula.
"""

from __future__ import annotations

from typing import Any

from ..protocols import method_named


def __getattr__(name: str) -> Any:
    """Return a scheme by the name of its class."""
    return method_named(__name__, name)
