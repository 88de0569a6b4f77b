"""What tests of fits over parts share: one local cluster."""

import pytest

from crowdrank.cluster.dask_executor import dask_client


@pytest.fixture(scope="session")
def client():
    with dask_client("local:2") as found:
        yield found
