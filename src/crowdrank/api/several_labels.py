"""Several labels per item: yes or no for each, with annotators whose quality is shared over labels."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaln, expit, logit, ndtr

from ..data.column_names import quote_names, understand_items
from ..data.frames import to_frame
from ..data.judgments import Grades
from ..data.showing import Shown
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..protocols import Bools, Floats, Ints
from ..registry import make
from ..wording import counted, in_python, one_of, option
from .doubt import difficulty

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
    frame = _read_frame(data)
    names = understand_items(frame.columns, also=("annotator",))
    if "annotator" not in names:
        raise JudgmentError(
            f"several labels need to know who gave them, but there is no annotator column among "
            f"{quote_names(frame.columns)}; rename the one that holds it to annotator"
        )
    keys = [names[word] for word in ("query", "item", "annotator") if word in names]
    frame = frame.with_columns(pl.col(keys).cast(pl.String).str.strip_chars().replace("", None))
    blank = frame.select(pl.any_horizontal(pl.col(keys).is_null())).to_series()
    if blank.any():
        raise JudgmentError(f"row {blank.arg_true()[0] + 1} has a blank id; fill it in, or leave the row out")
    things = keys[:-1]
    if columns:
        none = _flags(frame, cannot_tell).any(axis=1) if cannot_tell else np.zeros(len(frame), bool)
        yes, known = _flags(frame.filter(~pl.Series(none)), columns), [str(name) for name in columns]
    else:
        frame, yes, known, none = _label_rows(frame, names, labels, cannot_tell)
    asked = frame.select(pl.col(names[word]).alias(word) for word in ("query", "item", "annotator") if word in names)
    frame = frame.filter(~pl.Series(none))
    # sums in an order that is not that of the rows
    order = np.lexsort((*yes.T, *(frame[key].rank("dense").to_numpy() for key in keys)))
    frame, yes = frame[order], yes[order]
    listed = frame.select(things).unique().sort(things)
    item = frame.select(things).join(listed.with_row_index("code"), on=things, maintain_order="left")["code"].to_numpy()
    people = frame[names["annotator"]].unique().sort()
    who = np.searchsorted(people.to_numpy(), frame[names["annotator"]].to_numpy()).astype(np.int32)
    n, n_who = len(listed), len(people)
    votes = _counts(item, yes, n), np.bincount(item, minlength=n).astype(np.float64)[:, None]
    share = votes[0] / np.maximum(votes[1], 1)
    posterior = share
    if method == "shared":
        classes, sensitivity, specificity = _fit_classes(item, who, yes, (n, n_who), share)
        posterior = 0.5 * (classes + _fit_degrees(item, who, yes, n))
    chosen, f1 = _best_sets(posterior, choose)
    sets = ["|".join(known[place] for place in np.flatnonzero(row)) for row in chosen]
    table = listed.rename({names[word]: word for word in ("query", "item") if word in names})
    table = table.with_columns(labels=pl.Series(sets), n_labels=chosen.sum(axis=1), expected_f1=f1)
    table = table.with_columns(pl.Series(f"P({name})", posterior[:, place]) for place, name in enumerate(known))
    given = np.bincount(who, minlength=n_who)
    about_people = pl.DataFrame({"annotator": people, "n_judged": given})
    if method == "shared":
        given_right = np.average(sensitivity, axis=1, weights=classes.sum(axis=0))
        left_right = np.average(specificity, axis=1, weights=(1 - classes).sum(axis=0))
        about_people = about_people.with_columns(
            sensitivity=given_right, specificity=left_right, informedness=given_right + left_right - 1
        )
    about_labels = pl.DataFrame({"label": known, "share": posterior.mean(axis=0), "share_of_answers": yes.mean(axis=0)})
    if cannot_tell:
        items, doubts = difficulty(asked.with_columns(grade=pl.Series(np.where(none, cannot_tell[0], ""))), cannot_tell)
        table = table.join(items, on=[name for name in ("query", "item") if name in table.columns], how="full",
                           coalesce=True, maintain_order="left_right")  # fmt: skip
        about_people = about_people.join(doubts, on="annotator", how="full", coalesce=True, maintain_order="left_right")
    return LabelSets(table=table, annotators=about_people, labels=about_labels)


def _read_frame(data: Any) -> pl.DataFrame:
    """A table from a frame or a file."""
    if isinstance(data, str | os.PathLike):
        from ..io.tables import read_table

        return read_table(data)
    return to_frame(data)


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
        row, place = (int(one) for one in np.argwhere(odd)[0])
        cell, name = said.row(row)[place], columns[place]
        raise JudgmentError(f"row {row + 1} has {cell!r} in {name!r}; a column per label holds 1 or 0 only")
    return yes.astype(np.float64)


def _label_rows(
    frame: pl.DataFrame, names: dict[str, str], labels: str | None, cannot_tell: Sequence[str]
) -> tuple[pl.DataFrame, Floats, list[str], Bools]:
    """The rows, which labels each answer among them has, the labels, and which rows say that nobody could tell."""
    naming = in_python("labels=") or option("several")
    wanted = labels or next((name for name in frame.columns if name.lower() in _LABELS), None)
    if wanted is None or wanted not in frame.columns:
        raise JudgmentError(f"no column of labels among {quote_names(frame.columns)}; name it with {naming}")
    cells = frame[wanted].to_list()
    texts = [cell for cell in cells if isinstance(cell, str)]
    mark = next((one for one in _SEPARATORS if any(one in text and text[:1] != "[" for text in texts)), "|")
    keys = [names[word] for word in ("query", "item", "annotator") if word in names]
    rows = frame.select(keys).with_columns(
        grade=pl.Series([sorted(_labels_of(c, mark, r)) for r, c in enumerate(cells)])
    )
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
        raise JudgmentError(
            f"column {wanted!r} holds {len(known):,} distinct labels, more than {_MOST_LABELS}; if it is free text, "
            "have it grouped into labels first"
        )
    yes = np.column_stack([told.list.contains(label).to_numpy() for label in known])
    return rows, yes.astype(np.float64), known, none.to_numpy()


def _labels_of(cell: Any, mark: str, row: int) -> set[str]:
    """The labels in a cell: a list, a JSON list, or text with marks between."""
    if isinstance(cell, str) and cell.strip()[:1] == "[":
        try:
            cell = json.loads(cell)
        except ValueError:
            try:
                cell = json.loads(cell.replace("'", '"'))
            except ValueError:
                raise JudgmentError(f"row {row + 1} has {cell!r}, which is no list; write cat|dog") from None
    if cell is None:
        return set()
    if isinstance(cell, str):
        cell = cell.split(mark)
    elif not isinstance(cell, list | tuple | pl.Series):
        cell = [cell]
    return {str(one).strip() for one in cell if str(one).strip()}


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
        grades = Grades.from_frame(rows, levels=[0, 1])
        fit = make("aggregator", "latent_score").fit(grades)
    assert fit.std_error is not None
    label, thing = np.divmod(np.arange(n_labels * n), n)
    code = grades.items.codes(pl.Series(label), pl.Series(thing))
    return ndtr((fit.scores - fit.estimates["cuts"][0]) / fit.std_error)[code].reshape(n_labels, n).T


def _fit_classes(
    item: Ints, who: Ints, yes: Floats, sizes: tuple[int, int], share: Floats
) -> tuple[Floats, Floats, Floats]:
    """Probability of each label for each item where it holds or not, and each annotator's rates by label, by EM."""
    n, n_who = sizes
    posterior = np.clip(share, 0.02, 0.98)
    change, rounds = np.inf, 0
    while change > _TOL and rounds < _MAX_ITER:
        rounds += 1
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
    for place in range(chances.shape[1]):
        p = chances[:, place : place + 1]
        found[:, 1:] = found[:, 1:] * (1 - p) + found[:, :-1] * p
        found[:, :1] *= 1 - p
    return found
