"""Annotators as users name them: by id, pattern, group or file."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.data.naming import named_annotators
from crowdrank.errors import CrowdrankError

IDS = ["gpt-4o", "h-1", "h-2", "a,b", "x=1", "7"]
GROUPS = ["openai", "human", "human", "human", "openai", "openai"]


@pytest.fixture
def judged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.txt").write_text("h-1\n\na,b\n")
    pl.DataFrame({"quality": [0.5, 0.6], "annotator": ["h-2", "7"]}).write_csv(tmp_path / "who.csv")
    pl.DataFrame({"annotator": [7]}).write_parquet(tmp_path / "who.parquet")
    (tmp_path / "h-2").write_text("h-1")
    return cr.Grades.from_frame({"item": ["i"] * 6, "grade": range(6), "annotator": IDS, "group": GROUPS})


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("h-1", {"h-1"}),
        (7, {"7"}),
        (["h-1", "7"], {"h-1", "7"}),
        ("h-1, 7", {"h-1", "7"}),
        ("a,b", {"a,b"}),
        ("x=1", {"x=1"}),
        ("h-*", {"h-1", "h-2"}),
        ("h-?,gpt*", {"h-1", "h-2", "gpt-4o"}),
        ("group=human", {"h-1", "h-2", "a,b"}),
        (["group=human", "7"], {"h-1", "h-2", "a,b", "7"}),
        ("@people.txt", {"h-1", "a,b"}),
        ("people.txt", {"h-1", "a,b"}),
        ("who.csv", {"h-2", "7"}),
        ("@who.parquet,h-1", {"7", "h-1"}),
        ("h-2", {"h-2"}),
    ],
)
def test_each_way_to_name_annotators(judged, names, wanted):
    chosen = judged.annotators.ids.filter(pl.Series(named_annotators(judged, names, "trusted")))
    assert set(chosen) == wanted


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("h1", "there is no annotator 'h1'; did you mean 'h-1'?"),
        ("z*", "trusted='z*': none of '7', 'a,b'"),
        ("group=humans", "there is no group 'humans'; did you mean 'human'?"),
        ("role=human", "columns={'group': 'role'} and write group=human"),
        ("@nobody.txt", "nobody.txt: No such file"),
    ],
)
def test_names_of_nobody_are_refused_with_what_to_do(judged, names, sentence):
    with pytest.raises(CrowdrankError) as refused:
        named_annotators(judged, names, "trusted")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    if "role" not in names and "nobody" not in names:
        assert not named_annotators(judged, names, "trusted", absent=True).any()


def test_trusted_by_group_is_trusted_by_id(judged):
    rng = np.random.default_rng(0)
    rows = [(who, f"i{item}", item // 2 + int(rng.integers(0, 4))) for who in IDS for item in range(8)]
    table = pl.DataFrame(rows, schema=["annotator", "item", "grade"], orient="row")
    table = table.with_columns(group=pl.col("annotator").replace_strict(dict(zip(IDS, GROUPS, strict=True))))
    by_group, by_id = (
        cr.aggregate(table, "latent_score", trusted=who) for who in ("group=human", ["h-1", "h-2", "a,b"])
    )
    assert by_group.scores.tolist() == by_id.scores.tolist()
    assert sorted(by_group.estimates["trusted"]) == ["a,b", "h-1", "h-2"]
