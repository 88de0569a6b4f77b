"""What tests of fits over parts share: one local cluster."""

import pytest

from crowdrank.cluster.dask_executor import connected


@pytest.fixture(scope="session")
def client():
    with connected("local:2") as found:
        yield found
