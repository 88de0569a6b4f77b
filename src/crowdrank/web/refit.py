"""Keeping the consensus up to date: when to find it again, and writing what the worker says, a piece at a time."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from .campaign_file import Json
from .collection import Collection, PostgresStore, Session, log, record_event, sql
from .setup import metadata, nothing_left, set_campaign_state, target_key, target_row

FIT_SECONDS = 1_800.0
"""A fit that takes longer is given up; the former one stays."""

IDLE_SECONDS = 30.0
UPDATE_SECONDS = 3.0
_PAUSE_RATIO = 10.0
"""Between two fits, items with new judgments are read anew no more often, and in a tenth of the time at most."""

_FIRST_SECONDS = 2.0
"""New judgments wait at least so long, where fits are quick: their sender wants to see something."""

FEW_NEW = 20
KEPT_FITS = 3
MOST_MEANT = 200
"""Targets that are kept for one annotator until the next fit."""


class FitError(Exception):
    """A fit that came to nothing; the former one stays."""


class Worker:
    """The process that fits, and the lines that it says."""

    def __init__(self, database: str, kind: str = "") -> None:
        command, pipe = [sys.executable, "-m", "crowdrank.web.refit_worker"], subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="refit-lines", daemon=True).start()
        try:
            # the address may hold a password, which a command line would show to everybody
            self.ask({"database": database, "kind": kind})
        except FitError:
            self.end()
            raise

    def ask(self, command: Json) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise FitError("the fitting process has ended") from None

    def answer(self, timeout: float) -> Json:
        """Return the next line that the process says."""
        try:
            line = self._lines.get(timeout=max(timeout, 0.0))
        except queue.Empty:
            raise FitError("the fit took too long") from None
        if line is None:
            raise FitError(f"the fitting process ended with code {self.process.wait()}")
        return json.loads(line)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def end(self) -> None:
        """End the process at once: it holds nothing that could be lost."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError, AttributeError):
                stream.close()  # type: ignore[union-attr]


class Refit:
    """A thread that has the consensus found again when enough judgments are new."""

    def __init__(self, collection: Collection, *, fit_seconds: float = FIT_SECONDS, idle: float = IDLE_SECONDS) -> None:
        self.collection = collection
        self.fit_seconds = fit_seconds
        self.idle = idle
        self._worker: Worker | None = None
        self._wake = threading.Event()
        self._stopping = False
        self._last, self._took = time.monotonic(), 0.0
        self._failures = 0
        self._held: int | None = None
        """The fit that the process holds, where it can read items anew; up to which judgment it did, and when."""
        self._updated, self._updated_at, self._pause = 0, 0.0, UPDATE_SECONDS
        self._lock: Any = None
        self._thread = threading.Thread(target=self._run, name="refit", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def wake(self) -> None:
        """Look at once whether a fit is due."""
        self._wake.set()

    def stop(self) -> None:
        """Give up whatever is under way."""
        self._stopping = True
        self._wake.set()
        if self._worker is not None:
            self._worker.end()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        if self._is_fitting_process():
            # it takes seconds to load what it needs, and nobody waits yet
            self._worker = Worker(self.collection.store.url, self.collection.settings.kind)
        while not self._stopping:
            self._wake.wait(1.0)
            self._wake.clear()
            try:
                due = self.due()
                if due is not None:
                    self.fit_now(cold=due)
                elif self.update_due():
                    self.update_now()
            except FitError:
                continue
            except Exception:
                if not self._stopping:
                    log.exception({"event": "refit"})
                    time.sleep(1.0)

    def due(self) -> bool | None:
        """Return whether a fit is due: ``True`` for the last one, cold, of a closed campaign, ``None`` for none."""
        if not self._is_fitting_process():
            return None
        collection = self.collection
        row = collection.read(sql.fit_needed.first)
        waited = time.monotonic() - self._last
        if self._failures and waited < min(600.0, self.idle * 2 ** (self._failures - 1)):
            return None
        if row.state == "closed":
            return True if not row.is_final or row.fit_changes != row.changes else None
        new = row.seq - (row.fit_seq or 0) + (row.fit_changes is not None and row.changes != row.fit_changes)
        patience = min(self.idle, max(_FIRST_SECONDS, _PAUSE_RATIO * self._took))
        if new >= max(FEW_NEW, row.seq // 100) or (new > 0 and waited >= patience):
            return False
        # nobody is kept waiting for the next requests, nor a campaign for its end
        waited_for = new > 0 and (collection.settings.close_when_done or collection.rule is None)
        if waited_for and collection.read(nothing_left):
            return False
        return None

    def fit_now(self, *, cold: bool = False) -> None:
        """Have the consensus found, and write it; a failure is noted and leaves the former one."""
        try:
            seconds = self._fit(cold)
        except FitError as error:
            self._last, self._failures = time.monotonic(), self._failures + 1
            self._give_up("refit_failed", error)
            raise
        self._last, self._failures, self._took = time.monotonic(), 0, seconds
        log.info({"event": "refit", "seconds": round(seconds, 3), "final": cold})

    def update_due(self) -> bool:
        """Return whether items got judgments since the last fit, or since they were read anew."""
        if self._held is None or time.monotonic() - self._updated_at < self._pause:
            return False
        row = self.collection.read(sql.fit_needed.first)
        return bool(row.state != "closed" and row.seq > self._updated)

    def update_now(self) -> None:
        """Have items with new judgments read anew, annotators as in the last fit; a failure leaves what there is."""
        worker, fit = self._worker, self._held
        if worker is None or fit is None:
            return
        began = self._updated_at = time.monotonic()
        try:
            for line in self._said(worker, update=True):
                if "done" in line:
                    break
                self.collection.write(_keep_touched, fit, line["rows"])
        except FitError as error:
            self._give_up("update_failed", error)
            raise
        self._pause = max(UPDATE_SECONDS, _PAUSE_RATIO * (time.monotonic() - began))
        if line["seq"] is None:
            self._held = None
            return
        self._updated = line["seq"]
        if line["n_touched"]:
            self.collection.write(_note_update, fit, line["seq"])

    def _give_up(self, event: str, error: FitError) -> None:
        """End the process; another begins with the next fit."""
        self._held = None
        if self._worker is not None:
            self._worker.end()
            self._worker = None
        if not self._stopping:
            log.warning({"event": event, "reason": str(error)[:200]})

    def _said(self, worker: Worker, **command: Any) -> Iterator[Json]:
        """Give a command, and return the lines that the process says to it."""
        until = time.monotonic() + self.fit_seconds
        worker.ask({"campaign": self.collection.id, **command})
        while True:
            line = worker.answer(until - time.monotonic())
            if "failed" in line:
                raise FitError(line["failed"])
            yield line

    def _fit(self, cold: bool) -> float:
        collection, began = self.collection, time.monotonic()
        self._held = None
        if self._worker is None or self._worker.process.poll() is not None:
            self._worker = Worker(collection.store.url)
        # the question that the scheme goes by comes first, then the others
        fit, proposed, question = 0, 0, ""
        seen: set[str] = set()
        meant: list[Any] = []
        try:
            for line in self._said(self._worker, cold=cold):
                if "end" in line:
                    break
                if "begun" in line:
                    question = line.get("question", "")
                    fit = collection.write(_begin, question, line["seq"], line["changes"], cold)
                elif line.get("piece") == "proposals":
                    seen |= {target_key(items) for _, items, _ in line["rows"]}
                    collection.write(_want, line["rows"], proposed)
                    proposed += len(line["rows"])
                elif line.get("piece") == "meant":
                    meant = line["rows"]
                elif "piece" in line:
                    collection.write(_keep_rows, line["piece"], fit, line["rows"])
                elif "done" in line:
                    if line["n_proposals"] is not None:
                        self._ask_about(seen, meant)
                    summary = line["summary"]
                    nothing = None if summary is not None else "there are no judgments to count"
                    error = line.get("error", nothing)
                    collection.write(_finish, fit, line["method"], json.dumps(summary), error, question)
                    if not question:
                        self._held = fit if summary is not None and summary.get("reads_anew") else None
                        self._updated, self._pause = line["seq"], UPDATE_SECONDS
        except FitError as failed:
            if fit and not self._stopping:
                collection.write(_finish, fit, "", "{}", str(failed)[:500], question)
            raise
        collection.write(_close_if_done)
        return time.monotonic() - began

    def _ask_about(self, seen: set[str], rows: list[Any]) -> None:
        """Ask no more about what the scheme does not want any more, and remember what is best asked of whom.

        Nobody is waited for, so it is a wish and is kept in memory only.
        """
        collection = self.collection
        targets = collection.read(sql.open_target_keys.rows)
        others = [row.id for row in targets if row.key not in seen]
        for start in range(0, len(others), 500):
            collection.write(_want_no_more, others[start : start + 500])
        numbers = {row.key: row.id for row in targets}
        meant: dict[int, list[int]] = {}
        for annotator, items in rows:
            target, mine = numbers.get(target_key(items)), meant.setdefault(annotator, [])
            if target is not None and len(mine) < MOST_MEANT:
                mine.append(target)
        collection.meant.clear()
        collection.meant.update(meant)

    def _is_fitting_process(self) -> bool:
        """Whether this process is the one that fits; of several on PostgreSQL only one does."""
        store = self.collection.store
        if not isinstance(store, PostgresStore) or self._lock is not None:
            return True
        connection = store.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        number = 72_170_100 + self.collection.id
        if connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({number})").scalar_one():
            self._lock = connection
            return True
        connection.close()
        return False


def _begin(db: Session, question: str, seq: int, changes: int, final: bool) -> int:
    """Number of a new fit."""
    row = sql.begin_fit.first(db, question=question, seq=seq, changes=changes, now=db.now(), final=int(final))
    return int(row.id)


def _keep_rows(db: Session, piece: str, fit: int, rows: list[Any]) -> None:
    """Keep a piece of scores or qualities."""
    names = ("item" if piece == "score" else "annotator", "place", "row", "value", "width", "n")
    values = [{"fit": fit, **dict(zip(names, row, strict=False))} for row in rows]
    db.connection.execute(sa.insert(metadata.tables[piece]), values)


def _keep_touched(db: Session, fit: int, rows: list[Any]) -> None:
    """Keep what items are now beside what the fit says of them; items that it does not have wait for the next."""
    now = dict(rows)
    changed = [
        {"fit": fit, "item": one.item, "row": json.dumps({**json.loads(one.row), "since_fit": now[one.item]})}
        for one in sql.scores_of_items.rows(db, fit=fit, items=list(now))
    ]
    sql.keep_score.run_many(db, changed)


def _note_update(db: Session, fit: int, seq: int) -> None:
    """Note up to which judgment items were read anew."""
    row = sql.fit_summary.first(db, fit=fit)
    if row is not None:
        summary = json.dumps({**json.loads(row.summary), "updated_seq": seq})
        sql.keep_fit_summary.run(db, fit=fit, summary=summary)


def _finish(db: Session, fit: int, method: str, summary: str, error: str | None, question: str) -> None:
    """End a fit, and forget all but the last few."""
    now = db.now()
    sql.finish_fit.run(db, fit=fit, now=now, method=method, summary=summary, error=error)
    if question or error is not None:
        return
    found = json.loads(summary)
    alpha = (found.get("agreement") or {}).get("alpha")
    sql.insert_course.run(db, fit=fit, doubt=found.get("doubt"), alpha=alpha, at=now)
    old = sql.nth_last_fit.first(db, kept=KEPT_FITS)
    if old is not None:
        for statement in (sql.forget_scores, sql.forget_qualities, sql.forget_fits):
            statement.run(db, fit=old.id)


def _want(db: Session, rows: list[Any], place: int) -> None:
    """Let targets want what a scheme asks for, the most urgent first; pairs that are new become targets."""
    numbered = enumerate(rows, place)
    keyed = sorted((target_key(items), query, items, wanted, -n) for n, (query, items, wanted) in numbered)
    for key, query, items, wanted, priority in keyed:
        target = sql.lock_target_of_key.first(db, key=key)
        if target is None:
            row = target_row(db.collection, query, items, min(wanted, db.settings.overlap_max), priority=priority)
            db.connection.execute(sa.insert(metadata.tables["target"]), row)
            continue
        number = max(target.taken, min(wanted, target.most))
        sql.want_first.run(db, target=target.id, wanted=number, priority=priority)


def _want_no_more(db: Session, targets: list[int]) -> None:
    """Let targets want no more than they have; items that nobody graded yet stay wanted, last of all."""
    unjudged = int(db.settings.kind == "grade" and not db.settings.least_gain)
    for target in sorted(targets):
        sql.close_target.run(db, target=target, unjudged=unjudged)


def _close_if_done(db: Session) -> None:
    """Close a campaign whose stop rule says so: nothing is worth asking any more, and nothing is out."""
    if not db.settings.close_when_done or not nothing_left(db):
        return
    record_event(db, "stop rule", "done")
    set_campaign_state(db, "closed", "stop rule")
