"""The registry and the public names."""

import subprocess
import sys

import pytest

import crowdrank as cr
from crowdrank.errors import ParameterError, UnknownNameError
from crowdrank.registry import AGGREGATORS, ALIASES, card, make, method_class, names, resolve


def test_every_name_leads_to_a_class_named_like_its_file():
    for name, home in AGGREGATORS.items():
        module, _, attribute = home.partition(":")
        assert module.rsplit(".", 1)[1] == name
        assert getattr(cr.aggregators, attribute) is method_class("aggregator", name)


def test_aliases_lead_to_known_methods():
    for alias, target in ALIASES["aggregator"].items():
        assert resolve("aggregator", alias) == target
        assert target in AGGREGATORS


def test_unknown_names_list_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"did you mean 'bradley_terry'.*known: borda"):
        resolve("aggregator", "bradly_terry")


def test_text_is_read_as_the_parameters_type():
    assert make("aggregator", "majority_vote", {"bins": "3"}).bins == 3
    for wrong in ("true", "'x'", "2.5", "many"):
        with pytest.raises(ParameterError, match="right type"):
            make("aggregator", "majority_vote", {"bins": wrong})
    with pytest.raises(ParameterError, match="ties='3' is not known"):
        make("aggregator", "majority_vote", {"ties": "3"})


def test_whole_numbers_serve_as_numbers():
    assert make("aggregator", "elo", {"k": 32}).k == 32.0
    assert make("aggregator", "majority_vote", {"bins": "none"}).bins is None


def test_a_seed_goes_to_methods_that_have_one():
    assert make("aggregator", "majority_vote", seed=7).seed == 7
    assert not hasattr(make("aggregator", "borda", seed=7), "seed")


def test_cards_tell_what_a_method_takes():
    found = card("aggregator", "bt")
    assert found.name == "bradley_terry"
    assert found.kinds == ("preference",)
    assert "BradleyTerry52" in found.references
    assert [p.name for p in found.parameters][:2] == ["ties", "ridge"]
    assert names("aggregator") == sorted(AGGREGATORS)


def test_public_names_hold():
    for name in cr.__all__:
        assert getattr(cr, name) is not None
    assert set(cr.__all__) <= set(dir(cr))
    with pytest.raises(AttributeError):
        cr.nothing_of_the_kind  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["numba", "scipy", "sklearn", "matplotlib", "lightgbm", "torch", "polars", "numpy", "typer", "rich"]
    script = f"import sys, crowdrank; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
