"""What to ask next, of whom, at what cost, and when to stop."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import numpy as np
import polars as pl

from ..cluster.one_pass import of_sample
from ..cluster.stored import StoredConsensus
from ..data.column_names import understand_items, understand_pairs
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.frames import to_frame
from ..data.index import Index
from ..data.judgments import Grades, Judgments, Preferences, expect, with_items, with_pairs
from ..data.proposals import Price, Requests, Roster, price_of
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..io.sources import blaming
from ..io.tables import read_table
from ..protocols import Aggregator, Progress, method_name
from ..registry import card, label, make, names
from ..schemes.grade_rules import cost_table
from ..schemes.situation import OpenRequests, Situation, check_limits, open_requests
from ..wording import one_of, option
from .aggregation import aggregate, as_judgments, check_aggregation, expect_one_kind
from .choosing import auto_scheme
from .in_parts import as_packed

COSTED_SCHEMES = ("single", "if-good-2", "if-good-3", "3-overlap", "good_till_bad")
"""Schemes whose costs are compared unless others are named."""


Given = ParamSpec("Given")
Result = TypeVar("Result")


def _takes_arguments_of(
    verb: Callable[Given, Any],
) -> Callable[[Callable[..., Result]], Callable[Given, Result]]:
    """Return what gives a function the signature of a verb, to whose arguments it adds nothing."""

    def with_signature(function: Callable[..., Result]) -> Callable[Given, Result]:
        own = inspect.signature(function).return_annotation
        function.__signature__ = inspect.signature(verb).replace(return_annotation=own)  # type: ignore[attr-defined]
        return function

    return with_signature


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
    else:
        if kind is not None:
            raise ParameterError(f"{option('kind', kind)} goes with nothing judged yet; leave it out")
        judged = expect_one_kind(as_judgments(judgments), "propose")
    described = _features(features, goal, judged)
    if isinstance(consensus, StoredConsensus):
        consensus = consensus.of_queries(judged.items.queries.ids)
    if isinstance(consensus, Consensus) and as_packed(judgments) is not None:
        consensus = of_sample(consensus, judged)
    if goal == "ranker" and isinstance(scheme, str) and scheme == "auto":
        scheme = "information"
    choice = auto_scheme(judged) if isinstance(scheme, str) and scheme == "auto" else None
    scheme = scheme if choice is None else choice.method
    chosen = make_scheme(scheme, params, goal, seed)
    _expect_kind(judged, chosen)
    judged, askable, pairs = _askable(
        judged, items if described is None or items is not None else described.items.frame()
    )
    roster = None if pool is None else _roster(pool, price)
    situation = Situation(
        judgments=judged, askable=askable, pairs=pairs, roster=roster, budget=budget, least_gain=least_gain, seed=seed,
        price=price_of(price, judged.kind) if roster is None else 1.0,
        open=None if open is None else _open_requests(judged, open), features=described,
    )  # fmt: skip
    needed = _aggregator_name(chosen, judged)
    if needed is not None and not judged.n_judgments:
        raise ParameterError(
            f"{method_name(chosen)} chooses by the judgments so far, and there are none; begin with single or 3-overlap"
        )
    if needed is not None:
        if progress is not None:
            progress(0, 2, "finding the consensus")
        situation = replace(situation, consensus=_consensus(judged, consensus, needed, seed))
    if progress is not None:
        progress(1, 2, "choosing what to ask")
    proposed: Requests = chosen.propose(situation)
    name = label("scheme", scheme) if isinstance(scheme, str) else proposed.scheme
    only = (
        ()
        if items is not None or described is not None
        else (f"only items that were judged already are asked about; list all with {option('items')}",)
    )
    choice_note = () if choice is None else (f"scheme {name}, since {choice.reason}",)
    return replace(proposed, scheme=name, notes=(*choice_note, *proposed.notes, *only))


@_takes_arguments_of(requests)
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
    grades: Any,
    schemes: Sequence[str] = COSTED_SCHEMES,
    *,
    good_from: Any = 2,
    n_draws: int = 10,
    seed: int = 0,
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


def _expect_kind(judgments: Any, scheme: Any) -> None:
    """Refuse judgments of a kind that the scheme does not take, and say which schemes do."""
    try:
        expect(judgments, scheme)
    except JudgmentError:
        others = [name.replace("_", "-") for name in names("scheme") if judgments.kind in card("scheme", name).kinds]
        expect(judgments, scheme, instead=others, what="scheme")


def make_scheme(scheme: Any, params: Mapping[str, Any] | None, goal: str | None, seed: int) -> Any:
    """Return the scheme that a name stands for, or the one given, with its goal where one is named."""
    if not isinstance(scheme, str):
        if params:
            raise ParameterError("params= goes with the name of a scheme; give them to the scheme itself")
        if goal is not None:
            raise ParameterError("goal= goes with the name of a scheme; give it to the scheme itself")
        return scheme
    chosen = make("scheme", scheme, params, seed=seed)
    if goal is None:
        return chosen
    if not hasattr(chosen, "goal"):
        raise ParameterError(
            f"{label('scheme', scheme)} has no goal; leave the goal out, or use the scheme information, which has one"
        )
    return replace(chosen, goal=goal)


def _aggregator_name(scheme: Any, judgments: Any) -> str | None:
    """Name of the aggregator that a scheme goes by, without annotators one that can do without them."""
    needed: str | None = getattr(scheme, "needs", {}).get(judgments.kind)
    return "bradley_terry" if needed == "latent_score" and not judgments.n_annotators else needed


def _features(features: Any, goal: str | None, judgments: Any) -> Features | None:
    """The features, if any, once it is clear that they are of the judged items and wanted."""
    from .training import as_features

    if features is None:
        return None
    if goal != "ranker":
        raise ParameterError(
            f"{option('features')} goes with {option('goal', 'ranker')}; leave it out, or name that goal"
        )
    described = as_features(features)
    described.match(judgments)
    return described


def _askable(judgments: Any, items: Any) -> tuple[Any, Any, Any]:
    """Judgments with all listed items, which items may be asked about, and which pairs where those are listed."""
    if items is None:
        return judgments, judgments.judged_items, None
    if not isinstance(items, str | os.PathLike):
        return _items_of_table(judgments, items)
    table = read_table(items)
    with blaming(str(items)):
        return _items_of_table(judgments, table)


def _nothing_judged(items: Any, kind: str) -> Grades | Preferences:
    """No judgments of listed items."""
    if items is None:
        raise ParameterError(f"nothing is judged yet; list what may be asked about with {option('items')}")
    path = items if isinstance(items, str | os.PathLike) else None
    table = to_frame(items) if path is None else read_table(path)
    with blaming(str(path)) if path is not None else nullcontext():
        pairs = understand_pairs(table.columns) if kind == "preference" else None
        names = understand_items(table.columns) if pairs is None else {**pairs, "item": pairs["left"]}
        sides = ["item"] if pairs is None else ["left", "right"]
        query = [pl.col(names["query"]).alias("query")] if "query" in names else []
        rows = pl.concat(
            [table.select(*query, item=pl.col({**names, **(pairs or {})}[side])) for side in sides]
        ).unique()
        if not len(rows):
            raise JudgmentError("the list of items has a header but no rows; write one row per item")
        listed = Features.from_arrays(rows["query"] if query else None, rows["item"], np.zeros((len(rows), 1)))
    nobody, nothing = np.empty(0, np.int32), np.empty(0, np.int32)
    if kind == "grade":
        return Grades(items=listed.items, annotators=Index.empty(), annotator=nobody, item=nothing, grade=np.empty(0))
    return Preferences(
        items=listed.items, annotators=Index.empty(), annotator=nobody, left=nothing, right=nothing,
        outcome=np.empty(0, np.int8),
    )  # fmt: skip


def _items_of_table(judgments: Any, table: Any) -> tuple[Any, Any, Any]:
    """The same from a table of items, or of pairs where preferences are asked for."""
    pairs_of_table = with_pairs(judgments, table) if isinstance(judgments, Preferences) else None
    if pairs_of_table is None:
        return *with_items(judgments, table), None
    more, pairs = pairs_of_table
    askable = np.zeros(more.n_items, bool)
    askable[np.concatenate(pairs)] = True
    return more, askable, pairs


def _open_requests(judgments: Any, table: Any) -> OpenRequests:
    """What was asked for and has not come in yet, one entry for each judgment."""
    if isinstance(table, str | os.PathLike):
        read = read_table(table)
        with blaming(str(table)):
            return open_requests(judgments, read)
    return open_requests(judgments, table)


def _roster(pool: Any, price: Price | None) -> Roster:
    """The roster in a table or file."""
    if isinstance(pool, Roster):
        return pool
    if not isinstance(pool, str | os.PathLike):
        return Roster.from_frame(pool, price=price)
    table = read_table(pool)
    with blaming(str(pool)):
        return Roster.from_frame(table, price=price)


def _consensus(judgments: Any, consensus: Any, needed: str, seed: int) -> Consensus:
    """The consensus given, or that of the aggregator that is named or needed."""
    if isinstance(consensus, Consensus):
        return consensus
    return aggregate(judgments, needed if consensus is None else consensus, seed=seed)
