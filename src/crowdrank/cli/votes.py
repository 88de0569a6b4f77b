"""From what was typed to values, and from files of votes to judgments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .. import api, io
from ..errors import JudgmentError, ParameterError
from ..options import READING, Option, typed_words
from ..wording import counted
from .talk import Talk

if TYPE_CHECKING:
    from ..cluster.packed import PackedJudgments
    from ..data.judgments import Judgments, Mixed
    from ..io.read_options import ReadOptions

_CHANGES = ("across_queries", "as_preferences", "as_rankings", "without")
"""Options about reading that change judgments once they are read."""


class Reading(SimpleNamespace):
    """How files of judgments are read and what is done with them first: options by the names they have in Python.

    ``words`` are the same options as they were typed.
    """

    def but(self, **changes: Any) -> Reading:
        """Return the options with some changed."""
        return Reading(**{**vars(self), **changes})

    def options(self, control: str | None = None, **changes: Any) -> ReadOptions:
        """Return how files are read, with the covariates to control for."""
        from ..io.read_options import read_options

        apart = (*_CHANGES, "words")
        given = {name: value for name, value in vars(self).items() if name not in apart and value is not None}
        if control is not None:
            from ..api import read_covariates_of

            given |= read_covariates_of(control)
        return read_options(**given | changes)


class Asked(SimpleNamespace):
    """What was asked of a command: its options by the names they have in Python, those about reading as ``reading``."""

    @classmethod
    def from_typed(cls, options: Sequence[Option], given: Mapping[str, Any]) -> Asked:
        """Return the options from what was typed."""
        if not set(READING) <= set(options):
            return cls(**values_of(options, given))
        own = values_of([option for option in options if option not in READING], given)
        return cls(**own, reading=Reading(words=typed_words(READING, given), **values_of(READING, given)))

    def but(self, **changes: Any) -> Asked:
        """Return the options with some changed or added."""
        return Asked(**{**vars(self), **changes})

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
            raise ParameterError(
                f"{option} {text!r} is not of the form key=value; write for example {option} {example}"
            )
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
    from ..data.column_names import FOREIGN

    words = "|".join((*FOREIGN, r"[\w ]+_(?:left|right)"))
    each = [part for text in texts for part in re.split(rf",(?=\s*(?:{words})\s*=)", text)]
    return pairs(each, "--column", "annotator=Who")


def read_votes(votes: Sequence[str], reading: Reading, talk: Talk, control: str | None = None) -> Judgments | Mixed:
    """Return the judgments in the files, with the covariates to control for, and say what they are."""
    import numpy as np

    from ..data.column_names import understand_items
    from ..data.judgments import count_kinds, with_listed_items, with_pseudonyms
    from ..data.naming import named_annotators
    from ..io.judgments import read_files

    # annotators are left out by name before names are replaced
    options = reading.options(control, pseudonyms=False)
    listed = None
    if reading.across_queries and reading.items:
        table = io.read_table(reading.items)
        # items that are the same in all queries are listed once, without one
        listed = None if "query" in understand_items(table.columns) else table
        options = replace(options, items=table if listed is None else None)
    with talk.working("reading the votes"):
        packed = expect_packed_alone(votes)
        judgments = api.as_judgments(votes[0]) if packed else read_files(votes, options)
        n_queries = judgments.n_queries
        if reading.without:
            keep = ~named_annotators(judgments, reading.without, "without")[judgments.annotator]
            if not keep.any():
                raise JudgmentError("no judgment is left without these annotators; name fewer with --without")
            judgments = judgments.select(keep)
        judgments = judgments.as_rankings() if reading.as_rankings else judgments
        judgments = judgments.as_preferences() if reading.as_preferences else judgments
        judgments = judgments.across_queries() if reading.across_queries else judgments
        judgments = judgments if listed is None else with_listed_items(judgments, listed)
        judgments = with_pseudonyms(judgments) if reading.pseudonyms else judgments
    n_annotators = int(np.count_nonzero(np.bincount(judgments.annotator, minlength=1)))
    by = f" by {counted(n_annotators, 'annotator')}" if judgments.n_annotators else ""
    queries = f" of {counted(judgments.n_queries, 'query')}" if not judgments.items.single else ""
    merged = f", over {counted(n_queries, 'query')} taken together" if reading.across_queries else ""
    talk.say(f"{count_kinds(judgments)}{by} on {counted(judgments.n_items, 'item')}{queries}{merged}")
    return judgments


def read_settled(asked: Asked, talk: Talk) -> Judgments | Mixed:
    """Return the judgments after the rule for exchanged sides, with own families where these are to be controlled."""

    judgments = read_votes(asked.votes, asked.reading, talk, asked.control)
    judgments = api.settle_swaps(judgments, getattr(asked, "swaps", "keep"))
    # diagnose writes families of annotators, so those of items have a name of their own there
    families = asked.item_families if hasattr(asked, "item_families") else asked.families
    return judgments if families is None else api.with_families(judgments, io.read_table(families))


def votes_to_learn(votes: Sequence[str], reading: Reading, talk: Talk) -> Judgments | Mixed | PackedJudgments:
    """Return the judgments that a ranker learns from: packed ones as they are where nothing is to be done to them."""
    from ..cluster.packed import scan_judgments

    changed = any(getattr(reading, name) for name in (*_CHANGES, "pseudonyms"))
    if changed or len(votes) > 1 or not expect_packed_alone(votes):
        return read_votes(votes, reading, talk)
    packed = scan_judgments(votes[0])
    talk.say(packed_in_words(packed))
    return packed


def refuse_unpackable(reading: Reading, remedy: str) -> None:
    """Refuse options that change the judgments as a whole, where some rows are read at a time."""
    for name in ("without", "as_rankings", "as_preferences"):
        if getattr(reading, name):
            raise ParameterError(
                f"--{name.replace('_', '-')} needs all judgments at once, but these are read some rows at a time; "
                f"{remedy}"
            )


def expect_packed_alone(votes: Sequence[str]) -> bool:
    """Return whether votes are packed, which cannot be read together with other files."""
    from ..cluster.packed import is_packed

    packed = [name for name in votes if is_packed(name)]
    if packed and len(votes) > 1:
        raise ParameterError(
            f"{packed[0]} holds packed judgments, which cannot be combined with other files; pack those into it too"
        )
    return bool(packed)


def packed_in_words(packed: PackedJudgments) -> str:
    """Return how many judgments are packed, by how many annotators, on what."""
    by = f" by {counted(packed.n_annotators, 'annotator')}" if packed.n_annotators else ""
    queries = "" if packed.manifest["single"] else f" of {counted(packed.n_queries, 'query')}"
    on = f"{counted(packed.n_items, 'item')}{queries}"
    return f"{counted(packed.rows, packed.kind)}{by} on {on}, packed in {counted(packed.n_parts, 'part')}"
