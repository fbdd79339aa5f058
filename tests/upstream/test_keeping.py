"""What is kept of how a client began, and what is not."""

import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import INVALID_PARAMS, ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse

from aggregator.basics.signals import Signal
from aggregator.config import Config, load_config
from aggregator.entry.basis import find_basis
from aggregator.entry.record import Record, read
from aggregator.fleet.now import Now
from aggregator.memory import Notebook
from aggregator.upstream.client_memory import ClientMemory
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.keeping import KEPT, MAX_ANSWER_BYTES, PAUSE, Again, Keeping, again
from aggregator.upstream.opening import Opening
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

FIRST: dict[str, Any] = {"protocolVersion": "2025-11-25"}
ONE: dict[str, Any] = {"name": "one", "inputSchema": {}}
TWO: dict[str, Any] = {"name": "two", "inputSchema": {}}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Desk:
    """A client that has begun, and where that is kept."""

    def __init__(self, directory: Path, text: str) -> None:
        self.path = directory / "servers.yaml"
        self.path.write_text(text, encoding="utf-8")
        self.variables = {"HOME": str(directory), "SECRET": "correct horse"}
        self.opening = Opening()
        self.changed = Signal()
        self.again = Again([ONE])
        self.config: Config = load_config(self.path, self.variables)
        self.directory = directory / ".local" / "state" / "mcp-tool-aggregator" / "ahead"

    @asynccontextmanager
    async def keeping(self) -> AsyncGenerator[None, None]:
        basis = find_basis(str(self.path), self.variables)
        keeping = Keeping(self.opening, basis, self.config, self.variables)
        async with keeping.kept(self.changed.wait, lambda: self.again):
            yield

    def exchange(self, number: int, method: str, result: dict[str, Any], **params: Any) -> None:
        self.ask(number, method, **params)
        self.opening.went(JSONRPCResponse(jsonrpc="2.0", id=number, result=result))

    def ask(self, number: int, method: str, **params: Any) -> None:
        message = JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params or None)
        self.opening.came(message)

    def begin(self) -> None:
        self.exchange(1, "initialize", FIRST, capabilities={})
        self.exchange(2, "tools/list", {"tools": []})

    @property
    def records(self) -> list[Record]:
        found = [read(str(path)) for path in sorted(self.directory.glob("*.json"))]
        return [each for each in found if each is not None]

    @property
    def results(self) -> list[dict[str, Any]]:
        (record,) = self.records
        return [each.result for each in record.answers]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, "servers: {a: {command: x}}")


async def test_a_session_however_short_is_kept_with_the_list_as_it_is_now(desk: Desk) -> None:
    async with desk.keeping():
        desk.begin()

    assert desk.results == [FIRST, {"tools": [ONE]}]


async def test_a_change_is_kept_while_the_session_goes_on(desk: Desk) -> None:
    async with desk.keeping():
        desk.begin()
        await anyio.sleep(PAUSE)
        await written(desk, ONE)
        desk.again = Again([TWO])
        desk.changed.send()
        await anyio.sleep(PAUSE)
        await written(desk, TWO)


async def written(desk: Desk, tool: dict[str, Any]) -> None:
    """Wait for a thread, which takes its own time, whatever the clock says.

    That clock goes on meanwhile: who waits for the thread may begin its next pause only then.
    """
    deadline = time.monotonic() + PATIENCE
    while not desk.records or desk.results != [FIRST, {"tools": [tool]}]:
        assert time.monotonic() < deadline
        await anyio.sleep(PAUSE)


async def test_a_modern_list_is_kept_as_one_that_may_change_at_once(desk: Desk) -> None:
    async with desk.keeping():
        desk.exchange(1, "tools/list", {"tools": [], "ttlMs": 60_000})

    assert desk.results == [{"tools": [ONE], "ttlMs": 0}]


async def test_who_does_not_ask_for_the_list_does_not_unlearn_it(desk: Desk) -> None:
    async with desk.keeping():
        desk.begin()
    desk.opening = Opening()
    async with desk.keeping():
        desk.exchange(1, "initialize", FIRST, capabilities={})

    assert desk.results == [FIRST, {"tools": [ONE]}]


async def test_a_list_is_put_off_for_as_long_as_any_session_has_left_more(desk: Desk) -> None:
    desk.again = Again([ONE], time.time() + 300)
    async with desk.keeping():
        desk.begin()
    desk.again, desk.opening = Again([TWO]), Opening()
    async with desk.keeping():
        desk.begin()

    (record,) = desk.records
    assert record.after > time.time() + 200
    assert [each.method for each in record.current()] == ["initialize"]
    assert desk.results == [FIRST, {"tools": [TWO]}]


@pytest.mark.parametrize(
    "text",
    [
        "{state: false, servers: {a: {command: x}}}",
        "servers: {a: {command: x, env: {TOKEN: '${keyring:SECRET}'}}}",
    ],
)
async def test_where_nothing_may_or_can_be_kept_nothing_is(tmp_path: Path, text: str) -> None:
    desk = Desk(tmp_path, text)
    async with desk.keeping():
        desk.begin()

    assert desk.records == []


async def test_a_list_that_tells_a_secret_is_not_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "servers: {a: {command: x, env: {TOKEN: '${SECRET}'}}}")
    async with desk.keeping():
        desk.begin()
    assert desk.results == [FIRST, {"tools": [ONE]}]

    desk.again, desk.opening = Again([{**ONE, "description": "it is correct horse"}]), Opening()
    async with desk.keeping():
        desk.begin()

    assert desk.results == [FIRST]


@pytest.mark.parametrize("name", ["servers.yaml", "servers.lock", "mine.env"])
async def test_what_rests_on_something_else_by_now_is_not_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.env").write_text("A=1", encoding="utf-8")
    desk = Desk(tmp_path, "servers: {a: {command: x, envFile: mine.env}}")
    async with desk.keeping():
        desk.begin()
        (tmp_path / name).write_text("A=2", encoding="utf-8")

    assert desk.records == []


async def test_a_request_that_fails_is_not_kept(desk: Desk) -> None:
    async with desk.keeping():
        desk.ask(1, "initialize")
        error = ErrorData(code=INVALID_PARAMS, message="no")
        desk.opening.went(JSONRPCError(jsonrpc="2.0", id=1, error=error))
        desk.exchange(2, "tools/list", {"tools": []})

    assert desk.records == []


async def test_of_requests_with_one_id_none_is_kept(desk: Desk) -> None:
    async with desk.keeping():
        desk.ask(1, "initialize")
        desk.ask(1, "ping")
        desk.opening.went(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))

    assert desk.records == []


@pytest.mark.parametrize("method", ["ping", "tools/call", "prompts/list"])
async def test_only_what_can_be_answered_ahead_is_kept(desk: Desk, method: str) -> None:
    async with desk.keeping():
        desk.exchange(1, "initialize", FIRST)
        desk.exchange(2, method, {})
        desk.exchange(3, "tools/list", {"tools": []})

    assert desk.results == [FIRST]


async def test_a_list_out_of_all_proportion_is_not_kept(desk: Desk) -> None:
    desk.again = Again([{**ONE, "description": "x" * MAX_ANSWER_BYTES}] * 1000)
    async with desk.keeping():
        desk.begin()

    assert desk.results == [FIRST]


async def test_the_oldest_records_are_removed(desk: Desk) -> None:
    desk.directory.mkdir(parents=True)
    for number in range(KEPT + 5):
        path = desk.directory / f"{number}.json"
        path.touch()
        os.utime(path, (number, number))
    async with desk.keeping():
        desk.begin()

    assert len(list(desk.directory.iterdir())) == KEPT
    assert desk.results == [FIRST, {"tools": [ONE]}]


async def test_a_directory_that_cannot_be_written_is_nobodys_problem(desk: Desk) -> None:
    desk.directory.parent.mkdir(parents=True)
    desk.directory.touch()
    async with desk.keeping():
        desk.begin()

    assert desk.records == []


def test_a_list_is_kept_as_it_is_while_servers_have_not_been_heard_of(desk: Desk) -> None:
    """One that takes longer than its clients stay would have each of them wait otherwise."""
    starting = Now.starting(desk.config, 0.0)
    conversation = Conversation("handshake", "raw")
    client_memory = ClientMemory(Notebook(None), desk.path)

    kept = again(starting, conversation, client_memory)

    assert kept.tools[0]["name"] == "ToolSearch"
