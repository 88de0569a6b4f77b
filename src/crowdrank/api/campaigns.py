"""Labelling schemes played through against each other, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..data.truth import Truth
from ..errors import ParameterError
from ..io.truth import read_truth
from ..metrics.measures import parse
from ..protocols import Aggregator, Progress
from ..registry import label, make
from ..schemes.situation import check_limits
from ..simulate import Recorded, SimulatedCrowd, campaign, parse_noise
from ..simulate.campaigns import LABEL_MEASURES
from ..simulate.known import Known
from ..wording import option
from .aggregation import as_judgments, expect_one_kind

PLAYED = ("single", "2-overlap", "if-good-3", "information")
"""Schemes that are played unless others are named."""

_KEYS = ("scheme", "seed", "round", "cost", "n_judgments")


def campaigns(
    truth: Any,
    schemes: Sequence[str] = PLAYED,
    budget: float | None = None,
    *,
    annotators: int | None = None,
    noise: str | None = None,
    votes: Any = None,
    kind: str | None = None,
    goal: str | None = None,
    aggregator: str | Aggregator | None = None,
    params: Mapping[str, Any] | None = None,
    measures: Sequence[str] | None = None,
    n_rounds: int = 20,
    chosen: bool = False,
    n_seeds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Return learning curves of labelling schemes: scheme, seed, round, cost, n_judgments and each measure.

    Each judgment costs 1. All schemes of one seed meet the same crowd.

    Parameters
    ----------
    truth
        What is judged, and what is measured against: query, item and grade; a frame, a file's path, or a truth.
    schemes
        Names of schemes, such as ``"if-good-3"`` or ``"information"``.
    budget
        What each may spend; by default three judgments for each item of the truth.
    annotators, noise
        Simulated annotators: how many, and what they are like, as for :func:`crowdrank.simulate.simulate`.
    votes
        Recorded judgments to replay in their place, drawn in random order from those that exist.
    kind
        ``"grade"`` or ``"preference"``; by default the usual one of the noise.
    goal
        What schemes that have a goal should decide, as for :func:`crowdrank.propose`; others are played as they are.
    aggregator, params
        Makes the consensus that is measured: a name with its parameters, or an aggregator; by default ``mean_gain`` of
        grades and ``latent_score`` of preferences.
    measures
        As for :func:`crowdrank.simulate.campaign`.
    n_rounds
        Rounds that the budget is spent in.
    chosen
        Whether schemes may choose which simulated annotator to ask.
    n_seeds, seed
        Number of repetitions, and the first seed.
    progress
        Called with (campaigns done, campaigns in all, the scheme).

    Examples
    --------
    >>> truth = {"item": list("abcdefgh"), "grade": [0, 0, 0, 1, 1, 2, 2, 3]}
    >>> curves = campaigns(truth, ["single", "3-overlap"], 24, annotators=9, noise="profile()", n_rounds=4, n_seeds=2)
    >>> curves.filter(scheme="3-overlap", seed=0)["cost"].to_list()
    [6.0, 12.0, 18.0, 24.0]
    """
    if (votes is None) == (annotators is None or noise is None):
        raise ParameterError(
            f"say who answers: {option('annotators')} and {option('noise')}, or recorded {option('votes')}"
        )
    if n_seeds < 1:
        raise ParameterError(f"{option('n_seeds', n_seeds)} must be at least 1")
    check_campaigns(schemes, budget, goal=goal, noise=noise, aggregator=aggregator, params=params, measures=measures)
    known_truth = truth if isinstance(truth, Truth) else read_truth(truth)
    recorded = None if votes is None else expect_one_kind(as_judgments(votes), "a campaign")
    measured = make("aggregator", aggregator, params) if isinstance(aggregator, str) else aggregator
    by_name = {name: _scheme(name, goal) for name in [label("scheme", scheme) for scheme in schemes]}
    if goal is not None and not any(hasattr(scheme, "goal") for scheme in by_name.values()):
        raise ParameterError(f"none of {', '.join(by_name)} has a goal; add information, or leave the goal out")
    limit = 3.0 * len(known_truth.items) if budget is None else float(budget)
    tables: list[pl.DataFrame] = []
    for number in range(seed, seed + n_seeds):
        for name, scheme in by_name.items():
            if recorded is not None:
                crowd: Any = Recorded(recorded, seed=number)
            else:
                crowd = _crowd(known_truth, annotators or 0, noise or "", kind, chosen, number)
            played = campaign(
                scheme, crowd, known_truth, limit, aggregator=measured, measures=measures, n_rounds=n_rounds, name=name,
                seed=number,
            )  # fmt: skip
            tables.append(played.curve.select(pl.lit(name).alias("scheme"), pl.lit(number).alias("seed"), pl.all()))
            if progress is not None:
                progress(len(tables), n_seeds * len(by_name), name)
    return pl.concat(tables)


def check_campaigns(
    schemes: Sequence[str],
    budget: float | None = None,
    *,
    goal: str | None = None,
    noise: str | None = None,
    aggregator: Any = None,
    params: Mapping[str, Any] | None = None,
    measures: Sequence[str] | None = None,
) -> None:
    """Refuse what :func:`campaigns` would refuse of any truth, before it is read."""
    for scheme in schemes:
        _scheme(scheme, goal)
    if isinstance(aggregator, str):
        make("aggregator", aggregator, params)
    if noise is not None:
        parse_noise(noise)
    for measure in measures or ():
        if measure not in LABEL_MEASURES:
            parse(measure)
    check_limits(budget)


def _scheme(name: str, goal: str | None) -> Any:
    """The scheme of a name, with the goal if it has one."""
    scheme = make("scheme", name)
    return replace(scheme, goal=goal) if goal is not None and hasattr(scheme, "goal") else scheme


def _crowd(truth: Truth, annotators: int, noise: str, kind: str | None, chosen: bool, seed: int) -> SimulatedCrowd:
    """Simulated annotators, drawn with the seed."""
    model, known = parse_noise(noise), Known.of(truth)
    wanted = model.kinds[0] if kind is None else kind
    if wanted == "ranking":
        wanted = "preference"
    levels = known.n_levels if wanted == "grade" else None
    pool = model.pool(annotators, seed=np.random.default_rng(seed), n_levels=levels)
    return SimulatedCrowd(pool, known, kind=wanted, chosen=chosen, seed=seed)


def campaign_ends(curves: pl.DataFrame) -> pl.DataFrame:
    """Return where each scheme ended: scheme, cost, and each measure as its mean over repetitions, with its spread."""
    measures = [name for name in curves.columns if name not in _KEYS]
    last = curves.filter(pl.col("round") == pl.col("round").max().over("scheme", "seed"))
    figures = [column for name in measures for column in (pl.mean(name), pl.std(name).alias(f"{name}_spread"))]
    return last.group_by("scheme", maintain_order=True).agg(pl.mean("cost"), *figures)


def campaign_sentences(ends: pl.DataFrame) -> list[str]:
    """Return where each scheme ended, in words."""
    first = ends.columns[2]
    lines = []
    for row in ends.iter_rows(named=True):
        spread = row[f"{first}_spread"]
        beside = "" if spread is None else f" ± {spread:.3f}"
        lines.append(f"{row['scheme']}: {first} {row[first]:.3f}{beside} for {row['cost']:,.0f} judgments")
    return lines
