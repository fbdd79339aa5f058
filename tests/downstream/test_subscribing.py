"""A server is asked to tell of what is wanted, each resource on its own."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest
from mcp_types import JSONRPCRequest

from aggregator.config import ServerConfig
from aggregator.downstream.peer import Peer
from aggregator.downstream.subscribing import NotWatchedError, Subscribing
from aggregator.downstream.transport import Undelivered
from aggregator.names import ServerName
from tests.downstream.linking import linked
from tests.transports import Script

pytestmark = pytest.mark.anyio

DB = ServerConfig(ServerName("db"), "db", call_timeout=5.0)
ABLE = Peer("2025-11-25", capabilities={"resources": {"subscribe": True}})


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def agree(script: Script, asked: list[tuple[str, object]]) -> None:
    while True:
        request = await script.answer({})
        asked.append((request.method, (request.params or {})["uri"]))


async def test_only_what_differs_from_before_is_asked_for() -> None:
    script, asked = Script(), list[tuple[str, object]]()
    subscribing = Subscribing(DB, frozenset())
    async with linked(script, ABLE) as link, anyio.create_task_group() as group:
        group.start_soon(agree, script, asked)
        await subscribing.want(frozenset({"x://1"}), link)
        await subscribing.want(frozenset({"x://1", "x://2"}), link)
        await subscribing.want(frozenset({"x://2"}), link)
        group.cancel_scope.cancel()

    assert asked == [
        ("resources/subscribe", "x://1"),
        ("resources/subscribe", "x://2"),
        ("resources/unsubscribe", "x://1"),
    ]


async def test_what_is_wanted_without_a_link_is_asked_for_on_the_next() -> None:
    script, asked = Script(), list[tuple[str, object]]()
    subscribing = Subscribing(DB, frozenset())
    await subscribing.want(frozenset({"x://1"}), None)
    async with linked(script, ABLE) as link, anyio.create_task_group() as group:
        group.start_soon(agree, script, asked)
        await subscribing.begin(link)
        group.cancel_scope.cancel()

    assert asked == [("resources/subscribe", "x://1")]


async def refuse(script: Script) -> None:
    await script.refuse(-32602, "No such resource")


async def lose(script: Script) -> None:
    request: JSONRPCRequest = await script.asked()
    script.come(Undelivered("it is unavailable for now (503)", request=request.id))


async def hang_up(script: Script) -> None:
    await script.asked()
    script.end()


async def ignore(script: Script) -> None:
    await script.asked()


@pytest.mark.parametrize(
    ("react", "reason"),
    [
        (refuse, "No such resource"),
        (lose, "it is unavailable for now (503)"),
        (hang_up, "The server `db` is gone"),
        (ignore, "The server `db` did not answer in time"),
    ],
)
async def test_who_wants_what_a_server_does_not_tell_of_learns_why(
    react: Callable[[Script], Coroutine[Any, Any, None]], reason: str
) -> None:
    script = Script()
    async with linked(script, ABLE) as link, anyio.create_task_group() as group:
        group.start_soon(react, script)
        with pytest.raises(NotWatchedError) as caught:
            await Subscribing(DB, frozenset()).want(frozenset({"x://1"}), link)

        assert [error.message for error in caught.value.reasons.values()] == [reason]


async def test_a_server_without_subscriptions_is_not_asked() -> None:
    script = Script()
    async with linked(script) as link:
        await Subscribing(DB, frozenset()).want(frozenset({"x://1"}), link)

    assert script.headers == []
