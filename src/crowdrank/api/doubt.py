"""Labels with their doubt kept: probabilities per class for training, and a classifier as one more annotator."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from ..data.column_names import quote_names, understand_items
from ..data.consensus import Consensus
from ..data.frames import to_frame
from ..data.judgments import Grades
from ..errors import JudgmentError, ParameterError
from ..protocols import Floats
from ..wording import first_few, option

_PARTS = ("surest third", "middle third", "least sure third")
CLASSIFIER = "classifier"
_CHANCE_OF = re.compile(r"^(p|prob|proba|probability|score)[_( ]|\)$|_(p|prob|proba|probability)$", re.IGNORECASE)
"""What stands around a class in the name of a column of its probabilities."""


def soft_labels(consensus: Consensus, judgments: Any = None) -> pl.DataFrame:
    """Return the probability of each class for each item as plain columns, for training with soft labels or weights.

    Columns: query, item, ``P(class)`` for each class, entropy (of these, in bits), effective_labels (2 to the power of
    it: 1 where one class is certain), weight (the probability of the likeliest class, a sample weight for training with
    hard labels) and, where the judgments are given, n_votes and disagreement (the entropy of the votes themselves).
    Entropy is how sure the consensus is; disagreement stays where many annotators answer either way.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xxxyyy"), "annotator": list("abcabc"), "grade": ["cat", "cat", *["dog"] * 4]}
    >>> grades = cr.Grades.from_frame(votes, nominal=True)
    >>> soft_labels(cr.aggregate(grades, "majority_vote"), grades).select("item", "P(cat)", "disagreement").rows()[0]
    ('y', 0.0, 0.0)
    """
    if consensus.probabilities is None or consensus.levels is None:
        raise ParameterError(
            f"{consensus.method} gives no probabilities of classes; use a class method, as with "
            f"{option('want', 'grade')}"
        )
    chances = consensus.probabilities
    columns: dict[str, Any] = {} if consensus.items.single else {"query": consensus.items.query_ids()}
    columns["item"] = consensus.items.ids
    columns |= {f"P({level})": chances[:, place] for place, level in enumerate(consensus.levels)}
    entropy = _entropy_bits(chances)
    columns |= {"entropy": entropy, "effective_labels": 2**entropy, "weight": chances.max(axis=1)}
    if isinstance(judgments, Grades):
        votes = _votes(judgments, consensus)
        number = votes.sum(axis=1)
        columns |= {"n_votes": number, "disagreement": _entropy_bits(votes / np.maximum(number, 1e-300)[:, None])}
    order = np.lexsort((np.arange(len(consensus)), -consensus.scores, consensus.items.query))
    return pl.DataFrame(columns)[order]


def lewidi(consensus: Consensus, judgments: Grades) -> dict[str, dict[str, Any]]:
    """Return the items as sets of the Learning with Disagreements tasks have them: votes, hard and soft label of each.

    Item id -> ``annotators`` and ``annotations`` (with commas between), ``number of annotations``, ``hard_label`` (the
    consensus), ``soft_label`` (its probabilities), ``vote_shares`` and ``agreement`` (the share of the commonest vote).

    Examples
    --------
    >>> import crowdrank as cr
    >>> grades = cr.Grades.from_rows([(who, "q", "x", grade) for who, grade in zip("abc", (1, 1, 0))])
    >>> found = lewidi(cr.aggregate(grades, "majority_vote"), grades)
    >>> found["x"]["annotations"], round(found["x"]["agreement"], 2)
    ('1,1,0', 0.67)
    """
    table = soft_labels(consensus, judgments)
    if consensus.items.n_queries != 1:
        raise ParameterError("such sets have one id per item, but there are several queries; leave query out")
    frame = judgments.frame().with_columns(pl.col("item").cast(pl.String))
    named = "annotator" in frame.columns
    given = {item: rows for (item,), rows in frame.group_by("item", maintain_order=True)}
    assert consensus.levels is not None
    found = {}
    for row in table.iter_rows(named=True):
        name = str(row["item"])
        rows = given.get(name)
        votes = [] if rows is None else [str(one) for one in rows["grade"].to_list()]
        shares = {str(level): votes.count(str(level)) / max(len(votes), 1) for level in consensus.levels}
        soft = {str(level): row[f"P({level})"] for level in consensus.levels}
        found[name] = {
            "annotators": ",".join(map(str, rows["annotator"].to_list())) if named and rows is not None else "",
            "annotations": ",".join(votes), "number of annotations": len(votes),
            "hard_label": max(soft, key=lambda level: soft[level]), "soft_label": soft, "vote_shares": shares,
            "agreement": max(shares.values()),
        }  # fmt: skip
    return found


def with_classifier(grades: Any, probabilities: Any) -> Grades:
    """Return the grades with a classifier's as those of further annotators, whose confusions are learned like others'.

    ``probabilities`` is a table of item and a column for each class (``cat``, ``P(cat)`` or ``prob_cat``). The class
    that the classifier finds likeliest is its answer. Answers are those of three annotators, by thirds of how sure it
    was: each gets a confusion of its own, so that being sure counts as far as it proves right.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xxyy"), "annotator": list("abab"), "grade": ["cat", "dog", "dog", "dog"]}
    >>> grades = cr.Grades.from_frame(votes, nominal=True)
    >>> with_classifier(grades, {"item": ["x", "y"], "cat": [0.9, 0.2], "dog": [0.1, 0.8]})
    Grades(6 judgments, 2 items, 4 annotators)
    """
    if not isinstance(grades, Grades) or not grades.n_annotators:
        raise JudgmentError("a classifier can be one more annotator of grades or classes that name theirs only")
    frame = to_frame(probabilities)
    names = understand_items(frame.columns)
    levels = [str(level) for level in grades.levels]
    own = {_CHANCE_OF.sub("", column): column for column in frame.columns} | {name: name for name in frame.columns}
    lacking = [level for level in levels if level not in own]
    if lacking:
        raise JudgmentError(
            f"the classifier's table has no column for {first_few(map(repr, lacking))}; its columns are "
            f"{quote_names(frame.columns)}"
        )
    chances = frame.select(pl.col(own[level]).cast(pl.Float64, strict=False) for level in levels).to_numpy()
    if not np.isfinite(chances).all() or (chances < 0).any():
        row = int(np.flatnonzero(~np.isfinite(chances).all(axis=1) | (chances < 0).any(axis=1))[0]) + 1
        raise JudgmentError(f"row {row} of the classifier's table has a probability that is no number from 0 on")
    query = frame[names["query"]] if "query" in names else None
    code = grades.items.codes(query, frame[names["item"]])
    code, chances = code[code >= 0], chances[code >= 0]
    if not len(code):
        raise JudgmentError("no item of the classifier's table was judged; check that ids are the same")
    sure = np.sort(chances, axis=1)
    margin = sure[:, -1] - sure[:, -2] if chances.shape[1] > 1 else sure[:, -1]
    third = np.minimum(np.argsort(np.argsort(-margin, kind="stable"), kind="stable") * 3 // len(margin), 2)
    ids = [f"{CLASSIFIER} ({part})" for part in _PARTS]
    rows: dict[str, Any] = {} if grades.items.single else {"query": grades.items.query_ids().gather(code)}
    rows |= {"item": grades.items.ids.gather(code), "annotator": pl.Series([ids[one] for one in third])}
    rows["grade"] = pl.Series(grades.levels).gather(chances.argmax(axis=1))
    said = grades.frame()
    more = pl.DataFrame(rows).with_columns(pl.col(name).cast(said.schema[name]) for name in rows if name != "annotator")
    both = pl.concat([said.with_columns(pl.col("annotator").cast(pl.String)), more], how="diagonal")
    keep = [name for name in ("query", "item", "annotator", "grade") if name in both.columns]
    levels_given = grades.declared if grades.declared is not None else None
    return Grades.from_frame(
        both.select(keep), levels=None if grades.nominal else levels_given, nominal=grades.nominal,
        items=grades.items.frame(),
    )  # fmt: skip


def difficulty(asked: pl.DataFrame, answers: Iterable[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return how often each item, and each annotator, was answered with one of ``answers``, such as "can't tell".

    ``asked`` is a table of query where there is one, item, annotator and grade. Items: their ids, n_asked, cannot_tell
    (share) and difficulty, the share expected of an annotator like the average: counts by item and annotator are fitted
    in turn as products, each with two answers of the crowd's share as a prior. Annotators: annotator, n_asked and
    cannot_tell.
    """
    words = {str(one).strip().lower() for one in answers}
    cell = pl.col("grade").cast(pl.String).str.strip_chars().str.to_lowercase()
    table = asked.with_columns(none=cell.is_in(list(words)).fill_null(False).cast(pl.Float64))
    overall = float(table["none"].mean() or 0.0)  # type: ignore[arg-type]
    table = table.with_columns(easy=pl.lit(1.0), own=pl.lit(1.0))
    things = [name for name in ("query", "item") if name in asked.columns]
    for _ in range(50):
        for keys, factor, other in ((things, "easy", "own"), (["annotator"], "own", "easy")):
            expected = (pl.col(other) * overall).sum().over(keys)
            seen = pl.col("none").sum().over(keys)
            table = table.with_columns(((seen + 2 * overall) / (expected + 2 * overall + 1e-12)).alias(factor))
    share = pl.col("none").mean()
    items = table.group_by(things, maintain_order=True).agg(
        n_asked=pl.len(), cannot_tell=share, difficulty=(pl.col("easy").first() * overall).clip(0, 1)
    )
    people = table.group_by("annotator", maintain_order=True).agg(n_asked=pl.len(), cannot_tell=share)
    return items, people.sort("cannot_tell", "annotator", descending=[True, False])


def informed_by_difficulty(consensus: Consensus, grades: Grades, items: pl.DataFrame) -> Consensus:
    r"""Return the consensus less sure of the classes of items that annotators could not tell, and surer of others.

    Of an item of difficulty :math:`d_i` annotators are right with probability :math:`\sigma(a - b \log d_i)`, where
    :math:`a` and :math:`b \ge 0` are those that make the agreement of two answers to one item likeliest; :math:`b` has
    a standard normal prior, so that few answers change little. The log-odds of an item's classes are multiplied by what
    one answer says at its difficulty, in units of the mean over answers; the likeliest class stays. Without
    probabilities of classes nothing changes. ``estimates["difficulty_effect"]`` is :math:`b`.
    """
    from scipy.optimize import minimize

    chances, n_levels = consensus.probabilities, 0 if consensus.levels is None else len(consensus.levels)
    if chances is None or n_levels < 2 or not len(grades):
        return consensus
    things = [name for name in ("query", "item") if name in items.columns]
    ids = {"query": consensus.items.query_ids(), "item": consensus.items.ids}
    own = pl.DataFrame({name: ids[name].cast(pl.String) for name in things})
    known = items.with_columns(pl.col(things).cast(pl.String))
    hard = own.join(known, on=things, how="left", maintain_order="left")["difficulty"].fill_null(strategy="mean")
    votes = _votes(grades, consensus)
    number = votes.sum(axis=1)
    x = np.log(np.maximum(hard.to_numpy(), 1e-6))
    x = x - np.average(x, weights=number)
    pairs = number * (number - 1) / 2
    agreed = (votes * (votes - 1)).sum(axis=1) / 2
    # pairs of the same answers depend on each other: those of an item count as its answers but one
    each = np.where(number > 1, 2 / np.maximum(number, 2), 0.0)

    def right(point: Floats) -> Floats:
        return np.clip(expit(point[0] - point[1] * x), 1 / n_levels + 1e-6, 1 - 1e-6)

    def loss(point: Floats) -> float:
        p = right(point)
        same = p**2 + (1 - p) ** 2 / (n_levels - 1)
        return float(point[1] ** 2 / 2 - (each * (agreed * np.log(same) + (pairs - agreed) * np.log(1 - same))).sum())

    best = minimize(loss, np.array([1.0, 0.1]), method="L-BFGS-B", bounds=[(-5, 8), (0, 5)]).x
    p = right(best)
    told = np.log(p * (n_levels - 1) / (1 - p))
    told = told / np.average(told, weights=number)
    tempered = told[:, None] * np.log(np.maximum(chances, 1e-300))
    tempered = np.exp(tempered - tempered.max(axis=1, keepdims=True))
    tempered /= tempered.sum(axis=1, keepdims=True)
    estimates = {**consensus.estimates, "difficulty_effect": float(best[1])}
    scores = tempered.max(axis=1) if grades.nominal else consensus.scores
    return replace(consensus, scores=scores, probabilities=tempered, estimates=estimates)


def _entropy_bits(chances: Floats) -> Floats:
    """Entropy of each row in bits."""
    found: Floats = -(chances * np.log2(np.where(chances > 0, chances, 1.0))).sum(axis=1)
    return np.maximum(found, 0.0)


def _votes(grades: Grades, consensus: Consensus) -> Floats:
    """Weight of the votes for each level of a consensus, (n_items, n_levels)."""
    assert consensus.levels is not None
    place = {str(level): number for number, level in enumerate(consensus.levels)}
    code = np.array([place.get(str(level), -1) for level in grades.levels])[grades.level_place]
    votes = np.zeros((len(consensus), len(consensus.levels)))
    keep = code >= 0
    np.add.at(votes, (grades.item[keep], code[keep]), grades.row_weight[keep])
    return votes
