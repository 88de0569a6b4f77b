"""Running time of the methods of Niu et al. against the number of items and of annotators."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from crowdrank.data.judgments import Grades
from crowdrank.simulate import PerItem, grades, uniform

from ..figures import COLOURS, common_legend, panels
from ..outcomes import Outcome, Row, Verdict
from ..work import Work
from .methods import HELD, Crowd, listwise, table_2

_ANNOTATORS, _ITEMS, _EACH, _PER_ITEM = 43, 190, 10, 3
"""The paper's numbers: annotators and items of a query, and grades of an annotator; and grades of an item here."""

_TIMES = 5

Seconds = Mapping[str, Sequence[float]]
"""Method -> seconds at each size."""


def timing(work: Work) -> Outcome:
    """Seconds of a fit to one query, for more and more items, then for more and more annotators."""
    sizes = {
        "items": work.pick(quick=[25, 50, 100], default=[25, 50, 100, 200, 400, 800, 1600]),
        "annotators": work.pick(quick=[19, 38, 76], default=[19, 38, 76, 152, 304, 608, 1216]),
    }
    ways = [*table_2("swapped"), listwise(HELD, "ndcg", "swapped", "held_out")]
    work.expect(sum(map(len, sizes.values())), "crowdagg-time")
    times: dict[str, dict[str, list[float]]] = {against: {way.name: [] for way in ways} for against in sizes}
    for against, numbers in sizes.items():
        for number in numbers:
            cell = work.cell((against, number), partial(_seconds, against, number))
            for name, seconds in cell.items():
                times[against][name].append(seconds)
    rows = [
        Row(
            place="section 6", what={"method": name, "against": against, "number": number, "measure": "seconds"},
            values=(seconds,), over="once",
        )
        for against, of_methods in times.items()
        for name, by_size in of_methods.items()
        for number, seconds in zip(sizes[against], by_size, strict=True)
    ]  # fmt: skip
    return Outcome(
        rows=rows,
        verdicts=_verdicts(times, sizes),
        figures={"time": lambda: _figure(times, sizes)},
        notes=(
            f"One query of simulated binary grades: {_ANNOTATORS} annotators and {_PER_ITEM} grades per item for more "
            f"items, {_ITEMS} items and {_EACH} grades per annotator for more annotators; the best of {_TIMES} fits.",
        ),
    )


def _crowd(against: str, number: int) -> Crowd:
    """A query with this many items, or annotators."""
    n_items, n_annotators = (number, _ANNOTATORS) if against == "items" else (_ITEMS, number)
    per_item = _PER_ITEM if against == "items" else max(1, round(_EACH * number / _ITEMS))
    truth = np.random.default_rng(number).integers(0, 2, n_items)
    known = {"item": [f"item {place:05d}" for place in range(n_items)], "grade": truth}
    pool = uniform(0.6, 0.95, n_annotators=n_annotators, seed=number)
    drawn = grades(known, pool, PerItem(k=per_item), levels=[0, 1], seed=number).judgments
    assert isinstance(drawn, Grades)
    return Crowd(drawn, truth.astype(float))


def _seconds(against: str, number: int) -> dict[str, float]:
    """Seconds of the quickest of some fits by each method; the first, which compiles, is not counted."""
    crowd, seconds = _crowd(against, number), {}
    for way in [*table_2("swapped"), listwise(HELD, "ndcg", "swapped", "held_out")]:
        crowd.scores(way, 0)
        each = []
        for _ in range(_TIMES):
            began = time.perf_counter()
            crowd.scores(way, 0)
            each.append(time.perf_counter() - began)
        seconds[way.name] = min(each)
    return seconds


def _growth(numbers: Sequence[float], seconds: Sequence[float]) -> float:
    """Power of the size that the time grows with, over the larger half of the sizes."""
    last = slice(-max(2, len(numbers) // 2), None)
    return float(np.polyfit(np.log(numbers[last]), np.log(seconds[last]), 1)[0])


def _verdicts(times: Mapping[str, Seconds], sizes: Mapping[str, Sequence[float]]) -> list[Verdict]:
    """What became of the two statements about time."""
    power = {against: _growth(sizes[against], of["CrowdAgg-NDCG"]) for against, of in times.items()}
    last = {name: seconds[-1] for name, seconds in times["items"].items()}
    place = sorted(last, key=last.__getitem__).index("CrowdAgg-NDCG") + 1
    shown = ", ".join(f"{name} {1000 * seconds:.0f}" for name, seconds in last.items())
    return [
        Verdict(
            "section 6: running time compared with the other methods", "not decidable",
            f"The comparison is announced but no times are printed. Here, milliseconds for {sizes['items'][-1]} items "
            f"are {shown}: CrowdAgg is number {place} of {len(last)}.",
        ),
        Verdict.of(
            "section 4.1.3: rank distributions of n items take O(n² log² n) by divide and conquer",
            f"The time of a whole fit grows as the power {power['items']:.2f} of the number of items and "
            f"{power['annotators']:.2f} of the number of annotators: pairs that nobody judged share one table, so "
            "only judged pairs take time.",
            reproduced=power["items"] <= 2.2,
        ),
    ]  # fmt: skip


def _figure(times: Mapping[str, Seconds], sizes: Mapping[str, Sequence[float]]) -> Any:
    """Times on logarithmic axes."""
    figure, axes = panels(len(times), width=5.0, height=3.8)
    for ax, (against, of_methods) in zip(axes, times.items(), strict=True):
        for place, (name, seconds) in enumerate(of_methods.items()):
            ax.plot(sizes[against], seconds, color=COLOURS[place], marker="o", markersize=3, label=name)
        ax.set(xscale="log", yscale="log", xlabel=f"number of {against}", ylabel="seconds")
        ax.spines[["top", "right"]].set_visible(False)
    common_legend(figure, axes[0])
    return figure
