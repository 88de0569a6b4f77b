"""Quick runs of studies, each made once."""

import pytest

from crowdrank.studies import STUDIES, run_study


@pytest.fixture(scope="session")
def quick(request, tmp_path_factory):
    """Runs a study quickly, again where it is asked for; a study without its data is skipped."""
    out = tmp_path_factory.mktemp("studies")

    def run(name):
        folder = request.getfixturevalue("data_folder") if STUDIES[name].data else None
        return run_study(name, "quick", out=out, folder=folder)

    return run


@pytest.fixture(scope="session")
def ran(quick):
    """The first quick run of a study."""
    done = {}

    def first(name):
        if name not in done:
            done[name] = quick(name)
        return done[name]

    return first
