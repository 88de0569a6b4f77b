"""Results show themselves in notebooks, safely, and turn into pandas frames."""

import re
import sys
from html.parser import HTMLParser

import polars as pl
import pytest
from tests.report.crowds import HOSTILE, grades, preferences

import crowdrank as cr
from crowdrank.data.showing import ROWS, html_table
from crowdrank.errors import MissingExtraError

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

ALLOWED = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}


class Page(HTMLParser):
    """Tags, attributes and texts of a piece of HTML; every tag must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], set(), set(), []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= set(attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)


def results():
    votes = preferences(HOSTILE, ["ann", "bob", *HOSTILE[:5]], 400)
    graded = grades(HOSTILE, ["ann", "bob", HOSTILE[0]])
    consensus = cr.aggregate(votes, "bradley_terry")
    classes = cr.aggregate(graded, "dawid_skene")
    ranked = graded.as_rankings()
    return {
        "preferences": votes,
        "grades": graded,
        "rankings": ranked,
        "mixed": cr.Mixed.of([votes, graded]),
        "consensus": consensus,
        "classes": classes,
        "quality": consensus.quality,
        "trace": classes.trace,
        "diagnostics": cr.diagnose(votes, consensus),
        "findings": cr.findings(consensus, votes),
        "actions": cr.actions(consensus, votes),
        "comparison": cr.compare_methods(graded, ["mean_grade", "borda"]),
        "truth": cr.Truth.from_frame({"item": HOSTILE, "grade": list(range(len(HOSTILE)))}),
        "method": cr.methods("crowd_bt"),
    }


@pytest.fixture(scope="module")
def shown():
    return results()


NAMES = [
    "preferences", "grades", "rankings", "mixed", "consensus", "classes", "quality", "trace", "diagnostics", "findings",
    "actions", "comparison", "truth", "method",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_html_holds_tables_only_whatever_the_ids_are(shown, name):
    page = Page(shown[name]._repr_html_())
    assert page.tags <= ALLOWED
    assert page.attributes <= {
        ("class", "crowdrank"), ("class", "dataframe"), ("style", "overflow-x:auto"),
        ("style", "text-align:right;padding:2px 8px"), ("style", "text-align:left;padding:2px 8px"),
    }  # fmt: skip
    assert "table" in page.tags


@pytest.mark.parametrize("name", NAMES)
def test_html_is_short_and_has_no_colours_of_its_own(shown, name):
    text = shown[name]._repr_html_()
    assert not re.search("color|background|#", re.sub(r">[^<]*<", "><", text))
    longest = 40 if name == "findings" else 3 * ROWS if name in ("mixed", "method") else ROWS
    assert text.count("<tr>") - text.count("<thead>") <= longest


def test_html_says_how_many_rows_there_are():
    votes = cr.Grades.from_frame({"item": [f"i{n}" for n in range(2500)], "grade": [n % 5 for n in range(2500)]})
    assert "Grades(2,500 judgments" in votes._repr_html_()
    assert "first 10 of 2,500 rows" in votes._repr_html_()
    assert "first 10 of 2,500 rows" in cr.aggregate(votes, "mean_grade")._repr_html_()
    few = cr.aggregate({"item": [7001, 7002], "grade": [1, 2]}, "mean_grade")._repr_html_()
    assert "first" not in few
    assert ">7001<" in few


def test_rankings_count_the_rows_of_their_table():
    rows = {"annotator": ["a"] * 12 + ["b"] * 12, "item": [*map(str, range(12))] * 2, "rank": [*range(1, 13)] * 2}
    assert "first 10 of 24 rows" in cr.Rankings.from_frame(rows)._repr_html_()


def test_missing_cells_are_empty_and_long_text_is_cut():
    frame = pl.DataFrame({"item": ["x" * 9000, None, "y"], "score": [None, 1 / 3, 12345.0]})
    text = html_table("t", frame, 3)
    assert len(text) < 1500
    assert ">0.3333<" in text
    assert ">12345<" in text
    assert "None" not in text


@pytest.mark.parametrize("name", NAMES)
def test_to_pandas_has_the_rows_and_columns_of_the_frame(shown, name):
    pandas = pytest.importorskip("pandas")
    frame, found = shown[name].frame(), shown[name].to_pandas()
    assert isinstance(found, pandas.DataFrame)
    assert list(found.columns) == frame.columns
    assert len(found) == len(frame)
    for column in frame.columns:
        if frame[column].dtype.is_float():
            wanted = frame[column].fill_null(float("nan")).to_numpy()
            assert found[column].to_numpy() == pytest.approx(wanted, nan_ok=True)
        elif frame[column].dtype == pl.String and not frame[column].null_count():
            assert found[column].tolist() == frame[column].to_list()


@pytest.mark.parametrize("name", NAMES)
def test_length_is_the_number_of_rows(shown, name):
    if name in ("rankings", "mixed"):
        assert len(shown[name]) == shown[name].n_judgments
    else:
        assert len(shown[name]) == len(shown[name].frame())


def test_without_pandas_one_sentence_says_what_to_install(shown, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"to_pandas needs pandas; install it with pip install pandas, or use"):
        shown["consensus"].to_pandas()


def test_quality_is_short_in_a_console(shown):
    assert repr(shown["quality"]) == "Quality(7 annotators)"
