"""The methods of the paper as they are run here, the crowds they are given and how they are measured."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import polars as pl

from crowdrank.api import aggregate
from crowdrank.data.consensus import Consensus
from crowdrank.data.index import Index
from crowdrank.data.judgments import Grades, Preferences
from crowdrank.io.notices import collect_notices
from crowdrank.metrics import parse
from crowdrank.protocols import Counts, Floats, Ints

from ..outcomes import Row
from ..work import Work
from .niu_figures import MEASURES

AnyJudged = TypeVar("AnyJudged", bound=Grades | Preferences)

PerQuery = Mapping[str, Floats]
"""Measure -> its value for each query."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """A method as it is run here.

    Parameters
    ----------
    name
        As the tables show it.
    method, params
        Name and parameters of the aggregator; ``None`` leaves all items tied.
    from_grades
        Whether it is given grades where there are any; else preferences.
    pooled
        Whether an annotator is the same one in all queries.
    drawn
        Whether chance has a part in it.
    """

    name: str
    method: str | None
    params: Mapping[str, Any] = field(default_factory=dict)
    from_grades: bool = False
    pooled: bool = False
    drawn: bool = False

    def seeds(self, work: Work) -> range:
        """Seeds to run it with."""
        return work.seeds(quick=1, default=5) if self.drawn else range(1)


_LOGISTIC = {"model": "logistic"}
"""MPM given the pairs: they were chosen for the annotators, so which there are tells nothing of the items."""


def listwise(name: str, measure: str, gap: str, quality: str, *, pooled: bool = False) -> Way:
    """Return CrowdAgg with a rule for contests and one for quality."""
    params = {"gap": gap, "quality": quality, "per_query": not pooled}
    return Way(name=name, method=f"crowdagg-{measure}", params=params, from_grades=True, pooled=pooled)


def table_2(gap: str) -> list[Way]:
    """Return the eight methods of table 2, CrowdAgg with Eq. 6 read as ``gap`` and quality as the paper learns it."""
    return [
        Way(name="CondorcetFuse", method="condorcet", drawn=True),
        Way(name="GreedyOrder", method="greedy_order"),
        Way(name="BradleyTerry", method="bradley_terry"),
        Way(name="MPM", method="multinomial_preference"),
        Way(name="Crowd-BT", method="crowd_bt"),
        Way(name="EMEloRating", method="em-elo-paper", drawn=True),
        listwise("CrowdAgg-NDCG", "ndcg", gap, "paper"),
        listwise("CrowdAgg-RBP", "rbp", gap, "paper"),
    ]


LITERAL, NONE, HELD, POOLED = (
    f"CrowdAgg-NDCG, {how}" for how in ("Eq. 6 as printed", "no quality", "held-out quality", "held out, pooled")
)


STEPPED = {
    "BradleyTerry": "BradleyTerry, printed steps",
    "MPM": "MPM, printed steps",
    "Crowd-BT": "Crowd-BT, printed steps",
}
"""Method -> the same by gradient steps at the printed rate."""


def variants(gap: str, mpm_rate: float) -> list[Way]:
    """Return what the paper lacks: Eq. 6 as it stands, other ways to learn quality, and simple methods.

    ``mpm_rate`` is the learning rate that is printed for MPM on this crowd.
    """
    return [
        Way(name="random order", method=None),
        Way(name=STEPPED["BradleyTerry"], method="bt-paper"),
        Way(name=STEPPED["MPM"], method="mpm-paper", params={"learning_rate": mpm_rate}),
        Way(name=STEPPED["Crowd-BT"], method="crowd-bt-paper"),
        listwise(LITERAL, "ndcg", "printed", "paper"),
        listwise(NONE, "ndcg", gap, "none"),
        listwise(HELD, "ndcg", gap, "held_out"),
        listwise("CrowdAgg-RBP, held-out quality", "rbp", gap, "held_out"),
        listwise(POOLED, "ndcg", gap, "held_out", pooled=True),
        Way(name="Crowd-BT, pooled", method="crowd_bt", pooled=True),
        Way(name="MPM, pooled", method="multinomial_preference", pooled=True),
        Way(name="MPM, logistic", method="multinomial_preference", params=_LOGISTIC),
        Way(name="EMEloRating, one coin", method="em_elo", drawn=True),
        Way(name="Borda", method="borda", from_grades=True),
    ]


GRADED = [
    Way(name="mean grade", method="mean_grade", from_grades=True),
    Way(name="Dawid-Skene, pooled", method="dawid_skene", from_grades=True, pooled=True),
]
"""Methods for grades, which the paper leaves out."""

WITHOUT = {
    "MPM": Way(name="MPM-eq", method="multinomial_preference", params={"alpha": 1e8}),
    "Crowd-BT": Way(name="Crowd-BT-eq", method="bradley_terry", params={"ridge": 0.25}),
    "EMEloRating": Way(name="EMEloRating-eq", method="elo", params={"k": 32.0}),
    "CrowdAgg-NDCG": listwise("CrowdAgg-NDCG-eq", "ndcg", "hard", "none"),
}
"""Method -> the same with everybody taken alike, as in figure 1: adherence 1, eta 1, all preferences to Elo."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Judgments of a crowd, in the forms that methods take, and the truth of each item, NaN where there is none.

    ``others_count`` tells whether items without truth are measured too, as not relevant, which is what trec_eval does.
    """

    judgments: Grades | Preferences
    truth: Floats
    others_count: bool = False

    @property
    def query(self) -> Ints:
        """Query of each item."""
        return self.judgments.items.query

    @cached_property
    def n_annotators(self) -> Counts:
        """Number of annotators of each query, also of those who decided nothing."""
        judged = apart(self.judgments)
        query = np.zeros(judged.n_annotators, np.int32)
        query[judged.annotator] = self.query[_first_item(judged)]
        return np.bincount(query, minlength=judged.n_queries)

    @cached_property
    def strict(self) -> Preferences:
        """Preferences without ties, which the paper takes for no answer."""
        return self.judgments.as_preferences(ties=False)

    @cached_property
    def strict_apart(self) -> Preferences:
        """The same with annotators of different queries taken as different ones."""
        return apart(self.strict)

    @cached_property
    def forms(self) -> dict[tuple[bool, bool], Grades | Preferences]:
        """(from grades, pooled) -> what such a method is given."""
        forms: dict[tuple[bool, bool], Grades | Preferences] = {
            (False, True): self.strict,
            (False, False): self.strict_apart,
            (True, True): self.strict,
            (True, False): self.strict_apart,
        }
        if isinstance(self.judgments, Grades):
            forms |= {(True, True): self.judgments, (True, False): apart(self.judgments)}
        return forms

    def consensus(self, way: Way, seed: int) -> Consensus:
        """What a method makes of the crowd."""
        assert way.method is not None
        with warnings.catch_warnings(), collect_notices():
            # items that few preferences reach, and quality near chance, are what the paper's data are like
            warnings.simplefilter("ignore")
            return aggregate(self.forms[way.from_grades, way.pooled], way.method, params=way.params, seed=seed)

    def scores(self, way: Way, seed: int) -> Floats:
        """Scores of all items."""
        return np.zeros(len(self.truth)) if way.method is None else self.consensus(way, seed).scores

    def measure(self, scores: Floats, names: Sequence[str] = tuple(MEASURES)) -> dict[str, Floats]:
        """Measures for each query, on the items with truth; or on all of them, those without counted as 0."""
        known = np.isfinite(self.truth) | self.others_count
        truth, scores, query = np.nan_to_num(self.truth[known], nan=0.0), scores[known], self.query[known]
        return {name: parse(MEASURES[name])(truth, scores, query) for name in names}


def apart(judgments: AnyJudged) -> AnyJudged:
    """Return the judgments with annotators of different queries taken as different ones, as the paper does."""
    query = judgments.items.query_ids().gather(_first_item(judgments)).cast(pl.String)
    names = query + " " + judgments.annotators.ids.gather(judgments.annotator).cast(pl.String)
    annotators = Index.of(names)
    return replace(judgments, annotators=annotators, annotator=annotators.codes(names))


def _first_item(judgments: Grades | Preferences) -> Ints:
    """An item of each judgment."""
    return judgments.item if isinstance(judgments, Grades) else judgments.left


def run(work: Work, crowd: Crowd, ways: Sequence[Way], setting: str) -> dict[str, PerQuery]:
    """Return method -> measure -> value for each query, the mean over seeds where chance has a part."""
    return run_both(work, crowd, ways, setting)[0]


def run_both(
    work: Work, crowd: Crowd, ways: Sequence[Way], setting: str
) -> tuple[dict[str, PerQuery], dict[str, PerQuery]]:  # fmt: skip
    """Return the same as ``run``, and with items without truth counted as not relevant."""
    measured: tuple[dict[str, PerQuery], dict[str, PerQuery]] = ({}, {})
    for way in ways:
        cells = [
            work.cell((setting, way.name, seed), partial(_measure_method, crowd, way, seed)) for seed in way.seeds(work)
        ]
        for by_method, part in zip(measured, ("known", "everything"), strict=True):
            by_method[way.name] = {name: np.mean([cell[part][name] for cell in cells], axis=0) for name in MEASURES}
    return measured


def _measure_method(crowd: Crowd, way: Way, seed: int) -> dict[str, dict[str, Floats]]:
    """All measures of a method, on the items with truth and on all."""
    scores = crowd.scores(way, seed)
    return {"known": crowd.measure(scores), "everything": replace(crowd, others_count=True).measure(scores)}


def n_cells(work: Work, ways: Sequence[Way]) -> int:
    """Return how many cells a run of these methods has."""
    return sum(len(way.seeds(work)) for way in ways)


def table_rows(
    place: str, measured: Mapping[str, PerQuery], printed: Mapping[str, Mapping[str, float]], **what: str
) -> list[Row]:
    """Return a row for each method and measure, beside what the paper prints."""
    return [
        Row(
            place=place, what={**what, "method": method, "measure": measure}, values=tuple(values.tolist()),
            paper=printed.get(method, {}).get(measure), over="queries",
        )
        for method, measures in measured.items()
        for measure, values in measures.items()
    ]  # fmt: skip


def p_greater(first: Floats, second: Floats) -> float:
    """Return the one-tailed p value of a paired t test that the first is larger; 1 where they never differ."""
    from scipy.stats import ttest_rel

    return 1.0 if np.allclose(first, second) else float(ttest_rel(first, second, alternative="greater").pvalue)
