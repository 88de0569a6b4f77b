"""Surveys with a column for each item, sets with a best and a worst, ballots, and the trials of jsPsych."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ...data.column_names import LISTED, key_of, name_points, person_column
from ...data.columns import what_numbers_mean
from ...data.frames import refuse_ranks
from ...errors import JudgmentError
from ...wording import counted, either, first_few, option
from ..number_text import without_endings
from ..sources import Source
from ..tables import table_format
from . import cells as foreign
from .cells import as_number, as_seconds, as_text, is_scale, pair_columns, parse_json, side
from .imported import Collector, Imported, labels_in
from .streaming import Record, frame_of, json_values, records, text_rows, text_table

# column of a question -> the item, or the place, that it is about
Items = dict[str, str]
Columns = dict[str, pl.Series]


def qualtrics(rows: Collector) -> Imported:
    """Return one judgment for each filled cell of a matrix question; addresses and places are not read."""
    lines = text_rows(rows.source)
    end = next((place for place, row in enumerate(lines[:5]) if any('"ImportId"' in cell for cell in row)), None)
    if end is None or end == 0:
        raise JudgmentError("the header row with ImportId is missing; export the responses from Qualtrics as CSV again")
    if end + 1 == len(lines):
        raise JudgmentError("three header rows and no response; export it once somebody has answered")
    frame = frame_of(lines[end + 1 :], lines[0], rows.source)
    texts = dict(zip(lines[0], lines[1] + [""] * len(lines[0]), strict=False)) if end > 1 else {}
    every = frame["Status"].drop_nulls().unique().sort().to_list() if "Status" in frame.columns else []
    frame = rows.choose_rows(frame)
    if "Status" in frame.columns:
        status, kept = frame["Status"].fill_null(""), rows.options.keep
        known = status.unique().to_list()
        bad = [one for one in known if one in rows.export.fields["tests"] or as_number(one) not in (None, 0.0)]
        bad = bad if kept is None else [one for one in known if one not in kept]
        for value in status.filter(status.is_in(bad)):
            rows.drop(value if as_number(value) is None else f"Status {value}")
        frame = frame.filter(~status.is_in(bad))
        words = sorted(set(frame["Status"].drop_nulls().to_list()) - {"0", "IP Address"})
        if words:
            rows.notes.append(f"responses with Status {first_few(map(repr, words))} are kept")
    if "Finished" in frame.columns:
        share = frame["Progress"].to_list() if "Progress" in frame.columns else [None] * frame.height
        marks = zip(map(foreign.as_truth, frame["Finished"].to_list()), share, strict=True)
        # true and false follow the language of the survey, and the progress does not
        finished = [as_number(part) in (None, 100.0) if one is None else one for one, part in marks]
        frame = _drop_others(rows, frame, pl.Series(finished, dtype=pl.Boolean), "not finished")
    if not frame.height:
        reasons, keep = first_few([f"{n:,} {reason}" for reason, n in rows.dropped.items()]), option("keep", every)
        rows.refuse("all_left_out", responses=counted(rows.n_read, "response"), reasons=reasons, keep=keep)
    asked = [name for name in frame.columns if name not in rows.export.fields["own"]]
    answers = f"{counted(len(asked), 'column')} of answers ({first_few(map(repr, asked))})"
    needs = "a ranking needs a matrix question, with columns Q1_1, Q1_2 and so on"
    none = f"{answers}, each for one question, no items; {needs}"
    question = list(_choose_scale(rows, frame, _questions(asked, _MATRIX, _LOOP), none))
    who = rows.options.columns.get("annotator", "ResponseId")
    if who not in frame.columns:
        named = option("columns", {"annotator": ...})
        raise JudgmentError(f"there is no column {who!r} that says who answered; name one with {named}")
    cells = _who_and_when(rows, frame, who, "RecordedDate" if "RecordedDate" in frame.columns else None)
    if "Duration (in seconds)" in frame.columns:
        cells["duration"] = frame["Duration (in seconds)"].cast(pl.Float64, strict=False)
        rows.roles["duration"] = "Duration (in seconds)"
    # items are called by the end of their question's text, behind what all have in common
    full = [texts.get(name, "") for name in question]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*full, strict=False))
    common = "".join(letters[0] for letters in same)
    cut = max(common.rfind(" - ") + 3, common.rfind(": ") + 2, common.rfind("\n") + 1)
    ends = [text[cut if cut > 2 else 0 :].strip() for text in full]
    if not all(ends) or len(set(ends)) < len(ends):
        ends = question
    return rows.finish(add_survey(rows, frame, dict(zip(question, ends, strict=True)), cells))


_MATRIX = re.compile(r"(?P<asked>.+?)_(?P<row>\d+)")
_LOOP = re.compile(r"(?P<row>\d+)_(?P<asked>\D\w*?)")  # columns of a question in a loop: 1_Q3, 2_Q3 and so on


def _drop_others(rows: Collector, frame: pl.DataFrame, fits: pl.Series, reason: str) -> pl.DataFrame:
    """The rows that fit; the others are left out for a reason."""
    if not fits.all():
        rows.drop(reason, int((~fits).sum()))
    return frame.filter(fits)


_GRID = re.compile(r"(?P<asked>.*?)\s*\[(?P<row>.+)\]", re.DOTALL)
_WHO = re.compile(r"(?i)e-?mail|username|nombre de usuario|nutzername|benutzername|nom d'utilisateur")


def google_forms(rows: Collector) -> Imported:
    """Return one judgment for each filled cell of a grid question."""
    options, frame = rows.options, rows.choose_rows(text_table(rows.source))
    questions = _questions(frame.columns, _GRID)
    question = rows.choose_question(questions)
    items = questions[question]
    who = None
    if "annotator" not in options.columns:
        # e-mail addresses or user names, by their title, or by what the column holds
        free = [name for name in frame.columns[1:] if name not in items and frame[name].null_count() == 0]
        named = [name for name in free if _WHO.search(name)]
        held = [name for name in free if frame[name].str.contains(r"^\S+@\S+\.\S+$").all()]
        who = next(iter(named + held), None)
    cells = _who_and_when(rows, frame, who, frame.columns[0])
    if cells["time"].null_count() == frame.height:
        del cells["time"], rows.roles["time"]
    labels = labels_in(pl.concat([frame[name] for name in items]).drop_nulls(), ", ")
    if labels is not None and not options.nominal:
        ticked = list(dict.fromkeys(label for given in labels for label in given))
        rows.refuse("boxes", ticked=first_few(map(repr, ticked)), nominal=option("nominal", True))
    return rows.finish(add_survey(rows, frame, items, cells), metric=question)


_SURVEYMONKEY_ASIDE = re.compile(r"(?i)open-ended response|other \(.*\)|response|comments?.*")


def surveymonkey(rows: Collector) -> Imported:
    """Return one judgment for each filled cell of a question with several rows; addresses are not read."""
    lines = text_rows(rows.source)
    if len(lines) < 3:
        raise JudgmentError("two header rows and no response; export it once somebody has answered")
    width = max(map(len, lines))
    first, second = (line + [""] * (width - len(line)) for line in lines[:2])
    questions: dict[str, dict[str, str]] = {}
    question, names = "", list[str]()
    for place, (title, row) in enumerate(zip(first, second, strict=True)):
        question = title or question
        name = f"{question} [{row}]" if row else question
        name = name if name not in names and name else f"{name} ({place + 1})"
        names.append(name)
        if row and not _SURVEYMONKEY_ASIDE.fullmatch(row):
            questions.setdefault(question, {})[name] = row
    frame = rows.choose_rows(frame_of([line[:width] for line in lines[2:]], names, rows.source))
    named = f" ({first_few(map(repr, questions))})" if questions else ""
    needs = "a ranking needs a matrix or ranking question, with one column for each row"
    none = f"no question{named} has several rows that are rated or ranked: {needs}"
    items = _choose_scale(rows, frame, questions, none)
    who = next((name for name in names if re.sub(r"[^a-z]", "", name.lower()) == "respondentid"), None)
    if who is None:
        raise JudgmentError("no column is called Respondent ID; export all responses with it")
    when = next((name for name in rows.export.fields["times"] if name in names and frame[name].null_count() == 0), None)
    return rows.finish(add_survey(rows, frame, items, _who_and_when(rows, frame, who, when)))


_ROW = re.compile(r"(?P<asked>.*?)\s*\[(?P<row>[^\[\]]+)\]", re.DOTALL)
# codes and texts together: rate[SQ001]. How useful? [Saw]
_CODED = re.compile(r"(?P<asked>.+?)\[[^\]]*\]\.?\s+.*?\s*\[(?P<row>[^\[\]]+)\]", re.DOTALL)
_NOT_ANSWERS = re.compile(r"(?i).*(\[other\]|\[comment\]|comment\]|time)")


def limesurvey(rows: Collector) -> Imported:
    """Return one judgment for each filled cell of a question with several rows; responses not sent are left out."""
    frame = rows.choose_rows(text_table(rows.source))
    known = (("id", "response id"), ("submitdate", "date submitted"))
    who, sent = (next((one for one in frame.columns if one.lower() in names), None) for names in known)
    if who is None or sent is None:
        raise JudgmentError("the columns id and submitdate are missing; export the responses with them")
    done = frame[sent].is_not_null() & (frame[sent].fill_null("") != "1980-01-01 00:00:00")
    frame = frame if rows.options.keep is not None else _drop_others(rows, frame, done, "not submitted")
    if not frame.height:
        raise JudgmentError(f"no response was submitted; to read them all the same: {option('keep', ['incomplete'])}")
    questions = _questions((name for name in frame.columns if not _NOT_ANSWERS.fullmatch(name)), _CODED, _ROW)
    none = "no question has several rows, with columns such as rate[SQ001] and rate[SQ002]; the columns are "
    items = _choose_scale(rows, frame, questions, f"{none}{first_few(map(repr, frame.columns), shown=40)}")
    cells = _who_and_when(rows, frame, who, sent)
    if cells["time"].null_count():
        del cells["time"], rows.roles["time"]
    return rows.finish(add_survey(rows, frame, items, cells))


def _questions(names: Iterable[str], *forms: re.Pattern[str]) -> dict[str, Items]:
    """Question -> column -> row, of the columns whose names have one of some forms."""
    questions: dict[str, Items] = {}
    for name in names:
        match = next((match for form in forms if (match := form.fullmatch(name))), None)
        if match:
            questions.setdefault(match["asked"] or "the grid", {})[name] = match["row"].strip()
    return questions


def _who_and_when(rows: Collector, frame: pl.DataFrame, who: str | None, when: str | None = None) -> Columns:
    """Who answered, by a column or else by the number of the row, and the time in seconds where a column has it."""
    rows.roles["annotator"] = who or "number of the row"
    cells = {"annotator": frame[who] if who else pl.Series(map(str, range(1, frame.height + 1)), dtype=pl.String)}
    if when is not None:
        rows.roles["time"] = when
        cells["time"] = pl.Series([as_seconds(value) for value in frame[when].to_list()], dtype=pl.Float64)
    return cells


def _choose_scale(rows: Collector, frame: pl.DataFrame, questions: Mapping[str, Items], none: str) -> Items:
    """The rows of the question that is meant, of those answered by numbers or few words; ``none`` is said of none."""
    several = {asked: items for asked, items in questions.items() if len(items) > 1}
    cells = {asked: [frame[name].drop_nulls().to_list() for name in items] for asked, items in several.items()}
    scales = {asked: items for asked, items in several.items() if is_scale(list(chain(*cells[asked])))}
    if not scales:
        raise JudgmentError(none)
    return scales[rows.choose_question(scales)]


# a column for each item ----------------------------------------------------------------------------------------------


def add_survey(rows: Collector, frame: pl.DataFrame, items: Items, cells: Mapping[str, pl.Series]) -> str:
    """Add one judgment for each filled cell of the columns of a question; return the kind.

    Where every respondent gives each number from 1 on once, these may be ranks, which count the other way round than
    grades: that is asked and not assumed.
    """
    rows.survey = True
    kind = rows.options.kind
    places = places_of(frame, items)
    if places is not None and kind not in (None, "ranking"):
        raise JudgmentError(f"the file holds rankings, not {kind}s; leave {option('kind')} out")
    if places is None:
        frame = frame.with_columns(without_endings(frame[name]) for name in items)
    boxes = places is None and _are_boxes(frame.select(list(items)))
    if places is None and not boxes:
        if kind is None:
            refuse_ranks([frame[name] for name in items], by="respondent", across=True)
        if kind == "preference":
            raise JudgmentError(f"the file holds grades or ranks of items, not {kind}s; leave {option('kind')} out")
    cells = dict(cells)
    for word, name in rows.options.columns.items():
        if word in ("item", "grade", "rank") or name not in frame.columns:
            problem = f"{option('columns', {word: name})} names no column of respondents"
            raise JudgmentError(f"{problem}; there are {first_few(map(repr, frame.columns), shown=40)}")
        cells[word] = frame[name]

    def add(keep: pl.Series, **answer: Any) -> None:
        """Answers of a column, of those respondents that are kept."""
        rows.add_frame(pl.DataFrame({**answer, **cells}).filter(keep))

    if places is not None:
        # the item that each respondent put in each place
        for column, place in places.items():
            add(frame[column].is_not_null(), item=frame[column], rank=float(place))
        rows.roles |= {"item": "what was put in each place", "rank": "one column for each place"}
        return "ranking"
    if boxes:
        # a box that was ticked counts 1, and those left blank by who ticked another 0
        answered = frame.select(pl.any_horizontal(pl.col(list(items)).is_not_null())).to_series()
        for column, item in items.items():
            add(answered, item=item, grade=frame[column].is_not_null().cast(pl.Int8).cast(pl.String))
        rows.roles |= {"item": "one column each", "grade": "1 where ticked"}
        rows.notes.append("each column is ticked or blank: grade 1 if it was ticked, 0 if only others were")
        rows.drop("without an answer", int((~answered).sum()))
        return "grade"
    word, blank = "rank" if kind == "ranking" else "grade", sum(frame[column].null_count() for column in items)
    for column, item in items.items():
        answers = frame[column].cast(pl.Float64, strict=False) if word == "rank" else frame[column]
        add(frame[column].is_not_null(), **{word: answers, "item": item})
    rows.roles |= {"item": "one column each", word: ", ".join(list(items)[:3]) + (", ..." if len(items) > 3 else "")}
    if blank:
        rows.notes.append(f"{counted(blank, 'blank cell')} not judged")
    return kind or "grade"


def places_of(frame: pl.DataFrame, items: Mapping[str, str]) -> dict[str, int] | None:
    """Return the place of each column whose row is a place (1, 2, ...) and whose cells are the items put there."""
    if not foreign.are_places(list(items.values())):
        return None
    places = {column: int(re.sub(r"\D", "", row)) for column, row in items.items()}
    given = [[value for value in row if value is not None] for row in frame.select(list(items)).iter_rows()]
    words = all(as_number(value) is None for row in given for value in row)
    return places if words and any(given) and all(len(set(row)) == len(row) for row in given) else None


def _are_boxes(answers: pl.DataFrame) -> bool:
    """Whether the columns are boxes of one question, each blank or ticked."""
    held = [cells.drop_nulls().unique().to_list() for cells in answers]
    ticks = {cell for cells in held for cell in cells}
    are_marks = len(ticks) > 1 or ticks <= {"1", "x", "X", "Y", "true", "TRUE", "True"}
    several = answers.height > 1 and all(len(cells) < 2 for cells in held) and bool(ticks)
    return several and are_marks and any(cells.null_count() for cells in answers)


# several items in a row ----------------------------------------------------------------------------------------------


def best_worst(rows: Collector) -> Imported:
    """Return preferences (MaxDiff): the best item of each set over every other, and every other over the worst."""
    frame = rows.choose_rows(text_table(rows.source))
    layout = foreign.layout_of(frame.columns)
    if layout is None:
        rows.refuse("no_columns")
    # an answer may name a column, or the number or letter that it ends in, in place of the item there
    place_of = {key_of(name)[-1]: name for name in layout.items}
    place_of |= {name.lower(): name for name in layout.items} | {key_of(name): name for name in layout.items}
    sets = list(frame.iter_rows(named=True))
    asked = [(record, record[name]) for record in sets for name in layout.answers if record[name]]
    are_items = all(value in [record[name] for name in layout.items] for record, value in asked)
    named_places = all(value.lower() in place_of for _, value in asked)
    if are_items and named_places and any(record[place_of[value.lower()]] != value for record, value in asked):
        values = first_few(map(repr, sorted({value for _, value in asked})))
        rows.refuse("items_or_places", answers=either(map(repr, layout.answers), "and"), values=values)
    free = [name for name in frame.columns if name not in (*layout.items, *layout.answers)]
    who = None
    if "annotator" not in rows.options.columns:
        who = person_column(free) or next((name for name in free if name_points("annotator", name)), None)
        repeated = [name for name in free if 1 < frame[name].n_unique() < frame.height]
        if who is None and repeated:
            way = option("columns", {"annotator": repeated[0]})
            rows.notes.append(f"no annotator is named; if {repeated[0]!r} does so: {way}")
    query = next((name for name in free if name_points("query", name) >= LISTED), None)
    for number, record in enumerate(sets, 1):
        items = list(dict.fromkeys(record[name] for name in layout.items if record[name] is not None))
        best, worst = (record[name] if name is not None else None for name in (layout.best, layout.worst))
        if named_places and not are_items:
            best, worst = (one and record[place_of[one.lower()]] for one in (best, worst))
        unknown = any(one is not None and one not in items for one in (best, worst))
        if best is None and worst is None:
            rows.drop("without an answer")
        elif unknown or best == worst:
            what = "the same item is the best and the worst"
            what = "the best or the worst is not among the items that were shown" if unknown else what
            if rows.options.invalid != "drop":
                remedy = option("invalid", "drop")
                raise JudgmentError(f"row {number}: {what}; correct it, or leave such rows out: {remedy}")
            rows.drop(f"where {what}")
        else:
            pairs = [(best, item) for item in items if item != best] if best is not None else []
            pairs += [(item, worst) for item in items if item not in (best, worst)] if worst is not None else []
            cells = {word: record[name] for word, name in (("annotator", who), ("query", query)) if name}
            for winner, loser in pairs:
                rows.add(record, winner=winner, loser=loser, judgment=number, weight=1, **cells)
    rows.roles |= {"winner": layout.best or "the others", "loser": layout.worst or "the others"}
    rows.roles |= {"annotator": who or "", "query": query or ""}
    shown = first_few(map(repr, layout.items), shown=8)
    rows.notes.append(f"each set of {shown} gives pairs: the best over the others, and the others over the worst")
    return rows.finish("preference")


def ballots(rows: Collector) -> Imported:
    """Return the ranking of each ballot."""
    frame = rows.choose_rows(text_table(rows.source))
    who = None if "annotator" in rows.options.columns else person_column(frame.columns)
    if places := foreign.place_columns(frame.columns):
        named = {name: name.replace("_", " ") for name in places}
        if places_of(frame, named) is None:
            rows.refuse("items_or_ranks", names=either(map(repr, places[:8]), "and"))
        return rows.finish(add_survey(rows, frame, named, _who_and_when(rows, frame, who)))
    column = foreign.order_column(frame.columns, frame.fill_null("").rows())
    if column is None:
        rows.refuse("no_places")
    for number, record in enumerate(frame.iter_rows(named=True), 1):
        if record[column] is None:
            rows.drop("without an order")
            continue
        levels = [[item.strip() for item in level.split("=")] for level in record[column].split(">")]
        items = [item for level in levels for item in level]
        if not all(items) or len(set(items)) < len(items):
            raise JudgmentError(f"row {number}: {record[column]!r} names an item twice, or none; correct it")
        rank = 1
        for level in levels:
            for item in level:
                rows.add(record, item=item, rank=rank, ranking=str(number), annotator=record[who] if who else None)
            rank += len(level)
    rows.roles |= {"item": column, "rank": f"place in {column}", "annotator": who or ""}
    return rows.finish("ranking")


def ranked_sets(rows: Collector) -> Imported:
    """Return the ranking of each row of sets as in WMT's human evaluation: system1Id, system1rank, system2Id, ...

    Ranks below 1 mean that an item was not ranked.
    """
    frame = rows.choose_rows(text_table(rows.source))
    pairs = foreign.ranked_columns(frame.columns)
    if not pairs:
        raise JudgmentError("no columns are called like system1Id and system1rank; write one row per item and rank")
    who = None if "annotator" in rows.options.columns else person_column(frame.columns)
    context: list[str] = []
    if "query" not in rows.options.columns:
        # what the items of a row answer: the segment and the languages, or a query
        keys = {key_of(name): name for name in reversed(frame.columns)}
        segment = next((keys[key] for key in ("src_index", "segment_id") if key in keys), None)
        context = [name for name in frame.columns if name_points("query", name) >= LISTED][:1]
        if segment is not None:
            languages = [keys[key] for key in ("srclang", "trglang") if key in keys]
            context = [*(name for name in languages if frame[name].n_unique() > 1), segment]
    for number, record in enumerate(frame.iter_rows(named=True), 1):
        given = [(record[item], as_number(record[rank])) for item, rank in pairs]
        ranked = [(item, rank) for item, rank in given if item is not None and rank is not None and rank >= 1]
        if len(dict(ranked)) < len(ranked):
            rows.drop("with an item twice")
        elif len(ranked) < 2:
            rows.drop("with fewer than two ranks")
        else:
            cells = {"annotator": record[who]} if who else {}
            cells |= {"query": " ".join(record[name] or "" for name in context)} if context else {}
            for item, rank in ranked:
                rows.add(record, item=item, rank=rank, ranking=str(number), **cells)
    rows.roles |= {"item": f"{pairs[0][0]}, ...", "rank": f"{pairs[0][1]}, ...", "annotator": who or ""}
    rows.roles["query"] = ", ".join(context)
    return rows.finish("ranking")


# jsPsych: a row or object for each trial of an experiment, which shows one thing or two ------------------


# who a trial is by in a file with one list for each participant that does not name them
_LIST = "number of the list"
_MEDIA = re.compile(r"<(?:img|audio|video|source)\b[^>]*?\bsrc\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)

Trial = Mapping[str, Any]


def jspsych(rows: Collector) -> Imported:
    """Return the answers of the commonest kind of rating trial."""
    trials = [trial for trial in _trials(rows.source) if rows.is_wanted(trial)]
    rows.n_read = len(trials)
    wanted = rows.options.answer or _commonest(rows, trials)
    who, one_session = _participant(rows, trials)
    alone = Path(rows.source.name).stem if who is None and one_session else None
    chosen = _trials_with_answer(trials, wanted)
    sides = _sides_of(rows, chosen)
    for trial in trials:
        kind = as_text(trial.get("trial_type")) or "without a trial_type"
        if kind != wanted:
            rows.drop(kind)
            continue
        given, milliseconds = _response(trial), as_number(trial.get("rt"))
        duration = None if milliseconds is None else milliseconds / 1000
        cells = {"annotator": as_text(trial.get(who)) if who else alone, "duration": duration}
        answered = as_text(given) not in (None, "null")
        if sides is not None:
            pair = sides.pair(trial)
            if pair is None or not answered:
                rows.drop("without two items" if pair is None else "without an answer")
            else:
                rows.add(trial, left=pair[0], right=pair[1], winner=sides.winner(trial, given), **cells)
            continue
        # the answer is a grade of the stimulus, or the answers are one of each question
        graded = given if isinstance(given, Mapping) else {as_text(trial.get("stimulus")): given} if answered else {}
        filled = {name: value for name, value in graded.items() if as_text(value) is not None}
        if not filled:
            rows.drop("without an answer")
        for name, value in filled.items():
            rows.add(trial, item=name, grade=value, **cells)
    rows.roles |= {"annotator": who} if who else {}
    if sides is not None:
        if rows.options.winner_codes is None:
            _check_winners(rows, sides, chosen)
        rows.roles |= {"left": sides.left, "right": sides.right}
        return rows.finish("preference")
    # where all trials have the same stimulus and another field differs, that may be what was rated
    plain = [trial for trial in chosen if not isinstance(_response(trial), Mapping)]
    if "item" not in rows.options.columns and len({as_text(trial.get("stimulus")) for trial in plain}) == 1:
        fields = rows.export.fields
        if varied := _varying_keys(plain, {*fields["who"], *fields["own"], _LIST}):
            stimulus = (as_text(plain[0].get("stimulus")) or "")[:60]
            item, both = (option("columns", named) for named in ({"item": varied[0]}, {"left": ..., "right": ...}))
            rows.refuse("one_stimulus", n=len(plain), stimulus=stimulus, item=item, sides=both)
    if "button" in wanted:
        rows.note("buttons", levels=option("levels"))
    return rows.finish("grade")


def _trials(source: Source) -> Iterator[Record]:
    """The trials, also of a file with one list for each participant."""
    values = json_values(source) if table_format(source) in ("json", "jsonl") else records(source)
    for number, value in enumerate(values, 1):
        for trial in value if isinstance(value, list) else [value]:
            if isinstance(trial, dict):
                yield {_LIST: str(number)} | trial if isinstance(value, list) else trial


def _response(trial: Trial) -> Any:
    """What was answered; an object where a trial has several questions."""
    given = next((trial[key] for key in ("response", "responses", "button_pressed") if as_text(trial.get(key))), None)
    return parse_json(given) if isinstance(given, str) and given.startswith("{") else given


def _trials_with_answer(trials: list[Record], wanted: str) -> list[Record]:
    """The trials of one type that have an answer."""
    alike = (trial for trial in trials if as_text(trial.get("trial_type")) == wanted)
    return [trial for trial in alike if as_text(_response(trial)) not in (None, "null")]


def _commonest(rows: Collector, trials: list[Record]) -> str:
    """The type of rating trial of which there are most: sliders and scales, buttons with numbers, or pairs."""
    counts, answered = Counter[str](), Counter[str]()
    for trial in trials:
        kind, given = as_text(trial.get("trial_type")) or "", _response(trial)
        rated = "slider" in kind or "likert" in kind or ("button" in kind and as_number(given) is not None)
        counts[kind] += rated and as_text(given) not in (None, "null")
        answered[kind] += bool(as_text(given))
    paired = [kind for kind in +answered if not +counts and _sides_of(rows, _trials_with_answer(trials, kind))]
    commonest = (+counts or Counter({kind: answered[kind] for kind in paired})).most_common(1)
    if not commonest:
        known = [kind for kind, _ in (+answered).most_common() if kind]
        held = f", only {first_few(map(repr, known))}" if known else ""
        answer = option("answer", (known or ["html-button-response"])[0])
        rows.refuse("no_ratings", trials=counted(len(trials), "trial"), held=held, answer=answer)
    return commonest[0][0]


def _participant(rows: Collector, trials: list[Record]) -> tuple[str | None, bool]:
    """The field that names the participant, and whether the file is of one.

    It is the first under which no trial number occurs twice, else the first; a file of one has each number once.
    """
    numbers = [as_text(trial.get("trial_index")) for trial in trials]
    known = (*rows.export.fields["who"], _LIST)
    named = [name for name in known if any(as_text(trial.get(name)) for trial in trials)]
    for name in named:
        seen = {(as_text(trial.get(name)), number) for trial, number in zip(trials, numbers, strict=True)}
        if len(seen) == len(trials):
            return name, False
    return next(iter(named), None), len(set(numbers)) == len(numbers)


def _varying_keys(trials: Sequence[Trial], aside: set[str]) -> list[str]:
    """The fields that are not the same in all trials."""
    names = dict.fromkeys(name for trial in trials for name in trial if name not in aside)
    return [name for name in names if len({as_text(trial.get(name)) for trial in trials}) > 1]


class _Sides(NamedTuple):
    """How trials tell the two things that they show."""

    left: str
    right: str
    pair: Callable[[Trial], tuple[str, str] | None]
    # whether the answer is the number of the one that was chosen
    numbered: bool = False

    def winner(self, trial: Trial, answer: Any) -> str | None:
        """Who was chosen, as far as the file tells it; else the answer as it is."""
        shown = self.pair(trial) or ("", "")
        number = as_number(answer)
        if self.numbered and number in (0, 1):
            return "left" if number == 0 else "right"
        return side(answer, (self.left, self.right), shown) or as_text(answer)


def _sides_of(rows: Collector, trials: Sequence[Trial]) -> _Sides | None:
    """How trials of one type tell the two things they show; ``None`` where they show one.

    In this order: the fields that the user names, buttons that are not the same in all trials, two fields such as
    ``left_image`` and ``right_image``, two pictures in the stimulus.
    """
    if not trials:
        return None
    columns = rows.options.columns
    fields = None if {"left", "right"}.isdisjoint(columns) else (columns.get("left", ""), columns.get("right", ""))
    if fields is None:
        if "item" in columns or "grade" in columns:
            return None
        choices = [_entries(trial.get("choices")) for trial in trials]
        if all(len(one) > 1 for one in choices) and len({tuple(sorted(one)) for one in choices}) > 1:
            if any(len(one) > 2 for one in choices):
                rows.refuse("many_buttons")
            return _Sides("choices[0]", "choices[1]", lambda trial: _two(_entries(trial.get("choices"))), numbered=True)
        fields = pair_columns(_varying_keys(trials, {*rows.export.fields["own"], "stimulus", "choices"}))
    if fields is not None:
        left, right = fields
        return _Sides(left, right, lambda trial: _two([as_text(trial.get(left)), as_text(trial.get(right))]))
    shown = [_stimuli(trial.get("stimulus")) for trial in trials]
    if all(one is not None for one in shown) and len(set(shown)) > 1:
        return _Sides("first of the stimulus", "second of the stimulus", lambda trial: _stimuli(trial.get("stimulus")))
    return None


def _check_winners(rows: Collector, sides: _Sides, trials: Sequence[Trial]) -> None:
    """Refuse answers, such as numbers of buttons, that do not say which of the two was chosen."""
    winners = [sides.winner(trial, _response(trial)) for trial in trials]
    unclear = list(dict.fromkeys(one for one in winners if one and one not in ("left", "right", "tie")))
    if not unclear:
        return
    values = sorted(unclear, key=lambda value: (as_number(value) or 0.0, value))
    numbers = all(as_number(value) is not None for value in values)
    if len(values) == 2:
        ways = [dict(zip(values, words, strict=True)) for words in (("left", "right"), ("right", "left"))]
        asked = either([option("winner_codes", way) for way in ways])
        buttons = " (buttons are numbered from 0 in the order in which they were shown)" if numbers else ""
        problem = f"pairs of {sides.left!r} and {sides.right!r}, and 'response' holds {values[0]} and {values[1]}"
        raise JudgmentError(f"{problem}; say what they mean: {asked}{buttons}")
    if numbers:
        raise JudgmentError(what_numbers_mean("response", values, sides.left, sides.right))
    codes = option("winner_codes", dict.fromkeys(unclear[:2], ...))
    rows.refuse("words", left=sides.left, right=sides.right, held=first_few(map(repr, unclear)), codes=codes)


def _two(values: Sequence[str | None]) -> tuple[str, str] | None:
    """Two values where both are there."""
    both = [value for value in values if value is not None]
    return (both[0], both[1]) if len(both) == len(values) == 2 else None


def _entries(value: object) -> list[str]:
    """The entries of a list, which CSV holds as JSON."""
    if isinstance(value, str) and value.startswith("["):
        value = parse_json(value)
    return [text for one in value if (text := as_text(one))] if isinstance(value, list) else []


def _stimuli(value: object) -> tuple[str, str] | None:
    """The two things that a stimulus shows: entries of a list, or files of the page."""
    return _two(_entries(value) or _MEDIA.findall(as_text(value) or ""))
