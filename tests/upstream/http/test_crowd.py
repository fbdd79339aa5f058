"""Many clients at once, quickly; `tests/loopback/crowd.py` and `soak.py` do it for longer."""

from pathlib import Path

import pytest

from tests.loopback.crowd import crowd as bare_crowd
from tests.loopback.soak import crowd

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.mark.no_cover
async def test_a_hundred_clients_get_their_own_answers(tmp_path: Path) -> None:
    tally = await crowd(tmp_path, 100, rounds=1)

    assert tally.crossings == []
    assert tally.calls == 200
    assert tally.searches == 100


async def test_no_result_progress_log_or_cancel_reaches_the_wrong_one(tmp_path: Path) -> None:
    report = await bare_crowd(tmp_path, clients=10, calls=50, at_once=5)

    assert not report.wrong, report.examples
    assert set(report.missing) <= {"unattributable"}, report.missing
    assert report.calls == 10 * 50
    # One of ten is cancelled; what is begun with and what settles the account is not counted.
    assert report.arrived["cancels"] == 10 * 5
    assert report.arrived["results"] == 10 * (45 + 4)
