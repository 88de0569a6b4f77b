"""Every method for preferences and rankings on public sets: better than chance, and no worse than was measured."""

import pytest
from benchmarks.real_preferences import SETS, measure

QUICK = {
    "mirex2005-crowd": 0.1,
    "llmbar-judges": 0.55,
    "pandalm-testset/judges": 0.7,
    "preflib/dots": 0.8,
    "preflib/puzzle": 0.8,
    "ukpconvarg1-crowd/pairs": 0.8,
}
"""Set -> what every method reaches, chance being 0 for tau and 0.5 for pairs."""

MEASURED = {
    "mirex2005-crowd": {"bradley_terry": 0.80, "crowd_bt": 0.70, "rank_centrality": 0.78},
    "llmbar-judges": {"em_elo": 0.73, "multinomial_preference": 0.73, "crowd_bt": 0.64},
    "preflib/dots": {"plackett_luce": 1.0, "bradley_terry": 1.0},
    "ukpconvarg1-crowd/pairs": {"crowd_bt": 0.87, "bradley_terry": 0.87},
}
"""Set -> what single methods reach, a little below the table in docs/methods.md."""


@pytest.mark.data
@pytest.mark.parametrize("name", QUICK)
def test_methods_on_public_sets(name, data_folder):
    case = next(case for case in SETS if case.name == name)
    rows = measure(case, peers=False)
    found = {row["method"]: row["value"] for row in rows}
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in rows)
    assert rows[0]["auto"] in found
    least = dict.fromkeys(found, QUICK[name]) | MEASURED.get(name, {})
    short = {method: value for method, value in found.items() if not value >= least[method]}
    assert not short
