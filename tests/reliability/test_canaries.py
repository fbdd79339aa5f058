"""What a server is given in confidence, and what a client sends it, is nowhere else."""

from pathlib import Path

import pytest

from tests.soak.canaries import measure

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_no_secret_is_found_outside(tmp_path: Path) -> None:
    findings = await measure(tmp_path, ["inspect --json"])

    assert findings.planted >= 50
    assert len(findings.places) >= 8
    assert findings.found == ()
