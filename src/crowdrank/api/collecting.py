"""What a collection service asks: how many judgments a target should have, and what new ones say before a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.index import NO_QUERY
from ..errors import ParameterError
from ..registry import label, make
from ..wording import did_you_mean
from .aggregation import as_judgments, expect_one_kind
from .proposals import make_scheme

_OF_OWN_JUDGMENTS = {
    "mean_grade": ("grade",), "mean_gain": ("grade",), "highest_grade": ("grade",), "borda": ("preference", "ranking"),
}  # fmt: skip
"""Methods by which the score of an item follows from its own judgments alone, and of which kinds."""


@dataclass(frozen=True)
class TargetRule:
    """How many judgments a target should have, by its own judgments alone.

    Parameters
    ----------
    name, rule
        Name of the scheme and the scheme itself.
    """

    name: str
    rule: Any

    @property
    def most(self) -> int:
        """The most judgments that the rule ever wants of one target."""
        return int(self.rule.k)

    def n_wanted(self, grades: Sequence[float]) -> int:
        """Return how many judgments a target with these grades, first one first, should have in all.

        Examples
        --------
        >>> rule = target_rule("if-good-3")
        >>> rule.n_wanted([]), rule.n_wanted([1]), rule.n_wanted([3, 0])
        (1, 1, 3)
        """
        return int(self.rule.n_wanted(np.asarray(grades, np.float64), np.array([0, len(grades)]))[0])


def target_rule(
    scheme: str, params: Mapping[str, Any] | None = None, levels: Sequence[str] = (), *, kind: str = "grade"
) -> TargetRule | None:
    """Return the rule of a scheme that looks at one target at a time, ``None`` where it needs more than that.

    Parameters
    ----------
    scheme, params
        Name of a scheme and its parameters.
    levels
        Names of the grades, worst first: a ``good_from`` in words is the place of that word.
    kind
        Kind of judgment: only grades are looked at, so that rankings and preferences have rules that merely count.

    Examples
    --------
    >>> target_rule("3-overlap").n_wanted([0, 1]), target_rule("information") is None
    (3, True)
    >>> target_rule("if_good_k", {"good_from": "Good"}, ["Bad", "Fair", "Good"]).n_wanted([2])
    3
    """
    if scheme == "auto":
        return None
    rule = make_scheme(scheme, params, None, 0)
    if not hasattr(rule, "n_wanted"):
        return None
    good_from = getattr(rule, "good_from", None)
    if good_from is not None and kind != "grade":
        return None
    if isinstance(good_from, str):
        if good_from not in levels:
            hint = did_you_mean(good_from, levels)
            raise ParameterError(f"good_from={good_from!r} is none of the grades; {hint}grades: {', '.join(levels)}")
        rule = replace(rule, good_from=float(list(levels).index(good_from)))
    return TargetRule(label("scheme", scheme), rule)


def agreement_interval(judgments: Any, *, n_groups: int = 20) -> dict[str, Any]:
    """Return how far annotators agree: share of equal answers, alpha with an interval of 95 %, and on how many things.

    The interval is of a jackknife that leaves out one of ``n_groups`` groups of items at a time, in the scale in which
    alpha is no more than 1.

    Examples
    --------
    >>> votes = {"item": list("wxyz") * 2, "annotator": list("aaaabbbb"), "grade": [3, 1, 2, 0, 3, 1, 1, 0]}
    >>> found = agreement_interval(votes)
    >>> round(found["alpha"], 2), found["n_shared"]
    (0.91, 4)
    """
    from ..review.crowd_agreement import agreement

    judged = expect_one_kind(as_judgments(judgments), "agreement")
    measured = agreement(judged)
    group = _unit_of(judged) % n_groups
    without = [agreement(judged.select(group != one)).alpha for one in np.unique(group)]
    alphas = np.array([alpha for alpha in without if np.isfinite(alpha)])
    lower = upper = None
    if np.isfinite(measured.alpha) and len(alphas) > 1:
        distance = np.log(np.maximum(1 - alphas, 1e-12))
        spread = float(np.sqrt((len(alphas) - 1) / len(alphas) * ((distance - distance.mean()) ** 2).sum()))
        off = max(1 - measured.alpha, 0.0)
        lower, upper = float(1 - off * np.exp(1.96 * spread)), float(1 - off * np.exp(-1.96 * spread))
    return {
        "same": float(measured.same) if np.isfinite(measured.same) else None,
        "alpha": float(measured.alpha) if np.isfinite(measured.alpha) else None,
        "lower": lower, "upper": upper, "n_shared": measured.n_shared,
    }  # fmt: skip


def disputed_targets(judgments: Any, consensus: Any, most: int = 50) -> list[dict[str, Any]]:
    """Return where annotators disagree most, as plain rows."""
    from ..review.crowd_agreement import contested_items

    contested = contested_items(as_judgments(judgments), consensus)
    how_far = "divided" if "divided" in contested.columns else "spread"
    rows: list[dict[str, Any]] = contested.filter(contested[how_far] > 0).head(most).to_dicts()
    return rows


def reads_anew(consensus: Any, kind: str) -> bool:
    """Return whether items can be read anew by a consensus of judgments of this kind, see :func:`touched_items`."""
    own = kind in _OF_OWN_JUDGMENTS.get(consensus.method, ()) and not consensus.params.get("alpha")
    return consensus.reread is not None or own


def touched_items(
    consensus: Any, judgments: Any, items: Sequence[tuple[Any, Any]] | None = None
) -> list[dict[str, Any]] | None:
    """Return items as rows by all their judgments, the rest as it is in a consensus: an E-step alone.

    ``items`` are those to read, as (query, item), all without it; other items, annotators and what the crowd shares
    stay as in the consensus. ``None`` where its method has no such step. Where it learned something of annotators,
    judgments of those whom it does not know do not count, and items that it then says nothing of are left out.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("wxyz") * 2, "annotator": list("aaaabbbb"), "grade": [3, 1, 2, 0, 3, 1, 1, 0]}
    >>> before = cr.aggregate(votes, "mean_grade")
    >>> touched_items(before, {"item": ["y"] * 3, "annotator": list("abc"), "grade": [2, 1, 3]})
    [{'item': 'y', 'score': 2.0}]
    """
    judged = expect_one_kind(as_judgments(judgments), "reading items anew")
    if not reads_anew(consensus, judged.kind):
        return None
    names = list(zip(judged.items.query_ids().to_list(), judged.items.ids.to_list(), strict=True))
    wanted = set(names if items is None else items)
    free = np.array([name in wanted for name in names], bool)
    if consensus.reread is not None:
        updated, read = consensus.reread(judged, free)
    else:
        updated, read = make("aggregator", consensus.method, consensus.params).fit(judged), free
    rows: list[dict[str, Any]] = updated.frame().drop("rank", "std_error", strict=False).to_dicts()
    kept = {name for name, one in zip(names, read.tolist(), strict=True) if one}
    return [row for row in rows if (row.get("query", NO_QUERY), row["item"]) in kept]


def _unit_of(judgments: Any) -> Any:
    """An item of each judgment, by which judgments are grouped."""
    if hasattr(judgments, "left"):
        return np.minimum(judgments.left, judgments.right)
    if hasattr(judgments, "grade"):
        return judgments.item
    return judgments.item[judgments.offsets[:-1]]
