"""Prompts of all servers, and completion of their arguments and of templates."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Ready
from aggregator.fleet.fleet import Fleet
from aggregator.json import as_object
from aggregator.names import ServerName
from aggregator.upstream.caller import ContextCaller
from aggregator.upstream.forwarding import Errand, Forwarding
from aggregator.upstream.resources import OWN_SCHEME, Resources

MAX_COMPLETIONS = 100
"""Values that the protocol allows in one answer."""

NO_COMPLETION: dict[str, Any] = {"completion": {"values": []}}


class Prompts:
    """Answers what clients ask about prompts."""

    def __init__(self, fleet: Fleet, forwarding: Forwarding, resources: Resources) -> None:
        self._fleet = fleet
        self._forwarding = forwarding
        self._resources = resources

    def listing(self) -> list[dict[str, Any]]:
        """Return every prompt there is now."""
        return self._resources.routes.shown_prompts()

    def answer_list(self, caller: ContextCaller) -> dict[str, Any]:
        """Answer `prompts/list`: one page."""
        return self._resources.cached(caller, {"prompts": self.listing()})

    async def get(self, params: Mapping[str, Any], caller: ContextCaller) -> dict[str, Any]:
        """Get a prompt from its server.

        Raises:
            MCPError: There is no such prompt, or its server answered with an error.
        """
        name = str(params["name"])
        entry = self._resources.routes.prompts.get(name)
        if entry is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt `{name}`")
        own = {**params, "name": entry.own_name}
        return await self._forwarding.send_or_refuse(
            Errand(entry.server, "prompts/get", own, name), caller
        )

    async def complete(self, params: Mapping[str, Any], caller: ContextCaller) -> dict[str, Any]:
        """Have the server of a prompt or a template complete an argument.

        Raises:
            MCPError: There is no such prompt or template, or its server answered with an error.
        """
        if str(as_object(params.get("ref")).get("uri")).startswith(OWN_SCHEME):
            return self._complete_name(as_object(params.get("argument")))
        server, reference = self._referred(as_object(params.get("ref")))
        if not self._completes(server):
            return NO_COMPLETION
        errand = Errand(server, "completion/complete", {**params, "ref": reference}, "")
        return await self._forwarding.send_or_refuse(errand, caller)

    def _complete_name(self, argument: Mapping[str, Any]) -> dict[str, Any]:
        """Complete the one argument that our own templates have: the name of a tool."""
        begin = str(argument.get("value", ""))
        names = [name for name in self._fleet.catalog.entries if name.startswith(begin)]
        shown = names[:MAX_COMPLETIONS]
        return {
            "completion": {
                "values": shown,
                "total": len(names),
                "hasMore": len(shown) < len(names),
            }
        }

    def _referred(self, reference: Mapping[str, Any]) -> tuple[ServerName, dict[str, Any]]:
        """Return whose a reference is, in its server's words."""
        routes = self._resources.routes
        if reference.get("type") == "ref/prompt":
            prompt = routes.prompts.get(str(reference.get("name")))
            if prompt is not None:
                return prompt.server, {**reference, "name": prompt.own_name}
        else:
            route = routes.find(str(reference.get("uri")))
            if route is not None:
                return route.server, {**reference, "uri": route.uri}
        raise MCPError(types.INVALID_PARAMS, "There is no such prompt or resource template")

    def _completes(self, server: ServerName) -> bool:
        state = self._fleet.catalog.servers.get(server)
        return isinstance(state, Ready) and state.offers.completes
