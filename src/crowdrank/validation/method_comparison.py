"""What comparing several methods finds: their figures, paired tests, and how far their orders differ."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.showing import Shown
from ..metrics.correlation import kendall_tau
from ..metrics.significance import paired_randomisation
from ..protocols import Floats
from ..wording import first_few
from .prediction import Figure, ratio_std_error
from .run_evaluation import Evaluation, correct_by_holm

LEVEL = 0.95
_NORMAL_QUANTILE = 1.959963984540054
_SIGNIFICANCE_LEVEL = 0.05
_MAX_METHODS_NAMED = 5
# threshold (sample): sign patterns of a paired test times queries
_PATTERNS = 4_000_000
"""Random signs drawn for a paired test, spread over its patterns."""

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CAVEAT, PAIRING_CAVEAT = _TABLE["caveat"], _TABLE["pairing_caveat"]


class Measured(NamedTuple):
    """A measure: its name, what it is, whether larger is better, and what it is about: pairs, grades or the truth."""

    name: str
    title: str
    larger_is_better: bool
    of: str

    def best(self, values: Mapping[str, float]) -> str:
        """Return the method with the best value, the first of several."""
        return (max if self.larger_is_better else min)(values, key=lambda name: values[name])


HELD_OUT = tuple(Measured(**row) for row in _TABLE["held_out"])
"""What methods are measured by without a truth."""

LEADING = ("annotator_log_loss", "log_loss", "grade_log_loss", "grade_accuracy")
"""Of these the first that is there is spoken of; on sets with gold it named the best method most often."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison(Shown):
    """Several methods on the same judgments: what :func:`crowdrank.compare_methods` finds.

    Parameters
    ----------
    fitted
        The consensus of all judgments by each method, by the names to show.
    seconds
        Time of that fit.
    measures
        What the methods are measured by.
    figures
        By measure and method, the values of each unit; a method that a measure does not fit has none.
    unit
        What is taken as independent in errors and tests: annotators, queries or folds.
    n_held_out
        Without a truth, how many pairs and grades were held out.
    evaluation
        With a truth, all that was found against it.
    baseline
        The method that the others are tested against, if one was named.
    caveats
        What the held-out figures do not show, in words.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> truth = {"item": ["x", "y"], "grade": [1, 0]}
    >>> comparison = cr.compare_methods(votes, ["mean_grade", "borda"], truth=truth, metrics=["tau"])
    >>> comparison.frame()["tau"].to_list()
    [1.0, 1.0]
    """

    fitted: Mapping[str, Consensus]
    seconds: Mapping[str, float]
    measures: tuple[Measured, ...]
    figures: Mapping[str, Mapping[str, Figure]]
    unit: str
    n_held_out: Mapping[str, int] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    baseline: str | None = None
    caveats: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.fitted)

    def __repr__(self) -> str:
        return f"Comparison({len(self.fitted)} methods by {', '.join(self.names)})"

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods."""
        return tuple(self.fitted)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the measures."""
        return tuple(measure.name for measure in self.measures)

    @property
    def held_out(self) -> bool:
        """Whether there was no truth, so methods are judged on judgments held out from them."""
        return self.evaluation is None

    @property
    def nominal(self) -> bool:
        """Whether grades are classes without an order."""
        return next(iter(self.fitted.values())).nominal

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of a comparison with a truth, in words."""
        return () if self.evaluation is None else self.evaluation.notes

    def frame(self) -> pl.DataFrame:
        """Return a row for each method.

        Its measures, each with its standard error (``..._error``) or, against a truth, its interval (``... lower``,
        ``... upper``), null where it does not fit the method; without a truth ``n_pairs`` and ``n_grades`` held out;
        ``tau_to_first`` (``same_as_first`` for classes), and the ``seconds`` of one fit.
        """
        columns: dict[str, Any] = {"method": list(self.methods)}
        spreads = {"error": "_error"} if self.held_out else {"lower": " lower", "upper": " upper"}
        for measure in self.measures:
            rows = {row["method"]: row for row in self._rows(measure)}
            cells: list[Any] = [rows.get(name, {}) for name in self.methods]
            bounded = any(row.get("lower") is not None for row in cells)
            for key, end in {"value": "", **(spreads if bounded else {})}.items():
                columns[f"{measure.name}{end}"] = pl.Series([row.get(key) for row in cells], dtype=pl.Float64)
        columns |= {f"n_{what}": [number] * len(self.methods) for what, number in self.n_held_out.items()}
        alike = pl.Series([self._similarity(self.methods[0], method) for method in self.methods], dtype=pl.Float64)
        columns["same_as_first" if self.nominal else "tau_to_first"] = alike.fill_nan(None)
        columns["seconds"] = [self.seconds[name] for name in self.methods]
        return pl.DataFrame(columns)

    def scores(self) -> pl.DataFrame:
        """Return the same in long form: measure, method, value, lower, upper (95 %), best, tied, best first.

        ``tied`` are the best and those that a paired test does not show to be worse (p above 0.05 after Holm's
        correction); null where nothing can be tested.
        """
        rows = []
        tests = {(row["measure"], row["method"]): row["p_holm"] for row in self._against_best}
        for measure in self.measures:
            by_query = self._rows(measure)
            best = measure.best({row["method"]: row["value"] for row in by_query}) if by_query else None
            for row in sorted(by_query, key=lambda row: -row["value"] if measure.larger_is_better else row["value"]):
                p_value = tests.get((measure.name, row["method"]))
                is_best = row["method"] == best
                tied = True if is_best else None if p_value is None else p_value > _SIGNIFICANCE_LEVEL
                rows.append({**row, "measure": measure.name, "best": is_best, "tied": tied})
        schema: dict[str, Any] = {"measure": pl.String, "method": pl.String, "value": pl.Float64, "lower": pl.Float64}
        schema |= {"upper": pl.Float64, "best": pl.Boolean, "tied": pl.Boolean}
        return pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)

    def tests(self) -> pl.DataFrame:
        """Return paired tests: measure, method, other, difference, lower, upper, p_value, p_holm.

        Each method is tested against the baseline (``other``), where one was named; otherwise, without a truth, against
        the best of its measure, and with a truth every two. The test exchanges the two values of an annotator or query
        at random; Holm's correction is over the tests of a measure. The interval (95 %) is of the difference, from its
        standard error.
        """
        rows: list[dict[str, Any]] = []
        if self.evaluation is not None:
            for row in self.evaluation.comparisons.rows(named=True):
                figures = self.figures[row["metric"]]
                both = [figures[row[name]] for name in ("run", "other") if row[name] in figures]
                named = {"measure": row["metric"], "method": row["run"], "other": row["other"]}
                rows.append({**row, **named, **(_bounds(*both) if len(both) == 2 else _NO_BOUNDS)})
        elif self.baseline is None:
            rows = self._against_best
        else:
            rows = [row for measure in self.measures for row in self._tests_against(measure, self.baseline)]
        schema: dict[str, Any] = dict.fromkeys(("measure", "method", "other"), pl.String)
        schema |= dict.fromkeys(("difference", "lower", "upper", "p_value", "p_holm"), pl.Float64)
        return pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)

    def orders(self) -> pl.DataFrame:
        """Return how far the orders of every two methods are alike: method, other, tau, most alike first.

        For classes ``same`` in place of tau: the share of items in the same class. Null where a method gives all items
        the same score, which is no order.
        """
        rows = [(one, other, self._similarity(one, other)) for one, other in combinations(self.methods, 2)]
        name = "same" if self.nominal else "tau"
        table = pl.DataFrame(rows, schema={"method": pl.String, "other": pl.String, name: pl.Float64}, orient="row")
        known = table.with_columns(pl.col(name).fill_nan(None))
        return known.sort(name, descending=True, nulls_last=True, maintain_order=True)

    def order_matrix(self) -> Floats:
        """Return the same as a matrix, methods in their order, (n_methods, n_methods); NaN where there is no order."""
        return np.array([[self._similarity(one, other) for other in self.methods] for one in self.methods])

    def sentences(self) -> list[str]:
        """Return what there is to say, one sentence each; what it means for a choice is left to the reader."""
        scores, said = self.scores(), []
        named = next(([name] for name in LEADING if name in self.names), []) if self.held_out else list(self.names)
        for name in named:
            rows = scores.filter(pl.col("measure") == name)
            if not len(rows):
                continue
            best, others = rows.row(0, named=True), rows.filter(~pl.col("best"))
            text = f"by {name} {best['method']} is first of {len(self)} methods ({best['value']:.3f})"
            tied = others.filter(pl.col("tied"))["method"].to_list()
            if not len(others):
                said.append(text)
            elif others["tied"].null_count() == len(others):
                said.append(f"{text}; there is too little to test whether others are worse")
            elif tied:
                said.append(f"{text}; not clearly worse: {first_few(tied, shown=_MAX_METHODS_NAMED)}")
            else:
                said.append(f"{text}, and all others are clearly worse")
        if self.baseline is not None:
            tests = self.tests().rows(named=True)
            for measure in [measure for measure in self.measures if measure.name in named]:
                groups: dict[str, list[str]] = {"better": [], "worse": [], "not clearly different": []}
                for row in (row for row in tests if row["measure"] == measure.name):
                    ahead = row["difference"] is not None and (row["difference"] > 0) == measure.larger_is_better
                    clear = row["p_holm"] is not None and row["p_holm"] <= _SIGNIFICANCE_LEVEL
                    group = "not clearly different" if not clear else "better" if ahead else "worse"
                    groups[group].append(row["method"])
                found = [f"{what}: {', '.join(names)}" for what, names in groups.items() if names]
                said.append(f"against {self.baseline} by {measure.name}: {'; '.join(found) or 'nothing to test'}")
        orders = self.orders().drop_nulls()
        if len(orders):
            far, share = orders.row(-1), float(np.median(orders.to_series(2)))
            what, alike = ("classes", "same class for") if self.nominal else ("orders", "tau")
            how_far = f"{alike} {far[2]:.2f}; {share:.2f} in the middle of all pairs of methods"
            said.append(f"the {what} of {far[0]} and {far[1]} differ most ({how_far})")
        return [*said, *self.caveats]

    @cached_property
    def _known_likeness(self) -> dict[frozenset[str], float]:
        """What was found of two methods so far."""
        return {frozenset([name]): 1.0 for name in self.methods}

    def _similarity(self, one: str, other: str) -> float:
        """How far two methods are alike: Kendall's tau of their orders, or the share of items in the same class."""
        pair = frozenset((one, other))
        if pair not in self._known_likeness:
            a, b = self.fitted[one], self.fitted[other]
            if a.nominal and a.grade is not None and b.grade is not None:
                likeness = np.mean(a.grade == b.grade)
            else:
                likeness = kendall_tau(a.scores, b.scores, a.items.query)
            self._known_likeness[pair] = float(likeness)
        return self._known_likeness[pair]

    def _rows(self, measure: Measured) -> list[dict[str, Any]]:
        """Value and interval of each method that a measure fits."""
        if self.evaluation is not None:
            of_measure = self.evaluation.table.filter(pl.col("metric") == measure.name, pl.col("value").is_not_null())
            return of_measure.rename({"run": "method"}).rows(named=True)
        each = [(name, one.value, one.error) for name, one in self.figures.get(measure.name, {}).items()]
        return [{"method": name, "value": own, "error": error, **_interval(own, error)} for name, own, error in each]

    @cached_property
    def _against_best(self) -> list[dict[str, Any]]:
        """A paired test of each method against the best of its measure."""
        rows: list[dict[str, Any]] = []
        for measure in self.measures:
            figures = self.figures.get(measure.name, {})
            if figures:
                best = measure.best({name: figure.value for name, figure in figures.items()})
                rows += self._tests_against(measure, best)
        return rows

    def _tests_against(self, measure: Measured, other: str) -> list[dict[str, Any]]:
        """Tests of each method against one of them, none where the measure does not fit that one."""
        figures = self.figures.get(measure.name, {})
        rows = []
        for name, figure in figures.items() if other in figures else ():
            if name == other:
                continue
            a, b = figure.parts, figures[other].parts
            p_value = None
            if len(a) == len(b) and len(a) > 1:
                p_value = paired_randomisation(a, b, n=int(np.clip(_PATTERNS // len(a), 1_000, 10_000)))
            named = {"measure": measure.name, "method": name, "other": other}
            difference = figure.value - figures[other].value
            rows.append({**named, "difference": difference, **_bounds(figure, figures[other]), "p_value": p_value})
        return correct_by_holm(rows)


_NO_BOUNDS: dict[str, Any] = {"lower": None, "upper": None}


def _interval(value: float, error: float | None) -> dict[str, Any]:
    """Ends of the interval of a value with a standard error, where there is one."""
    if error is None:
        return _NO_BOUNDS
    return {"lower": value - _NORMAL_QUANTILE * error, "upper": value + _NORMAL_QUANTILE * error}


def _bounds(one: Figure, other: Figure) -> dict[str, Any]:
    """Interval of the difference of two figures, from the units that both have."""
    both = (one.weight > 0) & (other.weight > 0)
    if not both.any():
        return _NO_BOUNDS
    weight, rest = np.where(both, one.weight, 0.0), np.where(both, one.sums - other.sums, 0.0)
    difference = float(rest.sum() / weight.sum())
    return _interval(difference, ratio_std_error(rest - difference * weight, weight))
