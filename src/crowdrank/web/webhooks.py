"""Telling another program what happens in a campaign: signed calls, repeated until they are taken."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import threading
import urllib.error
import urllib.request

from ..errors import ParameterError
from .campaign_file import Json
from .collection import Collection, log, sql
from .overview import item_ids
from .transfer import plain_judgment

SECRET = "CROWDRANK_WEBHOOK_SECRET"
"""Environment variable with the key by which calls are signed."""

_TOLD = {"done": "done", "closed": "stop"}
"""Events of the log that are told, and what they are called."""

_AT_ONCE = 200
_LOOK_SECONDS, _MOST_WAIT = 2.0, 300.0


def signature(secret: str, body: bytes) -> str:
    """Return what the header ``X-Crowdrank-Signature`` holds: HMAC with SHA-256 over the body.

    Examples
    --------
    >>> signature("key", b"{}")[:15]
    'sha256=a777724d'
    """
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Webhook:
    """A thread that posts new judgments, and that a campaign is done or stopped, to the address in its settings."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.secret = os.environ.get(SECRET, "")
        if not self.secret:
            raise ParameterError(f"webhook = {collection.settings.webhook!r} needs a key to sign by; set {SECRET}")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End; what was not taken is told after the next start."""
        self._stopping.set()
        self._thread.join(15)

    def _run(self) -> None:
        wait = _LOOK_SECONDS
        while not self._stopping.wait(wait):
            try:
                wait = _LOOK_SECONDS if self.tell() else min(_MOST_WAIT, 2 * wait)
            except Exception:
                log.exception({"event": "webhook"})
                wait = min(_MOST_WAIT, 2 * wait)

    def tell(self) -> bool:
        """Post what is new; return whether it was taken. Each judgment is told at least once, in order."""
        collection = self.collection
        row = collection.read(sql.told.first)
        rows = collection.read(sql.judgment_page.rows, after=row.told_seq, upto=2**62, limit=_AT_ONCE)
        events = collection.read(sql.events_after.rows, after=row.told_event, kinds=list(_TOLD))
        if not rows and not events:
            return True
        ids = collection.read(item_ids, rows)
        judged = [plain_judgment(collection.settings, one, ids) for one in rows]
        told: list[Json] = [{"type": "judgment", "judgment": one} for one in judged]
        told += [{"type": _TOLD[one.kind], "time": one.at / 1e6, "by": one.actor} for one in events]
        body = json.dumps({"campaign": collection.settings.name, "events": told}).encode()
        headers = {"content-type": "application/json", "x-crowdrank-signature": signature(self.secret, body)}
        call = urllib.request.Request(collection.settings.webhook, body, headers, method="POST")
        try:
            with urllib.request.urlopen(call, timeout=10) as answer:
                if not 200 <= answer.status < 300:
                    return False
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            log.warning({"event": "webhook_failed", "reason": type(error).__name__})
            return False
        seq, event = rows[-1].seq if rows else row.told_seq, events[-1].id if events else row.told_event
        collection.write(sql.note_told.run, seq=seq, event=event)
        return True
