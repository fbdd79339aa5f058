"""Whoever asks to be told of thousands of resources costs no more than for each of them."""

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.upstream.resources import MAX_WATCHED
from tests.peers import Era, aggregating
from tests.raw import Json, RawServer, raw_client
from tests.upstream.test_subscriptions import Keeper, settled, subscribe, unsubscribe
from tests.work import counting

pytestmark = pytest.mark.anyio

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
FOR_EACH = 3_000
"""Calls that it may take to watch one resource, and to watch it no longer."""


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def listing(uris: list[str]) -> Json:
    return {"notifications": {"resourceSubscriptions": uris}}


@pytest.mark.no_cover
async def test_eight_thousand_uris_are_watched_up_to_the_limit_and_then_given_back(
    server_era: Era,
) -> None:
    uris = [f"x://{number}" for number in range(8_000)]
    server = Keeper() if server_era == "handshake" else RawServer("modern")
    server.resources = [{"uri": uri, "name": uri} for uri in uris[:5_000]]
    promised: Json = {}

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        with counting() as tally:
            async with raw_client(upstream, "modern") as client, anyio.create_task_group() as group:
                group.start_soon(client.request, "subscriptions/listen", listing(uris))
                promised = await client.until_heard(ACKNOWLEDGED)
                group.cancel_scope.cancel()
            await anyio.sleep(1)

    assert promised["notifications"]["resourceSubscriptions"] == uris[:MAX_WATCHED]
    assert tally.calls < MAX_WATCHED * FOR_EACH
    if isinstance(server, Keeper):
        assert sorted(server.asked_of[:MAX_WATCHED]) == sorted(
            f"+{each}" for each in uris[:MAX_WATCHED]
        )
        assert not server.told_of


async def test_our_own_resources_are_watched_as_cheaply() -> None:
    uris = ["catalog://servers", "catalog://tools"] + [f"x://{n}" for n in range(8_000)]
    promised: Json = {}

    async with aggregating({"peer": RawServer("modern").connect}) as upstream:
        await settled(upstream)
        with counting() as tally:
            async with raw_client(upstream, "modern") as client, anyio.create_task_group() as group:
                group.start_soon(client.request, "subscriptions/listen", listing(uris))
                promised = await client.until_heard(ACKNOWLEDGED)
                group.cancel_scope.cancel()

    assert promised["notifications"]["resourceSubscriptions"] == uris[:MAX_WATCHED]
    assert tally.calls < MAX_WATCHED * FOR_EACH


@pytest.mark.no_cover
async def test_a_session_that_watches_as_many_as_it_may_is_told_what_to_do() -> None:
    server = Keeper()

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "handshake") as client:
            for number in range(MAX_WATCHED):
                await subscribe(client, f"x://{number}")
            await subscribe(client, "x://0")
            for more in ("x://more", "catalog://servers"):
                with pytest.raises(MCPError, match="1,000 resources are watched already"):
                    await subscribe(client, more)
            await unsubscribe(client, "x://0")
            await subscribe(client, "x://more")


async def test_what_there_is_no_effort_to_look_for_is_not_promised() -> None:
    server, other = RawServer("modern"), RawServer("modern")
    for each in (server, other):
        each.resources = [{"uri": "x://known", "name": "known"}]
    server.templates = [{"uriTemplate": f"{'{+a}a' * 30}{n}", "name": f"t{n}"} for n in range(500)]
    promised: Json = {}

    async with aggregating({"peer": server.connect, "other": other.connect}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "modern") as client, anyio.create_task_group() as group:
            wanted = listing(["x://known", "x://" + "a" * 100])
            group.start_soon(client.request, "subscriptions/listen", wanted)
            promised = await client.until_heard(ACKNOWLEDGED)
            group.cancel_scope.cancel()

    assert promised["notifications"]["resourceSubscriptions"] == ["x://known"]
