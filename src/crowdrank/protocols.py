"""What a method must look like, and the array types every signature uses."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .errors import ParameterError
from .wording import method_label, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int32]
Counts: TypeAlias = NDArray[np.int64]
Outcomes: TypeAlias = NDArray[np.int8]
Bools: TypeAlias = NDArray[np.bool_]
AnyFloats: TypeAlias = NDArray[np.floating[Any]]

Progress: TypeAlias = "Callable[[int, int, str], None]"
"""Called with (steps done, steps in all, what is being done); whoever shows progress passes one in."""


class Aggregator(Protocol):
    """Judgments in, consensus out; holds hyper-parameters only."""

    kinds: ClassVar[tuple[str, ...]]

    def fit(self, judgments: Any, /) -> Any:
        """Return the consensus of the judgments."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """An aggregator that can give scores without the rest of a consensus, which is quicker."""

    def scores(self, judgments: Any, /) -> Floats:
        """Return the score of each item."""
        ...


@runtime_checkable
class Reweighter(Protocol):
    """An aggregator that gives scores of the same judgments under other weights quicker than by a fit."""

    def scores_by_weight(self, judgments: Any, /) -> Callable[[Floats], Floats]:
        """Return the function from the weight of each judgment, 0 for one that is left out, to the scores."""
        ...


@runtime_checkable
class Resampler(Protocol):
    """An aggregator that fits many resamples of the same judgments quicker than one after the other."""

    def refits(self, judgments: Any, draws: Any, consensus: Any, /) -> tuple[int, Callable[[int, int], Any]]:
        """Return how many resamples to fit at once, and what fits those from the first to before the last.

        ``draws`` are :class:`~crowdrank.resampling.Draws`, ``consensus`` is that of all judgments, and each call
        returns a :class:`~crowdrank.resampling.Refitted`. Calls run in several threads.
        """
        ...


def expect_arguments(method: Any, names: Iterable[str]) -> None:
    """Refuse arguments that the ``fit`` of a method does not take."""
    takes = inspect.signature(method.fit).parameters
    for name in names:
        if name not in takes:
            raise ParameterError(
                f"{method_label(method)} takes no {option(name)}; leave it out or choose another method"
            )


def method_named(package: str, name: str) -> Any:
    """Return a method of a package by the name of its class: ``BradleyTerry`` lives in ``bradley_terry.py``."""
    file = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    if name[:1].isupper():
        try:
            return getattr(import_module(f".{file}", package), name)
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{file}":
                raise
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
