"""Several methods on the same judgments, against a truth or against judgments they have not seen."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.judgments import Grades, Judgments
from ..data.pairing import pairs_of_groups
from ..errors import ParameterError
from ..io.notices import say
from ..metrics.correlation import kendall_tau
from ..protocols import Aggregator, Bools, Floats, Ints, Progress
from ..quality import scores_quietly
from ..registry import make
from .aggregation import as_judgments, methods_for, resolved
from .evaluation import evaluate_runs

N_FOLDS = 5


def compare(
    judgments: Any,
    methods: Sequence[str] | Mapping[str, Aggregator] | None = None,
    truth: Any | None = None,
    metrics: Sequence[str] | None = None,
    *,
    unjudged: str = "drop",
    seed: int = 0,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Return a table with a row for each method.

    With a truth: the metrics asked for, each with its interval over queries. Without: how well the consensus of four
    fifths of the judgments foretells the answers of the last fifth, as ``pair_accuracy`` (share of unequal pairs in
    the right order, ties half) and ``log_loss`` (of ``sigmoid(c * difference of scores)``, the one scale ``c`` fitted
    on the four fifths), averaged over five splits, with the standard deviation between splits; for classes without an
    order as ``grade_accuracy``. In all cases ``tau_to_first`` is Kendall's tau with the order of
    the first method (``same_as_first`` the share of items in the same class), and ``seconds`` the time of one fit.

    Parameters
    ----------
    judgments
        Judgments, a frame or a path.
    methods
        Names of aggregators, or aggregators by the names to show; ``None`` takes all that fit the kind.
    truth, metrics, unjudged
        As for :func:`crowdrank.evaluate`.
    seed
        Seed of the splits and of the methods.
    progress
        Called after each fit with (fits done, fits in all, method).

    Examples
    --------
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> compare(votes, ["mean_grade", "highest_grade"], truth={"item": ["x", "y"], "grade": [1, 0]})["tau"].to_list()
    [1.0, 1.0]
    """
    judged = as_judgments(judgments)
    chosen = _chosen(judged, methods, seed)
    if not chosen:
        raise ParameterError(f"no method takes {judged.kind}s as they are")
    held_out = truth is None
    n_fits = len(chosen) * (1 + (N_FOLDS if held_out else 0))
    fitted: dict[str, Consensus] = {}
    seconds: dict[str, float] = {}
    done = 0
    for name, method in chosen.items():
        # whatever a method loads or compiles when it is first used is not its speed
        scores_quietly(method, judged.select(np.arange(min(len(judged), 2))))
        begin = time.perf_counter()
        fitted[name] = method.fit(judged)
        seconds[name] = time.perf_counter() - begin
        done += 1
        if progress:
            progress(done, n_fits, name)
    nominal = isinstance(judged, Grades) and judged.nominal
    if held_out:
        say("no truth given: methods are judged on answers held out from them; that shows fit to this crowd, not truth")
        measured = _classes_foretold if nominal else _order_foretold
        table = _held_out(judged, chosen, measured, seed, progress, done, n_fits)
    else:
        table = _against_truth(fitted, truth, metrics, unjudged, seed)
    first = next(iter(fitted.values()))
    alike = {"same_as_first" if nominal else "tau_to_first": [_likeness(first, c) for c in fitted.values()]}
    return table.with_columns(
        **{name: pl.Series(v) for name, v in alike.items()}, seconds=pl.Series(list(seconds.values()))
    )


def _chosen(
    judgments: Judgments, methods: Sequence[str] | Mapping[str, Aggregator] | None, seed: int
) -> dict[str, Aggregator]:
    """The aggregators to compare, by name."""
    if isinstance(methods, Mapping):
        return dict(methods)
    names = resolved(list(methods)) if methods else methods_for(judgments)
    return {name: make("aggregator", name, seed=seed) for name in names}


def _likeness(first: Consensus, other: Consensus) -> float:
    """Kendall's tau of two orders, or the share of items in the same class."""
    if first.nominal and first.grade is not None and other.grade is not None:
        return float((first.grade == other.grade).mean())
    return float(kendall_tau(first.scores, other.scores, first.items.query))


def _against_truth(
    fitted: dict[str, Consensus], truth: Any, metrics: Sequence[str] | None, unjudged: str, seed: int
) -> pl.DataFrame:
    """A column for each metric, with its interval."""
    found = evaluate_runs(fitted, truth, metrics, unjudged=unjudged, seed=seed).table
    columns: dict[str, Any] = {"method": list(fitted)}
    for metric in found["metric"].unique(maintain_order=True):
        of_metric = found.filter(pl.col("metric") == metric)
        columns[metric] = of_metric["value"]
        if of_metric["lower"].null_count() < len(of_metric):
            columns[f"{metric} lower"], columns[f"{metric} upper"] = of_metric["lower"], of_metric["upper"]
    return pl.DataFrame(columns)


def _held_out(
    judgments: Judgments,
    methods: Mapping[str, Aggregator],
    measured: Callable[[Any, Judgments, Bools], dict[str, float]],
    seed: int,
    progress: Progress | None,
    done: int,
    n_fits: int,
) -> pl.DataFrame:
    """What each method foretells of answers that its fit has not seen: mean and standard deviation over splits."""
    fold = _folds(judgments, seed)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in methods}
    for number in range(N_FOLDS):
        seen = fold != number
        for name, method in methods.items():
            if seen.any() and not seen.all():
                found[name].append(measured(method, judgments, seen))
            done += 1
            if progress:
                progress(done, n_fits, name)
    rows = [{"method": name, **_over_splits(splits)} for name, splits in found.items()]
    if not all(row.get("n_held_out") for row in rows):
        raise ParameterError("there are too few judgments to hold some out; give a truth, or more judgments")
    return pl.DataFrame(rows)


def _over_splits(splits: list[dict[str, float]]) -> dict[str, float]:
    """Mean and standard deviation of each figure over the splits that have it; counts are added."""
    whole = [split for split in splits if split["n_held_out"]]
    summary: dict[str, float] = {}
    for name in whole[0] if whole else ():
        values = np.array([split[name] for split in whole])
        if name == "n_held_out":
            summary[name] = round(float(values.sum()))
        else:
            summary[name], summary[f"{name}_sd"] = float(values.mean()), float(values.std())
    return summary


def _order_foretold(method: Any, judgments: Judgments, seen: Bools) -> dict[str, float]:
    """Accuracy and log-loss on pairs with an answer that the fit has not seen."""
    scores = scores_quietly(method, judgments.select(seen))
    unseen = _pairs(judgments, seen, True)
    accuracy, loss = _foretold(scores, _pairs(judgments, seen, False), unseen)
    return {"pair_accuracy": accuracy, "log_loss": loss, "n_held_out": float(unseen[2].sum())}


def _classes_foretold(method: Any, judgments: Judgments, seen: Bools) -> dict[str, float]:
    """Share of the classes that the fit has not seen, of items that it has, which it foretells."""
    assert isinstance(judgments, Grades)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        consensus: Consensus = method.fit(judgments.select(seen))
    rest = judgments.select(~seen)
    assert consensus.grade is not None
    use = consensus.grade[rest.item] >= 0
    right = consensus.grade[rest.item] == rest.level_codes()[0]
    weight = np.asarray(rest.row_weight) * use
    total = float(weight.sum())
    return {"grade_accuracy": float((right * weight).sum()) / total if total else 0.0, "n_held_out": total}


def _folds(judgments: Judgments, seed: int) -> Ints:
    """Fold of each judgment; each annotator's judgments are spread evenly."""
    rng = np.random.default_rng(seed)
    n = judgments.n_judgments
    shuffled = rng.permutation(n)
    if not judgments.n_annotators:
        fold = np.empty(n, np.int32)
        fold[shuffled] = np.arange(n) % N_FOLDS
        return fold
    order = shuffled[np.argsort(judgments.annotator[shuffled], kind="stable")]
    fold = np.empty(n, np.int32)
    fold[order] = np.arange(n) % N_FOLDS
    return fold


_Pairs = tuple[Ints, Ints, Floats]
"""Better item, worse item, weight."""


def _pairs(judgments: Judgments, seen: Bools, wanted_unseen: bool) -> _Pairs:
    """Pairs of unequal answers, all seen by the fit or with at least one answer unseen."""
    if isinstance(judgments, Grades):
        keys = [judgments.items.query[judgments.item]]
        keys += [judgments.annotator] if judgments.n_annotators else []
        keys += [judgments.block] if judgments.block is not None else []
        first, second = pairs_of_groups(keys)
        known = seen[first] & seen[second]
        use = (judgments.grade[first] != judgments.grade[second]) & (known != wanted_unseen)
        first, second = first[use], second[use]
        swap = judgments.grade[first] < judgments.grade[second]
        better, worse = np.where(swap, second, first), np.where(swap, first, second)
        weight = judgments.row_weight
        return judgments.item[better], judgments.item[worse], weight[first] * weight[second]
    chosen = judgments.select(seen != wanted_unseen)
    pairs = chosen.as_preferences(ties=False)
    left_won = pairs.outcome > 0
    better, worse = np.where(left_won, pairs.left, pairs.right), np.where(left_won, pairs.right, pairs.left)
    return better, worse, np.asarray(pairs.row_weight)


def _foretold(scores: Floats, seen: _Pairs, unseen: _Pairs) -> tuple[float, float]:
    """Accuracy and log-loss on unseen pairs, the scale of the scores fitted on the seen ones."""
    gap, weight = scores[unseen[0]] - scores[unseen[1]], unseen[2]
    if not len(gap):
        return float("nan"), float("nan")
    scale = _scale(scores[seen[0]] - scores[seen[1]], seen[2])
    accuracy = float(np.average(0.5 * (1 + np.sign(gap)), weights=weight))
    return accuracy, float(np.average(np.logaddexp(0.0, -scale * gap), weights=weight))


def _scale(gap: Floats, weight: Floats) -> float:
    """The c that makes sigmoid(c * gap) likeliest, by Newton steps; a weak prior keeps it finite."""
    spread = float(np.sqrt(np.average(gap**2, weights=weight))) if len(gap) else 0.0
    if spread == 0.0:
        return 0.0
    unit = gap / spread
    scale = 1.0
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(np.clip(scale * unit, -500, 500)))
        slope = float((weight * p * unit).sum()) - 0.01 * scale
        curve = float((weight * p * (1 - p) * unit**2).sum()) + 0.01
        step = float(np.clip(slope / curve, -2.0, 2.0))
        scale += step
        if abs(step) < 1e-8:
            break
    return scale / spread
