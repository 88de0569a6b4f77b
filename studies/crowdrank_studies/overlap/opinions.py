"""What became of the figures of Yang et al. about annotators, and of the paper on recorded grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crowdrank.protocols import Floats

from ..outcomes import Verdict
from ..paired import difference_text
from .claims import significant_sign
from .panels import LEVELS
from .recorded import TREC
from .settings import BASELINE, averaged_name

Panels = Sequence[Mapping[str, Any]]
"""What was found in each repetition."""

_BETTER_FROM = 6
"""The paper has the aggregate ahead of the best annotator above five grades."""

_SURE = 0.01
_PRINTED_COST = 1.4
"""Grades per item that If-good-3 is said to want in general."""


def annotator_verdicts(panels: Mapping[str, Panels], stars: Mapping[str, Panels]) -> list[Verdict]:
    """Return verdicts on figures 1 to 3, for each data; ``stars`` has the featured annotators of each repetition."""
    return [
        *(_best_annotator(name, all_panels) for name, all_panels in panels.items()),
        *(_featured_verdict(name, all_panels) for name, all_panels in stars.items()),
        *(_shares(name, all_panels) for name, all_panels in stars.items()),
    ]


def _lead(panels: Panels, method: str, number: int) -> Floats:
    """Agreement of several grades less that of the best annotator, in each repetition."""
    return np.array([one[method][number - 1] - one["best"] for one in panels])


def _best_annotator(name: str, panels: Panels) -> Verdict:
    """Whether the vote of more than five grades beats the best annotator."""
    most = len(panels[0]["majority vote"])
    start = min(_BETTER_FROM, most)
    vote = [_lead(panels, "majority vote", number) for number in range(start, most + 1)]
    best = float(np.mean([one["best"] for one in panels]))
    seen = dict.fromkeys(f"{difference_text(vote[n - start])} ({n} grades)" for n in (start, most))
    others = ", ".join(
        f"{method} {difference_text(_lead(panels, method, most))}" for method in ("mean grade", "Dawid and Skene")
    )  # fmt: skip
    return Verdict.of(
        f"figure 1: above five grades the aggregate beats the best annotator ({name})",
        f"The best annotator agrees with the truth on {best:.1f} % of items. The majority vote differs from that by "
        f"{' and '.join(seen)} points; other ways to aggregate {most} grades: {others}.",
        reproduced=all(significant_sign(one) > 0 for one in vote),
        trend=float(vote[-1].mean()) > 0 or float(_lead(panels, "Dawid and Skene", most).mean()) > 0,
        why="The paper does not say how its grades were aggregated, and that matters: the mode of a skewed scale is "
        "biased low, and a vote counts poor annotators like good ones.",
    )


def _featured_verdict(name: str, panels: Panels) -> Verdict:
    """Whether annotators who favour a grade differ from each other and from the vote on the same items."""
    among = max(one["p among"] for one in panels)
    votes = [p for one in panels for p in one["p vote"]]
    own, vote = (np.mean([np.diag(one[part]) for one in panels], axis=0) for part in ("own", "vote"))
    shares = ", ".join(
        f"{level} {100 * mine:.0f} % (vote {100 * theirs:.0f} %)"
        for level, mine, theirs in zip(LEVELS, own, vote, strict=True)
    )
    return Verdict.of(
        f"figure 2: featured annotators differ from each other and from their majority vote ({name})",
        f"Share of items that get each grade from the annotator who gives it most often: {shares}. The largest p "
        f"value is {_chance(among)} among them and {_chance(max(votes))} against the vote (chi-squared).",
        reproduced=among < _SURE and max(votes) < _SURE,
        trend=among < _SURE and float(np.median(votes)) < _SURE,
    )


def _chance(p: float) -> str:
    """A p value in words, which may be too small for a number."""
    return f"{p:.1g}" if p > 1e-99 else "below 1e-99"


def _shares(name: str, panels: Panels) -> Verdict:
    """Whether the better a grade, the rarer."""
    shares = np.mean([one["all"] for one in panels], axis=0)
    return Verdict.of(
        f"figure 3: the better the grade, the fewer of it ({name})",
        f"Shares: {', '.join(f'{level} {100 * share:.0f} %' for level, share in zip(LEVELS, shares, strict=True))}.",
        reproduced=bool((np.diff(shares) < 0).all()),
        trend=bool(shares[:2].sum() > shares[2:].sum()),
        why="In this set good grades are common.",
    )


def recorded_notes(all_panels: Mapping[str, Panels]) -> list[str]:
    """Return what becomes of the paper's claims on recorded grades; data -> what each order of asking gave."""
    verdicts = [
        _cost(all_panels), *(_errors(name, panels) for name, panels in all_panels.items()), _order(all_panels[TREC])
    ]  # fmt: skip
    return [
        "No public set has both several grades per item and features of the items to train a ranker on; of "
        f"{TREC} the order of the items by the grades themselves is measured in place of tables 1 to 5.",
        *(verdict.note for verdict in verdicts),
    ]


def _cost(panels: Mapping[str, Panels]) -> Verdict:
    """Whether if-good-3 costs as little as printed in general."""
    cost = {name: float(np.mean([one["costs"]["If-good-3"]["labelling"] for one in p])) for name, p in panels.items()}
    good = {name: float(np.mean([one["costs"][BASELINE]["Fair- : Good+"] for one in p])) for name, p in panels.items()}
    near = [abs(value - _PRINTED_COST) <= 0.15 for value in cost.values()]
    seen = "; ".join(f"{name} {cost[name]:.2f} (Fair- : Good+ {good[name]:.2f})" for name in panels)
    return Verdict.of(
        "section 7: If-good-3 costs around 1.4 grades per item in general (recorded grades)",
        f"Grades per item: {seen}.",
        reproduced=all(near),
        trend=any(near),
        why="The cost is 1 + 2 g, with g the share of good first grades: where most items are good, nearly all items "
        "are asked about again.",
    )


def _errors(name: str, panels: Panels) -> Verdict:
    """Whether if-good-3 makes better grades than single ones, nearly as good as three of everything."""
    error = {setting: np.array([one["errors"][setting] for one in panels]) for setting in panels[0]["errors"]}
    some, three = error[averaged_name("If-good-3")], error[averaged_name("3-overlap")]
    misses = float(np.mean([one["misses"] for one in panels]))
    seen = ", ".join(f"{setting} {values.mean():.2f}" for setting, values in error.items())
    return Verdict.of(
        f"section 7: If-good-3 gains by better labels ({name})",
        f"Root mean square error of the gain against the experts' grades: {seen}. A second grade is Good+ in "
        f"{100 * misses:.0f} % of cases where the first is Fair-.",
        reproduced=bool((some < error[BASELINE]).all()) and float(some.mean()) <= 1.05 * float(three.mean()),
        trend=bool((some < error[BASELINE]).all()),
        why="Three grades of everything are better still, as misses are found too.",
    )


def _order(panels: Panels) -> Verdict:
    """Whether the grades bought order the items better than single ones, and than votes."""

    def less(first: str, second: str) -> Floats:
        return np.array([one["order"][first]["nDCG@3"] - one["order"][second]["nDCG@3"] for one in panels])

    good, three = averaged_name("If-good-3"), averaged_name("3-overlap")
    pairs = {f"{first} less {second}": less(first, second) for first, second in (
        (good, BASELINE), (good, "Mv3"), (good, "Highest-3"), (good, three), (three, "Mv3"),
    )}  # fmt: skip
    gain, vote, highest, against, _ = pairs.values()
    return Verdict.of(
        f"If-good-3 is better than one grade, a vote of three, the highest and three grades of each ({TREC})",
        "Differences in nDCG@3 of items ordered by the grades bought: "
        f"{'; '.join(f'{name} {difference_text(values)}' for name, values in pairs.items())}.",
        reproduced=all(significant_sign(values) > 0 for values in (gain, vote, highest))
        and significant_sign(against) >= 0,
        trend=significant_sign(gain) > 0 and significant_sign(vote) > 0,
        why="Three grades of every item find items that were missed at first, at twice the cost.",
    )
