"""What users rely on stays as it was written down; see ``freeze.py`` for how to change it on purpose."""

import json
import math
import re
from pathlib import Path

import pytest
from tests.frozen import freeze

from crowdrank.cli import talk
from crowdrank.registry import FAMILIES, names

FOLDER = Path(__file__).parent
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
METHODS = [(family, name) for family in FAMILIES for name in names(family)]


def frozen(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def same(now, then, *, rel):
    """Whether two contents agree, numbers up to rounding; within texts, printed numbers too."""
    if isinstance(then, dict):
        return isinstance(now, dict) and now.keys() == then.keys() and all(same(now[k], then[k], rel=rel) for k in then)
    if isinstance(then, list):
        return len(now) == len(then) and all(same(*both, rel=rel) for both in zip(now, then, strict=True))
    if isinstance(then, str) and isinstance(now, str):
        printed = [list(map(float, NUMBER.findall(text))) for text in (now, then)]
        return NUMBER.sub("#", now) == NUMBER.sub("#", then) and same(*printed, rel=2e-5)
    if isinstance(then, float) and isinstance(now, int | float):
        return math.isclose(now, then, rel_tol=rel, abs_tol=rel)
    return now == then


def test_signatures():
    now, then = freeze.signatures(), frozen("signatures")
    assert {name: now.get(name) for name in then if now.get(name) != then[name]} == {}


@pytest.mark.parametrize("verb", freeze.VERBS)
def test_help(verb, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert freeze.help_text(verb) == (FOLDER / "help" / f"{verb or 'crowdrank'}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("family", "name"), METHODS)
def test_values(family, name):
    """Another processor adds up in another order, and rounds of a fit make that more."""
    then = frozen("values")[family][name]
    for kind, now in freeze.values(family, name).items():
        different = {part for part in then[kind] if not same(now[part], then[kind][part], rel=1e-5)}
        assert not different, (kind, different)


def test_readings_of_samples():
    now, then = freeze.sample_readings(), frozen("readings")
    assert {name: now.get(name) for name in then if now.get(name) != then[name]} == {}


def test_readings_of_public_files(data_folder):
    if not (data_folder / "exports").is_dir():
        pytest.skip("the public files of exports are not here")
    now, then = freeze.public_readings(data_folder), frozen("public_readings")
    assert {name: now.get(name) for name in then if now.get(name) != then[name]} == {}


def test_whole_commands(monkeypatch):
    monkeypatch.setattr(talk, "PATIENCE", 600.0)
    monkeypatch.setenv("COLUMNS", "80")
    now, then = freeze.commands(), frozen("commands")
    different = [name for name in then if not same(now[name], then[name], rel=2e-5)]
    assert different == [], [now[name] for name in different][:1]


def test_nothing_is_frozen_twice():
    """Every verb has one help page, and no page is left over."""
    assert {path.stem for path in (FOLDER / "help").iterdir()} == {verb or "crowdrank" for verb in freeze.VERBS}
