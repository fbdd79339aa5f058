"""When processes of a client's own end, and what of those that fail or are replaced."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.errors import ServerUnavailableError
from aggregator.fleet.client_processes import Tenure
from aggregator.upstream.replica import Replica
from aggregator.upstream.seal import OwnCipher
from tests.peers import (
    Context,
    Mortal,
    Peer,
    afresh,
    configured,
    error_of,
    never,
    text_of,
    visiting,
)
from tests.stories.test_per_client import PAD, Pad, Pads, note, shared

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def test_a_process_that_ends_takes_only_its_own_client_with_it() -> None:
    ways: list[Mortal] = []

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Any, None]:
        ways.append(Mortal(afresh(Pad)))
        async with ways[-1]() as transport:
            yield transport

    async with (
        shared(connect) as upstream,
        visiting(upstream, "handshake") as one,
        visiting(upstream, "handshake") as other,
    ):
        await note(one, "a")
        await note(other, "b")
        ways[1].cut()
        await anyio.sleep(1)
        # It is not started for nobody: what it held is lost.
        assert len(ways) == 3
        assert upstream.fleet.client_processes.number(PAD) == 1

        assert await note(other, "c") == "b c"
        assert await note(one, "d") == "d"


async def test_one_that_cannot_be_started_is_said_so_and_not_tried_for_ever() -> None:
    pads = Pads()
    async with shared(pads) as upstream, visiting(upstream, "handshake") as client:
        pads.connect = never()
        answer = await client.call_tool("pad__note", {"text": "a"})
        assert error_of(answer)["kind"] == "server-unavailable"
        await anyio.sleep(1000)
        assert list(upstream.fleet.client_processes) == []


async def test_another_configuration_of_it_is_another_process_once_calls_have_ended() -> None:
    pads = Pads()
    async with shared(pads) as upstream, visiting(upstream, "handshake") as client:
        await note(client, "a")
        upstream.fleet.reconfigure(configured({PAD: {"per_client": True, "args": ("--new",)}}))
        await anyio.sleep(2)
        assert pads.open == 0
        assert await note(client, "b") == "b"

        # A file that says the same of it changes nothing.
        upstream.fleet.reconfigure(configured({PAD: {"per_client": True, "args": ("--new",)}}))
        assert await note(client, "again") == "b again"

        # How it is treated can change while it runs.
        other = {"per_client": True, "args": ("--new",), "deny": ("end",)}
        upstream.fleet.reconfigure(configured({PAD: other}))
        await anyio.sleep(2)
        assert await note(client, "c") == "b again c"
        refused = await client.call_tool("CallTool", {"name": "pad__end"})
        assert refused.is_error


async def test_it_can_be_shared_again_and_no_longer() -> None:
    pads = Pads()
    async with (
        shared(pads) as upstream,
        visiting(upstream, "handshake") as one,
        visiting(upstream, "handshake") as other,
    ):
        await note(one, "a")
        upstream.fleet.reconfigure(configured({PAD: {}}))
        await anyio.sleep(2)
        assert [await note(one, "b"), await note(other, "c")] == ["b", "b c"]
        assert pads.open == 1

        upstream.fleet.reconfigure(configured({PAD: {"per_client": True}}))
        await anyio.sleep(2)
        assert [await note(one, "d"), await note(other, "e")] == ["d", "e"]
    assert pads.open == 0


async def test_a_call_under_way_is_waited_for_when_its_process_is_replaced() -> None:
    class Slow(Pad):
        async def _call(
            self, ctx: Context, params: types.CallToolRequestParams
        ) -> types.CallToolResult:
            await anyio.sleep(5)
            return await super()._call(ctx, params)

    async with shared(Pads(Slow)) as upstream, visiting(upstream, "handshake") as client:
        said: list[str] = []

        async def say() -> None:
            said.append(await note(client, "a"))

        async with anyio.create_task_group() as group:
            group.start_soon(say)
            await anyio.sleep(1)
            upstream.fleet.reconfigure(configured({}))
        assert said == ["a"]


async def test_a_call_whose_process_ends_is_told_so_and_the_next_has_another() -> None:
    ways: list[Mortal] = []

    class Blocking(Peer):
        """Blocks once, and says so."""

        def __init__(self) -> None:
            super().__init__("block", "note")

    peers: list[Blocking] = []

    def make() -> Blocking:
        peers.append(Blocking())
        return peers[-1]

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Any, None]:
        ways.append(Mortal(afresh(make)))
        async with ways[-1]() as transport:
            yield transport

    async with shared(connect) as upstream, visiting(upstream, "handshake") as client:
        said: list[str] = []

        async def block() -> None:
            said.append(error_of(await client.call_tool("pad__block"))["kind"])

        async with anyio.create_task_group() as group:
            group.start_soon(block)
            await anyio.sleep(1)
            await peers[1].blocked.wait()
            ways[1].cut()
        assert said == ["server-lost"]
        assert "note" in text_of(await client.call_tool("pad__note"))


async def test_nothing_is_begun_for_a_client_that_has_left() -> None:
    class Gone:
        """A session that has ended while one of its calls was on its way."""

        key = party = "gone"
        is_seen_off = has_left = True

        async def claim(self, *_: object) -> None:
            """Be at home here."""

    async with shared(Pads()) as upstream:
        gone: Any = Gone()
        with pytest.raises(ServerUnavailableError, match="its client has left"):
            await upstream.fleet.until_ready(PAD, gone)
        with pytest.raises(ServerUnavailableError, match="it has ended"):
            upstream.fleet.server(PAD, gone)


async def test_who_waits_for_one_that_is_configured_anew_is_told_so() -> None:
    pads = Pads()
    async with shared(pads) as upstream, visiting(upstream, "handshake") as client:
        pads.connect = never()
        said: list[str] = []

        async def call() -> None:
            said.append(await note(client, "a"))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await anyio.sleep(1)
            upstream.fleet.reconfigure(configured({PAD: {"per_client": True, "args": ("x",)}}))
            await anyio.sleep(1)
            assert "its configuration has changed" in said[0]


async def test_which_servers_are_still_ending_is_known() -> None:
    async with shared(Pads()) as upstream, visiting(upstream, "handshake") as client:
        await note(client, "a")

        assert upstream.fleet.living == (PAD,)


class Slow:
    """A store that takes its time to say which replica has something."""

    def __init__(self) -> None:
        self.asked, self.may_answer = anyio.Event(), anyio.Event()

    async def lease(self, _what: str, _tenure: Tenure, _home: str | None, /) -> str | None:
        self.asked.set()
        await self.may_answer.wait()
        return "here"

    def loaded(self, _session: str, _names: Sequence[str], /) -> None:
        """Tell nobody."""

    def counted(self, _place: str, _lines: Sequence[bytes], /) -> None:
        """Tell nobody."""

    def changed(self, _profile: str | None, _what: str, /) -> None:
        """Tell nobody."""

    def listens(self, _profile: str | None, /) -> None:
        """Tell nobody."""


@pytest.mark.parametrize(
    ("servers", "begun"),
    [
        ({PAD: {"per_client": True, "args": ("--new",)}}, [("--new",)]),
        ({PAD: {"per_client": False}}, []),
        ({}, []),
    ],
    ids=["another", "for all", "gone"],
)
async def test_who_waits_for_its_turn_has_a_process_of_what_is_configured_then(
    servers: Any, begun: list[tuple[str, ...]]
) -> None:
    slow = Slow()
    here = Replica("here", OwnCipher(), post=slow)
    async with (
        shared(Pads(), replica=here) as upstream,
        visiting(upstream, "handshake") as client,
        anyio.create_task_group() as group,
    ):

        async def call() -> None:
            # What it is answered does not matter: its server is replaced meanwhile.
            with suppress(MCPError):
                await note(client, "a")

        group.start_soon(call)
        await slow.asked.wait()
        upstream.fleet.reconfigure(configured(servers))
        slow.may_answer.set()
        await anyio.sleep(2)
        assert [each.downstream.server.args for each in upstream.fleet.client_processes] == begun
