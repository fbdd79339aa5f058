"""Who may have a call with a server at a time, and whose turn it is."""

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client as McpClient
from mcp_types import Implementation
from trio.testing import MockClock

from aggregator.config import ServerConfig
from aggregator.downstream.call_slots import CallSlots, Session
from aggregator.errors import BusyError, CallTimeoutError
from aggregator.names import ServerName
from tests.downstream.linking import Client
from tests.downstream.test_server import Fleet, keeping
from tests.loopback.door import door
from tests.peers import Era, Peer, connect_to, ready, text_of
from tests.raw import Dispatch, Json, RawServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def held(slots: CallSlots, party: object, log: list[object], seconds: float = 10) -> None:
    await slots.take(party)
    try:
        log.append(party)
        await anyio.sleep(seconds)
    finally:
        slots.give_back(party)


@pytest.mark.parametrize(
    ("limit", "most"), [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (32, 24), (100, 75)]
)
async def test_one_client_leaves_a_quarter_to_others(limit: int, most: int) -> None:
    slots, log = CallSlots(limit, 1000), list[object]()

    async with anyio.create_task_group() as group:
        for _ in range(2 * limit):
            group.start_soon(held, slots, "greedy", log)
        await anyio.sleep(1)
        assert len(log) == most
        group.cancel_scope.cancel()

    assert repr(slots) == f"<CallSlots 0 of {limit} taken, 0 waiting>"


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 1), (4, 3), (8, 7), (32, 28), (100, 87)])
async def test_a_client_of_many_sessions_leaves_an_eighth_to_others(limit: int, most: int) -> None:
    slots, log = CallSlots(limit, 1000), list[object]()

    async with anyio.create_task_group() as group:
        for number in range(2 * limit):
            group.start_soon(held, slots, Session("greedy", number), log)
            group.start_soon(held, slots, Session("greedy", number), log)
        await anyio.sleep(1)
        assert len(log) == most
        assert not slots.turns_away("other")
        group.cancel_scope.cancel()

    assert repr(slots) == f"<CallSlots 0 of {limit} taken, 0 waiting>"


async def test_many_sessions_of_a_client_have_no_more_turns_than_one() -> None:
    slots, log = CallSlots(8, 1000), list[object]()
    others = [Session("b", number) for number in range(3)]

    async with anyio.create_task_group() as group:
        for seconds, party in enumerate([*"xxxxxx", *others, "a", *others, "a"], 10):
            group.start_soon(held, slots, party, log, seconds)
            await anyio.wait_all_tasks_blocked()

    assert [str(each)[0] for each in log[:7]] == ["x"] * 6 + ["S"]
    turns = ["a" if each == "a" else "b" for each in log[7:]]
    assert turns.index("a") <= 1


async def test_a_client_beside_whom_there_can_be_no_other_has_all_places() -> None:
    slots, log = CallSlots(4, 1), list[object]()

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(held, slots, None, log)
        await anyio.sleep(1)
        may_wait = not slots.turns_away(None)
        group.start_soon(held, slots, None, log)
        await anyio.sleep(1)

        assert (len(log), may_wait, slots.turns_away(None)) == (4, True, True)


async def test_whoever_has_nothing_is_next_however_many_of_others_wait() -> None:
    slots, log = CallSlots(4, 1000), list[object]()
    calls = [("a", 10), ("a", 20), ("a", 30), ("b", 40), ("a", 50), ("a", 50), ("c", 100)]

    async with anyio.create_task_group() as group:
        for party, seconds in [*calls, ("b", 1), ("c", 1)]:
            group.start_soon(held, slots, party, log, seconds)
            await anyio.wait_all_tasks_blocked()

    assert log == ["a", "a", "a", "b", "c", "a", "b", "c", "a"]


async def test_those_who_have_as_little_take_turns() -> None:
    slots, log = CallSlots(16, 1000), list[object]()

    async with anyio.create_task_group() as group:
        # One place after the other is given back: tasks that are woken together run in any order.
        for seconds, party in enumerate("x" * 12 + "y" * 12 + "z" * 12 + "w" * 12, 10):
            group.start_soon(held, slots, party, list[object](), seconds)
            await anyio.wait_all_tasks_blocked()
        for party in "aaaabb":
            group.start_soon(held, slots, party, log, 100)
            await anyio.wait_all_tasks_blocked()

    assert log[:2] == ["a", "b"]


async def test_a_queue_is_shared_like_the_places() -> None:
    slots, log = CallSlots(2, 4), list[object]()

    async with anyio.create_task_group() as group:
        for _ in range(4):
            assert not slots.turns_away("greedy")
            group.start_soon(held, slots, "greedy", log)
            await anyio.wait_all_tasks_blocked()

        assert slots.turns_away("greedy")
        assert not slots.turns_away("other")
        group.cancel_scope.cancel()


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    slots, log = CallSlots(1, 10), list[object]()

    async with anyio.create_task_group() as group:
        group.start_soon(held, slots, "first", log)
        await anyio.wait_all_tasks_blocked()
        # The place is given back at the very moment at which it is given up.
        with anyio.move_on_after(10):
            await held(slots, "late", log)
        with anyio.move_on_after(1):
            await held(slots, "next", log)

    assert log[0] == "first"
    assert repr(slots) == "<CallSlots 0 of 1 taken, 0 waiting>"


async def test_more_places_are_given_at_once_and_fewer_as_calls_end() -> None:
    slots, log = CallSlots(1, 10), list[object]()

    async with anyio.create_task_group() as group:
        for party in "abcd":
            group.start_soon(held, slots, party, log)
            await anyio.wait_all_tasks_blocked()
        assert log == ["a"]
        slots.resize(3, 10)
        await anyio.sleep(1)
        assert sorted(log, key=str) == ["a", "b", "c"]
        slots.resize(1, 10)
        await anyio.sleep(8)
        assert len(log) == 3

    assert log[3:] == ["d"]


CALLS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 20), st.integers(0, 20), st.booleans()),
    max_size=30,
)


@given(st.integers(1, 8), CALLS)
def test_nobody_has_too_many_and_nobody_waits_for_a_place_that_is_free(
    limit: int, calls: list[tuple[str, int, int, bool]]
) -> None:
    """Whatever the order of arrivals, endings and cancellations, each call has its turn."""
    slots, there, under_way = CallSlots(limit, 1000), Counter[str](), Counter[str]()
    done: list[bool] = []

    async def call(party: str, after: int, seconds: int, hurried: bool) -> None:
        await anyio.sleep(after)
        is_first, began = not there[party] and there.total() < limit, anyio.current_time()
        there[party] += 1
        with anyio.move_on_after(5 if hurried else float("inf")):
            await slots.take(party)
            under_way[party] += 1
            try:
                assert under_way.total() <= limit
                assert not is_first or anyio.current_time() == began
                await anyio.sleep(seconds)
            finally:
                under_way[party] -= 1
                slots.give_back(party)
        there[party] -= 1
        done.append(True)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for each in calls:
                group.start_soon(call, *each)

    trio.run(main, clock=MockClock(autojump_threshold=0))

    assert len(done) == len(calls)
    assert repr(slots) == f"<CallSlots 0 of {limit} taken, 0 waiting>"


def hanging(era: Era) -> RawServer:
    """Be a server with a tool that hangs and one that answers."""

    async def hang(_context: Dispatch, _params: Json) -> Json:
        await anyio.sleep_forever()
        raise AssertionError

    async def answer(_context: Dispatch, _params: Json) -> Json:
        return {"content": []}

    server = RawServer(era)
    server.tool("hang", hang)
    server.tool("answer", answer)
    return server


HANG: Json = {"name": "hang", "arguments": {}}
ANSWER: Json = {"name": "answer", "arguments": {}}


async def test_the_hung_calls_of_one_client_cost_another_no_time(server_era: Era) -> None:
    greedy, other, took = Client(), Client(), -1.0
    refused: list[type[Exception]] = []

    async def call_in_vain() -> None:
        try:
            await downstream.request("tools/call", HANG, greedy)
        except (BusyError, CallTimeoutError) as error:
            refused.append(type(error))

    async with keeping(hanging(server_era).connect, Fleet()) as downstream:
        async with anyio.create_task_group() as group:
            for _ in range(1000):
                group.start_soon(call_in_vain)
            await anyio.sleep(1)
            began = anyio.current_time()
            for _ in range(100):
                await downstream.request("tools/call", ANSWER, other)
            took = anyio.current_time() - began

    assert took == 0
    # 24 slots and 192 in the queue.
    assert Counter(refused) == {BusyError: 784, CallTimeoutError: 216}


class Stuck(Peer):
    """A server one tool of which hangs, and that says when enough calls to it do."""

    def __init__(self) -> None:
        super().__init__("block", "work")
        self.is_stuck = anyio.Event()

    async def _call(self, ctx: Any, params: Any) -> Any:
        if len(self.calls) == 23:
            self.is_stuck.set()
        return await super()._call(ctx, params)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_over_http_a_client_is_answered_while_the_calls_of_another_hang(
    client_era: Era, server_era: Era, tmp_path: Path
) -> None:
    server, hung = Stuck(), 0
    answers: list[str] = []

    async def hang(client: McpClient) -> None:
        await client.call_tool("db__block", {})

    async with (
        door({"db": connect_to(server, server_era)}, tmp_path) as opened,
        opened.client(client_era, client_info=Implementation(name="greedy", version="1")) as greedy,
        opened.client(client_era, client_info=Implementation(name="other", version="1")) as other,
        anyio.create_task_group() as group,
    ):
        await ready(opened.upstream)
        for _ in range(32):
            group.start_soon(hang, greedy)
        # Longer than a busy machine takes, and shorter than a call may hang.
        with anyio.fail_after(30):
            await server.is_stuck.wait()
            answers += [text_of(await other.call_tool("db__work", {})) for _ in range(10)]
        hung = sum(name == "block" for name, _ in server.calls)
        group.cancel_scope.cancel()

    assert (hung, answers) == (24, ["work: {}"] * 10)


async def test_with_one_place_calls_are_made_one_after_the_other(server_era: Era) -> None:
    server = ServerConfig(ServerName("db"), "db", max_in_flight=1, call_timeout=5.0)
    log: list[float] = []

    async def call(client: Client) -> None:
        with pytest.raises(CallTimeoutError):
            await downstream.request("tools/call", HANG, client)
        log.append(anyio.current_time() - began)

    async with keeping(hanging(server_era).connect, Fleet()) as downstream:
        downstream.reconfigure(server)
        began = anyio.current_time()
        async with anyio.create_task_group() as group:
            group.start_soon(call, Client())
            group.start_soon(call, Client())

    assert log == [5.0, 5.0]
