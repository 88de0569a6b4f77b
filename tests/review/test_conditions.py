"""Conditions that pipelines fail on: what they mean, and what is said of those that cannot be read."""

from pathlib import Path

import pytest

import crowdrank as cr
from crowdrank.demo import FILE
from crowdrank.errors import ParameterError, UnknownNameError
from crowdrank.review.conditions import QUANTITIES, check, parse_condition
from crowdrank.review.findings import facts_of


@pytest.fixture(scope="module")
def facts():
    votes = cr.read_judgments(FILE).across_queries()
    return facts_of(cr.aggregate(votes, "bradley_terry"), votes)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("quality<0.6", True),
        ("quality < .05", False),
        ("mean_quality<0.6", False),
        ("n_guessing==3", True),
        ("n_guessing=3", True),
        ("n_reversed!=1", False),
        ("share_suspects>10%", True),
        ("n_items>=12 and n_annotators<=30", True),
        ("n_items>12 and quality<0.6", False),
        ("n_items>12 or quality<0.6", True),
        ("n_items>12 and quality<0.6 or converged>0", True),
        ("agreement<1e-1", False),
        ("alpha<-0.5", False),
        ("winner_probability<0.95", True),
        ("separated<0.5", True),
        ("judgments_per_item<270", False),
        ("judgments_per_item<=270", True),
        ("n_unjudged>0", False),
    ],
)
def test_conditions(facts, text, holds):
    assert bool(check(parse_condition(text), facts)) is holds


def test_what_holds_is_told_with_ids(facts):
    assert check(parse_condition("quality<0.6"), facts).startswith("quality<0.6 holds of 4 of 30: olga 0.1111, ")
    assert check(parse_condition("n_items>3"), facts) == "n_items is 12 (n_items>3)"


NO_CONDITIONS = [
    "", "quality", "quality<", "quality<<1", "<0.6", "quality<0.6 and", "quality<nan", "__import__('os')",
    "quality<0.6; rm", "quality<0.6 xor alpha<1", "(quality<1)",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_CONDITIONS)
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(ParameterError, match=r"is not a comparison; write for example quality<0\.6"):
        parse_condition(text)


def test_misspelt_quantities_get_the_nearest():
    with pytest.raises(UnknownNameError, match=r"there is no quantity 'qualty'.*; did you mean 'quality'"):
        parse_condition("qualty<0.6")
    with pytest.raises(UnknownNameError, match="known: quality, mean_quality"):
        parse_condition("zzz<0.6")


def test_a_quantity_that_is_not_known_is_an_error_and_not_a_pass():
    votes = cr.Grades.from_frame({"item": ["x", "y", "x"], "grade": [1, 2, 3]})
    facts = facts_of(cr.aggregate(votes), votes)
    for text in ("quality<0.6", "confidence<0.5", "n_guessing>0"):
        with pytest.raises(ParameterError, match="is not known here"):
            check(parse_condition(text), facts)


def test_every_quantity_can_be_read(facts):
    for name, read in QUANTITIES.items():
        found = read(facts)
        assert (found is None) == (name == "confidence"), name


def test_every_quantity_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
    for name in QUANTITIES:
        assert f"`{name}`" in page, name
