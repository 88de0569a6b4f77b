"""Money and replies on disk: what arrived is kept before it is used, and nothing is spent beyond the budget."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ParameterError

_TABLES = """
CREATE TABLE IF NOT EXISTS reply (
    key TEXT PRIMARY KEY, run TEXT NOT NULL, model TEXT NOT NULL, shown TEXT NOT NULL, content TEXT NOT NULL,
    logprobs TEXT NOT NULL, cost REAL NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS under_way (number INTEGER PRIMARY KEY, run TEXT NOT NULL, cost REAL NOT NULL);
CREATE TABLE IF NOT EXISTS lost (run TEXT PRIMARY KEY, cost REAL NOT NULL);
CREATE INDEX IF NOT EXISTS reply_run ON reply (run);
"""


@dataclass(frozen=True)
class Reply:
    """What a model replied: its text, the log-probabilities of its tokens, and what it cost."""

    content: str
    logprobs: Any = None
    cost: float = 0.0


def request_key(model: str, parameters: Mapping[str, Any], messages: Sequence[Mapping[str, str]]) -> str:
    """Return the checksum of model, parameters and the bytes of a prompt.

    Examples
    --------
    >>> one, other = ([{"role": "user", "content": text}] for text in "xy")
    >>> request_key("m", {}, one) == request_key("m", {}, other)
    False
    """
    text = json.dumps([model, parameters, list(messages)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class Ledger:
    """What may be spent and what was: money is reserved before a call, and settled after it.

    Parameters
    ----------
    budget, calls
        The most money and the most answered requests; ``None`` for no limit.
    """

    budget: float | None = None
    calls: int | None = None
    spent: float = 0.0
    answered: int = 0
    reserved: float = field(default=0.0, init=False)
    open: int = field(default=0, init=False)

    def reserve(self, cost: float) -> bool:
        """Reserve the money of one call, and return whether there is enough of it."""
        if self.calls is not None and self.answered + self.open >= self.calls:
            return False
        if self.budget is not None and self.spent + self.reserved + cost > self.budget:
            return False
        self.reserved += cost
        self.open += 1
        return True

    def settle(self, reserved: float, cost: float, *, answered: bool) -> None:
        """Give a reservation back and count what the call cost."""
        self.open -= 1
        # no rest of rounding is left when nothing is under way
        self.reserved = max(self.reserved - reserved, 0.0) if self.open else 0.0
        self.spent += cost
        self.answered += answered

    @property
    def is_spent(self) -> bool:
        """Whether no further call is paid for."""
        return self.calls is not None and self.answered >= self.calls


class Store:
    """Replies in an SQLite file, and what is under way; in memory where no file is named.

    A process that is killed leaves its calls under way in the file: they count as spent when the run goes on.
    """

    def __init__(self, path: str | Path | None, run: str) -> None:
        self.run = run
        try:
            self._connection = sqlite3.connect(":memory:" if path is None else path, isolation_level=None, timeout=1.0)
            # one run at a time: two would each spend the whole budget
            self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_TABLES)
        except sqlite3.Error as error:
            why = "another run is using it" if "locked" in str(error) else str(error)
            raise ParameterError(f"the cache {path} cannot be used: {why}; name another with --cache") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def ledger(self, budget: float | None, calls: int | None) -> Ledger:
        """Return the ledger of this run, with all that was spent or under way before; those are counted as lost."""
        execute = self._connection.execute
        number, cost = execute("SELECT COUNT(*), TOTAL(cost) FROM reply WHERE run = ?", (self.run,)).fetchone()
        n_lost, lost = execute("SELECT COUNT(*), TOTAL(cost) FROM under_way WHERE run = ?", (self.run,)).fetchone()
        before = execute("SELECT TOTAL(cost) FROM lost WHERE run = ?", (self.run,)).fetchone()[0]
        return Ledger(budget, calls, spent=cost + lost + before, answered=number + n_lost)

    def find(self, key: str) -> Reply | None:
        """Return a reply that arrived before, in this run or another."""
        row = self._connection.execute("SELECT content, logprobs, cost FROM reply WHERE key = ?", (key,)).fetchone()
        return None if row is None else Reply(row[0], json.loads(row[1]), row[2])

    def begin(self, cost: float) -> int:
        """Write down that a call is under way, and return its number."""
        insert = "INSERT INTO under_way (run, cost) VALUES (?, ?)"
        return int(self._connection.execute(insert, (self.run, cost)).lastrowid or 0)

    def end(self, number: int, lost: float = 0.0) -> None:
        """Write down that a call ended without a reply; ``lost`` is what it may have cost."""
        more = "INSERT INTO lost VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET cost = cost + excluded.cost"
        self._strike_off(number, more, (self.run, lost))

    def keep(self, number: int, key: str, model: str, shown: Sequence[Any], reply: Reply) -> None:
        """Keep a reply and strike its call off what is under way, both or neither."""
        values = (key, self.run, model, json.dumps(shown), reply.content, json.dumps(reply.logprobs), reply.cost)
        self._strike_off(number, "INSERT OR REPLACE INTO reply VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*values, time.time()))

    def _strike_off(self, number: int, more: str, values: Sequence[Any]) -> None:
        """Strike a call off what is under way and write what came of it, both or neither."""
        self._connection.execute("BEGIN")
        self._connection.execute("DELETE FROM under_way WHERE number = ?", (number,))
        self._connection.execute(more, values)
        self._connection.execute("COMMIT")

    def replies(self) -> list[tuple[str, list[Any], Reply]]:
        """Return model, ids shown and reply of all that arrived in this run, oldest first."""
        rows = self._connection.execute(
            "SELECT model, shown, content, logprobs, cost FROM reply WHERE run = ? ORDER BY at", (self.run,)
        ).fetchall()
        return [(row[0], json.loads(row[1]), Reply(row[2], json.loads(row[3]), row[4])) for row in rows]
