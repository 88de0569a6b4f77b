"""Answers to judge: texts by query and item, their style and family, and those that speak to the judge."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from ..api.aggregation import style_counts
from ..api.sentences import words_of
from ..data.column_names import plain_name, quote_names, understand_items
from ..data.files import plain
from ..data.frames import to_frame
from ..data.index import plain_cells
from ..errors import JudgmentError, ParameterError
from ..features.raw_items import CONTENT_COLUMNS, SUFFIXES
from ..io.sources import blaming
from ..io.tables import read_table
from ..wording import first_few, naming

_QUERY_TEXTS = ("query_content", "query_text", "prompt_text", "question_text", "instruction")

_SPEAKS_TO_JUDGE = re.compile(
    r"(ignore|disregard|forget)\b.{0,40}\b(above|previous|prior|earlier|other|all)\b.{0,40}"
    r"\b(instruction|prompt|text|answer|response|rule)"
    r"|(as|dear|attention|hello|note to)( the| an?)?( ai| llm| impartial)? ?(judge|evaluator|grader)s?\b\s*[,:]"
    r"|\b(choose|select|pick|prefer|vote for|declare|rate|rank|grade|score)\b.{0,30}"
    r"\b(this (answer|response|one)|(answer|response) [ab]\b|me\b).{0,40}\b(winner|best|first|highest|maximum|better)"
    r"|\{\s*\"(winner|grade|ranking)\"\s*:"
    r"|<\|?(im_start|im_end|system|assistant)\|?>|\[/?INST\]",
    re.IGNORECASE | re.DOTALL,
)
"""What answers say that speak to the judge, not to whoever asked the query."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Texts to judge, a row each.

    Parameters
    ----------
    query, item
        Ids of each text; ``query`` is ``None`` where there is one query without a name.
    content
        The texts.
    query_content
        Query -> its text; nothing of queries without one.
    family
        Item -> family it belongs to.
    """

    query: list[Any]
    item: list[Any]
    content: list[str]
    query_content: Mapping[Any, str]
    family: Mapping[Any, str]

    @classmethod
    def read(cls, given: Any, columns: Mapping[str, str] | None = None) -> Answers:
        """Return the answers in a frame, a dict of columns, a file, or a folder with a file for each item."""
        if isinstance(given, str | os.PathLike):
            if given != "-" and Path(given).is_dir():
                paths = sorted(one for one in Path(given).iterdir() if one.is_file() and not one.name.startswith("."))
                if not paths:
                    raise ParameterError(f"the folder {plain(str(given))} holds no file; put one there for each item")
                tables = []
                for path in paths:
                    # a file has the answers of one item, called as it is
                    packed = path.suffix in (".gz", ".bz2", ".xz", ".zst")
                    name = path.with_suffix("").stem if packed else path.stem
                    if path.suffix.lower() in SUFFIXES["text"]:
                        table = pl.DataFrame({"content": [path.read_text("utf-8", errors="replace")]})
                    else:
                        table = read_table(path)
                    tables.append(table.with_columns(item=pl.lit(name)))
                return cls.of(pl.concat(tables, how="diagonal_relaxed"), columns)
            table = read_table(given)
            with blaming(plain(str(given))):
                return cls.of(table, columns)
        return cls.of(to_frame(given), columns)

    @classmethod
    def of(cls, table: pl.DataFrame, columns: Mapping[str, str] | None = None) -> Answers:
        """Return the answers of a table: item, content [, query] [, query_content] [, family]."""
        named = dict(columns or {})
        for word, name in named.items():
            if name not in table.columns:
                raise JudgmentError(words_of("no_column", name=name, word=word, columns=quote_names(table.columns)))
        by_plain_name = {plain_name(name): name for name in reversed(table.columns) if name not in named.values()}
        content = named.pop("content", None) or _first(by_plain_name, ("content", *CONTENT_COLUMNS["text"]))
        if content is None:
            raise JudgmentError(words_of("no_content", columns=quote_names(table.columns), naming=naming("text")))
        asked = named.pop("query_content", None) or _first(by_plain_name, _QUERY_TEXTS)
        of_family = named.pop("family", None) or _first(by_plain_name, ("family",))
        rest = [name for name in table.columns if name not in (content, asked, of_family)]
        roles = understand_items(rest, named)
        if not len(table):
            raise JudgmentError("the answers have a header but no rows; write one row per answer")
        items = plain_cells(table[roles["item"]]).to_list()
        queries = plain_cells(table[roles["query"]]).to_list() if "query" in roles else [None] * len(items)
        texts = ["" if cell is None else str(cell) for cell in plain_cells(table[content]).to_list()]
        seen: set[tuple[Any, Any]] = set()
        for row, (query, item, text) in enumerate(zip(queries, items, texts, strict=True), 1):
            where = f"row {row} of the answers"
            lacking = "item" if item is None else "query" if query is None and "query" in roles else None
            if lacking is not None:
                raise JudgmentError(f"{where} has no {lacking}; fill it in, or drop the row")
            if not text.strip():
                raise JudgmentError(f"{where} (item {item!r}) has no text to judge; fill it in, or drop the row")
            if (query, item) in seen:
                of_query = f" of query {query!r}" if query is not None else ""
                raise JudgmentError(f"{where} repeats item {item!r}{of_query}; drop one of them")
            seen.add((query, item))
        families = dict(zip(items, table[of_family].to_list(), strict=True)) if of_family is not None else {}
        # text of each query: its column, or the id itself where that is a text of several words
        asked_texts: dict[Any, str] = {}
        if asked is None:
            asked_texts = {one: one for one in set(queries) if isinstance(one, str) and len(one.split()) > 1}
        else:
            for row, (query, text) in enumerate(zip(queries, table[asked].to_list(), strict=True), 1):
                if text is not None and asked_texts.setdefault(query, str(text)) != str(text):
                    raise JudgmentError(words_of("other_text", row=row, column=asked, query=query))
        family = {item: str(families.get(item) or family_of(item)) for item in items}
        return cls(queries, items, texts, asked_texts, family)

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def recurs(self) -> bool:
        """Whether some item answers several queries, so that items are ranked over all of them."""
        return len(set(self.item)) < len(self.item)

    @cached_property
    def style(self) -> list[dict[str, int]]:
        """Length, headers, bold and lists of each text."""
        return style_counts(self.content).to_dicts()

    @cached_property
    def rows(self) -> dict[tuple[Any, Any], int]:
        """Row of each query and item."""
        return {key: row for row, key in enumerate(zip(self.query, self.item, strict=True))}

    def finding(self) -> str | None:
        """Return a sentence about answers that speak to the judge, ``None`` where there are none."""
        speaking = [row for row, text in enumerate(self.content) if _SPEAKS_TO_JUDGE.search(text)]
        if not speaking:
            return None
        of_query = ["" if query is None else f" (query {query!r})" for query in self.query]
        names = [f"{self.item[row]!r}{of_query[row]}" for row in speaking]
        verb = "answers speak" if len(speaking) > 1 else "answer speaks"
        return f'{len(speaking):,} {verb} to the judge, as in "ignore the above": {first_few(names)}; look at them'


def family_of(name: Any) -> str:
    """Return the family that a name tells of: its letters up to the first dash or digit, without a path.

    Examples
    --------
    >>> [family_of(name) for name in ("gpt-4o", "openai/GPT-3.5", "Qwen2.5-7B-Instruct", "llama3")]
    ['gpt', 'gpt', 'qwen', 'llama']
    """
    last = str(name).rsplit("/", 1)[-1].lower()
    matched = re.match(r"[^\W\d_]+", last)
    return matched[0] if matched else last


def _first(known: Mapping[str, str], wanted: Sequence[str]) -> str | None:
    """The first column that has one of these names."""
    return next((known[name] for name in wanted if name in known), None)
