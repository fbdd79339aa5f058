"""A modern server's stream of changes is kept open, whatever the server does with it."""

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from aggregator.basics.json import JsonObject
from aggregator.downstream.listening import LISTEN_PATIENCE, Listening
from tests.raw import Json

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def test_a_stream_of_changes_that_breaks_is_opened_again_and_nothing_is_missed() -> None:
    missed: list[float] = []
    opened: list[str] = []
    listening = Listening(missed=lambda: missed.append(anyio.current_time()))

    async def open_stream(number: str, _params: JsonObject) -> Json:
        opened.append(number)
        listening.acknowledge({})
        if len(opened) == 1:
            return {}
        await anyio.sleep_forever()
        return {}

    async with anyio.create_task_group() as group:
        group.start_soon(listening.run, ["tools"], open_stream)
        await listening.until_settled()
        await anyio.sleep(LISTEN_PATIENCE + 1)
        group.cancel_scope.cancel()

    assert opened == ["listen-1", "listen-2"]
    assert len(missed) == 1


async def test_a_stream_of_changes_that_is_refused_is_not_asked_for_again() -> None:
    opened: list[str] = []
    listening = Listening(missed=lambda: None)

    async def open_stream(number: str, _params: JsonObject) -> Json:
        opened.append(number)
        raise MCPError(types.METHOD_NOT_FOUND, "No")

    async with anyio.create_task_group() as group:
        group.start_soon(listening.run, ["tools"], open_stream)
        await listening.until_settled()
        await anyio.sleep(LISTEN_PATIENCE * 10)
        group.cancel_scope.cancel()

    assert opened == ["listen-1"]


class Teller:
    """A server's stream of changes, as far away as any; it notes what it is asked to tell of."""

    def __init__(self) -> None:
        self.missed: list[float] = []
        self.listening = Listening(missed=lambda: self.missed.append(anyio.current_time()))
        self.asked: list[JsonObject] = []
        self.ended = anyio.Event()
        self.delay = 0.001
        """Seconds until a request is refused, if it is."""

    def end(self) -> None:
        """End the stream that is open now."""
        self.ended.set()
        self.ended = anyio.Event()

    async def open_stream(self, number: str, params: JsonObject) -> Json:
        self.asked.append(params["notifications"])
        await anyio.sleep(self.delay)
        if "resourceSubscriptions" in params["notifications"]:
            raise MCPError(types.INVALID_PARAMS, "No resources")
        self.listening.acknowledge({"_meta": {SUBSCRIPTION_ID_META_KEY: number}})
        await self.ended.wait()
        return {}


class Single(Teller):
    """One that ends a stream as soon as it is asked for another."""

    async def open_stream(self, number: str, params: JsonObject) -> Json:
        self.end()
        return await super().open_stream(number, params)


LISTS: JsonObject = {"toolsListChanged": True}
ALL: JsonObject = {"toolsListChanged": True, "resourceSubscriptions": ["x://1"]}


async def test_lists_are_heard_of_where_resources_are_refused() -> None:
    """One request after the stream has ended, not one after the other for ever."""
    server = Teller()
    async with anyio.create_task_group() as group:
        group.start_soon(server.listening.run, ["tools"], server.open_stream)
        await server.listening.until_settled()
        await server.listening.want(["x://1"])
        assert server.asked == [LISTS, ALL]

        server.end()
        await anyio.sleep(LISTEN_PATIENCE * 10)
        group.cancel_scope.cancel()

    assert server.asked == [LISTS, ALL, LISTS]
    assert len(server.missed) == 1


async def test_lists_are_heard_of_where_a_refusal_also_ends_the_stream() -> None:
    server = Single()
    async with anyio.create_task_group() as group:
        group.start_soon(server.listening.run, ["tools"], server.open_stream)
        await server.listening.until_settled()
        await server.listening.want(["x://1"])
        await anyio.sleep(LISTEN_PATIENCE * 10)
        group.cancel_scope.cancel()

    assert server.asked == [LISTS, ALL, LISTS]
    assert len(server.missed) == 1


async def test_lists_are_heard_of_where_a_refusal_comes_late() -> None:
    server = Teller()
    async with anyio.create_task_group() as group:
        group.start_soon(server.listening.run, ["tools"], server.open_stream)
        await server.listening.until_settled()
        server.delay = LISTEN_PATIENCE + 1
        await server.listening.want(["x://1"])
        await anyio.sleep(LISTEN_PATIENCE * 10)
        group.cancel_scope.cancel()

    assert server.asked == [LISTS, ALL, LISTS]


async def test_a_stream_of_changes_that_ends_in_an_error_is_opened_again() -> None:
    """It was acknowledged, so what it was asked for is not refused."""

    class Failing(Teller):
        async def open_stream(self, number: str, params: JsonObject) -> Json:
            await super().open_stream(number, params)
            raise MCPError(types.INTERNAL_ERROR, "Out of order")

    server = Failing()
    async with anyio.create_task_group() as group:
        group.start_soon(server.listening.run, ["tools"], server.open_stream)
        await server.listening.until_settled()
        server.end()
        await anyio.sleep(LISTEN_PATIENCE * 10)
        group.cancel_scope.cancel()

    assert server.asked == [LISTS, LISTS]
    assert len(server.missed) == 1


async def test_a_server_with_room_for_one_stream_is_asked_for_one() -> None:
    server = Single()
    async with anyio.create_task_group() as group:
        group.start_soon(server.listening.run, ["tools"], server.open_stream)
        await server.listening.until_settled()
        await server.listening.want([])
        await anyio.sleep(LISTEN_PATIENCE * 10)
        group.cancel_scope.cancel()

    assert server.asked == [LISTS, LISTS]
    assert len(server.missed) == 1
