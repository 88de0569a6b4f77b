"""Simulated collections in place of the paper's own, which nobody else can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from crowdrank.data.features import Features
from crowdrank.data.judgments import Grades
from crowdrank.protocols import Floats
from crowdrank.simulate import (
    Corpus,
    LatentTruth,
    PerItem,
    Pool,
    draw_corpus,
    draw_truth,
    false_bad,
    false_good,
    grades,
    growing,
    profile,
    symmetric,
)

from .settings import AVERAGED, BASELINE, COPIED, MORE, NINE, TRUTH, averaged_name

N_ANNOTATORS, PANEL = 120, 11
"""Annotators in all, and for each query."""

NOISES: Mapping[str, Callable[[int], Pool]] = {
    "matched": lambda seed: profile(noise=0.65, shift=-0.15, n_annotators=N_ANNOTATORS, seed=seed),
    "profile": lambda seed: profile(n_annotators=N_ANNOTATORS, seed=seed),
    "false Good": lambda seed: false_good(n_annotators=N_ANNOTATORS),
    "grows with relevance": lambda seed: growing(n_annotators=N_ANNOTATORS),
    "symmetric": lambda seed: symmetric(n_annotators=N_ANNOTATORS),
    "false Bad": lambda seed: false_bad(n_annotators=N_ANNOTATORS),
}
"""How annotators err: each with a bias and scale of their own, as noisy and as strict as table 6 has them, or less so;
now and then far too high; the more, the better the
item; up and down alike; now and then far too low."""

MAIN = "matched"
"""The noise that stands for the paper's annotators: profiles, which make featured ones, with a noise and a mean shift
at which, as table 6 implies, 21 % of first grades are Good+ and 53 % of second ones after such a first. Of a grid of 11
noises and 13 shifts they are the nearest to that, found without any ranker."""

NOISY = ("false Good",)
"""Further noise for rankers, by default; it is what the paper argues from."""


@dataclass(frozen=True)
class Collection:
    """One collection.

    Parameters
    ----------
    name
        As in the paper.
    n_train, n_test
        Queries for training and for testing.
    n_items
        Items of a query.
    explained
        How much of the relevance features tell of.
    function
        Which relevance function.
    settings
        Those that are compared on it.
    """

    name: str
    n_train: int
    n_test: int
    n_items: int
    explained: float
    function: int
    settings: tuple[str, ...]

    def draw(self, noise: str, seed: int, n_vali: int) -> Drawn:
        """Return one repetition: new queries, new annotators, and an order in which grades are asked for."""
        train, vali, test = (
            draw_corpus(n, self.n_items, explained=self.explained, function=self.function, seed=_seed(self, seed, part))
            for part, n in enumerate((self.n_train, n_vali, self.n_test))
        )
        asked = in_order(train.truth, noise, _seed(self, seed, 3))
        return Drawn(train, asked, vali.features, test.features, _single(test, noise, _seed(self, seed, 6)))

    def draw_grades(self, n_queries: int, noise: str, seed: int) -> tuple[Grades, Floats]:
        """Return grades alone, of this many queries, and the truth of each item."""
        truth = draw_truth(n_queries, self.n_items, seed=_seed(self, seed, 4))
        grades = in_order(truth, noise, _seed(self, seed, 5))
        return grades, truth.truth.align(grades.items)


@dataclass(frozen=True, eq=False)
class Drawn:
    """One repetition: training items with their grades in the order asked, and true grades to choose and measure by.

    ``single`` are grades of the test items by one annotator each, to measure by in their place.
    """

    train: Corpus
    grades: Grades
    vali: Features
    test: Features
    single: Floats

    @property
    def training_features(self) -> Features:
        """Features of the training items, without the truth."""
        return replace(self.train.features, grade=None)


def _single(corpus: Corpus, noise: str, seed: int) -> Floats:
    """Grade of each item by one annotator."""
    drawn = grades(corpus.truth, NOISES[noise](seed), PerItem(k=1), seed=seed).judgments
    assert isinstance(drawn, Grades)
    single = np.zeros(len(corpus.features))
    single[corpus.features.match(drawn)[drawn.item]] = drawn.grade
    return single


def _seed(collection: Collection, seed: int, part: int) -> int:
    """A seed of its own for each part of each repetition."""
    return 1000 * seed + 10 * part + collection.function


def in_order(truth: LatentTruth, noise: str, seed: int) -> Grades:
    """Return eleven grades of each item by one panel a query, in random order."""
    drawn = grades(truth, NOISES[noise](seed), PerItem(k=PANEL, panel=PANEL), seed=seed).judgments
    assert isinstance(drawn, Grades)
    return shuffle_grades(drawn, seed)


def shuffle_grades(grades: Grades, seed: int) -> Grades:
    """Return the grades in a random order, which stands for the order in which they are asked for."""
    return replace(grades.select(np.random.default_rng(seed).permutation(len(grades))), time=None)


_WHOLE = (*NINE, *MORE, *AVERAGED, *COPIED, TRUTH)
_PLUS = (
    BASELINE,
    "If-good-2",
    "If-good-3",
    "If-good-x3",
    averaged_name("If-good-2"),
    averaged_name("If-good-3"),
    "If-good-2, plain copies",
    "If-good-3, plain copies",
    TRUTH,
)
_SOME = (
    *NINE, "If-good-2", averaged_name("If-good-3"), averaged_name("3-overlap"), averaged_name("Good-till-bad"), TRUTH,
)  # fmt: skip

CLEAN07 = Collection("Clean07", 400, 2000, 19, 0.65, 0, _WHOLE)
CLEAN08 = Collection("Clean08", 300, 2000, 19, 0.55, 1, _WHOLE)
CLEAN_PLUS = Collection("Clean+", 160, 1000, 50, 0.65, 2, _PLUS)
"""What stands for the three collections: features that tell less in Clean08, longer queries in Clean+."""

COLLECTIONS = (CLEAN07, CLEAN08, CLEAN_PLUS)

PRINTED_SIZES = {"Clean07": (2071, 5207), "Clean08": (1563, 7260), "Clean+": (1000, 11898)}
"""Training and test queries of the paper."""


def resize(collection: Collection, scope: str, noise: str) -> Collection:
    """Return the collection as large as the scope wants it, with the settings that are compared under a noise."""
    settings = collection.settings if noise == MAIN else _SOME
    if scope == "quick":
        collection = replace(collection, n_train=40, n_test=100, n_items=19)
        keep = {
            *NINE,
            "If-good-2",
            averaged_name("If-good-2"),
            averaged_name("If-good-3"),
            averaged_name("3-overlap"),
            *COPIED,
            TRUTH,
        }
        settings = tuple(name for name in settings if name in keep)
    if scope == "full":
        n_train, n_test = PRINTED_SIZES[collection.name]
        collection = replace(collection, n_train=n_train, n_test=n_test)
    return replace(collection, settings=settings)


def draw_when_wanted(collection: Collection, noise: str, seed: int, n_vali: int) -> Callable[[], Drawn]:
    """Return what draws the repetition when it is first wanted, and keeps it."""
    return cache(lambda: collection.draw(noise, seed, n_vali))
