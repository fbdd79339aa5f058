"""Every test here is run for each pair of eras that it names."""

import pytest

from tests.peers import ERAS, Era


@pytest.fixture(params=ERAS)
def client_era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture(params=ERAS)
def server_era(request: pytest.FixtureRequest) -> Era:
    return request.param
