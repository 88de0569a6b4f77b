"""What a method must look like, and the array types every signature uses."""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import typing
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .errors import ParameterError
from .wording import method_label, option, snake_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int32]
Counts: TypeAlias = NDArray[np.int64]
Outcomes: TypeAlias = NDArray[np.int8]
Bools: TypeAlias = NDArray[np.bool_]
AnyFloats: TypeAlias = NDArray[np.floating[Any]]

Progress: TypeAlias = "Callable[[int, int, str], None]"
"""Called with (steps done, steps in all, what is being done); progress bars pass one in."""


class Aggregator(Protocol):
    """Judgments in, consensus out; holds hyper-parameters only."""

    kinds: ClassVar[tuple[str, ...]]

    def fit(self, judgments: Any, /) -> Any:
        """Return the consensus of the judgments."""


@runtime_checkable
class Scorer(Protocol):
    """An aggregator that can give scores without the rest of a consensus, which is quicker."""

    def scores(self, judgments: Any, /) -> Floats:
        """Return the score of each item."""


@runtime_checkable
class Reweighter(Protocol):
    """An aggregator that gives scores of the same judgments under other weights quicker than by a fit."""

    def scores_by_weight(self, judgments: Any, /) -> Callable[[Floats], Floats]:
        """Return the function from the weight of each judgment, 0 for one that is left out, to the scores."""


@runtime_checkable
class Resampler(Protocol):
    """An aggregator that fits many resamples of the same judgments quicker than one after the other."""

    def refits(self, judgments: Any, draws: Any, consensus: Any, /) -> tuple[int, Callable[[int, int], Any]] | None:
        """Return how many resamples to fit at once, and what fits those from the first to before the last.

        ``draws`` are :class:`~crowdrank.resampling.Draws`, ``consensus`` is that of all judgments, and each call
        returns a :class:`~crowdrank.resampling.Refitted`. Calls run in several threads. ``None`` where these judgments
        are to be fitted one resample after the other.
        """


def takes_argument(method: Any, name: str) -> bool:
    """Return whether the ``fit`` of a method takes this argument."""
    return name in inspect.signature(method.fit).parameters


# Fits over blocks: a method is written once, and runs over one block in memory, over many that are streamed from a
# packed folder, or over many elsewhere. See :class:`BlockFit`.

Statistics: TypeAlias = "tuple[Any, ...]"
"""What a step finds in a block: arrays and floats."""

StepResult: TypeAlias = "tuple[Statistics, Any]"
"""What a step finds of a block, and the block's new state, ``None`` where that stays."""

BlockStep: TypeAlias = "Callable[[Any, Any], StepResult]"
"""One step in one block: the block and its state to statistics and new state, ``None`` where the state stays.

It is pure, so that it can be repeated elsewhere; whatever it needs of the rest is bound to it by ``partial``, or it is
defined where that is known.
"""


class Blocks(Protocol):
    """What a fit asks of the blocks of the judgments; one in memory (``fitting.OneBlock``), or many (an executor)."""

    def total(self, step: BlockStep, /) -> Statistics:
        """Return the statistics of a step, summed over all blocks in the fixed tree."""

    def each(self, step: BlockStep, /) -> list[Statistics]:
        """Return the statistics of a step block by block; for small ones that are no sums."""

    def read(self, step: BlockStep, /) -> Iterator[Statistics]:
        """Yield what a step reads out of each block, in their order; only after the last sum."""


def add_statistics(first: Statistics, second: Statistics) -> Statistics:
    """Return the sums of two statistics, entry by entry."""
    return tuple(one + other for one, other in zip(first, second, strict=True))


@dataclasses.dataclass(frozen=True, eq=False)
class BlockFit:
    """A fit over blocks of the judgments, one or many.

    A block keeps a state from step to step, such as the scores of its items. ``lay_out`` and ``merge`` go to where the
    blocks are, ``solve`` stays with the caller.

    Parameters
    ----------
    lay_out
        From the judgments of a block to what the steps read.
    solve
        From the blocks to the result: asks for sums, updates what all blocks share, and asks again.
    merge
        How the statistics of two neighbours are joined.
    """

    lay_out: Callable[[Any], Any]
    solve: Callable[[Blocks], Any]
    merge: Callable[[Statistics, Statistics], Statistics] = add_statistics


class Parts(Protocol):
    """Judgments in parts, each of which is a block of a fit and readable by itself; no query stands in two parts."""

    @property
    def n_parts(self) -> int:
        """Number of parts."""

    def part(self, number: int, /) -> Any:
        """Return the judgments of a part: items numbered within the part, annotators over all parts."""


class Executor(Protocol):
    """Runs a fit over the parts of judgments: in memory, streaming, or on a cluster, with the same bits."""

    def run(self, fit: BlockFit, parts: Parts) -> Any:
        """Return what ``fit.solve`` returns."""


@runtime_checkable
class Parted(Protocol):
    """An aggregator that can be fitted to judgments in parts."""

    def over_blocks(self, judged: Any, /, **given: Any) -> BlockFit:
        """Return the fit over blocks of judgments of which the facts (kind, annotators, levels) are given.

        Refuses at once what cannot be fitted in these blocks.
        """


def given_arguments(**values: Any) -> dict[str, Any]:
    """Return those of some arguments that were given, which are not ``None``."""
    return {name: value for name, value in values.items() if value is not None}


def expect_arguments(method: Any, names: Iterable[str], able: Callable[[str], list[str]] | None = None) -> None:
    """Refuse arguments that the ``fit`` of a method does not take; ``able`` gives the methods that take one."""
    for name in names:
        if not takes_argument(method, name):
            others = able(name) if able else []
            instead = f"use {' or '.join(others)}" if others else "choose another method"
            raise ParameterError(f"{method_label(method)} takes no {option(name)}; leave it out or {instead}")


LARGEST_PARAMETER, SMALLEST_PARAMETER = 1e12, 1e-30
"""Beyond these a parameter drowns all judgments, or is lost in rounding; squares and products of them stay finite."""

_LARGEST_COUNT = 2**31 - 1
_TAKES = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "None"}


def expect_parameters(method: Any) -> None:
    """Refuse a method whose parameters are of the wrong type, not finite, or too large or small to compute with.

    Every way to a fit comes through here; what else a parameter must be, the method itself checks.
    """
    if not dataclasses.is_dataclass(method):
        return
    try:
        hints = typing.get_type_hints(type(method))
    except NameError:  # a class of the user's own whose types are named only for a type checker
        hints = {}
    for field in dataclasses.fields(method):
        name, value = field.name, getattr(method, field.name)
        expect_type(name, value, hints.get(name, Any))
        for number in _numbers_in(value):
            whole = _is_a(number, int)
            if whole and name == "seed" and not 0 <= number < 2**63:
                raise ParameterError(f"seed={_cut(str(number))} must be a whole number from 0 to {2**63 - 1}")
            if whole and name != "seed" and abs(number) > _LARGEST_COUNT:
                shown = _cut(str(number))
                raise ParameterError(f"{name}={shown} is too large; at most {_LARGEST_COUNT} can be used")
            if not whole and not math.isfinite(number):
                raise ParameterError(f"{name}={number} is not finite; give a number")
            if not whole and number and not SMALLEST_PARAMETER <= abs(number) <= LARGEST_PARAMETER:
                able = f"sizes from {SMALLEST_PARAMETER:g} to {LARGEST_PARAMETER:g} can be, and 0"
                raise ParameterError(f"{name}={number:g} cannot be computed with; {able}")


def expect_type(name: str, value: Any, hint: Any) -> None:
    """Refuse a value that is not of the plain types that a parameter takes."""
    allowed = typing.get_args(hint) or (hint,)
    if all(kind in _TAKES for kind in allowed) and not any(_is_a(value, kind) for kind in allowed):
        takes = " or ".join(_TAKES[kind] for kind in allowed)
        raise ParameterError(f"{name}={_cut(repr(value))} is not of the right type; it takes {takes}")


def _cut(text: str) -> str:
    """Text as it stands in a message: cut where it is long."""
    return text if len(text) <= 80 else f"{text[:40]}...{text[-20:]}"


def _is_a(value: Any, kind: type) -> bool:
    """Whether a value is of a type, numpy's own numbers included; true and false are no numbers."""
    if kind in (int, float):
        number = numbers.Integral if kind is int else numbers.Real
        return isinstance(value, number) and not isinstance(value, bool | np.bool_)
    return isinstance(value, (bool, np.bool_) if kind is bool else kind)


def _numbers_in(value: Any) -> Iterator[Any]:
    """The numbers of a parameter, which may be a tuple of them."""
    if _is_a(value, float):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _numbers_in(one)


def method_name(method: Any) -> str:
    """Return the registry name of a method: the name of its class in snake_case.

    Examples
    --------
    >>> method_name(type("CrowdBT", (), {})()), method_name(type("EMElo", (), {})())
    ('crowd_bt', 'em_elo')
    """
    return snake_case(type(method).__name__)
