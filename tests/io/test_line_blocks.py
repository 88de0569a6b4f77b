"""Long files of JSON lines are read block by block, and give the same judgments as in one go."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError
from crowdrank.io import plain_tables, tables
from crowdrank.io.sources import open_source
from crowdrank.io.tables import read_lines, read_long_lines

LONG = "a word " * 60


def _write(path: Path, rows: list[dict], *, ascii_only: bool = True) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows))
    return path


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_tables, "LONG_BYTES", 1)
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 300)


VALUES = {
    "whole numbers": [1, 2, 3],
    "whole numbers below fractions": [0.5, None, 2],
    "blank at first": [None, None, "x"],
    "truth values": [True, False, None],
    "emoji written as escapes": ["\U0001f600", "plain", "\U0001f680 up"],
    "numbers below text": ["a", "b", 7],
    "text below numbers": [7, 8, "a"],
    "a late column": [..., ..., "late"],
}


@pytest.mark.parametrize("what", VALUES)
def test_blocks_give_the_columns_of_the_whole(what: str, tmp_path: Path) -> None:
    cells = [value for value in VALUES[what] for _ in range(20)]
    rows = [{"n": n} | ({} if cell is ... else {"cell": cell}) for n, cell in enumerate(cells)]
    source = open_source(_write(tmp_path / "rows.jsonl", rows))
    whole, mixed = read_lines(source)
    blocks = read_long_lines(source, lambda _: True, 200)
    assert blocks is not None
    assert blocks.frame.equals(whole), (blocks.frame.schema, whole.schema)
    assert blocks.frame.schema == whole.schema
    assert blocks.mixed == mixed


def test_long_text_is_cut_and_equal_cells_stay_equal(tmp_path: Path) -> None:
    texts = [LONG + end for end in "abab"] + ["short"] * 4
    rows = [{"text": text, "kept": text, "turns": [{"content": LONG}]} for text in texts]
    source = open_source(_write(tmp_path / "rows.jsonl", rows))
    found = read_long_lines(source, lambda name: name == "kept", 900)
    assert found is not None
    assert found.cut == {"text"}
    assert found.frame["kept"].to_list() == texts
    cells = found.frame["text"].to_list()
    assert [cells.index(cell) for cell in cells] == [texts.index(text) for text in texts]
    assert max(map(len, cells)) < 200
    assert cells[0].startswith("a word a word")
    assert found.frame["turns"].null_count() > 0, "lists that nobody asks for are kept in the first block only"
    assert found.frame["turns"].dtype.is_nested()


@pytest.mark.usefixtures("_small_blocks")
def test_ids_that_are_long_texts_are_whole(tmp_path: Path) -> None:
    rows = [
        {"prompt": f"{n % 3} {LONG}", "item": f"{LONG}{n % 5}", "grade": n % 4, "annotator": f"w{n // 15}"}
        for n in range(60)
    ]
    path = _write(tmp_path / "rows.jsonl", rows)
    grades = cr.read_judgments(path).frame()
    assert set(grades["item"]) == {row["item"] for row in rows}
    assert set(grades["query"]) == {row["prompt"].strip() for row in rows}


@pytest.mark.usefixtures("_small_blocks")
def test_paths_into_objects_reach_every_block(tmp_path: Path) -> None:
    rows = [{"data": {"url": f"u{n}", "text": LONG}, "grade": n % 4, "annotator": "w"} for n in range(40)]
    grades = cr.read_judgments(_write(tmp_path / "rows.jsonl", rows), columns={"item": "data.url"})
    assert grades.n_items == 40


@pytest.mark.usefixtures("_small_blocks")
def test_a_broken_line_is_named_by_its_number(tmp_path: Path) -> None:
    path = _write(tmp_path / "rows.jsonl", [{"item": f"i{n}", "grade": 1} for n in range(90)])
    lines = path.read_text().split("\n")
    lines[70] = lines[70][:-3]
    path.write_text("\n".join(lines))
    with pytest.raises(JudgmentError, match="line 71 is broken JSON"):
        cr.read_judgments(path)


@pytest.mark.usefixtures("_small_blocks")
def test_judgments_do_not_depend_on_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    frame = pl.DataFrame(
        {
            "left": [f"m{n}" for n in rng.integers(0, 5, 200)],
            "right": [f"k{n}" for n in rng.integers(0, 5, 200)],
            "winner": rng.choice(["left", "right", "tie"], 200),
            "annotator": [f"w{n}" for n in rng.integers(0, 6, 200)],
            "query": [f"q{n % 100}" for n in range(200)],
            "text": [LONG + str(n) for n in range(200)],
        }
    )
    frame.write_ndjson(tmp_path / "rows.jsonl")
    in_blocks = cr.read_judgments(tmp_path / "rows.jsonl")
    monkeypatch.setattr(plain_tables, "LONG_BYTES", 1 << 40)
    assert in_blocks.frame().equals(cr.read_judgments(tmp_path / "rows.jsonl").frame())
