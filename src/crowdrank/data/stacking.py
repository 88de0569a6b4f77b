"""Several sets of judgments brought onto one numbering of items and annotators, and those of one kind into one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..errors import DataWarning, JudgmentError
from ..protocols import Ints
from ..wording import option
from .coding import factorize
from .grades import Grades
from .index import NO_QUERY, Index, Items, build_items
from .intake import short
from .judged import AnyJudged, Judged
from .preferences import Preferences
from .rankings import Rankings


def align_judgments(sets: Sequence[AnyJudged]) -> list[AnyJudged]:
    """Return the sets of judgments with codes over the items and annotators of all of them.

    Where one names no query, all may have only one, and items alone are compared.
    """
    items, item_codes = _items(sets)
    annotators, annotator_codes = _annotators(sets)
    fields = {"items": items, "annotators": annotators, **_groups(sets, annotators, annotator_codes)}
    blocks = _blocks(sets)
    aligned_sets = []
    for number, judged in enumerate(sets):
        of_items = item_codes[number]
        columns: dict[str, Any] = {
            name: of_items[getattr(judged, name)] for name in {"item", "left", "right"}.intersection(judged.answers)
        }
        if len(annotators):
            columns["annotator"] = annotator_codes[number][judged.annotator]
        if judged.blocks is not None and judged.block is not None and blocks is not None:
            columns |= {"blocks": blocks, "block": blocks.codes(judged.blocks.ids)[judged.block]}
        aligned_sets.append(replace(judged, **fields, **columns))
    return aligned_sets


def _items(sets: Sequence[Judged]) -> tuple[Items, list[Ints]]:
    """Items of all sets, and the new code of each item of each set."""
    ids, item_ids = factorize([judged.items.ids for judged in sets])
    bare = [judged for judged in sets if judged.items.single]
    if len(bare) == len(sets):
        queries, of_queries = pl.Series("id", [NO_QUERY]), [np.zeros(1, np.int32) for _ in sets]
    else:
        query_ids = [judged.items.queries.ids for judged in sets if not judged.items.single]
        named, queries = factorize(query_ids)
        if bare and len(queries) > 1:
            several = next(judged for judged in sets if not judged.items.single)
            raise JudgmentError(
                f"the {bare[0].kind}s name no query but the {several.kind}s have several; add the query column"
            )
        rest = iter(named)
        of_queries = [np.zeros(1, np.int32) if judged.items.single else next(rest) for judged in sets]
    placed = [(of_queries[n][judged.items.query], ids[n]) for n, judged in enumerate(sets)]
    return build_items(Index(queries), placed, item_ids)


def _annotators(sets: Sequence[Judged]) -> tuple[Index, list[Ints]]:
    """Annotators of all sets, and the new code of each annotator of each set."""
    nameless = [judged for judged in sets if not judged.n_annotators]
    if nameless and len(nameless) < len(sets):
        named = next(judged for judged in sets if judged.n_annotators)
        raise JudgmentError(
            f"the {nameless[0].kind}s do not say who gave them but the {named.kind}s do; add an annotator column, in "
            "which one name may stand for all"
        )
    codes, ids = factorize([judged.annotators.ids for judged in sets])
    return Index(ids), codes


def _blocks(sets: Sequence[Judged]) -> Index | None:
    """Former queries of the sets whose queries were taken together."""
    ids = [judged.blocks.ids for judged in sets if judged.blocks is not None]
    if len({series.dtype for series in ids}) > 1:
        ids = [series.cast(pl.String) for series in ids]
    return Index(pl.concat(ids).unique().sort()) if ids else None


def _groups(sets: Sequence[Judged], annotators: Index, codes: Sequence[Ints]) -> dict[str, Any]:
    """The family of each annotator, left out unless all are known."""
    given = [(judged, code) for judged, code in zip(sets, codes, strict=True) if judged.group is not None]
    if not given:
        return {}
    of_sets, ids = factorize([judged.groups.ids for judged, _ in given if judged.groups is not None])
    group = np.full(len(annotators), -1, np.int32)
    for (judged, code), of_groups in zip(given, of_sets, strict=True):
        group_codes = of_groups[judged.group]
        differ = np.flatnonzero((group[code] >= 0) & (group[code] != group_codes))
        if len(differ):
            who, first = int(code[differ[0]]), int(group[code[differ[0]]])
            shown = f"{short(ids[first])} and {short(ids[int(group_codes[differ[0]])])}"
            raise JudgmentError(f"annotator {short(annotators.ids[who])} stands in two groups, {shown}; name one")
        group[code] = group_codes
    if (group < 0).any():
        lacking = short(annotators.ids[int(np.argmin(group))])
        warnings.warn(
            f"the groups of annotators are left out, since {int((group < 0).sum())} of {len(group)} annotators have "
            f"none, {lacking} the first; add the group column to all judgments",
            DataWarning, stacklevel=5,
        )  # fmt: skip
        return {"groups": None, "group": None}
    return {"groups": Index(ids), "group": group}


def stack_judgments(sets: Sequence[AnyJudged]) -> AnyJudged:
    """Return the judgments of several sets of one kind, numbered by :func:`align_judgments`, as one set."""
    first = sets[0]
    if len(sets) == 1:
        return first
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(judged, name) for judged in sets])
        for name in ("annotator", *first.answers) if name != "offsets"
    }  # fmt: skip
    if any(judged.weight is not None for judged in sets):
        columns["weight"] = np.concatenate([judged.row_weight for judged in sets])
    if _in_all(sets, "time", "a time"):
        columns["time"] = np.concatenate([judged.time for judged in sets])
    if _in_all(sets, "block", "queries that were taken together"):
        columns["block"] = np.concatenate([judged.block for judged in sets])
    if any(judged.duration is not None for judged in sets):
        columns["duration"] = _fill_column(sets, "duration", np.nan)
    preferences = [judged for judged in sets if isinstance(judged, Preferences)]
    if any(judged.recorded is not None for judged in preferences):
        columns["recorded"] = _fill_column(sets, "recorded", False)
    columns |= _strengths(preferences) | _judgment_numbers(preferences) | _covariates(preferences)
    if isinstance(first, Rankings):
        lengths = np.concatenate([np.diff(judged.offsets) for judged in sets if isinstance(judged, Rankings)])
        columns["offsets"] = np.concatenate([[0], np.cumsum(lengths)])
    if isinstance(first, Grades) and len({judged.declared for judged in sets if isinstance(judged, Grades)}) > 1:
        raise JudgmentError(
            f"the sets of grades have different levels; give each the same {option('levels')} from worst to best"
        )
    return replace(first, **columns)


def _fill_column(sets: Sequence[Judged], name: str, missing: Any) -> Any:
    """A column of all sets, with a value for the rows of those that lack it."""
    given = [getattr(judged, name) for judged in sets]
    return np.concatenate([np.full(len(s), missing) if c is None else c for s, c in zip(sets, given, strict=True)])


def _strengths(sets: Sequence[Preferences]) -> dict[str, Any]:
    """Strength of the preferences of all sets, left out unless all have one."""
    lacking = sum(len(judged) for judged in sets if judged.strength is None)
    if not lacking:
        levels = [judged.strength_levels for judged in sets if judged.strength_levels is not None]
        return {"strength": _fill_column(sets, "strength", 0.0), "strength_levels": max(levels)} if sets else {}
    if any(judged.strength is not None for judged in sets):
        warnings.warn(
            f"the strengths of preferences are left out, since {lacking} preferences have none; only who won is used",
            DataWarning, stacklevel=5,
        )  # fmt: skip
    return {"strength": None, "strength_levels": None}


def _covariates(sets: Sequence[Preferences]) -> dict[str, Any]:
    """Covariates of the preferences of all sets, those that all have, in the order of the first."""
    if not any(judged.covariate_names for judged in sets):
        return {}
    names = [name for name in sets[0].covariate_names if all(name in judged.covariate_names for judged in sets)]
    lost = sorted({name for judged in sets for name in judged.covariate_names if name not in names})
    if lost:
        raise JudgmentError(
            f"covariate {lost[0]!r} stands in some sets of preferences and not in others; add it to all of them, or "
            "leave it out"
        )
    transforms_of = [dict(zip(judged.covariate_names, judged.covariate_transforms, strict=True)) for judged in sets]
    for name in names:
        ways = list(dict.fromkeys(one[name] for one in transforms_of))
        if len(ways) > 1:
            raise JudgmentError(
                f"covariate {name!r} is made in two ways, {ways[0]} and {ways[1]}; read all sets of preferences with "
                "the same columns and transform"
            )
    parts = [judged.covariates[:, [judged.covariate_names.index(name) for name in names]] for judged in sets
             if judged.covariates is not None]  # fmt: skip
    transforms = tuple(transforms_of[0][name] for name in names)
    return {
        "covariates": np.concatenate(parts), "covariate_names": tuple(names), "covariate_transforms": transforms
    }  # fmt: skip


def _judgment_numbers(sets: Sequence[Preferences]) -> dict[str, Any]:
    """Number of each row's judgment over all sets."""
    if all(judged.judgment is None for judged in sets):
        return {}
    numbers, start = [], 0
    for judged in sets:
        own = np.arange(len(judged)) if judged.judgment is None else np.unique(judged.judgment, return_inverse=True)[1]
        numbers.append(own + start)
        start += len(judged)
    return {"judgment": np.concatenate(numbers).astype(np.int32)}


def _in_all(sets: Sequence[Judged], column: str, what: str) -> bool:
    """Whether all sets have a column; some having it and others not is refused."""
    have = [getattr(judged, column) is not None for judged in sets]
    if any(have) and not all(have):
        raise JudgmentError(
            f"some {sets[0].kind}s have {what} and others do not; give it to all of them, or to none of them"
        )
    return all(have)
