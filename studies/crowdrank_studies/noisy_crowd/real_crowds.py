"""What more grades of the same items are worth in real crowds, beside the simulated ones of table 1."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from crowdrank.aggregators import DawidSkene, MajorityVote, NaiveBayes
from crowdrank.data.consensus import Consensus
from crowdrank.data.judgments import Grades
from crowdrank.datasets import Dataset

from ..outcomes import Row
from ..work import Work

SETS = ("trec-rf10-crowd-gold", "web-search-relevance5", "crowd-truth-inference/face-sentiment")
"""Crowds whose items were graded by experts too."""

_GRADES_PER_ITEM = (1, 2, 3, 5)
_METHODS = ("MV", "NB learned", "Dawid-Skene")


def real_rows(work: Work) -> Iterator[Row]:
    """Return label accuracy by grades per item, drawn among those that the items have."""
    for name in SETS[: work.pick(quick=1, default=len(SETS))]:
        seeds = work.seeds(quick=1, default=5)
        cells = [work.cell(("real crowd", name, seed), partial(_measure, work.load(name), seed)) for seed in seeds]
        for key in cells[0]:
            method, _, number = key.rpartition("|")
            labels = {"data": name, "grades per item": number, "method": method, "measure": "label"}
            yield Row(place="real crowds", what=labels, values=tuple(cell[key] for cell in cells))


def _measure(data: Dataset, seed: int) -> Mapping[str, float]:
    """Share of items with gold whose label is right, in per cent, at each number of grades."""
    given, truth = data.judgments, data.truth
    assert isinstance(given, Grades)
    assert truth is not None
    rng, gold = np.random.default_rng(seed), truth.align(given.items)
    # place of each grade among those of its item, in a random order
    order = np.lexsort((rng.random(len(given)), given.item))
    place = np.empty(len(given), np.int64)
    starts = np.searchsorted(given.item[order], given.item[order])
    place[order] = np.arange(len(given)) - starts
    enough = np.bincount(given.item, minlength=given.n_items) >= _GRADES_PER_ITEM[-1]
    known = np.flatnonzero(np.isfinite(gold) & enough)
    levels = np.unique(given.grade)
    found = {}
    for number in _GRADES_PER_ITEM:
        some = given.select((place < number) & enough[given.item])
        methods = (MajorityVote(ties="random", seed=seed), NaiveBayes(), DawidSkene())
        for name, method in zip(_METHODS, methods, strict=True):
            with warnings.catch_warnings():
                # one grade of each item says nothing of annotators, which is part of what is shown
                warnings.simplefilter("ignore")
                consensus: Consensus = method.fit(some)
            assert consensus.grade is not None
            found[f"{name}|{number}"] = 100 * float(np.mean(levels[consensus.grade[known]] == gold[known]))
    return found


def real_note(rows: list[Row]) -> str:
    """Return the real crowds' label accuracies beside each other."""
    told = []
    for name in dict.fromkeys(row.what["data"] for row in rows):
        curves: dict[object, list[str]] = {}
        for row in rows:
            if row.what["data"] == name:
                curves.setdefault(row.what["method"], []).append(f"{row.ours:.1f}")
        told.append(f"{name}: {'; '.join(f'{method} ' + ', '.join(curve) for method, curve in curves.items())}")
    return (
        f"Real crowds, which the paper leaves to later: label accuracy with {', '.join(map(str, _GRADES_PER_ITEM))} "
        f"grades per item, of items with {_GRADES_PER_ITEM[-1]} or more and gold: {'. '.join(told)}. In table 1 as "
        "printed, MV falls with more grades where annotators have a mean accuracy of 0.4."
    )
