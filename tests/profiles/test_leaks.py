"""What a profile hides, held against every way to see it: as if it had never been there.

Each way is taken twice: by a client of the profile, and by a client of an aggregator whose servers
never had what is hidden. The answers must be the same.
"""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.upstream.server import Upstream
from tests.profiles.world import BARE, NARROW, SECRETS, WHO, World, written_skill
from tests.raw import Json, RawClient, raw_client

pytestmark = pytest.mark.anyio

SECOND = re.compile(r'"seconds": [\d.]+|[\d.]+ (?:ms|s|seconds?)\b')
EDITION = re.compile(r"catalog://pool/[0-9a-f]{32}")


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def call(name: str, /, **arguments: Any) -> tuple[str, Json]:
    return "tools/call", {"name": name, "arguments": arguments}


def search(query: str, /, **rest: Any) -> tuple[str, Json]:
    return call("ToolSearch", query=query, **rest)


def read(uri: str) -> tuple[str, Json]:
    return "resources/read", {"uri": uri}


def complete(value: str, **ref: str) -> tuple[str, Json]:
    argument = {"name": "name", "value": value}
    return "completion/complete", {"ref": ref, "argument": argument}


WAYS: dict[str, tuple[str, Json]] = {
    "the list of tools": ("tools/list", {}),
    "the list of prompts": ("prompts/list", {}),
    "the list of resources": ("resources/list", {}),
    "the list of templates": ("resources/templates/list", {}),
    "a search by words": search("delete a note"),
    "a search by words of a server": search("open the vault"),
    "a search for all": search("*"),
    "a search for nothing": search(""),
    "a search that waits": search("vault", wait=5),
    "a search by a whole name": search("notes__delete_note"),
    "a search by an own name": search("delete_note"),
    "a selection": search("select:notes__delete_note"),
    "a selection of another server's": search("select:vault__open_vault,vault__read_note"),
    "a selection by an own name": search("select:open_vault"),
    "a selection of a prompt": search("select:prompt:vault__reveal"),
    "a required word": search("+vault note"),
    "a server by name": search("server:vault"),
    "a server by name that is not there": search("server:ghost note"),
    "the beginning of names": search("vault__"),
    "misspelt words": search("valut delte"),
    "a namesake": search("read note"),
    "a pattern": search("/delete|vault/"),
    "a search for prompts": search("kind:prompt reveal purge draft"),
    "a search for resources": search("kind:resource gold draft"),
    "a search for skills": search("kind:skill hoard"),
    "all prompts": search("kind:prompt"),
    "names alone": search("note", names_only=True),
    "many at once": call("ToolSearch", queries=["vault", "select:delete_note", "gold"]),
    "an explained search": (
        "tools/call",
        {
            "name": "ToolSearch",
            "arguments": {"query": "delete read note"},
            "_meta": {"aggregator/explain": True},
        },
    ),
    "a call": call("notes__delete_note"),
    "a call with an argument": call("notes__delete_note", note="milk"),
    "a call of another server": call("vault__open_vault"),
    "a call of one that is pending": call("ghost__anything"),
    "a call as a client writes it": call("mcp__aggregator__vault__open_vault"),
    "a call in capitals": call("NOTES__DELETE_NOTE"),
    "a call with other signs": call("notes.delete-note"),
    "a call in humps": call("notes__deleteNote"),
    "a call by its own name": call("open_vault"),
    "a call of a namesake": call("read_note"),
    "a call that is nearly right": call("notes__delete_not"),
    "a call through another": call("CallTool", name="vault__open_vault", arguments={}),
    "a call that only reads": call("CallReadOnlyTool", name="vault__read_note", arguments={}),
    "a call of one that does not only read": call("CallReadOnlyTool", name="notes__delete_note"),
    "a call without a name": call("CallTool"),
    "a call of a prompt": call("CallTool", name="prompt:vault__reveal", arguments={}),
    "a call of a prompt that is denied": call("CallTool", name="prompt:notes__purge", arguments={}),
    "a call of a resource": call("CallReadOnlyTool", name="resource:vault://gold"),
    "a call of a skill": call("CallReadOnlyTool", name="skill:vault/gold"),
    "a call of a skill here": call("CallReadOnlyTool", name="skill:hoarding"),
    "a prompt": ("prompts/get", {"name": "vault__reveal"}),
    "a prompt that is denied": ("prompts/get", {"name": "notes__purge"}),
    "a prompt that is not allowed": ("prompts/get", {"name": "docs__draft"}),
    "a resource": read("vault://gold"),
    "a resource that another has, too": read("note://1"),
    "a resource by its server": read("aggregator://vault/vault://gold"),
    "a resource of a server in part": read("docs://draft"),
    "a resource of a template": read("vault://silver"),
    "a resource of nobody": read("else://where"),
    "a template": read("vault://{name}"),
    "a file of a skill": read("catalog://skills/hoarding/SKILL.md"),
    "completion for a prompt": complete("m", type="ref/prompt", name="vault__reveal"),
    "completion for a prompt denied": complete("m", type="ref/prompt", name="notes__purge"),
    "completion for a template": complete("m", type="ref/resource", uri="vault://{name}"),
    "completion for a part": complete("m", type="ref/resource", uri="docs://{page}"),
    "completion of names": complete("", type="ref/resource", uri="catalog://tools/{name}"),
    "completion of a name": complete("vault", type="ref/resource", uri="catalog://tools/{name}"),
    "the servers": read("catalog://servers"),
    "the tools": read("catalog://tools"),
    "one tool": read("catalog://tools/vault__open_vault"),
    "one tool that is denied": read("catalog://tools/notes__delete_note"),
    "what is locked": read("catalog://lock/vault"),
    "what is locked of a part": read("catalog://lock/notes"),
    "the pool": read("catalog://pool"),
    "watching": ("resources/subscribe", {"uri": "vault://gold"}),
    "watching a part": ("resources/subscribe", {"uri": "docs://draft"}),
    "watching a tool": ("resources/subscribe", {"uri": "catalog://tools/notes__delete_note"}),
}


async def taken(client: RawClient, method: str, params: Json) -> str:
    """Return all that comes back, without what tells one moment from another."""
    try:
        answer: object = await client.request(method, params)
    except MCPError as error:
        answer = error.code, error.message, error.data
    return EDITION.sub("EDITION", SECOND.sub("SOME TIME", repr(answer).replace("\\'", "'")))


async def all_taken(
    client: RawClient, upstream: Upstream, profile: str = "reading"
) -> dict[str, str]:
    found = {"the introduction": repr(client.server.get("instructions"))}
    await upstream.fleet.awaiting.until_read(upstream.fleet.now.catalog.servers, profile)
    for way, (method, params) in WAYS.items():
        found[way] = await taken(client, method, params)
    return found


@pytest.mark.parametrize("who", WHO)
async def test_what_is_hidden_is_as_if_it_had_never_been(
    client_era: Era, server_era: Era, who: str, tmp_path: Path
) -> None:
    world, bare = World(server_era, has_all=True, who=who), World(server_era, has_all=False)
    async with (
        world.aggregated(written_skill(tmp_path)) as upstream,
        raw_client(upstream, client_era, {}, NARROW._replace(profile=WHO[who])) as one,
    ):
        narrow = await all_taken(one, upstream, WHO[who])
    async with bare.aggregated() as upstream, raw_client(upstream, client_era, {}, BARE) as one:
        expected = await all_taken(one, upstream)

    assert len(WAYS) >= 25
    assert {way: found for way, found in narrow.items() if found != expected[way]} == {}
    calls = [params["name"] for method, params in world.notes.received if method == "tools/call"]
    assert "delete_note" not in calls
    lists = {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
    opening = {"initialize", "notifications/initialized", "server/discover", "subscriptions/listen"}
    assert {*world.vault.methods()} <= {*lists, *opening, "resources/subscribe"}


@pytest.mark.parametrize("who", WHO)
async def test_nothing_is_read_of_a_server_that_is_shown_in_part(
    client_era: Era, server_era: Era, who: str
) -> None:
    """Where it declares resources, it would be asked itself for what is written with its name."""
    world = World(server_era, has_all=True, who=who)
    narrow = NARROW._replace(profile=WHO[who])
    async with world.aggregated() as upstream, raw_client(upstream, client_era, {}, narrow) as one:
        found = await taken(one, *read("aggregator://docs/docs://draft"))

    assert "There is no resource" in found
    assert "resources/read" not in world.docs.methods()


@pytest.mark.parametrize("who", WHO)
async def test_who_sees_everything_sees_it(
    client_era: Era, server_era: Era, who: str, tmp_path: Path
) -> None:
    """The other test could not fail if nobody could see what is hidden."""
    world = World(server_era, has_all=True, who=who)
    wide = NARROW._replace(profile=None)
    async with (
        world.aggregated(written_skill(tmp_path)) as upstream,
        raw_client(upstream, client_era, {}, wide) as one,
    ):
        found = "\n".join((await all_taken(one, upstream)).values())

    assert [secret for secret in SECRETS if secret not in found] == []


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("changed", ["tool", "server", "prompt", "resource", "log", "update"])
async def test_a_change_of_what_is_hidden_is_not_told(
    client_era: Era, server_era: Era, changed: str, who: str
) -> None:
    world = World(server_era, has_all=True, who=who)
    hidden, shown = list[tuple[str, Json]](), list[tuple[str, Json]]()
    async with (
        world.aggregated() as upstream,
        raw_client(upstream, client_era, {}, NARROW._replace(profile=WHO[who])) as client,
        anyio.create_task_group() as group,
    ):
        await listen(client, client_era, group)
        await client.request("tools/list")
        await anyio.sleep(5)
        client.heard.clear()
        await change(world, changed)
        await anyio.sleep(5)
        hidden += client.heard
        world.notes.tools[0]["description"] = "Reads one note"
        await world.notes.change("notifications/tools/list_changed")
        await anyio.sleep(5)
        shown += client.heard
        group.cancel_scope.cancel()

    assert hidden == []
    assert shown != []


async def listen(client: RawClient, era: Era, group: Any) -> None:
    watched = ["catalog://servers", "catalog://tools", "note://1"]
    if era == "handshake":
        await client.request("logging/setLevel", {"level": "debug"})
        for uri in watched:
            await client.request("resources/subscribe", {"uri": uri})
        return
    wanted = {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": watched,
    }
    group.start_soon(client.request, "subscriptions/listen", {"notifications": wanted})
    await client.until_heard("notifications/subscriptions/acknowledged")


async def change(world: World, what: str) -> None:
    match what:
        case "tool":
            world.notes.tools[-1]["description"] = "Deletes one note"
            await world.notes.change("notifications/tools/list_changed")
        case "server":
            world.vault.tools.pop()
            await world.vault.change("notifications/tools/list_changed")
        case "prompt":
            world.docs.prompts.append({"name": "another"})
            await world.docs.change("notifications/prompts/list_changed")
        case "resource":
            world.docs.resources.append({"uri": "docs://other", "name": "other"})
            await world.docs.change("notifications/resources/list_changed")
        case "log":
            await world.vault.change("notifications/message", {"level": "error", "data": "gold"})
        case _:
            await world.vault.change("notifications/resources/updated", {"uri": "vault://gold"})
