"""The two backends every test without timing of its own runs on."""

import pytest
from hypothesis import settings
from trio.testing import MockClock

from tests.peers import ERAS, Era

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def virtual_time() -> tuple[str, dict[str, object]]:
    """The backend on which an hour passes at once, for tests that say when things happen."""
    return "trio", {"clock": MockClock(autojump_threshold=0)}


@pytest.fixture(params=ERAS)
def client_era(request: pytest.FixtureRequest) -> Era:
    """Run a test that names it for clients of each era."""
    return request.param


@pytest.fixture(params=ERAS)
def server_era(request: pytest.FixtureRequest) -> Era:
    """Run a test that names it for servers of each era."""
    return request.param
