"""Exports of other tools: which tool wrote a file, by the fields that only its exports have, and its judgments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
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
        """Whether the header, or a record, has all the fields of a sign, and none of those with an exclamation mark."""
        header = dict.fromkeys(start.header, "")
        records = (header, *start.objects)
        for paths in (sign.split(", ") for sign in self.signs):
            wanted = [path for path in paths if path[0] != "!"]
            each = ([_has_path(one, path, columns=one is header) for path in wanted] for one in records)
            if any(map(all, each)) and not any(start.has(path[1:]) for path in paths if path[0] == "!"):
                return True
        return False


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
    fits = [name for name, export in EXPORTS.items() if export.is_told_by(start) or _is_told_otherwise(name, start)]
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


def _is_told_otherwise(name: str, start: Beginning) -> bool:
    """Whether the beginning of a file tells its tool by what no list of fields says."""
    objects, header, rows = start.objects, start.header, start.rows
    match name:
        case "label-studio":
            # tasks that nobody has annotated yet, as a file may begin with
            tasks = (one for one in objects if isinstance(one.get("data"), Mapping) and "id" in one)
            return any(one.get("annotations", one.get("completions")) == [] for one in tasks)
        case "argilla":
            # answers of users under the names of their questions
            values = [value for one in objects for value in one.values()]
            entries = [value[0] for value in values if isinstance(value, list) and value]
            entries += [value for value in values if isinstance(value, Mapping)]
            return any(isinstance(one, Mapping) and {"user_id", "value", "status"} <= one.keys() for one in entries)
        case "doccano" if not (start.has("_input_hash") or start.has("prompt")):
            texts = [one for one in objects if "text" in one or "filename" in one]
            labels = [one.get(key) for one in texts for key in ("label", "cats")]
            labels += [one.get("labels") for one in texts if "annotation_approver" in one or "meta" in one]
            lists = [one for one in labels if isinstance(one, list)]
            plain = (not any(isinstance(label, Mapping) for label in one) for one in lists)
            return any(plain) or {"text", "label", "Comments"} <= set(header)
        case "chosen-rejected" if start.has("chosen", "rejected") and not start.has("scores_chosen", "results"):
            asked = ("chosen_model", "prompt", "question", "instruction", "score_chosen", "messages")
            chosen = (one["chosen"] for one in objects if "chosen" in one)
            talks = (isinstance(value, list) or "\n\nAssistant:" in str(value) for value in chosen)
            return any(map(start.has, asked)) or any(talks)
        case "rre":
            rated = any("relevant_documents" in text and "placeholders" in text for text in map(str, objects))
            holds = ("queries", "query_groups", "topics")
            return rated and any(isinstance(one.get(key), list) for one in objects for key in holds)
        case "surveymonkey":
            keys = [re.sub(r"[^a-z]", "", column.lower()) for column in header]
            ids = {"respondentid", "collectorid"} <= set(keys)
            return ids and bool(rows) and not rows[0][keys.index("respondentid")]
        case "limesurvey":
            names = {column.lower() for column in start.names}
            return {"id", "submitdate", "lastpage"} <= names or {"response id", "date submitted", "last page"} <= names
        case "ballots":
            cells = rows or [[str(one.get(column, "")) for column in start.names] for one in objects]
            return bool(place_columns(start.names)) or order_column(start.names, cells) is not None
        case "google-forms":
            grids = sum(bool(re.search(r"\[.+\]$", column)) for column in header)
            return grids > 1 and bool(rows) and bool(re.search(r"\d:\d\d", rows[0][0]))
        case "qualtrics":
            return any('"ImportId"' in cell for row in rows[:3] for cell in row)
        case "best-worst":
            return layout_of(start.names) is not None
        case "ranked-sets":
            return bool(ranked_columns(start.names))
        case "promptfoo":
            return any(re.match(r"\[[\w.-]+:[^\]]+\] ", column) for column in header)
        case "quepid":
            return [column.strip().lower() for column in header] == ["query", "docid", "rating"]
    return False
