"""Calls of tools: find the entry that is meant, make the arguments fit, forward, translate."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Ready, ToolEntry
from aggregator.errors import CallError, UnknownToolError
from aggregator.fleet.fleet import Fleet
from aggregator.json import JsonObject, as_object
from aggregator.names import Ambiguous, ServerName, ToolName
from aggregator.search.repair import nearest
from aggregator.toolsearch import (
    CALL_READ_ONLY_TOOL,
    CALL_TOOL,
    Problem,
    conform,
    parse_call,
    unseen_problem,
)
from aggregator.upstream.caller import ContextCaller
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.forwarding import Errand, Forwarding
from aggregator.upstream.listing import Listing
from aggregator.upstream.resources import Resources


class Calls:
    """Forwards calls to the servers they are meant for."""

    def __init__(
        self, fleet: Fleet, listing: Listing, forwarding: Forwarding, resources: Resources
    ) -> None:
        self._fleet = fleet
        self._listing = listing
        self._forwarding = forwarding
        self._resources = resources

    async def direct(
        self, conversation: Conversation, params: Mapping[str, Any], caller: ContextCaller
    ) -> dict[str, Any]:
        """Call an entry by its own name, whether it is visible or not.

        Raises:
            MCPError: There is no such tool, or its server answered with an error of its own.
        """
        try:
            entry = await self.find(str(params.get("name")))
        except UnknownToolError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except CallError as error:
            return failure(str(error))
        arguments = params.get("arguments")
        return await self._forward(conversation, entry, as_object(arguments), params, caller)

    async def relayed(
        self,
        conversation: Conversation,
        params: Mapping[str, Any],
        caller: ContextCaller,
        *,
        read_only: bool,
    ) -> dict[str, Any]:
        """Call the entry that a call of `CallTool` or `CallReadOnlyTool` names."""
        request = parse_call(params.get("arguments"), self._knows)
        if isinstance(request, Problem):
            return failure(request.text)
        try:
            entry = await self.find(request.name)
        except CallError as error:
            return failure(str(error))
        if read_only and not entry.read_only:
            return failure(
                f"`{CALL_READ_ONLY_TOOL}` does not call `{entry.name}`, since it may change "
                f"something. Use `{CALL_TOOL}` instead"
            )
        return await self._forward(conversation, entry, request.arguments, params, caller)

    async def find(self, name: str) -> ToolEntry:
        """Find the entry a name means; if its server is on its way, wait for it.

        Raises:
            UnknownToolError: No server offers it.
            ServerUnavailableError: Its server is not there.
        """
        found = self._fleet.find(name)
        if found is None and (server := self._awaited(name)) is not None:
            await self._fleet.until_ready(server)
            found = self._fleet.find(name)
        if isinstance(found, str):
            return self._fleet.catalog.entries[ToolName(found)]
        if isinstance(found, Ambiguous):
            raise UnknownToolError(
                name, found.candidates, "Several tools have that name: use one of these"
            )
        raise UnknownToolError(name, nearest(name, self._fleet.catalog.entries), self._absent())

    def _knows(self, name: str) -> bool:
        return self._fleet.find(name) is not None

    def _awaited(self, name: str) -> ServerName | None:
        """Say which server that is not ready would offer a tool of this name."""
        for server, state in self._fleet.catalog.servers.items():
            prefix = self._fleet.config.servers[server].prefix.casefold()
            if not isinstance(state, Ready) and f"__{prefix}__" in f"__{name}".casefold():
                return server
        return None

    def _absent(self) -> str:
        """Name the servers whose tools are not known, since the tool may be theirs."""
        catalog = self._fleet.catalog
        absent = [*catalog.pending, *catalog.failed]
        if not absent:
            return ""
        names = ", ".join(f"`{name}`" for name in absent)
        return f"It may belong to a server that is not connected: {names}"

    async def _forward(
        self,
        conversation: Conversation,
        entry: ToolEntry,
        arguments: JsonObject,
        params: Mapping[str, Any],
        caller: ContextCaller,
    ) -> dict[str, Any]:
        session = conversation.session
        seen = session.seen(entry)
        if seen != "same":
            conformed = conform(arguments, entry.input_schema)
            if conformed.problems:
                session.saw(entry)
                return failure(
                    unseen_problem(
                        entry,
                        conformed.problems,
                        changed=seen == "changed",
                        max_chars=self._listing.budget(conversation),
                    )
                )
            arguments = conformed.arguments
        session.used(entry.name)
        own = {**params, "name": entry.own_name, "arguments": arguments}
        errand = Errand(entry.server, "tools/call", own, entry.name)
        try:
            result = await self._forwarding.send(errand, caller)
        except CallError as error:
            return failure(str(error))
        self._resources.learn(entry.server, result)
        return result


def failure(text: str) -> dict[str, Any]:
    """Make a result of an error that the model should read."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
