"""Files into packed judgments: long tables some rows at a time give the bytes of reading them as a whole."""

import numpy as np
import polars as pl
import pytest
from tests.cluster.test_packing import assert_same_rows, contents, preferences, votes

import crowdrank as cr
from crowdrank.cluster import packing
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.io import judgments
from crowdrank.io.read_options import read_options

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")


@pytest.fixture
def long_tables(monkeypatch):
    """Every table counts as a long one."""
    monkeypatch.setattr(judgments, "LONG_BYTES", 1)
    monkeypatch.setattr(judgments, "LONG_ROWS", 1)
    monkeypatch.setattr(judgments, "_HEAD", 50)
    monkeypatch.setattr(packing, "ROWS_AT_ONCE", 170)


def rankings():
    grades = cr.Grades.from_frame(votes(600).drop("weight", "time", "group"))
    # rows of one ranking lie far apart
    return grades.as_rankings().frame().sample(fraction=1, shuffle=True, seed=3)


def split_preferences():
    """Preferences in two rows each, by halves of their weight, which lie far apart."""
    numbered = preferences().drop("strength").with_row_index("judgment")
    halves = [numbered.with_columns(weight=pl.lit(0.5), winner=pl.lit(winner)) for winner in ("left", "right")]
    return pl.concat(halves)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("kind", ["grade", "preference", "ranking", "judgments of two rows"])
def test_some_rows_at_a_time_give_the_bytes_of_all_at_once(tmp_path, long_tables, monkeypatch, kind, suffix):
    made = {"grade": votes, "preference": preferences, "ranking": rankings, "judgments of two rows": split_preferences}
    table = made[kind]()
    path = tmp_path / f"votes.{suffix}"
    table.write_parquet(path) if suffix == "parquet" else table.write_csv(path)
    packed = cr.pack(path, tmp_path / "long", part=200)
    assert_same_rows(packed, cr.read_judgments(path))
    monkeypatch.setattr(packing, "ROWS_AT_ONCE", 1_000_000)
    cr.pack(path, tmp_path / "whole", part=200)
    assert contents(tmp_path / "long") == contents(tmp_path / "whole")
    assert packed.rows == cr.read_judgments(path).n_judgments


def test_rows_of_judgments_of_several_are_not_left_out(tmp_path, long_tables):
    path = tmp_path / "votes.csv"
    table = split_preferences()
    table.with_columns(winner=pl.when(pl.int_range(len(table)) == 5).then(None).otherwise("winner")).write_csv(path)
    with pytest.raises(JudgmentError, match="judgment column joins several rows"):
        cr.pack(path, tmp_path / "p", options=read_options(invalid="drop"))


def test_fewer_rows_are_held_where_cells_are_long(tmp_path, long_tables, monkeypatch):
    path = tmp_path / "votes.parquet"
    votes().write_parquet(path)
    of_short = list(judgments.table_chunks([path], read_options(), 1000))
    monkeypatch.setattr(judgments, "BYTES_AT_ONCE", votes(300).estimated_size())
    of_long = list(judgments.table_chunks([path], read_options(), 1000))
    assert [len(rows.table.frame) for rows in of_short] == [1000] * 3
    assert max(len(rows.table.frame) for rows in of_long) <= 400
    assert pl.concat([rows.table.frame for rows in of_long]).equals(pl.concat([rows.table.frame for rows in of_short]))
    firsts = np.cumsum([0, *(len(rows.table.frame) for rows in of_long[:-1])])
    assert [rows.first for rows in of_long] == firsts.tolist()


@pytest.mark.parametrize("by", ["query", "annotator"])
def test_ids_that_are_coded_by_hash_give_the_same_bytes(tmp_path, long_tables, monkeypatch, by):
    table = votes().with_columns(query=pl.lit(" ") + pl.col("query"), annotator=pl.col("annotator") + "\t")
    table.write_parquet(tmp_path / "votes.parquet")
    cr.pack(tmp_path / "votes.parquet", tmp_path / "short", by=by, part=200)
    monkeypatch.setattr("crowdrank.data.index.LONG", 10)
    cr.pack(tmp_path / "votes.parquet", tmp_path / "long", by=by, part=200)
    assert contents(tmp_path / "short") == contents(tmp_path / "long")


def test_covariates_and_words_are_kept(tmp_path, long_tables):
    path = tmp_path / "pairs.parquet"
    preferences().write_parquet(path)
    packed = cr.pack(path, tmp_path / "p", options=read_options(covariates=["length"]), part=300)
    assert packed.part(0).covariate_names == ("length",)
    words = votes().with_columns(grade=pl.col("grade").replace_strict({1: "no", 2: "no", 3: "ok", 4: "ok", 5: "yes"}))
    words.write_csv(tmp_path / "words.csv")
    packed = cr.pack(tmp_path / "words.csv", tmp_path / "w", options=read_options(levels=["no", "ok", "yes"]))
    assert packed.levels == ("no", "ok", "yes")
    assert_same_rows(packed, cr.Grades.from_frame(words, levels=["no", "ok", "yes"]))


def test_a_bad_row_is_named_by_its_number_in_the_file(tmp_path, long_tables):
    table = votes().with_columns(grade=pl.when(pl.int_range(pl.len()) == 700).then(None).otherwise("grade"))
    path = tmp_path / "votes.parquet"
    table.write_parquet(path)
    with pytest.raises(JudgmentError, match=r"votes.parquet: the grade is blank in row 701 \(query"):
        cr.pack(path, tmp_path / "p")
    assert not (tmp_path / "p" / "manifest.json").exists()
    short = tmp_path / "short.csv"
    lines = votes().write_csv().splitlines()
    lines[800] = lines[800].rsplit(",", 2)[0]
    short.write_text("\n".join(lines))
    with pytest.raises(JudgmentError, match=r"row 800 .* has 5 cells where the header has 7"):
        cr.pack(short, tmp_path / "p")


def test_several_files_and_what_is_refused(tmp_path, long_tables):
    table = votes()
    table[:1000].write_parquet(tmp_path / "one.parquet")
    table[1000:].write_csv(tmp_path / "two.csv")
    packed = cr.pack([tmp_path / "one.parquet", tmp_path / "two.csv"], tmp_path / "p")
    assert packed.rows == 3000
    assert packed.manifest["sources"] == ["one.parquet", "two.csv"]
    with pytest.raises(ParameterError, match="duplicates"):
        cr.pack(tmp_path / "two.csv", tmp_path / "q", options=read_options(duplicates="first"))
    preferences().write_csv(tmp_path / "pairs.csv")
    with pytest.raises(JudgmentError, match="cannot be packed together"):
        cr.pack([tmp_path / "two.csv", tmp_path / "pairs.csv"], tmp_path / "q")
