"""Small campaigns for the tests of the service, and a crowd to work on them."""

import uuid
from contextlib import contextmanager
from pathlib import Path

from crowdrank.web.campaign_file import Campaign, Item, Settings, check_settings
from crowdrank.web.collection import Collection, Fault
from crowdrank.web.setup import open_collection
from crowdrank.web.submitting import Submission
from crowdrank.web.upkeep import broken_promises

GRADES = ("Bad", "Fair", "Good", "Excellent")


def campaign(kind: str = "grade", n_items: int = 6, n_queries: int = 1, n_known: int = 0, folder: str = "/tmp", **keys):
    """A campaign of made-up items; the first ones of each query have a truth."""
    given = {"name": "test", "kind": kind, "budget": 1000, "grades": GRADES if kind == "grade" else (), **keys}
    items = tuple(
        Item(query=f"q{q}", item=f"i{q}-{n}", content=f"Text {n} of {q}", query_content=f"Question {q}",
             truth=float(n % 4) if n < n_known else None)
        for q in range(n_queries) for n in range(n_items)
    )  # fmt: skip
    return Campaign(settings=check_settings(Settings(**given)), items=items, folder=Path(folder))


def collect(store, made: Campaign | None = None, **keys) -> Collection:
    """The campaign laid out in a store."""
    return open_collection(store, made or campaign(**keys), "0" * 64)[0]


def run(collection: Collection, operation, *args, **keys):
    """What an operation returns once it is durable."""
    return collection.submit(operation, *args, **keys).result(60)


def ask(collection: Collection, query: str, **values):
    """Rows of a query."""
    from sqlalchemy import text

    return collection.store.submit_read(lambda connection: list(connection.execute(text(query), values))).result(60)


def add_annotator(collection: Collection, name: str, kind: str = "person", token_hash: str | None = None) -> int:
    """Number of a new annotator."""
    from sqlalchemy import text

    values = {
        "c": collection.id, "n": name, "k": kind, "h": token_hash or uuid.uuid4().hex,
        "cost": collection.settings.cost[kind],
    }  # fmt: skip
    statement = text(
        "INSERT INTO annotator (campaign, name, kind, token_hash, cost, joined_at, consented_at) "
        "VALUES (:c, :n, :k, :h, :cost, 0, 0) RETURNING id"
    )
    return collection.store.submit(lambda connection: connection.execute(statement, values).scalar_one()).result(60)


def sent(request: int, answer=None, submission: str | None = None, seconds: float | None = 1.5) -> Submission:
    """A judgment as an annotator sends it."""
    answer = {"grade": 2} if answer is None else answer
    return Submission(submission=submission or str(uuid.uuid4()), request=request, answer=answer, seconds=seconds)


def expect_promises(collection: Collection) -> None:
    """Recount everything from the tables."""
    assert collection.store.submit(broken_promises).result(60) == []


@contextmanager
def allow(*kinds: str):
    """Let these faults pass, and no others."""
    try:
        yield
    except Fault as fault:
        if fault.kind not in kinds:
            raise
