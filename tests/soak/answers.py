"""How long the event loop stands still over answers that are costly to work out."""

import json
import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from anyio import to_thread

from aggregator.basics import garbage
from aggregator.fleet.reloading import Reloading
from tests.peers import ready, until
from tests.raw import raw_client
from tests.soak.client import ENVELOPE, Json
from tests.soak.costly import MANY
from tests.soak.stalls import FOLLOWING, Running, Stall, in_process

SERVER = Path(__file__).with_name("costly.py")


def costly(*parts: str) -> Json:
    """Configure the server whose lists are costly."""
    return {"command": sys.executable, "args": [str(SERVER), *parts]}


REQUESTS: Mapping[str, tuple[str, Json]] = {
    **{
        f"call: {tool}": (
            "tools/call",
            {"name": "CallTool", "arguments": {"name": f"costly__{tool}", "arguments": {"q": 1}}},
        )
        for tool in ("recursive20", "recursive40", "wide3500")
    },
    **{
        f"search: {tool}": (
            "tools/call",
            {"name": "ToolSearch", "arguments": {"query": f"select:costly__{tool}"}},
        )
        for tool in ("recursive20", "recursive40", "wide3500", "choices")
    },
    **{
        f"read: 5,000 templates, {length} characters": (
            "resources/read",
            {"uri": "x://" + "a" * (length - 4)},
        )
        for length in (40, 400, 4_000)
    },
}
"""What a client asks for."""


async def during_requests(directory: Path) -> list[Stall]:
    """Ask for what is costly to answer."""
    # As the command itself does when it has been loaded.
    garbage.begin()
    servers = {"costly": costly("templates"), "other": costly()}
    async with in_process(directory, servers) as running:
        await _offered(running, 2)
        for what, (method, params) in REQUESTS.items():
            running.probe.forget()
            await running.client.request(method, params)
            await running.probe.beats(FOLLOWING)
            running.note(what)
        return running.stalls


async def during_listening(directory: Path, uris: int) -> list[Stall]:
    """Ask, as a modern client, to be told of thousands of resources, and go."""
    async with in_process(directory, {"costly": costly("resources")}, era="modern") as running:
        await _offered(running, 5_000)
        running.probe.forget()
        wanted = [f"r://{number}" for number in range(uris)]
        listen: dict[str, Any] = {"notifications": {"resourceSubscriptions": wanted}}
        message = {"method": "subscriptions/listen", "params": {**listen, "_meta": ENVELOPE}}
        # It is longer than a pipe holds, and who reads it is this very loop.
        await to_thread.run_sync(running.client.write, {"id": "listen", **message})
        await running.client.request("tools/list", {"_meta": ENVELOPE})
        await running.probe.beats(FOLLOWING)
        running.note(f"listen: {uris:,} resources")
        return running.stalls


async def during_changes(directory: Path, sessions: int) -> list[Stall]:
    """Change the catalog while many sessions look at it."""
    async with (
        in_process(directory, {"costly": costly("resources")}) as running,
        AsyncExitStack() as clients,
    ):
        await _offered(running, 5_000)
        for _ in range(sessions):
            await clients.enter_async_context(raw_client(running.upstream, "handshake"))
        await running.probe.beats(FOLLOWING)
        running.probe.forget()
        fleet = running.upstream.fleet
        for number in range(1, 4):
            known = len(fleet.now.catalog.entries)
            await running.client.call("costly__change")
            await until(
                lambda known=known: len(fleet.now.catalog.entries) > known, lambda: fleet.changed
            )
            await running.probe.beats(FOLLOWING)
            running.note(f"change {number}: {sessions} sessions, 5,000 resources")
        return running.stalls


async def _offered(running: Running, resources: int) -> None:
    await ready(running.upstream)
    fleet = running.upstream.fleet
    await until(lambda: len(fleet.now.routes.resources) == resources, lambda: fleet.changed)


LOOKUPS: Mapping[str, Json] = {
    "an unknown name": {"name": "CallTool", "arguments": {"name": "no such tool at all"}},
    "an unknown name of the server": {"name": "CallTool", "arguments": {"name": "costly__no_such"}},
    "a part of a word": {"name": "ToolSearch", "arguments": {"query": "aaaa"}},
    "parts of words": {
        "name": "ToolSearch",
        "arguments": {"query": " ".join("a" * each for each in range(4, 36))},
    },
    "what must be there": {"name": "ToolSearch", "arguments": {"query": "+aaaa +bbbb +ool +000"}},
    "a number": {"name": "ToolSearch", "arguments": {"query": "123 77"}},
}
"""What a client looks for among thousands of odd names."""


async def during_crowds(directory: Path, crowd: str) -> list[Stall]:
    """List thousands of tools and prompts with odd names, look for one, and change the rules."""
    garbage.begin()
    async with in_process(directory, {"costly": costly(crowd), "other": costly()}) as running:
        await ready(running.upstream)
        fleet = running.upstream.fleet
        await until(lambda: len(fleet.now.routes.prompts) > MANY // 10, lambda: fleet.changed)
        await running.probe.beats(FOLLOWING)
        running.note(f"{crowd}: listed")
        for what, params in LOOKUPS.items():
            await running.client.request("tools/call", params)
            await running.probe.beats(FOLLOWING)
            running.note(f"{crowd}: {what}")
        path = directory / "servers.yaml"
        rules = {"tools": {"deny": ["*7*", "x?y*"]}, "searchHints": {"1": "one"}}
        servers = {"costly": {**costly(crowd), **rules}, "other": costly()}
        path.write_text(json.dumps({"servers": servers, "watch": False, "state": False}))
        await Reloading(fleet, os.environ).renew()
        await running.probe.beats(2 * FOLLOWING)
        await running.client.request("tools/call", LOOKUPS["an unknown name"])
        await running.probe.beats(FOLLOWING)
        running.note(f"{crowd}: other rules")
        return running.stalls
