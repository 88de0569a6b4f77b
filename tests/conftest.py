"""What all tests share: where the public data sets are, and small judgments with known truth."""

import os
from pathlib import Path

# where several processes share the cores, threads of linear algebra would only wait for each other; read at import
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, settings

from crowdrank.data.judgments import Grades, Preferences, Rankings

# a kernel compiled during an example must not count as a slow example; CI tries the same examples each time, so that a
# failure can be repeated, while every other run looks for new ones, and for more of them
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=15 if "CI" in os.environ else 25,
    derandomize="CI" in os.environ,
)  # fmt: skip
settings.register_profile("brief", parent=settings.get_profile("house"), max_examples=5)
settings.load_profile("house")


@pytest.fixture(scope="session")
def data_folder():
    """Folder of the public data sets; tests that need it are skipped where there is none."""
    folder = os.environ.get("CROWDRANK_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the public data sets are not here; set CROWDRANK_DATA to their folder")
    return Path(folder)


@pytest.fixture(scope="session")
def small():
    """One small table of each kind over two queries, five items and four annotators, without warnings when fitted."""
    rng = np.random.default_rng(15)
    strength = {"a": 2.0, "b": 1.0, "c": 0.0, "d": -1.0, "e": -2.0}
    grades, preferences, rankings = [], [], []
    for query in ("q1", "q2"):
        for annotator in ("ann", "bob", "cid", "dan"):
            seen = {item: value + rng.normal(0, 1.2) for item, value in strength.items()}
            grades += [(annotator, query, item, int(np.clip(round(value + 2), 0, 4))) for item, value in seen.items()]
            order = sorted(seen, key=lambda item: -seen[item])
            rankings += [(annotator, query, item, place + 1) for place, item in enumerate(order)]
            for left in strength:
                for right in strength:
                    if left < right:
                        won = rng.random() < 1 / (1 + np.exp(strength[right] - strength[left]))
                        preferences.append((annotator, query, left, right, "left" if won else "right"))
    return {
        "grade": Grades.from_rows(grades),
        "preference": Preferences.from_rows(preferences),
        "ranking": Rankings.from_rows(rankings),
    }


@pytest.fixture
def no_numbers_missing():
    """A check that a frame holds no NaN."""

    def check(frame: pl.DataFrame) -> None:
        for name, dtype in frame.schema.items():
            if dtype.is_float():
                assert not frame[name].is_nan().any(), name

    return check


def pytest_collection_modifyitems(items):
    """Run slow tests first, so that no process waits for another at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
