"""Where the public data sets are; tests that need one are skipped where it is not there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from crowdrank import datasets
from crowdrank.datasets.catalog import ENTRIES, FOLDERS, Store


@pytest.fixture(scope="session")
def dataset_folder() -> Path:
    """The folder that holds the public data sets."""
    root = datasets.data_folder()
    if not root.is_dir():
        pytest.skip(f"there is no {root}; CROWDRANK_DATA names the folder of the public data sets")
    return root


@pytest.fixture(scope="session")
def loaded(dataset_folder: Path) -> Callable[[str], datasets.Dataset]:
    """Loads a data set once for all tests, or skips the test."""

    @cache
    def load(name: str) -> datasets.Dataset:
        store = Store(name, ENTRIES[name].folder, dataset_folder)
        for file in FOLDERS[store.folder].files:
            if store.find(file) is None:
                pytest.skip(f"the data set {name} is not in {dataset_folder}")
        return datasets.load(name, dataset_folder)

    return load
