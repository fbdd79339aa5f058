"""Nothing of ours outlives us, and we do not outlive a signal for long."""

import signal
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.soak.ends import measure

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_killed_aggregator_leaves_no_server_behind(tmp_path: Path) -> None:
    """Some of them ignore the end of input and SIGTERM, some fork, some leave the group."""
    ending = await measure(tmp_path, signal.SIGKILL, 8)

    assert ending.processes == 12
    assert ending.left == ()


async def test_a_signal_ends_it_in_time_although_calls_and_servers_hang(tmp_path: Path) -> None:
    ending = await measure(tmp_path, signal.SIGTERM, 8)

    assert ending.status == 0
    assert ending.left == ()
    assert ending.exited <= PATIENCE
