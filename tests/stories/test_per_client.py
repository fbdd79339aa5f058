"""A server that holds what is one client's: where clients share us, each has its own."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from aggregator.catalog import Idle
from aggregator.config import IDLE_TIMEOUT
from aggregator.fleet import client_processes
from aggregator.names import ServerName
from aggregator.upstream.replica import ALONE, Replica
from aggregator.upstream.server import Upstream
from tests.peers import (
    Context,
    Era,
    Mortal,
    Peer,
    afresh,
    aggregating,
    error_of,
    late,
    never,
    text_of,
    visiting,
)
from tests.stories.test_offers import Library

pytestmark = pytest.mark.anyio

PAD = ServerName("pad")


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Pad(Peer):
    """Remembers what it was told, and nothing of what another was."""

    def __init__(self) -> None:
        super().__init__("note", "end")
        self._notes: list[str] = []

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        assert ctx.session
        self._notes.append(str((params.arguments or {}).get("text")))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=" ".join(self._notes))]
        )


class Pads:
    """Every pad that was opened, and whether it is still open."""

    def __init__(self, make: Callable[[], Peer] = Pad, era: Era = "modern") -> None:
        self.connect = afresh(make, era)
        self.opened = 0
        self.open = 0

    @asynccontextmanager
    async def __call__(self) -> AsyncGenerator[Any, None]:
        self.opened += 1
        self.open += 1
        try:
            async with self.connect() as transport:
                yield transport
        finally:
            self.open -= 1


@asynccontextmanager
async def shared(
    pads: Any, *, is_shared: bool = True, replica: Replica = ALONE, **options: Any
) -> AsyncGenerator[Upstream, None]:
    own = {"per_client": True, **options}
    async with aggregating({PAD: pads}, is_shared=is_shared, replica=replica, pad=own) as upstream:
        if is_shared:
            with anyio.fail_after(60):
                while not isinstance(upstream.fleet.now.catalog.servers[PAD], Idle):
                    await upstream.fleet.changed.wait()
            await anyio.sleep(1)
        yield upstream


async def note(client: Client, text: str) -> str:
    return text_of(await client.call_tool("pad__note", {"text": text}))


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_each_session_has_its_own(era: Era) -> None:
    pads = Pads(era=era)
    async with (
        shared(pads) as upstream,
        visiting(upstream, "handshake") as one,
        visiting(upstream, "handshake") as other,
    ):
        assert (pads.opened, pads.open) == (1, 0)

        assert await note(one, "a") == "a"
        assert await note(other, "b") == "b"
        assert await note(one, "c") == "a c"
        assert (pads.opened, pads.open) == (3, 2)
        assert upstream.fleet.client_processes.number(PAD) == 2


async def test_it_is_begun_by_the_first_call_and_ends_with_the_session() -> None:
    pads = Pads()
    async with shared(pads) as upstream:
        async with visiting(upstream, "handshake") as client:
            found = text_of(await client.call_tool("ToolSearch", {"query": "note"}))
            assert "pad__note" in found
            assert pads.opened == 1

            await note(client, "a")
            # Nobody but the client says when it is no longer needed.
            await anyio.sleep(10 * IDLE_TIMEOUT)
            assert await note(client, "b") == "a b"
        await anyio.sleep(5)
        assert (pads.opened, pads.open) == (2, 0)
        assert list(upstream.fleet.client_processes) == []


async def test_prompts_and_skills_are_those_of_its_own_process() -> None:
    def library() -> Library:
        made = Library()
        made.publish("refunds", "Refund a customer")
        return made

    pads = Pads(library)
    async with shared(pads) as upstream, visiting(upstream, "handshake") as client:
        prompt = {"name": "prompt:pad__review_code", "arguments": {"number": "5"}}
        filled = await client.call_tool("CallTool", prompt)
        read = await client.call_tool("CallTool", {"name": "skill:pad/refunds"})

        assert "Review 5" in text_of(filled)
        assert "Do it." in text_of(read)
        # One to know what it offers, and one for this client: none is woken for all.
        assert (pads.opened, pads.open) == (2, 1)


async def test_a_hundred_sessions_leave_nothing_behind() -> None:
    pads = Pads()
    async with shared(pads) as upstream:
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(visiting(upstream, "handshake")) for _ in range(100)
            ]
            async with anyio.create_task_group() as group:
                for client in clients:
                    group.start_soon(note, client, "a")
            assert pads.open == 100
        await anyio.sleep(5)
        assert pads.open == 0
        assert upstream.fleet.client_processes.living == ()


async def test_who_leaves_while_it_starts_leaves_nothing_behind() -> None:
    pads = Mortal(never())
    async with (
        aggregating({PAD: pads}, is_shared=True, pad={"per_client": True}) as upstream,
        anyio.create_task_group() as group,
    ):
        await anyio.sleep(1)
        async with visiting(upstream, "handshake") as client:
            group.start_soon(client.call_tool, "pad__note", {"text": "a"})
            await anyio.sleep(1)
            group.cancel_scope.cancel()
    assert list(upstream.fleet.client_processes) == []


async def test_a_client_without_a_session_has_one_until_it_has_not_used_it_for_long() -> None:
    pads = Pads()
    async with shared(pads) as upstream, visiting(upstream, "modern") as client:
        assert await note(client, "a") == "a"
        await anyio.sleep(IDLE_TIMEOUT - 1)
        assert await note(client, "b") == "a b"
        await anyio.sleep(IDLE_TIMEOUT + 1)
        assert pads.open == 0

        assert await note(client, "c") == "c"


async def test_one_that_is_not_used_ends_as_the_file_says() -> None:
    pads = Pads()
    async with (
        shared(pads, idle_timeout=60.0) as upstream,
        visiting(upstream, "handshake") as client,
    ):
        await note(client, "a")
        await anyio.sleep(61)
        assert pads.open == 0

        assert await note(client, "b") == "b"


@pytest.mark.parametrize("each_way", ["in process"], indirect=True)
async def test_where_there_is_one_client_it_means_nothing() -> None:
    pads = Pads()
    async with (
        shared(pads, is_shared=False) as upstream,
        visiting(upstream, "handshake") as client,
    ):
        assert [await note(client, "a"), await note(client, "b")] == ["a", "a b"]
        assert pads.opened == 1


async def test_there_are_not_more_than_the_machine_can_bear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_processes, "MAX_CLIENT_PROCESSES", 2)
    async with (
        shared(Pads()) as upstream,
        visiting(upstream, "handshake") as one,
        visiting(upstream, "handshake") as two,
        visiting(upstream, "handshake") as three,
    ):
        await note(one, "a")
        await note(two, "b")
        answer = await three.call_tool("pad__note", {"text": "c"})
        assert error_of(answer)["kind"] == "crowded"
        assert "2 such processes run already" in text_of(answer)


async def test_what_one_process_lists_anew_all_clients_are_told() -> None:
    made: list[Pad] = []

    def make() -> Pad:
        made.append(Pad())
        return made[-1]

    async with (
        shared(Pads(make)) as upstream,
        visiting(upstream, "handshake") as one,
        visiting(upstream, "handshake") as other,
    ):
        await note(one, "a")
        await made[1].change(draw={"description": "Draws"})
        await anyio.sleep(5)

        found = await other.call_tool("ToolSearch", {"query": "select:pad__draw"})
        assert "pad__draw" in text_of(found)


async def test_how_many_there_are_is_told() -> None:
    async with (
        shared(Pads()) as upstream,
        visiting(upstream, "handshake") as one,
        visiting(upstream, "handshake") as other,
    ):
        await note(one, "a")
        await note(other, "b")
        answer = await one.read_resource("catalog://servers")
        content = answer.contents[0]
        assert isinstance(content, types.TextResourceContents)
        assert '"perClient": true, "processes": 2' in content.text


async def test_a_start_that_is_slow_is_waited_for() -> None:
    pads = late(afresh(Pad), 10)
    async with shared(pads) as upstream, visiting(upstream, "handshake") as client:
        assert await note(client, "a") == "a"
