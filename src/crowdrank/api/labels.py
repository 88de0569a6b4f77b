"""Labels: several per item, with their doubt kept for training, and a classifier as one more annotator."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaln, expit, logit, ndtr

from ..data.column_names import quote_names, understand_items
from ..data.consensus import Consensus
from ..data.frames import to_frame
from ..data.judgments import Grades
from ..data.showing import Shown
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..io.tables import read_table
from ..protocols import Bools, Floats, Ints
from ..registry import make
from ..wording import counted, first_few, in_python, one_of, option
from .sentences import words_of

_SEPARATORS = "|;,"
_STRENGTHS = np.geomspace(1.0, 300.0, 16)
"""Numbers of answers that the prior of an annotator's rate may be worth."""

_TOL, _MAX_ITER = 1e-5, 300
_YES, _NO = ["1", "1.0", "true", "yes", "y", "x", "✓", "✔"], ["0", "0.0", "false", "no", "n"]
_LABELS = ("labels", "label", "tags", "classes", "grade", "answer")
_MOST_LABELS = 500


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelSets(Shown):
    """The labels of each item; :func:`aggregate_labels` makes it.

    Parameters
    ----------
    table
        query where there is one, item, labels (joined by ``|``), n_labels, expected_f1, and the probability of each
        label in its own column; n_asked, cannot_tell and difficulty where such answers were named.
    annotators
        annotator, n_judged, sensitivity (share of an item's labels that they give) and specificity (share of the other
        labels that they do not), with what a guess would have, over all labels; n_asked and cannot_tell.
    labels
        label, share of the items that have it, and the crowd's sensitivity and specificity for it.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": ["x", "x"], "annotator": ["ann", "bob"], "labels": ["cat|dog", "cat|dog"]}
    >>> found = cr.aggregate_labels(votes)
    >>> len(found), found.labels["label"].to_list()
    (1, ['cat', 'dog'])
    """

    table: pl.DataFrame
    annotators: pl.DataFrame
    labels: pl.DataFrame

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"LabelSets({counted(len(self), 'item')}, {counted(len(self.labels), 'label')})"

    def frame(self) -> pl.DataFrame:
        """Return the table of items."""
        return self.table

    def sheets(self) -> dict[str, pl.DataFrame]:
        """Return the tables of a workbook by their names."""
        return {"items": self.table, "annotators": self.annotators, "labels": self.labels}


def aggregate_labels(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    labels: str | None = None,
    choose: str | float = "f1",
    method: str = "shared",
    cannot_tell: Sequence[str] = (),
) -> LabelSets:
    r"""Return the set of labels of each item, where annotators gave several.

    Parameters
    ----------
    data
        A table or file with item, annotator and a column of labels: ``cat|dog``, a list, or a JSON list; or a column of
        0 and 1 for each label. An empty cell is an answer: none of the labels. One label per row is read as well: those
        of one annotator and item are put together.
    columns
        The columns of 0 and 1 (yes and no, crosses) where there is one per label.
    labels
        The column of labels, if it is not called label, labels, grade or the like.
    choose
        ``"f1"``: the set of largest expected F1; or a probability from which on a label is taken, such as 0.5.
    method
        ``"shared"`` (the model below) or ``"majority"`` (each label by itself).
    cannot_tell
        Answers in the column of labels such as ``"can't tell"``, or columns of 0 and 1 that say so: no labels, but
        counted for items and annotators.

    Notes
    -----
    The probability of a label is the mean of those by two models. In the first a label holds or not. Annotator
    :math:`a` gives label :math:`l` with probability :math:`\alpha_{al}` where it holds and :math:`1 - \beta_{al}` where
    it does not. Each :math:`\alpha_{al}` has a beta prior around the annotator's own rate over all labels, moved by as
    much as the label differs for the crowd; this in turn has one around the crowd's. What these priors are worth is
    learned by their likelihood. In the second, ``latent_score``, a label holds to a degree, annotators have thresholds
    that are shared over labels, and it counts where a typical annotator would give it. The mean is seldom far from
    the better of the two ([measured](../evidence/labels-and-numbers.md)). The set of largest expected
    F1 is exact for labels that are independent given the answers: the best set of each size has the likeliest labels.

    Examples
    --------
    >>> votes = {"item": ["x", "x", "y", "y"], "annotator": ["ann", "bob"] * 2, "labels": ["cat|dog", "cat", "", "dog"]}
    >>> aggregate_labels(votes).table["labels"].to_list()[0]
    'cat|dog'
    """
    one_of(method, ("shared", "majority"), "method")
    frame = read_table(data) if isinstance(data, str | os.PathLike) else to_frame(data)
    names = understand_items(frame.columns, also=("annotator",))
    if "annotator" not in names:
        raise JudgmentError(words_of("no_annotators_of_labels", columns=quote_names(frame.columns)))
    own = {word: names[word] for word in ("query", "item", "annotator") if word in names}
    keys = list(own.values())
    frame = frame.with_columns(pl.col(keys).cast(pl.String).str.strip_chars().replace("", None))
    blank = frame.select(pl.any_horizontal(pl.col(keys).is_null())).to_series().arg_true()
    if len(blank):
        raise JudgmentError(f"row {blank[0] + 1} has a blank id; fill it in, or leave the row out")
    things = keys[:-1]
    if columns:
        none = _flags(frame, cannot_tell).any(axis=1) if cannot_tell else np.zeros(len(frame), bool)
        yes, known = _flags(frame.filter(~pl.Series(none)), columns), [str(name) for name in columns]
    else:
        frame, yes, known, none = _label_rows(frame, keys, labels, cannot_tell)
    asked = frame.select(**own)
    frame = frame.filter(~pl.Series(none))
    # sums in an order that is not that of the rows
    order = np.lexsort((*yes.T, *(frame[key].rank("dense").to_numpy() for key in keys)))
    frame, yes = frame[order], yes[order]
    listed = frame.select(things).unique().sort(things)
    item = frame.select(things).join(listed.with_row_index("code"), on=things, maintain_order="left")["code"].to_numpy()
    people = frame[names["annotator"]].unique().sort()
    who = np.searchsorted(people.to_numpy(), frame[names["annotator"]].to_numpy()).astype(np.int32)
    n, n_who = len(listed), len(people)
    posterior = share = _counts(item, yes, n) / np.maximum(np.bincount(item, minlength=n)[:, None], 1)
    if method == "shared":
        classes, sensitivity, specificity = _fit_classes(item, who, yes, (n, n_who), share)
        posterior = 0.5 * (classes + _fit_degrees(item, who, yes, n))
    chosen, f1 = _best_sets(posterior, choose)
    sets = ["|".join(known[place] for place in np.flatnonzero(row)) for row in chosen]
    table = listed.rename({name: word for word, name in own.items() if word != "annotator"})
    table = table.with_columns(labels=pl.Series(sets), n_labels=chosen.sum(axis=1), expected_f1=f1)
    table = table.with_columns(pl.Series(f"P({name})", posterior[:, place]) for place, name in enumerate(known))
    about_people = pl.DataFrame({"annotator": people, "n_judged": np.bincount(who, minlength=n_who)})
    if method == "shared":
        right = np.average(sensitivity, axis=1, weights=classes.sum(axis=0))
        rest = np.average(specificity, axis=1, weights=(1 - classes).sum(axis=0))
        about_people = about_people.with_columns(sensitivity=right, specificity=rest, informedness=right + rest - 1)
    about_labels = pl.DataFrame({"label": known, "share": posterior.mean(axis=0), "share_of_answers": yes.mean(axis=0)})
    if cannot_tell:
        items, doubts = difficulty(asked.with_columns(grade=pl.Series(np.where(none, cannot_tell[0], ""))), cannot_tell)
        both: dict[str, Any] = {"how": "full", "coalesce": True, "maintain_order": "left_right"}
        table = table.join(items, on=list(own)[:-1], **both)
        about_people = about_people.join(doubts, on="annotator", **both)
    return LabelSets(table=table, annotators=about_people, labels=about_labels)


def _flags(frame: pl.DataFrame, columns: Sequence[str]) -> Floats:
    """Which labels each row has, (n_rows, n_labels), from a column of yes and no for each."""
    lacking = [name for name in columns if name not in frame.columns]
    if lacking:
        raise JudgmentError(f"there is no column {lacking[0]!r}; the columns are {quote_names(frame.columns)}")
    said = frame.select(pl.col(columns).cast(pl.String).str.strip_chars().str.to_lowercase().fill_null(""))
    # where only crosses are made, what has none is no
    crossed = not any(said[name].is_in(_NO).any() for name in columns)
    yes = said.select(pl.col(columns).is_in(_YES)).to_numpy()
    odd = ~yes & ~said.select(pl.col(columns).is_in([*_NO, ""] if crossed else _NO)).to_numpy()
    if odd.any():
        row, place = np.argwhere(odd)[0].tolist()
        cell, name = said.row(row)[place], columns[place]
        raise JudgmentError(f"row {row + 1} has {cell!r} in {name!r}; a column per label holds 1 or 0 only")
    return yes.astype(np.float64)


def _label_rows(
    frame: pl.DataFrame, keys: list[str], labels: str | None, cannot_tell: Sequence[str]
) -> tuple[pl.DataFrame, Floats, list[str], Bools]:
    """The rows, which labels each answer among them has, the labels, and which rows say that nobody could tell."""
    naming = in_python("labels=") or option("several")
    wanted = labels or next((name for name in frame.columns if name.lower() in _LABELS), None)
    if wanted is None or wanted not in frame.columns:
        raise JudgmentError(f"no column of labels among {quote_names(frame.columns)}; name it with {naming}")
    cells = frame[wanted].to_list()
    texts = [cell for cell in cells if isinstance(cell, str)]
    mark = next((one for one in _SEPARATORS if any(one in text and text[:1] != "[" for text in texts)), "|")
    sets = []
    for row, cell in enumerate(cells):
        # a list, a JSON list, which may have single quotes, or text with marks between
        if isinstance(cell, str) and cell.strip()[:1] == "[":
            for text in (cell, cell.replace("'", '"')):
                with suppress(ValueError):
                    cell = json.loads(text)
                    break
            else:
                raise JudgmentError(f"row {row + 1} has {cell!r}, which is no list; write cat|dog")
        cell = cell.split(mark) if isinstance(cell, str) else cell
        parts = cell if isinstance(cell, list | tuple | pl.Series) else [] if cell is None else [cell]
        sets.append(sorted({str(one).strip() for one in parts if str(one).strip()}))
    rows = frame.select(keys).with_columns(grade=pl.Series(sets))
    if rows["grade"].list.len().max() == 1 and rows.select(keys).is_duplicated().any():
        rows = rows.group_by(keys, maintain_order=True).agg(pl.col("grade").list.explode())
        say(f"one label per row: those of one annotator are put together, {counted(len(rows), 'answer')} in all")
    words = [one.strip().lower() for one in cannot_tell]
    none = rows["grade"].list.eval(pl.element().str.to_lowercase().is_in(words)).list.any()
    told = rows["grade"].filter(~none)
    known = sorted(set(told.explode().drop_nulls().to_list()))
    if not known:
        raise JudgmentError(f"column {wanted!r} holds no label at all; name another with {naming}")
    if len(known) > _MOST_LABELS:
        raise JudgmentError(words_of("many_labels", wanted=wanted, number=len(known), most=_MOST_LABELS))
    yes = np.column_stack([told.list.contains(label).to_numpy() for label in known])
    return rows, yes.astype(np.float64), known, none.to_numpy()


def _counts(group: Ints, values: Floats, n: int) -> Floats:
    """Sums of rows by group, (n, n_labels)."""
    return np.stack([np.bincount(group, column, n) for column in values.T], axis=1)


def _fit_degrees(item: Ints, who: Ints, yes: Floats, n: int) -> Floats:
    """Probability that a typical annotator would give an item a label, where it holds to a degree."""
    n_labels = yes.shape[1]
    rows = {"query": np.tile(np.arange(n_labels), len(yes)), "item": np.repeat(item, n_labels).astype(np.int64),
            "annotator": np.repeat(who, n_labels), "grade": yes.ravel().astype(np.int64)}  # fmt: skip
    with warnings.catch_warnings():
        # labels that all or none of the items have, and annotators who judged an item twice
        warnings.simplefilter("ignore")
        fit = make("aggregator", "latent_score").fit(Grades.from_frame(rows, levels=[0, 1]))
    assert fit.std_error is not None
    label, thing = np.divmod(np.arange(n_labels * n), n)
    code = fit.items.codes(pl.Series(label), pl.Series(thing))
    return ndtr((fit.scores - fit.estimates["cuts"][0]) / fit.std_error)[code].reshape(n_labels, n).T


def _fit_classes(
    item: Ints, who: Ints, yes: Floats, sizes: tuple[int, int], share: Floats
) -> tuple[Floats, Floats, Floats]:
    """Probability of each label for each item where it holds or not, and each annotator's rates by label, by EM."""
    n, n_who = sizes
    posterior = np.clip(share, 0.02, 0.98)
    for _ in range(_MAX_ITER):
        holds = posterior[item]
        sensitivity = _rates(_counts(who, holds * yes, n_who), _counts(who, holds, n_who), 0.8)
        false = _rates(_counts(who, (1 - holds) * yes, n_who), _counts(who, 1 - holds, n_who), 0.1)
        # labels that hold and are given less often than they are wrongly given would exchange their meaning
        false = np.minimum(false, np.maximum(sensitivity, false.mean(axis=0)))
        prior = logit((posterior.sum(axis=0) + 0.5) / (n + 1.0))
        told = np.log(sensitivity / false), np.log((1 - sensitivity) / (1 - false))
        evidence = _counts(item, yes * told[0][who] + (1 - yes) * told[1][who], n)
        new = expit(np.clip(prior + evidence, -30, 30))
        change, posterior = float(np.abs(new - posterior).max()), new
        if change <= _TOL:
            break
    return posterior, sensitivity, 1 - false


def _rates(hits: Floats, total: Floats, middle: float) -> Floats:
    """Rates of each annotator for each label, drawn to the annotator's own over labels and that to the crowd's."""
    crowd = (hits.sum(axis=0) + 4 * middle) / (total.sum(axis=0) + 4)
    whole = (hits.sum() + 4 * middle) / (total.sum() + 4)
    expected = total @ crowd
    own_hits = hits.sum(axis=1)
    answers = total.sum(axis=1)
    strength = _learned_strength(own_hits[:, None], answers[:, None], (expected / np.maximum(answers, 1e-9))[:, None])
    # how far the annotator is from the crowd, in log odds, for all labels
    own = (own_hits + strength * whole) / (answers + strength)
    usual = (expected + strength * whole) / (answers + strength)
    shift = logit(np.clip(own, 1e-4, 1 - 1e-4)) - logit(np.clip(usual, 1e-4, 1 - 1e-4))
    around = expit(logit(np.clip(crowd, 1e-3, 1 - 1e-3))[None, :] + shift[:, None])
    strength = _learned_strength(hits, total, around)
    return np.clip((hits + strength * around) / (total + strength), 1e-3, 1 - 1e-3)


def _learned_strength(hits: Floats, total: Floats, around: Floats) -> float:
    """How many answers a beta prior around these rates is worth, by the likelihood of the counts."""
    around = np.clip(around, 1e-3, 1 - 1e-3)
    likely = [
        float((betaln(hits + s * around, total - hits + s * (1 - around)) - betaln(s * around, s * (1 - around))).sum())
        for s in _STRENGTHS
    ]
    return float(_STRENGTHS[int(np.argmax(likely))])


def _best_sets(posterior: Floats, choose: str | float = "f1") -> tuple[Bools, Floats]:
    """The set of largest expected F1 of each item, or its labels from a probability on, and that F1; no label counts 1.

    Either set has the likeliest labels, so what is chosen is how many.
    """
    n, k = posterior.shape
    wanted = None
    if choose != "f1":
        limit = float(choose) if re.fullmatch(r"0?\.\d+", str(choose)) else 0.0
        if not 0 < limit < 1:
            raise ParameterError(f"choose={choose!r} is neither 'f1' nor a probability such as 0.5")
        wanted = (posterior >= limit).sum(axis=1)
    order = np.argsort(-posterior, axis=1, kind="stable")
    ranked = np.take_along_axis(posterior, order, axis=1)
    best, size = np.prod(1 - ranked, axis=1), np.zeros(n, np.int64)
    for m in range(1, k + 1):
        # how many of the m taken hold, and how many of the others
        inside, outside = _number_of(ranked[:, :m]), _number_of(ranked[:, m:])
        hit, missed = np.arange(m + 1)[:, None], np.arange(k - m + 1)[None, :]
        f1 = np.einsum("nh,nm,hm->n", inside, outside, 2 * hit / (m + hit + missed))
        better = f1 > best + 1e-12 if wanted is None else wanted == m
        best, size = np.where(better, f1, best), np.where(better, m, size)
    chosen = np.zeros((n, k), bool)
    np.put_along_axis(chosen, order, np.arange(k)[None, :] < size[:, None], axis=1)
    return chosen, best


def _number_of(chances: Floats) -> Floats:
    """Distribution of the number of events that happen, (n, n_events + 1)."""
    found = np.zeros((len(chances), chances.shape[1] + 1))
    found[:, 0] = 1.0
    for p in chances.T[:, :, None]:
        found[:, 1:] = found[:, 1:] * (1 - p) + found[:, :-1] * p
        found[:, :1] *= 1 - p
    return found


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
    chances = consensus.probabilities
    if chances is None or consensus.levels is None:
        remedy = f"use a class method, as with {option('want', 'grade')}"
        raise ParameterError(f"{consensus.method} gives no probabilities of classes; {remedy}")
    columns: dict[str, Any] = consensus.items.id_columns()
    columns |= {f"P({level})": chances[:, place] for place, level in enumerate(consensus.levels)}
    entropy = _entropy_bits(chances)
    columns |= {"entropy": entropy, "effective_labels": 2**entropy, "weight": chances.max(axis=1)}
    if isinstance(judgments, Grades):
        votes = _votes(judgments, consensus)
        number = votes.sum(axis=1, keepdims=True)
        columns |= {"n_votes": number[:, 0], "disagreement": _entropy_bits(votes / np.maximum(number, 1e-300))}
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
    given = {item: rows for (item,), rows in frame.group_by("item", maintain_order=True)}
    levels, found = [str(level) for level in consensus.levels or ()], {}
    for row in table.iter_rows(named=True):
        name = str(row["item"])
        rows = given.get(name, frame.clear())
        votes = [str(one) for one in rows["grade"].to_list()]
        shares = {level: votes.count(level) / max(len(votes), 1) for level in levels}
        soft = {level: row[f"P({level})"] for level in levels}
        found[name] = {
            "annotators": ",".join(map(str, rows["annotator"])) if "annotator" in rows.columns else "",
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
        remedy = f"its columns are {quote_names(frame.columns)}"
        raise JudgmentError(f"the classifier's table has no column for {first_few(map(repr, lacking))}; {remedy}")
    chances = frame.select(pl.col(own[level]).cast(pl.Float64, strict=False) for level in levels).to_numpy()
    odd = np.flatnonzero(~(np.isfinite(chances) & (chances >= 0)).all(axis=1))
    if len(odd):
        raise JudgmentError(f"row {odd[0] + 1} of the classifier's table has a probability that is no number from 0 on")
    code = grades.items.codes(frame[names["query"]] if "query" in names else None, frame[names["item"]])
    code, chances = code[code >= 0], chances[code >= 0]
    if not len(code):
        raise JudgmentError("no item of the classifier's table was judged; check that ids are the same")
    sure = np.sort(chances, axis=1)
    margin = sure[:, -1] - sure[:, -2] if chances.shape[1] > 1 else sure[:, -1]
    third = np.minimum(np.argsort(np.argsort(-margin, kind="stable"), kind="stable") * 3 // len(margin), 2)
    names_of = pl.Series([f"classifier ({part})" for part in ("surest third", "middle third", "least sure third")])
    rows = grades.items.query_column(code) | {
        "item": grades.items.ids.gather(code),
        "annotator": names_of.gather(third),
    }
    rows["grade"] = pl.Series(grades.levels).gather(chances.argmax(axis=1))
    said = grades.frame()
    more = pl.DataFrame(rows).with_columns(pl.col(name).cast(said.schema[name]) for name in rows if name != "annotator")
    both = pl.concat([said.with_columns(pl.col("annotator").cast(pl.String)), more], how="diagonal")
    return Grades.from_frame(
        both.select(pl.col("^(query|item|annotator|grade)$")), levels=None if grades.nominal else grades.declared,
        nominal=grades.nominal, items=grades.items.frame(),
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
    table = table.with_columns(easy=1.0, own=1.0)
    things = [name for name in ("query", "item") if name in asked.columns]
    for keys, factor, other in 50 * ((things, "easy", "own"), (["annotator"], "own", "easy")):
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
