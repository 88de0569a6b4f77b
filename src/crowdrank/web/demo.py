"""``crowdrank serve --demo``: a small campaign of made-up items that works in any browser at once."""

from __future__ import annotations

import sys
import tempfile
import threading
import webbrowser
from pathlib import Path

from . import server
from .campaign_file import read_campaign

CAMPAIGN = Path(__file__).parent / "demo_campaign" / "campaign.toml"
"""The campaign as an owner would write it, with its items and guidelines beside it."""


def serve_demo(*, host: str, port: int, db: str | None, quiet: bool) -> None:
    """Serve the demo until the process is told to stop; say where, and open the annotator's page."""
    from .access import OWNER, Invite, new_invite, new_token, token_hash
    from .collection import open_store
    from .setup import open_collection

    with tempfile.TemporaryDirectory() as folder:
        options = server.Options(
            campaign=str(CAMPAIGN), db=db or f"{folder}/demo.db", host=host, port=port, log_calls=not quiet
        )
        server.expect_port(options)
        token = new_token(OWNER)
        store = open_store(options.database(options.campaign))
        collection, created = open_collection(store, read_campaign(CAMPAIGN), token_hash(token))
        wanted = Invite(kind="person", uses=1000)
        _, invite = store.submit(lambda connection: new_invite(collection, connection, wanted)).result()
        store.close()
        link = f"{options.url}/j/#{invite}"
        lines = [f"annotate:     {link}"]
        if created:
            lines.append(f"owner's page: {options.url}/owner/#{token}")
        sys.stdout.write("\n".join([*lines, "stop with Ctrl-C"]) + "\n")
        sys.stdout.flush()
        if sys.stdout.isatty():
            threading.Timer(1.5, webbrowser.open, [link]).start()
        server.run(options)
