"""``crowdrank serve --demo``: a small campaign of made-up items that works in any browser at once."""

from __future__ import annotations

import sys
import tempfile
import threading
import webbrowser
from pathlib import Path

from . import server
from .campaign_file import read_campaign

_QUESTIONS = {
    "How do I keep basil alive in winter?": (
        "Put it on the brightest window sill, water it when the top of the soil is dry, and keep it above **12 °C**.",
        "Basil is an annual. Buy a new one in spring.",
        "Water it every day, twice if it looks sad. Cold windows are fine.",
        "Use a grow lamp for *12 hours a day*; pinch off flowers, and feed it every other week.",
        "Basil is a herb of the mint family that is used in many dishes around the world.",
    ),
    "Why is the sky blue?": (
        "Air scatters short wavelengths more than long ones, so blue light reaches us from everywhere.",
        "Because it mirrors the sea.",
        "Sunlight is white; molecules of air scatter its blue part about **four times** as much as its red part.",
        "It is not: it is black, as you see at night.",
    ),
    "What is a good first programming language?": (
        "Python: little to type, much to build, and help everywhere.",
        "The one that the thing you want to build is written in.",
        "Assembly, so that you know what really happens.",
        "Start with `print('hello')` in Python and change it until it does something that you want.",
    ),
}
_GUIDELINES = """# What to do

You see a question and two answers. Choose the one that helps the person who asked more.

- Facts count more than style.
- If both are equally good, or equally bad, choose the tie.
- Skip what you cannot judge.
"""
_CAMPAIGN = """name = "Demo: which answer is better?"
kind = "preference"
items = "items.csv"
scheme = "2-overlap"
budget = 1000
lease_seconds = 300
question = "Which answer is better?"
consent = "guidelines.md"
"""


def write_demo(folder: Path) -> Path:
    """Write the demo's campaign file and items into a folder, and return the name of the file."""
    import polars as pl

    rows = [
        {"query": f"q{number}", "item": f"q{number}-a{place}", "content": text, "content_type": "markdown",
         "query_content": question}
        for number, (question, texts) in enumerate(_QUESTIONS.items())
        for place, text in enumerate(texts)
    ]  # fmt: skip
    pl.DataFrame(rows).write_csv(folder / "items.csv")
    (folder / "guidelines.md").write_text(_GUIDELINES, "utf-8")
    (folder / "campaign.toml").write_text(_CAMPAIGN, "utf-8")
    return folder / "campaign.toml"


def serve_demo(*, host: str, port: int, db: str | None, quiet: bool) -> None:
    """Serve the demo until the process is told to stop; say where, and open the annotator's page."""
    from .access import OWNER, Invite, new_invite, new_token, token_hash
    from .collection import open_store
    from .setup import open_collection

    with tempfile.TemporaryDirectory() as folder:
        campaign = write_demo(Path(folder))
        options = server.Options(
            campaign=str(campaign), db=db or f"{folder}/demo.db", host=host, port=port, log_calls=not quiet
        )
        server.expect_port(options)
        token = new_token(OWNER)
        store = open_store(options.db)
        collection, created = open_collection(store, read_campaign(campaign), token_hash(token))
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
