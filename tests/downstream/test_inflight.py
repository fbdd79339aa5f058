"""What a server says is given to the call it must belong to, and a call's time is kept."""

import anyio
import pytest

from aggregator.downstream.deadlines import Patience
from aggregator.downstream.inflight import LINGERING, MAX_NOTICES, ClientCall, InFlight
from tests.downstream.linking import Client, call_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def test_what_fits_the_calls_of_several_clients_belongs_to_nobody() -> None:
    in_flight, one, other = InFlight(), call_of(Client()), call_of(Client())
    with in_flight.entered(1, one):
        assert in_flight.meant() is one
        with in_flight.entered(2, other):
            assert in_flight.meant() is None
            assert in_flight.meant(1) is one
            assert in_flight.progressing(2) is other
        assert in_flight.meant() is one
    assert in_flight.is_idle
    assert len(in_flight) == 0


async def test_a_call_that_was_given_up_may_still_be_spoken_of_for_a_while() -> None:
    in_flight, other = InFlight(), call_of(Client())
    with anyio.move_on_after(1):
        with in_flight.entered(1, call_of(Client())):
            await anyio.sleep_forever()
    with in_flight.entered(2, other):
        assert not in_flight.is_idle
        assert in_flight.meant() is None
        await anyio.sleep(LINGERING + 1)
        assert in_flight.meant() is other


async def test_progress_gives_a_call_more_time_but_not_for_ever() -> None:
    ended = 0.0
    with anyio.CancelScope() as scope:
        patience = Patience(scope, between=10, altogether=25)
        try:
            while True:
                await anyio.sleep(9)
                patience.note_progress()
        finally:
            ended = anyio.current_time()
    assert ended == 25


async def test_the_time_in_which_somebody_is_asked_does_not_count() -> None:
    client = Client()
    client.thinking = 3600
    with anyio.CancelScope() as scope:
        call = ClientCall(client, Patience(scope, between=10, altogether=25))
        await anyio.sleep(5)
        assert await call.ask("elicitation/create", {"x": 1}) == {
            "asked": "elicitation/create",
            "x": 1,
        }
        await anyio.sleep(9)
    assert not scope.cancelled_caught


async def test_a_storm_is_told_by_one_task_in_order_and_its_oldest_part_is_dropped() -> None:
    client = Client()
    call = call_of(client)
    assert not call.has_heard
    tellers = [call.hear("notifications/message", {"n": n}) for n in range(MAX_NOTICES + 10)]
    await call.deliver()

    assert tellers[0] is False
    assert all(tellers[1:])
    assert [params["n"] for _, params in client.told] == list(range(10, MAX_NOTICES + 10))
