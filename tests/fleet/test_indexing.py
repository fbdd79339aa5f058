"""Tools are shown when they can be found, and not before; nobody waits for that."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

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
        self.indexing = Indexing([ONE, TWO], describe=lambda _server: "", show=self.show)

    def report(self, server: ServerName, state: ServerState) -> None:
        if self.indexing.take(server, self.states[server], state):
            self.show(server, state)

    def show(self, server: ServerName, state: ServerState) -> None:
        self.states[server] = state

    def found(self, text: str) -> list[str]:
        query = parse_query(text)
        assert isinstance(query, Keywords)
        return [hit.entry.name for hit in self.indexing.index.rank(query, 10_000)]


@asynccontextmanager
async def indexing() -> AsyncGenerator[Shown, None]:
    shown = Shown()
    async with anyio.create_task_group() as group:
        group.start_soon(shown.indexing.run)
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
