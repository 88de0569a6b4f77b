"""Judgments of any kind as sheets of contests: what each annotator said of each query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...data.judgments import Judgments, Preferences, Rankings
from ...protocols import Counts

if TYPE_CHECKING:
    from .kernels.sheets import Sheets


def fill_sheets(judgments: Judgments) -> tuple[Sheets, Counts]:
    """Return the sheets of judgments, and the annotator of each sheet.

    Every ranking is a sheet of its own, and so are the judgments of each former query after ``across_queries()``.
    Several grades of one item in a sheet are averaged. Judgments without annotators are all by one.
    """
    from ...kernels.standings import one_each
    from .kernels.sheets import level_sheets, pair_sheets

    annotator = judgments.annotator if judgments.n_annotators else np.zeros(len(judgments), np.int32)
    items, weight, code = judgments.items, np.asarray(judgments.row_weight), annotator.astype(np.int64)
    if isinstance(judgments, Rankings):
        number, n = judgments.ranking, max(len(judgments), 1)
        code = (code * n)[number] + number
        sheets = level_sheets(code, judgments.item, -judgments.rank.astype(np.float64), weight[number])
        return sheets, sheets.code // n
    item = judgments.left if isinstance(judgments, Preferences) else judgments.item
    code, n = code * items.n_queries + items.query[item], items.n_queries
    if judgments.block is not None and judgments.blocks is not None:
        code, n = code * len(judgments.blocks) + judgments.block, n * len(judgments.blocks)
    if isinstance(judgments, Preferences):
        sheets = pair_sheets(code, judgments.left, judgments.right, judgments.outcome * weight, len(items))
    else:
        sheets = level_sheets(*one_each(code, item, judgments.grade, weight))
    return sheets, sheets.code // n
