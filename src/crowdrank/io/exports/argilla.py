"""Argilla: records of version 2, nested, flat or column by column, and feedback data sets of version 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Any

from ...data.words import not_supported, unsupported_kind
from ...errors import JudgmentError
from ...wording import counted, first_few, option
from ..sources import Source
from .cells import as_number, as_text, context_of, first_text, pair_columns, side
from .imported import Collector, Imported, as_labels
from .streaming import records

# fields of a record in flat layouts that nobody is shown
_OWN = ("id", "status", "_server_id", "external_id", "metadata")

_Answer = tuple[Any, str | None, Any, str | None]  # record, its id, value, person


def read(rows: Collector) -> Imported:
    """Return the submitted answers to one question; suggestions are ignored."""
    name = rows.choose_question(questions(rows.source))
    kept = {status.lower() for status in rows.options.keep or ("submitted",)}
    answers: list[_Answer] = []
    fields: list[Mapping[str, Any]] = []
    without_status = False
    for number, record in enumerate(argilla_records(rows.source), 1):
        if not rows.is_wanted(record):
            continue
        item = id_of(record, number)
        for response in responses_to(record, name):
            rows.n_read += 1
            status = as_text(response.get("status"))
            without_status |= status is None
            if status is not None and status.lower() not in kept:
                rows.drop(status.lower())
            elif response.get("value") is None:
                rows.drop("without an answer")
            else:
                answers.append((rows.hold(record), item, response["value"], as_text(response.get("user_id"))))
                shown = record.get("fields")
                # what annotators were shown stands among the keys of a record in flat layouts
                fields.append(shown if isinstance(shown, Mapping) else record)
    if without_status:
        rows.note("no_status")
    rows.roles |= {"annotator": "user_id", "item": "external_id or id"}
    kind = "preference" if _add_pairs(rows, name, answers, fields) else _add(rows, name, answers)
    return rows.finish(kind)


def _add_pairs(rows: Collector, question: str, answers: list[_Answer], fields: list[Mapping[str, Any]]) -> bool:
    """Add labels that name a side of two fields as preferences; return whether they do.

    Labels of which only some name a side, or that are numbers, are asked about.
    """
    texts = {value for *_, value, _ in answers if isinstance(value, str)}
    if not texts or any(not isinstance(value, str) for *_, value, _ in answers) or "item" in rows.options.columns:
        return False
    shown = [name for name, value in fields[0].items() if isinstance(value, str) and name not in _OWN]
    sides = _sides(rows, shown, texts)
    if sides is None:
        return False
    named = {text: rows.options.codes.get(text) or side(text, sides) for text in texts}
    if None in named.values():
        if not any(named.values()) and not all(text.isdecimal() for text in texts):
            return False
        unclear = sorted(text for text, word in named.items() if word is None)
        free = [word for word in ("left", "right", "tie") if word not in named.values()]
        guess = dict(zip(unclear, [*free, *["tie"] * len(unclear)], strict=False))
        meant = {text: word or guess[text] for text, word in sorted(named.items())}
        raise JudgmentError(
            f"{question!r} chooses between {sides[0]!r} and {sides[1]!r}, but neither is called "
            f"{first_few(map(repr, unclear))}; say what that means: {option('winner_codes', meant)}, or for classes of "
            f"records: {option('columns', {'item': 'id'})}"
        )
    rows.roles |= {"left": sides[0], "right": sides[1], "winner": question}
    rows.roles.pop("item", None)
    for (record, item, value, person), held in zip(answers, fields, strict=True):
        context = context_of(held)
        rows.roles["query"] = context[0] if context else "id"
        pair = {word: as_text(held.get(name)) for word, name in zip(("left", "right"), sides, strict=True)}
        alike = None in pair.values() or pair["left"] == pair["right"]
        cells = {"query": context[1] if context else item, **pair, "winner": named[value], "annotator": person}
        rows.add_unless("without two different sides" if alike else None, record, **cells)
    return True


def _sides(rows: Collector, names: list[str], texts: set[str]) -> tuple[str, str] | None:
    """The two fields that are compared; several such pairs are asked about only where an answer names a side."""
    given = rows.options.columns
    if "left" in given and "right" in given:
        return given["left"].removeprefix("fields."), given["right"].removeprefix("fields.")
    try:
        return pair_columns(names)
    except JudgmentError:
        if any(side(text) for text in texts):
            raise
        return None


def _add(rows: Collector, question: str, answers: list[_Answer]) -> str:
    """Add the answers, by what their values are, and return their kind."""
    values = [value for *_, value, _ in answers]
    lists = [value for value in values if isinstance(value, list | Mapping)]
    if not lists:
        rows.roles["grade"] = question
        for record, item, value, person in answers:
            number = as_number(value)
            rows.add(record, item=item, grade=value if number is None else number, annotator=person)
        return "grade"
    if any(_ranks(value) is not None for value in lists) or _are_orders(lists, rows.options.kind):
        rows.roles |= {"rank": question, "query": rows.roles["item"], "item": f"{question}.value"}
        longest = max((len(value) for value in lists if isinstance(value, list)), default=0)
        for record, item, value, person in answers:
            names, ranks = _ranks(value) or (value, None)
            if (ranks is None and isinstance(names, list) and len(names) < longest) or not rows.add_ranking(
                record, names if isinstance(names, list) else [], ranks, query=item, annotator=person
            ):
                rows.drop("with an incomplete ranking")
        return "ranking"
    if any(isinstance(one, Mapping) for value in lists for one in (value if isinstance(value, list) else [value])):
        raise JudgmentError(not_supported(f"the answers to {question!r} are", unsupported_kind(values) or "spans"))
    rows.add_labels(
        [(record, item, as_labels(value), {"annotator": person}) for record, item, value, person in answers]
    )
    rows.roles |= {"grade": question, "query": "the label"}
    return "grade"


def questions(source: Source) -> list[str]:
    """The questions that somebody has answered, of the first records."""
    names: dict[str, None] = {}
    for record in islice(argilla_records(source), 1000):
        responses = record.get("responses")
        if isinstance(responses, Mapping):
            names |= {name: None for name, answers in responses.items() if answers}
        if isinstance(responses, list):
            each = [one.get("values") for one in responses if isinstance(one, Mapping)]
            names |= {name: None for values in each if isinstance(values, Mapping) for name in values}
        names |= {key.removesuffix(".responses"): None for key in record if key.endswith(".responses") and record[key]}
        names |= {key: None for key, value in record.items() if key != "responses" and _answer_objects(value)}
    return list(names)


def responses_to(record: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The answers to a question in any of the layouts, with value, user_id and status."""
    responses, flat = record.get("responses"), record.get(f"{name}.responses")
    objects: list[Mapping[str, Any]] = []
    if isinstance(responses, list):
        for one in responses:
            values = one.get("values") if isinstance(one, Mapping) else None
            if isinstance(values, Mapping) and name in values:
                value = values[name]
                objects.append({**one, "value": value.get("value") if isinstance(value, Mapping) else value})
    elif isinstance(flat, list) and not isinstance(responses, Mapping):
        parts = (record.get(f"{name}.responses.{part}") for part in ("users", "status"))
        people, statuses = (chain(part if isinstance(part, list) else [], repeat(None)) for part in parts)
        each = zip(flat, people, statuses, strict=False)
        objects += [{"value": value, "user_id": who, "status": status} for value, who, status in each]
    else:
        objects += _answer_objects(responses.get(name) if isinstance(responses, Mapping) else record.get(name)) or []
    return objects


def _answer_objects(value: Any) -> list[Mapping[str, Any]] | None:
    """Answers as objects: a list of them, or an object of lists, which is how Parquet and the Hub store them."""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "user_id" in one for one in value):
        return [one for one in value if "value" in one or "status" in one]
    if isinstance(value, Mapping) and isinstance(value.get("user_id"), list) and isinstance(value.get("value"), list):
        people, values, statuses = value["user_id"], value["value"], value.get("status")
        statuses = statuses if isinstance(statuses, list) else [None] * len(values)
        if len(people) == len(values) == len(statuses):
            each = zip(people, values, statuses, strict=True)
            return [{"user_id": who, "value": one, "status": status} for who, one, status in each]
    return None


def _ranks(value: Any) -> tuple[list[Any], list[Any]] | None:
    """Names and ranks of a ranking that says both."""
    if isinstance(value, Mapping) and isinstance(value.get("rank"), list) and isinstance(value.get("value"), list):
        return value["value"], value["rank"]
    if (
        isinstance(value, list)
        and value
        and all(isinstance(one, Mapping) and {"rank", "value"} <= one.keys() for one in value)
    ):
        return [one["value"] for one in value], [one["rank"] for one in value]
    return None


def _are_orders(lists: list[Any], kind: str | None) -> bool:
    """Whether the lists order the same names, rather than choose some of them.

    Drafts of rankings may lack names; where most lists name all, in several orders, it is asked what they are.
    """
    named = [[str(one) for one in names] for names in lists if isinstance(names, list)]
    known = {name for names in named for name in names}
    whole = [tuple(names) for names in named if len(names) == len(known) and set(names) == known]
    if len(known) < 2 or kind is not None:
        return kind == "ranking"
    if len(whole) == len(lists):
        return True
    if 2 * len(whole) > len(lists) and len(set(whole)) > 1:
        raise JudgmentError(
            f"{counted(len(whole), 'answer')} of {len(lists):,} name all of {first_few(map(repr, sorted(known)))}, in "
            f"different orders: are they rankings, of which some are not finished ({option('kind', 'ranking')}), or "
            f"labels, of which some answers give all ({option('kind', 'grade')})?"
        )
    return False


def id_of(record: Mapping[str, Any], number: int) -> str:
    """The record's id, else its number."""
    return first_text(record, "external_id", "id", "_server_id") or str(number)


def argilla_records(source: Source) -> Iterator[Mapping[str, Any]]:
    """The records, also of a file that holds one list for each field."""
    each = records(source)
    first = next(each, None)
    if first is None:
        return
    lengths = {len(value) for value in first.values() if isinstance(value, list)}
    if len(first) > 1 and len(lengths) == 1 and all(isinstance(value, list) for value in first.values()):
        rest = next(each, None)
        if rest is None:
            for place in range(lengths.pop()):
                yield {name: value[place] for name, value in first.items()}
            return
        each = chain([rest], each)
    yield from chain([first], each)
