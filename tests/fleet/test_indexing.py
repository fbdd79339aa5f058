"""Tools are shown when they can be found, and not before; nobody waits for that."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from aggregator.catalog import Failed, Pending, Ready, ServerState
from aggregator.fleet.indexing import AT_ONCE, Indexing
from aggregator.names import ServerName
from aggregator.search.query import Keywords, parse_query
from tests.search.tools import entry

pytestmark = pytest.mark.anyio

ONE, TWO = ServerName("one"), ServerName("two")


def ready(server: ServerName, count: int, word: str = "ping") -> Ready:
    return Ready(tuple(entry(f"{server}__{word}_{number}") for number in range(count)))


class Shown:
    """An index at work, and what it has had shown."""

    def __init__(self) -> None:
        self.states: dict[ServerName, ServerState] = {ONE: Pending(), TWO: Pending()}
        self.indexing = Indexing([ONE, TWO], describe=lambda _server: "")

    def report(self, server: ServerName, state: ServerState) -> None:
        if self.indexing.take(server, self.states[server], state):
            self.show(server, state)

    def show(self, server: ServerName, state: ServerState) -> None:
        self.states[server] = state

    async def run(self) -> None:
        async with aclosing(self.indexing.read()) as read:
            async for server, state in read:
                self.show(server, state)

    def found(self, text: str) -> list[str]:
        query = parse_query(text)
        assert isinstance(query, Keywords)
        return [hit.entry.name for hit in self.indexing.index.rank(query, 10_000)]


@asynccontextmanager
async def indexing() -> AsyncGenerator[Shown, None]:
    shown = Shown()
    async with anyio.create_task_group() as group:
        group.start_soon(shown.run)
        yield shown
        group.cancel_scope.cancel()


async def test_tools_are_shown_once_all_of_them_can_be_found() -> None:
    async with indexing() as shown:
        shown.report(ONE, ready(ONE, 10 * AT_ONCE))
        steps = 0
        while shown.states[ONE] == Pending():
            assert shown.found("ping") == []
            assert len(shown.indexing.index) == 0
            await anyio.lowlevel.checkpoint()
            steps += 1

        assert len(shown.found("ping")) == 10 * AT_ONCE
        assert steps >= 10


async def test_what_a_server_had_is_found_until_it_is_replaced() -> None:
    async with indexing() as shown:
        shown.report(ONE, ready(ONE, AT_ONCE, "ping"))
        await anyio.wait_all_tasks_blocked()
        shown.report(ONE, ready(ONE, 4 * AT_ONCE, "archive"))
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        assert len(shown.found("ping")) == AT_ONCE
        await anyio.wait_all_tasks_blocked()

        assert shown.found("ping") == []
        assert len(shown.found("archive")) == 4 * AT_ONCE


async def test_a_server_that_fails_meanwhile_is_not_shown() -> None:
    async with indexing() as shown:
        shown.report(ONE, ready(ONE, 10 * AT_ONCE))
        shown.report(TWO, ready(TWO, 1))
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        shown.report(ONE, Failed("gone"))
        await anyio.wait_all_tasks_blocked()

        assert shown.states[ONE] == Failed("gone")
        assert shown.found("ping") == ["two__ping_0"]
        assert len(shown.indexing.index) == 1


async def test_what_else_becomes_known_meanwhile_is_shown_too() -> None:
    tools = ready(ONE, 10 * AT_ONCE)
    async with indexing() as shown:
        shown.report(ONE, tools)
        await anyio.lowlevel.checkpoint()
        shown.report(ONE, Ready(tools.entries, version="2"))
        await anyio.wait_all_tasks_blocked()
        assert shown.states[ONE] == Ready(tools.entries, version="2")

        shown.report(ONE, Ready(tools.entries, version="3"))
        assert shown.states[ONE] == Ready(tools.entries, version="3")


async def test_of_a_server_that_keeps_changing_what_has_been_read_is_shown() -> None:
    """It changes faster than its tools are read; others have their turn in between."""
    seen: list[str] = []
    async with indexing() as shown:
        shown.report(ONE, ready(ONE, 10 * AT_ONCE, "v0"))
        shown.report(TWO, ready(TWO, 1))
        for change in range(1, 20):
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            shown.report(ONE, ready(ONE, 10 * AT_ONCE, f"v{change}"))
            state = shown.states[ONE]
            if isinstance(state, Ready):
                seen.append(state.entries[0].name)
        assert shown.found("ping") == ["two__ping_0"]
        await anyio.wait_all_tasks_blocked()

        assert len(set(seen)) >= 5
        assert shown.states[ONE] == ready(ONE, 10 * AT_ONCE, "v19")
        assert len(shown.found("v19")) == 10 * AT_ONCE
        assert len(shown.indexing.index) == 10 * AT_ONCE + 1


async def test_a_server_that_left_and_came_back_shows_nothing_of_before() -> None:
    async with indexing() as shown:
        shown.report(ONE, ready(ONE, 10 * AT_ONCE, "before"))
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        shown.report(ONE, Pending("lost"))
        shown.report(ONE, ready(ONE, 10 * AT_ONCE, "after"))
        seen: list[str] = []
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
            seen += shown.found("before")
        assert seen == []
        assert len(shown.found("after")) == 10 * AT_ONCE


async def test_a_server_that_left_leaves_nothing() -> None:
    async with indexing() as shown:
        shown.report(ONE, ready(ONE, 3 * AT_ONCE))
        await anyio.wait_all_tasks_blocked()
        shown.report(ONE, Pending("lost"))
        assert shown.found("ping") == []
        await anyio.wait_all_tasks_blocked()
        shown.report(ONE, ready(ONE, 1))
        await anyio.wait_all_tasks_blocked()

        assert shown.found("ping") == ["one__ping_0"]


async def test_when_tools_are_shown_it_is_known_how_their_names_may_be_written() -> None:
    async with indexing() as shown:
        state = ready(ONE, 20)
        shown.report(ONE, state)
        await anyio.wait_all_tasks_blocked()

        assert all("forms" in vars(entry) for entry in state.entries)
