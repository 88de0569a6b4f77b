"""CrowdAgg on one query of 190 items, 43 annotators and about 10 grades each, against the paper's way to evaluate it.

The paper finds the distribution of every item's rank for every annotator by convolving its pairs one after the
other, O(n^2) steps each. That is written out here and compiled, with the same rounds of held-out quality, and shares no
code with ours: whole fits are compared, and evaluations of all expected discounts. Ours are done many times over,
for one takes too little time to be measured well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Floor, Measured, Size, Workload, same

PRIOR = (8.0, 2.0)
TOLERANCE = 1e-4
TRUST = 0.8
"""Quality of all annotators where discounts are evaluated by themselves."""

N_FITS, N_EVALUATIONS = 20, 200


def _prepare(folder: Path, size: Size) -> None:
    """Write grades of 0 to 2, -1 where there are none, and what the convolution makes of them."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    shape = size["n_annotators"], size["n_items"]
    truth, right = rng.integers(0, 3, shape[1]), rng.uniform(0.5, 0.95, shape[0])
    grade = np.where(rng.random(shape) < right[:, None], truth, rng.integers(0, 3, shape))
    judged = rng.random(shape) < size["n_grades"] / shape[1]
    judged[rng.integers(0, shape[0], shape[1]), np.arange(shape[1])] |= ~judged.any(axis=0)
    grade[~judged] = -1
    np.save(folder / "grades.npy", grade)
    np.save(folder / "scores.npy", _rounds(grade, _convolution()))


def _convolution() -> Callable[..., Any]:
    """The compiled twin: writes the expected discounts (n_annotators, n_items) of grades."""
    import numpy as np
    from numba import njit

    @njit(nogil=True)  # type: ignore[untyped-decorator]
    def convolve(grade, eta, out):  # type: ignore[no-untyped-def]
        n_annotators, n = grade.shape
        chance, won = np.empty(n), np.empty(n)
        for a in range(n_annotators):
            for s in range(n):
                won[s] = ((grade[a] >= 0) & (grade[a] < grade[a, s])).sum()
            for s in range(n):
                chance[:] = 0.0
                chance[0] = 1.0
                length = 0
                for t in range(n):
                    if t == s:
                        continue
                    p = 0.5
                    if grade[a, s] >= 0 and grade[a, t] >= 0 and grade[a, s] != grade[a, t]:
                        share = abs(won[s] - won[t]) / n
                        p = 1 - share if won[s] > won[t] else share
                    loss = 1 - (eta[a] * p + (1 - eta[a]) * (1 - p))
                    length += 1
                    for k in range(length, 0, -1):
                        chance[k] = chance[k] * (1 - loss) + chance[k - 1] * loss
                    chance[0] *= 1 - loss
                out[a, s] = 0.0
                for k in range(n):
                    out[a, s] += chance[k] / np.log2(2.0 + k)

    return convolve


def _rounds(grade: Any, convolve: Callable[..., Any]) -> Any:
    """Scores after all rounds of held-out quality."""
    import numpy as np

    parts, neutral = np.empty(grade.shape), np.empty((1, grade.shape[1]))
    eta, step, change, number = np.full(len(grade), PRIOR[0] / sum(PRIOR)), 0.5, np.inf, 0
    convolve(np.full_like(neutral, -1, grade.dtype), eta[:1], neutral)
    # an annotator who prefers no item to another has no pairs
    judged = (grade >= 0) & np.array([[len(set(row[row >= 0])) > 1] for row in grade])
    covered = judged.sum(axis=0) > 1
    while True:
        convolve(grade, eta, parts)
        parts -= neutral
        if change <= TOLERANCE:
            return parts.sum(axis=0)
        lead = parts.sum(axis=0) - parts
        gap, better = lead[:, :, None] - lead[:, None, :], grade[:, :, None] > grade[:, None, :]
        better &= (judged & covered)[:, :, None] & (judged & covered)[:, None, :]
        agree = (better * np.where(np.abs(gap) <= 1e-12, 0.5, gap > 0)).sum(axis=(1, 2))
        move = step * ((agree + PRIOR[0]) / (better.sum(axis=(1, 2)) + sum(PRIOR)) - eta)
        number, eta, change = number + 1, eta + move, float(np.abs(move).max())
        step *= 1.0 if number < 10 else 0.5


def _grades(folder: Path) -> Any:
    """The same grades as judgments; items keep their order."""
    import numpy as np

    from crowdrank import Grades

    grade = np.load(folder / "grades.npy")
    annotator, item = np.nonzero(grade >= 0)
    return Grades.from_frame({"annotator": annotator, "item": item, "grade": grade[annotator, item]})


def _fits(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank.aggregators import CrowdAgg

    grades, method = _grades(folder), CrowdAgg(gap="swapped", prior=PRIOR, tol=TOLERANCE)
    return lambda: [method.fit(grades).scores for _ in range(N_FITS)][-1]


def _fit_by_convolution(folder: Path, size: Size) -> Callable[[], Any]:
    import numpy as np

    grade, convolve = np.load(folder / "grades.npy"), _convolution()
    return lambda: _rounds(grade, convolve)


def _evaluations(folder: Path, size: Size) -> Callable[[], Any]:
    import numpy as np

    from crowdrank.models.crowd_agg.crowd_agg import _preference_sets
    from crowdrank.models.crowd_agg.kernels.poisson_binomial import Discounts, ndcg_mixture, pair_gap

    sets, _ = _preference_sets(_grades(folder))
    sizes = np.full(len(sets.code), size["n_items"])
    gap = pair_gap("swapped", sets, np.zeros(len(sizes), np.int32), sizes)
    discounts, trust = Discounts.of(sets, sizes, gap, ndcg_mixture()), np.full(len(sizes), TRUST)
    return lambda: [discounts.expected_discounts(trust) for _ in range(N_EVALUATIONS)]


def _evaluate_by_convolution(folder: Path, size: Size) -> Callable[[], Any]:
    import numpy as np

    grade, convolve = np.load(folder / "grades.npy"), _convolution()
    eta, parts = np.full(len(grade), TRUST), np.empty(grade.shape)

    def call() -> Any:
        convolve(grade, eta, parts)
        return parts.sum(axis=0)

    return call


def _difference(scores: Any, folder: Path) -> float:
    """Largest difference from the convolution's scores."""
    import numpy as np

    return float(np.abs(scores - np.load(folder / "scores.npy")).max())


def _times_faster(what: str, ours: str, peer: str, repeats: int, times: float) -> Floor:
    """One of our repetitions this many times faster than the peer."""

    def value(sides: Mapping[str, Measured]) -> float:
        return repeats * sides[peer].seconds / sides[ours].seconds

    return Floor(f"{what} faster than {peer}", value, times, True, "x", (ours, peer))


WORKLOAD = Workload(
    name="crowd_agg",
    what="CrowdAgg, {n_items} items, {n_annotators} annotators, about {n_grades} grades each",
    sizes={
        "tiny": {"n_items": 20, "n_annotators": 5, "n_grades": 6},
        "small": {"n_items": 60, "n_annotators": 20, "n_grades": 10},
        "full": {"n_items": 190, "n_annotators": 43, "n_grades": 10},
    },
    prepare=_prepare,
    sides={
        "fits": Call(f"crowdrank, {N_FITS} whole fits", _fits, _difference),
        "convolution": Call("compiled convolution, one whole fit", _fit_by_convolution, _difference),
        "evaluations": Call(f"crowdrank, {N_EVALUATIONS} evaluations", _evaluations),
        "convolution_once": Call("compiled convolution, one evaluation", _evaluate_by_convolution),
    },
    floors=(
        _times_faster("a fit", "fits", "convolution", N_FITS, 1_000),
        same("fits", "convolution", 1e-12),
        _times_faster("an evaluation", "evaluations", "convolution_once", N_EVALUATIONS, 5_000),
    ),
    figure="difference",
)
