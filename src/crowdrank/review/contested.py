"""Where the crowd disagrees most: pairs of items with votes for either side, or items with grades far apart."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.judgments import Grades, Judgments
from ..data.mixed import Mixed, parts_of
from ..protocols import Floats
from .coded_judgments import CodedJudgments, code_judgments
from .facts import Facts
from .finding import Finding, name

MOST = 200
_MIN_ANSWERS = 3
_MIN_SHARE_DIVIDED = 0.35


def contested_items(judgments: Judgments | Mixed, consensus: Consensus) -> pl.DataFrame:
    """Return where the crowd disagrees most, the most divided first; at most 200 rows.

    For preferences and rankings: [query,] item, other, n_answers, n_item (prefer the item), n_other, n_tied and
    divided, the share of all but the commonest answer, cautiously. For grades: [query,] item, n_answers, lowest,
    highest and spread, the standard deviation of the grades (of classes without an order: divided, the share of all
    but the commonest). What has fewer than three answers is left out.
    """
    part = max(parts_of(judgments), key=len)
    coded = code_judgments(part)
    return _grades(part, coded) if isinstance(part, Grades) else _pairs(part, coded, consensus)


def _pairs(part: Judgments, coded: CodedJudgments, consensus: Consensus) -> pl.DataFrame:
    """Pairs of items by how divided the crowd is on them."""
    n_items = max(part.n_items, 1)
    key = coded.first.astype(np.int64)[coded.thing] * n_items + coded.second[coded.thing]
    pairs, cell = np.unique(key, return_inverse=True)
    votes = np.bincount(cell * 3 + coded.code, minlength=3 * len(pairs)).reshape(-1, 3)
    number = votes.sum(axis=1)
    divided = _share_less_standard_error(number - votes.max(axis=1), number)
    order = np.argsort(-divided, kind="stable")
    order = order[number[order] >= _MIN_ANSWERS][:MOST]
    first, second = pairs[order] // n_items, pairs[order] % n_items
    ahead = consensus.scores[first] >= consensus.scores[second]
    item, other = np.where(ahead, first, second), np.where(ahead, second, first)
    items = consensus.items
    columns = {} if items.single else {"query": items.queries.ids.gather(items.query[item])}
    return pl.DataFrame(
        {
            **columns,
            "item": items.ids.gather(item),
            "other": items.ids.gather(other),
            "n_answers": number[order],
            "n_item": np.where(ahead, votes[order, 2], votes[order, 0]),
            "n_other": np.where(ahead, votes[order, 0], votes[order, 2]),
            "n_tied": votes[order, 1],
            "divided": divided[order],
        }
    )


def _share_less_standard_error(part: Floats, whole: Floats) -> Floats:
    """A share less one standard error (Wilson), so few votes do not look more divided than many."""
    share = part / whole
    middle, reach = share + 0.5 / whole, np.sqrt(share * (1 - share) / whole + 0.25 / whole**2)
    bound: Floats = (middle - reach) / (1 + 1 / whole)
    return bound


def _grades(grades: Grades, coded: CodedJudgments) -> pl.DataFrame:
    """Items by how far apart their grades are."""
    n = grades.n_items
    number = np.bincount(grades.item, minlength=n)
    items = grades.items
    columns = {} if items.single else {"query": items.query_ids()}
    table = pl.DataFrame({**columns, "item": items.ids, "n_answers": number})
    if grades.nominal:
        cells = np.unique(coded.first[coded.thing].astype(np.int64) * coded.n_codes + coded.code, return_counts=True)
        most, total = np.zeros(n), np.zeros(n)
        np.maximum.at(most, cells[0] // coded.n_codes, cells[1])
        np.add.at(total, cells[0] // coded.n_codes, cells[1])
        table = table.with_columns(divided=1 - most / np.maximum(total, 1))
        worst = "divided"
    else:
        sums, squares = (np.bincount(grades.item, grades.grade**power, n) for power in (1, 2))
        mean = sums / np.maximum(number, 1)
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(low, grades.item, grades.grade)
        np.maximum.at(high, grades.item, grades.grade)
        spread = np.sqrt(np.maximum(squares / np.maximum(number, 1) - mean**2, 0.0))
        table = table.with_columns(lowest=pl.Series(low), highest=pl.Series(high), spread=pl.Series(spread))
        worst = "spread"
    return (
        table.filter(pl.col("n_answers") >= _MIN_ANSWERS).sort(worst, descending=True, maintain_order=True).head(MOST)
    )


def contested_findings(facts: Facts) -> list[Finding]:
    """Return what the crowd is most divided on."""
    if facts.judgments is None or not len(facts.judgments):
        return []
    table = facts.contested_items
    if not len(table):
        return []
    top = table.row(0, named=True)
    within = f" (query {name(top['query'])})" if facts.consensus.items.n_queries > 1 else ""
    if "other" in top:
        if top["divided"] <= 0:
            return []
        n = int((table["divided"] >= _MIN_SHARE_DIVIDED).sum())
        sentence = f"annotators are most divided on {name(top['item'])} against {name(top['other'])}{within}: "
        sentence += f"{top['n_item']:,} to {top['n_other']:,}"
        sentence += f", {top['n_tied']:,} tied" if top["n_tied"] else ""
        numbers = {"n_divided": n, "n_item": top["n_item"], "n_other": top["n_other"]}
        return [Finding("divided", "agreement", "info", sentence, numbers, (top["item"], top["other"]))]
    if "divided" in top:
        if not top["divided"]:
            return []
        sentence = f"annotators are most divided on {name(top['item'])}{within}"
        return [Finding("divided", "agreement", "info", sentence, {"divided": top["divided"]}, (top["item"],))]
    if not top["spread"]:
        return []
    sentence = f"annotators are most divided on {name(top['item'])}{within}: {top['n_answers']:,} grades from "
    sentence += f"{top['lowest']:g} to {top['highest']:g}"
    return [Finding("divided", "agreement", "info", sentence, {"spread": top["spread"]}, (top["item"],))]
