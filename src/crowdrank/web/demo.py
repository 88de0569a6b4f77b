"""``crowdrank serve --demo``: campaigns of made-up items that work in any browser at once, and programs that judge."""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
import webbrowser
from pathlib import Path
from typing import Any

from ..client import CallError, Client
from . import server
from .access import OWNER, Invite, new_invite, new_token, token_hash

CAMPAIGNS = tuple(str(Path(__file__).parent / "demo_campaign" / name) for name in ("pairs.toml", "grades.toml"))
"""The campaigns as an owner would write them, with their items and guidelines beside them."""

_JUDGES = (("longest wins", 0.1), ("careful", 0.05), ("hasty", 0.4), ("second opinion", 0.15), ("coin", 1.0))
"""Programs that judge along, and how often each of them only guesses."""

_SECONDS_EACH = 1.5


def serve_demo(*, host: str, port: int, db: str | None, quiet: bool) -> None:
    """Serve the demo until the process is told to stop; say where, and open the annotator's page."""
    with tempfile.TemporaryDirectory() as folder:
        options = server.Options(
            campaign=CAMPAIGNS[0], others=CAMPAIGNS[1:], db=db or f"{folder}/demo.db", host=host, port=port,
            log_calls=not quiet,
        )  # fmt: skip
        server.expect_port(options)
        token, links, judges = new_token(OWNER), [], []
        with server.open_campaigns(options, token_hash(token)) as opened:
            for collection, _, place in opened:
                _, person = collection.write(new_invite, Invite(kind="person", uses=1000))
                _, program = collection.write(new_invite, Invite(kind="program", uses=1000))
                links.append(f"{options.url}{place}/j/#{person}")
                judges += [(f"{options.url}{place}", program, *one) for one in _JUDGES]
        created = any(new for _, new, _ in opened)
        lines = [f"annotate {kind}:  {link}" for kind, link in zip(("pairs ", "grades"), links, strict=True)]
        if created:
            lines.append(f"owner's page:     {options.url}/owner/#{token}")
            for one in judges:
                threading.Thread(target=_judge_along, args=one, daemon=True).start()
        sys.stdout.write("\n".join([*lines, "programs judge along; stop with Ctrl-C"]) + "\n")
        sys.stdout.flush()
        if sys.stdout.isatty():
            threading.Timer(1.5, webbrowser.open, [links[0]]).start()
        server.run(options)


def _judge_along(url: str, invite: str, name: str, guesses: float) -> None:
    """Judge one request after the other, as a program over HTTP does: longer answers are better, unless it guesses."""
    draws = random.Random(name)

    def judge(request: Any) -> dict[str, Any]:
        time.sleep(draws.uniform(0.5, 1.5) * _SECONDS_EACH)
        lengths = [len(item.content) for item in request.items]
        if request.kind == "grade":
            guess = draws.random() < guesses
            grade, tone = (draws.randrange(4), draws.randrange(3)) if guess else (min(3, lengths[0] // 30), 1)
            faults = {"faults": {"choice": ["length"] if lengths[0] < 45 else ["facts"]}} if grade < 2 else {}
            return {"answers": {"help": {"grade": grade}, "tone": {"grade": tone}, **faults}}
        if draws.random() < guesses:
            return {"winner": draws.choice(["a", "b"])}
        return {"winner": "tie" if lengths[0] == lengths[1] else "a" if lengths[0] > lengths[1] else "b"}

    for _ in range(120):
        try:
            with Client.join(url, invite, name) as client:
                client.work(judge, n=1)
            return
        except OSError:
            # the service is only starting
            time.sleep(1.0)
        except CallError:
            # the owner has removed this judge, or the demo goes on that others have judged
            return
