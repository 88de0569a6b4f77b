"""Packed judgments: same bytes for the same judgments, ids back and forth, and a sentence for what goes wrong."""

import fcntl
import io
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdrank as cr
from crowdrank.cluster import packing
from crowdrank.cluster.packed import items_of, scan_judgments
from crowdrank.cluster.packing import pack_judgments, part_table
from crowdrank.errors import JudgmentError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")


def votes(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    annotator, item = rng.integers(0, 20, n), rng.integers(0, 9, n)
    careful = rng.random(n) < 0.5 + 0.025 * annotator
    return pl.DataFrame(
        {
            # very unequal queries
            "query": [f"q{q}" for q in np.minimum(rng.geometric(0.04, n), 100)],
            "item": [f"i{i}" for i in item],
            "annotator": [f"a{a}" for a in annotator],
            "group": [f"g{a % 3}" for a in annotator],
            "grade": np.where(careful, 1 + item // 2, rng.integers(1, 6, n)),
            "weight": rng.integers(1, 4, n) / 2,
            "time": rng.integers(0, 1000, n) * 1.0,
        }
    )


def preferences(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, 9, n)
    outcome = rng.integers(-1, 2, n)
    return pl.DataFrame(
        {
            "query": [f"q{q}" for q in rng.integers(0, 30, n)],
            "left": [f"i{i}" for i in left],
            "right": [f"i{i}" for i in (left + rng.integers(1, 9, n)) % 9],
            "winner": np.array(["right", "tie", "left"])[outcome + 1],
            "strength": np.abs(outcome) * rng.integers(1, 4, n),
            "annotator": [f"a{a}" for a in rng.integers(0, 20, n)],
            "duration": rng.integers(1, 90, n) * 1.0,
            "length_left": rng.integers(1, 90, n),
            "length_right": rng.integers(1, 90, n),
        }
    )


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def as_rows(judgments):
    frame = judgments.frame()
    return frame.drop([name for name in ("ranking", "judgment") if name in frame.columns])


def assert_same_rows(packed, judgments):
    found = pl.concat([as_rows(part) for part in packed.parts()])
    wanted = as_rows(judgments)
    assert found.select(wanted.columns).sort(wanted.columns).equals(wanted.sort(wanted.columns))


def test_order_and_chunks_do_not_change_a_byte(tmp_path, monkeypatch):
    table = votes()
    mixed = table.sample(fraction=1, shuffle=True, seed=1)
    pack_judgments([cr.Grades.from_frame(table)], tmp_path / "one", part_rows=400)
    pieces = [cr.Grades.from_frame(mixed[a:b]) for a, b in ((0, 10), (10, 2000), (2000, 3000))]
    packed = pack_judgments(pieces, tmp_path / "two", part_rows=400)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert packed.n_parts > 3
    monkeypatch.setattr(packing, "_ID_BYTES_AT_ONCE", 1)  # one part at a time
    monkeypatch.setattr(packing, "_IDS_AT_ONCE", 1)
    pack_judgments(pieces, tmp_path / "three", part_rows=400)
    assert contents(tmp_path / "one") == contents(tmp_path / "three")


def test_appending_gives_the_bytes_of_packing_everything(tmp_path):
    table = votes()
    pack_judgments([cr.Grades.from_frame(table)], tmp_path / "one", part_rows=400)
    pack_judgments([cr.Grades.from_frame(table[:1000])], tmp_path / "two", part_rows=400)
    pack_judgments([cr.Grades.from_frame(table[1000:])], tmp_path / "two", append=True)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("by", ["query", "annotator"])
def test_every_column_comes_back(tmp_path, by):
    grades = cr.Grades.from_frame(votes())
    chosen = cr.Preferences.from_frame(preferences(), covariates=["length"])
    sets = {
        "grades": grades,
        "words": cr.Grades.from_frame(
            votes().with_columns(grade=pl.col("grade").cast(pl.String).replace("1", "bad")), levels=["bad", *"2345"]
        ),
        "floats": cr.Grades.from_frame(votes().with_columns(grade=pl.col("time") / 7)),
        "preferences": chosen,
        "rankings": grades.as_rankings(),
        "across": chosen.across_queries(),
        "no annotators": cr.Preferences.from_frame(preferences().drop("annotator")),
    }
    for name, judgments in sets.items():
        if by == "annotator" and not judgments.n_annotators:
            continue
        packed = pack_judgments([judgments], tmp_path / name, by=by, part_rows=300)
        assert_same_rows(packed, judgments)
        part = packed.part(packed.n_parts - 1)
        assert list(part.annotators) == list(judgments.annotators)
        assert type(part) is type(judgments)
        assert (part.group is None) == (judgments.group is None)
        if name == "across":
            assert list(part.blocks) == list(judgments.blocks)


def test_equal_rows_of_other_judgments_give_the_same_bytes_in_any_order(tmp_path):
    # judgments that share a row, and two that say the same
    shared = [["b", "c"], ["b", "d"], ["b", "c", "d"], ["b", "c"], ["d", "c"]]
    rows = [("q", "ann", "a", right, "left", 0.5, f"j{n}") for n, rights in enumerate(shared * 4) for right in rights]
    names = ["query", "annotator", "left", "right", "winner", "weight", "judgment"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    found = set()
    for seed in range(6):
        mixed = table.sample(fraction=1, shuffle=True, seed=seed)
        pack_judgments([cr.Preferences.from_frame(mixed)], tmp_path / f"{seed}")
        found.add(str(sorted(contents(tmp_path / f"{seed}").items())))
    assert len(found) == 1


def test_rows_of_one_judgment_stay_together(tmp_path):
    table = {
        "left": ["x", "x", "y", "y"],
        "right": ["y", "y", "z", "z"],
        "winner": ["left", "right"] * 2,
        "weight": [0.25, 0.75, 0.5, 0.5],
        "judgment": ["j1", "j1", "j2", "j2"],
        "annotator": ["ann", "ann", "bob", "bob"],
        "query": ["q", "q", "r", "r"],
    }
    packed = pack_judgments([cr.Preferences.from_frame(table)], tmp_path / "p", part_rows=2)
    assert packed.rows == 2
    assert [part.n_judgments for part in packed.parts()] == [1, 1]


def test_items_of_all_parts_are_those_of_the_judgments(tmp_path):
    grades = cr.Grades.from_frame(votes())
    packed = pack_judgments([grades], tmp_path / "p", part_rows=400)
    assert packed.items.frame().equals(grades.items.frame())
    for number, part in enumerate(packed.parts()):
        assert packed.items.frame()[packed.item_codes(number)].equals(part.items.frame())


def test_a_query_never_spans_parts_nor_an_annotator(tmp_path):
    grades = cr.Grades.from_frame(votes())
    queries = [list(part.items.queries) for part in pack_judgments([grades], tmp_path / "q", part_rows=400).parts()]
    assert sum(map(len, queries)) == len(set().union(*queries))
    parts = pack_judgments([grades], tmp_path / "a", by="annotator", part_rows=400).parts()
    people = [set(part.annotator.tolist()) for part in parts]
    assert sum(map(len, people)) == len(set().union(*people))


@given(st.data())
def test_rows_sorted_as_one_number_are_sorted_by_their_columns(data):
    n = data.draw(st.integers(0, 20))
    spans = st.sampled_from([(0, 0), (-1, 1), (-(2**31), 2**31 - 1), (5, 9)])
    columns = {}
    for name, (low, high) in zip(
        ("item", "annotator", "outcome"), data.draw(st.tuples(spans, spans, spans)), strict=True
    ):
        columns[name] = np.array(data.draw(st.lists(st.integers(low, high), min_size=n, max_size=n)), np.int32)
    if data.draw(st.booleans()):
        columns["weight"] = np.linspace(1, 0, n)
    _, table, _ = part_table("preference", dict(columns), None, coded=False)
    assert table.equals(pl.DataFrame(columns).sort(list(columns)))


def test_it_is_pickled_by_its_folder(tmp_path):
    packed = pack_judgments([cr.Grades.from_frame(votes())], tmp_path / "p", part_rows=400)
    sent = pickle.dumps(packed)
    assert len(sent) < 500
    assert pickle.loads(sent).part(1).frame().equals(packed.part(1).frame())


def test_whole_numbers_and_text_are_one_id(tmp_path):
    first = cr.Grades.from_rows([(1, 7, 1, 3), (2, 7, 2, 1)])
    second = cr.Grades.from_rows([("ann", "7", "1", 2)])
    packed = pack_judgments([first, second], tmp_path / "p")
    assert list(packed.annotators) == ["1", "2", "ann"]
    assert packed.items.frame().rows() == [("7", "1"), ("7", "2")]


def test_a_damaged_or_missing_part_is_named(tmp_path):
    folder = tmp_path / "p"
    packed = pack_judgments([cr.Grades.from_frame(votes())], folder, part_rows=400)
    file = folder / packed.manifest["parts"][1]["file"]
    file.write_bytes(file.read_bytes()[:-9] + b"x" * 9)
    again = cr.scan_judgments(folder)
    with pytest.raises(JudgmentError, match=rf"{file.name} is damaged: its checksum is \w+ and the manifest has \w+"):
        again.part(1)
    file.unlink()
    with pytest.raises(JudgmentError, match=f"{file.name} is missing"):
        cr.scan_judgments(folder).part(1)
    with pytest.raises(JudgmentError, match="there is no part 99"):
        again.part(99)


def test_what_cannot_be_packed_is_refused_and_leaves_the_folder_alone(tmp_path):
    grades, chosen = cr.Grades.from_frame(votes()), cr.Preferences.from_frame(preferences())
    pack_judgments([grades], tmp_path / "p", part_rows=400)
    before = contents(tmp_path / "p")
    with pytest.raises(JudgmentError, match="grades and preferences cannot be packed together"):
        pack_judgments([chosen], tmp_path / "p", append=True)
    other = cr.Grades.from_frame(votes().with_columns(group=pl.lit("g9")))
    with pytest.raises(JudgmentError, match="stands in two groups"):
        pack_judgments([other], tmp_path / "p", append=True)
    with (tmp_path / "p" / ".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        with pytest.raises(ParameterError, match="is being written by process 4711"):
            pack_judgments([grades], tmp_path / "p", append=True)
        lock.truncate(0)
    assert contents(tmp_path / "p") == before
    assert not list((tmp_path / "p").glob(".chunks*"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("do not lose")
    with pytest.raises(ParameterError, match="holds other files"):
        pack_judgments([grades], tmp_path / "full")
    with pytest.raises(JudgmentError, match="make one with crowdrank pack"):
        cr.scan_judgments(tmp_path / "full")
    nameless = cr.Preferences.from_frame(preferences().drop("annotator"))
    with pytest.raises(JudgmentError, match="pack them by query"):
        pack_judgments([nameless], tmp_path / "n", by="annotator")


def test_a_query_of_too_many_rows_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("crowdrank.cluster.packing.MOST_PART_ROWS", 500)
    one = cr.Grades.from_frame(votes().drop("query"))
    with pytest.raises(JudgmentError, match=r"one query has 3,000 rows, .* pack the judgments by annotator"):
        pack_judgments([one], tmp_path / "p")
    assert pack_judgments([one], tmp_path / "a", by="annotator", part_rows=500).n_parts > 1


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    grades = cr.Grades.from_frame(votes())
    pack_judgments([grades], tmp_path / "p", part_rows=400)
    before = contents(tmp_path / "p")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(ParameterError, match="disk is full"):
        pack_judgments([grades], tmp_path / "p", append=True)
    assert contents(tmp_path / "p") == before


def test_a_full_disk_is_spoken_of_while_chunks_are_written(tmp_path, monkeypatch):
    class Full(io.FileIO):
        def write(self, content):
            raise OSError(28, "No space left on device")

    opened = Path.open
    monkeypatch.setattr(
        Path,
        "open",
        lambda self, *how, **more: Full(self, "w") if self.suffix == ".npy" else opened(self, *how, **more),
    )
    with pytest.raises(ParameterError, match="disk is full; nothing was left behind"):
        pack_judgments([cr.Grades.from_frame(votes())], tmp_path / "p")
    assert [path.name for path in (tmp_path / "p").iterdir()] == [".lock"]


def test_a_writer_that_was_killed_is_followed_by_another(tmp_path):
    grades, folder = cr.Grades.from_frame(votes()), tmp_path / "p"
    whole = contents(pack_judgments([grades], tmp_path / "whole", part_rows=400).path)
    pack_judgments([grades], folder, part_rows=400)
    (folder / "manifest.json").unlink()
    (folder / "parts" / ".part-00001.parquet.host.17.part").write_bytes(b"half")
    (folder / ".chunks-17").mkdir()
    with pytest.raises(JudgmentError, match=r"packed judgments but no manifest.json: packing did not end"):
        cr.aggregate(folder)
    pack_judgments([grades], folder, part_rows=400)
    assert not (folder / ".chunks-17").exists()
    left = {path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".part")}
    assert {path.relative_to(folder).as_posix(): path.read_bytes() for path in left} == {
        path.relative_to(tmp_path / "whole").as_posix(): path.read_bytes()
        for path in (tmp_path / "whole").rglob("*")
        if path.is_file()
    }
    assert contents(tmp_path / "whole") == whole


def test_items_too_many_to_be_kept_are_read_when_they_are_used(tmp_path, monkeypatch):
    pack_judgments([cr.Grades.from_frame(votes())], tmp_path / "packed", part_rows=500)
    kept = scan_judgments(tmp_path / "packed")
    whole = [kept.part(number) for number in range(kept.n_parts)]
    monkeypatch.setattr("crowdrank.cluster.packed.MANY_ITEMS", 10)
    read, loose = [], scan_judgments(tmp_path / "packed")
    monkeypatch.setattr("crowdrank.cluster.packed.items_of", lambda table: read.append(table) or items_of(table))
    for number, before in enumerate(whole):
        part = loose.part(number)
        assert (part.n_items, part.n_queries) == (before.n_items, before.n_queries)
        assert len(read) == number
        assert part.items.frame().equals(before.items.frame())
        assert (part.items.offsets == before.items.offsets).all()
    assert len(read) == kept.n_parts
