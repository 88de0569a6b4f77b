"""The process that finds the consensus while judgments come in; it reads the database and writes to its parent only.

It takes commands as lines of JSON on standard input and answers in lines on standard output: scores, quality and
proposals in pieces, then a summary. The first line names the database.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from statistics import fmean, median
from types import SimpleNamespace
from typing import Any

import polars as pl
import polars.selectors as cs

from .. import api
from ..errors import CrowdrankError, ParameterError
from ..io.judgments import read_judgments
from ..io.results import to_json
from ..review.sentences import DOUBTS
from .campaign_file import Json, Settings
from .collection import Collection, Result, Session, Store, open_store, sql
from .overview import item_ids
from .transfer import all_judgments, is_usable, items_of, judgment_frame, plain_judgment, question_rows, with_ids

_NICENESS = 10
PIECE = 500
"""Rows that the parent writes in one transaction."""

_LEVEL = 0.95
_DISPUTED = 50
_MIN_PROPOSED = 500
_FINDINGS = 10
_MIN_PEOPLE, _MOST_AUDITED = 3, 20_000
REVIEW = "review"
"""The name under which decisions on pairs and rankings go into a fit, as those of a trusted annotator."""

_LITTLE_AGREEMENT, _MIN_SHARED = 1 / 3, 20
"""Alpha of a crowd that may be all guessing; an interval that reaches higher only says that too little is shared.

Of fewer than so many targets, as many as are completed first at least, not even that is said.
"""

_BY_CHANCE = (
    "so far annotators agree no more than chance does (alpha {alpha:.2f}, {lower:.2f} to {upper:.2f}), "
    "so nothing shows who guesses"
)

_CHOOSES_ANNOTATORS = "information"
"""The scheme that weighs what is known of each annotator."""


Say = Callable[[Json], None]


@dataclass(frozen=True)
class Snapshot:
    """All that a fit needs, read at one moment."""

    seq: int
    changes: int
    settings: Settings
    money: int
    rows: list[Json]
    """The judgments that count and say something; ``others`` are counted too, with answers to other questions only."""
    others: list[Json]
    items: list[Any]
    offered: list[Any]
    taken: dict[str, int]
    active: list[Any]
    reviews: list[Any]

    @cached_property
    def by_id(self) -> dict[tuple[str, str], int]:
        """Number of each item, by its query and its id."""
        return {(row.query, row.item): row.id for row in self.items}

    @cached_property
    def names(self) -> dict[int, str]:
        """Id of each item, by its number."""
        return {row.id: row.item for row in self.items}


_BLANK = Settings(name="warm up", kind="preference", budget=1)


def _read(store: Store, campaign: int, operation: Callable[..., Result], *args: Any) -> Result:
    """What an operation of (db, ...) finds in a campaign as it stands at this moment."""
    collection = Collection(campaign, _BLANK, store, Path(), revision=-1)

    def read(db: Session) -> Result:
        collection.follow(db)
        return operation(db, *args)

    return collection.read(read)


def read_snapshot(store: Store, campaign: int) -> Snapshot:
    """Return the state of a campaign at one moment."""

    def read(db: Session) -> Snapshot:
        row = sql.campaign.first(db)
        rows, others = list[Json](), list[Json]()
        for one in all_judgments(db):
            (rows if is_usable(one) else others).append(one)
        return Snapshot(
            row.seq, row.changes, db.settings, row.budget - row.reserved, rows, others,
            sql.items.rows(db), sql.offered_requests.rows(db),
            {one.items: one.taken for one in sql.taken_seats.rows(db)},
            sql.active_annotators.rows(db), sql.reviews.rows(db),
        )  # fmt: skip

    return _read(store, campaign, read)


def fit(snapshot: Snapshot, previous: Any, say: Say, *, cold: bool) -> Any:
    """Find the consensus, say it in pieces, and return it for the next start."""
    settings, names = snapshot.settings, snapshot.names
    # what reviewers decided: items of known grade, or judgments of an annotator who is trusted
    known: Json = {}
    decisions: list[Json] = []
    if settings.kind != "grade":
        decisions = [
            {**with_ids(json.loads(row.answer), names), "query": row.query, "annotator": REVIEW, "time": row.at / 1e6,
             "submission": f"{REVIEW} {number}"}
            for number, row in enumerate(snapshot.reviews)
        ]  # fmt: skip
        known = {"trusted": [REVIEW]} if decisions else {}
    elif snapshot.reviews:
        columns: dict[str, list[Any]] = {
            "item": [names[json.loads(row.items)[0]] for row in snapshot.reviews],
            "grade": [json.loads(row.answer)["grade"] for row in snapshot.reviews],
        }
        if any(row.query for row in snapshot.items):
            columns["query"] = [row.query for row in snapshot.reviews]
        known = {"known": columns}
    frame = judgment_frame(settings.kind, [*snapshot.rows, *decisions])
    judgments = api.as_judgments(frame)
    # started from the former consensus and with what is known, where the method takes that and was the same
    starts = [known, {}] if cold or previous is None else [{**known, "start": previous}, known, {}]
    for given in starts:
        try:
            consensus = api.aggregate(judgments, settings.method, seed=settings.seed, **given)
            break
        except ParameterError:
            if not given:
                raise
    summary = _say_consensus(snapshot, consensus, judgments, snapshot.rows, _over_time(snapshot), say)
    n_wishes = None if cold else _say_wishes(snapshot, judgments, say)
    # the findings that matter most, as the report has them
    findings = [one.plain() for one in api.findings(consensus, judgments).worst_first()]
    say({
        "done": True, "seq": snapshot.seq, "method": consensus.method, "n_proposals": n_wishes,
        "summary": {
            **summary, "disputed": api.disputed_targets(judgments, consensus, _DISPUTED),
            "reads_anew": api.reads_anew(consensus, judgments.kind), "audit": _audit(snapshot, frame),
            "findings": [{**one, "ids": one["ids"][:20]} for one in findings[:_FINDINGS]],
        },
    })  # fmt: skip
    return consensus


def fit_questions(snapshot: Snapshot, say: Say) -> None:
    """Find and say the consensus of each further question; of several classes, the set of those that hold."""
    for question in snapshot.settings.more_questions:
        say({"begun": True, "question": question.name, "seq": snapshot.seq, "changes": snapshot.changes})
        ended: Json = {"method": "", "summary": None}
        rows = list(question_rows(snapshot.settings, question, [*snapshot.rows, *snapshot.others]))
        try:
            if question.kind == "choice" and question.several and rows:
                ended = {"method": "labels", "summary": _say_labels(snapshot, rows, say)}
            elif rows:
                # classes without an order, numbers, or as the campaign's own
                if question.kind == "choice":
                    classes = judgment_frame("grade", rows, grade=pl.String)
                    judgments: Any = read_judgments(classes, "grade", nominal=True)
                elif question.kind == "slider":
                    judgments = api.as_judgments(judgment_frame("grade", rows, grade=pl.Float64))
                else:
                    judgments = api.as_judgments(judgment_frame(question.kind, rows))
                method = snapshot.settings.method if question.kind == snapshot.settings.kind else "auto"
                consensus = api.aggregate(judgments, method, seed=snapshot.settings.seed)
                ended = {"method": consensus.method,
                         "summary": _say_consensus(snapshot, consensus, judgments, rows, {}, say)}  # fmt: skip
        except CrowdrankError as error:
            ended["error"] = f"{type(error).__name__}: {error}"
        say({"done": True, "seq": snapshot.seq, "n_proposals": None, **ended})


def _say_labels(snapshot: Snapshot, rows: list[Json], say: Say) -> Json:
    """Say which of several classes hold of each item; return what there is to say of all."""
    given: dict[tuple[int, str], list[str]] = {}
    for row in rows:
        chosen = given.setdefault((snapshot.by_id[row["query"], row["item"]], row["annotator"]), [])
        chosen += [row["criterion"]] if row["grade"] else []
    frame = {"item": [item for item, _ in given], "annotator": [who for _, who in given],
             "labels": list(map(json.dumps, given.values()))}  # fmt: skip
    found, number = api.aggregate_labels(frame), Counter(item for item, _ in given)
    names = {row.id: {"query": row.query, "item": row.item} if row.query else {"item": row.item}
             for row in snapshot.items}  # fmt: skip
    told = [
        [item := int(row["item"]), json.dumps({**row, **names[item]}), row["n_labels"], None, number[item]]
        for row in found.table.iter_rows(named=True)
    ]
    _say_rows(say, "score", sorted(told, key=lambda row: (-row[2], row[0])))
    _say_rows(say, "quality", [[row["annotator"], json.dumps(row)] for row in found.annotators.iter_rows(named=True)])
    return {"header": {"labels": found.labels.to_dicts()}, "agreement": {}, "disputed": []}


def _say_rows(say: Say, piece: str, rows: list[list[Any]]) -> None:
    """Say rows of scores or qualities in pieces, each with its place behind what it is of."""
    _say_pieces(say, piece, [[who, place, *rest] for place, (who, *rest) in enumerate(rows)])


def _say_pieces(say: Say, piece: str, rows: list[list[Any]]) -> None:
    """Say rows, some at a time."""
    for start in range(0, len(rows), PIECE):
        say({"piece": piece, "rows": rows[start : start + PIECE]})


def _say_consensus(
    snapshot: Snapshot, consensus: Any, judgments: Any, judged: list[Json], more: Mapping[str, Any], say: Say
) -> Json:
    """Say a consensus and the quality of annotators, with more of each; return what there is to say of all."""
    level = _LEVEL if consensus.uncertainty is not None else None
    document = to_json(consensus, quality=False, level=level, covariance=False, replicates=False)
    rows = document.pop("items")
    n_judgments = Counter((row["query"], item) for row in judged for item in items_of(row))
    widths = [width for row in rows if (width := _width(row)) is not None]
    document.pop("probabilities", None)
    _say_rows(say, "score", [
        [snapshot.by_id[place], json.dumps(row), row.get("score"), _width(row), n_judgments.get(place, 0)]
        for row in rows if (place := (row.get("query", ""), row["item"]))
    ])  # fmt: skip
    agreed = api.agreement_interval(judgments)
    # annotators none of whose items anybody else has judged: nothing says how well they judge
    places = {(row["annotator"], row["query"], item) for row in judged for item in items_of(row)}
    n_annotators = Counter(place[1:] for place in places)
    alone = {row["annotator"] for row in judged} - {place[0] for place in places if n_annotators[place[1:]] > 1}
    quality = _quality_rows(consensus, judgments, agreed, alone)
    _say_rows(say, "quality", [[row["annotator"], json.dumps({**row, **more.get(row["annotator"], {})})]
                               for row in quality])  # fmt: skip
    return {
        "header": document, "agreement": agreed, "disputed": [],
        "doubt": sum(widths) / len(widths) / 2 if widths else None,
    }  # fmt: skip


@dataclass(frozen=True)
class Held:
    """The last consensus, up to which judgment it goes, and the names of the annotators whom it knows."""

    consensus: Any
    seq: int
    annotators: frozenset[str]


def update(store: Store, campaign: int, held: Held, say: Say) -> None:
    """Say in pieces what the items with new judgments are now, all else as in the last fit; nobody is judged."""
    seq, settings, judgments, ids = _read(store, campaign, _read_touched, held)
    known = [(one, row) for one, row in judgments if one.annotator in held.annotators]
    items = {(one.query, ids[item]): item for one, _ in known if one.seq > held.seq for item in json.loads(one.items)}
    single = held.consensus.items.single
    plain = [row for one, row in known if is_usable(row) and (one.query == "" or not single)]
    frame = judgment_frame(settings.kind, plain, single=single)
    rows = api.touched_items(held.consensus, frame, list(items)) if plain else []
    numbered = [[items[row.pop("query", ""), row.pop("item")], {"seq": seq, **row}] for row in rows or ()]
    _say_pieces(say, "touched", numbered)
    say({"done": True, "seq": seq, "n_touched": len(numbered)})


def _read_touched(db: Session, held: Held) -> tuple[int, Settings, Any, Any]:
    """Up to which judgment, settings, all judgments on items with new ones, and the owner's ids of items."""
    seq, settings, ids = sql.campaign.first(db).seq, db.settings, item_ids(db)
    rows = sql.touched_judgments.rows(db, after=held.seq, upto=seq)
    new = [one for one in rows if one.seq > held.seq and one.annotator in held.annotators]
    here = {one.items for one in new}
    rows = [one for one in rows if one.items in here]
    if new and settings.kind != "grade":
        # and those on other targets that share an item with these
        items = {item for one in new for item in json.loads(one.items)}
        near = sql.targets_of_queries.rows(db, queries=sorted({one.query for one in new}))
        wanted = [one.id for one in near if one.items not in here and not items.isdisjoint(json.loads(one.items))]
        rows += sql.judgments_of_targets.rows(db, targets=wanted, upto=seq)
    return seq, settings, [(one, plain_judgment(settings, one, ids)) for one in rows], ids


def _audit(snapshot: Snapshot, frame: Any) -> Json:
    """Whether each program may stand in for people, by those who judged the same; nothing where nobody can say."""
    kinds = {row["annotator"]: row["annotator_kind"] for row in snapshot.rows}
    people = [name for name, kind in kinds.items() if kind == "person"]
    if len(people) < _MIN_PEOPLE or len(people) == len(kinds) or len(snapshot.rows) > _MOST_AUDITED:
        return {}
    from ..auditing import audit

    try:
        return {str(name): verdict for name, verdict in audit(frame, people=people).verdicts.items()}
    except CrowdrankError:
        return {}


def _over_time(snapshot: Snapshot) -> dict[str, Json]:
    """Of each annotator the median pace, and how far the others agree with them in up to twelve parts of their work."""
    by_target = defaultdict[Any, list[tuple[str, Any]]](list)
    judged: list[tuple[str, Any, Any]] = []
    series, seconds = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for row in snapshot.rows:
        who, target = row["annotator"], (row["query"], *items_of(row))
        # equal answers are equal whatever the order in which items were shown
        if "grade" in row:
            answer = row["grade"]
        else:
            answer = row.get(row["winner"]) if "winner" in row else json.dumps(row["order"])
        judged.append((who, target, answer))
        by_target[target].append((who, answer))
        seconds[who] += [] if row.get("seconds") is None else [row["seconds"]]
    span = max(1, len(snapshot.settings.grades) - 1)
    for who, target, answer in judged:
        others = [said for name, said in by_target[target] if name != who]
        if others:
            near = [1 - abs(answer - one) / span if isinstance(one, int) else float(answer == one) for one in others]
            series[who].append(sum(near) / len(near))
    told: dict[str, Json] = {}
    for who, pace in seconds.items():
        values = series[who]
        n_parts = min(12, len(values) // 5)
        cuts = [len(values) * place // n_parts for place in range(n_parts + 1)] if n_parts else []
        parts = [round(fmean(values[low:high]), 3) for low, high in pairwise(cuts)]
        told[who] = {"seconds": median(pace) if pace else None, "agreement": parts}
    return told


def _width(row: Json) -> float | None:
    """How wide the interval of an item is."""
    return None if row.get("lower") is None else row["upper"] - row["lower"]


def _quality_rows(consensus: Any, judgments: Any, agreed: Json, alone: set[str]) -> list[Json]:
    """Annotators with their quality and what to do about each; of whom nothing is known, nothing is said.

    Who may be guessing for all that is known is ``unsure``, never to be kept; where all together agree no more than
    chance does, nobody's quality is measured.
    """
    if consensus.quality is None:
        return []
    frame = consensus.quality.frame().select(cs.numeric() | cs.string())
    advice = api.actions(consensus, judgments) if judgments.n_annotators > 1 else None
    if advice is not None:
        suggested = advice.frame().select("annotator", "action", "reason")
        frame = frame.join(suggested, on="annotator", how="left", maintain_order="left")
    doubted = set() if advice is None else set(advice.flags.filter(pl.col("flag").is_in(DOUBTS))["annotator"])
    enough = agreed["n_shared"] >= _MIN_SHARED and agreed["lower"] is not None
    by_chance = enough and agreed["lower"] <= 0 and agreed["upper"] < _LITTLE_AGREEMENT
    rows = []
    for row in frame.iter_rows(named=True):
        row = {name: None if isinstance(cell, float) and cell != cell else cell for name, cell in row.items()}
        measured = row["annotator"] not in alone and not by_chance
        if not measured:
            told = ["annotator", "n_judgments"]
            if by_chance and row["action"] != "keep":
                told += ["action", "reason"]
            row = {name: cell if name in told else None for name, cell in row.items()}
        if by_chance and row["action"] is None and row["annotator"] not in alone:
            row |= {"action": "unsure", "reason": _BY_CHANCE.format(**agreed)}
        elif row.get("action") == "keep" and row["annotator"] in doubted:
            row["action"] = "unsure"
        rows.append({**row, "measured": measured})
    return rows


def _say_wishes(snapshot: Snapshot, judgments: Any, say: Say) -> int | None:
    """Say what a scheme that needs a consensus wants next, the most urgent first, and what is best asked of whom.

    Returns how many requests that are, ``None`` where the scheme needs no consensus.
    """
    settings = snapshot.settings
    if api.target_rule(settings.scheme, settings.params, settings.grades, kind=settings.kind) is not None:
        return None
    price = max(1, min(settings.cost.values()))
    # what is laid out until the next fit
    money = min(snapshot.money, price * max(_MIN_PROPOSED, len(snapshot.rows) // 10))
    if money < price:
        return 0
    names = snapshot.names
    single = all(row.query == "" for row in snapshot.items)
    sides = ("item",) if settings.kind == "grade" else ("left", "right")

    def with_queries(rows: list[Any], columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return columns if single else {"query": [row.query for row in rows], **columns}

    def targets(requests: pl.DataFrame) -> Iterator[tuple[Json, str, list[int]]]:
        for row in requests.iter_rows(named=True):
            query = row.get("query", "") or ""
            yield row, query, sorted(snapshot.by_id[query, row[side]] for side in sides)

    held = [json.loads(row.items) for row in snapshot.offered]
    waiting = {side: [names[items[place]] for items in held] for place, side in enumerate(sides)}
    waiting["annotator"] = [row.annotator for row in snapshot.offered]
    how: Json = {
        "scheme": settings.scheme, "params": dict(settings.params), "budget": money, "seed": settings.seed,
        "items": with_queries(snapshot.items, {"item": list(names.values())}), "least_gain": settings.least_gain,
        "open": with_queries(snapshot.offered, waiting) if held else None,
    }  # fmt: skip
    wishes = [
        [query, items, snapshot.taken.get(json.dumps(items), 0) + row["n_more"]]
        for row, query, items in targets(api.requests(judgments, **how, price=price).frame())
    ]
    _say_pieces(say, "proposals", wishes)
    if wishes and settings.scheme == _CHOOSES_ANNOTATORS and len(snapshot.active) > 1:
        numbers = {row.name: row.id for row in snapshot.active}
        # what costs nothing is cheapest, and still has a price to be weighed by
        pool = {"annotator": list(numbers), "price": [max(row.cost, 0.01) for row in snapshot.active]}
        meant = targets(api.requests(judgments, **how, pool=pool).frame().filter(pl.col("annotator").is_not_null()))
        say({"piece": "meant", "rows": [[numbers[row["annotator"]], items] for row, _, items in meant]})
    return len(wishes)


def yield_to_annotators() -> None:
    """Let the processes that answer people go first, and other programs on the machine no more than those.

    Linux may share the processor between sessions before it looks at who is nice within each; this process stays in
    the session of the service, and leaves an interrupt from the keyboard to it.
    """
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def main() -> None:
    """Work until standard input ends."""
    yield_to_annotators()
    warnings.simplefilter("ignore")
    given = map(json.loads, sys.stdin)
    first = next(given)
    store = open_store(first["database"], read_only=True, n_threads=1)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(line: Json) -> None:
        out.write(json.dumps(line, allow_nan=False) + "\n")
        out.flush()

    if first.get("kind"):
        warm_up(first["kind"])
    held: Held | None = None
    for command in given:
        try:
            if not command.get("update"):
                held = fit_all(store, command["campaign"], held, say, cold=bool(command.get("cold"))) or held
            elif held is None:
                say({"done": True, "seq": None})
            else:
                update(store, command["campaign"], held, say)
        except CrowdrankError as error:
            say({"failed": f"{type(error).__name__}: {error}"})


def warm_up(kind: str) -> None:
    """Fit made-up judgments, so that all that a fit needs is loaded before anybody waits for one."""
    said: Json = {"query": "", "time": 0.0, "counted": True, "annotator_kind": "person"}
    items = [SimpleNamespace(query="", item=name, id=number) for number, name in enumerate("abcd")]
    answers: dict[str, list[Json]] = {
        "grade": [{"item": name, "grade": place % 2} for place, name in enumerate("abcd")],
        "preference": [{"left": one, "right": two, "winner": "left"} for one, two in combinations("abcd", 2)],
        "ranking": [{"order": [["a"], ["b"], ["c"], ["d"]]}],
    }
    rows = [{**said, **one, "annotator": who, "submission": who} for who in "xyz" for one in answers[kind]]
    settings = replace(_BLANK, kind=kind, grades=("worse", "better") if kind == "grade" else ())
    fit(Snapshot(0, 0, settings, 0, rows, [], items, [], {}, [], []), None, lambda line: None, cold=True)


def fit_all(store: Store, campaign: int, held: Held | None, say: Say, *, cold: bool) -> Held | None:
    """Find and say the consensus of all questions; return what is held of the first, ``None`` where there is none."""
    snapshot = read_snapshot(store, campaign)
    say({"begun": True, "seq": snapshot.seq, "changes": snapshot.changes})
    new = None
    if snapshot.rows:
        consensus = fit(snapshot, None if held is None else held.consensus, say, cold=cold)
        new = Held(consensus, snapshot.seq, frozenset(row["annotator"] for row in snapshot.rows))
    else:
        say({"done": True, "seq": snapshot.seq, "method": "", "n_proposals": None, "summary": None})
    fit_questions(snapshot, say)
    say({"end": True})
    return new


if __name__ == "__main__":
    main()
