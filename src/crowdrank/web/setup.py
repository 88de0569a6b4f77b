"""The tables of a campaign and their versions; laying one out or taking it up; opening, pausing and closing it."""

from __future__ import annotations

import hashlib
import json
import math
import random
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Integer, MetaData, Table, Text, text
from sqlalchemy.schema import CreateColumn

from ..errors import ParameterError
from .campaign_file import Campaign, Item, Json, Settings, changed_settings
from .collection import Collection, Fault, Session, SqliteStore, Store, record_event, sql

metadata = MetaData()
_Id = BigInteger().with_variant(Integer, "sqlite")
_TYPES: Json = {"text": Text(), "number": BigInteger(), "real": sa.Double(), "id": _Id, "ref": _Id}


def _column(words: str) -> Column[Any]:
    """A column from the words that ``tables.toml`` has for it."""
    name, kind, *more = words.split()
    default = next((word[1:] for word in more if word.startswith("=")), None)
    of = [ForeignKey(f"{name}.id")] if kind == "ref" else []
    return Column(
        name, _TYPES[kind.rstrip("?")], *of, nullable=kind.endswith("?"), server_default=default,
        primary_key="key" in more, unique="unique" in more or None,
    )  # fmt: skip


_LAYOUT = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))
for _name, _about in _LAYOUT["tables"].items():
    Table(
        _name, metadata, *map(_column, _about["columns"]),
        *(sa.UniqueConstraint(*names) for names in _about.get("unique", ())),
        *(CheckConstraint(words, name=name) for name, words in _about.get("checks", {}).items()),
    )  # fmt: skip


def _create_first_version(connection: sa.Connection) -> None:
    """The tables of version 1."""
    metadata.create_all(connection)
    for statement in _LAYOUT["indexes"]:
        connection.exec_driver_sql(statement)


def _add_what_is_new(connection: sa.Connection) -> None:
    """The tables and columns that a database of an earlier version lacks."""
    metadata.create_all(connection)
    inspector = sa.inspect(connection)
    for table in metadata.tables.values():
        known = {column["name"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                words = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {words}")


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_create_first_version, *(_add_what_is_new,) * 5)
"""Each brings a database from the version of its place (counted from 0) to the next; released ones never change."""


def schema_version(connection: sa.Connection) -> int:
    """Return the version of a database, 0 where it holds nothing of ours."""
    if not sa.inspect(connection).has_table("schema_version"):
        return 0
    return int(connection.execute(text("SELECT version FROM schema_version")).scalar_one())


def migrate(connection: sa.Connection) -> int:
    """Bring a database up to date inside the transaction that the connection is in; return its former version."""
    before = schema_version(connection)
    if before > len(MIGRATIONS):
        raise ParameterError(
            f"the database has version {before}, and this crowdrank knows {len(MIGRATIONS)}; install a newer crowdrank"
        )
    if before == 0:
        connection.exec_driver_sql("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        connection.exec_driver_sql("INSERT INTO schema_version VALUES (0)")
    for step in MIGRATIONS[before:]:
        step(connection)
    connection.execute(text("UPDATE schema_version SET version = :v"), {"v": len(MIGRATIONS)})
    return before


MAX_TARGETS = 500_000
"""Targets that a campaign is laid out with at most; beyond it a scheme that chooses pairs is the better way."""

COMPLETED_FIRST = 1_000_000
"""Priority of targets that are completed before others; ``priority_taken`` of the statements knows it too."""

MIN_OVERLAP_FIRST = 20
_UNLIMITED = 1_000_000_000
_OVERLAP_BEFORE_FIT = 2
"""Judgments of targets that are completed first where the scheme waits for a fit."""

_MAX_CHECK_PAIRS = 2_000
_ROWS_AT_ONCE = 5_000


def open_collection(
    store: Store, campaign: Campaign, owner_hash: str, *, beside: Sequence[str] = ()
) -> tuple[Collection, bool]:
    """Return the campaign in the database, laid out there first where it is new, and whether it was.

    ``beside`` has the names of all that are served together: a database with others only is taken for a slip.
    """

    def take_up(connection: sa.Connection) -> tuple[Collection, bool]:
        db = Session(Collection(0, campaign.settings, store, campaign.folder), connection)
        if not db.is_sqlite:
            # two servers that start at once must not lay it out twice
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(72170001)")
        migrate(connection)
        settings = campaign.settings
        former_row = sql.campaign_named.first(db, name=settings.name)
        if former_row is None:
            others = [row.name for row in sql.campaign_names.rows(db)]
            if others and not set(others) & set(beside):
                # rather a slip than another campaign for the same database
                raise ParameterError(
                    f"the database holds the campaign {others[0]!r}, not {settings.name!r}; name another with --db"
                )
            return _create(db, store, campaign, owner_hash), True
        if former_row.items_hash != items_hash(campaign.items):
            raise ParameterError(
                "the items differ from those the campaign began with; put them back, or start another with another --db"
            )
        former = Settings(**json.loads(former_row.settings))
        # what was set on the owner's page stays; of the file only what was edited since it was last read
        read = Settings(**json.loads(former_row.file_settings or former_row.settings))
        edited = changed_settings(read, settings, former_row.reserved)
        differ = [one.name for one in fields(Settings) if getattr(edited, one.name) != getattr(read, one.name)]
        settings = replace(former, **{name: getattr(edited, name) for name in differ})
        collection = Collection(former_row.id, settings, store, campaign.folder, revision=former_row.revision)
        db = Session(collection, connection)
        sql.keep_file_settings.run(db, settings=json.dumps(edited.plain()))
        # the clock goes on from the last moment on record, should the machine's be behind it
        latest = sql.latest_event.first(db).at
        if isinstance(store, SqliteStore) and latest is not None:
            store.not_before(latest)
        if settings != former:
            # what was edited comes into force
            plain = json.dumps(settings.plain())
            sql.update_settings.run(db, settings=plain, budget=settings.budget, scheme=settings.scheme)
            sql.raise_most.run(db, most=settings.overlap_max)
            rule = collection.rule
            if rule is not None and not hasattr(rule.rule, "good_from"):
                sql.raise_wanted.run(db, wanted=min(rule.most, settings.overlap_max))
            record_event(db, "owner", "settings", {"budget": settings.budget})
        return collection, False

    return store.submit(take_up).result()


def _create(db: Session, store: Store, campaign: Campaign, owner_hash: str) -> Collection:
    """The campaign with its items and targets."""
    settings = campaign.settings
    row = sql.insert_campaign.first(
        db, name=settings.name, kind=settings.kind, scheme=settings.scheme,
        settings=json.dumps(settings.plain()), items_hash=items_hash(campaign.items), owner_hash=owner_hash,
        budget=settings.budget, now=store.now(db.connection),
    )  # fmt: skip
    collection = Collection(int(row.id), settings, store, campaign.folder)
    db = Session(collection, db.connection)
    sql.keep_file_settings.run(db, settings=json.dumps(settings.plain()))
    insert_items(db, campaign.items)
    targets = list(_targets(collection, sql.items.rows(db)))
    # a share of the targets comes before all others, completed one by one: quality and agreement need overlap
    waits = collection.rule is None
    several = [target for target in targets if target["most"] > 1 and target["wanted"] > (0 if waits else 1)]
    number = max(MIN_OVERLAP_FIRST, math.ceil(settings.overlap_first * len(several))) if settings.overlap_first else 0
    for target in random.Random(settings.seed).sample(several, min(number, len(several))):
        target["priority"] = COMPLETED_FIRST
        if waits:
            target["wanted"] = _OVERLAP_BEFORE_FIT
    insert_rows(db.connection, "target", iter(targets))
    record_event(db, "owner", "created", {"n_items": len(campaign.items)})
    return collection


def items_hash(items: tuple[Item, ...]) -> str:
    """Return a fingerprint of the items, in whatever order they stand."""
    # what an item has no words for is left out, as files of earlier versions had no such column
    plain = ({k: v for k, v in vars(item).items() if v or k != "explanation"} for item in items)
    rows = sorted(json.dumps(row, sort_keys=True) for row in plain)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def target_key(items: list[int], *, is_check: bool = False) -> str:
    """Return what tells a target from all others: the items that it asks about."""
    return ("check:" if is_check else "") + ",".join(map(str, sorted(items)))


def target_row(
    collection: Collection, query: str, items: list[int], wanted: int, *, is_check: bool = False, priority: float = 0.0
) -> Json:
    """Return a target as its table holds it."""
    return {
        "campaign": collection.id, "query": query, "items": json.dumps(sorted(items)),
        "key": target_key(items, is_check=is_check), "wanted": 0 if is_check else wanted,
        "most": _UNLIMITED if is_check else collection.settings.overlap_max, "priority": priority,
        "shuffle": random.getrandbits(31), "is_check": int(is_check),
    }  # fmt: skip


def _targets(collection: Collection, items: list[Any]) -> Iterator[Json]:
    """What the campaign asks about at first."""
    settings, rule = collection.settings, collection.rule
    wanted = min(rule.n_wanted([]), settings.overlap_max) if rule is not None else 1
    queries: dict[str, dict[int, float | None]] = {}
    for row in items:
        queries.setdefault(row.query, {})[row.id] = row.truth
    draws = random.Random(settings.seed)
    if settings.kind == "grade":
        for row in items:
            is_check = bool(settings.checks) and row.truth is not None
            yield target_row(collection, row.query, [row.id], wanted, is_check=is_check)
        return
    if settings.kind == "preference":
        number = sum(math.comb(len(members), 2) for members in queries.values())
        if rule is not None and number > MAX_TARGETS:
            raise ParameterError(
                f"there are {number:,} pairs of items, more than the {MAX_TARGETS:,} that can be asked about one by "
                'one; use scheme = "information", which chooses pairs'
            )
    for query, members in queries.items():
        numbers = list(members)
        known = {number: truth for number, truth in members.items() if truth is not None} if settings.checks else {}
        if settings.kind == "preference":
            # all pairs, or two rounds in which each item meets two others each time
            sure = [pair for pair in combinations(sorted(known), 2) if known[pair[0]] != known[pair[1]]]
            for pair in sure[:_MAX_CHECK_PAIRS]:
                yield target_row(collection, query, list(pair), 0, is_check=True)
            pairs = set[tuple[int, ...]]()
            if rule is not None:
                pairs = {tuple(sorted(pair)) for pair in combinations(numbers, 2)}
            for _ in range(2 if rule is None else 0):
                draws.shuffle(numbers)
                pairs |= {tuple(sorted(pair)) for pair in zip(numbers, [*numbers[1:], numbers[0]], strict=True)}
            for one in sorted(pair for pair in pairs - set(sure) if pair[0] != pair[1]):
                yield target_row(collection, query, list(one), wanted)
            continue
        # sets with each item in as many as the settings say; a set of known truth is a check
        sets: dict[str, tuple[list[int], bool]] = {}
        if len(known) >= 2:
            sure_items = list(known)
            draws.shuffle(sure_items)
            check = sure_items[: settings.set_size]
            sets[target_key(check, is_check=True)] = check, True
        for _ in range(settings.sets_per_item):
            draws.shuffle(numbers)
            n_sets = max(1, math.ceil(len(numbers) / settings.set_size))
            for place in range(n_sets):
                part = numbers[place::n_sets]
                if len(part) < 2:
                    part += [number for number in numbers if number not in part][:1]
                sets.setdefault(target_key(part), (part, False))
        for group, is_check in sets.values():
            yield target_row(collection, query, group, wanted, is_check=is_check)


def insert_items(db: Session, items: tuple[Item, ...]) -> None:
    """Insert the items of a campaign."""
    insert_rows(db.connection, "item", ({**vars(item), "campaign": db.id} for item in items))


def insert_rows(connection: sa.Connection, table: str, rows: Iterator[Json]) -> None:
    """Insert rows, some thousand at a time."""
    while part := list(islice(rows, _ROWS_AT_ONCE)):
        connection.execute(sa.insert(metadata.tables[table]), part)


def set_campaign_state(db: Session, state: str, actor: str) -> None:
    """Open, pause or close a campaign; closing ends every request that is held, and is for good."""
    cost = 0
    if state == "closed":
        # targets first, the campaign last: the order of all operations
        now = db.now()
        for row in sql.held_in_campaign.rows(db):
            sql.end_request.run(db, request=row.id, now=now)
            if row.seat is not None:
                sql.free_seat.run(db, target=row.target)
            cost += row.cost
    former = sql.lock_campaign.first(db).state
    if former == "closed":
        if state == "closed":
            return
        raise Fault("closed", "the campaign is closed for good; start another to ask more")
    if former == state:
        return
    sql.set_campaign_state.run(db, state=state)
    if cost:
        sql.give_back.run(db, cost=cost)
    record_event(db, actor, state)


def nothing_left(db: Session) -> bool:
    """Return whether nothing is open and nothing is held, so that a campaign may close itself."""
    return sql.any_open_target.first(db) is None and sql.any_held.first(db) is None
