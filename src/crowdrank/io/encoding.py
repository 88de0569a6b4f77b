"""Arrays and parameters as values that strict JSON can hold: NaN as null, infinity as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_NUMBER = "float"
"""Key under which a parameter that is infinite or NaN is kept as text, apart from parameters that are text."""


def encode_array(values: Any) -> Any:
    """Return an array, or one number, as nested lists without NaN and infinity.

    Examples
    --------
    >>> encode_array(np.array([1.5, np.nan, -np.inf]))
    [1.5, None, '-inf']
    """
    array = np.asarray(values)
    if array.dtype == np.float32:
        # the fewest digits that read back as the same number, half of those of a double
        array = array.astype(str).astype(np.float64)
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    plain = array.astype(object)
    plain[np.isnan(array)] = None
    plain[np.isposinf(array)] = "inf"
    plain[np.isneginf(array)] = "-inf"
    return plain.tolist()


def decode_array(values: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return the array that :func:`encode_array` made nested lists of.

    Examples
    --------
    >>> decode_array([1.5, None, "-inf"], "float64")
    array([ 1.5,  nan, -inf])
    """
    wanted = np.dtype(dtype)
    if wanted.kind != "f":
        return np.array(values, wanted)
    return np.array(values, object).astype(np.float64).astype(wanted)


def encode_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as plain values; what JSON has no form for becomes its text."""
    return {str(name): _plain(value) for name, value in params.items()}


def decode_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters from plain values; lists come back as tuples, as frozen methods hold them."""
    return {name: _decode_param(value) for name, value in params.items()}


def _plain(value: Any) -> Any:
    """One parameter as JSON holds it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    return str(value)


def _decode_param(value: Any) -> Any:
    """One parameter as a method holds it."""
    if isinstance(value, list):
        return tuple(_decode_param(inner) for inner in value)
    if isinstance(value, dict) and value.keys() == {_NUMBER}:
        return float(value[_NUMBER])
    if isinstance(value, dict):
        return {key: _decode_param(inner) for key, inner in value.items()}
    return value
