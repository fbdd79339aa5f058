"""Calls of tools: find the entry that is meant, make the arguments fit, forward, translate."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Ready, ToolEntry
from aggregator.errors import (
    ERROR_META,
    CallError,
    InvalidCallError,
    NotReadOnlyError,
    UnknownToolError,
)
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.json import JsonObject, as_object
from aggregator.names import Ambiguous, ServerName
from aggregator.search.repair import nearest
from aggregator.toolsearch import (
    CALL_READ_ONLY_TOOL,
    CALL_TOOL,
    CallRequest,
    Problem,
    conform,
    parse_call,
    unseen_problem,
)
from aggregator.upstream.forwarding import Forward, Forwarding
from aggregator.upstream.links import Links
from aggregator.upstream.listing import budget
from aggregator.upstream.request import Request

RELAYS = (CALL_TOOL, CALL_READ_ONLY_TOOL)
"""The meta-tools that call another tool."""


class Calls:
    """Forwards calls to the servers they are meant for."""

    def __init__(self, fleet: Fleet, forwarding: Forwarding, links: Links) -> None:
        self._fleet = fleet
        self._forwarding = forwarding
        self._links = links

    async def answer(self, request: Request) -> dict[str, Any]:
        """Answer `tools/call` of an entry, by its own name or through a meta-tool.

        Raises:
            MCPError: There is no such tool, or its server answered with an error of its own.
        """
        try:
            asked = _read(request.params, request.now)
            if (server := _awaited(asked.name, request.now)) is not None:
                await self._fleet.until_ready(server)
                request = replace(request, now=self._fleet.now)
            entry = _find(asked.name, request.now)
            forward = _prepare(entry, asked.arguments, request)
            result = await self._forwarding.send(forward, request)
        except CallError as error:
            if isinstance(error, UnknownToolError) and request.params["name"] not in RELAYS:
                raise MCPError(types.INVALID_PARAMS, str(error)) from error
            return failure(error)
        self._links.learn(entry.server, result)
        return result


def _read(params: Mapping[str, Any], now: Now) -> CallRequest:
    """Read which entry a call is meant for, and with which arguments.

    Raises:
        InvalidCallError: It cannot be read.
    """
    if params["name"] not in RELAYS:
        return CallRequest(params["name"], as_object(params.get("arguments")))
    asked = parse_call(params.get("arguments"), lambda name: now.find(name) is not None)
    if isinstance(asked, Problem):
        raise InvalidCallError(asked.text)
    return asked


def _find(name: str, now: Now) -> ToolEntry:
    """Find the entry a name means.

    Raises:
        UnknownToolError: No server offers it.
    """
    found = now.find(name)
    if isinstance(found, str):
        return now.catalog.entries[found]
    if isinstance(found, Ambiguous):
        raise UnknownToolError(
            name, found.candidates, "Several tools have that name: use one of these"
        )
    raise UnknownToolError(name, nearest(name, now.catalog.entries), _absent(now))


def _prepare(entry: ToolEntry, arguments: JsonObject, request: Request) -> Forward:
    """Make a call ready to be sent on; its arguments must fit what the model may not have seen.

    Raises:
        InvalidCallError: They do not.
        NotReadOnlyError: The entry may change something, and must not.
    """
    conversation = request.conversation
    if request.params["name"] == CALL_READ_ONLY_TOOL and not entry.read_only:
        raise NotReadOnlyError(entry.name)
    seen = conversation.seen(entry)
    if seen != "same":
        conformed = conform(arguments, entry.input_schema)
        if conformed.problems:
            conversation.saw(entry)
            text = unseen_problem(
                entry,
                conformed.problems,
                changed=seen == "changed",
                max_chars=budget(request.now, conversation),
            )
            raise InvalidCallError(text)
        arguments = conformed.arguments
    conversation.used(entry.name)
    own = {**request.params, "name": entry.own_name, "arguments": arguments}
    return Forward(entry.server, "tools/call", own, entry.name)


def _awaited(name: str, now: Now) -> ServerName | None:
    """Say which server that is not ready would offer a tool of this name, if nobody else does."""
    if now.find(name) is not None:
        return None
    for server, state in now.catalog.servers.items():
        prefix = now.config.servers[server].prefix.casefold()
        if not isinstance(state, Ready) and f"__{prefix}__" in f"__{name}".casefold():
            return server
    return None


def _absent(now: Now) -> str:
    """Name the servers whose tools are not known, since the tool may be theirs."""
    absent = [*now.catalog.pending, *now.catalog.failed]
    if not absent:
        return ""
    names = ", ".join(f"`{name}`" for name in absent)
    return f"It may belong to a server that is not connected: {names}"


def failure(error: CallError) -> dict[str, Any]:
    """Make a result of an error: a text that the model should read, and facts for programs."""
    content = [{"type": "text", "text": str(error)}]
    return {"content": content, "isError": True, "_meta": {ERROR_META: dict(error.facts)}}
