"""Subscriptions are made with the server or refused, each on its own, on every new connection."""

import anyio
import anyio.abc
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.upstream.server import Upstream
from tests.peers import Era, Mortal, aggregating, late, ready
from tests.raw import Dispatch, Json, RawClient, RawServer, raw_client

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]

UPDATED = "notifications/resources/updated"
URIS = [f"x://{number}" for number in range(6)]


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Keeper(RawServer):
    """A server of the handshake era that keeps account of what it is asked to tell of."""

    def __init__(self) -> None:
        super().__init__(
            "handshake",
            resources__subscribe=self._subscribe,
            resources__unsubscribe=self._unsubscribe,
        )
        self.resources = [{"uri": uri, "name": uri} for uri in URIS]
        self.refused = set[str]()
        """What it refuses: `+` and a URI to tell of it, `-` and a URI to tell of it no longer."""
        self.slow: dict[str, float] = {}
        """How many seconds it takes over some of these."""
        self.asked_of: list[str] = []
        self.told_of = set[str]()

    def forget(self) -> None:
        """Know nothing any more, as after a restart."""
        self.told_of.clear()
        self.asked_of.clear()

    async def _subscribe(self, _context: Dispatch, params: Json) -> Json:
        await self._consider(f"+{params['uri']}")
        self.told_of.add(params["uri"])
        return {}

    async def _unsubscribe(self, _context: Dispatch, params: Json) -> Json:
        await self._consider(f"-{params['uri']}")
        self.told_of.discard(params["uri"])
        return {}

    async def _consider(self, request: str) -> None:
        self.asked_of.append(request)
        await anyio.sleep(self.slow.get(request, 0))
        if request in self.refused:
            raise MCPError(types.INVALID_PARAMS, f"Not {request}")


async def settled(upstream: Upstream) -> None:
    """Wait until servers have listed what they offer, and whatever else takes no longer."""
    await ready(upstream)
    await anyio.sleep(1)


async def watch(client: RawClient, uris: list[str], group: anyio.abc.TaskGroup) -> None:
    """Watch resources in the way of the client's era."""
    if client.era == "handshake":
        for uri in uris:
            await subscribe(client, uri)
        return
    wanted: Json = {"notifications": {"resourceSubscriptions": uris}}
    group.start_soon(client.request, "subscriptions/listen", wanted)
    await client.until_heard("notifications/subscriptions/acknowledged")


async def subscribe(client: RawClient, uri: str) -> None:
    await client.request("resources/subscribe", {"uri": uri})


async def unsubscribe(client: RawClient, uri: str) -> None:
    await client.request("resources/unsubscribe", {"uri": uri})


async def refused(client: RawClient, uri: str) -> None:
    with pytest.raises(MCPError, match=f"Not .{uri}"):
        await subscribe(client, uri)


async def test_what_was_refused_is_asked_for_again_when_it_is_tried_again() -> None:
    server = Keeper()

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "handshake") as client:
            server.refused = {"+x://0"}
            await refused(client, "x://0")
            await refused(client, "x://0")
            server.refused.clear()
            await subscribe(client, "x://0")
            await server.change(UPDATED, {"uri": "x://0"})
            assert (await client.until_heard(UPDATED))["uri"] == "x://0"

    assert server.asked_of[:3] == ["+x://0", "+x://0", "+x://0"]


async def test_a_refusal_leaves_other_subscriptions_alone() -> None:
    server = Keeper()
    server.refused = {"+x://0"}

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "handshake") as client:
            await refused(client, "x://0")
            await subscribe(client, "x://1")
            await anyio.sleep(1)
            assert server.told_of == {"x://1"}
            assert server.asked_of == ["+x://0", "+x://1"]


async def test_what_was_refused_is_not_asked_for_on_a_new_connection() -> None:
    server = Keeper()
    server.refused = {"+x://0"}
    way = Mortal(server.connect)

    async with aggregating({"peer": way}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "handshake") as client:
            await subscribe(client, "x://1")
            await refused(client, "x://0")
            await anyio.sleep(1)
            server.forget()
            way.cut()
            await anyio.sleep(10)
            assert server.asked_of == ["+x://1"]


async def test_what_is_watched_is_watched_again_each_on_its_own(client_era: Era) -> None:
    server = Keeper()
    way = Mortal(server.connect)

    async with aggregating({"peer": way}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, client_era) as client, anyio.create_task_group() as group:
            await watch(client, URIS, group)
            assert server.told_of == set(URIS)
            server.forget()
            server.refused = {f"+{uri}" for uri in URIS[:3]}
            way.cut()
            await anyio.sleep(10)
            assert server.told_of == set(URIS[3:])
            assert sorted(server.asked_of) == [f"+{uri}" for uri in URIS]
            group.cancel_scope.cancel()


async def test_updates_go_on_after_a_new_connection(client_era: Era, server_era: Era) -> None:
    server = RawServer(server_era)
    server.resources = [{"uri": "x://0", "name": "0"}]
    way = Mortal(server.connect)

    async with aggregating({"peer": way}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, client_era) as client, anyio.create_task_group() as group:
            await watch(client, ["x://0"], group)
            way.cut()
            await anyio.sleep(10)
            await server.change(UPDATED, {"uri": "x://0"})
            assert (await client.until_heard(UPDATED))["uri"] == "x://0"
            group.cancel_scope.cancel()


async def test_who_was_refused_on_a_new_connection_is_told_so_when_it_subscribes_again() -> None:
    server = Keeper()
    way = Mortal(server.connect)

    async with aggregating({"peer": way}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "handshake") as client:
            await subscribe(client, "x://0")
            await subscribe(client, "x://0")
            assert server.asked_of == ["+x://0"]
            server.forget()
            server.refused = {"+x://0"}
            way.cut()
            await anyio.sleep(10)
            await refused(client, "x://0")
            server.refused.clear()
            await subscribe(client, "x://0")
            assert server.told_of == {"x://0"}


async def test_what_is_subscribed_while_a_connection_is_new_is_not_forgotten() -> None:
    server = Keeper()
    way = Mortal(server.connect)

    async with aggregating({"peer": way}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "handshake") as client:
            await subscribe(client, "x://0")
            server.slow = {"+x://0": 20.0}
            way.cut()
            await anyio.sleep(10)
            await subscribe(client, "x://1")
            await anyio.sleep(20)
            server.forget()
            server.slow.clear()
            way.cut()
            await anyio.sleep(10)
            assert server.told_of == {"x://0", "x://1"}


async def test_a_server_that_does_not_stop_telling_of_one_resource_stops_telling_of_others(
    client_era: Era,
) -> None:
    server = Keeper()

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, client_era) as client, anyio.create_task_group() as group:
            await watch(client, URIS, group)
            server.refused = {f"-{uri}" for uri in URIS[:3]}
            if client_era == "handshake":
                for uri in URIS:
                    await unsubscribe(client, uri)
            group.cancel_scope.cancel()
        await anyio.sleep(1)

        assert server.told_of == set(URIS[:3])
        server.refused.clear()
        server.forget()
        async with raw_client(upstream, client_era) as client, anyio.create_task_group() as group:
            await watch(client, URIS, group)
            assert server.told_of == set(URIS)
            group.cancel_scope.cancel()


async def test_nobody_waits_for_what_another_client_wants() -> None:
    server = Keeper()
    server.slow = {"+x://0": 30.0}

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with (
            raw_client(upstream, "handshake") as patient,
            raw_client(upstream, "handshake") as other,
            anyio.create_task_group() as group,
        ):
            group.start_soon(subscribe, patient, "x://0")
            await anyio.sleep(1)
            began = anyio.current_time()
            await subscribe(other, "x://1")
            await unsubscribe(other, "x://1")
            assert anyio.current_time() == began
            group.cancel_scope.cancel()


async def test_a_server_is_asked_once_by_two_clients_at_a_time() -> None:
    server = Keeper()
    server.slow = {"+x://0": 3.0}

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with (
            raw_client(upstream, "handshake") as first,
            raw_client(upstream, "handshake") as second,
        ):
            async with anyio.create_task_group() as group:
                group.start_soon(subscribe, first, "x://0")
                group.start_soon(subscribe, second, "x://0")
            assert server.asked_of == ["+x://0"]
            await unsubscribe(first, "x://0")
            await anyio.sleep(5)
            assert server.told_of == {"x://0"}


async def test_what_is_subscribed_while_it_is_given_up_is_subscribed_in_the_end() -> None:
    server = Keeper()

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with (
            raw_client(upstream, "handshake") as leaving,
            raw_client(upstream, "handshake") as coming,
        ):
            await subscribe(leaving, "x://0")
            server.slow = {"-x://0": 3.0}
            await unsubscribe(leaving, "x://0")
            await anyio.sleep(1)
            await subscribe(coming, "x://0")
            await anyio.sleep(10)
            assert server.told_of == {"x://0"}


@pytest.mark.parametrize("refusing", [False, True])
async def test_what_is_given_up_while_it_is_subscribed_is_given_up_in_the_end(
    *, refusing: bool
) -> None:
    server = Keeper()
    server.slow = {"+x://0": 3.0}
    server.refused = {"-x://0"} if refusing else set[str]()

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "handshake") as client:
            async with anyio.create_task_group() as group:
                group.start_soon(subscribe, client, "x://0")
                await anyio.sleep(1)
                await unsubscribe(client, "x://0")
            await anyio.sleep(10)
            assert server.asked_of == ["+x://0", "-x://0"]


async def test_what_was_refused_on_a_new_connection_is_made_when_the_server_agrees_again(
    client_era: Era,
) -> None:
    server = Keeper()
    way = Mortal(server.connect)

    async with aggregating({"peer": way}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, client_era) as staying, anyio.create_task_group() as group:
            await watch(staying, ["x://0"], group)
            for refusing in (True, False):
                async with (
                    raw_client(upstream, client_era) as leaving,
                    anyio.create_task_group() as leavers,
                ):
                    await watch(leaving, ["x://0"], leavers)
                    server.forget()
                    server.refused = {"+x://0"}
                    way.cut()
                    await anyio.sleep(10)
                    server.refused = {"+x://0"} if refusing else set[str]()
                    leavers.cancel_scope.cancel()
                await anyio.sleep(1)
                assert server.told_of == (set() if refusing else {"x://0"})
                server.refused.clear()
            await server.change(UPDATED, {"uri": "x://0"})
            assert (await staying.until_heard(UPDATED))["uri"] == "x://0"
            group.cancel_scope.cancel()


async def test_a_modern_client_is_promised_only_what_servers_agree_to() -> None:
    server = Keeper()
    server.refused = {"+x://1"}

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "modern") as client, anyio.create_task_group() as group:
            wanted = {"resourceSubscriptions": URIS[:3]}
            group.start_soon(client.request, "subscriptions/listen", {"notifications": wanted})
            told = await client.until_heard("notifications/subscriptions/acknowledged")
            assert told["notifications"]["resourceSubscriptions"] == ["x://0", "x://2"]
            group.cancel_scope.cancel()


async def test_slow_subscriptions_of_one_listener_are_made_side_by_side() -> None:
    server = Keeper()
    server.slow = {f"+{uri}": 3.0 for uri in URIS}

    async with aggregating({"peer": server.connect}) as upstream:
        await settled(upstream)
        async with raw_client(upstream, "modern") as client, anyio.create_task_group() as group:
            began = anyio.current_time()
            await watch(client, URIS, group)
            assert anyio.current_time() - began < 4
            group.cancel_scope.cancel()


async def test_what_belongs_to_a_server_that_is_starting_is_watched_by_either_era(
    client_era: Era,
) -> None:
    server = Keeper()

    async with (
        aggregating({"peer": late(server.connect, 2.0)}) as upstream,
        raw_client(upstream, client_era) as client,
        anyio.create_task_group() as group,
    ):
        await watch(client, ["x://1"], group)
        assert server.told_of == {"x://1"}
        group.cancel_scope.cancel()
