"""A server that says the same thing ten thousand times costs neither memory nor the others."""

from pathlib import Path

import pytest

from tests.soak.storms import STORMS, measure

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MEBIBYTE = 1 << 20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("kind", STORMS)
async def test_a_storm_does_not_fill_the_memory(tmp_path: Path, kind: str) -> None:
    storm = await measure(tmp_path, kind, 10_000)

    assert storm.answer.startswith("after the")
    assert storm.growth <= 16 * MEBIBYTE
