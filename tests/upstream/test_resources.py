"""Resources, templates and prompts of all servers, through us, in each pair of eras."""

import json
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.upstream.server import Upstream
from tests.patience import PATIENCE
from tests.peers import Era, aggregating, ready, until
from tests.raw import Dispatch, Json, RawClient, RawServer, raw_client, without_envelope
from tests.work import counting

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]

NOTE: Json = {"uri": "note://one", "name": "one", "mimeType": "text/plain", "x-extra": [None, 1]}
TEMPLATE: Json = {"uriTemplate": "note://by-day/{day}", "name": "days", "title": "By day"}
PROMPT: Json = {
    "name": "greet",
    "title": "Greet",
    "arguments": [{"name": "who", "required": True}],
    "icons": [{"src": "data:,"}],
}


def notes(era: Era) -> RawServer:
    async def read(_context: Dispatch, params: Json) -> Json:
        if params["uri"] == "note://gone":
            raise MCPError(-32002, "Gone", {"uri": params["uri"]})
        return {"contents": [{"uri": params["uri"], "text": "read", "x-kept": None}], "x-more": 1}

    async def get(_context: Dispatch, params: Json) -> Json:
        text = f"{params['name']} {params.get('arguments')}"
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    async def complete(_context: Dispatch, params: Json) -> Json:
        return {"completion": {"values": [params["ref"].get("name") or params["ref"]["uri"]]}}

    server = RawServer(era, resources__read=read, prompts__get=get, completion__complete=complete)
    server.resources, server.templates, server.prompts = [NOTE], [TEMPLATE], [PROMPT]
    return server


async def offered(upstream: Upstream, servers: int = 1) -> None:
    """Wait until servers have listed what they offer besides tools."""

    def known() -> bool:
        states: list[Any] = list(upstream.fleet.now.catalog.servers.values())
        return (
            sum(bool(getattr(each, "offers", None) and each.offers.resources) for each in states)
            == servers
        )

    await until(known, lambda: upstream.fleet.changed)


async def names(client: RawClient, method: str, member: str, key: str) -> list[str]:
    return [each[key] for each in (await client.request(method))[member]]


async def listed_again(client: RawClient, method: str, member: str, key: str, last: str) -> None:
    """List whenever told to, until the list ends with this."""
    with anyio.fail_after(PATIENCE):
        while (await names(client, method, member, key))[-1:] != [last]:
            await client.news.wait()


async def test_what_a_server_offers_is_listed_beside_what_is_ours(
    client_era: Era, server_era: Era
) -> None:
    async with aggregating({"notes": notes(server_era).connect}) as upstream:
        await offered(upstream)
        async with raw_client(upstream, client_era) as client:
            resources = (await client.request("resources/list"))["resources"]
            templates = (await client.request("resources/templates/list"))["resourceTemplates"]
            prompts = (await client.request("prompts/list"))["prompts"]
            capabilities = client.server["capabilities"]

    assert [each["uri"] for each in resources] == [
        "catalog://servers",
        "catalog://tools",
        "note://one",
    ]
    assert resources[-1] == NOTE
    assert templates[-1] == TEMPLATE
    assert prompts == [{**PROMPT, "name": "notes__greet"}]
    assert capabilities["prompts"] == {"listChanged": True}
    assert capabilities["resources"] == {"listChanged": True, "subscribe": True}
    assert capabilities["completions"] == {}
    assert capabilities["logging"] == {}


async def test_resources_are_read_and_prompts_are_got_from_their_server(
    client_era: Era, server_era: Era
) -> None:
    server = notes(server_era)

    async with aggregating({"notes": server.connect}) as upstream:
        await offered(upstream)
        async with raw_client(upstream, client_era) as client:
            listed = await client.request("resources/read", {"uri": "note://one"})
            described = await client.request("resources/read", {"uri": "note://by-day/monday"})
            prompt = await client.request(
                "prompts/get", {"name": "notes__greet", "arguments": {"who": "Ada"}}
            )
            own = await client.request("resources/read", {"uri": "catalog://servers"})

    assert without_envelope(listed)["contents"] == [
        {"uri": "note://one", "text": "read", "x-kept": None}
    ]
    assert listed["x-more"] == 1
    assert described["contents"][0]["uri"] == "note://by-day/monday"
    assert prompt["messages"][0]["content"]["text"] == "greet {'who': 'Ada'}"
    assert '"instructions": "Be raw"' in own["contents"][0]["text"]
    if client_era == "modern":
        assert {"resultType", "ttlMs", "cacheScope"} <= set(listed)


async def test_arguments_are_completed_by_the_server_of_a_prompt_or_template(
    client_era: Era, server_era: Era
) -> None:
    argument = {"name": "who", "value": "A"}

    async with aggregating({"notes": notes(server_era).connect}) as upstream:
        await offered(upstream)
        async with raw_client(upstream, client_era) as client:
            prompt = await client.request(
                "completion/complete",
                {"ref": {"type": "ref/prompt", "name": "notes__greet"}, "argument": argument},
            )
            template = await client.request(
                "completion/complete",
                {
                    "ref": {"type": "ref/resource", "uri": "note://by-day/{day}"},
                    "argument": argument,
                },
            )

    assert prompt["completion"]["values"] == ["greet"]
    assert template["completion"]["values"] == ["note://by-day/{day}"]


async def test_a_resource_that_is_not_there_is_said_not_to_be_in_the_way_of_the_era(
    client_era: Era, server_era: Era
) -> None:
    missing = {"handshake": -32002, "modern": -32602}[client_era]
    servers = {"notes": notes(server_era).connect, "more": notes(server_era).connect}

    async with aggregating(servers) as upstream:
        await offered(upstream, 2)
        async with raw_client(upstream, client_era) as client:
            for uri in ("catalog://nothing", "nobody://knows", "aggregator://more/note://gone"):
                with pytest.raises(MCPError) as caught:
                    await client.request("resources/read", {"uri": uri})
                assert caught.value.code == missing
            with pytest.raises(MCPError, match="no prompt"):
                await client.request("prompts/get", {"name": "notes__missing"})


async def test_it_is_said_when_there_are_too_many_templates_to_try_them_all(
    client_era: Era, server_era: Era
) -> None:
    server, other = notes(server_era), notes(server_era)
    server.templates = [
        {"uriTemplate": f"{'{+any}a' * 30}{each}", "name": f"t{each}"} for each in range(2_000)
    ]

    async with aggregating({"notes": server.connect, "more": other.connect}) as upstream:
        await offered(upstream, 2)
        async with raw_client(upstream, client_era) as client:
            with pytest.raises(MCPError, match="too many templates to try them all"):
                await client.request("resources/read", {"uri": "x://" + "a" * 400})


async def test_a_uri_that_two_servers_claim_is_the_first_one_s_and_marked_for_the_second(
    client_era: Era,
) -> None:
    first, second = notes("modern"), notes("handshake")

    async with aggregating({"first": first.connect, "second one": second.connect}) as upstream:
        await offered(upstream, 2)
        async with raw_client(upstream, client_era) as client:
            listed = await names(client, "resources/list", "resources", "uri")
            templates = await names(
                client, "resources/templates/list", "resourceTemplates", "uriTemplate"
            )
            for uri in (*listed[2:], templates[2].replace("{day}", "friday")):
                await client.request("resources/read", {"uri": uri})

    assert listed[2:] == ["note://one", "aggregator://second%20one/note://one"]
    assert templates[2] == "aggregator://second%20one/note://by-day/{day}"
    read = [
        [params["uri"] for method, params in server.received if method == "resources/read"]
        for server in (first, second)
    ]
    assert read == [["note://one"], ["note://one", "note://by-day/friday"]]


async def test_a_link_in_a_result_can_be_followed(client_era: Era, server_era: Era) -> None:
    async def make(_context: Dispatch, _params: Json) -> Json:
        return {"content": [{"type": "resource_link", "uri": "note://new", "name": "new"}]}

    maker, other = notes(server_era), notes(server_era)
    maker.tool("make", make)

    async with aggregating({"other": other.connect, "maker": maker.connect}) as upstream:
        await offered(upstream, 2)
        async with raw_client(upstream, client_era) as client:
            await client.request("tools/call", {"name": "maker__make", "arguments": {}})
            await client.request("resources/read", {"uri": "note://new"})

    assert "resources/read" in maker.methods()
    assert "resources/read" not in other.methods()


async def test_a_server_that_cannot_list_its_prompts_keeps_its_tools(server_era: Era) -> None:
    async def fail(_context: Dispatch, _params: Json) -> Json:
        raise MCPError(-32603, "Broken")

    async def work(_context: Dispatch, _params: Json) -> Json:
        return {"content": []}

    server = notes(server_era)
    server.handlers["prompts/list"] = fail
    server.tool("work", work)

    async with aggregating({"notes": server.connect}) as upstream:
        await offered(upstream)
        async with raw_client(upstream, "modern") as client:
            called = await client.request("tools/call", {"name": "notes__work", "arguments": {}})
            prompts = await client.request("prompts/list")

    assert called["content"] == []
    assert prompts["prompts"] == []


async def test_changed_lists_are_announced_to_those_that_asked(
    client_era: Era, server_era: Era
) -> None:
    server = notes(server_era)

    async with aggregating({"notes": server.connect}) as upstream:
        await offered(upstream)
        async with raw_client(upstream, client_era) as client, anyio.create_task_group() as group:
            if client_era == "modern":
                wanted = {"promptsListChanged": True, "resourcesListChanged": True}
                group.start_soon(client.request, "subscriptions/listen", {"notifications": wanted})
                await client.until_heard("notifications/subscriptions/acknowledged")
            server.prompts = [PROMPT, {"name": "leave"}]
            await server.change("notifications/prompts/list_changed")
            await listed_again(client, "prompts/list", "prompts", "name", "notes__leave")
            server.resources = [*server.resources, {"uri": "note://two", "name": "two"}]
            await server.change("notifications/resources/list_changed")
            await listed_again(client, "resources/list", "resources", "uri", "note://two")
            group.cancel_scope.cancel()

    heard = {method for method, _ in client.heard if method.endswith("list_changed")}
    assert heard == {
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
    }


async def test_updates_of_a_resource_reach_exactly_those_that_watch_it(
    client_era: Era, server_era: Era
) -> None:
    server = notes(server_era)
    server.resources = [NOTE, {"uri": "note://two", "name": "two"}]

    async with aggregating({"notes": server.connect}) as upstream:
        await offered(upstream)
        async with (
            raw_client(upstream, client_era) as watching,
            raw_client(upstream, client_era) as other,
            anyio.create_task_group() as group,
        ):
            for client, uri in ((watching, "note://one"), (other, "note://two")):
                if client_era == "modern":
                    wanted = {"resourceSubscriptions": [uri]}
                    group.start_soon(
                        client.request, "subscriptions/listen", {"notifications": wanted}
                    )
                    await client.until_heard("notifications/subscriptions/acknowledged")
                else:
                    await client.request("resources/subscribe", {"uri": uri})
            for _ in range(3):
                await server.change("notifications/resources/updated", {"uri": "note://one"})
            await watching.until_heard("notifications/resources/updated")
            await server.change("notifications/resources/updated", {"uri": "note://two"})
            await other.until_heard("notifications/resources/updated")
            group.cancel_scope.cancel()

    for client, uri in ((watching, "note://one"), (other, "note://two")):
        updates = [params["uri"] for method, params in client.heard if "updated" in method]
        assert updates == [uri]


async def test_a_client_that_no_longer_watches_is_no_longer_told(server_era: Era) -> None:
    server = notes(server_era)

    async with aggregating({"notes": server.connect}) as upstream:
        await offered(upstream)
        async with raw_client(upstream, "handshake") as client:
            await client.request("resources/subscribe", {"uri": "note://one"})
            await client.request("resources/unsubscribe", {"uri": "note://one"})
            await server.change("notifications/resources/updated", {"uri": "note://one"})
            server.prompts = []
            await server.change("notifications/prompts/list_changed")
            await client.until_heard("notifications/prompts/list_changed")

    assert "notifications/resources/updated" not in [method for method, _ in client.heard]
    if server_era == "handshake":
        assert server.methods().count("resources/subscribe") == 1
        assert server.methods().count("resources/unsubscribe") == 1


async def test_to_read_the_catalog_is_little_work_for_each_tool() -> None:
    costs: list[int] = []
    for number in (100, 400):
        server = RawServer("modern")
        schema = {"type": "object"}
        server.tools = [{"name": f"tool{each}", "inputSchema": schema} for each in range(number)]
        async with (
            aggregating({"notes": server.connect}) as upstream,
            raw_client(upstream, "modern") as client,
        ):
            await ready(upstream)
            await client.request("resources/read", {"uri": "catalog://tools"})
            with counting() as tally:
                read = await client.request("resources/read", {"uri": "catalog://tools"})
            costs.append(tally.calls)
            assert len(json.loads(read["contents"][0]["text"])["tools"]) == number

    assert (costs[1] - costs[0]) / 300 < 60
