"""Who answers the requests of a campaign: a simulated crowd, or judgments that were recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from ..data.index import Index, Items
from ..data.intake import numeric_levels
from ..data.judgments import Grades, Judgments, Preferences
from ..data.proposals import ANYBODY, UNLIMITED, Requests, Roster
from ..errors import JudgmentError
from ..protocols import Bools, Counts, Floats, Ints
from ..schemes.buying import thing_keys
from .known import Known, annotator_index
from .pools import Pool


class Answers(NamedTuple):
    """Answers to requests: which of the judgments asked for each one is, who gave it, and what it says."""

    unit: Counts
    annotator: Ints
    value: Floats


class Answerers(Protocol):
    """Those who answer."""

    kind: str
    items: Items
    annotators: Index

    def roster(self, price: float) -> Roster | None:
        """Return who can be asked by name, ``None`` where annotators come as they come."""
        ...

    def askable(self) -> tuple[Bools, tuple[Ints, Ints] | None]:
        """Return which items may still be asked about, and which pairs, ``None`` for all of them."""
        ...

    def answer(self, requests: Requests, asked: Asked, rng: np.random.Generator) -> Answers:
        """Return answers to what is asked for; what nobody can answer has none."""
        ...


@dataclass(eq=False)
class Asked:
    """What was answered so far, in the order it was asked."""

    kind: str
    items: Items
    annotators: Index
    levels: tuple[object, ...] | None
    nominal: bool = False
    things: dict[str, Ints] = field(default_factory=dict)
    annotator: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    value: Floats = field(default_factory=lambda: np.empty(0))
    cost: float = 0.0

    def __post_init__(self) -> None:
        words = ("item",) if self.kind == "grade" else ("left", "right")
        self.things = {word: np.empty(0, np.int32) for word in words}

    def __len__(self) -> int:
        return len(self.value)

    def add(self, requests: Requests, answers: Answers) -> None:
        """Take answers in, and pay for them."""
        row = requests.units()[answers.unit]
        for word, codes in self.things.items():
            self.things[word] = np.concatenate([codes, requests.things[word][row].astype(np.int32)])
        self.annotator = np.concatenate([self.annotator, answers.annotator])
        self.value = np.concatenate([self.value, answers.value])
        self.cost += float((requests.costs / np.maximum(requests.n_more, 1))[row].sum())

    def judgments(self) -> Judgments:
        """Return the answers as judgments, each with its number as the time."""
        shared = {
            "items": self.items, "annotators": self.annotators, "annotator": self.annotator,
            "time": np.arange(len(self), dtype=np.float64),
        }  # fmt: skip
        if self.kind == "grade":
            classes = {"declared": self.levels, "nominal": self.nominal}
            return Grades(item=self.things["item"], grade=self.value, **classes, **shared)  # type: ignore[arg-type]
        return Preferences(**self.things, outcome=self.value.astype(np.int8), **shared)  # type: ignore[arg-type]

    def keys(self) -> Counts:
        """Return a number for each thing and annotator that was answered."""
        return thing_keys(self.things, len(self.items)) * len(self.annotators) + self.annotator


class SimulatedCrowd:
    """A pool of annotators who judge a truth.

    Parameters
    ----------
    pool
        Who judges.
    truth
        What they judge, as for :func:`crowdrank.simulate.grades`.
    kind
        ``"grade"`` or ``"preference"``; by default the pool's usual one.
    chosen
        Whether a scheme may choose whom to ask; otherwise each annotator is drawn at random.
    seed
        Seed of what is fixed about the crowd.
    """

    def __init__(
        self, pool: Pool, truth: object, *, kind: str | None = None, chosen: bool = False, seed: int = 0
    ) -> None:
        self.kind = pool.kinds[0] if kind is None else kind
        pool.require(self.kind)
        known = Known.of(truth)
        self.pool, self.chosen = pool, chosen
        self.known = pool.prepare(known, np.random.default_rng(seed)) if self.kind == "grade" else known
        self.items, self.annotators = known.items, annotator_index(len(pool))
        self.levels = numeric_levels(known.levels) if self.kind == "grade" else None

    def roster(self, price: float) -> Roster | None:
        """Return all annotators at one price, if they may be chosen."""
        if not self.chosen:
            return None
        return Roster(self.annotators, np.full(len(self.pool), price), np.full(len(self.pool), UNLIMITED))

    def askable(self) -> tuple[Bools, tuple[Ints, Ints] | None]:
        """Return that everything may be asked about."""
        return np.ones(len(self.items), bool), None

    def answer(self, requests: Requests, asked: Asked, rng: np.random.Generator) -> Answers:
        """Return an answer to every request, by the annotator it names, or by one who has not judged the thing."""
        row = requests.units()
        things = {word: codes[row].astype(np.int32) for word, codes in requests.things.items()}
        key = thing_keys(things, len(self.items))
        annotator = requests.annotator[row].astype(np.int32)
        open_to_all = np.flatnonzero(annotator == ANYBODY)
        annotator[open_to_all] = _draw_annotators(key[open_to_all], asked.keys(), len(self.pool), rng)
        unit = np.flatnonzero(annotator != ANYBODY)
        who = annotator[unit]
        if self.kind == "grade":
            value = self.known.levels[self.pool.draw_grades(self.known, things["item"][unit], who, rng)]
        else:
            left, right = things["left"][unit], things["right"][unit]
            value = self.pool.draw_preferences(self.known, left, right, who, rng).astype(np.float64)
        return Answers(unit, who, value)


def _draw_annotators(key: Counts, taken: Counts, n_annotators: int, rng: np.random.Generator) -> Ints:
    """An annotator for each thing, drawn among those who have not judged it; ``ANYBODY`` where all have."""
    busy = set(taken.tolist())
    annotators = np.full(len(key), ANYBODY, np.int32)
    for place, thing in enumerate((key * n_annotators).tolist()):
        for _ in range(8):
            who = int(rng.integers(n_annotators))
            if thing + who not in busy:
                break
        else:
            free = [one for one in range(n_annotators) if thing + one not in busy]
            if not free:
                continue
            who = free[int(rng.integers(len(free)))]
        busy.add(thing + who)
        annotators[place] = who
    return annotators


class Recorded:
    """Judgments that exist, given out in random order; an annotator answers only what they answered.

    Parameters
    ----------
    judgments
        Grades or preferences, items judged several times over among them.
    seed
        Seed of the order in which they are given out.
    """

    def __init__(self, judgments: Judgments, *, seed: int = 0) -> None:
        if not isinstance(judgments, Grades | Preferences):
            raise JudgmentError(f"a campaign replays grades or preferences, not {judgments.kind}s; choose others")
        self.kind, self.items = judgments.kind, judgments.items
        n = len(judgments)
        self.annotators = judgments.annotators if judgments.n_annotators else annotator_index(n)
        self.levels = judgments.levels if isinstance(judgments, Grades) else None
        self.nominal = isinstance(judgments, Grades) and judgments.nominal
        order = np.random.default_rng(seed).permutation(n)
        self.annotator = (judgments.annotator if judgments.n_annotators else np.arange(n, dtype=np.int32))[order]
        words = ("item",) if self.kind == "grade" else ("left", "right")
        self.things = {word: getattr(judgments, word)[order] for word in words}
        self.value = (judgments.grade if isinstance(judgments, Grades) else judgments.outcome)[order].astype(np.float64)
        key = thing_keys(self.things, len(self.items))
        by_thing = np.argsort(key, kind="stable")
        self._keys, self._starts = np.unique(key[by_thing], return_index=True)
        self._rows, self._ends = by_thing, np.append(self._starts[1:], n)
        self._given = np.zeros(len(self._keys), np.int64)

    def roster(self, price: float) -> Roster | None:
        """Return nobody: who answers is what was recorded."""
        return None

    def askable(self) -> tuple[Bools, tuple[Ints, Ints] | None]:
        """Return the items, or pairs, of which judgments are left."""
        left = self._given < self._ends - self._starts
        rows = self._rows[self._starts[left]]
        mask = np.zeros(len(self.items), bool)
        for codes in self.things.values():
            mask[codes[rows]] = True
        return mask, None if self.kind == "grade" else (self.things["left"][rows], self.things["right"][rows])

    def answer(self, requests: Requests, asked: Asked, rng: np.random.Generator) -> Answers:
        """Return the next recorded judgment of each thing that is asked about, as long as there are any."""
        row = requests.units()
        things = {word: codes[row].astype(np.int32) for word, codes in requests.things.items()}
        key = thing_keys(things, len(self.items))
        place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        recorded = np.flatnonzero(self._keys[place] == key)
        chosen, unit = [], []
        for number, thing in zip(recorded.tolist(), place[recorded].tolist(), strict=True):
            at = self._starts[thing] + self._given[thing]
            if at < self._ends[thing]:
                self._given[thing] += 1
                chosen.append(int(self._rows[at]))
                unit.append(number)
        rows, units = np.array(chosen, np.int64), np.array(unit, np.int64)
        value = self.value[rows]
        if self.kind == "preference":
            # asked with the other item on the left, the answer has the other sign
            value = np.where(things["left"][units] == self.things["left"][rows], value, -value)
        return Answers(units, self.annotator[rows], value)
