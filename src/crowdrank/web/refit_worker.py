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
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from statistics import fmean, median
from types import SimpleNamespace
from typing import Any

import polars as pl
import sqlalchemy as sa

from .. import api
from ..errors import CrowdrankError, ParameterError
from ..io.judgments import read_judgments
from ..io.results import to_json
from ..review.sentences import DOUBTS
from .campaign_file import Settings
from .collection import Collection, Store, open_store, sql
from .overview import item_ids
from .questions import Question
from .transfer import is_usable, items_of, judgment_frame, page, plain_judgment, question_rows

_NICENESS = 10
PIECE = 500
"""Rows that the parent writes in one transaction."""

_LEVEL = 0.95
_PAGE = 50_000
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


Say = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Snapshot:
    """All that a fit needs, read at one moment."""

    seq: int
    changes: int
    settings: Settings
    money: int
    rows: list[dict[str, Any]]
    """The judgments that count and say something; ``others`` are counted too, with answers to other questions only."""
    others: list[dict[str, Any]]
    items: list[Any]
    offered: list[Any]
    taken: dict[str, int]
    active: list[Any]
    reviews: list[Any]


def read_snapshot(store: Store, campaign: int) -> Snapshot:
    """Return the state of a campaign at one moment."""

    def read(connection: sa.Connection) -> Snapshot:
        row = sql.campaign.first(connection, campaign=campaign)
        settings = Settings.from_plain(json.loads(row.settings))
        collection = Collection(campaign, settings, store, Path())
        rows, others = list[dict[str, Any]](), list[dict[str, Any]]()
        ids, after = item_ids(collection, connection), 0
        while judged := page(collection, connection, after, row.seq, _PAGE):
            after = judged[-1].seq
            for one in judged:
                plain = plain_judgment(collection, one, ids)
                (rows if is_usable(plain) else others).append(plain)
        return Snapshot(
            row.seq, row.changes, settings, row.budget - row.reserved, rows, others,
            sql.items.rows(connection, campaign=campaign), sql.offered_requests.rows(connection, campaign=campaign),
            {one.items: one.taken for one in sql.taken_seats.rows(connection, campaign=campaign)},
            sql.active_annotators.rows(connection, campaign=campaign), sql.reviews.rows(connection, campaign=campaign),
        )  # fmt: skip

    return store.submit_read(read).result()


def fit(snapshot: Snapshot, previous: Any, say: Say, *, cold: bool) -> Any:
    """Find the consensus, say it in pieces, and return it for the next start."""
    settings = snapshot.settings
    frame = judgment_frame(settings.kind, [*snapshot.rows, *_decisions(snapshot)])
    judgments = api.as_judgments(frame)
    consensus = _aggregate(judgments, settings, None if cold else previous, _known_answers(snapshot))
    summary = _say_consensus(snapshot, consensus, judgments, snapshot.rows, _over_time(snapshot), say)
    wishes, n_wishes = _proposals(snapshot, judgments) if not cold else ([], None)
    for start in range(0, len(wishes), PIECE):
        say({"piece": "proposals", "rows": wishes[start : start + PIECE]})
    if wishes:
        say({"piece": "meant", "rows": _wishes_by_annotator(snapshot, judgments)})
    say({
        "done": True, "seq": snapshot.seq, "method": consensus.method, "n_proposals": n_wishes,
        "summary": {
            **summary, "disputed": api.disputed_targets(judgments, consensus, _DISPUTED),
            "reads_anew": api.reads_anew(consensus, judgments.kind), "findings": _findings(consensus, judgments),
            "audit": _audit(snapshot, frame),
        },
    })  # fmt: skip
    return consensus


def fit_questions(snapshot: Snapshot, say: Say) -> None:
    """Find and say the consensus of each further question; of several classes, the set of those that hold."""
    for question in snapshot.settings.more_questions:
        say({"begun": True, "question": question.name, "seq": snapshot.seq, "changes": snapshot.changes})
        ended: dict[str, Any] = {"method": "", "summary": None}
        rows = list(question_rows(snapshot.settings, question, [*snapshot.rows, *snapshot.others]))
        try:
            if question.kind == "choice" and question.several and rows:
                ended = {"method": "labels", "summary": _say_labels(snapshot, rows, say)}
            elif rows:
                judgments = _judgments_of(question, rows)
                method = snapshot.settings.method if question.kind == snapshot.settings.kind else "auto"
                consensus = api.aggregate(judgments, method, seed=snapshot.settings.seed)
                ended = {"method": consensus.method,
                         "summary": _say_consensus(snapshot, consensus, judgments, rows, {}, say)}  # fmt: skip
        except CrowdrankError as error:
            ended["error"] = f"{type(error).__name__}: {error}"
        say({"done": True, "seq": snapshot.seq, "n_proposals": None, **ended})


def _judgments_of(question: Question, rows: list[dict[str, Any]]) -> Any:
    """The answers to one of several questions as judgments: classes without an order, numbers, or as the campaign's."""
    if question.kind == "choice":
        return read_judgments(judgment_frame("grade", rows, grade=pl.String), "grade", nominal=True)
    if question.kind == "slider":
        return api.as_judgments(judgment_frame("grade", rows, grade=pl.Float64))
    return api.as_judgments(judgment_frame(question.kind, rows))


def _say_labels(snapshot: Snapshot, rows: list[dict[str, Any]], say: Say) -> dict[str, Any]:
    """Say which of several classes hold of each item; return what there is to say of all."""
    by_id = {(row.query, row.item): row.id for row in snapshot.items}
    given: dict[tuple[int, str], list[str]] = {}
    for row in rows:
        chosen = given.setdefault((by_id[row["query"], row["item"]], row["annotator"]), [])
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
    for start in range(0, len(rows), PIECE):
        numbered = [[who, start + n, *rest] for n, (who, *rest) in enumerate(rows[start : start + PIECE])]
        say({"piece": piece, "rows": numbered})


def _say_consensus(
    snapshot: Snapshot, consensus: Any, judgments: Any, judged: list[dict[str, Any]], more: Mapping[str, Any], say: Say
) -> dict[str, Any]:
    """Say a consensus and the quality of annotators, with more of each; return what there is to say of all."""
    by_id = {(row.query, row.item): row.id for row in snapshot.items}
    level = _LEVEL if consensus.uncertainty is not None else None
    document = to_json(consensus, quality=False, level=level, covariance=False, replicates=False)
    rows = document.pop("items")
    n_judgments = Counter((row["query"], item) for row in judged for item in items_of(row))
    widths = [width for row in rows if (width := _width(row)) is not None]
    document.pop("probabilities", None)
    _say_rows(say, "score", [
        [by_id[place], json.dumps(row), row.get("score"), _width(row), n_judgments.get(place, 0)]
        for row in rows if (place := (row.get("query", ""), row["item"]))
    ])  # fmt: skip
    agreed = api.agreement_interval(judgments)
    quality = _quality_rows(consensus, judgments, agreed, _annotators_alone(judged))
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
    read = store.submit_read(lambda connection: _read_touched(store, connection, campaign, held))
    seq, settings, judgments, ids = read.result()
    known = [(one, row) for one, row in judgments if one.annotator in held.annotators]
    items = {(one.query, ids[item]): item for one, _ in known if one.seq > held.seq for item in json.loads(one.items)}
    single = held.consensus.items.single
    plain = [row for one, row in known if is_usable(row) and (one.query == "" or not single)]
    frame = judgment_frame(settings.kind, plain, single=single)
    rows = api.touched_items(held.consensus, frame, list(items)) if plain else []
    numbered = [[items[row.pop("query", ""), row.pop("item")], {"seq": seq, **row}] for row in rows or ()]
    for start in range(0, len(numbered), PIECE):
        say({"piece": "touched", "rows": numbered[start : start + PIECE]})
    say({"done": True, "seq": seq, "n_touched": len(numbered)})


def _read_touched(store: Store, connection: sa.Connection, campaign: int, held: Held) -> tuple[int, Settings, Any, Any]:
    """Up to which judgment, settings, all judgments on items with new ones, and the owner's ids of items."""
    row = sql.campaign.first(connection, campaign=campaign)
    settings = Settings.from_plain(json.loads(row.settings))
    collection = Collection(campaign, settings, store, Path())
    ids = item_ids(collection, connection)
    rows = sql.touched_judgments.rows(connection, campaign=campaign, after=held.seq, upto=row.seq)
    new = [one for one in rows if one.seq > held.seq and one.annotator in held.annotators]
    here = {one.items for one in new}
    rows = [one for one in rows if one.items in here]
    if new and settings.kind != "grade":
        # and those on other targets that share an item with these
        items = {item for one in new for item in json.loads(one.items)}
        near = sql.targets_of_queries.rows(connection, campaign=campaign, queries=sorted({one.query for one in new}))
        wanted = [one.id for one in near if one.items not in here and not items.isdisjoint(json.loads(one.items))]
        rows += sql.judgments_of_targets.rows(connection, targets=wanted, upto=row.seq)
    return row.seq, settings, [(one, plain_judgment(collection, one, ids)) for one in rows], ids


def _aggregate(judgments: Any, settings: Settings, previous: Any, known: dict[str, Any]) -> Any:
    """The consensus, with what is known, and started from the former one, where the method can and was the same."""
    starts = [known | {"start": previous}] if previous is not None else []
    for given in (*starts, known, {}):
        try:
            return api.aggregate(judgments, settings.method, seed=settings.seed, **given)
        except ParameterError:
            # a method that takes no start or nothing known, or another than before
            if not given:
                raise
    raise AssertionError


def _known_answers(snapshot: Snapshot) -> dict[str, Any]:
    """What reviewers decided, as it is given to a method: items of known grade, or that their choices are trusted."""
    if not snapshot.reviews:
        return {}
    if snapshot.settings.kind != "grade":
        return {"trusted": [REVIEW]}
    names = {row.id: row.item for row in snapshot.items}
    single = all(row.query == "" for row in snapshot.items)
    numbers = [json.loads(row.items)[0] for row in snapshot.reviews]
    columns = {} if single else {"query": [row.query for row in snapshot.reviews]}
    grades = [json.loads(row.answer)["grade"] for row in snapshot.reviews]
    return {"known": {**columns, "item": [names[one] for one in numbers], "grade": grades}}


def _decisions(snapshot: Snapshot) -> list[dict[str, Any]]:
    """What reviewers decided of pairs and rankings, as judgments of an annotator who is trusted."""
    if snapshot.settings.kind == "grade":
        return []
    names = {row.id: row.item for row in snapshot.items}
    rows = []
    for number, row in enumerate(snapshot.reviews):
        answer = json.loads(row.answer)
        said = {"query": row.query, "annotator": REVIEW, "time": row.at / 1e6, "submission": f"{REVIEW} {number}"}
        if "order" in answer:
            rows.append({**said, "order": [[names[one] for one in group] for group in answer["order"]]})
        else:
            left, right = names[answer["left"]], names[answer["right"]]
            rows.append({**said, "left": left, "right": right, "winner": answer["winner"]})
    return rows


def _findings(consensus: Any, judgments: Any) -> list[dict[str, Any]]:
    """The findings that matter most, as the report has them."""
    found = [one.plain() for one in api.findings(consensus, judgments).worst_first()]
    return [{**one, "ids": one["ids"][:20]} for one in found[:_FINDINGS]]


def _audit(snapshot: Snapshot, frame: Any) -> dict[str, Any]:
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


def _over_time(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """Of each annotator the median pace, and how far the others agree with them in up to twelve parts of their work."""
    by_target: dict[Any, list[tuple[str, Any]]] = {}
    places = [(row["query"], *items_of(row)) for row in snapshot.rows]
    answers = [_answer_of(row) for row in snapshot.rows]
    for row, place, answer in zip(snapshot.rows, places, answers, strict=True):
        by_target.setdefault(place, []).append((row["annotator"], answer))
    span = max(1, len(snapshot.settings.grades) - 1)
    series: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for row, place, answer in zip(snapshot.rows, places, answers, strict=True):
        who = row["annotator"]
        others = [said for name, said in by_target[place] if name != who and said is not None]
        if row.get("seconds") is not None:
            seconds.setdefault(who, []).append(row["seconds"])
        if others and answer is not None:
            near = [1 - abs(answer - one) / span if isinstance(one, int) else float(answer == one) for one in others]
            series.setdefault(who, []).append(sum(near) / len(near))
    told: dict[str, dict[str, Any]] = {}
    for who in {row["annotator"] for row in snapshot.rows}:
        values = series.get(who, [])
        n_parts = min(12, len(values) // 5)
        cuts = [len(values) * place // n_parts for place in range(n_parts + 1)] if n_parts else []
        parts = [round(fmean(values[low:high]), 3) for low, high in pairwise(cuts)]
        told[who] = {"seconds": median(seconds[who]) if who in seconds else None, "agreement": parts}
    return told


def _answer_of(row: dict[str, Any]) -> Any:
    """What was answered, such that equal answers are equal whatever the order in which items were shown."""
    if "grade" in row:
        return row["grade"]
    if "winner" in row:
        return row["winner"] if row["winner"] in ("tie", None) else row[row["winner"]] + " wins"
    return json.dumps(row["order"])


def _width(row: dict[str, Any]) -> float | None:
    """How wide the interval of an item is."""
    return None if row.get("lower") is None else row["upper"] - row["lower"]


def _annotators_alone(rows: list[dict[str, Any]]) -> set[str]:
    """Annotators none of whose items anybody else has judged: nothing says how well they judge."""
    judged: dict[str, set[tuple[str, str]]] = {}
    by: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        for item in items_of(row):
            judged.setdefault(row["annotator"], set()).add((row["query"], item))
            by.setdefault((row["query"], item), set()).add(row["annotator"])
    return {name for name, items in judged.items() if all(len(by[item]) == 1 for item in items)}


def _quality_rows(consensus: Any, judgments: Any, agreed: dict[str, Any], alone: set[str]) -> list[dict[str, Any]]:
    """Annotators with their quality and what to do about each; of whom nothing is known, nothing is said.

    Who may be guessing for all that is known is ``unsure``, never to be kept; where all together agree no more than
    chance does, nobody's quality is measured.
    """
    if consensus.quality is None:
        return []
    frame = consensus.quality.frame()
    plain = [name for name, kind in frame.schema.items() if kind.is_numeric() or kind == pl.String]
    frame = frame.select(plain)
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
            told = (
                "annotator",
                "n_judgments",
                *(("action", "reason") if by_chance and row["action"] != "keep" else ()),
            )
            row = {name: cell if name in told else None for name, cell in row.items()}
        if by_chance and row["action"] is None and row["annotator"] not in alone:
            row |= {"action": "unsure", "reason": _BY_CHANCE.format(**agreed)}
        elif row.get("action") == "keep" and row["annotator"] in doubted:
            row["action"] = "unsure"
        rows.append({**row, "measured": measured})
    return rows


def _proposals(snapshot: Snapshot, judgments: Any) -> tuple[list[Any], int | None]:
    """What a scheme that needs a consensus wants next, the most urgent first; ``None`` where the scheme needs none."""
    settings = snapshot.settings
    if api.target_rule(settings.scheme, settings.params, settings.grades, kind=settings.kind) is not None:
        return [], None
    money = _money(snapshot)
    if money < _price(settings):
        return [], 0
    requests = _requests(snapshot, judgments, None, money)
    by_id = {(row.query, row.item): row.id for row in snapshot.items}
    wishes: list[Any] = []
    for row in requests.iter_rows(named=True):
        query, items = _target(row, by_id)
        taken = snapshot.taken.get(json.dumps(items), 0)
        wishes.append([query, items, taken + row["n_more"]])
    return wishes, len(wishes)


def _wishes_by_annotator(snapshot: Snapshot, judgments: Any) -> list[Any]:
    """What is best asked of each annotator who takes part, the most urgent first, where the scheme chooses whom."""
    if snapshot.settings.scheme != _CHOOSES_ANNOTATORS or len(snapshot.active) < 2:
        return []
    # what costs nothing is cheapest, and still has a price to be weighed by
    prices = [max(row.cost, 0.01) for row in snapshot.active]
    numbers = {row.name: row.id for row in snapshot.active}
    pool = {"annotator": list(numbers), "price": prices}
    by_id = {(row.query, row.item): row.id for row in snapshot.items}
    requests = _requests(snapshot, judgments, pool, _money(snapshot)).filter(pl.col("annotator").is_not_null())
    return [[numbers[row["annotator"]], _target(row, by_id)[1]] for row in requests.iter_rows(named=True)]


def _price(settings: Settings) -> int:
    """What the cheapest judgment costs."""
    return max(1, min(settings.cost.values()))


def _money(snapshot: Snapshot) -> int:
    """What is laid out until the next fit."""
    return min(snapshot.money, _price(snapshot.settings) * max(_MIN_PROPOSED, len(snapshot.rows) // 10))


def _requests(snapshot: Snapshot, judgments: Any, pool: Any, money: int) -> pl.DataFrame:
    """What the scheme wants next, of anyone who comes or of a pool."""
    settings = snapshot.settings
    single = all(row.query == "" for row in snapshot.items)
    shared = {} if single else {"query": [row.query for row in snapshot.items]}
    return api.requests(
        judgments, settings.scheme, {**shared, "item": [row.item for row in snapshot.items]}, pool, money,
        params=dict(settings.params), price=_price(settings) if pool is None else None, least_gain=settings.least_gain,
        seed=settings.seed, open=_open_frame(snapshot, {row.id: row.item for row in snapshot.items}, single=single),
    ).frame()  # fmt: skip


def _target(row: dict[str, Any], by_id: dict[tuple[str, str], int]) -> tuple[str, list[int]]:
    """The query and the items that a request asks about."""
    query = row.get("query", "") or ""
    sides = ("item",) if "item" in row else ("left", "right")
    return query, sorted(by_id[query, row[side]] for side in sides)


def _open_frame(snapshot: Snapshot, ids: dict[int, str], *, single: bool) -> Any:
    """Requests that are held, as a table; ``None`` where there are none."""
    if not snapshot.offered:
        return None
    sides = ("item",) if snapshot.settings.kind == "grade" else ("left", "right")
    rows = [(row.query, json.loads(row.items), row.annotator) for row in snapshot.offered]
    columns: dict[str, Any] = {} if single else {"query": [query for query, _, _ in rows]}
    columns |= {side: [ids[items[place]] for _, items, _ in rows] for place, side in enumerate(sides)}
    return {**columns, "annotator": [name for _, _, name in rows]}


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

    def say(line: dict[str, Any]) -> None:
        out.write(json.dumps(line, allow_nan=False) + "\n")
        out.flush()

    if first.get("kind"):
        warm_up(first["kind"])
    held: Held | None = None
    for command in given:
        if command.get("update"):
            if held is None:
                say({"done": True, "seq": None})
            else:
                _answer(say, update, store, command["campaign"], held, say)
        else:
            held = fit_all(store, command["campaign"], held, say, cold=bool(command.get("cold"))) or held


def warm_up(kind: str) -> None:
    """Fit made-up judgments, so that all that a fit needs is loaded before anybody waits for one."""
    said: dict[str, Any] = {"query": "", "time": 0.0, "counted": True, "annotator_kind": "person"}
    items = [SimpleNamespace(query="", item=name, id=number) for number, name in enumerate("abcd")]
    answers: dict[str, list[dict[str, Any]]] = {
        "grade": [{"item": name, "grade": place % 2} for place, name in enumerate("abcd")],
        "preference": [{"left": one, "right": two, "winner": "left"} for one, two in combinations("abcd", 2)],
        "ranking": [{"order": [["a"], ["b"], ["c"], ["d"]]}],
    }
    rows = [{**said, **one, "annotator": who, "submission": who} for who in "xyz" for one in answers[kind]]
    grades = ("worse", "better") if kind == "grade" else ()
    settings = Settings(name="", kind=kind, budget=1, grades=grades)
    fit(Snapshot(0, 0, settings, 0, rows, [], items, [], {}, [], []), None, lambda line: None, cold=True)


def fit_all(store: Store, campaign: int, held: Held | None, say: Say, *, cold: bool) -> Held | None:
    """Find and say the consensus of all questions; return what is held of the first, ``None`` where there is none."""
    snapshot = read_snapshot(store, campaign)
    say({"begun": True, "seq": snapshot.seq, "changes": snapshot.changes})
    new = None
    if snapshot.rows:
        consensus = _answer(say, fit, snapshot, None if held is None else held.consensus, say, cold=cold)
        if consensus is None:
            return None
        new = Held(consensus, snapshot.seq, frozenset(row["annotator"] for row in snapshot.rows))
    else:
        say({"done": True, "seq": snapshot.seq, "method": "", "n_proposals": None, "summary": None})
    fit_questions(snapshot, say)
    say({"end": True})
    return new


def _answer(say: Say, work: Callable[..., Any], *args: Any, **keys: Any) -> Any:
    """What some work returns; where it cannot be done, say why."""
    try:
        return work(*args, **keys)
    except CrowdrankError as error:
        say({"failed": f"{type(error).__name__}: {error}"})
        return None


if __name__ == "__main__":
    main()
