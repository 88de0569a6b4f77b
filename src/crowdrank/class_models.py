"""What the class methods share: grades as codes, known items, warm starts, and what is read out of a fit.

A class method (naive Bayes, Dawid-Skene, GLAD, MACE) estimates the level of each item and a confusion matrix of each
annotator. Its ``fit`` is four steps around an estimate of its own:

1. :func:`class_rows` turns grades into codes and clamps the items of ``known=``;
2. :func:`former_fit` maps a former consensus, ``start=``, on the annotators and levels of now;
3. :func:`identified` tells whether the annotators can be told apart at all, and :func:`votes_as_fit` gives the grades
   back where they cannot; :func:`query_parts` and :func:`joined_fit` serve ``per_query=True``;
4. :func:`class_consensus` reads scores, grades, confidence and quality out of the :class:`ClassFit`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from .data.columns import understand_items
from .data.consensus import Consensus, Quality, Trace
from .data.frames import to_frame
from .data.judgments import Grades
from .data.truth import Truth
from .errors import DataWarning, JudgmentError, ParameterError
from .protocols import Bools, Counts, Floats, Ints

_SHOWN = 5
_ROUNDING = 1e-9
_INTERVAL = 0.90


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Grades as codes: item, annotator and level of each row, (n,); the level of each known item, (n_items,), else -1.

    Rows without annotators are all by annotator 0, of whom ``named`` is false.
    """

    item: Ints
    annotator: Ints
    level: Ints
    weight: Floats | None
    known: Ints
    n_annotators: int
    levels: tuple[Any, ...]
    values: Floats
    nominal: bool
    named: bool

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_items(self) -> int:
        """Number of items, those that nobody graded included."""
        return len(self.known)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @property
    def graded(self) -> Bools:
        """Mask of the items that somebody graded, (n_items,)."""
        mask = np.zeros(self.n_items, bool)
        mask[self.item] = True
        return mask


@dataclass(frozen=True, eq=False)
class ClassFit:
    """What a class method estimates.

    Parameters
    ----------
    probabilities
        Probability of each level for each item, (n_items, n_levels); rows of items without grades are not used.
    prior
        Share of each level, (n_levels,).
    confusion
        Probability of each given level for each true one, (n_annotators, n_levels, n_levels): true level first.
    evidence
        Number of grades that each row of a confusion matrix rests on, prior included, (n_annotators, n_levels).
    trace
        How the fit went.
    parameters
        What else the method knows of each annotator, (n_annotators, ...).
    """

    probabilities: Floats
    prior: Floats
    confusion: Floats
    evidence: Floats
    trace: Trace
    parameters: Mapping[str, Floats] = field(default_factory=dict)


class Former(NamedTuple):
    """A former consensus as far as it tells of the annotators and levels of now; NaN stands for what is new.

    ``prior`` (n_levels,) is the share of each level; ``annotator`` (n_annotators,) and ``level`` (n_levels,) are
    the former codes, -1 where there are none.
    """

    method: str
    prior: Floats
    annotator: Ints
    level: Ints
    parameters: Mapping[str, Any]

    def of_annotators(self, name: str, *, by_level: bool = False) -> Floats:
        """Return a parameter of each annotator of now, (n_annotators, ...), NaN for new ones.

        With ``by_level`` all further axes are over levels, and entries of new levels are NaN too.
        """
        if name not in self.parameters:
            raise ParameterError(
                f"start= is a consensus of {self.method}, which knows no {name} of the annotators; "
                "start from a consensus of the same method, or leave start= out"
            )
        former = np.asarray(self.parameters[name], np.float64)
        # code -1 finds the NaN at the end
        padded = np.pad(
            former,
            [(0, 1)] * (former.ndim if by_level else 1) + [(0, 0)] * (0 if by_level else former.ndim - 1),
            constant_values=np.nan,
        )
        found: Floats = padded[self.annotator]
        for axis in range(1, former.ndim if by_level else 1):
            found = np.take(found, self.level, axis=axis)
        return found


class QueryPart(NamedTuple):
    """The rows of one query: its items are ``items`` of all, its annotators the codes ``annotators`` of all."""

    rows: ClassRows
    items: slice
    annotators: Ints


def class_rows(grades: Grades, *, bins: int | None = None, known: Any | None = None) -> ClassRows:
    """Return grades as codes, with the level of each known item.

    Parameters
    ----------
    grades
        The grades; at least one.
    bins
        Cut the grades into so many equally wide levels.
    known
        Table of query, item and grade, or a :class:`~crowdrank.data.truth.Truth`: items whose level is known. An item
        that is not among the items, or a grade that is none of the levels, is refused by name.
    """
    codes, levels, values = grades.level_codes(bins)
    named = grades.n_annotators > 0
    rows = ClassRows(
        item=grades.item, annotator=grades.annotator if named else np.zeros(len(grades), np.int32), level=codes,
        weight=grades.weight, known=np.full(grades.n_items, -1, np.int32), n_annotators=max(grades.n_annotators, 1),
        levels=levels, values=values, nominal=grades.nominal, named=named,
    )  # fmt: skip
    return rows if known is None else replace(rows, known=_known_levels(grades, rows, known, bins))


def _known_levels(grades: Grades, rows: ClassRows, known: Any, bins: int | None) -> Ints:
    """Level code of each item whose truth is known, (n_items,), -1 elsewhere."""
    frame = known.frame() if isinstance(known, Truth) else to_frame(known)
    found = understand_items(frame.columns, also=("grade",))
    if "grade" not in found:
        raise JudgmentError(
            f"known= has no grade column (its columns: {', '.join(map(repr, frame.columns[:12]))}); "
            "give a table of query, item and grade"
        )
    item = grades.items.codes(frame[found["query"]] if "query" in found else None, frame[found["item"]])
    given = frame[found["grade"]]
    level = _level_of(given, rows, grades.grade if bins else None)
    _refuse(frame, found, item < 0, "is not among the judged items", "leave it out, or list it with items=")
    scale = ", ".join(str(level) for level in rows.levels[:12])
    _refuse(
        frame, found, level < 0, f"has a known grade outside the scale {scale}", "mend it, or declare it with levels="
    )
    levels = np.full(grades.n_items, -1, np.int32)
    levels[item] = level
    _refuse(frame, found, levels[item] != level, "has two different known grades", "keep one of them")
    return levels


def _level_of(given: pl.Series, rows: ClassRows, cut: Floats | None) -> Ints:
    """Level code of each known grade, -1 where it is none; ``cut`` holds the grades that bins were cut from."""
    distinct = given.unique()
    codes = []
    for value in distinct.to_list():
        if cut is not None:
            inside = isinstance(value, int | float) and cut.min() <= value <= cut.max()
            codes.append(int(np.argmin(np.abs(rows.values - value))) if inside else -1)
            continue
        same = [code for code, level in enumerate(rows.levels) if _same_level(level, value)]
        codes.append(same[0] if same else -1)
    return given.replace_strict(
        distinct, pl.Series(codes, dtype=pl.Int32), default=-1, return_dtype=pl.Int32
    ).to_numpy()


def _same_level(level: Any, value: Any) -> bool:
    """Whether a known grade, a number or text, is a level."""
    if isinstance(value, str):
        value = value.strip()
    if str(level) == str(value):
        return True
    try:
        return float(level) == float(value)
    except (TypeError, ValueError):
        return False


def _refuse(frame: pl.DataFrame, found: Mapping[str, str], wrong: Bools, complaint: str, remedy: str) -> None:
    """Raise for known rows that cannot be used, naming the first few."""
    if not wrong.any():
        return
    rows = np.flatnonzero(wrong)
    shown = []
    for row in rows[:_SHOWN].tolist():
        query = f" of query {frame[found['query']][row]!r}" if "query" in found else ""
        shown.append(
            f"item {frame[found['item']][row]!r}{query} (known= row {row + 1}, grade {frame[found['grade']][row]!r})"
        )
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    raise JudgmentError(f"{'; '.join(shown)}{more} {complaint}; {remedy}")


def former_fit(start: Consensus, grades: Grades, rows: ClassRows) -> Former:
    """Return what a former consensus tells of the annotators and levels of now, matched by id and value."""
    if start.probabilities is None or start.levels is None:
        raise ParameterError(
            f"start= is a consensus of {start.method}, which has no probabilities of levels; "
            "start from a consensus of the same method, or leave start= out"
        )
    judged = start.probabilities if start.grade is None else start.probabilities[start.grade >= 0]
    shares = judged.mean(axis=0) if len(judged) else np.full(len(start.levels), np.nan)
    place = {str(level): code for code, level in enumerate(start.levels)}
    level = np.array([place.get(str(level), -1) for level in rows.levels], np.int32)
    quality = start.quality
    annotator = np.full(rows.n_annotators, -1, np.int32)
    if quality is not None and rows.named:
        annotator = quality.annotators.codes(grades.annotators.ids)
    parameters = quality.parameters if quality is not None else {}
    return Former(start.method, np.append(shares, np.nan)[level], annotator, level, parameters)


def identified(rows: ClassRows, what: str) -> bool:
    """Return whether some item was graded by two annotators or is known; otherwise warn that accuracies are unknown."""
    if (rows.known[rows.item] >= 0).any():
        return True
    if rows.named:
        last = np.zeros(rows.n_items, np.int32)
        last[rows.item] = rows.annotator
        overlap = bool((last[rows.item] != rows.annotator).any())
    else:
        overlap = len(rows) > int(rows.graded.sum())
    if not overlap:
        warnings.warn(
            f"{what}: no item was graded by two annotators, so how accurate each of them is cannot be told; the grades "
            "come back as they are: have some items graded twice, or give known=",
            DataWarning,
            stacklevel=4,
        )
    return overlap


def vote_shares(rows: ClassRows) -> Floats:
    """Return the share of each level in the weight of each item's grades, (n_items, n_levels); known items are certain.

    Items without grades have equal shares.
    """
    cells = rows.item.astype(np.int64) * rows.n_levels + rows.level
    votes = np.bincount(cells, rows.weight, rows.n_items * rows.n_levels).reshape(rows.n_items, rows.n_levels)
    total = votes.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(votes, total, out=np.full(votes.shape, 1 / rows.n_levels), where=total > 0)
    return clamped(shares, rows.known)


def clamped(probabilities: Floats, known: Ints) -> Floats:
    """Return probabilities with each known item certain."""
    sure = np.flatnonzero(known >= 0)
    if len(sure):
        probabilities[sure] = 0.0
        probabilities[sure, known[sure]] = 1.0
    return probabilities


def votes_as_fit(rows: ClassRows, confusion: Floats, evidence: Floats) -> ClassFit:
    """Return the grades themselves as a fit, with the annotators that a method's prior supposes."""
    shares = vote_shares(rows)
    prior = shares[rows.graded].mean(axis=0)
    return ClassFit(shares, prior, confusion, evidence, Trace())


def query_parts(rows: ClassRows, offsets: Counts) -> Iterator[QueryPart]:
    """Yield the rows of each query that has any, its items (bounded by ``offsets``) and annotators numbered anew."""
    order = np.argsort(rows.item, kind="stable")
    bounds = np.searchsorted(rows.item[order], offsets)
    for query in np.flatnonzero(np.diff(bounds)):
        chosen = order[bounds[query] : bounds[query + 1]]
        items = slice(int(offsets[query]), int(offsets[query + 1]))
        annotators, annotator = np.unique(rows.annotator[chosen], return_inverse=True)
        yield QueryPart(
            replace(
                rows,
                item=rows.item[chosen] - np.int32(items.start),
                annotator=annotator.astype(np.int32),
                level=rows.level[chosen],
                weight=None if rows.weight is None else rows.weight[chosen],
                known=rows.known[items],
                n_annotators=len(annotators),
            ),
            items,
            annotators.astype(np.int32),
        )


def joined_fit(rows: ClassRows, fits: Sequence[tuple[QueryPart, ClassFit]], empty: ClassFit) -> ClassFit:
    """Return the fits of all queries as one: items side by side, annotators averaged by the grades that each fit had.

    ``empty`` is the fit of nothing, whose annotators stand for those who gave no grade.
    """
    probabilities = empty.probabilities.copy()
    total, prior = np.zeros(rows.n_annotators), np.zeros(rows.n_levels)
    sums = {name: np.zeros((rows.n_annotators, *np.shape(value)[1:])) for name, value in _per_annotator(empty).items()}
    for part, fit in fits:
        probabilities[part.items] = fit.probabilities
        prior += fit.prior * part.rows.graded.sum()
        given = np.bincount(part.rows.annotator, part.rows.weight, part.rows.n_annotators)
        total[part.annotators] += given
        for name, value in _per_annotator(fit).items():
            sums[name][part.annotators] += value * given.reshape(-1, *[1] * (value.ndim - 1))
    idle = total == 0
    for name, value in _per_annotator(empty).items():
        sums[name][idle] = value[idle]
        sums[name][~idle] /= total[~idle].reshape(-1, *[1] * (value.ndim - 1))
    evidence, confusion = sums.pop("evidence"), sums.pop("confusion")
    trace = _joined_trace([fit.trace for _, fit in fits])
    return ClassFit(probabilities, prior / max(prior.sum(), 1e-300), confusion, evidence, trace, sums)


def _per_annotator(fit: ClassFit) -> dict[str, Floats]:
    """Everything that a fit has of each annotator."""
    return {"confusion": fit.confusion, "evidence": fit.evidence, **fit.parameters}


def _joined_trace(traces: Sequence[Trace]) -> Trace:
    """The longest of several traces, converged if all are; each log-likelihood stays where it ended."""
    n_iter = max(trace.n_iter for trace in traces)
    likelihoods = [trace.log_likelihood for trace in traces if trace.log_likelihood]
    length = max(map(len, likelihoods), default=0)
    padded = [np.pad(values, (0, length - len(values)), mode="edge") for values in likelihoods]
    summed = tuple(np.sum(padded, axis=0).tolist()) if padded else None
    return Trace(n_iter, all(t.converged for t in traces), max(t.change for t in traces), summed)


def class_consensus(method: Any, grades: Grades, rows: ClassRows, fit: ClassFit, *, seed: int) -> Consensus:
    """Return the consensus of a fit: expected grade as score, most probable level as grade, quality of annotators.

    An item without grades takes the mean probabilities of its query's graded items, or the class prior where there are
    none, and no grade. Levels that are equally probable are drawn from with the seed. For classes without an
    order the score is the probability of the chosen one, 0 for an item without grades.
    """
    judged = rows.graded | (rows.known >= 0)
    probabilities = _filled(fit, judged, grades)
    chosen = _most_probable(probabilities, seed)
    if rows.nominal:
        scores = np.where(judged, probabilities[np.arange(len(chosen)), chosen], 0.0)
    else:
        scores = probabilities @ rows.values
    return Consensus.of(
        method, grades, scores, trace=fit.trace, probabilities=probabilities, levels=rows.levels,
        grade=np.where(judged, chosen, -1).astype(np.int32), quality=partial(class_quality, grades, rows, fit),
    )  # fmt: skip


def _filled(fit: ClassFit, judged: Bools, grades: Grades) -> Floats:
    """Probabilities with those of unjudged items taken from their query."""
    unjudged = np.flatnonzero(~judged)
    if not len(unjudged):
        return fit.probabilities
    probabilities = fit.probabilities.copy()
    query, n_queries = grades.items.query, grades.n_queries
    number = np.bincount(query[judged], minlength=n_queries)
    sums = np.stack([np.bincount(query[judged], column[judged], n_queries) for column in probabilities.T], axis=1)
    of_query = np.where(number[:, None] > 0, sums / np.maximum(number, 1)[:, None], fit.prior)
    probabilities[unjudged] = of_query[query[unjudged]]
    return probabilities


def _most_probable(probabilities: Floats, seed: int) -> Counts:
    """Level of the largest probability of each item; one of several equal ones is drawn."""
    chosen: Counts = probabilities.argmax(axis=1)
    top = probabilities[np.arange(len(chosen)), chosen][:, None]
    tied = probabilities >= top * (1 - _ROUNDING)
    several = np.flatnonzero(tied.sum(axis=1) > 1)
    if len(several):
        # a draw for every item, so that an item's draw does not depend on what else is tied
        draws = np.random.default_rng(seed).random(len(chosen))[several]
        places = np.cumsum(tied[several], axis=1)
        wanted = 1 + (draws * places[:, -1]).astype(np.int64)
        chosen[several] = np.argmax(places == wanted[:, None], axis=1)
    return chosen


def class_quality(grades: Grades, rows: ClassRows, fit: ClassFit) -> Quality | None:
    r"""Return the quality that follows from confusion matrices, with accuracy, bias and the method's own parameters.

    Quality is the probability of ordering a random pair of unequal items correctly, an equal answer being half right:
    with class prior :math:`\rho` and confusion :math:`\pi`,

    .. math:: \text{quality} \propto \sum_{j > k} \rho_j \rho_k \sum_{l, m} \pi_{jl} \pi_{km}
              \left( [l > m] + \tfrac{1}{2} [l = m] \right).

    Classes without an order count as right where the item of class :math:`j` alone is called :math:`j`.
    """
    if not rows.named:
        return None
    quality, spread = pair_quality(fit.confusion, fit.prior, fit.evidence, nominal=rows.nominal)
    lower, upper = _bounds(quality, spread)
    parameters: dict[str, Any] = {"lower": lower, "upper": upper}
    parameters["accuracy"] = np.einsum("ajj,j->a", fit.confusion, fit.prior)
    if not rows.nominal:
        error = rows.values[None, :] - rows.values[:, None]
        parameters["bias"] = np.einsum("ajl,jl,j->a", fit.confusion, error, fit.prior)
    parameters |= {**fit.parameters, "confusion": fit.confusion}
    counts: Any = np.bincount(rows.annotator, rows.weight, rows.n_annotators)
    return Quality(grades.annotators, quality, counts, parameters)


def pair_quality(confusion: Floats, prior: Floats, evidence: Floats, *, nominal: bool) -> tuple[Floats, Floats]:
    """Return the probability of ordering unequal items correctly and its standard deviation, (n_annotators,) each.

    The deviation is that of Dirichlet rows with so much ``evidence``, to first order. One half where there is but one
    level.
    """
    n_annotators, n_levels = confusion.shape[:2]
    pairs = np.outer(prior, prior) * (1 - np.eye(n_levels))
    if pairs.sum() < 1e-12:
        # all items of one level: any two levels may meet
        pairs = 1 - np.eye(n_levels)
    if n_levels == 1:
        return np.full(n_annotators, 0.5), np.full(n_annotators, 0.5)
    pairs /= pairs.sum()
    if nominal:
        # .5 + .5 (P(j is called j) - P(k is called j))
        slope = 0.5 * (np.diag(pairs.sum(axis=1)) - pairs.T)
        quality = 0.5 + np.einsum("ajl,jl->a", confusion, slope)
        slopes = np.broadcast_to(slope, confusion.shape)
    else:
        order = np.sign(np.subtract.outer(np.arange(n_levels), np.arange(n_levels)))
        # gain of answering l to an item of level j against the answers to all others, half for either side of a pair
        slopes = np.einsum("jk,lm,akm->ajl", pairs * order, 0.5 * order, confusion, optimize=True)
        quality = 0.5 + 0.5 * np.einsum("ajl,ajl->a", confusion, slopes)
    mean = np.einsum("ajl,ajl->aj", confusion, slopes)
    variance = (np.einsum("ajl,ajl->aj", confusion, slopes**2) - mean**2) / (evidence + 1)
    return np.clip(quality, 0.0, 1.0), np.sqrt(np.maximum(variance.sum(axis=1), 0.0))


def _bounds(quality: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Interval of the beta distribution with this mean and standard deviation."""
    from scipy.special import betaincinv

    mean = np.clip(quality, 1e-6, 1 - 1e-6)
    strength = np.maximum(mean * (1 - mean) / np.maximum(spread, 1e-9) ** 2 - 1, 1e-3)
    tail = (1 - _INTERVAL) / 2
    lower, upper = (betaincinv(mean * strength, (1 - mean) * strength, p) for p in (tail, 1 - tail))
    return np.minimum(lower, quality), np.maximum(upper, quality)
