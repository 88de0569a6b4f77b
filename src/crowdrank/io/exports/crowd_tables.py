"""Tables of crowdsourcing platforms: inputs that every worker saw, and one column with the answer."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from ...data.columns import what_numbers_mean
from ...data.words import codes_of
from ...errors import JudgmentError
from ...wording import first_few, option
from .cells import as_number, as_seconds
from .imported import Collector
from .pair_columns import context_of, pair_columns, side
from .questions import as_labels, label_note

_BLANK = {"", "-", "NA", "N/A", "n/a", "null", "None"}


def chosen_rows(rows: Collector, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that ``where`` asks for, and count them."""
    for name in rows.options.where:
        if name not in frame.columns:
            raise JudgmentError(
                f"{option('where')} names {name!r}, and the columns are {first_few(map(repr, frame.columns), shown=40)}"
            )
    if rows.options.where:
        fits = [rows.is_wanted(row) for row in frame.select(list(rows.options.where)).iter_rows(named=True)]
        frame = frame.filter(pl.Series(fits, dtype=pl.Boolean))
    rows.n_read += frame.height
    return frame


def without_status(
    rows: Collector, frame: pl.DataFrame, column: str, kept: Sequence[str] | None, dropped: Sequence[str]
) -> pl.DataFrame:
    """Return the rows whose status is kept: one of ``kept``, or none of ``dropped`` where all others are."""
    if column not in frame.columns:
        return frame
    status = frame[column].fill_null("no status")
    if rows.options.keep is not None:
        kept = rows.options.keep
    if kept is not None:
        known = {word.strip().lower() for word in kept}
        fits = status.str.to_lowercase().is_in(list(known)) | ((status == "no status") & (rows.options.keep is None))
    else:
        fits = ~status.is_in(list(dropped))
    for reason, count in status.filter(~fits).value_counts(sort=True).iter_rows():
        rows.drop(reason, count)
    return frame.filter(fits)


def add_answers(
    rows: Collector,
    frame: pl.DataFrame,
    answer: str,
    inputs: Mapping[str, str],
    cells: Mapping[str, str],
    *,
    item: str,
    gold: str | None = None,
    may_grade_pairs: bool = False,
) -> str:
    """Add the answers of a column as preferences between two inputs, or as grades of an item; return the kind.

    ``inputs`` has the columns that all workers saw by their short names, ``cells`` the house's other words with their
    columns, ``item`` the column that is the item of a grade, and ``gold`` the one of known answers. Answers that name
    no side of two such inputs are refused unless they ``may_grade_pairs``.
    """
    if item not in frame.columns:
        raise JudgmentError(
            f"there is no column {item!r} for the item; the columns are {first_few(map(repr, frame.columns), shown=40)}"
        )
    for word, name in rows.options.columns.items():
        if name not in frame.columns:
            raise JudgmentError(
                f"{option('columns')} says {word} is {name!r}, and the columns are "
                f"{first_few(map(repr, frame.columns), shown=40)}"
            )
    answered = frame.filter(pl.col(answer).is_not_null())
    rows.dropped.update({"without an answer": blank} if (blank := frame.height - answered.height) else {})
    given = rows.options.columns
    codes = {str(code): word for code, word in (rows.options.winner_codes or {}).items()}
    if codes:
        answered = answered.with_columns(pl.col(answer).replace(codes))
    strength = _with_signs(rows, answered, answer)
    if strength is not None:
        answered = answered.with_columns(strength)
    sides = None if "item" in given else _sides(answered, answer, inputs, given)
    if sides is None and not may_grade_pairs and "item" not in given:
        _refuse_pairs(answered, answer, inputs, item)
    rows.roles |= {word: name for word, name in cells.items() if name in frame.columns}
    others = _others(answered, cells) | ({} if strength is None else {"strength": answered[_STRENGTH]})
    labels = labels_in(answered[answer]) if sides is None else None
    if labels is not None:
        rows.roles |= {"item": item, "grade": answer, "query": "the label"}
        _add_labels(rows, answered, labels, {"item": answered[item]} | others)
        return "grade"
    if sides is None:
        rows.roles |= {"item": item, "grade": answer}
        _add(rows, answered, {"item": answered[item], "grade": answered[answer]} | others)
        if gold is not None and gold in frame.columns:
            _add_gold(rows, frame, gold, {"item": item} | {w: n for w, n in cells.items() if w == "query"})
        return "grade"
    left, right = sides
    context = context_of(dict.fromkeys(inputs, "x"))
    winner = pl.Series(_winners(answered, answer, inputs, sides), dtype=pl.String)
    columns = {"left": answered[left], "right": answered[right], "winner": winner}
    rows.roles |= {"left": left, "right": right, "winner": answer}
    if context is not None:
        columns["query"] = answered[inputs[context[0]]]
        rows.roles["query"] = inputs[context[0]]
    _add(rows, answered, columns | others)
    if gold is not None and gold in frame.columns:
        known = {"left": left, "right": right} | ({"query": inputs[context[0]]} if context else {})
        _add_gold(rows, frame, gold, known, _short(inputs, sides))
    return "preference"


def labels_in(answers: pl.Series, separator: str | None = None) -> list[list[str]] | None:
    """Return the labels that each answer names where some name several: JSON lists, lines, or parts of a text.

    Parts count as labels only where each of them is an answer of its own somewhere, for a comma may be in a label too.

    Examples
    --------
    >>> labels_in(pl.Series(['["a", "b"]', '["b"]'])), labels_in(pl.Series(["a, b", "b", "a"]), ", ")
    ([['a', 'b'], ['b']], [['a', 'b'], ['b'], ['a']])
    >>> labels_in(pl.Series(["a, b", "c"]), ", ") is None
    True
    """
    texts = [str(text) for text in answers.to_list()]
    if texts and all(text[:1] == "[" and text[-1:] == "]" for text in texts):
        try:
            lists = [json.loads(text) for text in texts]
        except (ValueError, RecursionError):
            return None
        return [as_labels(one) for one in lists]
    separator = separator or "\n"
    parts = [[part.strip() for part in text.split(separator) if part.strip()] for text in texts]
    alone = {part[0] for part in parts if len(part) == 1}
    several = [part for part in parts if len(part) > 1]
    known = separator == "\n" or all(label in alone for part in several for label in part)
    return parts if several and known else None


def _add_labels(rows: Collector, frame: pl.DataFrame, labels: list[list[str]], columns: dict[str, pl.Series]) -> None:
    """Add a query for each label seen, with grade 1 where an answer gives it and 0 where not."""
    known = list(dict.fromkeys(label for given in labels for label in given))
    for label in known:
        grade = pl.Series([str(int(label in given)) for given in labels], dtype=pl.String)
        query = pl.Series([label] * frame.height, dtype=pl.String)
        _add(rows, frame, columns | {"query": query, "grade": grade})
    rows.notes.append(label_note(known))


_STRENGTH = "size of the answer"


def _with_signs(rows: Collector, frame: pl.DataFrame, answer: str) -> list[pl.Series] | None:
    """Signed answers as the side they speak for, and their size; ``None`` where nobody says that they are signed."""
    if rows.options.strength is None:
        return None
    column, better = rows.options.strength
    if column not in (answer, answer.split(".")[-1].split(":")[-1]):
        raise JudgmentError(f"{option('strength')} names {column!r}, and the answers are in {answer!r}; name that one")
    numbers = frame[answer].cast(pl.Float64, strict=False)
    if numbers.null_count():
        row = int(numbers.is_null().arg_max() or 0)
        raise JudgmentError(f"{option('strength')} needs numbers; an answer is {frame[answer][row]!r}")
    worse = "right" if better == "left" else "left"
    sides = [better if value > 0 else worse if value < 0 else "tie" for value in numbers.to_list()]
    rows.roles["strength"] = f"size of {answer}"
    return [pl.Series(answer, sides, dtype=pl.String), numbers.abs().alias(_STRENGTH)]


def _others(frame: pl.DataFrame, cells: Mapping[str, str]) -> dict[str, pl.Series]:
    """The columns beside the answer, times as seconds."""
    columns = {word: frame[name] for word, name in cells.items() if name in frame.columns}
    if "time" in columns:
        columns["time"] = _seconds(columns["time"])
    if "duration" in columns:
        columns["duration"] = columns["duration"].cast(pl.Float64, strict=False)
    return columns


def _add(rows: Collector, frame: pl.DataFrame, columns: dict[str, pl.Series]) -> None:
    """Add rows column by column, with the user's own choice of columns."""
    for word, name in rows.options.columns.items():
        columns[word] = frame[name]
    if columns and frame.height:
        rows.add_frame(pl.DataFrame([series.alias(word) for word, series in columns.items()]))


def _add_gold(
    rows: Collector, frame: pl.DataFrame, gold: str, ids: Mapping[str, str], names: tuple[str, str] = ("", "")
) -> None:
    """Known answers as truth; of several that are accepted none is the truth."""
    known = frame.filter(pl.col(gold).is_not_null()).select(*ids.values(), gold).unique(maintain_order=True)
    several = 0
    for row in known.iter_rows(named=True):
        cells = {word: row[name] for word, name in ids.items()}
        answers = [line.strip() for line in str(row[gold]).splitlines() if line.strip()]
        if len(answers) != 1 or None in cells.values():
            several += 1
        elif "left" in ids:
            winner = side(answers[0], names, (cells["left"], cells["right"]))
            rows.truth += [cells | {"winner": winner}] if winner else []
        else:
            rows.truth.append(cells | {"grade": answers[0]})
    if several:
        rows.notes.append(f"{several} gold answers name several right ones and are not used as truth")


def _sides(
    frame: pl.DataFrame, answer: str, inputs: Mapping[str, str], given: Mapping[str, str]
) -> tuple[str, str] | None:
    """The two input columns that are compared, where each answer names one of them."""
    if "left" in given and "right" in given:
        return given["left"], given["right"]
    filled = [name for name, column in inputs.items() if frame[column].null_count() < frame.height]
    try:
        names = pair_columns(filled)
    except JudgmentError:
        if _words_for_sides(frame[answer]):
            raise
        return None
    if names is None or not frame.height:
        return None
    pair = inputs[names[0]], inputs[names[1]]
    return pair if None not in _winners(frame, answer, inputs, pair) else None


def _refuse_pairs(frame: pl.DataFrame, answer: str, inputs: Mapping[str, str], item: str) -> None:
    """Ask what answers about two inputs mean that name neither of them, or which of several inputs is meant."""
    filled = [name for name, column in inputs.items() if frame[column].null_count() < frame.height]
    stems = Counter(stem for name in filled if (stem := re.sub(r"[_ -]?\d+$", "", name)) != name)
    stem, n = stems.most_common(1)[0] if stems else ("", 0)
    if n > 2 and item not in inputs.values():
        series = [inputs[name] for name in filled if re.sub(r"[_ -]?\d+$", "", name) == stem]
        ends = re.search(r"\d+$", answer)
        same = [name for name in series if ends and re.search(r"\d+$", name)[0] == ends[0]]  # type: ignore[index]
        raise JudgmentError(
            f"each row shows {first_few(map(repr, series))}; say which of them {answer!r} is about: "
            f"{option('columns', {'item': (same or series)[0]})}"
        )
    names = pair_columns(name for name, column in inputs.items() if frame[column].null_count() < frame.height)
    if names is None or not frame.height:
        return
    left, right = inputs[names[0]], inputs[names[1]]
    values = [str(value) for value in frame[answer].unique().sort()]
    graded = f"if it grades the pair: {option('columns', {'item': item})}"
    if all(as_number(value) is not None for value in values):
        values = sorted(values, key=lambda value: as_number(value) or 0.0)
        raise JudgmentError(f"{what_numbers_mean(answer, values, left, right)}; {graded}")
    half = len(values) // 2
    guess = ["left"] * half + (["tie"] if len(values) > 2 and len(values) % 2 else []) + ["right"] * len(values)
    codes = {value: side(value) or word for value, word in zip(values, guess, strict=False)}
    raise JudgmentError(
        f"pairs of {left!r} and {right!r}, but {answer!r} holds {first_few(map(repr, values))}; "
        f"if that says which is better: {option('winner_codes', codes)}; {graded}"
    )


def _words_for_sides(answers: pl.Series) -> bool:
    """Whether the answers are words such as left and right."""
    values = answers.unique().to_list()
    return len(codes_of(values)) == len(values)


def _winners(frame: pl.DataFrame, answer: str, inputs: Mapping[str, str], sides: tuple[str, str]) -> list[str | None]:
    """The side that each row's answer names."""
    names, codes = _short(inputs, sides), codes_of(frame[answer].unique().drop_nulls().to_list())
    cells = (frame[column].to_list() for column in (answer, *sides))
    return [side(value, names, (left, right), codes) for value, left, right in zip(*cells, strict=True)]


def _short(inputs: Mapping[str, str], sides: tuple[str, str]) -> tuple[str, str]:
    """The short names of two input columns."""
    names = {column: name for name, column in inputs.items()}
    return names.get(sides[0], sides[0]), names.get(sides[1], sides[1])


def only_input(frame: pl.DataFrame, inputs: Mapping[str, str]) -> str | None:
    """The one input column that says something."""
    used = [column for column in inputs.values() if not set(frame[column].drop_nulls().unique().to_list()) <= _BLANK]
    return used[0] if len(used) == 1 and frame[used[0]].null_count() == 0 else None


def _seconds(times: pl.Series) -> pl.Series:
    """Times as seconds, each different one worked out once."""
    known = {value: as_seconds(value) for value in times.unique().to_list()}
    return pl.Series("time", [known[value] for value in times.to_list()], dtype=pl.Float64)
