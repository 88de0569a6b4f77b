"""From what was typed to values, and from files of votes to judgments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from .. import api, io
from ..errors import JudgmentError, ParameterError
from ..options import READING, Option, typed_words
from ..wording import counted
from .talk import Talk

if TYPE_CHECKING:
    import polars as pl

_MOST_VALUES = 100
"""Values of a column that are looked at one by one."""

_CHANGES = ("across_queries", "as_preferences", "as_rankings", "without")
"""Options about reading that change judgments once they are read."""


class Named(SimpleNamespace):
    """Options by the names they have in Python."""

    def but(self, **changes: Any) -> Self:
        """Return the options with some changed or added."""
        return type(self)(**{**vars(self), **changes})


class Reading(Named):
    """How files of judgments are read and what is done with them first; ``words`` are these options as typed."""

    def options(self, control: str | None = None, **changes: Any) -> io.ReadOptions:
        """Return how files are read, with the covariates to control for."""

        from ..io.read_options import read_options

        apart = (*_CHANGES, "words")
        given = {name: value for name, value in vars(self).items() if name not in apart and value is not None}
        if control is not None:
            given |= api.read_covariates_of(control)
        return read_options(**given | changes)


class Asked(Named):
    """What was asked of a command; options about reading are its ``reading``."""

    @classmethod
    def from_typed(cls, options: Sequence[Option], given: Mapping[str, Any]) -> Asked:
        """Return the options from what was typed."""
        if not set(READING) <= set(options):
            return cls(**values_of(options, given))
        own = values_of([option for option in options if option not in READING], given)
        return cls(**own, reading=Reading(words=typed_words(READING, given), **values_of(READING, given)))

    def arguments(self, verb: Callable[..., Any]) -> dict[str, Any]:
        """Return those options that are arguments of a function, by their names."""
        return {name: getattr(self, name) for name in inspect.signature(verb).parameters if hasattr(self, name)}


def values_of(options: Iterable[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was typed as the values that Python takes, by the names that Python has for them."""
    values: dict[str, Any] = {}
    for option in options:
        value, reads = given.get(option.name), option.reads
        flag = option.flags[0] if option.flags else ""
        if reads == "columns":
            value = column_names(value)
        elif reads == "pairs":
            value = pairs(value, flag, option.example)
        elif reads == "":
            value = value if option.value is True else option.value if value else None
        elif value is None:
            pass
        elif reads == "pair":
            value = pairs([value], flag, "score=left", last=True)
        elif reads == "codes":
            value = pairs(split_list(value), flag, "1=left,2=right,0=tie", last=True) or None
        elif reads == "list":
            value = split_list(value)
        elif reads == "share":
            with suppress(ValueError):  # the name of a file
                value = float(value)
        else:
            try:
                value = [float(part) for part in value.split(",")]
            except ValueError:
                raise ParameterError(f"{flag} {value!r} is not a list of numbers; write for example 1,3") from None
        values[option.name] = value
    return values


def split_list(text: str) -> list[str]:
    """Return the parts between commas, those within brackets left alone.

    Examples
    --------
    >>> split_list("ndcg@5(linear, ties=first), map")
    ['ndcg@5(linear, ties=first)', 'map']
    """
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def pairs(texts: Sequence[str] | None, option: str, example: str, *, last: bool = False) -> dict[str, str]:
    """Return the values by key of texts such as ``alpha=2``; what is not of that form is refused with the example.

    A key with an equals sign in it is whole where the ``last`` one counts.

    Examples
    --------
    >>> pairs(["alpha=2"], "--set", "alpha=2")
    {'alpha': '2'}
    >>> pairs(["better (1=a, 7=b)-4=right"], "--strength", "score=left", last=True)
    {'better (1=a, 7=b)-4': 'right'}
    """
    by_key: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = (part.strip() for part in (text.rpartition("=") if last else text.partition("=")))
        if not (key and equals and value):
            remedy = f"write for example {option} {example}"
            raise ParameterError(f"{option} {text!r} is not of the form key=value; {remedy}")
        if key in by_key:
            raise ParameterError(f"{option} names {key!r} twice; keep one of them")
        by_key[key] = value
    return by_key


def column_names(texts: Sequence[str] | None) -> dict[str, str]:
    """Return house word -> column name of ``--column``, several of which may stand behind each other.

    Examples
    --------
    >>> column_names(["query=doc_id,item=model", "grade=so, so"])
    {'query': 'doc_id', 'item': 'model', 'grade': 'so, so'}
    """
    if not texts:
        return {}

    words = "|".join((*api.FOREIGN, r"[\w ]+_(?:left|right)"))
    each = [part for text in texts for part in re.split(rf",(?=\s*(?:{words})\s*=)", text)]
    return pairs(each, "--column", "annotator=Who")


def read_votes(
    votes: Sequence[str], reading: Reading, talk: Talk, control: str | None = None
) -> api.Judgments | api.Mixed:
    """Return the judgments in the files, with the covariates to control for, and say what they are."""
    import numpy as np

    # annotators are left out by name before names are replaced
    options = reading.options(control, pseudonyms=False)
    listed = None
    if reading.across_queries and reading.items:
        table = io.read_table(reading.items)
        # items that are the same in all queries are listed once, without one
        listed = None if "query" in api.understand_items(table.columns) else table
        options = replace(options, items=table if listed is None else None)
    with talk.working("reading the votes"):
        packed = expect_packed_alone(votes)
        judgments = api.as_judgments(votes[0]) if packed else io.read_files(votes, options)
        n_queries = judgments.n_queries
        if reading.without:
            keep = ~api.named_annotators(judgments, reading.without, "without")[judgments.annotator]
            if not keep.any():
                raise JudgmentError("no judgment is left without these annotators; name fewer with --without")
            judgments = judgments.select(keep)
        judgments = judgments.as_rankings() if reading.as_rankings else judgments
        judgments = judgments.as_preferences() if reading.as_preferences else judgments
        judgments = judgments.across_queries() if reading.across_queries else judgments
        judgments = judgments if listed is None else api.with_listed_items(judgments, listed)
        judgments = api.with_pseudonyms(judgments) if reading.pseudonyms else judgments
    n_annotators = int(np.count_nonzero(np.bincount(judgments.annotator, minlength=1)))
    by = f" by {counted(n_annotators, 'annotator')}" if judgments.n_annotators else ""
    queries = f" of {counted(judgments.n_queries, 'query')}" if not judgments.items.single else ""
    merged = f", over {counted(n_queries, 'query')} taken together" if reading.across_queries else ""
    talk.say(f"{api.count_kinds(judgments)}{by} on {counted(judgments.n_items, 'item')}{queries}{merged}")
    return judgments


def read_settled(asked: Asked, talk: Talk) -> api.Judgments | api.Mixed:
    """Return the judgments after the rule for exchanged sides, with own families where these are to be controlled."""

    judgments = read_votes(asked.votes, asked.reading, talk, asked.control)
    judgments = api.settle_swaps(judgments, getattr(asked, "swaps", "keep"))
    # diagnose writes families of annotators, so those of items have a name of their own there
    families = asked.item_families if hasattr(asked, "item_families") else asked.families
    return judgments if families is None else api.with_families(judgments, io.read_table(families))


def votes_to_learn(
    votes: Sequence[str], reading: Reading, talk: Talk
) -> api.Judgments | api.Mixed | api.PackedJudgments:
    """Return the judgments that a ranker learns from: packed ones as they are where nothing is to be done to them."""

    changed = any(getattr(reading, name) for name in (*_CHANGES, "pseudonyms"))
    if changed or len(votes) > 1 or not expect_packed_alone(votes):
        return read_votes(votes, reading, talk)
    packed = api.scan_judgments(votes[0])
    talk.say(packed_in_words(packed))
    return packed


def column_values(
    votes: Sequence[str], tables: Sequence[pl.DataFrame], column: str, *, named: str = "", fewest: int = 0
) -> list[str]:
    """Return the values of a column of files, each of which is looked at by itself."""
    for name, table in zip(votes, tables, strict=True):
        if column not in table.columns:
            raise JudgmentError(f"{name} has no column {column!r}; its columns are {', '.join(table.columns)}")
    values = sorted({str(one) for table in tables for one in table[column].cast(str).drop_nulls().to_list()})
    if not fewest <= len(values) <= _MOST_VALUES:
        several = f"{max(fewest, 1)} to {_MOST_VALUES}"
        raise JudgmentError(f"{named}{column} has {len(values):,} values; name a column with {several}")
    return values


def refuse(asked: SimpleNamespace, names: str, why: str) -> None:
    """Refuse the first of some options that was given, and say why."""
    for name in names.split():
        if getattr(asked, name) and getattr(asked, name) not in ("keep", "order"):
            raise ParameterError(f"--{name.replace('_', '-')} {why}")


def refuse_unpackable(reading: Reading, remedy: str) -> None:
    """Refuse options that change the judgments as a whole, where some rows are read at a time."""
    why = "needs all judgments at once, but these are read some rows at a time"
    refuse(reading, "without as_rankings as_preferences", f"{why}; {remedy}")


def expect_packed_alone(votes: Sequence[str]) -> bool:
    """Return whether votes are packed, which cannot be read together with other files."""

    packed = [name for name in votes if api.is_packed(name)]
    if packed and len(votes) > 1:
        remedy = "pack those into it too"
        raise ParameterError(f"{packed[0]} holds packed judgments, which cannot be combined with other files; {remedy}")
    return bool(packed)


def packed_in_words(packed: api.PackedJudgments) -> str:
    """Return how many judgments are packed, by how many annotators, on what."""
    by = f" by {counted(packed.n_annotators, 'annotator')}" if packed.n_annotators else ""
    queries = "" if packed.manifest["single"] else f" of {counted(packed.n_queries, 'query')}"
    on = f"{counted(packed.n_items, 'item')}{queries}"
    return f"{counted(packed.rows, packed.kind)}{by} on {on}, packed in {counted(packed.n_parts, 'part')}"
