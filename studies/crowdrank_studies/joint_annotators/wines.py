"""Tables 1 and 2 and figures 2, 3 and 4 of Gupta and Narayanan: wines compared by simulated annotators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from crowdrank.protocols import Floats

from ..figures import COLOURS, common_legend, lines, panels
from ..outcomes import Outcome, Row
from ..work import Work
from .cellars import Cellar, Tasters, limits
from .gupta_figures import N_ANNOTATORS, SINGLE_RANKERS, TABLE_1, TABLE_2
from .schemes import (
    BORDA,
    EFFECTS,
    FEWER,
    HINGE,
    IAM,
    JAM,
    LEARNED_PAIRS,
    LEARNING_RATES,
    MORE,
    MV,
    PAPER,
    UNFOLDED,
    VOTES,
    VRJAM,
)
from .wine_claims import Results, sparse_note, verdicts

COLOURS_OF_WINE = ("red", "white")
_ALL = "all"
_STEPPED_PAIRS = 20_000
"""Pairs that printed steps learn from: how far they lead depends on their rate, not on so many pairs."""

_QUICK = 4000
"""Pairs of a quick run."""

_FACTORS = tuple(round(1.1**step, 3) for step in range(11))
_CROWDS = tuple(range(3, 10))
_SIZES = (800, 1600, 3200, 8000, 32000)
_CURVES = (*PAPER, VOTES)
_SPARSE = (*_CURVES, HINGE, EFFECTS, BORDA)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Who judges how many pairs of which wines, and what is made of it.

    Parameters
    ----------
    part, colour, at
        What it belongs to, the wines, and the place on the x axis: factor of noise, annotators, or pairs.
    n_pairs
        Number of pairs; ``None`` for all.
    flips
        Flip rates; ``None`` for such as depend on the pair.
    schemes
        Fusion schemes.
    seeds
        Seeds to repeat with.
    """

    part: str
    colour: str
    at: float
    n_pairs: int | None
    flips: Floats | None
    schemes: tuple[str, ...]
    seeds: range


def wine(work: Work) -> Outcome:
    """Flip rates, accuracies, more noise, more annotators, few pairs, and noise that depends on the pair."""
    cellars = {colour: Cellar.load(work, colour) for colour in COLOURS_OF_WINE}
    settings = list(_settings(work))
    stepped = {colour: work.seeds(quick=1, default=3) for colour in COLOURS_OF_WINE}
    work.expect(
        1 + sum(map(len, stepped.values())) + sum(len(one.schemes) * len(one.seeds) for one in settings), "wine"
    )
    results = Results()
    for setting in settings:
        for seed in setting.seeds:
            _measure(work, cellars[setting.colour], setting, seed, results)
    first = Tasters(cellars["red"], _rates(), _table_pairs(work), 0).fewer()
    singles = work.cell(("single rankers", first.n_pairs or _ALL), first.single_rankers)["pairs"]
    few = work.pick(quick=_QUICK, default=_STEPPED_PAIRS)
    steps = {
        colour: [
            work.cell(("printed steps", colour, few, seed), Tasters(cellars[colour], _rates(), few, seed).printed_steps)
            for seed in seeds
        ]
        for colour, seeds in stepped.items()
    }
    n_pairs = {colour: cellar.n_pairs for colour, cellar in cellars.items()}
    return Outcome(
        rows=[*_rows(results, settings), *_single_rows(singles), *_step_rows(steps)],
        verdicts=verdicts(results, n_pairs, singles, steps),
        figures=_figures(results),
        notes=[sparse_note(results), *_notes(work, settings)],
    )


def _step_rows(steps: Mapping[str, list[Any]]) -> Iterator[Row]:
    """What printed steps find at each rate."""
    for colour, cells in steps.items():
        for scheme in (IAM, JAM, VRJAM):
            for place, rate in enumerate(LEARNING_RATES):
                what: dict[str, str | float] = {"wine": colour, "scheme": scheme, "measure": "right pairs in %"}
                what["rate"] = rate
                values = tuple(cell[scheme][place] for cell in cells)
                yield Row(place="table 2 by printed steps", what=what, values=values, paper=TABLE_2[colour][scheme])


def _rates(factor: float = 1.0, n_annotators: int = N_ANNOTATORS) -> Floats:
    """Flip rates of the paper."""
    return factor * np.arange(1, n_annotators + 1) / 20


def _table_pairs(work: Work) -> int | None:
    """Pairs of tables 1 and 2, and of red wine in the figures."""
    few: int | None = work.pick(quick=_QUICK, default=None)
    return few


def _settings(work: Work) -> Iterator[Setting]:
    """All that is measured."""
    many = _table_pairs(work)
    shown = {"red": many, "white": work.pick(quick=_QUICK, default=100_000, full=0) or None}
    repeats = {"red": work.seeds(quick=1, default=5), "white": work.seeds(quick=1, default=1, full=5)}
    again = {"red": work.seeds(quick=1, default=2, full=5), "white": work.seeds(quick=1, default=2, full=1)}
    sparse = {"red": work.seeds(quick=1, default=5, full=20), "white": work.seeds(quick=1, default=3, full=20)}
    factors = work.pick(quick=_FACTORS[::5], default=_FACTORS)
    for colour in COLOURS_OF_WINE:
        compared = (*_CURVES, HINGE, EFFECTS, BORDA)
        yield Setting(part="table", colour=colour, at=1, n_pairs=many, flips=_rates(), schemes=compared,
                      seeds=repeats[colour])  # fmt: skip
        for factor in factors:
            yield Setting(part="noise", colour=colour, at=factor, n_pairs=shown[colour], flips=_rates(factor),
                          schemes=_CURVES, seeds=again[colour])  # fmt: skip
        for size in work.pick(quick=(3, 6, 9), default=_CROWDS):
            yield Setting(part="crowd", colour=colour, at=size, n_pairs=shown[colour], flips=_rates(1.0, size),
                          schemes=_CURVES, seeds=again[colour])  # fmt: skip
        for n in work.pick(quick=_SIZES[:3], default=_SIZES):
            yield Setting(part="sparse", colour=colour, at=n, n_pairs=n, flips=_rates(),
                          schemes=_SPARSE, seeds=sparse[colour])  # fmt: skip
        yield Setting(part="varying", colour=colour, at=1, n_pairs=shown[colour], flips=None,
                      schemes=(MV, VOTES, JAM, VRJAM, FEWER, MORE, UNFOLDED), seeds=again[colour])  # fmt: skip


def _measure(work: Work, cellar: Cellar, setting: Setting, seed: int, results: Results) -> None:
    """Measure one setting with one seed, a cell for each scheme."""
    # other draws for the other colour, but the same ones along an axis, where differences matter
    draw = len(COLOURS_OF_WINE) * seed + COLOURS_OF_WINE.index(setting.colour)
    everybody = Tasters(cellar, setting.flips, setting.n_pairs, draw)
    for scheme in setting.schemes:
        tasters = everybody.fewer() if scheme == IAM else everybody
        key = (setting.part, setting.colour, setting.at, setting.n_pairs or _ALL, seed, scheme)
        results.add(setting.part, setting.colour, setting.at, scheme, work.cell(key, partial(tasters.measure, scheme)))


def _rows(results: Results, settings: list[Setting]) -> Iterator[Row]:
    """Every figure, setting after setting."""
    places = {"table": "table 2", "noise": "figure 2", "crowd": "figure 3", "sparse": "sparse pairs",
              "varying": "noise that depends on the pair"}  # fmt: skip
    axes = {"noise": "noise factor", "crowd": "annotators", "sparse": "pairs"}
    for one in settings:
        where: dict[str, str | float] = {"wine": one.colour}
        where |= {axes[one.part]: one.at} if one.part in axes else {}
        for scheme in one.schemes:
            measures = ("pairs", "order") if one.part in ("table", "sparse") else ("pairs",)
            for measure in measures:
                values = results.values(one.part, one.colour, one.at, scheme, measure)
                if values and not (measure == "order" and scheme == IAM):
                    printed = TABLE_2[one.colour].get(scheme) if one.part == "table" and measure == "pairs" else None
                    name = "right pairs in %" if measure == "pairs" else "right order of all pairs in %"
                    what = {**where, "scheme": scheme, "measure": name}
                    yield Row(place=places[one.part], what=what, values=values, paper=printed)
        if one.flips is not None and one.part != "sparse":
            for name, value in zip(("MV, exact", "votes alone, rates known"), limits(one.flips), strict=True):
                what = {**where, "scheme": name, "measure": "right pairs in %"}
                yield Row(place=places[one.part], what=what, values=(value,), over="once")
        if one.part == "table":
            yield from _flip_rows(results, one.colour)


def _flip_rows(results: Results, colour: str) -> Iterator[Row]:
    """Table 1."""
    for scheme in (JAM, VRJAM, HINGE, VOTES, EFFECTS):
        flips = results.flips("table", colour, 1, scheme)
        for place, values in enumerate(flips.T):
            printed = TABLE_1[scheme][place] if colour == "red" and scheme in TABLE_1 else None
            what: dict[str, str | float] = {
                "wine": colour,
                "scheme": scheme,
                "measure": "flip rate",
                "annotator": place + 1,
            }
            yield Row(place="table 1", what=what, values=tuple(values.tolist()), paper=printed)


def _single_rows(singles: list[float]) -> Iterator[Row]:
    """Rankers of single annotators."""
    for name, printed, value in zip(("worst", "best"), SINGLE_RANKERS, (min(singles), max(singles)), strict=True):
        what = {"wine": "red", "scheme": f"{name} ranker of one annotator", "measure": "right pairs in %"}
        yield Row(place="section 4.1.1", what=what, values=(value,), paper=printed, over="once")


def _notes(work: Work, settings: list[Setting]) -> list[str]:
    """What a reader should know besides."""
    notes = [
        f"IAM learns from {LEARNED_PAIRS:,} random pairs where there are more, and is measured on all pairs. The paper "
        "starts joint models from random weights and rates, which lead to the mirror image of the solution about half "
        "of the time; ours start from the majority, and printed steps (iam-paper, jam-paper, vrjam-paper) leave to it "
        f"which image is right. They learn from {_STEPPED_PAIRS:,} random pairs.",
        f"VRJAM has 8 clusters, a difference and its negative being the same ({UNFOLDED} takes them as printed). A tie "
        "among votes counts one half. Figures 2 and 3 are printed without numbers.",
        "Where noise depends on the pair, annotators' flip rates from 0.07 to 0.42 are dealt out again in each of four "
        "groups of pairs, by the measurement in which two wines differ most.",
    ]
    some = next(one for one in settings if one.part == "noise" and one.colour == "white")
    if some.n_pairs is not None:
        notes.append(f"Figures 2 and 3 of white wine use {some.n_pairs:,} random pairs in place of all of them.")
    if work.quick:
        notes.append(f"A quick run uses {_QUICK:,} random pairs throughout.")
    return notes


def _figures(results: Results) -> dict[str, Any]:
    """The pictures."""
    return {
        "figure-2": lambda: _curve_figure(results, "noise", "factor of the flip rates"),
        "figure-3": lambda: _curve_figure(results, "crowd", "annotators"),
        "figure-4": _losses,
        "sparse-pairs": lambda: _sparse_figure(results),
    }


def _curve_figure(results: Results, part: str, label: str) -> Any:
    """Right pairs against noise or size of the crowd; below without IAM, which leaves the others no room."""
    figure, axes = panels(4, rows=2)
    for place, ax in enumerate(axes):
        colour, near = COLOURS_OF_WINE[place % 2], place >= 2
        at = results.places(part, colour)
        chosen = [scheme for scheme in _CURVES if not (near and scheme == IAM)]
        series = {scheme: [results.values(part, colour, one, scheme, "pairs") for one in at] for scheme in chosen}
        lines(ax, at, series, xlabel=label, ylabel="right pairs in %", legend=False, among=_CURVES)
        if near:
            low, high = ax.get_ylim()
            ax.set_ylim(max(low, 90.0), min(high, 100.0))
        ax.set_title(f"{colour} wine{', near view' if near else ''}", fontsize=9)
    common_legend(figure, axes[0], across=5)
    return figure


def _losses() -> Any:
    """The logarithm of the logistic function and the negative hinge."""
    figure, (ax,) = panels(1, width=5.2, height=3.6)
    at = np.linspace(-5, 5, 201)
    ax.plot(at, -np.logaddexp(0, -at), color=COLOURS[0], label="log of the logistic function")
    ax.plot(at, -np.maximum(1 - at, 0), color=COLOURS[1], label="negative hinge")
    ax.set_xlabel("difference of scores")
    ax.set_ylabel("value")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return figure


def _sparse_figure(results: Results) -> Any:
    """Right pairs among few judged ones, and the order of all wines that comes of them."""
    figure, axes = panels(4, rows=2)
    for place, ax in enumerate(axes):
        colour, measure = COLOURS_OF_WINE[place % 2], ("pairs", "order")[place // 2]
        at = results.places("sparse", colour)
        chosen = (MV, JAM, VRJAM, VOTES, HINGE, EFFECTS) if measure == "pairs" else (IAM, JAM, VOTES, EFFECTS, BORDA)
        series = {one: [results.values("sparse", colour, n, one, measure) for n in at] for one in chosen}
        label = "right pairs in %" if measure == "pairs" else "right order of all pairs in %"
        lines(ax, at, series, xlabel="judged pairs", ylabel=label, legend=False, among=_SPARSE)
        ax.set_xscale("log")
        ax.set_xticks(at, [f"{n:,}" for n in at], fontsize=7)
        ax.minorticks_off()
        ax.set_title(f"{colour} wine", fontsize=9)
    common_legend(figure, *axes, across=4)
    return figure
