"""Which column of a foreign table is which: the house's words and the names other tools use for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..errors import JudgmentError, ParameterError
from ..wording import first_few, naming, one_of, option

FOREIGN: dict[str, tuple[str, ...]] = {
    "annotator": (
        "annotator_id", "worker", "worker_id", "workerid", "performer", "rater", "rater_id", "raterid",
        "judge", "judge_id", "judgeid", "judge_model", "labeler", "labeller", "assessor", "assessor_id",
        "reviewer", "reviewer_id", "reviewerid", "evaluator", "coder", "voter", "user", "user_id", "userid",
    ),
    "query": (
        "query_id", "queryid", "qid", "topic", "topic_id", "topicid", "segment", "segment_id", "segmentid", "context",
    ),
    "item": (
        "item_id", "itemid", "document", "document_id", "doc", "doc_id", "docid", "docno", "url", "object", "candidate",
        "alternative", "system", "system_id", "model", "player", "image",
    ),
    "grade": ("label", "rating", "relevance", "rel", "answer", "response", "vote", "value", "score"),
    "left": (
        "left_item", "left_id", "item_a", "item_left", "model_a", "model_left", "system_a", "doc_a", "answer_a",
        "response_a", "option_a", "item1", "arg1", "a",
    ),
    "right": (
        "right_item", "right_id", "item_b", "item_right", "model_b", "model_right", "system_b", "doc_b", "answer_b",
        "response_b", "option_b", "item2", "arg2", "b",
    ),
    "winner": (
        "preferred", "preference", "choice", "chosen", "outcome", "verdict", "label", "answer", "vote", "result",
    ),
    "loser": (),
    "tie": ("draw", "tied", "drawn", "is_tie", "is_draw"),
    "rank": ("position", "place", "placement"),
    "ranking": ("ranking_id", "rankingid", "list", "list_id"),
    "weight": ("count",),
    "time": ("timestamp", "tstamp", "datetime", "date", "created_at", "submitted_at"),
    "group": ("family",),
    "strength": (),
    "duration": ("duration_seconds", "lead_time"),
    "judgment": (),
    "price": ("cost", "rate", "fee", "pay"),
    "capacity": ("limit", "quota", "available", "max_judgments"),
}  # fmt: skip
"""Our word -> names understood for it, the most telling first; compared without case, with ``. - space`` as ``_``."""

EITHER = (
    "task",
    "task_id",
    "taskid",
    "question",
    "question_id",
    "prompt",
    "prompt_id",
    "instance",
    "instance_id",
    "example",
)
"""Names that mean the item when no other column does, otherwise the query."""

NEEDED = {"grade": ("item", "grade"), "preference": ("left", "right", "winner"), "ranking": ("item", "rank")}
OPTIONAL = {
    "grade": ("query", "annotator", "weight", "time", "group", "duration"),
    "preference": ("query", "annotator", "weight", "time", "group", "strength", "duration", "judgment"),
    "ranking": ("query", "annotator", "ranking", "weight", "time", "group", "duration"),
}
BY_WINNER = (
    ("winner", "loser"), ("winner_id", "loser_id"), ("winning_item", "losing_item"), ("chosen", "rejected"),
    ("preferred", "rejected"), ("preferred", "dispreferred"), ("better", "worse"), ("winner_model", "loser_model"),
    ("winning_model", "losing_model"), ("chosen_model", "rejected_model"), ("chosen_response", "rejected_response"),
)  # fmt: skip
"""Names of two columns that hold winners and losers, for preferences without left and right."""

_MOST_LISTED = 100


@dataclass(frozen=True)
class Understood:
    """What a table's columns were taken for."""

    kind: str
    columns: dict[str, str]
    """Our word (``item``, ``annotator``, ...) -> name of the column of the table."""
    ignored: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What is to be known about it beside, in sentences."""

    def sentence(self) -> str:
        """Say what was understood, in one line."""
        parts = [word if word == name else f"{word} = {name!r}" for word, name in self.columns.items()]
        left_out = f"; not used: {', '.join(map(repr, self.ignored))}" if self.ignored else ""
        sides = "; which item was shown on which side is not known" if "loser" in self.columns else ""
        return f"read as {self.kind}s: {', '.join(parts)}{left_out}{sides}"


def understand_items(
    names: Iterable[str], columns: Mapping[str, str] | None = None, also: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return the columns of a table about items, such as features or truth: item, query and the words in ``also``."""
    names = [str(name) for name in names]
    check_names(names)
    given = given_columns(names, columns or {})
    words = ("item", "query", *also)
    understood = assign_columns(words, names, given)
    if "item" not in understood:
        raise JudgmentError(f"the table has no item column ({could_serve(names, understood)}); {naming('item')}")
    return understood


def understand_pairs(names: Iterable[str], columns: Mapping[str, str] | None = None) -> dict[str, str] | None:
    """Return the columns left, right and query of a table about pairs of items; ``None`` where it is about none."""
    names = [str(name) for name in names]
    check_names(names)
    understood = assign_columns(("left", "right", "query"), names, given_columns(names, columns or {}))
    return understood if "left" in understood and "right" in understood else None


def understand_annotators(names: Iterable[str], columns: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the columns of a table about annotators: annotator, and price, capacity and group where they are there."""
    names = [str(name) for name in names]
    check_names(names)
    understood = assign_columns(("annotator", "price", "capacity", "group"), names, given_columns(names, columns or {}))
    if "annotator" not in understood:
        raise JudgmentError(
            f"the table has no annotator column ({could_serve(names, understood)}); "
            "rename the one that holds it to annotator"
        )
    return understood


def assign_columns(words: tuple[str, ...], names: list[str], given: dict[str, str]) -> dict[str, str]:
    """Give each word its column: the given one, its own name, or the first foreign name that is free."""
    plain = {plain_name(name): name for name in reversed(names)}
    plain |= {name: name for name in names if name == plain_name(name)}
    assigned = {word: given[word] for word in words if word in given}
    for word in words:
        if word not in assigned and word in plain and plain[word] not in assigned.values():
            assigned[word] = plain[word]
    for word in words:
        for foreign in FOREIGN[word] if word not in assigned else ():
            if foreign in plain and plain[foreign] not in assigned.values():
                assigned[word] = plain[foreign]
                break
    for word in ("item", "query"):
        for foreign in EITHER if word in words and word not in assigned else ():
            if foreign in plain and plain[foreign] not in assigned.values():
                assigned[word] = plain[foreign]
                break
    return assigned


@lru_cache(maxsize=10_000)
def plain_name(name: str) -> str:
    """Return a name in lower case, with white space, dots and dashes as underscores."""
    return re.sub(r"[\s.\-]+", "_", name.strip().lower())


def given_columns(names: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The user's own naming, checked."""
    check_words(columns)
    for word, name in columns.items():
        if name not in names:
            raise JudgmentError(
                f"{option('columns')} says {word} is {name!r}, but the table's columns are {quote_names(names)}"
            )
    return dict(columns)


def check_words(columns: Mapping[str, str], kind: str | None = None) -> None:
    """Refuse house words, and a kind, that there are none of."""
    for word in columns:
        if word not in FOREIGN and not is_side_word(word):
            raise ParameterError(f"{option('columns')} names {word!r}, which is none of {', '.join(FOREIGN)}")
    if kind is not None:
        one_of(kind, NEEDED, "kind", of_verb=True)


def is_side_word(word: str) -> bool:
    """Return whether a word is a covariate of one side, such as ``length_left``."""
    return word not in FOREIGN and word.endswith(("_left", "_right"))


def check_names(names: list[str]) -> None:
    """Refuse doubled column names."""
    plain = [name.strip() for name in names]
    doubled = sorted({name for name in plain if plain.count(name) > 1})
    if doubled:
        raise JudgmentError(
            f"column {doubled[0]!r} stands {plain.count(doubled[0])} times in the header; rename one of them"
        )


def could_serve(names: list[str], columns: Mapping[str, str]) -> str:
    """The columns that are free for what is missing."""
    return f"columns that could serve: {quote_names([name for name in names if name not in columns.values()])}"


def quote_names(names: Sequence[str]) -> str:
    """Return the names in quotes; of a very wide table as many as fit a screen."""
    return first_few([repr(name[:60]) for name in names], shown=_MOST_LISTED)
