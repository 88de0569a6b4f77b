"""Features of web pages from source and from the screen, and what untrusted pages cannot do."""

import math
import re
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.features.drawn_pages import write_pages

import crowdrank as cr
from crowdrank.cli import main
from crowdrank.errors import DataWarning, JudgmentError, MissingExtraError, ParameterError
from crowdrank.features import page_features, page_rendering
from crowdrank.features.page_features import EIGHT
from crowdrank.features.page_rendering import Rendered, render_pages
from crowdrank.features.page_source import colour_in, declarations_of, pixels, rules_of
from crowdrank.features.raw_items import RawItem

pytestmark = pytest.mark.slow

pytest.importorskip("selectolax")

SHEET = """
/* p { font-size: 90px } */
p, li { font-size: 12px } .box { background: #ABC } .hidden { display: none }
@media print { p { font-size: 40px } } @media screen { h1 { font-family: "Arial", serif; font-size: 20pt } }
.unused { background: green } body { background-color: white; font-family: Georgia }
"""
PAGE = """<!doctype html><html><head><link rel="stylesheet" href="/style.css"><title>No text</title></head><body>
<h1>Head</h1>
<p>One <a href="x.html">two</a> and <a>three</a></p>
<p class="hidden">unseen <img src="no.png"></p>
<div class="box">four<table><tr><td>five</td></tr></table></div>
<img src="picture.png" width="30" height="30"><svg width="20" height="20"></svg>
<script>var text = "no";</script>
</body></html>"""
# texts: Head, One, two, and, three, four, five; fonts: arial 27 px, georgia 12 and 16 px


@pytest.fixture
def site(tmp_path):
    """A folder with one site of one page."""
    folder = tmp_path / "sites" / "first"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "style.css").write_text(SHEET)
    return folder


def named(made):
    return dict(zip(made.names, made.matrix[0].tolist(), strict=True))


def needs_browser():
    problem = page_rendering.rendering_problem()
    if problem is not None:
        pytest.skip(problem)


def test_columns_from_source(site):
    made = cr.features.pages(site.parent, screen="no")
    assert made.items.ids.to_list() == ["first/index.html"]
    found = named(made)
    assert tuple(found) == EIGHT
    counts = {"texts": 7, "links": 1, "fonts": 3, "tables": 1, "colours": 2, "images": 2}
    for name, count in counts.items():
        assert found[name] == pytest.approx(math.log1p(count)), name
    sizes = 4 * 20 * 4 / 3 + (3 + 3 + 3 + 5) * 12 + (4 + 4) * 16
    assert found["font_size"] == pytest.approx(sizes / 26)
    assert found["aspect"] == 0.75


def test_columns_from_the_screen_agree(site):
    needs_browser()
    source, screen = (cr.features.pages(site.parent, screen=mode) for mode in ("no", "yes"))
    assert screen.names == (*EIGHT, "edge_share", "screen_colours")
    found, wanted = named(screen), named(source)
    for name in EIGHT:
        assert found[name] == pytest.approx(wanted[name], rel=0.01), name
    assert 0 < found["edge_share"] < 0.1
    assert cr.features.pages(site.parent, screen="yes").matrix.tobytes() == screen.matrix.tobytes()


def test_first_screen_is_counted_apart(site):
    needs_browser()
    (site / "index.html").write_text(PAGE.replace("<table>", '<table style="margin-top: 2000px">'))
    found = named(cr.features.pages(site.parent, screen="yes", first=True))
    assert found["texts"] - found["first_texts"] == pytest.approx(math.log1p(7) - math.log1p(6))
    assert found["first_tables"] == 0
    assert found["aspect"] > 2
    with pytest.raises(ParameterError, match="first screen"):
        cr.features.pages(site.parent, screen="no", first=True)


def test_pages_without_text_are_filled(tmp_path, site):
    (site / "empty.html").write_text("")
    with pytest.warns(DataWarning, match="missing in font_size: 1 value of 1 item"):
        made = cr.features.pages(site.parent, screen="no")
    assert made.matrix[0, 3] == made.matrix[1, 3]
    np.testing.assert_allclose(cr.features.pages(site.parent, screen="no", fill=None).matrix[0, 3], np.nan)


@pytest.mark.parametrize(
    "source",
    [b"", bytes(range(256)) * 40, b"<p>a<table><tr><td><p>b<b>c", b"<" * 5000, b"<div>" * 3000 + b"x", b"\xff\xfe<p>x"],
)
def test_broken_sources_do_not_raise(site, source):
    (site / "index.html").write_bytes(source)
    found = cr.features.pages(site.parent, screen="no", fill=None).matrix[0]
    assert np.isfinite(np.delete(found, 3)).all()


def test_large_pages_are_refused(site):
    (site / "index.html").write_text("<i>a</i>" * 50_001)
    with pytest.raises(JudgmentError, match=r"index.html \(more than 50,000 elements"):
        cr.features.pages(site.parent, screen="no")


def test_style_sheets_outside_of_the_folder_are_not_read(tmp_path, site):
    (tmp_path / "secret.css").write_text("p { font-size: 50px }")
    for address in ("../../secret.css", "../../../../../../etc/passwd", "file:///etc/passwd", "http://a.example/x.css"):
        (site / "index.html").write_text(f'<link rel="stylesheet" href="{address}"><p>text</p>')
        assert named(cr.features.pages(site.parent, screen="no"))["font_size"] == 16
    (site / "style.css").unlink()
    (site / "style.css").symlink_to(tmp_path / "secret.css")
    (site / "index.html").write_text('<link rel="stylesheet" href="style.css"><p>text</p>')
    assert named(cr.features.pages(site.parent, screen="no"))["font_size"] == 16
    (site / "linked.html").symlink_to("/etc/hostname")
    with pytest.raises(JudgmentError, match="link to a file outside"):
        cr.features.pages(site.parent, screen="no")


def test_style_sheets_that_are_missing_are_counted_and_said(site, tmp_path, capsys):
    links = ("style.css", "http://cdn.example/a.css", "gone.css", "data:text/css,p{color:red}")
    lacking = "".join(f"<link rel='stylesheet' href='{link}'>" for link in links)
    (site / "other.html").write_text(f"{lacking}<link rel='icon' href='no.ico'><p>a</p>")
    made = cr.features.pages(site.parent, screen="no")
    assert dict(made.details.select("item", "missing_css").iter_rows()) == {
        "first/index.html": 0,
        "first/other.html": 2,
    }
    assert made.details["unstable"].to_list() == [None, None], "only a browser knows"
    out, kept = str(tmp_path / "f.csv"), str(tmp_path / "kept.csv")
    command = ["features", str(site.parent), "--of", "page", "--screen", "no", "-o", out, "--details", kept]
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "1 of 2 pages link to style sheets that are not in their folder" in said
    assert "first/other.html" in said
    assert pl.read_csv(kept)["missing_css"].to_list() == [0, 2]
    assert "missing_css" not in pl.read_csv(out).columns
    assert main(["features", str(site.parent), "--of", "text", "--details", kept]) == 2


def test_the_cache_knows_style_sheets(site, tmp_path):
    cache = tmp_path / "cache"
    before = cr.features.pages(site.parent, screen="no", cache=cache).matrix
    assert cr.features.pages(site.parent, screen="no", cache=cache).matrix.tobytes() == before.tobytes()
    (site / "style.css").write_text(SHEET.replace("12px", "30px"))
    assert cr.features.pages(site.parent, screen="no", cache=cache).matrix[0, 3] > before[0, 3]


def test_rules_of_style_sheets():
    assert [rule.selector for rule in rules_of(SHEET)] == ["p", "li", ".box", ".hidden", "h1", ".unused", "body"]
    assert declarations_of("background:url(data:a;b);font-size:2em")["font-size"] == "2em"
    assert pixels("150%", 10.0) == 15
    assert colour_in("url('red.png') #123") == "#112233"
    texts = ["{", "}", "/*", "a{", "@media x{", ","]
    for hostile in (f"{text * (100_000 // len(text))}{{font:x}}" for text in texts):
        start = time.process_time()
        list(rules_of(hostile))
        assert time.process_time() - start < 5


def test_what_untrusted_pages_cannot_do(site, monkeypatch):
    needs_browser()
    monkeypatch.setattr(page_rendering, "DEADLINE", 6.0)
    pages = {
        "evil": "<p>a</p><script>window.getComputedStyle = () => { throw 1 }; Array.prototype.some = () => false;"
        "alert(1); confirm(2); window.open('/index.html'); new WebSocket('ws://127.0.0.1:9/');"
        "fetch('http://127.0.0.1:9/').then(() => document.write('<p>leak</p>'), () => 0);</script>"
        "<iframe src='file:///etc/passwd'></iframe><img src='http://192.0.2.1/x.png' width='9' height='9'>",
        "leaves": "<meta http-equiv='refresh' content='0;url=http://a.example/'><p>a</p>",
        "loops": "<p>one</p><p>two</p><script>while (true) {}</script>",
        "grows": "<p>a</p><script>setInterval(() => document.body.append(document.createElement('hr')), 40)</script>"
        "<style>hr { height: 900px }</style>",
    }
    for name, source in pages.items():
        (site / f"{name}.html").write_text(source)
    raws = [RawItem(name, path=site / f"{name}.html", root=site.parent) for name in pages]
    start = time.monotonic()
    evil, leaves, loops, grows = render_pages(raws)
    assert time.monotonic() - start < 60
    assert isinstance(evil, Rendered)
    assert (evil.numbers["whole_texts"], evil.numbers["first_texts"], evil.numbers["whole_images"]) == (1, 1, 1)
    assert leaves == "it leads to another site"
    assert isinstance(loops, Rendered)  # tried again without its scripts
    assert loops.numbers["whole_texts"] == 2
    assert [evil.unstable, loops.unstable, grows.unstable] == [False, False, True]


def test_the_page_that_was_asked_for_is_measured(site, monkeypatch):
    needs_browser()
    monkeypatch.setattr(page_rendering, "_LEAVE_SECONDS", 1.0)
    pages = {
        "refreshes": "<meta http-equiv='refresh' content='0;url=other.html'>",
        "reloads": "<meta http-equiv='refresh' content='0'>",
        "jumps": "<script>location.replace('/first/other.html')</script>",
        "shows": "<iframe src='other.html'></iframe>",
    }
    (site / "other.html").write_text("<p>another page</p>" * 20)
    for name, head in pages.items():
        (site / f"{name}.html").write_text(f"<html><head>{head}</head><body><p>one</p><p>two</p></body></html>")
    raws = [RawItem(name, path=site / f"{name}.html", root=site.parent) for name in pages]
    found = render_pages(raws)
    assert [each if isinstance(each, str) else each.numbers["whole_texts"] for each in found] == [2, 2, 2, 2]


def test_measures_rank_pages_as_annotators(tmp_path):
    needs_browser()
    pytest.importorskip("skimage")
    clutter = write_pages(tmp_path, [0, 6, 40])
    (tmp_path / "blank").mkdir()
    (tmp_path / "blank" / "index.html").write_text("<html></html>")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "index.html").write_text((tmp_path / "site00" / "index.html").read_text())
    with pytest.warns(DataWarning) as said:
        features, rankings = cr.features.pages_with_measures(tmp_path, subset_size=20)
    messages = " ".join(str(warning.message) for warning in said)
    assert "1 of 5 pages show nothing and are not ranked: blank/index.html" in messages
    assert "1 of 5 pages look like another page" in messages
    assert set(rankings.annotators.ids.to_list()) == {"feature_congestion", "subband_entropy", "segment_measure"}
    consensus = cr.aggregate(rankings, "borda")
    order = [clutter.get(item, clutter["site00/index.html"]) for item in consensus.order("1")]
    assert order == sorted(order)
    assert features.items.queries.ids.to_list() == ["1"]


def test_the_program_on_the_page_about_clutter_runs(tmp_path, monkeypatch, capsys):
    needs_browser()
    pytest.importorskip("skimage")
    text = (Path(__file__).parents[2] / "docs" / "raw-items.md").read_text()
    (program,) = re.findall(r"^```py\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    known = {}
    exec(program.replace("N_PAGES = 20", "N_PAGES = 3").replace("N_PAGES + 4", "N_PAGES + 1"), known)
    scores = cr.rank(known["fit"], known["features"]).sort("score", descending=True)
    boxes = [known["n_boxes"][item] for item in scores["item"]]
    assert boxes[0] < boxes[-1]
    assert known["ranked"]["item"].to_list() == ["site03/index.html"]
    assert "site03/index.html" in capsys.readouterr().out


def test_pages_are_cut_into_queries_of_some_size(site):
    for number in range(24):
        (site / f"p{number}.html").write_text(f"<p>{number}</p>")
    one, other = (cr.features.pages(site.parent, screen="no", subset_size=10, seed=seed) for seed in (0, 1))
    assert one.items.queries.ids.to_list() == ["1", "2", "3"]
    assert np.diff(one.items.offsets).tolist() == [9, 8, 8]
    assert one.items.frame().rows() != other.items.frame().rows()
    with pytest.raises(ParameterError, match="at least 2"):
        cr.features.pages(site.parent, screen="no", subset_size=1)


def test_without_a_browser(site, monkeypatch):
    from crowdrank.io.notices import listen

    monkeypatch.setattr(page_rendering, "rendering_problem", lambda: "there is no Chromium; install crowdrank[pages]")
    with pytest.raises(MissingExtraError, match="Chromium"):
        cr.features.pages(site.parent, screen="yes")
    heard = []
    listen(heard.append)
    try:
        made = cr.features.pages(site.parent)
    finally:
        listen(None)
    assert made.extractor.params["mode"] == "source"
    assert heard == ["columns are counted in the source: there is no Chromium; install crowdrank[pages]"]
    with pytest.raises(ParameterError, match="on the screen"):
        cr.features.pages_with_measures(site.parent, screen="no")


@pytest.mark.parametrize(
    ("said", "remedy"), [("No usable sandbox!", "allow user namespaces"), ("no such display", "CROWDRANK_BROWSER")]
)
def test_a_browser_that_does_not_start(site, monkeypatch, tmp_path, capsys, said, remedy):
    needs_browser()
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    browser.chmod(0o755)
    monkeypatch.setattr(page_rendering, "browser_path", lambda: str(browser))
    monkeypatch.setattr(page_rendering, "_is_root", lambda: False)
    assert main(["features", str(site), "--of", "page", "--screen", "yes", "--quiet"]) == 2
    assert re.fullmatch(rf"crowdrank: the browser .*{remedy}.* --screen no\n", capsys.readouterr().err)


def test_without_the_parser(site, monkeypatch):
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)
    with pytest.raises(MissingExtraError, match=r"crowdrank\[pages\]"):
        cr.features.pages(site.parent, screen="no")


def test_versions_and_kinds(site):
    assert page_features.VERSION == 1
    with pytest.raises(ParameterError, match="screen='maybe'"):
        cr.features.pages(site.parent, screen="maybe")


def test_elements_within_each_other_do_not_keep_the_parser_busy(site):
    (site / "deep.html").write_text("<div>" * 100_000)
    begin = time.process_time()
    with pytest.raises(JudgmentError, match=r"deep.html \(more than 5,000 elements within each other\)"):
        cr.features.pages(site, screen="no")
    assert time.process_time() - begin < 5
    # what the next of its kind closes is not within it
    (site / "deep.html").write_text("<ul>" + "<li><p>x" * 6_000 + "</ul>")
    assert cr.features.pages(site, screen="no").matrix.shape[1] == 8
