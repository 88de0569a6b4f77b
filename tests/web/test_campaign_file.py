from dataclasses import replace
from pathlib import Path

import pytest

from crowdrank.errors import ParameterError
from crowdrank.web.campaign_file import changed_settings, read_campaign

ITEMS = "query,item,content,truth\nq,x,First,\nq,y,Second,\nq,z,Third,1\n"
GRADE = {
    "name": '"answers"', "kind": '"grade"', "items": '"items.csv"', "budget": "10", "grades": '["Bad", "Fair", "Good"]',
}  # fmt: skip


def write(folder: Path, table: str = ITEMS, **keys: str | None) -> Path:
    (folder / "items.csv").write_text(table)
    lines = [f"{key} = {value}" for key, value in {**GRADE, **keys}.items() if value is not None]
    path = folder / "campaign.toml"
    path.write_text("\n".join(lines))
    return path


def test_a_file_becomes_settings_and_items(tmp_path):
    (tmp_path / "guide.md").write_text("# Read this")
    path = write(tmp_path, scheme='"if-good-3"', cost="{person = 4}", checks="0.1", consent='"guide.md"')
    campaign = read_campaign(path)
    settings = campaign.settings
    assert settings.overlap_max == 3
    assert settings.cost == {"person": 4, "program": 1}
    assert settings.guidelines == "# Read this"
    assert [item.truth for item in campaign.items] == [None, None, 1.0]
    assert type(settings)(**settings.plain()) == settings


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"kind": '"grades"'}, "did you mean 'grade'"),
        ({"kind": None}, "has no 'kind'"),
        ({"lease": "3"}, "did you mean"),
        ({"budget": "0"}, "budget = 0"),
        ({"budget": '"much"'}, "whole number"),
        ({"budget": "true"}, "whole number"),
        ({"scheme": '"if-god-3"'}, "if"),
        ({"kind": '"preference"', "grades": None, "scheme": '"if-good-3"'}, "for preferences use"),
        ({"kind": '"ranking"', "grades": None, "scheme": '"information"'}, "3-overlap"),
        ({"kind": '"preference"'}, "leave them out"),
        ({"kind": '"preference"', "grades": None, "method": '"dawid_skene"'}, "takes grades, not preferences"),
        ({"budget": "-1"}, "budget = -1 must be at least 1"),
        ({"consent": '"nowhere.md"'}, "names a file that is not there"),
        ({"grades": '["Bad"]'}, "2 to 30"),
        ({"grades": '["Bad", "Bad"]'}, "twice"),
        ({"scheme": '"if-good-3"', "params": '{good_from = "Goood"}'}, "did you mean 'Good'"),
        ({"checks": "1.5"}, "share"),
        ({"cost": "{people = 3}"}, "person and program"),
        ({"method": '"dawid_skeen"'}, "dawid_skene"),
        ({"items": '"nothing.csv"'}, "nothing.csv"),
        ({"consent": '"nothing.md"'}, "nothing.md"),
        ({"name": '" "'}, "printable"),
    ],
)
def test_a_mistake_is_one_sentence_with_a_remedy(tmp_path, keys, words):
    with pytest.raises(ParameterError) as caught:
        read_campaign(write(tmp_path, **keys))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ("item,text\nx,First\n", "rename the one that holds it to content"),
        ("item,content\nx,First\nx,Again\n", "row 2 repeats item 'x'"),
        ("item,content\nx,\n", "no content"),
        ("item,content,content_type\nx,a.png,image\n", "campaign's folder"),
        ("item,content,content_type\nx,../../etc/passwd,image\n", "campaign's folder"),
        ("item,content,content_type\nx,hi,pdf\n", "content_type 'pdf'"),
        ("item,content,truth\nx,hi,high\n", "not a number"),
        ("item,content,truth\nx,hi,7\n", "count from 0"),
        ("query,item,content,query_content\nq,x,hi,One\nq,y,ho,Two\n", "another query_content"),
    ],
)
def test_bad_items_name_the_row(tmp_path, items, words):
    with pytest.raises(ParameterError, match=r"campaign\.toml: ") as caught:
        read_campaign(write(tmp_path, items))
    assert words in str(caught.value)


def test_text_that_is_no_toml(tmp_path):
    path = write(tmp_path)
    path.write_text('name = "x"; kind = "grade"')
    with pytest.raises(ParameterError, match="line 1"):
        read_campaign(path)
    with pytest.raises(ParameterError, match="--demo"):
        read_campaign(tmp_path / "none.toml")


def test_a_mark_at_the_start_is_no_text(tmp_path):
    path = write(tmp_path)
    for one in (path, tmp_path / "items.csv"):
        one.write_bytes(b"\xef\xbb\xbf" + one.read_bytes())
    assert read_campaign(path).settings.name


def test_what_an_edited_file_may_change(tmp_path):
    old = read_campaign(write(tmp_path)).settings
    allowed = replace(old, budget=20, lease_seconds=60, overlap_max=5, question="Well?")
    assert changed_settings(old, allowed, reserved=15) == allowed
    with pytest.raises(ParameterError, match="below the 15"):
        changed_settings(old, old, reserved=15)
    with pytest.raises(ParameterError, match="only rise"):
        changed_settings(allowed, old, reserved=0)
    with pytest.raises(ParameterError, match="scheme cannot change"):
        changed_settings(old, replace(old, scheme="if-good-3"), reserved=0)
