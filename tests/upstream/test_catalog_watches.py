"""Who watches our own resources is told when the catalog changes."""

import anyio
import anyio.abc
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from tests.peers import aggregating, ready
from tests.raw import RawClient, RawServer, raw_client

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]

UPDATED = "notifications/resources/updated"
SERVERS = "catalog://servers"


def notes(era: Era) -> RawServer:
    server = RawServer(era)
    server.tools = [{"name": "one", "inputSchema": {"type": "object"}}]
    return server


async def watch(client: RawClient, era: Era, uri: str, group: anyio.abc.TaskGroup) -> None:
    if era == "handshake":
        await client.request("resources/subscribe", {"uri": uri})
        return
    wanted = {"notifications": {"resourceSubscriptions": [uri]}}
    group.start_soon(client.request, "subscriptions/listen", wanted)
    await client.until_heard("notifications/subscriptions/acknowledged")


@pytest.mark.parametrize("uri", [SERVERS, "catalog://tools", "catalog://tools/notes__one"])
async def test_a_change_of_the_catalog_is_told_to_who_watches_it(
    client_era: Era, server_era: Era, uri: str
) -> None:
    server = notes(server_era)

    async with aggregating({"notes": server.connect}) as upstream:
        await ready(upstream)
        async with (
            raw_client(upstream, client_era) as client,
            anyio.create_task_group() as group,
        ):
            await watch(client, client_era, uri, group)
            server.tools = []
            await server.change("notifications/tools/list_changed")
            await client.until_heard(UPDATED)
            group.cancel_scope.cancel()

    assert {params["uri"] for method, params in client.heard if method == UPDATED} == {uri}


async def test_nobody_is_told_who_watches_no_longer(server_era: Era) -> None:
    server = notes(server_era)

    async with aggregating({"notes": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake") as leaving:
            await leaving.request("resources/subscribe", {"uri": SERVERS})
            await leaving.request("resources/subscribe", {"uri": SERVERS})
            await leaving.request("resources/unsubscribe", {"uri": SERVERS})
            async with raw_client(upstream, "handshake") as staying:
                await staying.request("resources/subscribe", {"uri": SERVERS})
                server.tools = []
                await server.change("notifications/tools/list_changed")
                await staying.until_heard(UPDATED)

    assert UPDATED not in [method for method, _ in leaving.heard]


async def test_what_is_not_in_the_catalog_cannot_be_watched(server_era: Era) -> None:
    server = RawServer(server_era)

    async with aggregating({"notes": server.connect}) as upstream:
        async with raw_client(upstream, "handshake") as client:
            for uri in ("catalog://tools/nobody__nothing", "catalog://nothing"):
                with pytest.raises(MCPError, match="There is no resource"):
                    await client.request("resources/subscribe", {"uri": uri})
