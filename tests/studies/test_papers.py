"""The catalogue of the papers: every row has a symbol, every symbol is there, every claim stands under a paper."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from crowdrank.errors import UnknownNameError
from crowdrank_studies import STUDIES
from crowdrank_studies.papers import KINDS, PAPERS, TOLD_BY_CLAIMS, find_symbol, paper

DOCS = Path(__file__).parents[2] / "docs"


def rows():
    return [(name, entry) for name, one in PAPERS.items() for entry in one.entries]


@pytest.mark.parametrize(("name", "entry"), rows(), ids=lambda one: getattr(one, "name", one))
def test_every_row_has_a_symbol_that_is_there_or_is_said_to_be_missing(name, entry):
    missing = entry.changed.startswith("Missing.")
    assert bool(entry.where) != missing, (
        f"{entry.name} of {name}: say where it is in the package, or that it is missing"
    )
    for symbol in entry.where:
        assert find_symbol(symbol) is not None
    assert entry.printed
    assert entry.changed or entry.kind in TOLD_BY_CLAIMS


def test_a_row_without_a_symbol_or_with_an_unknown_one_fails():
    entry = PAPERS["niu"].entries[0]
    assert not replace(entry, where=()).where
    for symbol in ("aggregator:no-such", "crowdrank.metrics:no_such", "study:no-such", "data:no-such"):
        with pytest.raises(LookupError):
            find_symbol(symbol)


def test_every_paper_has_every_kind_it_needs_and_every_study_a_paper():
    for one in PAPERS.values():
        assert {"metric", "data set", "figure"} <= {entry.kind for entry in one.entries} <= set(KINDS)
        assert one.errata
        assert all(erratum.derivation for erratum in one.errata)
    assert set(STUDIES) == {name for one in PAPERS.values() for name in one.studies}


def test_papers_are_found_by_author_and_key():
    assert paper("Niu").reference == paper("niu15").reference == "Niu15"
    with pytest.raises(UnknownNameError, match="did you mean 'gupta'"):
        paper("guppta")


def test_the_page_is_made_from_the_catalogue_and_the_studies():
    spec = importlib.util.spec_from_file_location("make_papers", DOCS / "make_papers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "papers.md").read_text() == module.papers_page(), "run python docs/make.py"


def test_the_command_lists_a_papers_methods(capsys):
    from typer.testing import CliRunner

    from crowdrank.cli.app import app

    told = CliRunner().invoke(app, ["methods", "--paper", "niu", "--format", "csv"])
    assert told.exit_code == 0
    assert "crowdagg-paper" in told.stdout
    assert "Eq. 6 is printed with its cases exchanged" in told.stdout
