"""What `python -m tests.soak` measures of the hub, in small; how fast it is, it does not say."""

from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.soak import hub

pytestmark = pytest.mark.slow


def test_clients_that_come_at_once_have_one_hub(tmp_path: Path) -> None:
    found = hub.cold(tmp_path, 6, 10 * PATIENCE)

    assert (found.served, found.shared, found.hubs, found.servers) == (6, 6, 1, 1)


def test_a_killed_hub_leaves_nothing_and_every_client_is_told(tmp_path: Path) -> None:
    found = hub.killed(tmp_path, 3, PATIENCE)

    assert len(found.told) == 3
    assert found.statuses == (1, 1, 1)
    assert found.processes == 4
    assert found.orphans == 0
    assert found.works


def test_sessions_that_have_ended_hold_nothing(tmp_path: Path) -> None:
    found = hub.passing(tmp_path, 30, 15)

    assert found.after.descriptors <= found.before.descriptors
    assert found.after.tasks <= found.before.tasks


@pytest.mark.parametrize("eras", hub.ERAS)
def test_nobody_gets_what_is_anothers(tmp_path: Path, eras: str) -> None:
    found = hub.crossing(tmp_path, hub.ERAS[eras], 4, 40)

    assert (found.calls, found.crossed) == (160, 0)
