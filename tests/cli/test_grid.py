"""Tables fit terminals of any width, and nothing in them is cut that was not meant to be."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from crowdrank.cli.terminal_tables import Grid

TEXTS = ["the mean share of rivals placed below an item", "maximum-likelihood scores of the winners"]


def drawn(grid, width):
    page = Console(file=io.StringIO(), width=width, highlight=False)
    page.print(grid)
    return page.file.getvalue()


def listing(**settings):
    names = ["multinomial_preference", "borda"]
    rows = [[Text(name), Text("aggregator"), Text(text)] for name, text in zip(names, TEXTS, strict=True)]
    return Grid(heads=("method", "family", "summary"), rows=rows, fill=("summary",), **settings)


@pytest.mark.parametrize("width", [30, 40, 50, 60, 72, 80, 120])
def test_no_word_is_lost_and_no_line_is_too_long(width):
    shown = drawn(listing(), width)
    assert max(map(len, shown.splitlines())) <= width
    for word in " ".join(TEXTS).split():
        assert word in shown.split()


def test_a_wide_terminal_has_one_line_for_each_row():
    assert len(drawn(listing(), 120).splitlines()) == 4


def test_columns_that_do_not_fit_beside_their_name_make_lists():
    lines = [line.rstrip() for line in drawn(listing(), 40).splitlines()]
    assert lines[:3] == ["multinomial_preference", "  family: aggregator", "  summary: the mean share of rivals"]


def figures(n):
    heads = ("method", *(f"P@{number}" for number in range(1, n + 1)))
    rows = [[Text(name), *(Text(f"0.{number:03d}") for number in range(n))] for name in ("borda", "elo")]
    return Grid(heads=heads, rows=rows, right=heads[1:], fill=heads)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_columns_of_numbers_go_on_below_with_their_names(width):
    shown = drawn(figures(20), width)
    assert max(map(len, shown.splitlines())) <= width
    assert shown.count("borda") == shown.count("method") > 1
    for number in range(20):
        assert shown.split().count(f"0.{number:03d}") == 2
        assert shown.split().count(f"P@{number + 1}") == 1


def test_only_columns_that_may_be_cut_are_cut():
    rows = [[Text("a-very-long-name-of-an-item"), Text("0.123456")]]
    shown = drawn(Grid(heads=("item", "score"), rows=rows, right=("score",), cut=("item",)), 24)
    assert "0.123456" in shown
    assert "a-very-l" in shown
    assert "an-item" not in shown


def test_a_gap_between_rows_stays():
    rows = [[Text("x")], [], [Text("y")]]
    assert len(drawn(Grid(heads=("item",), rows=rows), 20).splitlines()) == 5
