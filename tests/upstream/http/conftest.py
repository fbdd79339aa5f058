"""uvicorn runs on asyncio alone, and what is tested here is on real sockets."""

import pytest

from aggregator.upstream.http.time_limits import HAS_HTTPTOOLS
from tests.loopback.door import Parser


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["h11", "httptools"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read requests by the one parser and by the other, which has to be as careful."""
    is_fast = request.param == "httptools"
    if is_fast and not HAS_HTTPTOOLS:
        pytest.skip("httptools is not installed")
    monkeypatch.setattr(Parser, "is_fast", is_fast)
