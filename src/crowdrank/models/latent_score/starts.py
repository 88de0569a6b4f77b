"""The state that a former consensus stands for, to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...data.consensus import Consensus
from ...errors import ParameterError
from ...protocols import Floats, Ints
from .responses import Kind, Layout
from .state import KindState, State, first_state


def former_state(start: Consensus, judgments: Any, layout: Layout, n_features: int = 0) -> State:
    """Return the state to begin with: items and annotators of a former consensus as they were, new ones unknown.

    Items and annotators are matched by id. Cuts are taken over where the number of levels is the same.
    """
    learned, estimates = start.learned, start.estimates
    if "score_sd" not in estimates or (layout.named and (learned is None or "alpha" not in learned[1])):
        raise ParameterError(
            f"start= is a consensus of {start.method}, which knows no discrimination of annotators; "
            "start from a consensus of latent_score, or leave start= out"
        )
    state = first_state(layout, np.ones(layout.n_annotators), n_features)
    item = start.items.codes_of(judgments.items, "start", "judgments")
    unit, middle = float(estimates.get("unit", 1.0)), float(estimates.get("middle", 0.0))
    scores = np.where(item >= 0, (start.scores[item] - middle) / unit, 0.0)
    state = replace(
        state, scores=scores, variance_of_items=float(estimates["score_sd"]) ** 2,
        variance_of_alpha=float(estimates["alpha_sd"]) ** 2,
    )  # fmt: skip
    if layout.levelled and "query_sd" in estimates:
        state = replace(state, variance_of_levels=float(estimates["query_sd"]) ** 2)
    who: Ints = np.full(layout.n_annotators, -1, np.int32)
    parameters: Mapping[str, Any] = {}
    if learned is not None and layout.named:
        who, parameters = learned[0].codes(judgments.annotators.ids), learned[1]
        state = replace(state, alpha=_of(parameters["alpha"], who, state.alpha / unit) * unit)
    kinds = zip(layout.kinds, state.kinds, strict=True)
    return replace(state, kinds=tuple(_habits(kind, own, parameters, estimates, who) for kind, own in kinds))


def _of(former: Any, who: Ints, new: Floats) -> Floats:
    """A number of each annotator, as it was or new."""
    return np.where(who >= 0, np.append(former, 0.0)[who], new)


def _habits(
    kind: Kind, habits: KindState, parameters: Mapping[str, Any], estimates: Mapping[str, Any], who: Ints
) -> KindState:
    """How annotators answer one kind, as far as the former consensus tells."""

    def found(table: Mapping[str, Any], name: str) -> Any:
        return table.get(f"{name}_{kind.name}", table.get(name))

    changes: dict[str, Any] = {}
    bias, spread, lapse = (found(parameters, name) for name in ("bias", "spread", "lapse"))
    if bias is not None and kind.biased:
        changes["bias"] = _of(bias, who, habits.bias)
    if spread is not None and kind.stretched:
        changes["spread"] = _of(np.log(spread), who, habits.spread)
    if lapse is not None and kind.lapses:
        changes["lapse"] = np.maximum(_of(lapse, who, habits.lapse), 1e-6)
    cuts = found(estimates, "cuts")
    if cuts is not None and kind.cut and len(cuts) == len(habits.cuts):
        # the centre stays where these judgments put it
        changes["cuts"] = np.array(cuts) - habits.centre
    scale = estimates.get(f"scale_{kind.name}")
    return replace(habits, **changes, log_scale=0.0 if scale is None else float(np.log(scale)))
