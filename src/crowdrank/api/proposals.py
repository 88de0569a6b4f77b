"""What to ask next, of whom, at what cost, and when to stop."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ..cluster.results import StoredConsensus, of_sample
from ..data.column_names import understand_items, understand_pairs
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.frames import to_frame
from ..data.index import NO_QUERY, Index
from ..data.judgments import Grades, Judgments, Preferences, with_items, with_pairs
from ..data.proposals import Price, Requests, Roster, price_of
from ..data.truth import Truth
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..io.sources import blaming
from ..io.tables import read_table
from ..io.truth import read_truth
from ..metrics.measures import parse
from ..protocols import Aggregator, Progress, method_name
from ..registry import label, make
from ..schemes.grade_rules import cost_table
from ..schemes.situation import Situation, check_limits, open_requests
from ..wording import did_you_mean, one_of, option
from .aggregation import aggregate, as_judgments, auto_scheme, check_aggregation, expect_one_kind, expect_taken
from .arguments import takes_arguments_of
from .in_parts import as_packed
from .sentences import words_of

PLAYED = ("single", "2-overlap", "if-good-3", "information")
"""Schemes that are played unless others are named."""


COSTED_SCHEMES = ("single", "if-good-2", "if-good-3", "3-overlap", "good_till_bad")
"""Schemes whose costs are compared unless others are named."""


def requests(
    judgments: Any,
    scheme: Any = "auto",
    items: Any = None,
    pool: Any = None,
    budget: float | None = None,
    *,
    goal: str | None = None,
    params: Mapping[str, Any] | None = None,
    price: Price | None = None,
    least_gain: float = 0.0,
    consensus: Consensus | StoredConsensus | str | Aggregator | None = None,
    features: Any = None,
    open: Any = None,
    kind: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Requests:
    """Return what :func:`propose` returns as a table: the requests, their cost, and the sentence that sums them up."""
    check_requests(scheme, params, goal, budget=budget, price=price, least_gain=least_gain, consensus=consensus)
    judged: Judgments
    if judgments is None:
        judged = _nothing_judged(items, one_of(kind or "preference", ("preference", "grade"), "kind"))
    elif kind is not None:
        raise ParameterError(f"{option('kind', kind)} goes with nothing judged yet; leave it out")
    else:
        judged = expect_one_kind(as_judgments(judgments), "propose")
    described = None
    if features is not None:
        if goal != "ranker":
            raise ParameterError(words_of("features_without_goal"))
        from .training import as_features

        described = as_features(features)
        described.match(judged)
    if isinstance(consensus, StoredConsensus):
        consensus = consensus.of_queries(judged.items.queries.ids)
    if isinstance(consensus, Consensus) and as_packed(judgments) is not None:
        consensus = of_sample(consensus, judged)
    notes: list[str] = []
    if isinstance(scheme, str) and scheme == "auto":
        scheme = "information"
        if goal != "ranker":
            choice = auto_scheme(judged)
            scheme = choice.method
            notes.append(f"scheme {label('scheme', scheme)}, since {choice.reason}")
    chosen = expect_taken(judged, make_scheme(scheme, params, goal, seed), family="scheme")
    listed = items if described is None or items is not None else described.items.frame()
    askable, pairs = judged.judged_items, None
    with _table(listed) as table:
        listed_pairs = with_pairs(judged, table) if isinstance(judged, Preferences) and table is not None else None
        if listed_pairs is not None:
            judged, pairs = listed_pairs
            askable = np.isin(np.arange(judged.n_items), np.concatenate(pairs))
        elif table is not None:
            judged, askable = with_items(judged, table)
    with _table(pool) as table:
        roster = table if table is None or isinstance(table, Roster) else Roster.from_frame(table, price=price)
    with _table(open) as table:
        asked_before = None if table is None else open_requests(judged, table)
    situation = Situation(
        judgments=judged, askable=askable, pairs=pairs, roster=roster, budget=budget, least_gain=least_gain, seed=seed,
        price=price_of(price, judged.kind) if roster is None else 1.0,
        open=asked_before, features=described,
    )  # fmt: skip
    alone = getattr(chosen, "begins_alone", False) and not judged.n_judgments
    needed: str | None = None if alone else getattr(chosen, "needs", {}).get(judged.kind)
    if needed is not None:
        if not judged.n_judgments:
            remedy = "begin with single or 3-overlap"
            raise ParameterError(f"{method_name(chosen)} chooses by the judgments so far, and there are none; {remedy}")
        if progress is not None:
            progress(0, 2, "finding the consensus")
        if not isinstance(consensus, Consensus):
            usual = "bradley_terry" if needed == "latent_score" and not judged.n_annotators else needed
            # what annotators get wrong alike is no reason to ask them more
            consensus = aggregate(judged, usual if consensus is None else consensus, seed=seed, shared="none")
        situation = replace(situation, consensus=consensus)
    if progress is not None:
        progress(1, 2, "choosing what to ask")
    proposed: Requests = chosen.propose(situation)
    notes += proposed.notes
    if listed is None:
        notes.append(f"only items that were judged already are asked about; list all with {option('items')}")
    name = label("scheme", scheme) if isinstance(scheme, str) else proposed.scheme
    return replace(proposed, scheme=name, notes=tuple(notes))


@takes_arguments_of(requests)
def propose(*args: Any, **given: Any) -> pl.DataFrame:
    """Return what to ask next: query, item (or left, right), annotator, n_more, reason, cost, expected_gain.

    The most urgent request comes first. No annotator is ever asked twice about the same thing.

    Parameters
    ----------
    judgments
        The judgments so far: grades or preferences; a frame, or a file's path. ``None`` where nothing is judged yet:
        pairs of ``items`` then come in rounds, in each of which every item stands once on either side.
    scheme
        Name of a scheme (``crowdrank methods`` lists them), such as ``"if-good-3"``, ``"2-overlap"`` or
        ``"information"``; or a scheme itself. ``"auto"`` takes one that fits the judgments, and says which and why.
    items
        Table or file of query and item: everything that may be asked about; or of query, left and right: the pairs that
        may be. Without it only items that were judged already are.
    pool
        Table or file of annotator [, price] [, capacity] [, group]: who can be asked, what one judgment of each costs,
        and how many each may be asked for. Without it requests leave open whom to ask.
    budget
        What may be spent; ``None`` for no limit.
    goal
        Of preferences: what the answers should decide in each query, its ``"order"`` (the default), which items are in
        its first places (``"top-5"``), or which is ``"best"``. Of grades ``"ranker"``: what changes the first ten
        places that are shown, in expected nDCG@10.
    params
        Parameters of the named scheme.
    price
        What one judgment costs where the pool has no prices, 1 by default; or prices by the pool's ``group``; or,
        where there is no pool, by kind of judgment, as in ``{"grade": 2, "preference": 1}``.
    least_gain
        The stop rule: nothing is asked that is expected to bring less than this for each unit of money; with the goal
        ``"ranker"`` that is nDCG@10 of its query.
    consensus
        For schemes that go by one: a consensus of the judgments, or the aggregator to find it, or its name; by default
        the scheme's own choice.
    features
        With the goal ``"ranker"``: features of items, or their file. Grades are then asked for that change what a
        ranker which learns from them would show in all queries, by the posterior of its weights, and without
        ``items`` any item with features may be asked about.
    open
        Table or file of query and item (or left and right) [, annotator] [, n_more]: what was asked for and has not
        come in yet. It is neither asked for nor paid again, and nobody who was asked is asked again.
    kind
        Where nothing is judged yet: ``"preference"`` (the default) or ``"grade"``, what is asked for.
    seed
        Seed of whatever is random, such as the choice between equally urgent things.
    progress
        Called with (steps done, steps in all, what is being done).

    Examples
    --------
    >>> votes = {"item": ["x", "y"], "annotator": ["ann", "ann"], "grade": [3, 0]}
    >>> propose(votes, "if-good-3", pool={"annotator": ["ann", "bob"], "price": [1, 2]}).rows()
    [('x', 'bob', 1, 'its first grade is 2 or better', 2.0, 17.29...)]
    """
    proposed = requests(*args, **given)
    say(proposed.sentence())
    for note in proposed.notes:
        say(note)
    return proposed.frame()


def check_requests(
    scheme: Any = "auto",
    params: Mapping[str, Any] | None = None,
    goal: str | None = None,
    *,
    budget: float | None = None,
    price: Price | None = None,
    least_gain: float = 0.0,
    consensus: Any = None,
) -> None:
    """Refuse what :func:`propose` would refuse of any judgments, before they are read."""
    if not isinstance(scheme, str) or scheme != "auto":
        make_scheme(scheme, params, goal, 0)
    elif goal is not None:
        make_scheme("information", None, goal, 0)
    if isinstance(consensus, str):
        check_aggregation(consensus)
    for one in price.values() if isinstance(price, Mapping) else [1.0 if price is None else price]:
        check_limits(budget, least_gain, one)


def scheme_costs(
    grades: Any, schemes: Sequence[str] = COSTED_SCHEMES, *, good_from: Any = 2, n_draws: int = 10, seed: int = 0
) -> pl.DataFrame:
    """Return what schemes would have cost on items that were graded several times over.

    The columns are scheme, and each of labelling (grades asked for an item), training (rows per item where each grade
    is a training row; a consensus gives 1) and ratio (rows below ``good_from`` for each one from there on): counted
    over random orders of each item's grades, and ``_exact``, by formula.

    Parameters
    ----------
    grades
        Grades, a frame, or a file's path; the more grades an item has, the better.
    schemes
        Names of schemes that look at one item's grades at a time.
    good_from
        Grade from which on an item counts as good: a number, or one of the levels in words.
    n_draws
        Random orders that are counted.
    seed
        Seed of the orders.

    Examples
    --------
    >>> votes = {"item": list("xxxyyy"), "grade": [3, 2, 2, 0, 1, 0]}
    >>> scheme_costs(votes, ["if-good-3"]).select("labelling", "labelling_exact", "ratio_exact").rows()
    [(2.0, 2.0, 0.333...)]
    """
    judged = as_judgments(grades)
    if not isinstance(judged, Grades):
        raise JudgmentError(f"scheme costs are counted on grades, not on {judged.kind}s; give grades")
    number = judged.level_number(good_from)
    rules = {}
    for name in schemes:
        rule = make("scheme", name)
        if not hasattr(rule, "asking_probabilities"):
            raise ParameterError(f"the cost of {name} has no formula; name schemes such as {', '.join(COSTED_SCHEMES)}")
        rules[label("scheme", name)] = replace(rule, good_from=number) if hasattr(rule, "good_from") else rule
    return cost_table(judged, rules, good_from=number, n_draws=n_draws, seed=seed)


def make_scheme(scheme: Any, params: Mapping[str, Any] | None, goal: str | None, seed: int) -> Any:
    """Return the scheme that a name stands for, or the one given, with its goal where one is named."""
    if not isinstance(scheme, str):
        for name, given, them in (("params", params, "them"), ("goal", goal, "it")):
            if given:
                raise ParameterError(f"{name}= goes with the name of a scheme; give {them} to the scheme itself")
        return scheme
    chosen = make("scheme", scheme, params, seed=seed)
    if goal is not None and not hasattr(chosen, "goal"):
        raise ParameterError(words_of("no_goal", scheme=label("scheme", scheme)))
    return chosen if goal is None else replace(chosen, goal=goal)


@contextmanager
def _table(given: Any) -> Iterator[Any]:
    """A table, or that of a file, which whatever is wrong with it is then said of."""
    if not isinstance(given, str | os.PathLike):
        yield given
        return
    table = read_table(given)
    with blaming(str(given)):
        yield table


def _nothing_judged(items: Any, kind: str) -> Grades | Preferences:
    """No judgments of listed items."""
    if items is None:
        raise ParameterError(f"nothing is judged yet; list what may be asked about with {option('items')}")
    with _table(items) as given:
        table = to_frame(given)
        pairs = understand_pairs(table.columns) if kind == "preference" else None
        names = understand_items(table.columns) if pairs is None else pairs
        sides = ["item"] if pairs is None else ["left", "right"]
        query = {"query": names["query"]} if "query" in names else {}
        rows = pl.concat([table.select(**query, item=names[side]) for side in sides]).unique()
        if not len(rows):
            raise JudgmentError("the list of items has a header but no rows; write one row per item")
        listed = Features.from_arrays(rows["query"] if query else None, rows["item"], np.zeros((len(rows), 1)))
    nothing = np.empty(0, np.int32)
    common: dict[str, Any] = {"items": listed.items, "annotators": Index.empty(), "annotator": nothing}
    if kind == "grade":
        return Grades(**common, item=nothing, grade=np.empty(0))
    return Preferences(**common, left=nothing, right=nothing, outcome=np.empty(0, np.int8))


def campaigns(
    truth: Any,
    schemes: Sequence[str] = PLAYED,
    budget: float | None = None,
    *,
    annotators: int | None = None,
    noise: str | None = None,
    votes: Any = None,
    kind: str | None = None,
    goal: str | None = None,
    aggregator: str | Aggregator | None = None,
    params: Mapping[str, Any] | None = None,
    measures: Sequence[str] | None = None,
    n_rounds: int = 20,
    chosen: bool = False,
    n_seeds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Return learning curves of labelling schemes: scheme, seed, round, cost, n_judgments and each measure.

    Each judgment costs 1. All schemes of one seed meet the same crowd.

    Parameters
    ----------
    truth
        What is judged, and what is measured against: query, item and grade; a frame, a file's path, or a truth.
    schemes
        Names of schemes, such as ``"if-good-3"`` or ``"information"``.
    budget
        What each may spend; by default three judgments for each item of the truth.
    annotators, noise
        Simulated annotators: how many, and what they are like, as for :func:`crowdrank.simulate.simulate`.
    votes
        Recorded judgments to replay in their place, drawn in random order from those that exist.
    kind
        ``"grade"`` or ``"preference"``; by default the usual one of the noise.
    goal
        What schemes that have a goal should decide, as for :func:`crowdrank.propose`; others are played as they are.
    aggregator, params
        Makes the consensus that is measured: a name with its parameters, or an aggregator; by default ``mean_gain`` of
        grades and ``latent_score`` of preferences.
    measures
        As for :func:`crowdrank.simulate.campaign`.
    n_rounds
        Rounds that the budget is spent in.
    chosen
        Whether schemes may choose which simulated annotator to ask.
    n_seeds, seed
        Number of repetitions, and the first seed.
    progress
        Called with (campaigns done, campaigns in all, the scheme).

    Examples
    --------
    >>> truth = {"item": list("abcdefgh"), "grade": [0, 0, 0, 1, 1, 2, 2, 3]}
    >>> curves = campaigns(truth, ["single", "3-overlap"], 24, annotators=9, noise="profile()", n_rounds=4, n_seeds=2)
    >>> curves.filter(scheme="3-overlap", seed=0)["cost"].to_list()
    [6.0, 12.0, 18.0, 24.0]
    """
    from ..simulate import Recorded, SimulatedCrowd, campaign, parse_noise
    from ..simulate.campaigns import LABEL_MEASURES
    from ..simulate.known import Known

    if (votes is None) == (annotators is None or noise is None):
        raise ParameterError(words_of("who_answers"))
    if n_seeds < 1:
        raise ParameterError(f"{option('n_seeds', n_seeds)} must be at least 1")
    by_name = {name: make("scheme", name) for name in [label("scheme", one) for one in schemes]}
    aiming = [name for name, scheme in by_name.items() if goal is not None and hasattr(scheme, "goal")]
    by_name |= {name: replace(by_name[name], goal=goal) for name in aiming}
    measured = make("aggregator", aggregator, params) if isinstance(aggregator, str) else aggregator
    model = None if noise is None else parse_noise(noise)
    for measure in measures or ():
        if measure not in LABEL_MEASURES:
            parse(measure)
    check_limits(budget)
    known_truth = truth if isinstance(truth, Truth) else read_truth(truth)
    recorded = None if votes is None else expect_one_kind(as_judgments(votes), "a campaign")
    if goal is not None and not aiming:
        raise ParameterError(f"none of {', '.join(by_name)} has a goal; add information, or leave the goal out")
    limit = 3.0 * len(known_truth.items) if budget is None else float(budget)
    tables: list[pl.DataFrame] = []
    for number, (name, scheme) in itertools.product(range(seed, seed + n_seeds), by_name.items()):
        crowd: Any = None if recorded is None else Recorded(recorded, seed=number)
        if model is not None and recorded is None:
            asked = kind or model.kinds[0]
            asked = "preference" if asked == "ranking" else asked
            shown = Known.of(known_truth)
            levels = shown.n_levels if asked == "grade" else None
            pool = model.pool(annotators or 0, seed=np.random.default_rng(number), n_levels=levels)
            crowd = SimulatedCrowd(pool, shown, kind=asked, chosen=chosen, seed=number)
        played = campaign(
            scheme, crowd, known_truth, limit, aggregator=measured, measures=measures, n_rounds=n_rounds, name=name,
            seed=number,
        )  # fmt: skip
        tables.append(played.curve.select(pl.lit(name).alias("scheme"), pl.lit(number).alias("seed"), pl.all()))
        if progress is not None:
            progress(len(tables), n_seeds * len(by_name), name)
    return pl.concat(tables)


def campaign_ends(curves: pl.DataFrame) -> pl.DataFrame:
    """Return where each scheme ended: scheme, cost, and each measure as its mean over repetitions, with its spread."""
    measures = curves.drop("scheme", "seed", "round", "cost", "n_judgments").columns
    last = curves.filter(pl.col("round") == pl.col("round").max().over("scheme", "seed"))
    figures = [column for name in measures for column in (pl.mean(name), pl.std(name).alias(f"{name}_spread"))]
    return last.group_by("scheme", maintain_order=True).agg(pl.mean("cost"), *figures)


def campaign_sentences(ends: pl.DataFrame) -> list[str]:
    """Return where each scheme ended, in words."""
    first = ends.columns[2]
    lines = []
    for row in ends.iter_rows(named=True):
        spread = row[f"{first}_spread"]
        beside = "" if spread is None else f" ± {spread:.3f}"
        lines.append(f"{row['scheme']}: {first} {row[first]:.3f}{beside} for {row['cost']:,.0f} judgments")
    return lines + ([f"the smaller {first}, the better"] if first in ("gain_error", "log_loss") else [])


_N_GROUPS = 20
"""Groups of items that the jackknife leaves out."""

_OF_OWN_JUDGMENTS = {
    "mean_grade": ("grade",), "mean_gain": ("grade",), "highest_grade": ("grade",), "borda": ("preference", "ranking"),
}  # fmt: skip
"""Methods by which the score of an item follows from its own judgments alone, and of which kinds."""


@dataclass(frozen=True)
class TargetRule:
    """How many judgments a target should have, by its own judgments alone.

    Parameters
    ----------
    name, rule
        Name of the scheme and the scheme itself.
    """

    name: str
    rule: Any

    @property
    def most(self) -> int:
        """The most judgments that the rule ever wants of one target."""
        return int(self.rule.k)

    def n_wanted(self, grades: Sequence[float]) -> int:
        """Return how many judgments a target with these grades, first one first, should have in all.

        Examples
        --------
        >>> rule = target_rule("if-good-3")
        >>> rule.n_wanted([]), rule.n_wanted([1]), rule.n_wanted([3, 0])
        (1, 1, 3)
        """
        return int(self.rule.n_wanted(np.asarray(grades, np.float64), np.array([0, len(grades)]))[0])


def target_rule(
    scheme: str, params: Mapping[str, Any] | None = None, levels: Sequence[str] = (), *, kind: str = "grade"
) -> TargetRule | None:
    """Return the rule of a scheme that looks at one target at a time, ``None`` where it needs more than that.

    Parameters
    ----------
    scheme, params
        Name of a scheme and its parameters.
    levels
        Names of the grades, worst first: a ``good_from`` in words is the place of that word.
    kind
        Kind of judgment: only grades are looked at, so that rankings and preferences have rules that merely count.

    Examples
    --------
    >>> target_rule("3-overlap").n_wanted([0, 1]), target_rule("information") is None
    (3, True)
    >>> target_rule("if_good_k", {"good_from": "Good"}, ["Bad", "Fair", "Good"]).n_wanted([2])
    3
    """
    if scheme == "auto":
        return None
    rule = make_scheme(scheme, params, None, 0)
    if not hasattr(rule, "n_wanted"):
        return None
    good_from = getattr(rule, "good_from", None)
    if good_from is not None and kind != "grade":
        return None
    if isinstance(good_from, str):
        if good_from not in levels:
            hint = did_you_mean(good_from, levels)
            raise ParameterError(f"good_from={good_from!r} is none of the grades; {hint}grades: {', '.join(levels)}")
        rule = replace(rule, good_from=float(list(levels).index(good_from)))
    return TargetRule(label("scheme", scheme), rule)


def agreement_interval(judgments: Any) -> dict[str, Any]:
    """Return how far annotators agree: share of equal answers, alpha with an interval of 95 %, and on how many things.

    The interval is of a jackknife that leaves out one of 20 groups of items at a time, in the scale in which alpha is
    no more than 1.

    Examples
    --------
    >>> votes = {"item": list("wxyz") * 2, "annotator": list("aaaabbbb"), "grade": [3, 1, 2, 0, 3, 1, 1, 0]}
    >>> found = agreement_interval(votes)
    >>> round(found["alpha"], 2), found["n_shared"]
    (0.91, 4)
    """
    from ..review.crowd_agreement import agreement

    judged = expect_one_kind(as_judgments(judgments), "agreement")
    measured = agreement(judged)
    # an item of each judgment, by which judgments are grouped
    if isinstance(judged, Preferences):
        item = np.minimum(judged.left, judged.right)
    else:
        item = judged.item if isinstance(judged, Grades) else judged.item[judged.offsets[:-1]]
    group = item % _N_GROUPS
    without = np.array([agreement(judged.select(group != one)).alpha for one in np.unique(group)])
    alphas = without[np.isfinite(without)]
    bounds: dict[str, float | None] = {"lower": None, "upper": None}
    if np.isfinite(measured.alpha) and len(alphas) > 1:
        distance = np.log(np.maximum(1 - alphas, 1e-12))
        spread = float(np.sqrt((len(alphas) - 1) / len(alphas) * ((distance - distance.mean()) ** 2).sum()))
        off = max(1 - measured.alpha, 0.0)
        bounds = {"lower": float(1 - off * np.exp(1.96 * spread)), "upper": float(1 - off * np.exp(-1.96 * spread))}
    shares = {"same": float(measured.same), "alpha": float(measured.alpha)}
    known = {name: share if np.isfinite(share) else None for name, share in shares.items()}
    return {**known, **bounds, "n_shared": measured.n_shared}


def disputed_targets(judgments: Any, consensus: Any, most: int = 50) -> list[dict[str, Any]]:
    """Return where annotators disagree most, as plain rows."""
    from ..review.crowd_agreement import contested_items

    contested = contested_items(as_judgments(judgments), consensus)
    how_far = "divided" if "divided" in contested.columns else "spread"
    return contested.filter(contested[how_far] > 0).head(most).to_dicts()


def reads_anew(consensus: Any, kind: str) -> bool:
    """Return whether items can be read anew by a consensus of judgments of this kind, see :func:`touched_items`."""
    own = kind in _OF_OWN_JUDGMENTS.get(consensus.method, ()) and not consensus.params.get("alpha")
    return consensus.reread is not None or own


def touched_items(
    consensus: Any, judgments: Any, items: Sequence[tuple[Any, Any]] | None = None
) -> list[dict[str, Any]] | None:
    """Return items as rows by all their judgments, the rest as it is in a consensus: an E-step alone.

    ``items`` are those to read, as (query, item), all without it; other items, annotators and what the crowd shares
    stay as in the consensus. ``None`` where its method has no such step. Where it learned something of annotators,
    judgments of those whom it does not know do not count, and items that it then says nothing of are left out.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("wxyz") * 2, "annotator": list("aaaabbbb"), "grade": [3, 1, 2, 0, 3, 1, 1, 0]}
    >>> before = cr.aggregate(votes, "mean_grade")
    >>> touched_items(before, {"item": ["y"] * 3, "annotator": list("abc"), "grade": [2, 1, 3]})
    [{'item': 'y', 'score': 2.0}]
    """
    judged = expect_one_kind(as_judgments(judgments), "reading items anew")
    if not reads_anew(consensus, judged.kind):
        return None
    names = list(zip(judged.items.query_ids().to_list(), judged.items.ids.to_list(), strict=True))
    wanted = set(names if items is None else items)
    free = np.array([name in wanted for name in names], bool)
    if consensus.reread is not None:
        updated, read = consensus.reread(judged, free)
    else:
        updated, read = make("aggregator", consensus.method, consensus.params).fit(judged), free
    rows: list[dict[str, Any]] = updated.frame().drop("rank", "std_error", strict=False).to_dicts()
    kept = {name for name, one in zip(names, read.tolist(), strict=True) if one}
    return [row for row in rows if (row.get("query", NO_QUERY), row["item"]) in kept]
