"""Judgments drawn from a pool of annotators, and how good each annotator truly is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..data.intake import numeric_levels
from ..data.judgments import Grades, Judgments, Preferences, Rankings
from ..errors import JudgmentError, ParameterError
from ..protocols import Floats
from ..wording import one_of, option
from .designs import AllPairs, ConnectedPairs, PerItem, PerQuery, RandomPairs, RoundRobin
from .known import Known, Seed, annotator_index
from .noise import NOISES, Noise, parse_noise
from .pools import ROLES, Lists, Pool

_PER_ITEM = {"grade": 5, "preference": 10, "ranking": 5}


@dataclass(frozen=True, eq=False)
class Simulation:
    """Judgments and the truth about their annotators.

    Parameters
    ----------
    judgments
        What the annotators answered.
    quality
        Table of annotator, quality, n_judgments, role (honest, random or malicious) and the pool's own parameters,
        which are empty for spammers. Quality is the probability of ordering two items of one query and unequal truth
        correctly, where the annotator orders them at all.
    """

    judgments: Judgments
    quality: pl.DataFrame


def grades(
    truth: Any,
    pool: Pool,
    design: PerItem | RoundRobin | None = None,
    *,
    levels: Sequence[float] | None = None,
    seed: Seed = 0,
) -> Simulation:
    """Return grades that a pool of annotators gives.

    Parameters
    ----------
    truth
        A `Truth`, a frame with item and grade (and query), a `LatentTruth`, or a pair of `Items` and grades.
    pool
        Who grades.
    design
        Which items each of them grades; by default 3 annotators per item.
    levels
        All grades there are, where the truth does not show them all.

    Examples
    --------
    >>> from crowdrank.simulate import PerItem, normal
    >>> truth = {"item": ["x", "y", "z"], "grade": [0, 1, 2]}
    >>> drawn = grades(truth, normal(0.7, 0.2, n_annotators=10), PerItem(k=4), seed=1)
    >>> len(drawn.judgments), drawn.quality.columns
    (12, ['annotator', 'quality', 'n_judgments', 'role', 'accuracy'])
    """
    known = Known.of(truth, levels)
    latent_rng, design_rng, draw_rng = np.random.default_rng(seed).spawn(3)
    pool.require("grade")
    known = pool.prepare(known, latent_rng)
    item, annotator = (PerItem() if design is None else design).rows(known.items, len(pool), seed=design_rng)
    grade = known.levels[pool.draw_grades(known, item, annotator, draw_rng)]
    given = {"item": item, "annotator": annotator, "grade": grade, "declared": numeric_levels(known.levels)}
    return _simulation(Grades, given, known, pool, pool.grade_quality(known))


def preferences(truth: Any, pool: Pool, design: RandomPairs | AllPairs | None = None, *, seed: Seed = 0) -> Simulation:
    """Return preferences that a pool of annotators gives.

    Parameters
    ----------
    truth
        A `Truth`, a frame with item and grade (and query), a `LatentTruth`, or a pair of `Items` and grades.
    pool
        Who judges.
    design
        Which pairs each of them judges; by default connected random pairs, 10 per item.

    Examples
    --------
    >>> from crowdrank.simulate import AllPairs, Flips
    >>> truth = {"item": ["x", "y", "z"], "grade": [0.3, 1.5, 2.1]}
    >>> drawn = preferences(truth, Flips(np.full(4, 0.1)), AllPairs(k=2), seed=1)
    >>> len(drawn.judgments), drawn.quality["quality"].to_list()
    (6, [0.9, 0.9, 0.9, 0.9])
    """
    known = Known.of(truth)
    pool.require("preference")
    design_rng, draw_rng = np.random.default_rng(seed).spawn(2)
    left, right, annotator = (design or ConnectedPairs()).rows(known.items, len(pool), seed=design_rng)
    outcome = pool.draw_preferences(known, left, right, annotator, draw_rng)
    given = {"left": left, "right": right, "annotator": annotator, "outcome": outcome}
    return _simulation(Preferences, given, known, pool, pool.preference_quality(known))


def rankings(truth: Any, pool: Pool, design: PerQuery | None = None, *, seed: Seed = 0) -> Simulation:
    """Return rankings that a pool of annotators gives.

    Items of equal truth get one random order per query, which counts as the truth for all annotators.

    Parameters
    ----------
    truth
        A `Truth`, a frame with item and grade (and query), a `LatentTruth`, or a pair of `Items` and grades.
    pool
        Who ranks.
    design
        Which queries each of them ranks; by default 5 annotators per query.

    Examples
    --------
    >>> from crowdrank.simulate import Mallows, PerQuery
    >>> truth = {"item": ["x", "y", "z"], "grade": [1, 2, 3]}
    >>> drawn = rankings(truth, Mallows(np.full(3, 800.0)), PerQuery(k=1))
    >>> drawn.judgments.frame()["item"].to_list()
    ['z', 'y', 'x']
    """
    known = Known.of(truth)
    pool.require("ranking")
    tie_rng, design_rng, draw_rng = np.random.default_rng(seed).spawn(3)
    reference = known.reference(tie_rng)
    query, annotator, place, offsets = (design or PerQuery()).rows(known.items, len(pool), seed=design_rng)
    lists = Lists(annotator, reference[np.repeat(known.items.offsets[query], np.diff(offsets)) + place], offsets)
    item = lists.item[lists.offsets[lists.row] + pool.draw_rankings(known, lists, draw_rng)]
    given = {"annotator": annotator, "offsets": offsets, "item": item, "rank": (lists.place + 1).astype(np.int32)}
    return _simulation(Rankings, given, known, pool, pool.ranking_quality(known, lists))


def simulate(
    truth: Any,
    *,
    annotators: int,
    noise: str | Noise,
    kind: str | None = None,
    per_item: float | None = None,
    seed: int = 0,
) -> Simulation:
    """Return judgments of a truth by annotators of a given noise.

    Parameters
    ----------
    truth
        A `Truth`, a frame with item and grade (and query), a `LatentTruth`, or a pair of `Items` and grades.
    annotators
        Number of annotators, spammers included.
    noise
        What they are like, such as ``"normal(0.7,0.2)+random(0.1)"``; see `parse_noise` and `NOISES`.
    kind
        ``"grade"``, ``"preference"`` or ``"ranking"``; by default the usual one of the noise.
    per_item
        Grades per item (5 by default), preferences that an item takes part in (10, pairs connected within each
        query), or rankings per query (5).

    Examples
    --------
    >>> truth = {"item": ["x", "y", "z"], "grade": [0, 1, 2]}
    >>> drawn = simulate(truth, annotators=20, noise="flip(0.2)+random(0.1)", seed=1)
    >>> drawn.judgments.kind, drawn.quality["role"].value_counts(sort=True)["count"].to_list()
    ('preference', [18, 2])
    """
    model, kind = check_simulation(noise, kind, per_item)
    if seed < 0:
        raise ParameterError(f"seed must be 0 or more, not {seed}")
    known = Known.of(truth)
    pool_rng, judgment_rng = np.random.default_rng(seed).spawn(2)
    pool = model.pool(annotators, seed=pool_rng, n_levels=known.n_levels if kind == "grade" else None)
    number = min(_PER_ITEM[kind], annotators) if per_item is None else per_item
    if kind == "preference":
        drawn = preferences(known, pool, ConnectedPairs(per_item=number), seed=judgment_rng)
        if not len(drawn.judgments):
            raise JudgmentError("no query of the truth has two items, so there is nothing to compare; give more items")
        return drawn
    if kind == "grade":
        return grades(known, pool, PerItem(k=int(number)), seed=judgment_rng)
    return rankings(known, pool, PerQuery(k=int(number)), seed=judgment_rng)


def check_simulation(noise: str | Noise, kind: str | None = None, per_item: float | None = None) -> tuple[Noise, str]:
    """Return the noise and the kind that :func:`simulate` draws by, or refuse what it would refuse of any truth."""
    model = parse_noise(noise) if isinstance(noise, str) else noise
    kind = model.kinds[0] if kind is None else kind
    if kind not in model.kinds:
        one_of(kind, _PER_ITEM, "kind", of_verb=True)
        fitting = ", ".join(name for name, m in NOISES.items() if kind in m.kinds and m.make is not None)
        raise ParameterError(f"noise {model.model.name!r} draws no {kind}s; noise for {kind}s: {fitting}")
    named = option("per_item").removesuffix("=")
    if kind != "preference" and per_item is not None and not float(per_item).is_integer():
        raise ParameterError(f"{named} must be a whole number for {kind}s, not {per_item:g}")
    if per_item is not None and not per_item > 0:
        least = "above 0" if kind == "preference" else "at least 1"
        raise ParameterError(f"{named} must be {least}, not {per_item:g}")
    return model, kind


def _simulation(kind: type[Judgments], given: dict[str, Any], known: Known, pool: Pool, quality: Floats) -> Simulation:
    """The judgments with the table of their annotators."""
    judgments = kind(items=known.items, annotators=annotator_index(len(pool)), **given)
    parameters = {name: pl.Series(values).fill_nan(None) for name, values in pool.parameters().items()}
    counts = np.bincount(judgments.annotator, minlength=len(pool))
    columns = {"quality": pl.Series(quality).fill_nan(None), "n_judgments": counts}
    columns["role"] = pl.Series(ROLES).gather(pool.role.astype(np.int64))
    return Simulation(judgments, pl.DataFrame({"annotator": judgments.annotators.ids, **columns, **parameters}))
