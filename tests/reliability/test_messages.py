"""The whole aggregator, which writes out again what it reads, stays within the same memory."""

from pathlib import Path

import pytest

from tests.soak.messages import ALLOWED, MEBIBYTE, measure

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("kind", "mebibytes", "outcome"),
    [("hugeline", 16, "passed"), ("hugewide", 8, "passed"), ("hugekeys", 4, "refused")],
)
async def test_one_message_costs_no_more_than_four_and_a_little(
    tmp_path: Path, kind: str, mebibytes: int, outcome: str
) -> None:
    """One wide character used to make the text of the whole message wide, twice."""
    growth = await measure(tmp_path, kind, mebibytes * MEBIBYTE)

    assert growth.growth <= ALLOWED
    assert growth.outcome == outcome
    assert growth.survived
