"""A broken server costs its own calls, and nobody else's."""

from pathlib import Path

import pytest

from tests.soak import hangs, kills, stalls

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SOON = 20.0
"""Seconds in which even a busy machine gets to it, and no timeout has passed that is not set."""

STANDSTILL = 0.3
"""Seconds of the processor that one turn may take: on a busy machine the same work is up to three
times as long, since caches and cores are shared. `python -m tests.soak stalls` measures it."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_killing_servers_under_load_costs_only_their_calls_in_flight(tmp_path: Path) -> None:
    outcome = await kills.measure(tmp_path, servers=4, kills=6, calls=20)

    assert outcome.calls > 0
    assert outcome.wrong == []
    assert outcome.odd_errors == []
    assert outcome.strays == []
    assert len(outcome.errors) == 6 * kills.WAITING
    assert max(outcome.errors) <= SOON
    assert max(outcome.returns) <= SOON


async def test_a_caller_waits_no_longer_than_its_timeout(tmp_path: Path) -> None:
    """Also if the server has stopped reading, and there is a megabyte to be read."""
    waits = await hangs.measure(tmp_path, 2.0, 2)

    assert len(waits) == 4
    assert max(wait.seconds for wait in waits) <= SOON
    # Of what waits behind a megabyte, nothing has been sent when its server is given up.
    sent = [wait.said for wait in waits if "was not run" not in wait.said]
    assert len(sent) >= 3
    assert all("taken effect" in said for said in sent)


def test_no_fault_stops_the_event_loop() -> None:
    """The longest faults, by the processor time they take: the machine is not ours alone."""
    faults = ("hugeline", "hugebytes", "hugeescapes", "hugekeys", "noise", "storm", "mutations")
    found = stalls.measured(faults)

    assert len(found) > len(faults)
    assert {stall.fault: stall.busy for stall in found if stall.busy > STANDSTILL} == {}
