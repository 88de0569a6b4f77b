"""Judgments in memory, cut into parts by query or annotator as packed ones are."""

from dataclasses import dataclass

import numpy as np

from crowdrank.data.judgments import with_levels
from crowdrank.data.parted import keep_queries


@dataclass(frozen=True, eq=False)
class CutJudgments:
    """Parts of judgments, some of them perhaps empty."""

    whole: object
    n_parts: int
    by: str = "query"

    def __getattr__(self, name):
        if name in ("whole", "n_parts", "by"):
            raise AttributeError(name)
        return getattr(self.whole, name)

    def __len__(self):
        return len(self.whole)

    @property
    def rows(self):
        return len(self.whole)

    @property
    def rows_of_parts(self):
        return [len(self.part(number)) for number in range(self.n_parts)]

    def _chosen(self, number):
        return np.arange(self.whole.n_queries) % self.n_parts == number

    def part(self, number):
        whole = with_levels(self.whole)
        if self.by == "annotator":
            return whole.select(np.flatnonzero(whole.annotator % self.n_parts == number))
        return keep_queries(whole, self._chosen(number))

    def item_codes(self, number):
        if self.by == "annotator":
            return np.arange(self.whole.n_items)
        return np.flatnonzero(self._chosen(number)[self.whole.items.query])
