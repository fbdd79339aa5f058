"""Resources of all servers, and our own beside them: listed, read, watched."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.fleet.now import Now
from aggregator.fleet.routes import Route
from aggregator.inspection import (
    SERVERS_URI,
    TOOLS_URI,
    servers_document,
    tool_document,
    tools_document,
)
from aggregator.names import ToolName
from aggregator.upstream.forwarding import RESOURCE_NOT_FOUND, Forward, Forwarding
from aggregator.upstream.links import Links
from aggregator.upstream.request import Request
from aggregator.upstream.subscriptions import Subscriptions
from aggregator.upstream.watches import Watcher, Watches

OWN_SCHEME = "catalog://"
"""What the URIs of our own resources begin with."""

_JSON = "application/json"

OWN_RESOURCES: tuple[dict[str, Any], ...] = (
    {
        "uri": SERVERS_URI,
        "name": "servers",
        "title": "Servers",
        "description": "Each server: its state and why, how many tools, which protocol",
        "mimeType": _JSON,
    },
    {
        "uri": TOOLS_URI,
        "name": "tools",
        "title": "Tools",
        "description": "Every tool: its name, server, tokens, and whether it is deferred",
        "mimeType": _JSON,
    },
)

OWN_TEMPLATES: tuple[dict[str, Any], ...] = (
    {
        "uriTemplate": f"{TOOLS_URI}/{{name}}",
        "name": "tool",
        "title": "One tool",
        "description": "The whole definition of one tool",
        "mimeType": _JSON,
    },
)


class Resources:
    """Answers what clients ask about resources."""

    def __init__(
        self, forwarding: Forwarding, subscriptions: Subscriptions, watches: Watches, links: Links
    ) -> None:
        self._forwarding = forwarding
        self._subscriptions = subscriptions
        self._watches = watches
        self._links = links

    async def read(self, request: Request) -> dict[str, Any]:
        """Read one of our own resources, or one of a server.

        Raises:
            MCPError: There is no such resource, or its server answered with an error.
        """
        uri = str(request.params["uri"])
        if uri.startswith(OWN_SCHEME):
            return request.cacheable(_read_own(uri, request))
        route = self._route(uri, request)
        own = {**request.params, "uri": route.uri}
        forward = Forward(route.server, "resources/read", own, uri)
        result = await self._forwarding.send_or_refuse(forward, request)
        if request.caller.era == "handshake" or "resultType" in result:
            return result
        return {"ttlMs": 0, "cacheScope": "private", **result}

    async def subscribe(self, request: Request) -> dict[str, Any]:
        """Watch a resource for a client that has a session.

        Raises:
            MCPError: There is no such resource, or its server refuses.
        """
        uri, watcher = str(request.params["uri"]), request.conversation.watcher
        if uri.startswith(OWN_SCHEME):
            if not _is_own(uri, request.now):
                raise no_resource(uri, request)
            self._watches.drop_own(watcher, uri)
            self._watches.add_own(watcher, uri)
        else:
            # One that is watched already is asked for again, and not watched twice.
            route = self._watches.find(watcher, uri) or self._route(uri, request)
            self._watches.drop(watcher, route, uri)
            await self._subscriptions.add(watcher, route, uri)
        return {}

    async def unsubscribe(self, request: Request) -> dict[str, Any]:
        """Watch a resource no longer."""
        uri, watcher = str(request.params["uri"]), request.conversation.watcher
        self._watches.drop_own(watcher, uri)
        if (route := self._watches.find(watcher, uri)) is not None:
            self._subscriptions.remove(watcher, route, uri)
        return {}

    @asynccontextmanager
    async def watching(
        self, uris: list[str], watcher: Watcher, now: Now
    ) -> AsyncGenerator[list[str], None]:
        """Watch resources for the length of the block, and say which of them.

        Those that servers refuse are left out; those of nobody never change.
        """
        found = {uri: now.routes.find(uri, self._links) for uri in uris}
        routes = {uri: route for uri, route in found.items() if route is not None}
        own = [uri for uri in uris if _is_own(uri, now)]
        for uri in own:
            self._watches.add_own(watcher, uri)
        try:
            async with self._subscriptions.held(watcher, routes) as refused:
                yield [uri for uri in uris if uri not in refused]
        finally:
            for uri in own:
                self._watches.drop_own(watcher, uri)

    def _route(self, uri: str, request: Request) -> Route:
        route = request.now.routes.find(uri, self._links)
        if route is None:
            raise no_resource(uri, request)
        return route


def answer_list(request: Request) -> dict[str, Any]:
    """Answer `resources/list`: one page."""
    return request.cacheable({"resources": [*OWN_RESOURCES, *request.now.routes.shown_resources]})


def answer_templates(request: Request) -> dict[str, Any]:
    """Answer `resources/templates/list`: one page."""
    templates = [*OWN_TEMPLATES, *request.now.routes.shown_templates]
    return request.cacheable({"resourceTemplates": templates})


def _is_own(uri: str, now: Now) -> bool:
    head, _, name = uri.rpartition("/")
    is_tool = head == TOOLS_URI and name in now.catalog.entries
    return is_tool or uri in (SERVERS_URI, TOOLS_URI)


def _read_own(uri: str, request: Request) -> dict[str, Any]:
    document = _document(uri, request.now)
    if document is None:
        raise no_resource(uri, request)
    text = json.dumps(document, ensure_ascii=False, indent=1)
    return {"contents": [{"uri": uri, "mimeType": _JSON, "text": text}]}


def _document(uri: str, now: Now) -> dict[str, Any] | None:
    if uri == SERVERS_URI:
        return servers_document(now.catalog, now.descriptions, anyio.current_time(), now.problem)
    if uri == TOOLS_URI:
        return tools_document(now.catalog)
    entry = now.catalog.entries.get(ToolName(uri.removeprefix(f"{TOOLS_URI}/")))
    return None if entry is None else tool_document(entry)


def no_resource(uri: str, request: Request) -> MCPError:
    """Say that there is no such resource, in the way of the client's era."""
    code = types.INVALID_PARAMS if request.caller.era == "modern" else RESOURCE_NOT_FOUND
    return MCPError(code, f"There is no resource `{uri}`", {"uri": uri})
