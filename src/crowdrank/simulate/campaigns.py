"""A labelling scheme played through, round by round, to see what its judgments are worth."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.features import Features
from ..data.intake import numeric_levels
from ..data.judgments import Grades, Judgments, Preferences
from ..data.proposals import ANYBODY, UNLIMITED, Requests, Roster
from ..data.truth import Truth
from ..errors import DataWarning, JudgmentError, ParameterError
from ..metrics.measures import parse
from ..protocols import Bools, Counts, Floats, Ints, Progress, method_name
from ..quality import fit_quietly
from ..schemes.grade_rules import KOverlap
from ..schemes.situation import Situation, thing_keys
from ..wording import option
from .known import Known, LatentTruth, annotator_index
from .pools import Pool

LABEL_MEASURES = ("accuracy", "log_loss", "gain_error")
"""What labels themselves are measured by; any measure of a ranking may be named besides."""

USUAL = {"grade": ("gain_error", "ndcg@10", "tau"), "preference": ("tau",), "class": ("accuracy", "log_loss")}
"""Kind of judgment -> what a campaign measures by default."""

_USUAL_AGGREGATORS = {"grade": "mean_gain", "preference": "latent_score", "class": "dawid_skene"}

_AGGREGATORS = {
    "bradley_terry": "pairs.bradley_terry:BradleyTerry",
    "dawid_skene": "classes.dawid_skene:DawidSkene",
    "latent_score": "latent_score.latent_score:LatentScore",
    "mean_gain": "averages.mean_grade:MeanGain",
}
"""Aggregators that schemes go by, or that measure what was bought, as the registry, which stands above, has them."""

_THINGS = {"grade": ("item",), "preference": ("left", "right")}

_N_ROUNDS, _N_TRIES = 20, 8
_MIN_PROBABILITY = 1e-6


@dataclass(frozen=True, eq=False)
class Trained:
    """A ranker to train on what was bought, and what to measure it on.

    Parameters
    ----------
    ranker
        A ranker; a copy is fitted in every round.
    features
        Features of the items that are judged.
    test
        Features with true grades of other queries.
    k
        Places that nDCG counts.
    """

    ranker: Any
    features: Features
    test: Features
    k: int = 10


@dataclass(frozen=True, eq=False)
class Campaign:
    """A scheme that was played through.

    Parameters
    ----------
    scheme
        Its name.
    curve
        One row per round: round, cost, n_judgments, and each measure.
    judgments
        All that was bought, in order.
    stopped
        Why it ended.
    """

    scheme: str
    curve: pl.DataFrame
    judgments: Judgments
    stopped: str

    def __repr__(self) -> str:
        last = self.curve.row(-1, named=True)
        return f"Campaign({self.scheme}: {last['n_judgments']:,} judgments, cost {last['cost']:g}; {self.stopped})"


def campaign(
    scheme: Any,
    pool: Pool | Judgments | Answerers,
    truth: Any,
    budget: float,
    *,
    aggregator: Any = None,
    measures: Sequence[str] | None = None,
    n_rounds: int = _N_ROUNDS,
    price: float = 1.0,
    chosen: bool = False,
    trained: Trained | None = None,
    name: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Campaign:
    """Return the learning curve of a scheme: what it bought in each round, and how good the consensus then is.

    Parameters
    ----------
    scheme
        A scheme, such as ``crowdrank.schemes.IfGoodK(k=3)``.
    pool
        Who answers: simulated annotators, or recorded judgments, which are given out in random order.
    truth
        What simulated annotators judge, and what is measured against.
    budget
        What may be spent.
    aggregator
        Makes a consensus of what was bought, which is measured; by default ``mean_gain`` of grades, ``latent_score`` of
        preferences and ``dawid_skene`` of classes without an order.
    measures
        ``"accuracy"``, ``"log_loss"`` (of the true grade) and ``"gain_error"`` (root mean square error of the gain) of
        labels, or measures of rankings such as ``"ndcg@10"`` and ``"tau"``.
    n_rounds
        Rounds that the budget is spent in, about equally.
    price
        What one judgment costs.
    chosen
        Whether the scheme may choose which simulated annotator to ask; otherwise they are drawn at random.
    trained
        A ranker to train in every round too, measured on other queries.
    name
        What to call the scheme.
    seed
        Seed of the answers and of whatever is random in the scheme.
    progress
        Called with (rounds done, rounds in all, the scheme).

    Notes
    -----
    Before anything is known, a scheme that needs a consensus buys its first round at random. A round asks only about
    what may still be asked: of recorded judgments, things that some are left of.

    Examples
    --------
    >>> from crowdrank.schemes import KOverlap
    >>> from crowdrank.simulate import normal
    >>> truth = {"item": list("abcdefgh"), "grade": [0, 0, 0, 1, 1, 2, 2, 3]}
    >>> bought = campaign(KOverlap(k=2), normal(0.8, 0.1, n_annotators=9), truth, budget=16, n_rounds=4)
    >>> bought.curve["n_judgments"].to_list()
    [4, 8, 12, 16]
    """
    if not budget > 0:
        raise ParameterError(f"{option('budget', budget)} buys nothing; give a budget above 0")
    if n_rounds < 1:
        raise ParameterError(f"{option('n_rounds', n_rounds)} must be at least 1")
    if isinstance(pool, SimulatedCrowd | Recorded):
        crowd: Answerers = pool
    elif isinstance(pool, Pool):
        crowd = SimulatedCrowd(pool, truth, chosen=chosen, seed=seed)
    elif chosen:
        raise ParameterError(f"recorded judgments are by those who gave them; leave {option('chosen', True)} out")
    else:
        crowd = Recorded(pool, seed=seed)
    if isinstance(truth, LatentTruth):
        known = truth.truth
    elif isinstance(truth, tuple):
        known = Truth("grade", truth[0], np.asarray(truth[1], np.float64))
    else:
        known = Truth.from_frame(truth)
    kind = "class" if crowd.nominal else crowd.kind
    measures = measures or (USUAL[kind] if known.form != "pairs" else ("preference_accuracy",))
    aggregator = _make_aggregator(_USUAL_AGGREGATORS[kind]) if aggregator is None else aggregator
    asked = Asked(crowd)
    called = method_name(scheme) if name is None else name
    rng, rows, stopped = np.random.default_rng(seed), [], ""
    for number in range(n_rounds):
        n_before, limit = len(asked), budget * (number + 1) / n_rounds
        # what nobody could answer is asked no more, and its money spent on something else
        for again in range(_N_TRIES):
            if limit - asked.cost < price * (1 - 1e-9):
                break
            judgments, (askable, pairs) = asked.judgments(), crowd.askable()
            proposer, needed = scheme, getattr(scheme, "needs", {}).get(crowd.kind)
            if needed is not None and not len(asked):
                proposer, needed = KOverlap(k=1), None
            given: dict[str, Any] = {"askable": askable, "pairs": pairs, "roster": crowd.roster(price), "price": price}
            # what there is to warn of when little is known was to be expected
            given["consensus"] = None if needed is None else fit_quietly(_make_aggregator(needed), judgments)
            given["features"] = None if trained is None else trained.features
            given |= {"budget": limit - asked.cost, "seed": seed + 7919 * number + again}
            requests = proposer.propose(Situation(judgments=judgments, **given))
            answers = crowd.answer(requests, asked, rng)
            if not len(answers.unit):
                stopped = f"nothing is left to ask ({requests.sentence()})"
                break
            asked.add(requests, answers)
        if len(asked) > n_before:
            judgments = asked.judgments()
            consensus = fit_quietly(aggregator, judgments)
            row = {"round": number + 1, "cost": asked.cost, "n_judgments": len(asked)}
            rows.append(row | {measure: _value(measure, consensus, known, judgments) for measure in measures})
            if trained is not None:
                rows[-1]["ranker"] = _train(judgments, aggregator, trained)
        elif limit - asked.cost >= price:
            break
        if progress is not None:
            progress(number + 1, n_rounds, called)
    if asked.cost > budget - price * (1 - 1e-9):
        stopped = "the budget is spent"
    if not rows:
        raise ParameterError(f"{option('budget', budget)} in {n_rounds} rounds buys no judgment at {price:g}; raise it")
    return Campaign(called, pl.DataFrame(rows), asked.judgments(), stopped)


def _make_aggregator(name: str) -> Any:
    """An aggregator by its name."""
    module, of_class = _AGGREGATORS[name].split(":")
    return getattr(import_module(f"..models.{module}", __package__), of_class)()


def _train(judgments: Judgments, aggregator: Any, trained: Trained) -> float:
    """The nDCG, on other queries, of a ranker trained on a consensus of what is known."""
    from ..models.staged.two_stage import TwoStage

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        fit = TwoStage(aggregator=aggregator, ranker=trained.ranker).fit(judgments, trained.features)
    test = trained.test
    assert test.grade is not None
    return float(np.nanmean(parse(f"ndcg@{trained.k}")(test.grade, fit.ranker.predict(test), test.items.query)))


def _value(measure: str, consensus: Consensus, truth: Truth, judgments: Judgments) -> float:
    """One measure of the consensus; of labels over all items with a truth, of rankings the mean over queries."""
    nominal, of_labels = isinstance(judgments, Grades) and judgments.nominal, measure in LABEL_MEASURES
    if nominal and measure not in USUAL["class"]:
        usual = " or ".join(USUAL["class"])
        raise ParameterError(f"{measure} needs an order, but these classes have none; use {usual}")
    parsed, query = None if of_labels else parse(measure), consensus.items.query
    if parsed is not None and parsed.needs == "pairs":
        left, right, outcome = truth.align_pairs(consensus.items)
        scores = np.column_stack([consensus.scores[left], consensus.scores[right]])
        return float(np.nanmean(parsed(outcome, scores, query[left])))
    if of_labels and not isinstance(judgments, Grades):
        raise ParameterError(f"{measure} applies to grades, but preferences are asked for; name another measure")
    grade = truth.align(consensus.items)
    use = np.isfinite(grade)
    if parsed is not None:
        return float(np.nanmean(parsed(grade[use], consensus.scores[use], query[use])))
    assert isinstance(judgments, Grades)
    if measure == "gain_error":
        gains = consensus.scores
        if consensus.method != "mean_gain":
            known = consensus.probabilities
            gains = np.exp2(gains) - 1 if known is None else known @ (np.exp2(judgments.level_values) - 1)
        return float(np.sqrt(np.mean((gains[use] - (np.exp2(grade[use]) - 1)) ** 2)))
    if consensus.grade is None or consensus.probabilities is None:
        raise ParameterError(f"{measure} needs a class method, such as dawid_skene, as the aggregator")
    # codes of the true grades among the levels; of classes without an order by their names, -1 where nobody gave one
    if not nominal:
        true = np.searchsorted(judgments.level_values, grade[use])
    else:
        codes = {str(level): code for code, level in enumerate(judgments.levels)}
        true = np.array([codes.get(name, -1) for name in truth.labels(grade[use]).to_list()], np.int64)
    if measure == "accuracy":
        return float(np.mean(consensus.grade[use] == true))
    given = np.where(true >= 0, consensus.probabilities[use][np.arange(len(true)), true], 0.0)
    return float(-np.mean(np.log(np.maximum(given, _MIN_PROBABILITY))))


class Answers(NamedTuple):
    """Answers to requests: which of the judgments asked for each one is, who gave it, and what it says."""

    unit: Counts
    annotator: Ints
    value: Floats


class Asked:
    """What a crowd answered so far, in the order it was asked."""

    def __init__(self, crowd: Answerers) -> None:
        self.crowd, self.cost = crowd, 0.0
        self.things = {word: np.empty(0, np.int32) for word in _THINGS[crowd.kind]}
        self.annotator, self.value = np.empty(0, np.int32), np.empty(0)

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
        crowd, number = self.crowd, np.arange(len(self), dtype=np.float64)
        shared: dict[str, Any] = {"items": crowd.items, "annotators": crowd.annotators, **self.things, "time": number}
        shared["annotator"] = self.annotator
        if crowd.kind == "grade":
            return Grades(grade=self.value, declared=crowd.levels, nominal=crowd.nominal, **shared)
        return Preferences(outcome=self.value.astype(np.int8), **shared)

    def keys(self) -> Counts:
        """Return a number for each thing and annotator that was answered."""
        return thing_keys(self.things, len(self.crowd.items)) * len(self.crowd.annotators) + self.annotator


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

    nominal = False

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
        # drawn among those who have not judged the thing
        n, busy = len(self.pool), set(asked.keys().tolist())
        for place, thing in zip(open_to_all.tolist(), (key[open_to_all] * n).tolist(), strict=True):
            for _ in range(8):
                who = int(rng.integers(n))
                if thing + who not in busy:
                    break
            else:
                free = [one for one in range(n) if thing + one not in busy]
                if not free:
                    continue
                who = free[int(rng.integers(len(free)))]
            busy.add(thing + who)
            annotator[place] = who
        unit = np.flatnonzero(annotator != ANYBODY)
        asked_of = annotator[unit]
        if self.kind == "grade":
            value = self.known.levels[self.pool.draw_grades(self.known, things["item"][unit], asked_of, rng)]
        else:
            left, right = things["left"][unit], things["right"][unit]
            value = self.pool.draw_preferences(self.known, left, right, asked_of, rng).astype(np.float64)
        return Answers(unit, asked_of, value)


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
        self.things = {word: getattr(judgments, word)[order] for word in _THINGS[self.kind]}
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
        rows = self._rows[self._starts[self._given < self._ends - self._starts]]
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
        chosen = []
        for number, thing in zip(recorded.tolist(), place[recorded].tolist(), strict=True):
            at = self._starts[thing] + self._given[thing]
            if at < self._ends[thing]:
                self._given[thing] += 1
                chosen.append((self._rows[at], number))
        rows, units = np.array(chosen, np.int64).reshape(-1, 2).T
        value = self.value[rows]
        if self.kind == "preference":
            # asked with the other item on the left, the answer has the other sign
            value = np.where(things["left"][units] == self.things["left"][rows], value, -value)
        return Answers(units, self.annotator[rows], value)


Answerers: TypeAlias = SimulatedCrowd | Recorded
"""Those who answer."""
