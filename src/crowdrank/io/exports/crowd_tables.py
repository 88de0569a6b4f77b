"""Tables of crowdsourcing platforms: inputs that every worker saw, and one column with the answer."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from ...data.column_names import FOREIGN, plain_name
from ...data.columns import what_numbers_mean
from ...data.words import codes_of
from ...errors import JudgmentError
from ...wording import first_few, option
from ..tables import table_format
from .cells import as_number, as_seconds, as_text, as_truth, context_of, pair_columns, parse_json, side
from .imported import Collector, Imported, choose_question, label_note, labels_in
from .streaming import Record, frame_of, records, text_columns, text_rows, text_table

Words = Sequence[str]
Names = Mapping[str, str]

_BLANK = {"", "-", "NA", "N/A", "n/a", "null", "None"}
_STRENGTH = "size of the answer"


_ASIDE = re.compile(r"(?i)^(comments?|feedback|suggestions?)|^submit|time$|^(ip|useragent|browser)$")


def mturk(rows: Collector) -> Imported:
    """Return the answers of all assignments that were not rejected."""
    lines = text_rows(rows.source)
    # the header ends in Approve and Reject, for which no row has cells
    frame = rows.choose_rows(frame_of(lines[1:], lines[0], rows.source))
    frame = _with_status(rows, frame, "AssignmentStatus", None, ["Rejected"])
    if "Answer.taskAnswers" in frame.columns:
        # newer forms put all answers into one cell
        given: list[dict[str, str | None]] = []
        for value in frame["Answer.taskAnswers"].to_list():
            parsed: Any = parse_json(value or "{}")
            parsed = parsed[0] if isinstance(parsed, list) and parsed else parsed
            given.append({})
            for key, answer in parsed.items() if isinstance(parsed, Mapping) else ():
                if isinstance(answer, Mapping) and answer and all(isinstance(one, bool) for one in answer.values()):
                    # of a group of boxes or buttons the one that is on
                    on = [str(name) for name, flag in answer.items() if flag]
                    answer = on[0] if len(on) == 1 else None
                label = answer.get("label", answer) if isinstance(answer, Mapping) else answer
                given[-1][f"Answer.{key}"] = as_text(label)
        frame = frame.drop("Answer.taskAnswers").with_columns(text_columns(given).get_columns())
    groups: dict[str, list[str]] = {}
    for name in frame.columns:
        if name.startswith("Answer.") and name.count(".") > 1:
            groups.setdefault(name.rsplit(".", 1)[0], []).append(name)
    for question, names in groups.items():
        held = {value for name in names for value in frame[name].drop_nulls().unique().to_list()}
        if len(names) < 2 or not held or any(as_truth(value) is None for value in held):
            continue
        ends = [name.rsplit(".", 1)[1] for name in names]
        flags = (map(as_truth, row) for row in frame.select(names).iter_rows())
        chosen = [[end for end, flag in zip(ends, row, strict=True) if flag] for row in flags]
        several = any(len(options) > 1 for options in chosen)
        answers = [json.dumps(options) if several else options[0] if options else None for options in chosen]
        frame = frame.drop(names).with_columns(pl.Series(question, answers, dtype=pl.String))
    names = [name for name in frame.columns if name.startswith("Answer.")]
    if not names:
        raise JudgmentError("there is no column Answer.*; give the file of results as Mechanical Turk wrote it")
    filled = [name for name in names if frame[name].null_count() < frame.height]
    likely = [name for name in filled if not _ASIDE.search(name.removeprefix("Answer."))]
    answer = _answer_column(rows, names, likely, "Answer.")
    inputs = {name.removeprefix("Input."): name for name in frame.columns if name.startswith("Input.")}
    cells = {"annotator": "WorkerId", "time": "SubmitTime", "duration": "WorkTimeInSeconds"}
    return _read_answers(rows, frame, answer, inputs, cells, item=_only_input(frame, inputs) or "HITId")


def _answer_column(rows: Collector, names: list[str], likely: list[str], prefix: str = "") -> str:
    """The column of answers that is meant: the one that the user names, else the only one that is likely."""
    wanted = rows.options.answer
    if wanted is not None:
        likely = [name for name in (wanted, f"{prefix}{wanted}") if name in names][:1]
    if len(likely) == 1:
        return likely[0]
    column = f"{prefix} column".replace(".", "").strip()
    if wanted is not None:
        raise JudgmentError(f"there is no {column} {wanted!r}; there are {first_few(map(repr, names), shown=20)}")
    short = [name.removeprefix(prefix) for name in likely or names or ["x"]]
    listed, one = first_few(map(repr, short), shown=20), option("answer", short[0])
    raise JudgmentError(f"which {column} is meant? there are {listed}; choose one with {one}")


_TOLOKA_KEPT = ("APPROVED", "ACCEPTED", "SUBMITTED")
# name in the TSV -> name in the API
_TOLOKA_NAMES = {
    "worker_id": "user_id", "status": "status", "started": "created", "submitted": "submitted", "assignment_id": "id",
}  # fmt: skip


def toloka(rows: Collector) -> Imported:
    """Return the answers of accepted assignments, as the TSV or as the API has them; golden answers are the truth."""
    first = next(records(rows.source), {}) if table_format(rows.source) != "csv" else {}
    if isinstance(first.get("solutions"), list):
        frame = text_columns(list(_toloka_tasks(rows)))
    else:
        frame = text_table(rows.source)
    if "ASSIGNMENT:worker_id" not in frame.columns and any(name.startswith("CONFIDENCE:") for name in frame.columns):
        raise JudgmentError("this is an aggregated result, without the answers of workers; download the assignments")
    frame = _with_status(rows, rows.choose_rows(frame), "ASSIGNMENT:status", _TOLOKA_KEPT, [])
    outputs = [name.removeprefix("OUTPUT:") for name in frame.columns if name.startswith("OUTPUT:")]
    filled = [name for name in outputs if frame[f"OUTPUT:{name}"].null_count() < frame.height]
    wanted = None if rows.options.answer is None else rows.options.answer.removeprefix("OUTPUT:")
    answer = choose_question(filled or outputs, wanted)
    inputs = {name.removeprefix("INPUT:"): name for name in frame.columns if name.startswith("INPUT:")}
    submitted = "ASSIGNMENT:submitted"
    time = submitted if submitted in frame.columns and not frame[submitted].null_count() else "ASSIGNMENT:started"
    item = _only_input(frame, inputs) or "ASSIGNMENT:task_id"
    if item not in frame.columns:
        # default downloads lack the task's id: the inputs together are the task
        item = "INPUT:*"
        frame = frame.with_columns(pl.concat_str(list(inputs.values()), separator=" | ", ignore_nulls=True).alias(item))
    cells = {"annotator": "ASSIGNMENT:worker_id", "time": time}
    return _read_answers(rows, frame, f"OUTPUT:{answer}", inputs, cells, item=item, gold=f"GOLDEN:{answer}")


def _toloka_tasks(rows: Collector) -> Iterator[Record]:
    """One row for each task of each assignment of the API, under the names that the TSV has."""
    for assignment in records(rows.source, shape=rows.export.shape):
        of_assignment = {f"ASSIGNMENT:{word}": assignment.get(name) for word, name in _TOLOKA_NAMES.items()}
        for task, solution in zip(assignment.get("tasks") or (), assignment.get("solutions") or (), strict=False):
            known = task.get("known_solutions") or []
            # of several right answers none is the right one
            golden = known[0].get("output_values") if len(known) == 1 else None
            parts = {"INPUT": task.get("input_values"), "OUTPUT": solution.get("output_values"), "GOLDEN": golden}
            cells = {f"{part}:{name}": value for part, held in parts.items() for name, value in (held or {}).items()}
            yield {**cells, **of_assignment, "ASSIGNMENT:task_id": task.get("id")}


_UNIT = "_unit_id"


def appen(rows: Collector) -> Imported:
    """Return the judgments of trusted contributors; gold answers are the truth."""
    frame = text_table(rows.source)
    if _UNIT not in frame.columns:
        raise JudgmentError(f"there is no column {_UNIT}; give the full report as Appen wrote it")
    if "_worker_id" not in frame.columns:
        rows.refuse("aggregated")
    frame = rows.choose_rows(frame)
    if "_tainted" in frame.columns and not (rows.options.keep and "tainted" in rows.options.keep):
        tainted = pl.Series([bool(as_truth(value)) for value in frame["_tainted"].to_list()], dtype=pl.Boolean)
        rows.drop("tainted", int(tainted.sum()))
        frame = frame.filter(~tainted)
    golden = ("_gold", "_gold_reason", "_golden")
    names = [name for name in frame.columns if not name.startswith("_") and not name.endswith(golden)]
    # the only column that differs within a unit, or of several the one with gold answers
    filled = ((name, frame.select(name, _UNIT).drop_nulls(name)) for name in names)
    varying = [name for name, cells in filled if cells.n_unique() > cells[_UNIT].n_unique()]
    gold = [name for name in varying or names if f"{name}_gold" in frame.columns]
    answer = _answer_column(rows, names, gold if len(varying) != 1 and len(gold) == 1 else varying)
    named = _named_item(frame, answer)
    duration = "seconds from _started_at to _created_at"
    ends = [frame[name] if name in frame.columns else [None] * len(frame) for name in ("_started_at", "_created_at")]
    times = [(as_seconds(begin), as_seconds(end)) for begin, end in zip(*ends, strict=True)]
    took = [b - a if a is not None and b is not None and b >= a else None for a, b in times]
    frame = frame.with_columns(pl.Series(duration, took, dtype=pl.Float64))
    cells = {"annotator": "_worker_id", "time": "_created_at", "duration": duration}
    cells |= {"query": named["query"]} if "query" in named else {}
    inputs = {name: name for name in (*names, duration) if name != answer}
    about = {"item": named.get("item", _UNIT), "gold": f"{answer}_gold"}
    return _read_answers(rows, frame, answer, inputs, cells, **about, may_grade_pairs=True)


def _named_item(frame: pl.DataFrame, answer: str) -> dict[str, str]:
    """Item and query by the names of their columns, where they say the same as the unit."""
    free = {plain_name(name): name for name in reversed(frame.columns) if name != answer and not name.startswith("_")}
    columns: dict[str, str] = {}
    for word in ("item", "query"):
        names = (free[one] for one in (word, *FOREIGN[word]) if one in free and free[one] not in columns.values())
        name = next(names, None)
        if name is not None and not frame[name].null_count():
            columns[word] = name
    if "item" not in columns:
        return {}
    n = frame.select(*columns.values()).n_unique()
    return columns if frame.select(_UNIT, *columns.values()).n_unique() == n == frame[_UNIT].n_unique() else {}


# answers about inputs ------------------------------------------------------------------------------------------------


def _with_status(rows: Collector, frame: pl.DataFrame, column: str, kept: Words | None, dropped: Words) -> pl.DataFrame:
    """Return the rows whose status is kept: one of ``kept``, or none of ``dropped`` where all others are."""
    if column not in frame.columns:
        return frame
    status, kept = frame[column].fill_null("no status"), rows.options.keep or kept
    fits = ~status.is_in(list(dropped))
    if kept is not None:
        known = [word.strip().lower() for word in kept]
        fits = status.str.to_lowercase().is_in(known) | ((status == "no status") & (rows.options.keep is None))
    for reason, count in status.filter(~fits).value_counts(sort=True).iter_rows():
        rows.drop(reason, count)
    return frame.filter(fits)


def _only_input(frame: pl.DataFrame, inputs: Mapping[str, str]) -> str | None:
    """The one input column that says something."""
    used = [column for column in inputs.values() if not set(frame[column].drop_nulls().unique().to_list()) <= _BLANK]
    return used[0] if len(used) == 1 and frame[used[0]].null_count() == 0 else None


def _read_answers(
    rows: Collector, frame: pl.DataFrame, answer: str, inputs: Mapping[str, str], cells: Mapping[str, str],
    *, item: str, gold: str = "", may_grade_pairs: bool = False,
) -> Imported:  # fmt: skip
    """Answers of a column as preferences between two inputs, or as grades of an item.

    ``inputs`` has the columns that all workers saw by their short names, ``cells`` the house's other words with their
    columns, ``item`` the column that is the item of a grade, and ``gold`` the one of known answers. Answers that name
    no side of two such inputs are refused unless they ``may_grade_pairs``.
    """
    given = rows.options.columns
    columns = first_few(map(repr, frame.columns), shown=40)
    if item not in frame.columns:
        raise JudgmentError(f"there is no column {item!r} for the item; the columns are {columns}")
    for word, name in given.items():
        if name not in frame.columns:
            raise JudgmentError(f"{option('columns')} says {word} is {name!r}, and the columns are {columns}")
    answered = frame.filter(pl.col(answer).is_not_null())
    rows.drop("without an answer", frame.height - answered.height)
    if rows.options.codes:
        answered = answered.with_columns(pl.col(answer).replace(rows.options.codes))
    if rows.options.strength is not None:
        column, better = rows.options.strength
        if column not in (answer, answer.split(".")[-1].split(":")[-1]):
            problem = f"{option('strength')} names {column!r}, and the answers are in {answer!r}"
            raise JudgmentError(f"{problem}; name that one")
        numbers = answered[answer].cast(pl.Float64, strict=False)
        if numbers.null_count():
            row = int(numbers.is_null().arg_max() or 0)
            raise JudgmentError(f"{option('strength')} needs numbers; an answer is {answered[answer][row]!r}")
        worse = "right" if better == "left" else "left"
        named = [better if value > 0 else worse if value < 0 else "tie" for value in numbers.to_list()]
        rows.roles["strength"] = f"size of {answer}"
        answered = answered.with_columns(pl.Series(answer, named, dtype=pl.String), numbers.abs().alias(_STRENGTH))
    sides = None
    if {"left", "right"} <= given.keys() and "item" not in given:
        sides = given["left"], given["right"]
    elif "item" not in given:
        sides = _sides(answered, answer, inputs, item, may_grade_pairs)
    rows.roles |= {word: name for word, name in cells.items() if name in frame.columns}
    others = {word: answered[name] for word, name in cells.items() if name in frame.columns}
    if "time" in others:
        known = {value: as_seconds(value) for value in others["time"].unique().to_list()}
        others["time"] = pl.Series([known[value] for value in others["time"].to_list()], dtype=pl.Float64)
    if "duration" in others:
        others["duration"] = others["duration"].cast(pl.Float64, strict=False)
    others |= {"strength": answered[_STRENGTH]} if rows.options.strength is not None else {}
    chosen = {word: answered[name] for word, name in given.items()}

    def add(**columns: Any) -> None:
        """Add rows column by column, with the user's own choice of columns."""
        if answered.height:
            rows.add_frame(answered.select(**{**others, **columns, **chosen}))

    labels = labels_in(answered[answer]) if sides is None else None
    if labels is not None:
        rows.roles |= {"item": item, "grade": answer, "query": "the label"}
        seen = list(dict.fromkeys(label for named in labels for label in named))
        for label in seen:
            grade = pl.Series([str(int(label in named)) for named in labels], dtype=pl.String)
            add(item=answered[item], query=pl.lit(label), grade=grade)
        rows.notes.append(label_note(seen))
        return rows.finish("grade")
    if sides is None:
        rows.roles |= {"item": item, "grade": answer}
        add(item=answered[item], grade=answered[answer])
        known_ids, names = {"item": item} | {word: name for word, name in cells.items() if word == "query"}, ("", "")
    else:
        left, right = sides
        context = context_of(dict.fromkeys(inputs, "x"))
        winner = pl.Series(_winners(answered, answer, inputs, sides), dtype=pl.String)
        rows.roles |= {"left": left, "right": right, "winner": answer}
        known_ids, names = {"left": left, "right": right}, _short(inputs, sides)
        if context is not None:
            rows.roles["query"] = known_ids["query"] = inputs[context[0]]
        asked = {"query": answered[known_ids["query"]]} if context is not None and "query" not in others else {}
        add(left=answered[left], right=answered[right], winner=winner, **asked)
    if gold in frame.columns:
        several = 0
        golden = frame.filter(pl.col(gold).is_not_null()).select(*known_ids.values(), gold).unique(maintain_order=True)
        for record in golden.iter_rows(named=True):
            asked_about = {word: record[name] for word, name in known_ids.items()}
            answers = [line.strip() for line in str(record[gold]).splitlines() if line.strip()]
            # of several that are accepted none is the truth
            if len(answers) != 1 or None in asked_about.values():
                several += 1
            elif sides is None:
                rows.truth.append(asked_about | {"grade": answers[0]})
            elif won := side(answers[0], names, (record[sides[0]], record[sides[1]])):
                rows.truth.append(asked_about | {"winner": won})
        if several:
            rows.notes.append(f"{several} gold answers name several right ones and are not used as truth")
    return rows.finish("grade" if sides is None else "preference")


def _sides(frame: pl.DataFrame, answer: str, inputs: Names, item: str, may_grade_pairs: bool) -> tuple[str, str] | None:
    """The two input columns that are compared, where each answer names one of them.

    It is asked what answers about two inputs mean that name neither of them, or which of several inputs is meant.
    """
    filled = [name for name, column in inputs.items() if frame[column].null_count() < frame.height]
    values, names, doubt = frame[answer].unique().to_list(), None, None
    try:
        names = pair_columns(filled)
    except JudgmentError as error:
        if len(codes_of(values)) == len(values):
            # words such as left and right
            raise
        doubt = error
    left, right = (inputs[name] for name in names) if names is not None else ("", "")
    if names is not None and frame.height and None not in _winners(frame, answer, inputs, (left, right)):
        return left, right
    if may_grade_pairs:
        return None
    stems = Counter(stem for name in filled if (stem := re.sub(r"[_ -]?\d+$", "", name)) != name)
    stem, n = stems.most_common(1)[0] if stems else ("", 0)
    if n > 2 and item not in inputs.values():
        series = [inputs[name] for name in filled if re.sub(r"[_ -]?\d+$", "", name) == stem]
        ends = re.search(r"\d+$", answer)
        same = [name for name in series if ends and re.search(r"\d+$", name)[0] == ends[0]]  # type: ignore[index]
        problem = f"each row shows {first_few(map(repr, series))}; say which of them {answer!r} is about"
        raise JudgmentError(f"{problem}: {option('columns', {'item': (same or series)[0]})}")
    if doubt is not None:
        raise doubt
    if names is None or not frame.height:
        return None
    values = [str(value) for value in frame[answer].unique().sort()]
    graded = f"if it grades the pair: {option('columns', {'item': item})}"
    if all(as_number(value) is not None for value in values):
        values = sorted(values, key=lambda value: as_number(value) or 0.0)
        raise JudgmentError(f"{what_numbers_mean(answer, values, left, right)}; {graded}")
    half = len(values) // 2
    guess = ["left"] * half + (["tie"] if len(values) > 2 and len(values) % 2 else []) + ["right"] * len(values)
    codes = {value: side(value) or word for value, word in zip(values, guess, strict=False)}
    problem = f"pairs of {left!r} and {right!r}, but {answer!r} holds {first_few(map(repr, values))}"
    raise JudgmentError(f"{problem}; if that says which is better: {option('winner_codes', codes)}; {graded}")


def _winners(frame: pl.DataFrame, answer: str, inputs: Mapping[str, str], sides: tuple[str, str]) -> list[str | None]:
    """The side that each row's answer names."""
    names, codes = _short(inputs, sides), codes_of(frame[answer].unique().drop_nulls().to_list())
    cells = (frame[column].to_list() for column in (answer, *sides))
    return [side(value, names, (left, right), codes) for value, left, right in zip(*cells, strict=True)]


def _short(inputs: Mapping[str, str], sides: tuple[str, str]) -> tuple[str, str]:
    """The short names of two input columns."""
    names = {column: name for name, column in inputs.items()}
    return names.get(sides[0], sides[0]), names.get(sides[1], sides[1])
