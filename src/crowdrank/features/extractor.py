"""From raw items to features and the extractor that makes the same columns of other items."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.features import Extractor, Features
from ..data.files import PathLike, plain
from ..errors import DataWarning, JudgmentError, ParameterError
from ..protocols import Floats
from ..wording import counted, first_few, one_of, option
from .made import Made
from .raw_items import RawItems
from .work import Run

KINDS = {"text": ".text_features", "page": ".page.page_features", "speech": ".sound.speech_features"}
"""Module of each kind, with ``VERSION`` and ``make(items, params, fitted, run)``."""


def extract(kind: str, items: RawItems, params: Mapping[str, Any], run: Run) -> tuple[Features, Made]:
    """Return features of raw items with an extractor fitted to them, and what they were made of."""
    module = import_module(KINDS[kind], __package__)
    made: Made = module.make(items, params, None, run)
    numbers, matrix = dict(made.numbers), made.matrix
    if params.get("fill") == "mean":
        numbers["fill"] = _means(matrix)
        matrix = _fill_missing(matrix, numbers["fill"], made.names)
    extractor = Extractor(kind, module.VERSION, dict(params), made.names, made.facts, numbers)
    return Features(made.items.items, matrix, made.names, extractor=extractor, details=made.details), made


def extract_like(extractor: Extractor, items: RawItems, run: Run) -> tuple[Features, Made]:
    """Return features of raw items with the columns of an extractor."""
    expect_extractor(extractor)
    module = import_module(KINDS[extractor.kind], __package__)
    try:
        made: Made = module.make(items, extractor.params, extractor, run)
        fill = extractor.numbers.get("fill")
        matrix = made.matrix if fill is None else _fill_missing(made.matrix, fill, made.names)
        fits = made.names == extractor.names
    except (KeyError, ValueError) as error:
        if isinstance(error, JudgmentError | ParameterError):
            raise
        raise JudgmentError(f"the extractor is damaged ({plain(str(error))}); make the features anew") from None
    if not fits:
        raise JudgmentError("the extractor does not make the columns that it names; make the features anew")
    return Features(made.items.items, matrix, made.names, extractor=extractor, details=made.details), made


def extractor_of(source: Any) -> Extractor:
    """Return the extractor of features, of a fit, of a ranker, or of the file of one."""
    if isinstance(source, Extractor):
        return source
    if isinstance(source, str | os.PathLike):
        return _in_file(source)
    extractor = getattr(getattr(source, "ranker", source), "extractor_", None) or getattr(source, "extractor", None)
    if not isinstance(extractor, Extractor):
        raise ParameterError(
            f"this {type(source).__name__} was not made from raw items, so no features like it can be made; make its "
            "features by cr.features.texts, pages or speech"
        )
    return extractor


def expect_extractor(extractor: Extractor, kind: str | None = None) -> None:
    """Refuse an extractor of another kind than wanted, or of another version."""
    if kind is not None:
        one_of(kind, KINDS, "of", of_verb=True)
    if extractor.kind not in KINDS:
        raise JudgmentError(
            f"the extractor is of kind {plain(extractor.kind[:40])!r}, and this version knows "
            f"{', '.join(KINDS)}; install a newer version"
        )
    if kind is not None and kind != extractor.kind:
        raise ParameterError(
            f"the features were made of the kind {extractor.kind!r} and {option('of', kind)} was asked for; "
            f"say {option('of', extractor.kind)}, or name another model"
        )
    version = import_module(KINDS[extractor.kind], __package__).VERSION
    if extractor.version != version:
        raise JudgmentError(
            f"the features were made by version {extractor.version} of the {extractor.kind} columns, and this is "
            f"version {version}; make features and ranker anew, or install the crowdrank that made them"
        )


def _in_file(path: PathLike) -> Extractor:
    """The extractor that a model's file holds, or that of a table of features."""
    from ..io.features import extractor_file
    from ..rankers.saving import read_extractor

    beside = extractor_file(path)
    return read_extractor(beside if os.path.isfile(beside) else path)


def _means(matrix: Floats) -> Floats:
    """Mean of each column over the rows that have it, 0 where none does."""
    there = ~np.isnan(matrix)
    total = np.where(there, matrix, 0.0).sum(axis=0)
    means: Floats = total / np.maximum(there.sum(axis=0), 1)
    return means


def _fill_missing(matrix: Floats, fill: NDArray[Any], names: tuple[str, ...]) -> Floats:
    """The matrix with means in the place of missing values, and a warning that says how many there were."""
    if fill.shape != (len(names),):
        raise ValueError("what it fills in does not fit its columns")
    gaps = np.isnan(matrix)
    if not gaps.any():
        return matrix
    which = first_few([name for place, name in enumerate(names) if gaps[:, place].any()])
    warnings.warn(
        f"{counted(int(gaps.sum()), 'value')} of {counted(int(gaps.any(axis=1).sum()), 'item')} missing (in {which}); "
        f"they were replaced by the mean of the other items, and {option('fill', 'none')} leaves them out",
        DataWarning, stacklevel=5,
    )  # fmt: skip
    filled: Floats = np.where(gaps, fill, matrix)
    return filled
