"""Pictures of the study of overlapping grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..figures import COLOURS, bars, common_legend, lines, panels
from .claims import TABLES
from .learning import NEURAL, TREES
from .opinions import Panels
from .panels import LEVELS, TOGETHER
from .setting_results import Key, Results
from .settings import BASELINE, KS, averaged_name
from .simulated import COLLECTIONS, MAIN
from .yang_figures import ACCURACY


def best_annotator(all_panels: Mapping[str, Panels]) -> Any:
    """Figure 1: agreement with the truth by number of grades, beside that of the best annotator."""
    figure, axes = panels(len(all_panels))
    for ax, (name, runs) in zip(axes, all_panels.items(), strict=True):
        numbers = range(1, len(runs[0]["majority vote"]) + 1)
        series = {method: [[one[method][n - 1] for one in runs] for n in numbers] for method in TOGETHER}
        lines(ax, list(numbers), series, xlabel="grades per item", ylabel="right grades in %", error=True, legend=False)
        for what, style in (("best", "--"), ("mean", ":")):
            level = float(np.mean([one[what] for one in runs]))
            ax.axhline(level, color="black", linestyle=style, linewidth=1.2, label=f"{what} single annotator")
        ax.set_xticks(list(numbers))
        ax.set_title(name, fontsize=9)
    common_legend(figure, axes[0])
    return figure


def featured_figure(all_panels: Mapping[str, Panels]) -> Any:
    """Figure 2: shares of grades of those who give one most often, and of the majority vote on the same items."""
    figure, axes = panels(2 * len(all_panels), rows=len(all_panels))
    names = [f"most\n{level}" for level in LEVELS]
    for row, (data, runs) in enumerate(all_panels.items()):
        for column, (part, title) in enumerate((("own", "their own grades"), ("vote", "majority vote on their items"))):
            shares = 100 * np.mean([one[part] for one in runs], axis=0)
            ax = axes[2 * row + column]
            series = {level: shares[:, place].tolist() for place, level in enumerate(LEVELS)}
            bars(ax, names, series, ylabel="share in %", legend=False)
            ax.tick_params(axis="x", labelsize=8)
            ax.set_title(f"{data}: {title}", fontsize=9)
    top = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(0, top)
    common_legend(figure, axes[0], across=5)
    return figure


def shares(all_panels: Mapping[str, Panels]) -> Any:
    """Figure 3: how often each grade is given."""
    figure, (ax,) = panels(1, width=5.2)
    series = {name: (100 * np.mean([one["all"] for one in runs], axis=0)).tolist() for name, runs in all_panels.items()}
    bars(ax, LEVELS, {name: values[::-1] for name, values in series.items()}, ylabel="share of grades in %")
    ax.set_xticks(range(len(LEVELS)), LEVELS[::-1])
    return figure


def by_number(results: Results) -> Any:
    """Figures 4 to 6: nDCG@3 of if-good-k by k, a row of panels for each ranker."""
    rankers = [one for one in (NEURAL, TREES) if any(key[2] == one for key in results.keys)]
    figure, axes = panels(3 * len(rankers), rows=len(rankers))
    number = iter(axes)
    for ranker in rankers:
        for place, collection in enumerate(COLLECTIONS):
            ax = next(number)
            _curve(ax, results, (collection.name, MAIN, ranker))
            printed = f"figure {4 + place}: " if ranker == NEURAL else ""
            ax.set_title(f"{printed}{collection.name}, {ranker}", fontsize=9)
    common_legend(figure, axes[0])
    return figure


def _curve(ax: Any, results: Results, key: Key) -> None:
    """One collection and ranker: one row per grade, and mean gains; baseline at k = 1, good-till-bad at the right."""
    known = results.settings(key)
    ks = [k for k in KS if f"If-good-{k}" in known]
    series = {
        "one row per grade": [BASELINE, *(f"If-good-{k}" for k in ks)],
        "mean gains": [BASELINE, *(averaged_name(f"If-good-{k}") for k in ks)],
    }
    gains = {name: [results.difference(key, one).tolist() for one in row] for name, row in series.items()}
    lines(ax, [1, *ks], gains, xlabel="k", ylabel="nDCG@3 above baseline, in points", error=True, legend=False)
    ticks, names = [1, *ks], ["1\nbaseline", *map(str, ks)]
    last = max(ks) + 1
    for place, name in enumerate(("Good-till-bad", averaged_name("Good-till-bad"))):
        if name in known:
            _dot(ax, last, results.difference(key, name), COLOURS[place])
            ticks, names = [1, *ks, last], ["1\nbaseline", *map(str, ks), "till\nbad"]
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xticks(ticks, names)


def _dot(ax: Any, x: float, values: Any, colour: str) -> None:
    """A mean with its standard error."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    ax.errorbar([x], [np.mean(values)], yerr=[error], fmt="o", color=colour, markersize=4, capsize=2)


def gains(results: Results) -> Any:
    """Tables 1 to 5: gain of each setting over the baseline, printed and ours."""
    known = {place: key for place, key in TABLES.items() if key in results}
    figure, axes = panels(len(known), width=4.6, height=3.0)
    for ax, (place, key) in zip(axes, known.items(), strict=True):
        printed = {name: row["nDCG@3"] for name, row in ACCURACY[place].items()}
        names = [name for name in printed if name != BASELINE][::-1]
        _gains(ax, results, key, names, [printed[name] - printed[BASELINE] for name in names])
        ax.set_title(f"{place}: {key[0]}, {key[2]}", fontsize=9)
    common_legend(figure, axes[0])
    return figure


def _gains(ax: Any, results: Results, key: Key, names: Sequence[str], printed: Sequence[float]) -> None:
    """One table."""
    places = np.arange(len(names))
    ax.plot(printed, places, "D", color="black", markerfacecolor="none", markersize=5, label="printed")
    for shift, colour, title, wanted in (
        (0.0, COLOURS[0], "ours", names),
        (-0.22, COLOURS[1], "ours, mean gains in place of one row per grade", [averaged_name(name) for name in names]),
    ):
        rows = [(place, name) for place, name in zip(places, wanted, strict=True) if name in results.settings(key)]
        values = [results.difference(key, name) for _, name in rows]
        error = [np.std(one, ddof=1) / np.sqrt(len(one)) if len(one) > 1 else 0.0 for one in values]
        at = [place + shift for place, _ in rows]
        means = [float(one.mean()) for one in values]
        ax.errorbar(means, at, xerr=error, fmt="o", color=colour, markersize=4, capsize=2, label=title)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(places, names)
    ax.set_xlabel("nDCG@3 above baseline, in points")
    ax.spines[["top", "right"]].set_visible(False)
