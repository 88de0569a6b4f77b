"""Qualtrics: the CSV or TSV of a survey's responses, with three header rows."""

from __future__ import annotations

import re
from itertools import takewhile

import polars as pl

from ...errors import JudgmentError
from ...wording import counted, first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number, as_truth
from .crowd_tables import chosen_rows
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import frame_of, text_rows
from .surveys import add_survey, is_scale

_TITLE = "Qualtrics survey responses (three header rows)"
_MATRIX = re.compile(r"(.+?)_(\d+)")
_LOOP = re.compile(r"(\d+)_(\D\w*?)")
"""Columns of a question in a loop: 1_Q3, 2_Q3 and so on."""

_TESTS = ("Survey Preview", "Survey Test", "Spam")
_OWN = {
    "StartDate", "EndDate", "Status", "IPAddress", "Progress", "Duration (in seconds)", "Finished", "RecordedDate",
    "ResponseId", "RecipientLastName", "RecipientFirstName", "RecipientEmail", "ExternalReference", "LocationLatitude",
    "LocationLongitude", "DistributionChannel", "UserLanguage",
}  # fmt: skip


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one judgment for each filled cell of a matrix question; addresses and places are not read."""
    lines = text_rows(source)
    end = next((place for place, row in enumerate(lines[:5]) if any('"ImportId"' in cell for cell in row)), None)
    if end is None or end == 0:
        raise JudgmentError("the header row with ImportId is missing; export the responses from Qualtrics as CSV again")
    if end + 1 == len(lines):
        raise JudgmentError("three header rows and no response; export it once somebody has answered")
    frame = frame_of(lines[end + 1 :], lines[0], source)
    texts = dict(zip(lines[0], lines[1] + [""] * len(lines[0]), strict=False)) if end > 1 else {}
    rows = Collector(source, options, unit="response")
    every = frame["Status"].drop_nulls().unique().sort().to_list() if "Status" in frame.columns else []
    frame = _finished_rows(rows, chosen_rows(rows, frame))
    if not frame.height:
        reasons = first_few([f"{n:,} {reason}" for reason, n in rows.dropped.items()])
        raise JudgmentError(
            f"all {counted(rows.n_read, 'response')} are left out ({reasons}); to read them by their Status: "
            f"{option('keep', every)}"
        )
    name = choose_question(_matrices(frame), options.answer)
    columns = _matrices(frame)[name]
    who = options.columns.get("annotator", "ResponseId")
    if who not in frame.columns:
        named = option("columns", {"annotator": ...})
        raise JudgmentError(f"there is no column {who!r} that says who answered; name one with {named}")
    cells = {"annotator": frame[who]}
    rows.roles["annotator"] = who
    for word, column in (("time", "RecordedDate"), ("duration", "Duration (in seconds)")):
        if column in frame.columns:
            cells[word] = frame[column] if word == "time" else frame[column].cast(pl.Float64, strict=False)
            rows.roles[word] = column
    if "time" in cells:
        from .cells import as_seconds

        cells["time"] = pl.Series([as_seconds(value) for value in cells["time"].to_list()], dtype=pl.Float64)
    kind = add_survey(rows, frame, _item_names(columns, texts), cells)
    rows.notes.append("numbers may be recode values of the choices; check them, or export the choice texts")
    return rows.finish(kind, title=_TITLE)


def _finished_rows(rows: Collector, frame: pl.DataFrame) -> pl.DataFrame:
    """The responses that are neither tests nor unfinished."""
    if "Status" in frame.columns:
        status = frame["Status"].fill_null("")
        kept = rows.options.keep
        bad = [
            value not in kept if kept is not None else value in _TESTS or as_number(value) not in (None, 0.0)
            for value in status.to_list()
        ]
        for value in status.filter(pl.Series(bad, dtype=pl.Boolean)):
            rows.drop(value if as_number(value) is None else f"Status {value}")
        frame = frame.filter(~pl.Series(bad, dtype=pl.Boolean))
        words = sorted(set(frame["Status"].drop_nulls().to_list()) - {"0", "IP Address"})
        if words:
            rows.notes.append(f"responses with Status {first_few(map(repr, words))} are kept")
    if "Finished" in frame.columns:
        share = frame["Progress"].to_list() if "Progress" in frame.columns else [None] * frame.height
        marks = [as_truth(value) for value in frame["Finished"].to_list()]
        # true and false follow the language of the survey, and the progress does not
        finished = [
            as_number(part) in (None, 100.0) if one is None else one for one, part in zip(marks, share, strict=True)
        ]
        done = pl.Series(finished, dtype=pl.Boolean)
        if not done.all():
            rows.drop("not finished", int((~done).sum()))
        frame = frame.filter(done)
    return frame


def _matrices(frame: pl.DataFrame) -> dict[str, list[str]]:
    """Questions with several items, and their columns."""
    columns: dict[str, list[str]] = {}
    for name in frame.columns:
        match, loop = _MATRIX.fullmatch(name), _LOOP.fullmatch(name)
        if loop and not match:
            columns.setdefault(loop[2], []).append(name)
        elif match and name not in _OWN:
            columns.setdefault(match[1], []).append(name)
    scales = {
        question: names
        for question, names in columns.items()
        if len(names) > 1 and is_scale([value for name in names for value in frame[name].drop_nulls().to_list()])
    }
    if not scales:
        asked = [name for name in frame.columns if name not in _OWN]
        raise JudgmentError(
            f"{counted(len(asked), 'column')} of answers ({first_few(map(repr, asked))}), each for one question, no "
            "items; a ranking needs a matrix question, with columns Q1_1, Q1_2 and so on"
        )
    return scales


def _item_names(columns: list[str], texts: dict[str, str]) -> dict[str, str]:
    """Items by the end of their question's text, behind what all have in common."""
    full = [texts.get(name, "") for name in columns]
    common = "".join(
        letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, zip(*full, strict=False))
    )
    cut = max(common.rfind(" - ") + 3, common.rfind(": ") + 2, common.rfind("\n") + 1)
    cut = cut if cut > 2 else 0
    ends = [text[cut:].strip() for text in full]
    if not all(ends) or len(set(ends)) < len(ends):
        ends = columns
    return dict(zip(columns, ends, strict=True))
