"""The tables of a campaign and their versions; laying one out or taking it up; opening, pausing and closing it."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import combinations
from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.schema import CreateColumn

from ..errors import ParameterError
from .campaign_file import Campaign, Item, Settings, changed_settings
from .collection import Collection, Fault, SqliteStore, Store, record_event, sql

metadata = MetaData()
_Id = BigInteger().with_variant(Integer, "sqlite")


def _table(name: str, *parts: Column[int] | Column[str] | sa.Constraint | Index) -> Table:
    """A table with a numbered ``id``."""
    return Table(name, metadata, Column("id", _Id, primary_key=True, autoincrement=True), *parts)


def _number(name: str, default: int | None = None) -> Column[int]:
    """A column of whole numbers that is never blank."""
    return Column(name, BigInteger, nullable=False, server_default=None if default is None else str(default))


def _optional(name: str) -> Column[int]:
    """A column of whole numbers that may be blank."""
    return Column(name, BigInteger)


def _words(name: str, default: str | None = None) -> Column[str]:
    """A column of text that is never blank."""
    return Column(name, Text, nullable=False, server_default=default)


def _of(table: str, name: str | None = None) -> Column[int]:
    """A column that points to a row of another table."""
    return Column(name or table, _Id, ForeignKey(f"{table}.id"), nullable=False)


_table(
    "campaign", _words("name"), _words("kind"), _words("scheme"), _words("settings"), _words("items_hash"),
    _words("owner_hash"), _number("budget"), _number("reserved", 0), _number("spent", 0), _words("state", "open"),
    _number("seq", 0), _number("changes", 0), _number("created_at"), _number("revision", 0),
    Column("file_settings", Text), _number("told_seq", 0), _number("told_event", 0),
    CheckConstraint("reserved >= 0 AND reserved <= budget", name="within_budget"),
    CheckConstraint("spent >= 0 AND spent <= reserved", name="spent_reserved"),
    sa.UniqueConstraint("name"),
)  # fmt: skip
_table(
    "item", _of("campaign"), _words("query"), _words("item"), _words("content"), _words("content_type"),
    _words("query_content", ""), Column("truth", sa.Double), _words("explanation", ""),
    sa.UniqueConstraint("campaign", "query", "item"),
)  # fmt: skip
_table(
    "target", _of("campaign"), _words("query"), _words("items"), _words("key"), _number("wanted"), _number("taken", 0),
    _number("most"), Column("priority", sa.Double, nullable=False, server_default="0"), _number("shuffle"),
    _number("is_check", 0), _number("n_skipped", 0), sa.UniqueConstraint("campaign", "key"),
    CheckConstraint("taken >= 0 AND taken <= wanted AND wanted <= most", name="seats"),
)  # fmt: skip
_table(
    "annotator", _of("campaign"), _words("name"), _words("kind"), Column("token_hash", Text, unique=True),
    _number("cost"), _words("state", "active"), _number("n_answered", 0), _number("joined_at"),
    _optional("consented_at"), _words("external", ""), _optional("trained_at"), _words("message", ""),
    sa.UniqueConstraint("campaign", "name"),
)  # fmt: skip
_table(
    "invite", _of("campaign"), Column("token_hash", Text, nullable=False, unique=True), _words("kind"),
    Column("name", Text), _optional("annotator"), _number("uses_left"), _number("expires_at"), _optional("revoked_at"),
    _number("created_at"),
    CheckConstraint("uses_left >= 0", name="uses"),
)  # fmt: skip
_table(
    "request", _of("target"), _of("annotator"), _optional("seat"), _words("state"), _words("shown"),
    _number("offered_at"), _number("lease_until"), _number("lease_most"), _optional("ended_at"), _number("cost"),
    Column("reason", Text),
)  # fmt: skip
Table(
    "judgment", metadata, Column("submission", Text, primary_key=True), _of("campaign"), _number("seq"), _of("request"),
    _of("annotator"), _of("target"), _words("answer"), _words("body_hash"), Column("seconds", sa.Double),
    _number("counted"), _number("paid", 1), _number("at"), _optional("withdrawn_at"), Column("replaces", Text),
    _words("source", ""), _words("comment", ""), sa.UniqueConstraint("campaign", "seq"),
)  # fmt: skip
_table(
    "fit", _of("campaign"), _number("seq"), _number("changes"), _words("method", ""), _words("summary", "{}"),
    _number("started_at"), _optional("finished_at"), Column("error", Text), _number("is_final", 0),
    _words("question", ""),
)  # fmt: skip
Table(
    "score", metadata, Column("fit", _Id, ForeignKey("fit.id"), primary_key=True),
    Column("item", _Id, primary_key=True), _number("place"), _words("row"), Column("value", sa.Double),
    Column("width", sa.Double), _number("n", 0),
)  # fmt: skip
Table(
    "quality", metadata, Column("fit", _Id, ForeignKey("fit.id"), primary_key=True),
    Column("annotator", Text, primary_key=True), _number("place"), _words("row"),
)  # fmt: skip
_table(
    "training", _of("annotator"), _words("items"), _words("shown"), Column("answer", Text), _optional("is_right"),
    _number("round", 1), _number("offered_at"), _optional("ended_at"),
)  # fmt: skip
_table(
    "member", _of("campaign"), _words("name"), _words("role"), Column("token_hash", Text, nullable=False, unique=True),
    _number("created_at"), _optional("revoked_at"),
)  # fmt: skip
_table(
    "review", _of("campaign"), _of("target"), _words("answer"), _words("shown"), _words("note", ""), _words("actor"),
    _number("at"),
)  # fmt: skip
_table(
    "course", _of("campaign"), _number("seq"), _number("spent"), Column("doubt", sa.Double), Column("alpha", sa.Double),
    _number("at"),
)  # fmt: skip
_table("event", _of("campaign"), _number("at"), _words("actor"), _words("kind"), _words("detail", "{}"))

_INDEXES = (
    "CREATE INDEX target_open ON target (campaign, priority DESC, shuffle) WHERE taken < wanted AND is_check = 0",
    "CREATE INDEX target_checks ON target (campaign, shuffle) WHERE is_check = 1",
    "CREATE UNIQUE INDEX request_seat ON request (target, seat) WHERE state IN ('offered', 'answered')",
    "CREATE UNIQUE INDEX request_once ON request (target, annotator) WHERE state IN ('offered', 'answered', 'skipped')",
    "CREATE INDEX request_mine ON request (annotator) WHERE state = 'offered'",
    "CREATE INDEX request_lease ON request (lease_until) WHERE state = 'offered'",
    "CREATE INDEX request_target ON request (target)",
    "CREATE UNIQUE INDEX judgment_request ON judgment (request) WHERE withdrawn_at IS NULL",
    "CREATE INDEX judgment_target ON judgment (target)",
    "CREATE INDEX judgment_annotator ON judgment (annotator, seq)",
    "CREATE INDEX fit_latest ON fit (campaign, seq DESC)",
    "CREATE INDEX event_at ON event (campaign, at)",
)


def _create_first_version(connection: sa.Connection) -> None:
    """The tables of version 1."""
    metadata.create_all(connection)
    for statement in _INDEXES:
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


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (
    _create_first_version, *(_add_what_is_new,) * 5,
)  # fmt: skip
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
_ITEM_COLUMNS = ("query", "item", "content", "content_type", "query_content", "truth", "explanation")


def open_collection(
    store: Store, campaign: Campaign, owner_hash: str, *, beside: Sequence[str] = ()
) -> tuple[Collection, bool]:
    """Return the campaign in the database, laid out there first where it is new, and whether it was.

    ``beside`` has the names of all that are served together: a database with others only is taken for a slip.
    """
    return store.submit(lambda connection: _open(connection, store, campaign, owner_hash, beside)).result()


def _open(
    connection: sa.Connection, store: Store, campaign: Campaign, owner_hash: str, beside: Sequence[str]
) -> tuple[Collection, bool]:
    if connection.dialect.name == "postgresql":
        # two servers that start at once must not lay it out twice
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(72170001)")
    migrate(connection)
    settings = campaign.settings
    former_row = sql.campaign_named.first(connection, name=settings.name)
    if former_row is None:
        others = [row.name for row in sql.campaign_names.rows(connection)]
        if others and not set(others) & set(beside):
            # rather a slip than another campaign for the same database
            raise ParameterError(
                f"the database holds the campaign {others[0]!r}, not {settings.name!r}; name another with --db"
            )
        collection = _create(connection, store, campaign, owner_hash)
        return collection, True
    if former_row.items_hash != items_hash(campaign.items):
        raise ParameterError(
            "the items differ from those the campaign began with; put them back, or start another with another --db"
        )
    former = Settings.from_plain(json.loads(former_row.settings))
    # what was set on the owner's page stays; of the file only what was edited since it was last read
    read = Settings.from_plain(json.loads(former_row.file_settings or former_row.settings))
    edited = changed_settings(read, settings, former_row.reserved)
    differ = {one.name: getattr(edited, one.name) for one in fields(Settings)
              if getattr(edited, one.name) != getattr(read, one.name)}  # fmt: skip
    settings = replace(former, **differ)
    collection = Collection(former_row.id, settings, store, campaign.folder, revision=former_row.revision)
    sql.keep_file_settings.run(connection, campaign=collection.id, settings=json.dumps(edited.plain()))
    # the clock goes on from the last moment on record, should the machine's be behind it
    latest = sql.latest_event.first(connection, campaign=collection.id).at
    if isinstance(store, SqliteStore) and latest is not None:
        store.clock.not_before(latest)
    if settings != former:
        _change(connection, collection)
    return collection, False


def _create(connection: sa.Connection, store: Store, campaign: Campaign, owner_hash: str) -> Collection:
    """The campaign with its items and targets."""
    settings = campaign.settings
    row = sql.insert_campaign.first(
        connection, name=settings.name, kind=settings.kind, scheme=settings.scheme,
        settings=json.dumps(settings.plain()), items_hash=items_hash(campaign.items), owner_hash=owner_hash,
        budget=settings.budget, now=store.now(connection),
    )  # fmt: skip
    collection = Collection(int(row.id), settings, store, campaign.folder)
    sql.keep_file_settings.run(connection, campaign=collection.id, settings=json.dumps(settings.plain()))
    insert_items(connection, collection, campaign.items)
    table = metadata.tables["item"]
    rows = connection.execute(
        sa.select(table.c.id, table.c.query, table.c.truth)
        .where(table.c.campaign == collection.id)
        .order_by(table.c.id)
    )
    targets = list(_targets(collection, [tuple(one) for one in rows]))
    _complete_some_first(collection, targets)
    insert_rows(connection, "target", iter(targets))
    record_event(collection, connection, "owner", "created", {"n_items": len(campaign.items)})
    return collection


def _change(connection: sa.Connection, collection: Collection) -> None:
    """Put the settings of an edited file into force."""
    settings = collection.settings
    sql.update_settings.run(
        connection, campaign=collection.id, settings=json.dumps(settings.plain()), budget=settings.budget
    )
    sql.raise_most.run(connection, campaign=collection.id, most=settings.overlap_max)
    rule = collection.rule
    if rule is not None and not hasattr(rule.rule, "good_from"):
        sql.raise_wanted.run(connection, campaign=collection.id, wanted=min(rule.most, settings.overlap_max))
    record_event(collection, connection, "owner", "settings", {"budget": settings.budget})


def items_hash(items: tuple[Item, ...]) -> str:
    """Return a fingerprint of the items, in whatever order they stand."""
    # what an item has no words for is left out, as files of earlier versions had no such column
    plain = ({k: v for k, v in _plain(item).items() if v or k != "explanation"} for item in items)
    rows = sorted(json.dumps(row, sort_keys=True) for row in plain)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def target_key(items: list[int], *, is_check: bool = False) -> str:
    """Return what tells a target from all others: the items that it asks about."""
    return ("check:" if is_check else "") + ",".join(map(str, sorted(items)))


def target_row(
    collection: Collection, query: str, items: list[int], wanted: int, *, is_check: bool = False, priority: float = 0.0
) -> dict[str, Any]:
    """Return a target as its table holds it."""
    return {
        "campaign": collection.id, "query": query, "items": json.dumps(sorted(items)),
        "key": target_key(items, is_check=is_check), "wanted": 0 if is_check else wanted,
        "most": _UNLIMITED if is_check else collection.settings.overlap_max, "priority": priority,
        "shuffle": random.getrandbits(31), "is_check": int(is_check),
    }  # fmt: skip


def _targets(collection: Collection, items: list[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """What the campaign asks about at first."""
    settings, rule = collection.settings, collection.rule
    wanted = min(rule.n_wanted([]), settings.overlap_max) if rule is not None else 1
    queries: dict[str, list[tuple[int, float | None]]] = {}
    for number, query, truth in items:
        queries.setdefault(query, []).append((number, truth))
    draws = random.Random(settings.seed)
    if settings.kind == "grade":
        for number, query, truth in items:
            yield target_row(collection, query, [number], wanted, is_check=bool(settings.checks) and truth is not None)
        return
    if settings.kind == "preference":
        number = sum(math.comb(len(members), 2) for members in queries.values())
        if rule is not None and number > MAX_TARGETS:
            raise ParameterError(
                f"there are {number:,} pairs of items, more than the {MAX_TARGETS:,} that can be asked about one by "
                'one; use scheme = "information", which chooses pairs'
            )
        for query, members in queries.items():
            yield from _pairs(collection, query, members, wanted, draws, every=rule is not None)
        return
    for query, members in queries.items():
        yield from _sets(collection, query, members, wanted, draws)


def _complete_some_first(collection: Collection, targets: list[dict[str, Any]]) -> None:
    """Put a share of the targets before all others, to be completed one by one: quality and agreement need overlap."""
    settings, waits = collection.settings, collection.rule is None
    several = [target for target in targets if target["most"] > 1 and target["wanted"] > (0 if waits else 1)]
    number = max(MIN_OVERLAP_FIRST, math.ceil(settings.overlap_first * len(several))) if settings.overlap_first else 0
    for target in random.Random(settings.seed).sample(several, min(number, len(several))):
        target["priority"] = COMPLETED_FIRST
        if waits:
            target["wanted"] = _OVERLAP_BEFORE_FIT


def _pairs(
    collection: Collection, query: str, members: list[tuple[int, float | None]], wanted: int, draws: random.Random,
    *, every: bool,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Pairs of one query: all of them, or two rounds in which each item meets two others each time."""
    checks = collection.settings.checks
    known = {number: truth for number, truth in members if truth is not None} if checks else {}
    sure = [
        list(pair) for pair in combinations(sorted(known), 2) if known[pair[0]] != known[pair[1]]
    ]  # fmt: skip
    for pair in sure[:_MAX_CHECK_PAIRS]:
        yield target_row(collection, query, pair, 0, is_check=True)
    taken = {tuple(pair) for pair in sure}
    numbers = [number for number, _ in members]
    if every:
        pairs = {tuple(sorted(pair)) for pair in combinations(numbers, 2)}
    else:
        pairs = set()
        for _ in range(2):
            draws.shuffle(numbers)
            pairs |= {tuple(sorted(pair)) for pair in zip(numbers, [*numbers[1:], numbers[0]], strict=True)}
        pairs = {pair for pair in pairs if pair[0] != pair[1]}
    for one in sorted(pairs - taken):
        yield target_row(collection, query, list(one), wanted)


def _sets(
    collection: Collection, query: str, members: list[tuple[int, float | None]], wanted: int, draws: random.Random
) -> Iterator[dict[str, Any]]:
    """Sets of one query's items, each item in as many as the settings say; sets of known truth are checks."""
    settings = collection.settings
    seen: set[str] = set()
    known = [number for number, truth in members if truth is not None]
    groups: list[tuple[list[int], bool]] = []
    if settings.checks and len(known) >= 2:
        draws.shuffle(known)
        groups.append((known[: settings.set_size], True))
    numbers = [number for number, _ in members]
    for _ in range(settings.sets_per_item):
        draws.shuffle(numbers)
        n_sets = max(1, math.ceil(len(numbers) / settings.set_size))
        parts = [numbers[place::n_sets] for place in range(n_sets)]
        groups += [
            (part if len(part) > 1 else [*part, *[n for n in numbers if n not in part][:1]], False) for part in parts
        ]
    for group, is_check in groups:
        key = target_key(group, is_check=is_check)
        if key not in seen:
            seen.add(key)
            yield target_row(collection, query, group, wanted, is_check=is_check)


def insert_items(connection: sa.Connection, collection: Collection, items: tuple[Item, ...]) -> None:
    """Insert the items of a campaign."""
    insert_rows(connection, "item", ({**_plain(item), "campaign": collection.id} for item in items))


def insert_rows(connection: sa.Connection, table: str, rows: Iterator[dict[str, Any]]) -> None:
    """Insert rows, some thousand at a time."""
    statement = sa.insert(metadata.tables[table])
    part: list[dict[str, Any]] = []
    for row in rows:
        part.append(row)
        if len(part) == _ROWS_AT_ONCE:
            connection.execute(statement, part)
            part = []
    if part:
        connection.execute(statement, part)


def _plain(item: Item) -> dict[str, Any]:
    """An item as its table holds it."""
    return {name: getattr(item, name) for name in _ITEM_COLUMNS}


def set_campaign_state(collection: Collection, connection: sa.Connection, state: str, actor: str) -> None:
    """Open, pause or close a campaign; closing ends every request that is held, and is for good."""
    cost = 0
    if state == "closed":
        # targets first, the campaign last: the order of all operations
        now = collection.now(connection)
        for row in sql.held_in_campaign.rows(connection, campaign=collection.id):
            sql.end_request.run(connection, request=row.id, now=now)
            if row.seat is not None:
                sql.free_seat.run(connection, target=row.target)
            cost += row.cost
    former = sql.lock_campaign.first(connection, campaign=collection.id).state
    if former == "closed":
        if state == "closed":
            return
        raise Fault("closed", "the campaign is closed for good; start another to ask more")
    if former == state:
        return
    sql.set_campaign_state.run(connection, campaign=collection.id, state=state)
    if cost:
        sql.give_back.run(connection, campaign=collection.id, cost=cost)
    record_event(collection, connection, actor, state)


def nothing_left(collection: Collection, connection: sa.Connection) -> bool:
    """Return whether nothing is open and nothing is held, so that a campaign may close itself."""
    named = {"campaign": collection.id}
    return sql.any_open_target.first(connection, **named) is None and sql.any_held.first(connection, **named) is None
