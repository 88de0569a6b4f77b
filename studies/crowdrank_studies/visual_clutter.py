"""Section 5.4 of Wu et al.: web pages ranked by clutter from cheap features, three image measures being annotators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from crowdrank.metrics import kendall_tau, ndcg, spearman
from crowdrank.protocols import Floats
from crowdrank.rankers import ListMLE
from crowdrank.wording import counted

from .clutter_pages import (
    FIRST,
    FIRST_SETS,
    MARKS,
    MEASURES,
    PAGES,
    SCREEN,
    SETS,
    SOURCES,
    SUBSET,
    WHOLE,
    WITHOUT,
    Pages,
    divide_pages,
    splits_of,
)
from .figures import bars, common_legend, lines, panels
from .ltrma.methods import BORDA, ML, PRINTED_D, PRINTED_ML, D, Fitted, Methods, Task, clear, difference_text
from .outcomes import Outcome, Row, Verdict
from .work import Cell, Work

ALL, RANDOM, _PEERS = "ListMLE on all rankings", "random order", "the other two"
_METHODS = (BORDA, PRINTED_D, PRINTED_ML, D, ML)
_FEW = {"rendered": (BORDA, ML), "source": (BORDA, ML), "html": (BORDA,)}
_DEPTHS = (1, 2, 3, 4, 5)
_TAU, _APART = "tau", "left out"
_UNIT_VARIANCE = 1 / 12
"""Variance of what is uniform from 0 to 1, which the steps of the printed descent were made for."""


def visual_clutter(work: Work) -> Outcome:
    """NDCG@1 to @5 of rankers and measures, and Kendall's tau with a measure that was left out."""
    pages = Pages.of(work) if work.pages is None else Pages.in_folder(work.pages, work)
    first_pages = Pages.first_screens(work) if work.pages is None else pages
    seeds = work.seeds(quick=1, default=10)
    splits = splits_of(pages, seeds)
    splits = [split for split in splits if split in work.pick(quick=(PAGES, *WITHOUT), default=splits)]
    n_most = work.pick(quick=6, default=None)
    work.expect(len(seeds) * len(splits) + len(_first_seeds(work)), "visual-clutter")
    measured: dict[tuple[str, str, str, str], list[float]] = {}
    for seed in seeds:
        for split in splits:
            cell = work.cell((*pages.key, split, seed), partial(_run, pages, split, seed, n_most))
            for name, figures in cell.items():
                chosen, _, method = name.partition("|")
                for measure, value in figures.items():
                    measured.setdefault((split, chosen, method, measure), []).append(value)
    first = _first_screen_taus(work, first_pages, n_most)
    return Outcome(
        rows=[
            *_rows(measured),
            *_marked_rows(pages, measured),
            *_first_rows(first, first_pages),
            *_feature_rows(pages),
        ],
        verdicts=[_people(), _better(measured), _close(measured, first, first_pages), _cheap(measured)],
        figures={"figure-4": lambda: _figure(measured), "left-out": lambda: _left_out_figure(measured)},
        notes=[*_notes(pages, measured), *(_marked_note(pages, measured, mark) for mark in MARKS)],
    )


def _run(pages: Pages, split: str, seed: int, n_most: int | None) -> Cell:
    """All measures of all methods with one division of the pages."""
    train, test = (rows[: None if n_most is None else n_most * SUBSET] for rows in divide_pages(pages, split, seed))
    main = split == PAGES
    figures: dict[str, dict[str, float]] = {}
    for chosen, columns in SETS.items():
        names = _METHODS if main and chosen == "rendered" else _FEW[chosen]
        task = pages.task(columns, train, test, list(MEASURES))
        for name, fitted in _fit_methods(task, names, seed).items():
            figures[f"{chosen}|{name}"] = _measure_scores(pages, task, fitted.scores)
        for left, others in ((left, [name for name in MEASURES if name != left]) for left in MEASURES):
            apart = pages.task(columns, train, test, others)
            for name, fitted in _fit_methods(apart, names, seed).items():
                figures[f"{chosen}|{name}"][f"{_APART} {left}"] = _agreement(pages, apart, fitted.scores, left)
    rows = pages.rows(task.test)
    for name in MEASURES:
        figures[f"|{name}"] = _measure_scores(pages, task, -pages.clutter[name][rows])
        peers = -np.mean([pages.clutter[other][rows] for other in MEASURES if other != name], axis=0)
        figures[f"|{_PEERS}"] = {
            **figures.get(f"|{_PEERS}", {}),
            f"{_APART} {name}": _agreement(pages, task, peers, name),
        }
    figures[f"|{RANDOM}"] = _measure_scores(pages, task, np.zeros(len(rows)))
    return figures


def _first_seeds(work: Work) -> range:
    """Seeds of the pages whose first screen was counted apart: half as many pages, twice as many halves."""
    return range(2 * len(work.seeds(quick=1, default=10)))


def _first_screen_taus(work: Work, pages: Pages, n_most: int | None) -> dict[str, list[float]]:
    """Tau with the measure left out, the mean of the three, by set of columns, for each division into halves."""
    taus: dict[str, list[float]] = {}
    for seed in _first_seeds(work):
        cell = work.cell((*pages.key, "first screen", seed), partial(_run_first, pages, seed, n_most))
        for name, value in cell.items():
            taus.setdefault(name, []).append(value)
    return taus


def _run_first(pages: Pages, seed: int, n_most: int | None) -> Cell:
    """The same for one division, by Borda and ListMLE."""
    train, test = (rows[: None if n_most is None else n_most * SUBSET] for rows in divide_pages(pages, PAGES, seed))
    means = {}
    for chosen, columns in FIRST_SETS.items():
        taus = []
        for left in MEASURES:
            task = pages.task(columns, train, test, [name for name in MEASURES if name != left])
            methods = Methods(ridge=0.01, turns=30, n_samples=40, steps=_UNIT_VARIANCE, seed=seed)
            taus.append(_agreement(pages, task, methods.fit((BORDA,), task)[BORDA].scores, left))
        means[chosen] = float(np.mean(taus))
    rows = pages.rows(task.test)
    others = {left: [pages.clutter[name][rows] for name in MEASURES if name != left] for left in MEASURES}
    peers = [_agreement(pages, task, -np.mean(values, axis=0), left) for left, values in others.items()]
    return {**means, _PEERS: float(np.mean(peers))}


def _first_rows(taus: Mapping[str, Sequence[float]], pages: Pages) -> Iterator[Row]:
    """What each set of columns comes to, and less the whole page."""
    labels = {"split": pages.origin, "measure": f"{_TAU} {_APART}, mean of three"}
    for name, values in taus.items():
        method = name if name == _PEERS else BORDA
        yield Row(place="first screen", what={**labels, "features": name, "method": method}, values=tuple(values))
    for name in FIRST_SETS:
        if name != WHOLE:
            less = tuple(np.subtract(taus[name], taus[WHOLE]).tolist())
            what = {**labels, "features": f"{name} less {WHOLE}", "method": BORDA}
            yield Row(place="first screen", what=what, values=less)


def _fit_methods(task: Task, names: Sequence[str], seed: int) -> dict[str, Fitted]:
    """What each method learns, with ListMLE on all rankings beside them."""
    methods = Methods(ridge=0.01, turns=30, n_samples=40, steps=_UNIT_VARIANCE, seed=seed)
    return {**methods.fit(names, task), ALL: _all_rankings(task)}


def _all_rankings(task: Task) -> Fitted:
    """ListMLE with each ranking as a query of its own."""
    said = task.rankings
    query = np.repeat(np.arange(len(said.annotator)), np.diff(said.offsets))
    ranker = ListMLE(scale="none", ridge=0.01).fit(task.train.matrix[said.item], -said.rank.astype(float), qid=query)
    return Fitted(np.asarray(ranker.predict(task.test.matrix), np.float64))


def _measure_scores(pages: Pages, task: Task, scores: Floats) -> dict[str, float]:
    """The measures of scores of the test pages against the mean of the three."""
    rows, query = pages.rows(task.test), task.test.items.query
    measured = {f"nDCG@{k}": float(ndcg(pages.grade[rows], scores, query, k=k)) for k in _DEPTHS}
    return {**measured, _TAU: float(kendall_tau(pages.calm[rows], scores, query))}


def _agreement(pages: Pages, task: Task, scores: Floats, measure: str) -> float:
    """Kendall's tau of scores of the test pages with one of the measures."""
    rows, query = pages.rows(task.test), task.test.items.query
    return float(kendall_tau(-pages.clutter[measure][rows], scores, query))


Figures = Mapping[tuple[str, str, str, str], Sequence[float]]
"""Split, set of features, method and measure -> the figure of each repeat."""


def _apart(figures: Figures, method: str, *, split: str = PAGES, chosen: str = "rendered") -> Floats:
    """Tau with the measure left out, the mean of the three for each repeat."""
    values: Floats = np.mean([figures[split, chosen, method, f"{_APART} {name}"] for name in MEASURES], axis=0)
    return values


def _less(figures: Figures, first: str, second: str, measure: str) -> Floats:
    """First less second on rendered pages, for each repeat."""
    one, two = (figures[PAGES, "rendered", name, measure] for name in (first, second))
    values: Floats = np.subtract(one, two)
    return values


def _rows(figures: Figures) -> Iterator[Row]:
    """All that was measured; the paper has no figure of it."""
    for (split, chosen, method, measure), values in figures.items():
        figure = split == PAGES and measure.startswith("nDCG") and chosen in ("", "rendered")
        labels = {"split": split, "features": chosen or "-", "method": method, "measure": measure}
        yield Row(place="figure 4" if figure else "beside figure 4", what=labels, values=tuple(values))
    for first, second in ((PRINTED_ML, PRINTED_D), (ML, D), (ML, BORDA), (D, BORDA)):
        for measure in ("nDCG@3", "nDCG@5", _TAU):
            gain = _less(figures, first, second, measure)
            labels = {"split": PAGES, "features": "rendered", "method": f"{first} less {second}"}
            yield Row(place="paired difference", what={**labels, "measure": measure}, values=tuple(gain))


def _marked_taus(pages: Pages, figures: Figures, mark: str) -> dict[str, dict[str, Floats]]:
    """Tau with the measure left out by set of features: of all pages, without marked ones, and of as many."""
    splits = {
        f"all {len(pages.ids):,}": PAGES,
        f"the {int((~pages.marks[mark]).sum()):,} without": f"without {mark}",
        "as many at random": f"as many as without {mark}",
    }
    there = {label: split for label, split in splits.items() if (split, "rendered", BORDA, _TAU) in figures}
    return {
        label: {chosen: _apart(figures, BORDA, split=split, chosen=chosen) for chosen in SETS}
        for label, split in there.items()
    }


def _marked_rows(pages: Pages, figures: Figures) -> Iterator[Row]:
    """The figures with and without pages that are marked."""
    for mark in pages.marks:
        for label, taus in _marked_taus(pages, figures, mark).items():
            for chosen, values in taus.items():
                labels = {"method": BORDA, "measure": f"{_TAU} {_APART}, mean of three", "features": chosen}
                yield Row(place=f"with and without {mark}", what={**labels, "pages": label}, values=tuple(values))


def _marked_note(pages: Pages, figures: Figures, mark: str) -> str:
    """What leaving marked pages out comes to, or why that is not known."""
    if mark not in pages.marks:
        return (
            f"It was not recorded which of these pages {MARKS[mark]} ({mark}), so no figure without them can be "
            "given; `crowdrank study visual-clutter --pages FOLDER` renders pages anew and gives both."
        )
    marked = f"{int(pages.marks[mark].sum()):,} of {counted(len(pages.ids), 'page')} {MARKS[mark]} ({mark})"
    taus = _marked_taus(pages, figures, mark)
    if len(taus) < 2:
        why = (
            "without them too few are left to learn from"
            if pages.marks[mark].any()
            else "there is nothing to leave out"
        )
        return f"{marked}: {why}."
    by_mark = "; ".join(
        f"{label} {', '.join(f'{chosen} {np.mean(values):.2f}' for chosen, values in by_set.items())}"
        for label, by_set in taus.items()
    )
    return f"{marked}. Tau with a measure left out ({BORDA} and ListMLE), with and without them: {by_mark}."


def _feature_rows(pages: Pages) -> Iterator[Row]:
    """Correlation of each feature with clutter, by kind of page."""
    kinds = ("all", *(sorted(set(pages.kind)) if len(set(pages.kind)) > 1 else ()))
    for kind in kinds:
        rows = np.array([row for row, own in enumerate(pages.kind) if kind in ("all", own)])
        for name in SETS["rendered"]:
            value = float(spearman(-pages.calm[rows], pages.features[name][rows]))
            labels = {"features": "rendered", "method": name.removeprefix("dom_"), "measure": f"rho, {kind}"}
            yield Row(place="single features", what=labels, values=(value,), over="once")


def _people() -> Verdict:
    """The scores of people are not to be had."""
    return Verdict(
        "figure 4: nDCG against scores from 0 to 5 by seven volunteers",
        "not decidable",
        "Neither the 2,000 pages nor the volunteers' scores were published, and the figure prints no numbers. Public "
        "sets with people's answers ask about appeal, which is hardly related to clutter. In their place we use the "
        "mean of the three measures, which favours each of them, and each measure in turn, left out of training.",
    )


def _better(figures: Figures) -> Verdict:
    """Whether the joint method beats the two stages."""
    by_split, gains = [], []
    for first, second in ((PRINTED_ML, PRINTED_D), (ML, D)):
        near, far = _less(figures, first, second, "nDCG@3"), _apart(figures, first) - _apart(figures, second)
        gains.append((near, far))
        by_split.append(
            f"{first} less {second}: nDCG@3 {difference_text(near, 3)}, tau with the measure left out "
            f"{difference_text(far, 3)}"
        )
    plain = _apart(figures, ML) - _apart(figures, BORDA)
    return Verdict.of(
        "figure 4: LTRMA-ML outperforms LTRMA-D",
        f"{'; '.join(by_split)}. LTRMA-ML less Borda and ListMLE in that tau: {difference_text(plain, 3)}.",
        why="With three annotators of similar quality who agree, weights make no difference.",
        reproduced=all(clear(gain) > 0 for gain in gains[0]),
        trend=any(clear(gain) > 0 for gain in gains[0]) and all(float(np.mean(gain)) > 0 for gain in gains[0]),
    )


def _close(figures: Figures, first: Mapping[str, Sequence[float]], first_pages: Pages) -> Verdict:
    """Whether features come close to the measures."""
    key = PAGES
    depths = {k: float(np.mean(figures[key, "rendered", ML, f"nDCG@{k}"])) for k in (3, 4, 5)}
    least = {k: min(float(np.mean(figures[key, "", name, f"nDCG@{k}"])) for name in MEASURES) for k in depths}
    chance = {k: float(np.mean(figures[key, "", RANDOM, f"nDCG@{k}"])) for k in depths}
    own, peers = float(np.mean(_apart(figures, ML))), float(np.mean(_apart(figures, _PEERS, chosen="")))
    on_first, seen = (np.subtract(first[name], first[WHOLE]) for name in (FIRST, SCREEN))
    by_depth = ", ".join(f"@{k} {depths[k]:.3f}, {least[k]:.3f} and {chance[k]:.3f}" for k in depths)
    return Verdict.of(
        "figure 4: LTRMA-ML is close to the image measures at nDCG@3, @4 and @5",
        f"nDCG of LTRMA-ML, of the lowest measure and of a random order: {by_depth}; the measures are part of that "
        f"truth. On even terms, tau with a measure left out is {own:.2f}, and {peers:.2f} for the other two measures.",
        why="The reason is not that features count over the whole page while the measures see only its first screen: "
        f"on {first_pages.origin}, counting on the first screen changes that tau by "
        f"{difference_text(on_first, 3)}. Two numbers of the screenshot, the share of edges and the number of "
        f"colours, change it by {difference_text(seen, 3)}, to {np.mean(first[SCREEN]):.2f} against "
        f"{np.mean(first[_PEERS]):.2f} for the other two measures: the gap is the look of pictures, which no "
        "count measures.",
        reproduced=own >= 0.9 * peers,
        trend=own >= 0.75 * peers,
    )


def _cheap(figures: Figures) -> Verdict:
    """Whether features that need no browser do."""
    sets = {chosen: float(np.mean(_apart(figures, BORDA, chosen=chosen))) for chosen in SETS}
    text = f"Tau with a measure left out: {', '.join(f'{name} {value:.2f}' for name, value in sets.items())}"
    held = sets
    if (SOURCES, "source", BORDA, _TAU) in figures:
        held = {chosen: float(np.mean(_apart(figures, BORDA, split=SOURCES, chosen=chosen))) for chosen in SETS}
        text += f"; across sources of pages {', '.join(f'{name} {value:.2f}' for name, value in held.items())}"
    return Verdict.of(
        "section 5.5: quick features from the source suffice",
        f"{text} (Borda and ListMLE).",
        why="Features from html and style sheets hardly carry over to other sources of pages; those of the rendered "
        "page do better, but need a browser.",
        reproduced=sets["source"] >= 0.9 * sets["rendered"] and held["source"] >= 0.9 * held["rendered"],
        trend=held["source"] >= 0.5 * held["rendered"],
    )


def _notes(pages: Pages, figures: Figures) -> list[str]:
    """What a reader should know besides."""
    rho = {
        f"{first}-{second}": float(spearman(pages.clutter[first], pages.clutter[second]))
        for first, second in (("FC", "SE"), ("SE", "SM"), ("FC", "SM"))
    }
    lowest = {name: min(_apart(figures, name)) for name in (PRINTED_ML, ML, BORDA)}
    return [
        f"{len(pages.ids)} {pages.origin}, of {counted(len(set(pages.source)), 'source')}; blank "
        "ones are left out. Grades are sixths of the mean of the three measures as standard scores.",
        f"The measures agree: Spearman's rho is {', '.join(f'{name} {value:.2f}' for name, value in rho.items())}. "
        "Mallows' model takes annotators to be independent.",
        "Lowest tau of a repeat with the measure left out, where two annotators train: "
        f"{', '.join(f'{name} {value:.2f}' for name, value in lowest.items())}.",
        "Fonts are families with size, weight and style; counts enter as log(1 + count), and all features are "
        "standardised by the training pages. 'sources' has no source of pages on both sides.",
    ]


_DRAWN = (PRINTED_D, PRINTED_ML, D, ML, BORDA)


def _figure(figures: Figures) -> Any:
    """Figure 4: nDCG against depth."""
    figure, (ax,) = panels(1, width=6.0, height=4.2)
    names = {**dict.fromkeys(_DRAWN, "rendered"), **dict.fromkeys((*MEASURES, RANDOM), "")}
    series = {name: [figures[PAGES, chosen, name, f"nDCG@{k}"] for k in _DEPTHS] for name, chosen in names.items()}
    lines(ax, _DEPTHS, series, xlabel="depth k", ylabel="nDCG@k", error=True, legend=False)
    ax.set_xticks(_DEPTHS)
    common_legend(figure, ax, across=3)
    return figure


def _left_out_figure(figures: Figures) -> Any:
    """Tau with each measure when it was left out."""
    figure, (ax,) = panels(1, width=6.0, height=4.2)
    names = {**dict.fromkeys(_DRAWN, "rendered"), _PEERS: ""}
    series = {
        name: [float(np.mean(figures[PAGES, chosen, name, f"{_APART} {left}"])) for left in MEASURES]
        for name, chosen in names.items()
    }
    bars(ax, list(MEASURES), series, ylabel="Kendall's tau with the measure left out", legend=False)
    common_legend(figure, ax, across=3)
    return figure
