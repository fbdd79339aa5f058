"""uvicorn runs on asyncio alone, and what is tested here is on real sockets."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
