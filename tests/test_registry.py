"""The registry and the public names."""

import subprocess
import sys

import pytest

import crowdrank as cr
from crowdrank.errors import ParameterError, UnknownNameError
from crowdrank.registry import (
    AGGREGATORS,
    ALIASES,
    FAMILIES,
    PRESETS,
    card,
    families_of,
    label,
    make,
    method_class,
    names,
    resolve,
)


def test_every_name_leads_to_a_class_of_that_name():
    packages = {"aggregator": cr.aggregators, "ranker": cr.rankers, "joint": cr.joint, "scheme": cr.schemes}
    for family, package in packages.items():
        for name, home in FAMILIES[family].items():
            attribute = home.partition(":")[2]
            assert attribute.lower() == name.replace("_", "")
            assert getattr(package, attribute) is method_class(family, name)


def test_aliases_lead_to_known_methods():
    for family, aliases in ALIASES.items():
        for alias, target in aliases.items():
            assert resolve(family, alias) == target
            assert target in FAMILIES[family]


def test_a_name_tells_its_family():
    for family in FAMILIES:
        for name in [*names(family), *ALIASES[family]]:
            assert family in families_of(name)
    with pytest.raises(
        UnknownNameError, match=r"there is no method 'listnit'; did you mean 'list_net'\? known: agreement"
    ):
        families_of("listnit")


def test_an_alias_may_set_parameters():
    for family, presets in PRESETS.items():
        for alias, preset in presets.items():
            made = make(family, alias)
            parts = {key: value for key, value in preset.items() if key in FAMILIES}
            assert all(getattr(made, key) == value for key, value in preset.items() if key not in parts)
            for part, name in parts.items():
                assert isinstance(getattr(made, part), method_class(part, name))
            assert label(family, alias.upper().replace("-", "_")) == alias
    assert make("aggregator", "CrowdAgg-RBP", {"rho": "0.8"}).rho == 0.8
    assert make("aggregator", "crowdagg-rbp", {"measure": "ndcg"}).measure == "ndcg"
    assert make("aggregator", "crowdagg").measure == "ndcg"
    found = card("aggregator", "crowdagg-rbp")
    assert found.name == "crowd_agg"
    shown = [alias + found.settings(alias) for alias in found.aliases]
    assert {"crowdagg", "crowdagg-ndcg (measure=ndcg)", "crowdagg-rbp (measure=rbp)"} < set(shown)
    assert "crowdagg-paper (measure=ndcg, gap=swapped, quality=paper, per_query=True)" in shown


def test_methods_are_compared_by_the_names_of_their_presets(small):
    table = cr.compare(small["grade"], ["crowdagg-ndcg", "CrowdAgg-RBP", "crowdagg-rbp", "mean"])
    assert table["method"].to_list() == ["crowdagg-ndcg", "crowdagg-rbp", "mean_grade"]


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
