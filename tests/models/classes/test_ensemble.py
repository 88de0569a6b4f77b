"""The mean of Dawid-Skene and MACE: equal to it, right where one of the two is, and known by its parts."""

from dataclasses import replace

import numpy as np
import pytest
from tests.models.classes.test_calibration import crowd

import crowdrank as cr
from crowdrank.io.results import from_json, to_json
from crowdrank.models.classes.dawid_skene import DawidSkene
from crowdrank.models.classes.ensemble import Ensemble
from crowdrank.models.classes.mace import MACE

OWN = Ensemble(calibrated=False)


def near_misses(seed=0, n_items=200, n_annotators=30, per_item=5, n_levels=5):
    """Grades of ordered levels by annotators who miss by one more often than by three."""
    rng = np.random.default_rng(seed)
    truth, spread = rng.integers(0, n_levels, n_items), rng.uniform(0.3, 1.2, n_annotators)
    rows = [
        (f"a{who:02d}", "q", f"i{item:03d}", int(np.clip(round(rng.normal(level, spread[who])), 0, n_levels - 1)))
        for item, level in enumerate(truth)
        for who in rng.choice(n_annotators, per_item, replace=False)
    ]
    return cr.Grades.from_rows(rows), truth


def members(ordinal):
    return DawidSkene(ordinal=ordinal, calibrated=False), MACE(n_restarts=4, tol=1e-5, calibrated=False)


@pytest.mark.parametrize("nominal", [True, False])
def test_probabilities_are_the_mean_of_the_methods(nominal):
    grades = cr.Grades.from_rows(crowd(n_items=60)[0], nominal=True) if nominal else near_misses(n_items=60)[0]
    found = OWN.fit(grades)
    first, second = (member.fit(grades) for member in members(not nominal))
    np.testing.assert_allclose(found.probabilities, (first.probabilities + second.probabilities) / 2, atol=1e-9)
    confusion = (first.quality.parameters["confusion"] + second.quality.parameters["confusion"]) / 2
    np.testing.assert_allclose(found.quality.parameters["confusion"], confusion, atol=1e-9)
    np.testing.assert_allclose(
        found.quality.parameters["spam_probability"], second.quality.parameters["spam_probability"]
    )


def test_the_trace_has_the_parts_and_is_written_with_them():
    found = OWN.fit(near_misses(n_items=60)[0])
    parts = found.trace.parts
    assert sorted(parts) == ["dawid_skene", "mace"]
    assert found.trace.n_iter == sum(part.n_iter for part in parts.values())
    assert found.trace.converged == all(part.converged for part in parts.values())
    again = from_json(to_json(found))
    assert again.trace == found.trace


def test_levels_come_back_where_annotators_err_evenly_and_where_they_miss_by_one():
    rows, truth = crowd(n_items=300, per_item=5, right=0.75)
    classes = Ensemble().fit(cr.Grades.from_rows(rows, nominal=True))
    code = np.array([int(item[1:]) for item in classes.items.ids])
    assert (classes.grade == truth[code]).mean() > 0.9
    grades, truth = near_misses()
    levels = Ensemble().fit(grades)
    code = np.array([int(item[1:]) for item in levels.items.ids])
    right = (levels.grade == truth[code]).mean()
    single = [(member.fit(grades).grade == truth[code]).mean() for member in members(True)]
    assert right > min(single)
    assert right > max(single) - 0.05


def test_a_former_consensus_of_itself_or_of_one_of_its_methods_is_gone_on_from():
    grades, _ = near_misses(n_items=80)
    found = OWN.fit(grades)
    again = OWN.fit(grades, start=found)
    np.testing.assert_allclose(again.probabilities, found.probabilities, atol=0.05)
    from_one = OWN.fit(grades, start=DawidSkene(calibrated=False).fit(grades))
    assert (from_one.grade == found.grade).mean() > 0.95


def test_free_matrices_where_asked_for():
    grades, _ = near_misses(n_items=60)
    found = replace(OWN, ordinal=False).fit(grades)
    first, second = (member.fit(grades) for member in members(False))
    np.testing.assert_allclose(found.probabilities, (first.probabilities + second.probabilities) / 2, atol=1e-9)
