"""Damaged lines from either side are answered or ignored, and harm nobody."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.soak.mutations import Damage, from_client, from_modern_client, from_server

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("side", [from_client, from_modern_client, from_server])
async def test_thousands_of_damaged_lines_harm_nobody(
    tmp_path: Path, side: Callable[[Path, int], Awaitable[Damage]]
) -> None:
    damage = await side(tmp_path, 2_000)

    assert damage.alive
    assert damage.unanswered == 0
    assert damage.trouble == []
