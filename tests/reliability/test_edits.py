"""Whoever edits the file while it is in use touches only the servers that the edit changes."""

from pathlib import Path

import pytest

from tests.soak.edits import measure

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.usefixtures("census")
async def test_random_edits_under_load_cost_no_call_of_an_unchanged_server(tmp_path: Path) -> None:
    outcome = await measure(tmp_path, 30)

    assert outcome.refused > 0
    assert outcome.calls > 0
    assert outcome.wrong == []
    assert all(outcome.torn)
    assert outcome.kept > 0
    assert outcome.replaced == []
    assert outcome.unlike == []
    assert outcome.trouble == []
    assert outcome.left == []
