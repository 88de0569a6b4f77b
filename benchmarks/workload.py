"""What a workload is: data, sides to time, floors to reach.

Nothing here imports more than the standard library, and workloads import numpy, polars and peers inside functions only:
the process that starts the others has to stay small, because Linux counts its memory into the peak of those it starts.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Size = Mapping[str, int]
"""Named counts, such as ``n_items``."""

REPEATS = 3
"""Every side is timed so often, and its best time counts."""

PACKAGES = {"crowdkit": "crowd-kit==1.4.2", "sklearn": "scikit-learn"}
"""Module -> what pip calls it, where the two differ."""


@dataclass(frozen=True)
class Call:
    """A side that is timed hot: one process, one call to warm up, then each repetition on request.

    ``setup(folder, size)`` returns the call to time; ``figure(result, folder)`` is read off the last result, untimed.
    """

    title: str
    setup: Callable[[Path, Size], Callable[[], Any]]
    figure: Callable[[Any, Path], float] | None = None


@dataclass(frozen=True)
class Command:
    """A side that is timed cold: a whole Python command, in a fresh process each time.

    ``arguments(folder)`` follow the name of the Python program and ``environment(folder)`` adds to the variables; both
    are asked anew for every repetition. With ``warm_up`` there is one run more, whose time does not count.
    """

    title: str
    arguments: Callable[[Path], list[str]]
    environment: Callable[[Path], dict[str, str]] = lambda folder: {}
    warm_up: bool = True


@dataclass(frozen=True)
class Peer:
    """A side like :class:`Call`, in an interpreter of its own: a peer whose pins are not ours.

    ``module`` and ``package`` are what it needs there; :mod:`benchmarks.pinned_peers` has the call by the side's name.
    """

    title: str
    module: str
    package: str


@dataclass(frozen=True)
class Measured:
    """What a side took: best seconds by the clock, best seconds of all cores, peak memory of its process in bytes, and
    how good its result is.

    On a busy machine the clock misleads more than the cores' own time, which is why that is kept too.
    """

    seconds: float
    cpu: float
    times: tuple[float, ...]
    peak: int
    figure: float | None = None


@dataclass(frozen=True)
class Failed:
    """A side that could not be timed, and what it said."""

    reason: str


@dataclass(frozen=True)
class Floor:
    """A number made of the sides' measures, and the limit it has to keep; without a limit it is for information."""

    text: str
    value: Callable[[Mapping[str, Measured]], float]
    limit: float | None = None
    at_least: bool = False
    unit: str = ""
    sides: tuple[str, ...] = ()

    def reached(self, value: float) -> bool:
        """Whether a value keeps the limit."""
        return self.limit is None or (value >= self.limit if self.at_least else value <= self.limit)


@dataclass(frozen=True)
class Workload:
    """One thing that people wait for, done by us and by a peer.

    ``prepare(folder, size)`` makes the data in a process of its own. ``what`` is shown with the size filled in.
    ``figure`` names the accuracy figure, ``needs`` the modules without which the workload is skipped.
    """

    name: str
    what: str
    sizes: Mapping[str, Size]
    prepare: Callable[[Path, Size], None]
    sides: Mapping[str, Call | Command | Peer]
    floors: tuple[Floor, ...]
    figure: str = ""
    needs: tuple[str, ...] = ()

    def title(self, size: str) -> str:
        """Return what is done, with the numbers of this size."""
        return self.what.format(**self.sizes[size])

    def missing(self) -> str | None:
        """Return which modules are not installed and how to get them, or None."""
        absent = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if not absent:
            return None
        wanted = " ".join(f"'{PACKAGES.get(name, name)}'" for name in absent)
        return f"{', '.join(absent)} not installed; pip install {wanted}, or all peers with pip install -e '.[bench]'"


def faster(ours: str, peer: str, times: float | None, *, less: str | None = None) -> Floor:
    """So many times faster than a peer, from whose time that of a third side may be taken."""

    def value(sides: Mapping[str, Measured]) -> float:
        extra = 0.0 if less is None else sides[less].seconds
        return (sides[peer].seconds - extra) / sides[ours].seconds

    than = peer if less is None else f"{peer} less {less}"
    named = (ours, peer) if less is None else (ours, peer, less)
    return Floor(f"{ours} faster than {than}", value, times, True, "x", named)


def at_most_times(ours: str, base: str, times: float | None) -> Floor:
    """At most this many times the seconds of another side."""
    return Floor(
        f"{ours} by {base}", lambda sides: sides[ours].seconds / sides[base].seconds, times, False, "x", (ours, base)
    )


def seconds_beyond(ours: str, base: str, seconds: float) -> Floor:
    """At most this many seconds more than another side."""
    return Floor(
        f"{ours} beyond {base}",
        lambda sides: sides[ours].seconds - sides[base].seconds,
        seconds,
        False,
        "s",
        (ours, base),
    )


def seconds_under(side: str, seconds: float) -> Floor:
    """At most this many seconds."""
    return Floor(f"{side} in seconds", lambda sides: sides[side].seconds, seconds, False, "s", (side,))


def peak_under(side: str, gigabytes: float) -> Floor:
    """At most so much memory."""
    return Floor(f"{side} peak memory", lambda sides: sides[side].peak / 1e9, gigabytes, False, "GB", (side,))


def no_lower(ours: str, peer: str, by: float | None) -> Floor:
    """A figure that is below the peer's by no more than this."""
    return Floor(
        f"{ours} figure below {peer}'s by", lambda sides: _figure(sides[peer]) - _figure(sides[ours]), by, False, "",
        (ours, peer),
    )  # fmt: skip


def same(ours: str, peer: str, within: float) -> Floor:
    """A figure that differs from the peer's by no more than this."""
    return Floor(
        f"{ours} figure from {peer}'s by", lambda sides: abs(_figure(sides[peer]) - _figure(sides[ours])), within,
        False, "", (ours, peer),
    )  # fmt: skip


def _figure(side: Measured) -> float:
    """The side's accuracy figure, which has to be there."""
    if side.figure is None:
        raise ValueError("this side has no accuracy figure; give it one")
    return side.figure
