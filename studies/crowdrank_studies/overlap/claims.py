"""What became of the tables and figures of Yang et al. that are about rankers and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crowdrank.metrics import spearman
from crowdrank.protocols import Floats

from ..outcomes import Verdict
from ..paired import clear, difference_text
from .learning import NEURAL, SINGLE, TREES
from .setting_results import Key, Results
from .settings import BASELINE, KS, averaged_name, copied_name
from .simulated import CLEAN07, CLEAN08, CLEAN_PLUS, MAIN
from .yang_figures import ACCURACY, COST, MISPRINTS

TABLES: dict[str, Key] = {
    "table 1": (CLEAN07.name, MAIN, NEURAL),
    "table 2": (CLEAN08.name, MAIN, NEURAL),
    "table 3": (CLEAN07.name, MAIN, TREES),
    "table 4": (CLEAN08.name, MAIN, TREES),
    "table 5": (CLEAN_PLUS.name, MAIN, NEURAL),
}
"""Table of retrieval accuracy -> what it is of."""

FIGURES: dict[str, Key] = {
    "figure 4": (CLEAN07.name, MAIN, NEURAL),
    "figure 5": (CLEAN08.name, MAIN, NEURAL),
    "figure 6": (CLEAN_PLUS.name, MAIN, NEURAL),
}

COSTED = {"table 6": CLEAN07, "table 7": CLEAN08, "table 8": CLEAN_PLUS}

_POOLED = "Means over Clean07 and Clean08."
_MAX_DIFFERENCE = 0.15
"""Difference of costs, and share of a ratio, within which they count as the same."""

_MAX_FORMULA_DIFFERENCE = 0.015
"""Difference of a formula of printed figures from another, which both have two decimals."""


def significant_sign(values: Floats) -> int:
    """Return the sign of a mean that a paired t test (5 %, two-sided) tells from 0, else 0."""
    from scipy.stats import t

    return clear(values, float(t.ppf(0.975, len(values) - 1))) if len(values) > 1 else 0


def table_verdicts(results: Results) -> list[Verdict]:
    """Return two verdicts on each table of retrieval accuracy: above the baseline, and best of all."""
    return [verdict for place, key in TABLES.items() for verdict in _table(results, place, key)]


def _table(results: Results, place: str, key: Key) -> list[Verdict]:
    """Whether the setting that is best in print is above the baseline here, and best."""
    printed = {name: row["nDCG@3"] for name, row in ACCURACY[place].items()}
    best = max(printed, key=lambda name: printed[name])
    others = [name for name in printed if name not in (BASELINE, best)]
    gains = {name: results.gain(key, name) for name in (best, *others)}
    own, order = results.difference(key, best), sorted(gains, key=lambda name: -gains[name])
    beaten = [name for name in others if significant_sign(results.difference(key, name, best)) > 0]
    worse = [name for name in others if significant_sign(results.difference(key, name, best)) < 0]
    alike = float(spearman([printed[name] for name in gains], list(gains.values())))
    copies = results.difference(key, copied_name(best))
    why = (
        "With one row per grade, items that were asked about again count more than others, as in If-good-x3, and "
        "items missed at first are never asked about again."
    )
    above = Verdict.of(
        f"{place}: {best} is above the baseline ({key[0]}, {key[2]})",
        f"On simulated annotators {best} gains {difference_text(own, 2)} points of nDCG@3 over the baseline (printed "
        f"{printed[best] - printed[BASELINE]:+.2f}); measured by single judges "
        f"{difference_text(results.difference(key, best, measure=SINGLE), 2)}; with plain copies of rows "
        f"{difference_text(copies, 2)}; with mean gains in place of one row per grade "
        f"{difference_text(results.difference(key, averaged_name(best)), 2)}.",
        reproduced=significant_sign(own) > 0,
        decided=significant_sign(own) != 0,
        why=why,
    )
    first = Verdict.of(
        f"{place}: {best} is the best setting ({key[0]}, {key[2]})",
        f"It is number {1 + order.index(best)} of {len(order)}; the best is {order[0]} with "
        f"{difference_text(results.difference(key, order[0]), 2)} over the baseline. Clearly ahead of {best}: "
        f"{', '.join(beaten) or 'none'}; clearly behind: {', '.join(worse) or 'none'}. Gains correlate with the "
        f"printed ones at {alike:+.2f} (Spearman).",
        reproduced=order[0] == best and len(worse) == len(others),
        trend=order[0] == best,
        decided=bool(beaten) or (order[0] == best and bool(worse)),
        why=why,
    )
    return [above, first]


def figure_verdicts(results: Results) -> list[Verdict]:
    """Return a verdict on each figure of if-good-k by k."""
    verdicts = []
    for place, key in FIGURES.items():
        ks = [2, 3] if key[0] == CLEAN_PLUS.name else list(KS)
        verdicts.append(_by_number(results, place, key, ks, 2 if key[0] == CLEAN_PLUS.name else 3))
    return verdicts


def _by_number(results: Results, place: str, key: Key, ks: Sequence[int], best: int) -> Verdict:
    """Whether as many grades are best as in print."""
    claim = f"{place}: of If-good-k, k = {best} is best ({key[0]}, {key[2]})"
    ks = [k for k in ks if f"If-good-{k}" in results.settings(key)]
    gains = {k: results.gain(key, f"If-good-{k}") for k in ks}
    means = {k: results.gain(key, averaged_name(f"If-good-{k}")) for k in ks}
    top, own = max(gains, key=lambda k: gains[k]), results.difference(key, f"If-good-{best}")
    more = [
        k for k in ks if k > best and significant_sign(results.difference(key, f"If-good-{k}", f"If-good-{best}")) > 0
    ]
    return Verdict.of(
        claim,
        f"With one row per grade the gain over the baseline is {_by_k(gains)}, best at k = {top}; with mean gains "
        f"{_by_k(means)}, best at k = {max(means, key=lambda k: means[k])}. Of larger k "
        f"{', '.join(map(str, more)) if more else 'none'} is clearly better than k = {best}.",
        reproduced=top == best and significant_sign(own) > 0,
        trend=top == best,
        decided=bool(more) or significant_sign(results.difference(key, f"If-good-{top}", f"If-good-{best}")) != 0,
        why="More rows of items rated Good+ raise their weight further, whatever the new grades are.",
    )


def _by_k(gains: Mapping[int, float]) -> str:
    """Gains by number of grades."""
    return ", ".join(f"{gain:+.2f} (k = {k})" for k, gain in gains.items())


def cost_verdicts(costs: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> list[Verdict]:
    """Return a verdict on each table of costs; ``costs`` is table -> setting -> cost -> repetitions."""
    return [_cost_formula(), *(_costs(place, costs[place]) for place in COST)]


def _cost_formula() -> Verdict:
    """Whether If-good-k costs what the printed formula makes of the printed shares of grades."""
    seen, off = [], []
    for place, printed in COST.items():
        good = 1 / (1 + printed[BASELINE]["Fair- : Good+"])
        for k in (2, 3):
            cost = printed.get(f"If-good-{k}", {}).get("labelling")
            if cost is not None:
                seen.append(f"If-good-{k} {1 + (k - 1) * good:.2f} ({cost:.2f}) in {place}")
                off.append(abs(1 + (k - 1) * good - cost))
    return Verdict.of(
        "tables 6 to 8: what If-good-k costs",
        "Grades per item are 1 + (k - 1) times the share of Good+, whatever the data; with the printed shares of "
        f"single grades, printed costs in brackets: {', '.join(seen)}.",
        reproduced=max(off) <= _MAX_FORMULA_DIFFERENCE,
    )


def _costs(place: str, costs: Mapping[str, Mapping[str, Sequence[float]]]) -> Verdict:
    """Whether costs are those printed."""
    printed = COST[place]
    ours = {name: {cost: float(np.mean(values)) for cost, values in costs[name].items()} for name in printed}
    money = max(
        abs(ours[name][cost] - printed[name][cost]) for name in printed for cost in ("labelling", "training")
    )  # fmt: skip
    ratio = "Fair- : Good+"
    sound = [name for name in printed if (place, name, ratio) not in MISPRINTS]
    off = [abs(ours[name][ratio] / printed[name][ratio] - 1) for name in sound]
    alike = float(spearman([printed[name][ratio] for name in sound], [ours[name][ratio] for name in sound]))
    dear = [name for name in ("If-good-2", "If-good-3", "Good-till-bad") if name in printed]
    shares = ", ".join(f"{name} {ours[name]['labelling']:.2f} ({printed[name]['labelling']:.2f})" for name in dear)
    return Verdict.of(
        f"{place}: costs of the settings ({COSTED[place].name})",
        f"Grades per item on simulated annotators (printed): {shares}; all labelling and training costs are within "
        f"{money:.2f} of the printed ones. Fair- : Good+ differs by {100 * max(off):.0f} % at most and correlates at "
        f"{alike:.2f} (Spearman).",
        reproduced=money <= _MAX_DIFFERENCE and max(off) <= _MAX_DIFFERENCE,
        trend=money <= _MAX_DIFFERENCE and alike > 0.5,
        why="Shares of grades are those of the simulation, somewhat richer in good ones; printed ratios that cannot "
        "be right are left out.",
    )


def claim_verdicts(results: Results, errors: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Verdict]:
    """Return verdicts on what the paper concludes; ``errors`` is noise -> setting -> errors of gains."""
    main, other = _main_and_other(results)
    return [_weights(results, main), _votes(results, main, other), _better_labels(errors)]


def own_notes(results: Results) -> list[str]:
    """Return what the paper does not ask: averaged gains, and plain copies of rows beside the item-aware form."""
    main, other = _main_and_other(results)
    copies = {
        name: _by_ranker(results, [key for key in main if copied_name(name) in results.settings(key)], *both)
        for name in ("If-good-3", "3-overlap")
        for both in [(copied_name(name), name)]
    }
    differences = "; ".join(f"{name}: {_differences_text(values)}" for name, values in copies.items())
    return [
        _averaged_verdict(results, main, other).note,
        f"Plain copies of rows less rows that the ranker knows to be of one item, in nDCG@3: {differences}. {_POOLED}",
    ]


def _main_and_other(results: Results) -> tuple[list[Key], list[Key]]:
    """Rankers and collections under the main noise, and under others."""
    main = [key for key in results.keys if key[0] != CLEAN_PLUS.name and key[1] == MAIN]
    return main, [key for key in results.keys if key[1] != MAIN]


def _by_ranker(results: Results, keys: Sequence[Key], first: str, second: str = BASELINE) -> dict[str, Floats]:
    """First less second, by ranker."""
    rankers = dict.fromkeys(key[2] for key in keys)
    return {one: results.pool([key for key in keys if key[2] == one], first, second) for one in rankers}


def _noises_text(keys: Sequence[Key]) -> str:
    """Which noises they are about."""
    return f"Under {' and '.join(dict.fromkeys(key[1] for key in keys))} noise"


def _differences_text(differences: Mapping[str, Floats]) -> str:
    """Differences by ranker."""
    return ", ".join(f"{name} {difference_text(values, 2)}" for name, values in differences.items())


def _weights(results: Results, keys: list[Key]) -> Verdict:
    """Whether weighing good grades more does not do what asking again does."""
    by_ranker = _by_ranker(results, keys, "If-good-x3")
    whole, less = results.pool(keys, "If-good-x3"), results.pool(keys, "If-good-3", "If-good-x3")
    return Verdict.of(
        "weighing Good+ grades three times (If-good-x3) does not do what asking again does",
        f"{_POOLED} If-good-x3 changes nDCG@3 over the baseline by {_differences_text(by_ranker)}; If-good-3 is "
        f"{difference_text(less, 2)} "
        "ahead of it.",
        reproduced=significant_sign(whole) <= 0 and significant_sign(less) > 0,
        trend=significant_sign(whole) <= 0 and float(less.mean()) > 0,
        decided=significant_sign(less) != 0 or significant_sign(whole) > 0,
    )


def _votes(results: Results, keys: list[Key], other: list[Key]) -> Verdict:
    """Whether all grades teach more than their majority vote."""
    three = _by_ranker(results, keys, "3-overlap", "Mv3")
    eleven = _by_ranker(results, keys, "11-overlap", "Mv11")
    means = _by_ranker(results, keys, averaged_name("3-overlap"), "Mv3")
    noisy = (
        f" {_noises_text(other)}: {_differences_text(_by_ranker(results, other, '3-overlap', 'Mv3'))}." if other else ""
    )
    both = [*three.values(), *eleven.values()]
    return Verdict.of(
        "using all k grades is better than their majority vote",
        f"{_POOLED} 3-overlap less Mv3: {_differences_text(three)}; 11-overlap less Mv11: {_differences_text(eleven)}; "
        "mean gains of three "
        f"grades less Mv3: {_differences_text(means)}.{noisy}",
        reproduced=all(significant_sign(values) > 0 for values in both),
        trend=float(np.mean(both)) > 0 and not any(significant_sign(values) < 0 for values in both),
        decided=any(significant_sign(values) != 0 for values in both),
        why="The mode of a skewed scale is biased low, but one-sided errors are outvoted.",
    )


def _better_labels(errors: Mapping[str, Mapping[str, Sequence[float]]]) -> Verdict:
    """Whether asking again about good items only makes labels as good as asking about all."""
    seen, below, near = [], 0, 0
    compared = (BASELINE, averaged_name("If-good-3"), averaged_name("3-overlap"))
    for noise, by_setting in errors.items():
        single, some, three = (float(np.mean(by_setting[name])) for name in compared)
        below += some < single
        near += some <= (1 + _MAX_DIFFERENCE) * three
        seen.append(f"{noise} {single:.2f}, {some:.2f}, {three:.2f}")
    return Verdict.of(
        "If-good-3 gains by better labels: what is called bad can be trusted",
        f"Root mean square error of the gain with one grade, If-good-3 and three grades of everything: "
        f"{'; '.join(seen)}.",
        reproduced=below == near == len(errors),
        trend=below == len(errors) and near > len(errors) / 2,
        why="Where errors are misses (good items called bad), the items are never asked about again.",
    )


def _averaged_verdict(results: Results, keys: list[Key], other: list[Key]) -> Verdict:
    """Whether if-good-3 pays where its gains are averaged."""
    gain = _by_ranker(results, keys, averaged_name("If-good-3"))
    three = _by_ranker(results, keys, averaged_name("3-overlap"))
    noisy = _by_ranker(results, other, averaged_name("If-good-3")) if other else {}
    truth = _by_ranker(results, keys, "Truth")
    under = f" {_noises_text(other)}: {_differences_text(noisy)}." if other else ""
    every = [*gain.values(), *noisy.values()]
    return Verdict.of(
        "If-good-3 beats the baseline for about 1.4 grades per item, where its gains are averaged",
        f"{_POOLED} Gain of If-good-3 with mean gains: {_differences_text(gain)}; of three grades of everything: "
        f"{_differences_text(three)}; of the true grades: {_differences_text(truth)}.{under}",
        reproduced=all(significant_sign(values) > 0 for values in every),
        trend=all(float(values.mean()) > 0 for values in every),
        why="A network can use the missed items that three grades of everything reveal.",
    )
