"""What became of the tables and figures of Yang et al. that are about rankers and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...metrics import spearman
from ...protocols import Floats
from ..outcomes import Verdict
from ..paired import clear, shown
from .learning import NEURAL, TREES
from .printed import ACCURACY, COST, MISPRINTS
from .results import Key, Results
from .settings import BASELINE, KS, averaged
from .simulated import CLEAN07, CLEAN08, CLEAN_PLUS, MAIN

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

_NEEDS_TORCH = "LambdaRank needs torch, which is not installed; install it with pip install 'crowdrank[neural]'."
_POOLED = "Means over Clean07 and Clean08."
_NEAR = 0.15
"""Difference of costs, and share of a ratio, within which they count as the same."""


def told(values: Floats) -> int:
    """Return the sign of a mean that a paired t test (5 %, two-sided) tells from 0, else 0."""
    from scipy.stats import t

    return clear(values, float(t.ppf(0.975, len(values) - 1))) if len(values) > 1 else 0


def table_verdicts(results: Results) -> list[Verdict]:
    """Return a verdict on each table of retrieval accuracy."""
    return [_table(results, place, key) for place, key in TABLES.items()]


def _table(results: Results, place: str, key: Key) -> Verdict:
    """Whether the setting that is best in print is best here, and above the baseline."""
    printed = {name: row["nDCG@3"] for name, row in ACCURACY[place].items()}
    best = max(printed, key=lambda name: printed[name])
    claim = f"{place}: {best} is best and above the baseline ({key[0]}, {key[2]})"
    if key not in results:
        return Verdict(claim, "not reproducible", _NEEDS_TORCH)
    others = [name for name in printed if name not in (BASELINE, best)]
    gains = {name: results.gain(key, name) for name in (best, *others)}
    own, order = results.difference(key, best), sorted(gains, key=lambda name: -gains[name])
    beaten = [name for name in others if told(results.difference(key, name, best)) > 0]
    alike = float(spearman([printed[name] for name in gains], list(gains.values())))
    mean = results.difference(key, averaged(best))
    above = f", clearly ahead of it {', '.join(beaten)}" if beaten else ""
    return Verdict.of(
        claim,
        f"On simulated annotators {best} gains {shown(own, 2)} points of nDCG@3 over the baseline (printed "
        f"{printed[best] - printed[BASELINE]:+.2f}) and is number {1 + order.index(best)} of {len(order)}; the best is "
        f"{order[0]} with {shown(results.difference(key, order[0]), 2)}{above}. Gains correlate with the printed ones "
        f"at {alike:+.2f} (Spearman). With mean gains in place of a row a grade the same grades gain {shown(mean, 2)}.",
        reproduced=told(own) > 0 and not beaten and order[0] == best,
        trend=float(own.mean()) > 0 and alike > 0 and not beaten,
        why="A row for each grade counts items that were asked about again more than others, as If-good-x3 does, and "
        "what was missed at first is never asked about again.",
    )


def figure_verdicts(results: Results) -> list[Verdict]:
    """Return a verdict on each figure of if-good-k by k."""
    found = []
    for place, key in FIGURES.items():
        ks = [2, 3] if key[0] == CLEAN_PLUS.name else list(KS)
        found.append(_by_number(results, place, key, ks, 2 if key[0] == CLEAN_PLUS.name else 3))
    return found


def _by_number(results: Results, place: str, key: Key, ks: Sequence[int], best: int) -> Verdict:
    """Whether as many grades are best as in print."""
    claim = f"{place}: of If-good-k, k = {best} is best ({key[0]}, {key[2]})"
    if key not in results:
        return Verdict(claim, "not reproducible", _NEEDS_TORCH)
    ks = [k for k in ks if f"If-good-{k}" in results.settings(key)]
    gains = {k: results.gain(key, f"If-good-{k}") for k in ks}
    means = {k: results.gain(key, averaged(f"If-good-{k}")) for k in ks}
    top, own = max(gains, key=lambda k: gains[k]), results.difference(key, f"If-good-{best}")
    more = [k for k in ks if k > best and told(results.difference(key, f"If-good-{k}", f"If-good-{best}")) > 0]
    return Verdict.of(
        claim,
        f"With a row a grade the gain over the baseline is {_by_k(gains)}, best at k = {top}; with mean gains "
        f"{_by_k(means)}, best at k = {max(means, key=lambda k: means[k])}. Of larger k "
        f"{', '.join(map(str, more)) if more else 'none'} is clearly better than k = {best}.",
        reproduced=top == best and told(own) > 0,
        trend=float(own.mean()) > 0 and not more,
        why="More rows of the items that were rated Good+ shift their weight further, whatever the grades say.",
    )


def _by_k(gains: Mapping[int, float]) -> str:
    """Gains by number of grades."""
    return ", ".join(f"{gain:+.2f} (k = {k})" for k, gain in gains.items())


def cost_verdicts(costs: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> list[Verdict]:
    """Return a verdict on each table of costs; ``costs`` is table -> setting -> cost -> repetitions."""
    return [_costs(place, costs[place]) for place in COST]


def _costs(place: str, found: Mapping[str, Mapping[str, Sequence[float]]]) -> Verdict:
    """Whether costs are those printed."""
    printed = COST[place]
    ours = {name: {cost: float(np.mean(values)) for cost, values in found[name].items()} for name in printed}
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
        f"Grades an item on simulated annotators (printed): {shares}; all labelling and training costs are within "
        f"{money:.2f} of the printed ones. Fair- : Good+ differs by {100 * max(off):.0f} % at most and correlates at "
        f"{alike:.2f} (Spearman).",
        reproduced=money <= _NEAR and max(off) <= _NEAR,
        trend=money <= _NEAR and alike > 0.5,
        why="Shares of grades are those of the simulation, somewhat richer in good ones; single ratios that cannot be "
        "right in print are left out.",
    )


def claim_verdicts(results: Results, errors: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Verdict]:
    """Return verdicts on what the paper concludes; ``errors`` is noise -> setting -> errors of gains."""
    main = [key for key in results.keys if key[0] != CLEAN_PLUS.name and key[1] == MAIN]
    other = [key for key in results.keys if key[1] != MAIN]
    return [
        _weights(results, main),
        _votes(results, main, other),
        _better_labels(errors),
        _averaged(results, main, other),
    ]  # fmt: skip


def _by_ranker(results: Results, keys: Sequence[Key], first: str, second: str = BASELINE) -> dict[str, Floats]:
    """First less second, by ranker."""
    rankers = dict.fromkeys(key[2] for key in keys)
    return {one: results.pooled([key for key in keys if key[2] == one], first, second) for one in rankers}


def _under(keys: Sequence[Key]) -> str:
    """Which noises they are about."""
    return f"Under {' and '.join(dict.fromkeys(key[1] for key in keys))} noise"


def _listed(found: Mapping[str, Floats]) -> str:
    """Differences by ranker."""
    return ", ".join(f"{name} {shown(values, 2)}" for name, values in found.items())


def _weights(results: Results, keys: list[Key]) -> Verdict:
    """Whether weighing good grades more does not do what asking again does."""
    found = _by_ranker(results, keys, "If-good-x3")
    whole, less = results.pooled(keys, "If-good-x3"), results.pooled(keys, "If-good-3", "If-good-x3")
    return Verdict.of(
        "weighing Good+ grades three times (If-good-x3) does not do what asking again does",
        f"{_POOLED} If-good-x3 changes nDCG@3 over the baseline by {_listed(found)}; If-good-3 is {shown(less, 2)} "
        "ahead of it.",
        reproduced=told(whole) <= 0 and told(less) > 0,
        trend=told(whole) <= 0 and float(less.mean()) > 0,
    )


def _votes(results: Results, keys: list[Key], other: list[Key]) -> Verdict:
    """Whether all grades teach more than their majority vote."""
    three = _by_ranker(results, keys, "3-overlap", "Mv3")
    eleven = _by_ranker(results, keys, "11-overlap", "Mv11")
    means = _by_ranker(results, keys, averaged("3-overlap"), "Mv3")
    noisy = f" {_under(other)}: {_listed(_by_ranker(results, other, '3-overlap', 'Mv3'))}." if other else ""
    both = [*three.values(), *eleven.values()]
    return Verdict.of(
        "using all k grades is better than their majority vote",
        f"{_POOLED} 3-overlap less Mv3: {_listed(three)}; 11-overlap less Mv11: {_listed(eleven)}; mean gains of three "
        f"grades less Mv3: {_listed(means)}.{noisy}",
        reproduced=all(told(values) > 0 for values in both),
        trend=float(np.mean(both)) > 0 and not any(told(values) < 0 for values in both),
        why="The mode of a skewed scale is biased low, but one-sided errors are outvoted.",
    )


def _better_labels(errors: Mapping[str, Mapping[str, Sequence[float]]]) -> Verdict:
    """Whether asking again about good items only makes labels as good as asking about all."""
    seen, below, near = [], 0, 0
    compared = (BASELINE, averaged("If-good-3"), averaged("3-overlap"))
    for noise, found in errors.items():
        single, some, three = (float(np.mean(found[name])) for name in compared)
        below += some < single
        near += some <= (1 + _NEAR) * three
        seen.append(f"{noise} {single:.2f}, {some:.2f}, {three:.2f}")
    return Verdict.of(
        "If-good-3 gains by better labels: what is called bad can be trusted",
        f"Root mean square error of the gain with one grade, If-good-3 and three grades of everything: "
        f"{'; '.join(seen)}.",
        reproduced=below == near == len(errors),
        trend=below == len(errors) and near > len(errors) / 2,
        why="Where errors are misses, good items called bad, nobody asks about them again.",
    )


def _averaged(results: Results, keys: list[Key], other: list[Key]) -> Verdict:
    """Whether if-good-3 pays where its gains are averaged."""
    gain = _by_ranker(results, keys, averaged("If-good-3"))
    three = _by_ranker(results, keys, averaged("3-overlap"))
    noisy = _by_ranker(results, other, averaged("If-good-3")) if other else {}
    truth = _by_ranker(results, keys, "Truth")
    under = f" {_under(other)}: {_listed(noisy)}." if other else ""
    every = [*gain.values(), *noisy.values()]
    return Verdict.of(
        "If-good-3 beats the baseline for about 1.4 grades an item, where its gains are averaged",
        f"{_POOLED} Gain of If-good-3 with mean gains: {_listed(gain)}; of three grades of everything: "
        f"{_listed(three)}; of the true grades: {_listed(truth)}.{under}",
        reproduced=all(told(values) > 0 for values in every),
        trend=all(float(values.mean()) > 0 for values in every),
        why="A network can use what three grades of everything tell of missed items.",
    )
