"""What the sections of a report say."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.report.displays import HabitDisplay, percents
from crowdrank.report.drawing import CAPTIONS, draw_figure
from crowdrank.review.findings import annotator_habits

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "annotators.md"


def test_what_intervals_do_not_cover_has_the_figures_of_the_page():
    table = PAGE.read_text().split("<!-- sure pairs")[1].split("<!-- end of sure pairs")[0]
    right = [float(line.split("|")[-2]) for line in table.splitlines() if re.match(r"\| \w+.*\d", line) and "%" in line]
    assert len(right) == 10
    assert f"{min(right):.2f}".lstrip("0") + f" to {max(right):.2f}" in CAPTIONS["not-covered"]


@pytest.fixture(scope="module")
def of_judges(tmp_path_factory):
    """The page of judges who like length and the left side, asked in both orders, and the consensus."""
    rng = np.random.default_rng(0)
    rows = []
    for query in range(150):
        one, other = rng.permutation(4)[:2]
        long = rng.uniform(200, 2000, 4)
        for left, right in ((one, other), (other, one)):
            for who, likes, bias in (("ann", 0.0, 0.0), ("bob", 2.0, 1.2), ("cy", 0.25, 0.0)):
                felt = 1.5 * (right - left) + bias + likes * (long[left] - long[right]) / 700 + rng.logistic()
                winner = "left" if felt > 0 else "right"
                rows.append((f"q{query}", f"m{left}", f"m{right}", winner, who, long[left], long[right]))
    names = ["query", "left", "right", "winner", "annotator", "length_left", "length_right"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    votes = cr.Preferences.from_frame(table, covariates=["length"]).across_queries()
    consensus = cr.aggregate(votes, control=["length"])
    path = tmp_path_factory.mktemp("judges") / "report.html"
    cr.report.write(consensus, votes, path)
    return path.read_text(), consensus, votes


def test_a_bias_is_told_in_the_findings_and_in_one_section(of_judges):
    page, consensus, votes = of_judges
    found = cr.findings(consensus, votes)
    assert found.of("leans").ids == ("bob",)
    left = found.of("leans_left")
    assert left is None or "bob" not in left.ids, "the same bias once more"
    assert "position bias: +1 is always left" in found.of("leans").sentence
    words = re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    for kind in ("likes_long", "leans"):
        assert words.count(found.of(kind).sentence[4:40]) == 2, kind
    assert "habit-side" not in page


def test_who_likes_length_is_the_same_in_words_and_picture(of_judges):
    _, consensus, votes = of_judges
    told = set(cr.findings(consensus, votes).of("likes_long").ids)
    display = HabitDisplay(next(habit for habit in annotator_habits(consensus) if habit.covariate == "length"))
    draw_figure(display)
    favours = [line for line in display.ax_.get_lines() if line.get_label() == "favours it"]
    rows = display.table["annotator"].to_list()
    assert {rows[int(place)] for line in favours for place in line.get_ydata()} == told
    assert "twice as long" in display.ax_.get_xlabel()


def test_pictures_are_drawn_once_more_for_telephones(of_judges):
    page = of_judges[0]
    widths = [float(one) for one in re.findall(r'<div class="narrow"><svg[^>]*viewBox="0 0 ([0-9.]+) ', page)]
    assert len(widths) == page.count('<div class="usual">') >= 4
    assert max(widths) < 72 * 3.9 + 1


def test_nothing_is_certain_in_a_matrix_of_probabilities():
    assert percents(np.array([[np.nan, 1.0], [0.0, 0.5]]), of_belief=True) == [["", ">99"], ["<1", "50"]]
