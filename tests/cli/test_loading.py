"""A command loads what it needs and nothing else."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from crowdrank.cli import main

code = main(sys.argv[1:])
print(code, *sorted(sys.modules), file=sys.stderr)
"""

VOTES = {
    "preferences": "annotator,left,right,winner\nann,x,y,left\nbob,y,z,left\nann,x,z,left\ncy,x,y,right\n",
    "grades": "annotator,item,grade\nann,x,2\nbob,x,2\nann,y,0\nbob,y,1\ncy,y,0\n",
    "rankings": "annotator,item,rank\nann,x,1\nann,y,2\nbob,x,1\nbob,y,2\n",
}

SLOW_TO_LOAD = {"scipy.stats", "scipy.optimize", "pandas", "sklearn", "lightgbm", "matplotlib", "torch"}

UNWANTED = {"simulate", "schemes", "studies", "report", "datasets", "demo", "joint", "rankers", "web"}

MOST_MODULES = 140
"""Modules of the package that a plain aggregate may load; 171 before verbs and commands were imported on demand."""


def loaded_by(*words):
    """Modules that a command loads, in a process of its own: those of the package, and all others."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, check=True)
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    own = [name for name in modules if name.split(".")[0] == "crowdrank"]
    return own, set(modules).difference(own)


@pytest.mark.parametrize("kind", VOTES)
def test_a_plain_aggregate_loads_neither_simulation_schemes_studies_nor_report(tmp_path, kind):
    (tmp_path / "votes.csv").write_text(VOTES[kind])
    modules, others = loaded_by("aggregate", str(tmp_path / "votes.csv"))
    assert others.isdisjoint(SLOW_TO_LOAD)
    assert {name.split(".")[1] for name in modules if "." in name} & UNWANTED == set()
    assert len(modules) <= MOST_MODULES
    commands = {"evaluate", "train", "propose", "files", "methods", "study"}
    assert not any(f"crowdrank.cli.{name}" in modules for name in commands)


def test_the_version_loads_no_data_model():
    assert not any(name.startswith("crowdrank.data") for name in loaded_by("--version")[0])


def test_listing_the_methods_loads_none_of_them_nor_what_they_need():
    modules, others = loaded_by("methods")
    assert others.isdisjoint({"numba", "scipy", *SLOW_TO_LOAD})
    assert not any(name.startswith(("crowdrank.models", "crowdrank.rankers", "crowdrank.schemes")) for name in modules)
