"""Tables 1 to 8 and figures 1 to 6 of Yang et al. on simulated annotators and on recorded grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from crowdrank.api import scheme_costs

from ..outcomes import Outcome, Row
from ..work import Work
from . import pictures
from .claims import (
    COSTED,
    FIGURES,
    TABLES,
    claim_verdicts,
    cost_verdicts,
    figure_verdicts,
    own_notes,
    table_verdicts,
)
from .learning import NEURAL, SINGLE, TREES, grid, learn_best
from .opinions import Panels, annotator_verdicts, recorded_notes
from .panels import LEVELS, TOGETHER, featured_annotators, recorded_panel, small_panel
from .recorded import TREC, WEB, Recorded, gain_errors, replay
from .setting_results import Results
from .settings import ALL, BASELINE, GOOD, averaged_name
from .simulated import CLEAN07, COLLECTIONS, MAIN, NOISES, NOISY, PRINTED_SIZES, Collection, draw_when_wanted, resize
from .yang_figures import ACCURACY, COST, COSTS, CUTOFFS

_SIMULATED, _RECORDED = "simulated", WEB
_MIN_GRADES = 100
_BY_FORMULA = {"Baseline": "single", "3-overlap": "3-overlap", "11-overlap": "11-overlap", "If-good-2": "if-good-2",
               "If-good-3": "if-good-3", "Good-till-bad": "good-till-bad-11"}  # fmt: skip


def overlap(work: Work) -> Outcome:
    """Who gets a second opinion, and what rankers make of several."""
    recorded = {name: Recorded.of(work, name) for name in (WEB, TREC)}
    plan, rankers = _plan(work), (NEURAL, TREES)
    seeds = work.seeds(quick=1, default=5, full=10)
    orders = work.seeds(quick=1, default=10, full=20)
    n_learned = sum(len(collection.settings) for collection, _ in plan) * len(rankers) * len(seeds)
    n_looks = len(COSTED) + len(NOISES) + 1
    work.expect(n_learned + n_looks * len(seeds) + (2 * len(recorded) + 1) * len(orders) + 1, "overlap")
    panels = _panels(work, recorded, orders)
    stars = _stars(work, recorded[WEB], seeds)
    replays = {name: [work.cell(("replay", name, seed), partial(replay, data, seed)) for seed in orders]
               for name, data in recorded.items()}  # fmt: skip
    costs, errors = _costs(work, seeds), _errors(work, seeds)
    results = _results(work, plan, rankers, seeds)
    return Outcome(
        rows=[
            *_accuracy_rows(results), *_cost_rows(costs), *_panel_rows(panels), *_star_rows(stars),
            *_error_rows(errors), *_replay_rows(replays),
        ],
        verdicts=[
            *annotator_verdicts(_simulated_part(panels), _simulated_part(stars)), *table_verdicts(results),
            *figure_verdicts(results), *cost_verdicts(costs), *claim_verdicts(results, errors),
        ],
        figures=_pictures(results, panels, stars),
        notes=[
            *_notes(plan, results), *own_notes(results),
            *(verdict.note for verdict in annotator_verdicts(_recorded_part(panels), _recorded_part(stars))),
            *recorded_notes(replays),
        ],
    )  # fmt: skip


def _simulated_part(by_data: Mapping[str, Panels]) -> dict[str, Panels]:
    """What was found on simulated annotators, who stand for the paper's."""
    return {name: panels for name, panels in by_data.items() if name == _SIMULATED}


def _recorded_part(by_data: Mapping[str, Panels]) -> dict[str, Panels]:
    """What was found on recorded grades."""
    return {name: panels for name, panels in by_data.items() if name != _SIMULATED}


def _plan(work: Work) -> list[tuple[Collection, str]]:
    """Collections and noises that rankers are trained on."""
    noises = work.pick(quick=(), default=NOISY, full=tuple(noise for noise in NOISES if noise != MAIN))
    wanted = [*((one, MAIN) for one in COLLECTIONS), *((CLEAN07, noise) for noise in noises)]
    return [(resize(collection, work.scope, noise), noise) for collection, noise in wanted]


def _results(work: Work, plan: Sequence[tuple[Collection, str]], rankers: Sequence[str], seeds: range) -> Results:
    """All that rankers reached, repetition after repetition."""
    results, tried = Results(), grid(work.scope)
    n_vali = work.pick(quick=60, default=400)
    for collection, noise in plan:
        for seed in seeds:
            drawn = draw_when_wanted(collection, noise, seed, n_vali)
            for ranker in rankers:
                for setting in collection.settings:
                    compute = partial(learn_best, drawn, ranker, setting, tried[ranker], seed)
                    figures = work.cell((collection.name, noise, ranker, setting, seed), compute)
                    results.add((collection.name, noise, ranker), setting, figures)
    return results


def _panels(work: Work, recorded: Mapping[str, Recorded], seeds: range) -> dict[str, Panels]:
    """Agreement with the truth by number of grades, simulated and recorded."""
    panels: dict[str, Panels] = {
        _SIMULATED: [work.cell(("figure 1", _SIMULATED, seed), partial(small_panel, seed)) for seed in seeds]
    }
    for name, data in recorded.items():
        panels[name] = [
            work.cell(("figure 1", name, seed), partial(recorded_panel, data.grades, data.known, data.n_most, seed))
            for seed in seeds
        ]
    return panels


def _stars(work: Work, data: Recorded, seeds: range) -> dict[str, Panels]:
    """Featured annotators, simulated and recorded."""
    n_queries = work.pick(quick=150, default=PRINTED_SIZES[CLEAN07.name][0])

    def simulate_seed(seed: int) -> dict[str, Any]:
        return featured_annotators(CLEAN07.draw_grades(n_queries, MAIN, seed)[0], _MIN_GRADES)

    return {
        _SIMULATED: [work.cell(("figure 2", _SIMULATED, seed), partial(simulate_seed, seed)) for seed in seeds],
        _RECORDED: [work.cell(("figure 2", _RECORDED), partial(featured_annotators, data.grades, _MIN_GRADES))],
    }


Costs = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]
"""Table -> setting -> cost -> repetitions."""


def _costs(work: Work, seeds: range) -> Costs:
    """Costs of the settings on collections as large as the paper's."""

    def count_seed(collection: Collection, names: Sequence[str], n_queries: int, seed: int) -> dict[str, Any]:
        grades, _ = collection.draw_grades(n_queries, MAIN, seed)
        formula = scheme_costs(grades, [_BY_FORMULA[name] for name in names if name in _BY_FORMULA], n_draws=1)
        exact = dict(zip([name for name in names if name in _BY_FORMULA], formula["labelling_exact"], strict=True))
        return {
            name: ALL[name].costs(grades) | ({"labelling by formula": exact[name]} if name in exact else {})
            for name in names
        }

    costs: dict[str, dict[str, dict[str, list[float]]]] = {}
    for place, collection in COSTED.items():
        n_queries = 100 if work.quick else PRINTED_SIZES[collection.name][0]
        names = list(COST[place])
        for seed in seeds:
            one = work.cell((place, seed), partial(count_seed, collection, names, n_queries, seed))
            for name in names:
                for cost, value in one[name].items():
                    costs.setdefault(place, {}).setdefault(name, {}).setdefault(cost, []).append(value)
    return costs


def _errors(work: Work, seeds: range) -> dict[str, dict[str, list[float]]]:
    """Noise -> setting -> errors of the gains that a ranker would learn from, for as many queries as the paper has."""

    def measure_seed(noise: str, seed: int) -> dict[str, float]:
        return gain_errors(*CLEAN07.draw_grades(100 if work.quick else PRINTED_SIZES[CLEAN07.name][0], noise, seed))

    errors: dict[str, dict[str, list[float]]] = {}
    for noise in NOISES:
        for seed in seeds:
            for name, value in work.cell(("gain error", noise, seed), partial(measure_seed, noise, seed)).items():
                errors.setdefault(noise, {}).setdefault(name, []).append(value)
    return errors


def _accuracy_rows(results: Results) -> Iterator[Row]:
    """Tables 1 to 5, figures 4 to 6, and what is not in the paper."""
    tables, curves = {key: place for place, key in TABLES.items()}, {key: place for place, key in FIGURES.items()}
    for key in results.keys:
        for setting in results.settings(key):
            place, printed = "not in the paper", {}
            if setting.startswith(("If-good-", "Good-till-bad")) and "mean" not in setting:
                place = curves.get(key, place)
            if key in tables and setting in ACCURACY[tables[key]]:
                place, printed = tables[key], ACCURACY[tables[key]][setting]
            labels = {"collection": key[0], "noise": key[1], "ranker": key[2], "setting": setting}
            for measure in (*(f"nDCG@{cutoff}" for cutoff in CUTOFFS), SINGLE):
                values = results.values(key, setting, measure)
                yield Row(place=place, what={**labels, "measure": measure}, values=values, paper=printed.get(measure))
            if setting != BASELINE:
                base = ACCURACY[tables[key]][BASELINE]["nDCG@3"] if printed else 0.0
                yield Row(
                    place=place, what={**labels, "measure": "nDCG@3 less baseline"},
                    values=tuple(results.difference(key, setting).tolist()),
                    paper=round(printed["nDCG@3"] - base, 2) if printed else None,
                )  # fmt: skip


def _cost_rows(costs: Costs) -> Iterator[Row]:
    """Tables 6 to 8."""
    for place, settings in costs.items():
        for setting, by_cost in settings.items():
            for cost, values in by_cost.items():
                labels = {"collection": COSTED[place].name, "noise": MAIN, "setting": setting, "measure": cost}
                printed = COST[place][setting].get("labelling" if "formula" in cost else cost)
                yield Row(place=place, what=labels, values=tuple(values), paper=printed)


def _panel_rows(panels: Mapping[str, Panels]) -> Iterator[Row]:
    """Figure 1."""
    for data, runs in panels.items():
        for what in ("best", "mean"):
            labels = {"collection": data, "setting": f"{what} single annotator", "measure": "right grades"}
            yield Row(place="figure 1", what=labels, values=tuple(one[what] for one in runs))
        for method in TOGETHER:
            for place in range(len(runs[0][method])):
                labels = {"collection": data, "setting": f"{method} of {place + 1}", "measure": "right grades"}
                yield Row(place="figure 1", what=labels, values=tuple(one[method][place] for one in runs))


def _star_rows(stars: Mapping[str, Panels]) -> Iterator[Row]:
    """Figures 2 and 3."""
    for data, runs in stars.items():
        for who, best in enumerate(LEVELS):
            for part, name in (("own", f"most {best}"), ("vote", f"vote on items of most {best}")):
                for place, level in enumerate(LEVELS):
                    labels = {"collection": data, "setting": name, "measure": f"share of {level}"}
                    yield Row(place="figure 2", what=labels, values=tuple(100 * one[part][who][place] for one in runs))
        for place, level in enumerate(LEVELS):
            labels = {"collection": data, "setting": "all", "measure": f"share of {level}"}
            yield Row(place="figure 3", what=labels, values=tuple(100 * one["all"][place] for one in runs))


def _error_rows(errors: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[Row]:
    """Errors of gains by noise."""
    for noise, by_setting in errors.items():
        for setting, values in by_setting.items():
            labels = {"collection": CLEAN07.name, "noise": noise, "setting": setting, "measure": "error of the gain"}
            yield Row(place="section 7", what=labels, values=tuple(values))


def _replay_rows(replays: Mapping[str, Panels]) -> Iterator[Row]:
    """Recorded grades: costs, errors, and order of the items by the grades bought."""
    for data, runs in replays.items():
        for setting in runs[0]["costs"]:
            for cost in COSTS:
                labels = {"collection": data, "setting": setting, "measure": cost}
                yield Row(place="recorded", what=labels, values=tuple(one["costs"][setting][cost] for one in runs))
        for setting in runs[0]["errors"]:
            labels = {"collection": data, "setting": setting, "measure": "error of the gain"}
            yield Row(place="recorded", what=labels, values=tuple(one["errors"][setting] for one in runs))
        for setting, measures in runs[0].get("order", {}).items():
            for measure in measures:
                labels = {"collection": data, "setting": setting, "measure": f"{measure} of the labels"}
                yield Row(
                    place="recorded", what=labels, values=tuple(one["order"][setting][measure] for one in runs)
                )  # fmt: skip
        labels = {"collection": data, "setting": "2-overlap", "measure": "second Good+ after a first Fair-"}
        yield Row(place="recorded", what=labels, values=tuple(one["misses"] for one in runs))


def _pictures(results: Results, panels: Mapping[str, Panels], stars: Mapping[str, Panels]) -> dict[str, Any]:
    """What draws the figures."""
    return {
        "figure-1": partial(pictures.best_annotator, panels),
        "figure-2": partial(pictures.featured_figure, stars),
        "figure-3": partial(pictures.shares, stars),
        "figures-4-6": partial(pictures.by_number, results),
        "tables-1-5": partial(pictures.gains, results),
    }


def _notes(plan: Sequence[tuple[Collection, str]], results: Results) -> list[str]:
    """What a reader should know besides."""
    sizes = "; ".join(
        f"{one.name} {one.n_train:,} queries of {one.n_items} items, tested on {one.n_test:,}, features that explain "
        f"{100 * one.explained:.0f} % of the relevance"
        for one, noise in plan
        if noise == MAIN
    )
    return [
        "The paper's grades, features and queries are proprietary. Its collections are simulated, each on its own: 120 "
        f"annotators with a bias and scale of their own, eleven for each query. {sizes}. Levels of nDCG cannot be "
        "compared with the printed ones, differences from the baseline as trends.",
        "How much features explain, and how much of that lies in products of two, was set after nine trials so that "
        "a ranker gains two to three points from true grades in place of single ones. With smoother functions the "
        "network gained up to one and a half points: the sizes of gains depend on that choice.",
        "Every setting is tuned on the same validation queries, whose grades are true: learning rate and number of "
        "epochs of the network, number of trees. With one rate for all, the order of settings is an artefact.",
        "Items with several rows fill one place in nDCG, truncation and leaves, and pairs of one item do not count, "
        "which the paper does not say of its rankers.",
        "Tables 3 and 4 hold nearly the same eight values in print under different settings, so one of them is "
        "wrong; so are the ratios of 11-overlap (they equal those of the vote) and If-good-x3 (they equal those of "
        "If-good-3) in tables 6 and 7. Good-till-bad stops at the first Fair- grade, so an item has one at most, its "
        "other grades are Good+, and the ratio is at most 1 / (cost - 1): 1.15 and 1.02, where 1.38 and 1.23 are "
        "printed.",
        "Annotators are those of profiles with a noise of 0.65 and a mean shift of -0.15, at which 21 % of first "
        "grades are Good+ and 53 % of second ones after such a first, as table 6 implies: (1.41 / 3.24 - 0.21) / 0.42. "
        "Rows of the measure 'nDCG@3, single judges' are by test grades of one annotator each.",
        "Nearly all recorded items have fewer than eleven grades, of which 11-overlap takes all. Good+ is grade "
        f"{GOOD} or better, which in {TREC} is the highest of three.",
        f"If-good-k with mean gains is called {averaged_name('If-good-k')!r}; a spread is that over repetitions, each "
        "with "
        "its own queries and annotators.",
        _chosen_rates(results),
    ]


def _chosen_rates(results: Results) -> str:
    """How often each learning rate was best."""
    keys = [key for key in results.keys if key[2] == NEURAL]
    rates = Counter(
        rate for key in keys for name in results.settings(key) for rate in results.values(key, name, "learning rate")
    )
    counts = ", ".join(f"{rate:g} ({number} times)" for rate, number in sorted(rates.items()))
    return f"Learning rates of the network that were chosen: {counts}."
