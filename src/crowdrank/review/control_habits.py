"""What annotators like besides quality: coefficients of the covariates that a consensus controls for, in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.covariates import GIVEN, more_of, typical_difference
from ..data.judgments import Preferences
from ..protocols import Bools
from ..quality import INTERVAL
from ..wording import SHOWN, first_few, of_all, option, percent
from .finding import Finding, name

NOTABLE_ODDS = 1.25
"""Smallest odds at the typical difference at which a habit is reported, where its interval excludes 1."""

_NO_SHARE = 1e-3
"""Share of the uncertainty of an annotator's coefficient that their own judgments must remove."""

_OWN_SIDE = "side"
_KINDS = {"length": "likes_long", "self": "prefers_own_family", _OWN_SIDE: "leans_left"}
_WORDS = {
    "likes_long": ("likes long items", "like long items"),
    "likes_format": ("likes formatted items", "like formatted items"),
    "prefers_own_family": ("prefers their own family", "prefer their own family"),
    "leans_left": ("leans to the left", "lean to the left"),
}
"""Kind of finding -> what one annotator does, and what several do."""


class Habit(NamedTuple):
    """What annotators do about one covariate: a table of coefficients with 90 % intervals, its unit and transform."""

    covariate: str
    unit: float
    table: pl.DataFrame
    transform: str = GIVEN

    @property
    def step(self) -> float:
        """What coefficients are multiplied by for log-odds at the typical difference."""
        return 1.0 if self.covariate == _OWN_SIDE else typical_difference(self.covariate, self.unit, self.transform)

    @property
    def favoured_item(self) -> str:
        """Which item has the typical difference."""
        return "on the left" if self.covariate == _OWN_SIDE else more_of(self.covariate, self.unit, self.transform)


def interval_factor(estimate: Mapping[str, Any], level: float) -> float:
    """Return how many standard errors an interval of a coefficient reaches: Student's t over annotators, or normal."""
    from scipy.special import ndtri, stdtrit

    degrees = estimate.get("degrees")
    return float(stdtrit(degrees, 0.5 + level / 2.0) if degrees else ndtri(0.5 + level / 2.0))


def control_sentences(estimates: Mapping[str, Any]) -> list[str]:
    """Return what the coefficients of covariates mean, a sentence for each."""
    sentences = []
    for covariate, estimate in (estimates.get("control") or {}).items():
        way = estimate.get("transform", GIVEN)
        far, step = interval_factor(estimate, 0.95), typical_difference(covariate, estimate["unit"], way)
        bounds = [(estimate["coefficient"] + z * estimate["std_error"]) * step for z in (-far, 0.0, far)]
        low, middle, high = (math.exp(min(max(bound, -30.0), 30.0)) for bound in bounds)
        what = more_of(covariate, estimate["unit"], way)
        spread = estimate.get("sd_between_annotators")
        factor = math.exp(min(spread * step, 30.0)) if spread else 1.0
        between = f"; annotators differ by a factor of {factor:.1f}" if spread else ""
        sentences.append(
            f"between equals, the answer {what} wins {middle:.2f} times as often as it loses (95 % interval {low:.2f} "
            f"to {high:.2f}{between}); {percent(estimate['identified'])} of the variation of {covariate} is not that "
            "between items"
        )
    return sentences


def annotator_habits(consensus: Consensus) -> list[Habit]:
    """Return the coefficients of annotators, and their favour of the left side, where covariates are controlled for.

    The tables have annotator, coefficient, lower, upper and odds, those at the typical difference. Annotators whose
    judgments say nothing of a covariate, such as people of their own family, are not in its table.
    """
    learned, control = consensus.learned, consensus.estimates.get("control")
    if learned is None or not control:
        return []
    annotators, parameters = learned
    columns = {
        name: (name, f"{name}_sd", float(one["unit"]), one.get("transform", GIVEN)) for name, one in control.items()
    }
    columns[_OWN_SIDE] = ("bias", "bias_sd", 1.0, GIVEN)
    habits = []
    for covariate, (value, error, unit, way) in columns.items():
        if value in parameters and error in parameters:
            estimates = parameters[value], parameters[error]
            whole = _habit(annotators.ids, estimates, covariate, unit, way)
            has_own = (
                _has_own(*estimates, control[covariate]) if covariate in control else np.ones(len(whole.table), bool)
            )
            habits.append(whole._replace(table=whole.table.filter(pl.Series(has_own))))
    return habits


def _has_own(value: Any, error: Any, crowd: Mapping[str, Any]) -> Bools:
    """Which annotators have a coefficient of their own, not just that of the crowd with the spread of all."""
    spread = float(crowd.get("sd_between_annotators") or 0.0)
    if spread == 0.0:
        return np.ones(len(value), bool)
    unknown = np.asarray(error, np.float64) ** 2 >= (1.0 - _NO_SHARE) * (spread**2 + crowd["std_error"] ** 2)
    near = np.abs(np.asarray(value, np.float64) - crowd["coefficient"]) <= _NO_SHARE * spread
    own: Bools = ~(unknown & near)
    return own


def _habit(ids: pl.Series, estimates: tuple[Any, Any], covariate: str, unit: float, transform: str) -> Habit:
    """Coefficients with standard errors as a table with intervals, and odds at the typical difference."""
    far = interval_factor({}, INTERVAL)
    value, error = (np.asarray(part, np.float64) for part in estimates)
    table = pl.DataFrame({
        "annotator": ids, "coefficient": value, "lower": value - far * error, "upper": value + far * error,
    })  # fmt: skip
    habit = Habit(covariate, unit, table, transform)
    odds = pl.Series("odds", np.exp(np.clip(value * habit.step, -30.0, 30.0)))
    return habit._replace(table=table.with_columns(odds))


def relative_habits(preferences: Preferences, control: Sequence[str], coefficients: Any) -> list[Habit]:
    """Return coefficients of annotators against each other, of those whose can be told.

    ``found`` has parameters, unit and comparable, as ``latent_score`` gives them.
    """
    ways = dict(zip(preferences.covariate_names, preferences.covariate_transforms, strict=True))
    habits = []
    for place, one in enumerate(control):
        values = coefficients.parameters[one], coefficients.parameters[f"{one}_sd"]
        whole = _habit(preferences.annotators.ids, values, one, float(coefficients.unit[place]), ways[one])
        habits.append(whole._replace(table=whole.table.filter(pl.Series(coefficients.comparable[:, place]))))
    return habits


def habit_findings(
    consensus: Consensus, habits: Sequence[Habit] | None = None, *, leaning: Collection[Any] = ()
) -> list[Finding]:
    """Return who likes long, formatted, own-family or left items, and by how much.

    ``leaning`` are those of whom it is told already that they go by the side.
    """
    findings = []
    habits = annotator_habits(consensus) if habits is None else habits
    for kind in _WORDS:
        said = [(habit, likers(habit.table)) for habit in habits if _KINDS.get(habit.covariate, "likes_format") == kind]
        told = set(leaning) if kind == "leans_left" else set()
        who = {one: None for _, some in said for one in some["annotator"].to_list() if one not in told}
        if not who:
            continue
        one_does, several_do = _WORDS[kind]
        names = [
            f"{name(row['annotator'])} (the one {habit.favoured_item} wins {row['odds']:.2f} times as often)"
            for habit, some in said
            for row in some.iter_rows(named=True)
            if row["annotator"] in who
        ]
        n = max(len(habit.table) for habit, _ in said)
        does = one_does if len(who) == 1 else several_do
        sentence = f"{of_all(len(who), n, 'annotator')} {does}: {first_few(names[:SHOWN], len(names))}"
        numbers = {"n": len(who), "n_annotators": n}
        findings.append(Finding(kind, "annotators", "warning", sentence, numbers, tuple(who)))
    return findings


def likers(table: pl.DataFrame) -> pl.DataFrame:
    """Return those whose interval is above 0 and whose odds are notable, the largest first."""
    return table.filter((pl.col("lower") > 0.0) & (pl.col("odds") > NOTABLE_ODDS)).sort(
        "odds", "annotator", descending=[True, False]
    )


def control_findings(consensus: Consensus) -> list[Finding]:
    """Return what controlling for covariates means, and how much wider intervals by cluster are."""
    findings = []
    for covariate, sentence in zip(
        consensus.estimates.get("control") or {}, control_sentences(consensus.estimates), strict=True
    ):
        estimate = consensus.estimates["control"][covariate]
        numbers = {key: estimate[key] for key in ("coefficient", "std_error", "identified")}
        findings.append(Finding(f"control_{covariate}", "method", "info", sentence, numbers))
    by_query = consensus.estimates.get("by_query")
    if by_query:
        sentence = (
            f"intervals by query would be {by_query['wider']:.1f} times as wide as the model's: judgments of a query "
            f"depend on each other; ask for them with {option('robust', 'query')}"
        )
        findings.append(Finding("by_query", "method", "info", sentence, dict(by_query)))
    robust = consensus.estimates.get("robust")
    if robust:
        sentence = f"intervals by {robust['by']} are {robust['wider']:.1f} times as wide as the model's"
        findings.append(
            Finding("robust", "method", "info", sentence, {"wider": robust["wider"], "clusters": robust["clusters"]})
        )
    return findings
