"""The whole diagnosis of judgments, given their consensus."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.diagnostics import Diagnostics
from ..data.index import Index
from ..data.intake import short
from ..data.judgments import Judgments, Mixed
from ..data.truth import Truth
from ..errors import JudgmentError
from ..protocols import Bools
from ..wording import SHOWN, first_few
from .coded_judgments import CodedJudgments, code_judgments
from .dependence import Dependence, dependence, effective_number
from .habits import habits
from .independence import panel_of, wrong_judgments
from .messages import dependence_sentences, group_sentences, habit_sentences, note_sentences
from .open_groups import open_groups

_HALF_INTERVAL = 1.6448536269514722
"""Standard errors on either side of a 90 % interval."""

_MIN_STANDARD_ERRORS = 2.0
_FEWEST_RIVALS = 8.0


def diagnose(judgments: Judgments, consensus: Consensus, truth: Truth | None = None) -> Diagnostics:
    """Return what is odd about judgments.

    ``consensus`` is of these judgments, with the same items; with ``truth`` errors are measured by it, which also shows
    those that most annotators have in common.
    """
    coded = code_judgments(judgments)
    table = habits(judgments, coded, consensus.scores)
    groups = open_groups(judgments)
    n = len(np.unique(judgments.annotator))
    pairs = _pairs(judgments, coded, consensus, truth)
    worth = _effective_number(pairs, n, known=truth is not None) if n else None
    sentences = habit_sentences(judgments, table, consensus.scores)
    sentences += [] if worth is None else dependence_sentences(judgments.annotators, pairs, n, worth)
    if judgments.n_annotators:
        table = table.with_columns(family=_family_numbers(pairs, judgments.n_annotators))
    return Diagnostics(
        kind=judgments.kind, n_annotators=n, effective_annotators=worth, annotator_messages=tuple(sentences),
        group_messages=tuple(group_sentences(judgments.items, groups).values()),
        notes=tuple(note_sentences(judgments, coded, pairs, n)), annotator_table=table,
        dependence_table=_dependence_table(judgments.annotators, pairs),
        family_table=_family_table(judgments, pairs), group_table=groups,
    )  # fmt: skip


def match_items(consensus: Consensus, judgments: Judgments | Mixed) -> Consensus:
    """Return the consensus with the items of the judgments, all of which it has to know."""
    items = judgments.items
    if consensus.items is items:
        return consensus
    single = consensus.items.single and items.single
    codes = consensus.items.codes(None if single else items.query_ids(), items.ids)
    if (codes < 0).any():
        missing = int(np.argmax(codes < 0))
        raise JudgmentError(
            f"the consensus does not know item {short(items.ids[missing])}; give the consensus of these judgments"
        )
    grade = None if consensus.grade is None else consensus.grade[codes]
    return Consensus(
        items=items, scores=consensus.scores[codes], method=consensus.method, params=consensus.params,
        levels=consensus.levels, grade=grade, nominal=consensus.nominal,
    )  # fmt: skip


def _pairs(judgments: Judgments, coded: CodedJudgments, consensus: Consensus, truth: Truth | None) -> Dependence | None:
    """Pairs of annotators with enough in common, or ``None``."""
    if judgments.n_annotators < 2 or not len(judgments):
        return None
    panel = panel_of(judgments, coded, truth)
    if panel.n_classes < 2:
        return None
    wrong = wrong_judgments(judgments, coded, consensus, panel)
    if judgments.kind == "grade":
        return dependence(panel, wrong, None)
    distance = np.abs(consensus.scores[coded.first] - consensus.scores[coded.second])
    # with few rivals the scores are made of the answers to be looked at, and against a truth hard pairs count too
    rivals = 2.0 * panel.n_things / max(len(np.unique([coded.first, coded.second])), 1)
    enough = truth is None and rivals >= _FEWEST_RIVALS
    return dependence(panel, wrong, (coded.first, coded.second), distance if enough else None)


def _effective_number(pairs: Dependence | None, n: int, *, known: bool) -> float:
    """How many independent annotators these are worth.

    Against a truth every pair that was looked at counts; otherwise those found to be dependent, since the level of
    the others is by construction 0.
    """
    if pairs is None or n < 2:
        return float(n)
    clipped = np.clip(pairs.correlation, 0.0, 1.0)
    if known:
        clear = pairs.sums.excess.sum() >= _MIN_STANDARD_ERRORS * np.sqrt(pairs.sums.variance.sum())
        return effective_number(n, _mean_correlation(pairs, np.ones(len(clipped), bool)) if clear else 0.0)
    return effective_number(n, 2.0 * float(clipped[pairs.dependent].sum()) / (n * (n - 1)))


def _mean_correlation(pairs: Dependence, use: Bools) -> float:
    """Mean correlation of some pairs, each by what it tells."""
    scale = pairs.sums.scale[use]
    return float((pairs.correlation[use] * scale).sum() / max(float(scale.sum()), 1e-12))


def _dependence_table(annotators: Index, pairs: Dependence | None) -> pl.DataFrame:
    """The pairs of annotators with ids, the largest excess first."""
    schema: dict[str, Any] = {
        "annotator": annotators.ids.dtype, "other": annotators.ids.dtype, "n_common": pl.Int64,
        **dict.fromkeys(_NUMBERS, pl.Float64),
    }  # fmt: skip
    if pairs is None:
        return pl.DataFrame(schema=schema)
    sums, reach = pairs.sums, _HALF_INTERVAL * pairs.std_error
    agreement = sums.same / sums.number
    columns: dict[str, Any] = {
        "annotator": annotators.ids.gather(pairs.one),
        "other": annotators.ids.gather(pairs.other),
        "n_common": sums.number.astype(np.int64),
        "agreement": agreement,
        "expected": agreement - pairs.excess,
        "excess": pairs.excess,
        "excess_lower": pairs.excess - reach,
        "excess_upper": pairs.excess + reach,
        "correlation": np.clip(pairs.correlation, -1.0, 1.0),
        "p_value": pairs.p_value,
        "false_discovery": pairs.false_discovery,
        "agreement_when_wrong": np.divide(
            sums.wrong_same, sums.wrong, out=np.full(len(agreement), np.nan), where=sums.wrong > 0
        ),
    }
    frame = pl.DataFrame(columns, schema=schema).with_columns(pl.col("agreement_when_wrong").fill_nan(None))
    return frame.sort("excess", "annotator", "other", descending=[True, False, False])


_NUMBERS = (
    "agreement", "expected", "excess", "excess_lower", "excess_upper", "correlation", "p_value", "false_discovery",
    "agreement_when_wrong",
)  # fmt: skip


def _family_numbers(pairs: Dependence | None, n: int) -> pl.Series:
    """Number of each annotator's family from 1, null where there is none."""
    family = np.full(n, -1) if pairs is None else pairs.family
    number = np.unique(family[family >= 0], return_inverse=True)[1] + 1
    numbers = np.zeros(n, np.int64)
    numbers[family >= 0] = number
    return pl.Series("family", numbers).set(pl.Series(family < 0), None)


def _family_table(judgments: Judgments, pairs: Dependence | None) -> pl.DataFrame:
    """Groups of annotators that were given, and families that were found."""
    rows: list[dict[str, Any]] = []
    active = np.bincount(judgments.annotator, minlength=judgments.n_annotators) > 0
    if judgments.groups is not None and judgments.group is not None:
        for code, name in enumerate(judgments.groups.ids.to_list()):
            rows.append(_family_row(judgments, pairs, str(name), "given", active & (judgments.group == code)))
    numbers = _family_numbers(pairs, judgments.n_annotators).fill_null(0).to_numpy()
    family_numbers = range(1, int(numbers.max(initial=0)) + 1)
    rows += [_family_row(judgments, pairs, str(number), "found", numbers == number) for number in family_numbers]
    return pl.DataFrame(rows, schema=_FAMILY)


_FAMILY: dict[str, Any] = {
    "family": pl.String, "origin": pl.String, "n_annotators": pl.Int64, "n_pairs": pl.Int64, "correlation": pl.Float64,
    "effective_annotators": pl.Float64, "annotators": pl.String,
}  # fmt: skip


def _family_row(
    judgments: Judgments, pairs: Dependence | None, name: str, origin: str, members: Bools
) -> dict[str, Any]:
    """One family: its size, the mean correlation of its members' errors, and what they are worth."""
    codes = np.flatnonzero(members)
    inside = np.zeros(0, bool) if pairs is None else members[pairs.one] & members[pairs.other]
    mean = _mean_correlation(pairs, inside) if pairs is not None and inside.any() else None
    names = first_few(map(short, judgments.annotators.ids.gather(codes[:SHOWN]).to_list()), len(codes), last=None)
    return {
        "family": name, "origin": origin, "n_annotators": len(codes), "n_pairs": int(inside.sum()), "correlation": mean,
        "effective_annotators": None if mean is None else effective_number(len(codes), mean), "annotators": names,
    }  # fmt: skip
