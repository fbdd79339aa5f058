"""Prompts of all servers, and completion of their arguments and of templates."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import as_object
from aggregator.fleet.now import Now
from aggregator.names import ServerName
from aggregator.upstream.forwarding import Forward, Forwarding
from aggregator.upstream.request import Request
from aggregator.upstream.resources import OWN_SCHEME

MAX_COMPLETIONS = 100
"""Values that the protocol allows in one answer."""

NO_COMPLETION: dict[str, Any] = {"completion": {"values": []}}


class Prompts:
    """Answers what clients ask about prompts."""

    def __init__(self, forwarding: Forwarding) -> None:
        self._forwarding = forwarding

    async def get(self, request: Request) -> dict[str, Any]:
        """Get a prompt from its server.

        Raises:
            MCPError: There is no such prompt, or its server answered with an error.
        """
        name = str(request.params["name"])
        if request.now.routes.prompt(name) is None:
            request = await self._forwarding.after_start(request, "prompts")
        entry = request.now.routes.prompt(name)
        if entry is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt `{name}`")
        own = {**request.params, "name": entry.own_name}
        forward = Forward(entry.server, "prompts/get", own, name)
        return await self._forwarding.send_or_refuse(forward, request)

    async def complete(self, request: Request) -> dict[str, Any]:
        """Have the server of a prompt or a template complete an argument.

        Raises:
            MCPError: There is no such prompt or template, or its server answered with an error.
        """
        reference = as_object(request.params.get("ref"))
        if str(reference.get("uri")).startswith(OWN_SCHEME):
            return _complete_name(as_object(request.params.get("argument")), request.now)
        server, own = _resolve(reference, request.now)
        if not _completes(server, request.now):
            return NO_COMPLETION
        forward = Forward(server, "completion/complete", {**request.params, "ref": own}, "")
        return await self._forwarding.send_or_refuse(forward, request)


def answer_list(request: Request) -> dict[str, Any]:
    """Answer `prompts/list`: one page."""
    return request.cacheable({"prompts": list(request.now.routes.shown_prompts)})


def _complete_name(argument: Mapping[str, Any], now: Now) -> dict[str, Any]:
    """Complete the one argument that our own templates have: the name of a tool."""
    begin = str(argument.get("value", ""))
    names = [name for name in now.catalog.entries if name.startswith(begin)]
    shown = names[:MAX_COMPLETIONS]
    return {
        "completion": {"values": shown, "total": len(names), "hasMore": len(shown) < len(names)}
    }


def _resolve(reference: Mapping[str, Any], now: Now) -> tuple[ServerName, dict[str, Any]]:
    """Return whose a reference is, in its server's words."""
    if reference.get("type") == "ref/prompt":
        prompt = now.routes.prompt(str(reference.get("name")))
        if prompt is not None:
            return prompt.server, {**reference, "name": prompt.own_name}
    else:
        route = now.routes.find(str(reference.get("uri")))
        if route is not None:
            return route.server, {**reference, "uri": route.uri}
    raise MCPError(types.INVALID_PARAMS, "There is no such prompt or resource template")


def _completes(server: ServerName, now: Now) -> bool:
    known = now.catalog.known.get(server)
    return known is not None and known.offers.completes
