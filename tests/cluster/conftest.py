"""What tests of fits over parts share: one local cluster."""

import pytest

from crowdrank.cluster.dask_executor import dask_client


# not for the whole session: an idle cluster takes a fifteenth of a core
@pytest.fixture(scope="package")
def client():
    with dask_client("local:2") as found:
        yield found
