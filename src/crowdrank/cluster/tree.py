"""The fixed tree in which statistics of parts are summed, so that no executor changes a bit of a sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class TreeSum(Generic[Value]):
    """A sum over parts that come in their order, added like the digits of a binary counter.

    Node (level, number) covers parts ``number * 2**level`` to before ``(number + 1) * 2**level``, and a missing right
    half passes the left one up. Only the logarithm of the number of parts is held at once. Sums of aligned blocks of
    ``2**level`` parts, added in their order, give the same tree.

    Examples
    --------
    >>> added = TreeSum(lambda left, right: f"({left}{right})")
    >>> for part in "abcdefg":
    ...     added.add(part)
    >>> added.total()
    '(((ab)(cd))((ef)g))'
    """

    def __init__(self, merge: Callable[[Value, Value], Value]) -> None:
        self.merge = merge
        self._waiting: list[tuple[int, Value]] = []

    def add(self, value: Value) -> None:
        """Add the next part, joining it with every left half that waits for it."""
        level = 0
        while self._waiting and self._waiting[-1][0] == level:
            value = self.merge(self._waiting.pop()[1], value)
            level += 1
        self._waiting.append((level, value))

    def total(self) -> Value:
        """Return the sum of all parts added so far."""
        if not self._waiting:
            raise ValueError("there is no part to add up")
        total = self._waiting[-1][1]
        for _, left in reversed(self._waiting[:-1]):
            total = self.merge(left, total)
        return total
