"""The report: one file with everything in it, everything from the data escaped, written whole or not at all."""

import base64
import errno
import hashlib
import html as entities
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.report.crowds import HOSTILE, grades, preferences

import crowdrank as cr
from crowdrank.demo import FILE
from crowdrank.errors import ParameterError
from crowdrank.report.page import PAGE, Column, Table

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

ELEMENTS = """html head meta title link style body header h1 p ul li b span nav a main section h2 pre dl dt dd div
figure figcaption svg g path defs use text clippath rect image strong input table thead tr th button tbody td script
footer"""

VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """A page as its elements, texts and tables' data; complains where elements are not closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.texts, self.data, self.headings, self.ids, self.links = [], [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag not in VOID:
            self.open.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        self.links += [given[name] for name in ("href", "src") if name in given]
        assert not any(name.startswith("on") for name in given), given

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and data.startswith('{"page"'):
            self.data.append(json.loads(data))
        elif self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


@pytest.fixture(scope="module")
def votes():
    return cr.read_judgments(FILE).across_queries()


@pytest.fixture(scope="module")
def consensus(votes):
    return cr.aggregate(votes, "bradley_terry")


@pytest.fixture(scope="module")
def demo(votes, consensus):
    text = cr.report.render(consensus, votes, command="crowdrank aggregate votes.csv --report r.html")
    return text, Page(text)


def report(judgments, **settings):
    """The report of judgments, as text and as a page."""
    method = settings.pop(
        "method", {"preference": "bradley_terry", "ranking": "borda"}.get(judgments.kind, "mean_grade")
    )
    if getattr(judgments, "nominal", False):
        method = "dawid_skene"
    text = cr.report.render(cr.aggregate(judgments, method), judgments, **settings)
    return text, Page(text)


def test_headings_state_the_findings(demo, votes, consensus):
    _, page = demo
    assert page.headings[0] == "2 problems and 1 warning to look at"
    assert page.headings[1] == cr.findings(consensus, votes).of("winner").sentence
    assert page.headings[2].startswith("1 of 30 annotators answers the wrong way round: olga; 3 of 30 annotators are")
    assert any(heading.startswith("Two annotators who judge the same pair agree in 5") for heading in page.headings)
    assert "Judgments came in between 2 March 2026 and 6 March 2026" in page.headings


def test_it_says_how_it_was_made(demo, votes):
    from crowdrank.data.parted import fingerprint

    _, page = demo
    command = "crowdrank aggregate votes.csv --report r.html"
    for part in (
        "bradley_terry", "parameter ridge", "0.1", f"crowdrank {cr.__version__}", fingerprint(votes), command,
        f"{command} --without olga",
    ):  # fmt: skip
        assert part in page.texts, part


def test_nothing_comes_from_outside(demo):
    text, page = demo
    for link in page.links:
        assert link.startswith(("#", "data:")), link
    assert not re.search(r"url\((?!#|data:)", text)
    assert "@import" not in text
    kinds = {given.get("type") for tag, given in page.tags if tag == "script"}
    assert kinds == {None, "application/json"}


def test_only_its_own_script_may_run(demo):
    text, page = demo
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(given["content"] for tag, given in page.tags if given.get("http-equiv"))
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_ids_are_unique_and_pointers_lead_somewhere(demo):
    text, page = demo
    assert len(page.ids) == len(set(page.ids))
    pointers = re.findall(r"url\(#([^)]+)\)", text) + [link[1:] for link in page.links if link.startswith("#")]
    assert set(pointers) <= set(page.ids)


def test_pictures_follow_light_and_dark(demo):
    text, _ = demo
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) >= 5
    for picture in pictures:
        assert "var(--ink)" in picture
        assert "<style" not in picture
        assert "#0072b2" not in picture.lower()
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_tables_hold_all_rows(demo, consensus):
    _, page = demo
    board, items, annotators = page.data[:3]
    assert [row[1] for row in board["rows"]] == consensus.order()
    assert [row[1] for row in items["rows"]] == consensus.order()
    assert [row[0] for row in items["rows"]] == list(range(1, 13))
    assert annotators["rows"][0][:2] == ["olga", "drop"]
    assert len(annotators["rows"]) == 30


def test_everything_from_the_data_is_escaped():
    text, page = report(
        preferences(HOSTILE, HOSTILE, 900, queries=HOSTILE[:3]), title="<b>Title</b>", command="<i>x</i>"
    )
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "<b>Title" not in text
    assert "onerror=alert(2)&gt;" in text
    assert {tag for tag, _ in page.tags} <= set(ELEMENTS.split())
    names = {row[2] for row in page.data[0]["rows"]}
    assert "<script>alert(1)</script>" in names
    assert max(len(name) for name in names) <= 120
    assert all(link.startswith(("#", "data:")) for link in page.links)


def test_links_are_only_to_the_web():
    _, page = report(preferences(HOSTILE, ["a", "b"], 300))
    links = [row[2] for row in page.data[0]["rows"]]
    assert {link for link in links if link} == {"https://example.org/?a=<b>&c='d'"}


def test_items_have_their_text_and_links(votes, consensus, tmp_path):
    about = pl.DataFrame({"item": ["juniper", "birch-1"], "text": ["A <b>small</b> model", None],
                          "url": ["https://example.org/juniper", "javascript:alert(1)"]})  # fmt: skip
    about.write_csv(tmp_path / "items.csv")
    page = Page(cr.report.render(consensus, votes, items=tmp_path / "items.csv", actions=None))
    row = next(row for row in page.data[1]["rows"] if row[1] == "juniper")
    assert row[2:4] == ["A <b>small</b> model", "https://example.org/juniper"]
    assert all(row[3] is None for row in page.data[1]["rows"] if row[1] != "juniper")


CASES = {
    "tied": lambda: cr.Grades.from_rows([(a, "q", i, 2) for a in "abc" for i in "wxyz"]),
    "tied preferences": lambda: cr.Preferences.from_rows([(a, "q", "x", "y", "tie") for a in "abc"]),
    "one annotator": lambda: grades([f"i{k}" for k in range(9)], ["ann"]),
    "one item": lambda: cr.Grades.from_rows([("a", "q", "x", 1), ("b", "q", "x", 2)]),
    "one row": lambda: cr.Grades.from_rows([("a", "q", "x", 1)]),
    "one preference": lambda: cr.Preferences.from_rows([("a", "q", "x", "y", "left")]),
    "nobody": lambda: cr.Grades.from_frame({"item": ["x", "y", "x"], "grade": [1, 2, 3]}),
    "nobody's preferences": lambda: cr.Preferences.from_frame({"left": ["x"], "right": ["y"], "winner": ["x"]}),
    "rankings": lambda: cr.Rankings.from_rows([(a, "q", i, k + 1) for a in "abc" for k, i in enumerate("wxyz")]),
    "single items": lambda: cr.Grades.from_rows([(a, f"q{k}", "x", k % 3) for a in "ab" for k in range(5)]),
    "one moment": lambda: cr.Grades.from_frame(
        {"item": ["x", "y"], "annotator": ["a", "b"], "grade": [1, 2], "time": [1, 1]}
    ),
    "classes": lambda: grades([f"i{k}" for k in range(9)], list("abc"), words=HOSTILE[:4], nominal=True),
    "many queries": lambda: preferences(list("wxyz"), list("abc"), 400, queries=[f"q{k}" for k in range(60)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_report_is_made_of_anything(name):
    _, page = report(CASES[name]())
    assert len(page.headings) >= 4
    assert page.data


def test_class_methods_show_what_is_mixed_up():
    text, _ = report(grades([f"i{k}" for k in range(24)], list("abcdef")), method="dawid_skene")
    assert "grade of the consensus" in text


def test_ten_thousand_items_fit(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"an item with a name of usual length, number {k}" for k in range(10_000)]
    rows = {
        "item": np.repeat(names, 3),
        "annotator": np.tile(["a", "b", "c"], 10_000),
        "grade": rng.normal(size=30_000),
    }
    judged = cr.Grades.from_frame(rows)
    cr.report.write(cr.aggregate(judged, "mean_grade"), judged, tmp_path / "r.html", actions=None)
    assert (tmp_path / "r.html").stat().st_size < 3_000_000
    page = Page((tmp_path / "r.html").read_text())
    assert len(page.data[0]["rows"]) == 10_000


def test_tables_stop_where_there_is_no_room():
    frame = pl.DataFrame({"item": ["x" * 100] * 500, "score": np.arange(500.0)})
    table = Table.of("t", "T", frame, (Column("item", "item"), Column("score", "score", 1)), 10_000)
    assert 50 < len(table.rows) < 100
    assert table.n_left_out == 500 - len(table.rows)
    assert len(table.first) == PAGE
    assert table.first[1] == ["x" * 100, "1.0"]


def test_files_that_cannot_be_written_are_told(consensus, votes, tmp_path):
    with pytest.raises(ParameterError, match="its folder does not exist; make the folder first"):
        cr.report.write(consensus, votes, tmp_path / "no" / "r.html")
    with pytest.raises(ParameterError, match="is a folder; give the name of a file in it"):
        cr.report.write(consensus, votes, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_written_to(consensus, votes, tmp_path, monkeypatch):
    # root may write anywhere, so that the answer of the system is made up
    monkeypatch.setattr(os, "access", lambda *arguments, **settings: False)
    with pytest.raises(ParameterError, match="may not be written; choose another folder or change its permissions"):
        cr.report.write(consensus, votes, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_former_report(consensus, votes, tmp_path, monkeypatch):
    target = tmp_path / "r.html"
    target.write_text("the former one")

    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return False

        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    opened = Path.open

    def full(self, mode="r", *arguments, **settings):
        return Full() if self.name.endswith(".part") else opened(self, mode, *arguments, **settings)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(ParameterError, match="the disk is full; nothing was left behind"):
        cr.report.write(consensus, votes, target, actions=None)
    monkeypatch.undo()
    assert target.read_text() == "the former one"
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_the_same_data_gives_the_same_page(consensus, votes, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1750000000")
    pages = {cr.report.render(consensus, votes, actions=None) for _ in range(2)}
    assert len(pages) == 1
    assert "2025-06-15 15:06 UTC" in entities.unescape(pages.pop())


def test_the_comparison_is_a_section(votes, consensus):
    comparison = cr.compare_methods(votes, ["borda", "elo"])
    page = Page(cr.report.render(consensus, votes, actions=None, comparison=comparison))
    assert any(row[0] == "borda" for table in page.data for row in table["rows"])
    assert "methods" in page.ids
