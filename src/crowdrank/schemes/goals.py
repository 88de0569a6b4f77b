"""What the answers to preferences should decide: the whole order, the first places, or which item is best."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..data.index import Items
from ..errors import ParameterError


@dataclass(frozen=True)
class Goal:
    """A goal: ``k`` places whose items should be the right ones, 0 for the whole order."""

    text: str
    k: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the goal that a text names: ``"order"``, ``"best"``, or ``"top-5"`` for the first five places."""
        word = text.strip().lower().replace("_", "-") if isinstance(text, str) else ""
        if word in ("order", "best"):
            return cls(word, int(word == "best"))
        found = re.fullmatch(r"top-([0-9]{1,9})", word)
        if found is None or not int(found[1]):
            raise ParameterError(f"goal={text!r} is not known; use 'order', 'best', or 'top-5' for the first 5 places")
        return cls(f"top-{int(found[1])}", int(found[1]))

    def expect_items(self, items: Items) -> str | None:
        """Return what to say of queries that have too few items for the goal; if all have, that is an error."""
        sizes = np.diff(items.offsets)
        few = int((sizes <= self.k).sum())
        if not self.k or not few:
            return None
        if few < len(sizes):
            return f"nothing is asked for {self.text} in {few:,} of {len(sizes):,} queries: no more than {self.k} items"
        most = int(sizes.max(initial=0))
        where = f"there are {most} items" if len(sizes) == 1 else f"no query has more than {most} items"
        remedy = f"name at most top-{most - 1}, or use the goal 'order'" if most > 1 else "add items"
        raise ParameterError(f"goal {self.text!r} leaves nothing to decide, as {where}; {remedy}")

    @property
    def measure(self) -> str:
        """What expected gains are measured in."""
        if not self.k:
            return "number of pairs in the wrong order"
        return "number of wrong best items" if self.k == 1 else f"number of items wrongly in the top {self.k}"

    @property
    def where(self) -> str:
        """Where the order of a pair counts, in the words of a reason."""
        if not self.k:
            return ""
        return ", and either may be the best" if self.text == "best" else f", at the edge of the top {self.k}"
