"""Exports of other tools: which tool wrote a file, by the fields that only its exports have, and its judgments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...data.files import PathLike
from ...errors import JudgmentError
from ...wording import either, one_of, option
from ..letor import looks_like_letor
from ..read_options import ReadOptions
from ..sources import Source, blaming, open_source
from ..tables import is_sheet, table_format
from ..trec import looks_like_qrels, looks_like_run
from .cells import layout_of, order_column, place_columns, ranked_columns
from .streaming import PACKED, Beginning, look, sheet_as_text

if TYPE_CHECKING:
    from .imported import Imported

__all__ = ["EXPORTS", "IMPORTERS", "RATED", "Export", "Imported", "detect", "read"]


@dataclass(frozen=True)
class Export:
    """A tool's files: an entry of ``exports.toml``, where each part is explained."""

    title: str
    unit: str
    reader: str
    signs: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    shape: Mapping[str, Any] | None = None
    scores: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cells: Mapping[str, str] = field(default_factory=dict)
    leaves_out: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""
    says: Mapping[str, str] = field(default_factory=dict)

    def is_told_by(self, start: Beginning) -> bool:
        """Whether the beginning of a file has one of the signs."""
        return any(_has_sign(start, sign.split(", ")) for sign in self.signs)


_TABLE = tomllib.loads(Path(__file__).with_name("exports.toml").read_text(encoding="utf-8"))
# name of each export -> how its files are told and read, and what is said of them
EXPORTS = {name: Export(**entry) for name, entry in _TABLE.items()}

# name of each export that is read
IMPORTERS = tuple(EXPORTS)

# tools whose files are settled ratings, so that they serve as a truth too
RATED = ("quepid", "rre", "letor", "opensearch")


def detect(where: PathLike | Source) -> str | None:
    """Return the importer whose signature a file has; ``None`` where it is a table like any other.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.jsonl"
    >>> _ = path.write_text('{"model_1": "x", "model_2": "y", "g1_winner": "tie", "g2_winner": "tie"}')
    >>> detect(path)
    'mt-bench'
    """
    source = open_source(where, archives=True)
    text = source.data[:4] not in PACKED and table_format(source) == "csv"
    if text and (looks_like_run(source) or looks_like_qrels(source)):
        return "trec"
    if text and looks_like_letor(source):
        return "letor"
    start = look(source)
    fits = [name for name, export in EXPORTS.items() if export.is_told_by(start) or _OTHER_SIGNS[name](start)]
    if len(fits) > 1:
        which = f"{option('source', fits[0])}, or {option('source', 'table')} for neither"
        problem = f"{source.name} has what exports of {either(fits, 'and')} have"
        raise JudgmentError(f"{problem}; say which it is with {which}")
    return fits[0] if fits else None


def read(where: PathLike | Source, name: str, options: ReadOptions | None = None) -> Imported:
    """Return what an importer makes of a file.

    Parameters
    ----------
    where
        The file, or one that was opened.
    name
        Name of the importer, one of :data:`IMPORTERS`.
    options
        Which question, which rows, which statuses; ``None`` leaves all of that to the importer.
    """
    from .imported import Collector

    options = options or ReadOptions()
    export = EXPORTS[one_of(name, EXPORTS, "source", of_verb=True)]
    source = open_source(where, archives=True)
    if source.data[:4] in PACKED and is_sheet(source):
        source = sheet_as_text(source, options.sheet)
    with blaming(source.name):
        if export.refusal:
            raise JudgmentError(export.refusal)
        module, function = export.reader.split(".")
        rows = Collector(source, options, export)
        try:
            imported: Imported = getattr(import_module(f".{module}", __name__), function)(rows)
        except UnicodeEncodeError:
            raise JudgmentError("the file holds half of a character; correct its \\u escapes") from None
        except RecursionError:
            raise JudgmentError("the file is nested too deeply; export it again") from None
    return imported


def _has_sign(start: Beginning, paths: list[str]) -> bool:
    """Whether the header or a record has all of some fields, and none those with an exclamation mark."""
    wanted = [path for path in paths if path[0] != "!"]
    header = dict.fromkeys(start.header, "")
    each = ([_has_path(one, path, columns=one is header) for path in wanted] for one in (header, *start.objects))
    return any(map(all, each)) and not any(start.has(path[1:]) for path in paths if path[0] == "!")


def _has_path(record: Mapping[str, Any], path: str, *, columns: bool = False) -> bool:
    """Whether a record has a field, which may stand in other ones, or be one of several."""
    if "*" in path:
        ends = path[0] == "*"
        hits = (name.endswith(path[1:]) if ends else name.startswith(path[:-1]) for name in record)
        return (ends or columns) and any(hits)
    step, _, rest = path.partition("/")
    for name in step.split("|"):
        value = record.get(name.removesuffix("[]"))
        if name.endswith("[]"):
            value = value[0] if isinstance(value, list) and value else None
        if name in record if not rest else isinstance(value, Mapping) and _has_path(value, rest):
            return True
    return False


# what no list of fields tells ----------------------------------------------------------------------------------------


def _is_bare_task(start: Beginning) -> bool:
    """Tasks of Label Studio that nobody has annotated yet, as a file may begin with."""
    tasks = (one for one in start.objects if isinstance(one.get("data"), Mapping) and "id" in one)
    return any(one.get("annotations", one.get("completions")) == [] for one in tasks)


def _has_responses(start: Beginning) -> bool:
    """Answers of Argilla's users under the names of their questions."""
    values = [value for one in start.objects for value in one.values()]
    entries = [value[0] for value in values if isinstance(value, list) and value]
    entries += [value for value in values if isinstance(value, Mapping)]
    return any(isinstance(one, Mapping) and {"user_id", "value", "status"} <= one.keys() for one in entries)


def _is_doccano(start: Beginning) -> bool:
    if start.has("_input_hash") or start.has("prompt"):
        return False
    texts = [one for one in start.objects if "text" in one or "filename" in one]
    labels = [one.get(key) for one in texts for key in ("label", "cats")]
    labels += [one.get("labels") for one in texts if "annotation_approver" in one or "meta" in one]
    plain = (isinstance(one, list) and not any(isinstance(label, Mapping) for label in one) for one in labels)
    return any(plain) or {"text", "label", "Comments"} <= set(start.header)


def _is_chosen_rejected(start: Beginning) -> bool:
    if not start.has("chosen", "rejected") or start.has("scores_chosen", "results"):
        return False
    asked = ("chosen_model", "prompt", "question", "instruction", "score_chosen", "messages")
    chosen = (one["chosen"] for one in start.objects if "chosen" in one)
    talks = (isinstance(value, list) or "\n\nAssistant:" in str(value) for value in chosen)
    return any(map(start.has, asked)) or any(talks)


def _is_rre(start: Beginning) -> bool:
    rated = any("relevant_documents" in text and "placeholders" in text for text in map(str, start.objects))
    holds = ("queries", "query_groups", "topics")
    return rated and any(isinstance(one.get(key), list) for one in start.objects for key in holds)


def _is_surveymonkey(start: Beginning) -> bool:
    keys = [re.sub(r"[^a-z]", "", name.lower()) for name in start.header]
    ids = {"respondentid", "collectorid"} <= set(keys)
    return ids and bool(start.rows) and not start.rows[0][keys.index("respondentid")]


def _is_limesurvey(start: Beginning) -> bool:
    names = {name.lower() for name in start.names}
    return {"id", "submitdate", "lastpage"} <= names or {"response id", "date submitted", "last page"} <= names


def _is_ballots(start: Beginning) -> bool:
    rows = start.rows or [[str(one.get(name, "")) for name in start.names] for one in start.objects]
    return bool(place_columns(start.names)) or order_column(start.names, rows) is not None


def _is_google_forms(start: Beginning) -> bool:
    grids = sum(bool(re.search(r"\[.+\]$", name)) for name in start.header)
    return grids > 1 and bool(start.rows) and bool(re.search(r"\d:\d\d", start.rows[0][0]))


_OTHER_SIGNS: dict[str, Callable[[Beginning], bool]] = dict.fromkeys(EXPORTS, lambda start: False) | {
    "label-studio": _is_bare_task,
    "argilla": _has_responses,
    "doccano": _is_doccano,
    "qualtrics": lambda start: any('"ImportId"' in cell for row in start.rows[:3] for cell in row),
    "google-forms": _is_google_forms,
    "surveymonkey": _is_surveymonkey,
    "limesurvey": _is_limesurvey,
    "best-worst": lambda start: layout_of(start.names) is not None,
    "ballots": _is_ballots,
    "ranked-sets": lambda start: bool(ranked_columns(start.names)),
    "chosen-rejected": _is_chosen_rejected,
    "promptfoo": lambda start: any(re.match(r"\[[\w.-]+:[^\]]+\] ", name) for name in start.header),
    "quepid": lambda start: [name.strip().lower() for name in start.header] == ["query", "docid", "rating"],
    "rre": _is_rre,
}
