"""Many clients at once, quickly; `tests/http/soak.py` does it for as long as one likes."""

from pathlib import Path

import pytest

from tests.http.soak import crowd

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_a_hundred_clients_get_their_own_answers(tmp_path: Path) -> None:
    tally = await crowd(tmp_path, 100, rounds=1)

    assert tally.crossings == []
    assert tally.calls == 200
    assert tally.searches == 100
