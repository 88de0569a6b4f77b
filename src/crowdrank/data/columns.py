"""Which column of a foreign table is which: the house's words and the names other tools use for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
    "rank": ("position", "place"),
    "ranking": ("ranking_id", "rankingid", "list", "list_id"),
    "weight": ("count",),
    "time": ("timestamp", "tstamp", "datetime", "date", "created_at", "submitted_at"),
    "group": ("family",),
    "price": ("cost", "rate", "fee", "pay"),
    "capacity": ("limit", "quota", "available", "max_judgments"),
}  # fmt: skip
"""House word -> names understood for it, the most telling first; compared without case, with ``. - space`` as ``_``."""

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
    "grade": ("query", "annotator", "weight", "time", "group"),
    "preference": ("query", "annotator", "weight", "time", "group"),
    "ranking": ("query", "annotator", "ranking", "weight", "time", "group"),
}
BY_WINNER = (
    ("winner", "loser"), ("winner_id", "loser_id"), ("winning_item", "losing_item"), ("chosen", "rejected"),
    ("preferred", "rejected"), ("preferred", "dispreferred"), ("better", "worse"),
)  # fmt: skip
"""Names of two columns that hold winners and losers, for preferences without left and right."""

_MOST_LISTED = 100


@dataclass(frozen=True)
class Understood:
    """What a table's columns were taken for."""

    kind: str
    columns: dict[str, str]
    """House word -> column name of the table."""
    ignored: tuple[str, ...]

    def sentence(self) -> str:
        """Say what was understood, in one line."""
        parts = [word if word == name else f"{word} = {name!r}" for word, name in self.columns.items()]
        left_out = f"; not used: {', '.join(map(repr, self.ignored))}" if self.ignored else ""
        sides = "; which item was shown on which side is not known" if "loser" in self.columns else ""
        return f"read as {self.kind}s: {', '.join(parts)}{left_out}{sides}"


def understand(names: Iterable[str], kind: str | None = None, columns: Mapping[str, str] | None = None) -> Understood:
    """Return the kind of judgment a table holds and the column for each house word.

    Parameters
    ----------
    names
        The table's column names.
    kind
        ``"grade"``, ``"preference"`` or ``"ranking"``; ``None`` tells it from the columns.
    columns
        House word -> column name, for names that are not understood by themselves.

    Examples
    --------
    >>> understand(["task", "worker", "label"]).sentence()
    "read as grades: item = 'task', grade = 'label', annotator = 'worker'"
    """
    names = [str(name) for name in names]
    _check_names(names)
    given = _given(names, columns or {})
    check_words({}, kind)
    kinds = [kind] if kind else list(NEEDED)
    found = {k: _columns_for(k, names, given) for k in kinds}
    complete = [k for k in kinds if all(word in found[k] for word in NEEDED[k])]
    by_winner = _by_winner(names, given) if "preference" in kinds else {}
    if by_winner and ("loser" in given or "preference" not in complete):
        found["preference"], complete = by_winner, ["preference"]
    if not complete:
        raise JudgmentError(_missing(names, found))
    if "preference" in complete:
        complete = ["preference"]
    if len(complete) > 1:
        raise JudgmentError(
            "the table has both a grade and a rank column; say which is meant "
            f"with {option('kind', 'grade')} or {option('kind', 'ranking')}"
        )
    chosen = found[complete[0]]
    if "loser" not in chosen:
        _check_single(complete[0], names, chosen, given)
    ignored = tuple(name for name in names if name not in chosen.values())
    return Understood(complete[0], chosen, ignored)


def understand_items(
    names: Iterable[str], columns: Mapping[str, str] | None = None, also: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return the columns of a table about items, such as features or truth: item, query and the words in ``also``."""
    names = [str(name) for name in names]
    _check_names(names)
    given = _given(names, columns or {})
    words = ("item", "query", *also)
    found = _assign(words, names, given)
    if "item" not in found:
        raise JudgmentError(f"the table has no item column ({_could_serve(names, found)}); {naming('item')}")
    return found


def understand_pairs(names: Iterable[str], columns: Mapping[str, str] | None = None) -> dict[str, str] | None:
    """Return the columns left, right and query of a table about pairs of items; ``None`` where it is about none."""
    names = [str(name) for name in names]
    _check_names(names)
    found = _assign(("left", "right", "query"), names, _given(names, columns or {}))
    return found if "left" in found and "right" in found else None


def understand_annotators(names: Iterable[str], columns: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the columns of a table about annotators: annotator, and price, capacity and group where they are there."""
    names = [str(name) for name in names]
    _check_names(names)
    found = _assign(("annotator", "price", "capacity", "group"), names, _given(names, columns or {}))
    if "annotator" not in found:
        raise JudgmentError(f"the table has no annotator column ({_could_serve(names, found)}); {naming('annotator')}")
    return found


def _columns_for(kind: str, names: list[str], given: dict[str, str]) -> dict[str, str]:
    """House word -> column for one kind, as far as the names tell."""
    found = _assign((*NEEDED[kind], *OPTIONAL[kind]), names, given)
    return {word: found[word] for word in (*NEEDED[kind], *OPTIONAL[kind]) if word in found}


def _by_winner(names: list[str], given: dict[str, str]) -> dict[str, str]:
    """House word -> column of a table of winners and losers; empty where it is none."""
    plain = {plain_name(name): name for name in reversed(names)}
    for winner, loser in BY_WINNER:
        pair = {"winner": given.get("winner", plain.get(winner)), "loser": given.get("loser", plain.get(loser))}
        both = {word: name for word, name in pair.items() if name is not None}
        if len(set(both.values())) == 2:
            found = _assign(("winner", "loser", "tie", *OPTIONAL["preference"]), names, given | both)
            return {word: found[word] for word in ("winner", "loser", "tie", *OPTIONAL["preference"]) if word in found}
    return {}


def _assign(words: tuple[str, ...], names: list[str], given: dict[str, str]) -> dict[str, str]:
    """Give each word its column: the given one, its own name, or the first foreign name that is free."""
    plain = {plain_name(name): name for name in reversed(names)}
    plain |= {name: name for name in names if name == plain_name(name)}
    found = {word: given[word] for word in words if word in given}
    for word in words:
        if word not in found and word in plain and plain[word] not in found.values():
            found[word] = plain[word]
    for word in words:
        for foreign in FOREIGN[word] if word not in found else ():
            if foreign in plain and plain[foreign] not in found.values():
                found[word] = plain[foreign]
                break
    for word in ("item", "query"):
        for foreign in EITHER if word in words and word not in found else ():
            if foreign in plain and plain[foreign] not in found.values():
                found[word] = plain[foreign]
                break
    return found


def plain_name(name: str) -> str:
    """Return a name in lower case, with white space, dots and dashes as underscores."""
    return re.sub(r"[\s.\-]+", "_", name.strip().lower())


def _given(names: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The user's own naming, checked."""
    check_words(columns)
    for word, name in columns.items():
        if name not in names:
            raise JudgmentError(
                f"{option('columns')} says {word} is {name!r}, but the table's columns are {quoted(names)}"
            )
    return dict(columns)


def check_words(columns: Mapping[str, str], kind: str | None = None) -> None:
    """Refuse house words, and a kind, that there are none of."""
    for word in columns:
        if word not in FOREIGN:
            raise ParameterError(f"{option('columns')} names {word!r}, which is none of {', '.join(FOREIGN)}")
    if kind is not None:
        one_of(kind, NEEDED, "kind", of_verb=True)


def _check_names(names: list[str]) -> None:
    """Refuse doubled column names."""
    plain = [name.strip() for name in names]
    doubled = sorted({name for name in plain if plain.count(name) > 1})
    if doubled:
        raise JudgmentError(
            f"column {doubled[0]!r} stands {plain.count(doubled[0])} times in the header; rename one of them"
        )


def _check_single(kind: str, names: list[str], chosen: dict[str, str], given: dict[str, str]) -> None:
    """Refuse a needed column that two foreign names could equally mean."""
    for word in NEEDED[kind]:
        if word in given or plain_name(chosen[word]) == word:
            continue
        rivals = [n for n in names if n not in chosen.values() and plain_name(n) in FOREIGN[word] and word != "item"]
        if rivals:
            raise JudgmentError(
                f"columns {chosen[word]!r} and {rivals[0]!r} could both be the {word}; "
                f"say which with {option('columns', {word: ...})}"
            )


def _missing(names: list[str], found: dict[str, dict[str, str]]) -> str:
    """Sentence saying what was understood and what is missing for the nearest kind."""
    kind = max(found, key=lambda k: sum(word in found[k] for word in NEEDED[k]))
    lacking = [word for word in NEEDED[kind] if word not in found[kind]]
    known = ", ".join(f"{word} = {name!r}" for word, name in found[kind].items()) or "nothing"
    return (
        f"the table lacks {' and '.join(lacking)} to be read as {kind}s "
        f"(understood: {known}; {_could_serve(names, found[kind])}); "
        f"name the column with {option('columns', {lacking[0]: ...})}"
    )


def _could_serve(names: list[str], found: Mapping[str, str]) -> str:
    """The columns that are free for what is missing."""
    return f"columns that could serve: {quoted([name for name in names if name not in found.values()])}"


def quoted(names: Sequence[str]) -> str:
    """Return the names in quotes; of a very wide table so many as fit a screen."""
    return first_few([repr(name[:60]) for name in names], shown=_MOST_LISTED)
