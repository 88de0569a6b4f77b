"""Several labels per item: yes or no for each, with annotators whose quality is shared over labels."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaln, expit, logit

from ..data.column_names import quote_names, understand_items
from ..data.frames import to_frame
from ..data.showing import Shown, html_table
from ..errors import JudgmentError, ParameterError
from ..protocols import Floats, Ints
from ..wording import counted, one_of, option

_SEPARATORS = "|;,"
_LABELS = ("labels", "label", "tags", "classes", "grade", "answer")
_STRENGTHS = np.geomspace(1.0, 300.0, 16)
"""Numbers of answers that the prior of an annotator's rate may be worth."""

_TOL, _MAX_ITER = 1e-5, 300
_MOST_LABELS = 500


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelSets(Shown):
    """The labels of each item; :func:`aggregate_labels` makes it.

    Parameters
    ----------
    table
        item, labels (joined by ``|``), n_labels, expected_f1, and the probability of each label in its own column.
    annotators
        annotator, n_judged, sensitivity (share of an item's labels that they give) and specificity (share of the other
        labels that they do not), with what a guess would have, over all labels.
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

    def _repr_html_(self) -> str:
        """The first items, for notebooks."""
        return html_table(repr(self), self.table.head(10), len(self))

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
) -> LabelSets:
    r"""Return the set of labels of each item, where annotators gave several.

    Parameters
    ----------
    data
        A table or file with item, annotator and a column of labels: ``cat|dog``, a list, or a JSON list; or a column of
        0 and 1 for each label. An empty cell is an answer: none of the labels.
    columns
        The columns of 0 and 1 where there is one per label.
    labels
        The column of labels, if it is not called label, labels, grade or the like.
    choose
        ``"f1"``: the set of largest expected F1; or a probability from which on a label is taken, such as 0.5.
    method
        ``"shared"`` (the model below) or ``"majority"`` (each label by itself).

    Notes
    -----
    Item :math:`i` has label :math:`l` with probability :math:`\pi_l`. Annotator :math:`a` gives it with probability
    :math:`\alpha_{al}` where it holds and :math:`1 - \beta_{al}` where it does not. Each :math:`\alpha_{al}` has a beta
    prior around the annotator's own rate over all labels, moved by as much as the label differs for the crowd; this in
    turn has one around the crowd's. What these priors are worth is learned by their likelihood, so that annotators who
    are alike for all labels are known from all of them. EM finds rates and labels in turn. The set of largest expected
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
    yes, known = _yes_matrix(frame, names, columns, labels)
    items, item = _codes(frame[names["item"]])
    people, who = _codes(frame[names["annotator"]])
    if (item < 0).any() or (who < 0).any():
        row = int(np.flatnonzero((item < 0) | (who < 0))[0]) + 1
        raise JudgmentError(f"row {row} has a blank item or annotator; fill it in, or leave the row out")
    n, n_who, k = len(items), len(people), len(known)
    votes = _counts(item, yes, n), np.bincount(item, minlength=n).astype(np.float64)[:, None]
    share = votes[0] / np.maximum(votes[1], 1)
    sensitivity = specificity = np.full((n_who, k), np.nan)
    posterior = share
    if method == "shared":
        posterior, sensitivity, specificity = _fit_labels(item, who, yes, (n, n_who), share)
    chosen, f1 = _best_sets(posterior) if choose == "f1" else _by_threshold(posterior, choose)
    sets = ["|".join(known[place] for place in np.flatnonzero(row)) for row in chosen]
    table = pl.DataFrame({"item": items, "labels": sets, "n_labels": chosen.sum(axis=1), "expected_f1": f1})
    table = table.with_columns(pl.Series(f"P({name})", posterior[:, place]) for place, name in enumerate(known))
    given = np.bincount(who, minlength=n_who)
    about_people = pl.DataFrame({"annotator": people, "n_judged": given})
    if method == "shared":
        prior = posterior.mean(axis=0)
        weights = prior / prior.sum(), (1 - prior) / (1 - prior).sum()
        about_people = about_people.with_columns(
            sensitivity=pl.Series(sensitivity @ weights[0]), specificity=pl.Series(specificity @ weights[1])
        ).with_columns(informedness=pl.col("sensitivity") + pl.col("specificity") - 1)
    about_labels = pl.DataFrame({"label": known, "share": posterior.mean(axis=0), "share_of_answers": yes.mean(axis=0)})
    return LabelSets(table=table, annotators=about_people, labels=about_labels)


def _read_frame(data: Any) -> pl.DataFrame:
    """A table from a frame or a file."""
    if isinstance(data, str | os.PathLike):
        from ..io.tables import read_table

        return read_table(data)
    return to_frame(data)


def _codes(column: pl.Series) -> tuple[list[str], Ints]:
    """Distinct ids as text in order, and the code of each cell, -1 where it is blank."""
    text = column.cast(pl.String).str.strip_chars()
    ids = text.filter(text.is_not_null() & (text != "")).unique().sort().to_list()
    place = {one: code for code, one in enumerate(ids)}
    return ids, np.array([place.get(one, -1) for one in text.to_list()], np.int32)


def _yes_matrix(
    frame: pl.DataFrame, names: dict[str, str], columns: Sequence[str] | None, labels: str | None
) -> tuple[Floats, list[str]]:
    """Which labels each row has, (n_rows, n_labels), and the labels."""
    if columns:
        lacking = [name for name in columns if name not in frame.columns]
        if lacking:
            raise JudgmentError(f"there is no column {lacking[0]!r}; the columns are {quote_names(frame.columns)}")
        words = {"1": 1.0, "0": 0.0, "true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1.0": 1.0, "0.0": 0.0}
        yes = np.empty((len(frame), len(columns)))
        for place, name in enumerate(columns):
            for row, cell in enumerate(frame[name].cast(pl.String).str.strip_chars().str.to_lowercase().to_list()):
                if cell not in words:
                    raise JudgmentError(f"row {row + 1} has {cell!r} in {name!r}; a column per label holds 1 or 0 only")
                yes[row, place] = words[cell]
        return yes, [str(name) for name in columns]
    wanted = labels or next((name for name in frame.columns if name.lower() in _LABELS), None)
    if wanted is None or wanted not in frame.columns:
        raise JudgmentError(f"no column of labels among {quote_names(frame.columns)}; name it with {option('answer')}")
    cells = frame[wanted].to_list()
    texts = [cell for cell in cells if isinstance(cell, str)]
    mark = next((one for one in _SEPARATORS if any(one in text and text[:1] != "[" for text in texts)), "|")
    sets = [_labels_of(cell, mark, row) for row, cell in enumerate(cells)]
    known = sorted(set().union(*sets))
    if not known:
        raise JudgmentError(f"column {wanted!r} holds no label at all; name another with {option('answer')}")
    if len(known) > _MOST_LABELS:
        raise JudgmentError(
            f"column {wanted!r} holds {len(known):,} distinct labels, more than {_MOST_LABELS}; if it is free text, "
            "have it grouped into labels first"
        )
    code_of = {one: code for code, one in enumerate(known)}
    yes = np.zeros((len(frame), len(known)))
    for row, one in enumerate(sets):
        yes[row, [code_of[label] for label in one]] = 1.0
    return yes, known


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


def _fit_labels(
    item: Ints, who: Ints, yes: Floats, sizes: tuple[int, int], share: Floats
) -> tuple[Floats, Floats, Floats]:
    """Probability of each label for each item, and the rates of each annotator for each label, by EM."""
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
    rates: Floats = np.clip((hits + strength * around) / (total + strength), 1e-3, 1 - 1e-3)
    return rates


def _learned_strength(hits: Floats, total: Floats, around: Floats) -> float:
    """How many answers a beta prior around these rates is worth, by the likelihood of the counts."""
    around = np.clip(around, 1e-3, 1 - 1e-3)
    likely = [
        float((betaln(hits + s * around, total - hits + s * (1 - around)) - betaln(s * around, s * (1 - around))).sum())
        for s in _STRENGTHS
    ]
    return float(_STRENGTHS[int(np.argmax(likely))])


def _best_sets(posterior: Floats) -> tuple[Any, Floats]:
    """The set of largest expected F1 of each item, and that F1; the empty set counts 1 where no label holds."""
    n, k = posterior.shape
    order = np.argsort(-posterior, axis=1, kind="stable")
    ranked = np.take_along_axis(posterior, order, axis=1)
    best, size = np.prod(1 - ranked, axis=1), np.zeros(n, np.int64)
    for m in range(1, k + 1):
        # how many of the m taken hold, and how many of the others
        inside, outside = _number_of(ranked[:, :m]), _number_of(ranked[:, m:])
        hit, missed = np.arange(m + 1)[:, None], np.arange(k - m + 1)[None, :]
        value = 2 * hit / (m + hit + missed)
        f1 = np.einsum("nh,nm,hm->n", inside, outside, value)
        better = f1 > best + 1e-12
        best, size = np.where(better, f1, best), np.where(better, m, size)
        if m >= 1 and not better.any() and (ranked[:, m - 1] < 0.05).all():
            break
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


def _by_threshold(posterior: Floats, choose: str | float) -> tuple[Any, Floats]:
    """Labels from a probability on, and the expected F1 of the set."""
    try:
        limit = float(choose)
    except ValueError:
        limit = -1.0
    if not 0 < limit < 1:
        raise ParameterError(f"choose={choose!r} is neither 'f1' nor a probability such as 0.5")
    chosen = posterior >= limit
    f1 = np.empty(len(posterior))
    for row, taken in enumerate(chosen):
        inside, outside = (_number_of(posterior[row : row + 1, mask])[0] for mask in (taken, ~taken))
        hit, missed = np.arange(len(inside))[:, None], np.arange(len(outside))[None, :]
        sizes = taken.sum() + hit + missed
        f1[row] = float(inside @ np.where(sizes > 0, 2 * hit / np.maximum(sizes, 1), 1.0) @ outside)
    return chosen, f1
