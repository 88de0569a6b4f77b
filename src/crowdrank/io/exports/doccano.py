"""doccano: labelled texts as JSON, JSON lines or CSV, one file or a zip archive with a file for each member."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from ...data.words import not_supported, unsupported_kind
from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import ZIP, Source
from .archives import text_members
from .cells import as_text
from .imported import Collector, Imported
from .questions import add_labels, as_labels
from .streaming import Shape, records

_TITLE = "a doccano export"
_SHAPE: Shape = {"annotations": ([{}], str)}


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the labels of each text as classes; texts without a label are left out."""
    rows = Collector(source, options, unit="text")
    answers: list[tuple[Any, str | None, list[str], dict[str, Any]]] = []
    nobody = False
    for member, part in _members(source):
        nobody |= member is None
        for number, record in enumerate(records(part, shape=_SHAPE), 1):
            if not rows.is_wanted(record):
                continue
            item = as_text(record.get("id")) or as_text(record.get("text")) or str(number)
            for person, labels in _labels_by_annotator(record, part.suffix == ".csv"):
                rows.n_read += 1
                if not labels:
                    rows.drop("no label")
                    continue
                cells = {"annotator": person or member}
                answers.append((record if options.columns else None, item, labels, cells))
    if nobody and not any(cells["annotator"] for *_, cells in answers):
        rows.notes.append(
            "the file does not say who labelled; without the shared mode, doccano exports one file per member"
        )
    rows.roles |= {"item": "id", "grade": "label", "annotator": "name of the file" if not nobody else "user"}
    several = any(len(labels) > 1 for _, _, labels, _ in answers)
    if several:
        add_labels(rows, answers)
        rows.roles["query"] = "the label"
    else:
        for where, name, labels, cells in answers:
            rows.add(where, item=name, grade=labels[0], **cells)
    # labels are classes, also the bare numbers that old files have in their place
    return rows.finish("grade", title=_TITLE, classes=not several)


def _labels_by_annotator(record: Mapping[str, Any], joined: bool) -> Iterator[tuple[str | None, list[str]]]:
    """Who gave which labels to a text."""
    annotations = record.get("annotations")
    if "label" not in record and "labels" not in record and "cats" not in record and isinstance(annotations, list):
        by_person: dict[str | None, list[str]] = {}
        for one in annotations:
            by_person.setdefault(as_text(one.get("user")), []).extend(as_labels(one.get("label")))
        yield from by_person.items() if by_person else [(None, [])]
        return
    labels = record.get("label", record.get("labels", record.get("cats", record.get("entities"))))
    if isinstance(labels, str) and joined:
        labels = labels.split("#")
    if isinstance(labels, list) and any(isinstance(one, list | Mapping) for one in labels):
        raise JudgmentError(not_supported("the labels are", unsupported_kind([labels]) or "spans", other=False))
    yield None, as_labels(labels)


def _members(source: Source) -> Iterator[tuple[str | None, Source]]:
    """Each file with who labelled it; one alone, or called ``all``, is nobody's."""
    if source.data[:4] != ZIP:
        yield None, source
        return
    for part in text_members(source):
        stem = PurePosixPath(part.name).stem
        yield None if stem == "all" else stem, part
