"""Text and links of items."""

import polars as pl
import pytest

from crowdrank.data.judgments import Grades
from crowdrank.errors import JudgmentError
from crowdrank.io.features import describe_items, describe_votes, web_link


def items(**columns):
    n = len(next(iter(columns.values())))
    return Grades.from_frame({**columns, "grade": [1] * n}).items


def test_text_and_links_stand_with_their_items(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("Item ID,Title,URL\ny,Why,https://example.org/y\nz,Zed,ftp://x\n")
    found = describe_items(path, items(item=["x", "y", "z"]))
    assert found.rows() == [(None, None), ("Why", "https://example.org/y"), ("Zed", None)]


def test_queries_are_told_apart_unless_they_were_taken_as_one():
    table = {"query": ["p", "q"], "item": ["x", "x"], "text": ["in p", "in q"]}
    both = Grades.from_frame({"query": ["p", "q"], "item": ["x", "x"], "grade": [1, 2]})
    assert describe_items(table, both.items)["text"].to_list() == ["in p", "in q"]
    assert describe_items(table, both.across_queries().items)["text"].to_list() == ["in p"]


def test_numbers_as_ids_and_tables_without_text():
    assert describe_items({"item": [1, 2], "name": ["one", "two"]}, items(item=[2, 1]))["text"].to_list() == [
        "one",
        "two",
    ]
    assert describe_items(pl.DataFrame({"item": ["x"]}), items(item=["x"])).rows() == [(None, None)]
    with pytest.raises(JudgmentError, match="no item column"):
        describe_items({"thing": ["x"]}, items(item=["x"]))


@pytest.mark.parametrize("text", ["javascript:alert(1)", "data:text/html,x", "//example.org", "file:///etc/passwd", "x",
                                  "https:// example.org", "JaVaScRiPt:alert(1)//http://x"])  # fmt: skip
def test_only_web_pages_are_links(text):
    assert web_link(text) is None
    assert web_link("HTTPS://example.org/a?b=c#d") == "HTTPS://example.org/a?b=c#d"


def test_votes_may_tell_of_items_themselves(tmp_path):
    (tmp_path / "g.csv").write_text(
        "item,worker,label,Text,url\nx,a,1,An x,https://example.org/x\nx,b,2,other,\ny,a,1,,\n"
    )
    assert describe_votes([tmp_path / "g.csv"]).rows() == [("x", "An x", "https://example.org/x"), ("y", None, None)]
    (tmp_path / "p.csv").write_text(
        "query,model_a,model_b,winner,text_a,url_b\nq,x,y,model_a,An x,https://example.org/y\n"
    )
    assert describe_votes([tmp_path / "p.csv"]).rows() == [
        ("q", "x", "An x", None),
        ("q", "y", None, "https://example.org/y"),
    ]
    (tmp_path / "n.csv").write_text("item,annotator,grade\nx,a,1\n")
    assert describe_votes([tmp_path / "n.csv", "-"]) is None
