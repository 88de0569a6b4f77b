"""Doubtful cases for people: a campaign for ``crowdrank serve``, and its votes back as those of trusted annotators."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import ParameterError
from ..io.tables import read_table
from .answers import Answers
from .running import JudgeRun

_PEOPLE_PER_CASE = 3
_ITEMS = ".items.csv"
_COLUMNS = ("left", "right", "winner", "annotator", "time")


def write_campaign(
    run: JudgeRun, answers: Answers, path: str | Path, *, question: str, share: float = 0.1, seed: int = 0
) -> int:
    """Write a campaign about what judges contradict each other on and a random share of the rest; return how many.

    Each pair is a query of its own there, so that nothing else is asked; the column ``of_query`` of the items says
    whose query it is.
    """
    if not 0 <= share <= 1:
        raise ParameterError(f"--people-share {share:g} must be a share from 0 to 1")
    pairs = {
        (row.get("query"), tuple(sorted((row["left"], row["right"]), key=str))) for row in run.rows if "left" in row
    }
    rest = sorted(pairs - set(run.disputed), key=str)
    chosen = np.flatnonzero(np.random.default_rng(seed).random(len(rest)) < share)
    cases = [*run.disputed, *(rest[place] for place in chosen)]
    if not cases:
        return 0
    path = Path(path)
    rows = [
        (f"case {number}", item, answers.content[answers.rows[query, item]], answers.query_content.get(query), query)
        for number, (query, items) in enumerate(cases, 1)
        for item in items
    ]
    columns = ["query", "item", "content", "query_content", "of_query"]
    table = path.with_suffix(_ITEMS)
    pl.DataFrame(rows, columns, orient="row", infer_schema_length=None).write_csv(table)
    lines = {
        "name": path.stem, "kind": "preference", "items": table.name, "question": question, "scheme": "3-overlap",
        "budget": _PEOPLE_PER_CASE * len(cases),
    }  # fmt: skip
    # strings and whole numbers are written alike in TOML and JSON
    text = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in lines.items())
    path.write_text(text, "utf-8")
    return len(cases)


def votes_of_people(rows: Iterable[Mapping[str, Any]], path: str | Path) -> pl.DataFrame | None:
    """Return what people answered in a campaign, with the queries that the pairs are of; ``None`` where nobody did."""
    table = Path(path).with_suffix(_ITEMS)
    of_query = dict(read_table(table).select("query", "of_query").iter_rows()) if table.exists() else {}
    votes = []
    for row in rows:
        if row.get("annotator_kind") == "person":
            # what is exported of a single case does not name it
            query = row.get("query", "case 1")
            given = {"query": of_query.get(query, query), **{name: row.get(name) for name in _COLUMNS}}
            votes.append({name: value for name, value in given.items() if value is not None} | {"group": "person"})
    return pl.DataFrame(votes) if votes else None
