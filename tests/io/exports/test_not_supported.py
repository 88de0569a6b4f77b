"""Boxes, spans, relations, free text and dates: said to be not supported, with what to use and no column to paste."""

import json

import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError
from crowdrank.wording import on_command_line

BOX = {"x": 1.5, "y": 2, "width": 30, "height": 4}
SPAN = {"start": 0, "end": 4, "text": "Anna"}


def _label_studio(kind, value, **more):
    result = [{"from_name": "mark", "to_name": "x", "type": kind, "value": value, **more}]
    return [
        {"id": n, "data": {"text": "t"}, "annotations": [{"completed_by": who, "result": result} for who in (1, 2)]}
        for n in range(3)
    ]


def _rows(**cells):
    keys = {"annotator": 1, "annotation_id": 1, "created_at": "x", "updated_at": "x", "lead_time": 1}
    return [
        {"id": n, "image": "i.png", **keys, "annotator": who, **{k: v(n, who) for k, v in cells.items()}}
        for n in range(3)
        for who in (1, 2)
    ]


def _labelbox(annotations):
    return [
        {"data_row": {"id": f"d{n}"}, "projects": {"p": {"labels": [{"annotations": annotations(n)}]}}}
        for n in range(3)
    ]  # fmt: skip


def _prodigy(view, **cells):
    task = {"text": "t", "answer": "accept", "_view_id": view, **cells}
    return [task | {"_input_hash": n, "_task_hash": n} for n in (1, 2)]


def _argilla(value):
    return [
        {"id": str(n), "fields": {"text": "t"}, "responses": {"q": [
            {"user_id": who, "value": value(n, who), "status": "submitted"} for who in "ab"
        ]}}
        for n in range(20)
    ]  # fmt: skip


def _table(header, row):
    return f"{header}\n" + "".join(row(n, who) + "\n" for n in range(10) for who in "ab")


FILES = {
    "regions": {
        "ls.json": _label_studio("rectanglelabels", BOX | {"rectanglelabels": ["Car"]}),
        "ls_brush.json": _label_studio("brushlabels", {"format": "rle", "rle": [1, 2], "brushlabels": ["Car"]}),
        "ls_choice.json": _label_studio("choices", BOX | {"choices": ["Car"]}),
        "ls_min.json": _rows(label=lambda n, who: [BOX | {"rectanglelabels": ["Car"]}]),
        "labelbox.ndjson": _labelbox(lambda n: {"objects": [{"name": "Car", "bounding_box": {"top": 1, "left": 2}}]}),
        "prodigy.jsonl": _prodigy("image_manual", spans=[{"points": [[1, 2]], "label": "CAR"}]),
        "doccano.jsonl": [
            {"id": n, "filename": "f", "label": [BOX | {"label": "car"}], "Comments": []} for n in (1, 2)
        ],
        "coco.json": {"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1, "bbox": [1, 2, 3, 4]}]},
        "boxes.jsonl": [{"image": f"i{n}", "annotator": w, "boxes": [BOX]} for n in (1, 2) for w in "ab"],
        "boxes.csv": _table("image,annotator,label,xmin,ymin,xmax,ymax", lambda n, w: f"i{n},{w},car,{n},2,{n + 9},9"),
        "bbox.csv": _table("image,annotator,bbox", lambda n, w: f'i{n},{w},"[{n}, 2, 3, 4]"'),
    },
    "spans": {
        "ls.json": _label_studio("labels", SPAN | {"labels": ["PER"]}),
        "ls_min.json": _rows(label=lambda n, who: [SPAN | {"labels": ["PER"]}]),
        "prodigy.jsonl": _prodigy("ner_manual", spans=[SPAN | {"label": "PER"}]),
        "blocks.jsonl": _prodigy("blocks", spans=[SPAN | {"label": "PER"}]),
        "doccano.jsonl": [{"id": n, "text": "t", "label": [[0, 4, "PER"]], "Comments": []} for n in (1, 2)],
        "argilla.json": _argilla(lambda n, who: [SPAN | {"label": "PER"}]),
        "spans.jsonl": [{"text": f"t{n}", "annotator": w, "spans": [SPAN]} for n in (1, 2) for w in "ab"],
        "spans.csv": _table("text,annotator,start,end,label", lambda n, who: f"t{n},{who},{n},{n + 4},PER"),
    },
    "relations": {
        "ls.json": _label_studio("relation", None, from_name=None, from_id="a", to_id="b"),
        "prodigy.jsonl": _prodigy("relations", relations=[{"head": 1, "child": 2, "label": "x"}]),
    },
    "texts": {
        "ls.json": _label_studio("textarea", {"text": ["a note"]}),
        "ls_min.json": _rows(note=lambda n, who: f"some free words {n} {who}"),
        "labelbox.ndjson": _labelbox(
            lambda n: {"classifications": [{"name": "note", "text_answer": {"content": f"it is said {n} times"}}]}
        ),
        "prodigy.jsonl": _prodigy("text_input", user_input="some words"),
        "argilla.json": _argilla(lambda n, who: f"a free answer {n} of {who}"),
        "comments.csv": _table("item,annotator,comment", lambda n, who: f"i{n},{who},a free comment {n} of {who}"),
    },
    "dates": {
        "ls.json": _label_studio("datetime", {"datetime": "2024-05-01"}),
        "ls_min.json": _rows(when=lambda n, who: f"2024-05-0{n + who}"),
        "argilla.json": _argilla(lambda n, who: f"2024-05-{n + 1:02d}"),
        "dates.csv": _table("item,annotator,when", lambda n, who: f"i{n},{who},2024-05-{n + 1:02d}"),
    },
}
WORDS = {
    "regions": ("boxes or other regions", "one row per region and annotator"),
    "spans": ("spans of text or sound", "one row per token"),
    "relations": ("relations", "one row per pair of things"),
    "texts": ("free text", "grade the texts or compare two at a time"),
    "dates": ("dates", "days since the first"),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, files in FILES.items() for name in files])
def test_what_is_no_judgment_is_said_to_be_not_supported(tmp_path, kind, name):
    path, what = tmp_path / name, FILES[kind][name]
    if isinstance(what, str):
        path.write_text(what)
    else:
        path.write_text(json.dumps(what) if path.suffix == ".json" else "\n".join(map(json.dumps, what)))
    with on_command_line(), pytest.raises(JudgmentError) as caught:
        cr.read_judgments(path)
    said = str(caught.value)
    for words in (*WORDS[kind], ": not supported, as judgments are grades"):
        assert words in said
    assert "--column" not in said


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("item,annotator,start,end,answer", lambda n, who: f"i{n},{who},{n},{n + 4},{['yes', 'no'][n % 2]}"),
        ("item,annotator,x,y,width,grade", lambda n, who: f"i{n},{who},{n},{n + 4},3,{n % 5}"),
        ("item,annotator,grade,comment", lambda n, who: f"i{n},{who},{n % 5},a free comment {n} of {who}"),
    ],
    ids=["ends of the work", "graded boxes", "a comment beside"],
)
def test_judgments_beside_them_are_read(tmp_path, header, row):
    path = tmp_path / "votes.csv"
    path.write_text(_table(header, row))
    assert len(cr.read_judgments(path)) == 20


def test_labels_of_tokens_are_read_as_the_sentence_says(tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(_table("item,annotator,start,end,label", lambda n, who: f"t1:{n},{who},{n},{n + 4},PER"))
    assert cr.read_judgments(path, nominal=True).nominal
