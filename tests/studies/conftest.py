"""Quick runs of studies, each computed once, also where several processes run the tests."""

import fcntl
import os

import pytest

from crowdrank_studies import STUDIES, run_study, running


@pytest.fixture(scope="session")
def quick(request, tmp_path_factory):
    """Runs a study quickly, or reads what another process made of it; a study without its data is skipped.

    Figures are drawn by the first run alone.
    """
    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "studies"
    out.mkdir(exist_ok=True)

    def run(name):
        folder = request.getfixturevalue("data_folder") if STUDIES[name].data else None
        with (out / f"{name}.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (out / f"{name}-quick.json").exists():
                patch.setattr(running, "_draw_figures", lambda _, place, stem: sorted(place.glob(f"{stem}-*.??g")))
            return run_study(name, "quick", out=out, folder=folder)

    return run


@pytest.fixture(scope="session")
def ran(quick):
    """The first quick run of a study by this process."""
    done = {}

    def first(name):
        if name not in done:
            done[name] = quick(name)
        return done[name]

    return first
