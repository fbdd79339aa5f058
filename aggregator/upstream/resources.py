"""Resources of all servers, and our own beside them: listed, read, watched."""

import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.exposure import time_to_live
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.routes import Route, Routes
from aggregator.inspection import (
    SERVERS_URI,
    TOOLS_URI,
    servers_document,
    tool_document,
    tools_document,
)
from aggregator.json import as_object, items
from aggregator.names import ServerName, ToolName
from aggregator.upstream.caller import ContextCaller
from aggregator.upstream.forwarding import RESOURCE_NOT_FOUND, Errand, Forwarding
from aggregator.upstream.watches import Watcher, Watches

MAX_LEARNED = 4096
"""Links in results that are remembered, so that they can be followed."""

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

    def __init__(self, fleet: Fleet, forwarding: Forwarding) -> None:
        self._fleet = fleet
        self._forwarding = forwarding
        self._routes = Routes(fleet.catalog)
        self._learned = OrderedDict[str, ServerName]()
        self.watches = Watches(fleet)

    @property
    def routes(self) -> Routes:
        """The way to every resource and prompt there is now."""
        if self._routes.catalog is not self._fleet.catalog:
            self._routes = Routes(self._fleet.catalog)
        return self._routes

    def listing(self) -> list[dict[str, Any]]:
        """Return every resource there is now."""
        return [*OWN_RESOURCES, *self.routes.shown_resources()]

    def answer_list(self, caller: ContextCaller) -> dict[str, Any]:
        """Answer `resources/list`: one page."""
        return self.cached(caller, {"resources": self.listing()})

    def answer_templates(self, caller: ContextCaller) -> dict[str, Any]:
        """Answer `resources/templates/list`: one page."""
        templates = [*OWN_TEMPLATES, *self.routes.shown_templates()]
        return self.cached(caller, {"resourceTemplates": templates})

    def cached(self, caller: ContextCaller, answer: dict[str, Any]) -> dict[str, Any]:
        """Say, where that must be said, how long an answer may be kept."""
        if caller.era == "handshake":
            return answer
        ttl = time_to_live(self._fleet.catalog)
        return {"ttlMs": ttl, "cacheScope": "private", **answer}

    async def read(self, params: Mapping[str, Any], caller: ContextCaller) -> dict[str, Any]:
        """Read one of our own resources, or one of a server.

        Raises:
            MCPError: There is no such resource, or its server answered with an error.
        """
        uri = str(params["uri"])
        if uri.startswith(OWN_SCHEME):
            return self.cached(caller, self._own(uri, caller))
        route = self._route(uri, caller)
        errand = Errand(route.server, "resources/read", {**params, "uri": route.uri}, uri)
        result = await self._forwarding.send_or_refuse(errand, caller)
        if caller.era == "handshake" or "resultType" in result:
            return result
        return {"ttlMs": 0, "cacheScope": "private", **result}

    async def subscribe(
        self, params: Mapping[str, Any], caller: ContextCaller, watcher: Watcher
    ) -> None:
        """Watch a resource for a client that has a session.

        Raises:
            MCPError: There is no such resource, or its server refuses.
        """
        uri = str(params["uri"])
        if uri.startswith(OWN_SCHEME):
            self._subscribe_own(uri, caller, watcher)
        else:
            route = self.watches.watches(watcher, uri) or self._route(uri, caller)
            await self.watches.add_once(watcher, route, uri)

    def _subscribe_own(self, uri: str, caller: ContextCaller, watcher: Watcher) -> None:
        if not self._is_own(uri):
            raise no_resource(uri, caller)
        self.watches.remove_own(watcher, uri)
        self.watches.add_own(watcher, uri)

    async def unsubscribe(self, params: Mapping[str, Any], watcher: Watcher) -> None:
        """Watch a resource no longer."""
        uri = str(params["uri"])
        self.watches.remove_own(watcher, uri)
        if (route := self.watches.watches(watcher, uri)) is not None:
            self.watches.remove(watcher, route, uri)

    @asynccontextmanager
    async def watching(self, uris: list[str], watcher: Watcher) -> AsyncGenerator[list[str], None]:
        """Watch resources for the length of the block, and say which of them.

        Those that servers refuse are left out; those of nobody never change.
        """
        found = [(uri, self.routes.find(uri, self._learned)) for uri in uris]
        added: list[tuple[str, Route]] = []
        refused = set[str]()
        own = [uri for uri in uris if self._is_own(uri)]

        async def add(uri: str, route: Route) -> None:
            try:
                await self.watches.add(watcher, route, uri)
                added.append((uri, route))
            except MCPError:
                refused.add(uri)

        try:
            for uri in own:
                self.watches.add_own(watcher, uri)
            async with anyio.create_task_group() as group:
                for uri, route in found:
                    if route is not None:
                        group.start_soon(add, uri, route)
            yield [uri for uri in uris if uri not in refused]
        finally:
            for uri in own:
                self.watches.remove_own(watcher, uri)
            for uri, route in added:
                self.watches.remove(watcher, route, uri)

    def learn(self, server: ServerName, result: Mapping[str, Any]) -> None:
        """Remember what a result links to, so that a client can follow it."""
        for block in items(result.get("content")):
            item = as_object(block)
            uri = item.get("uri") if item.get("type") == "resource_link" else None
            if isinstance(uri, str):
                self._learned[uri] = server
                self._learned.move_to_end(uri)
        while len(self._learned) > MAX_LEARNED:
            self._learned.popitem(last=False)

    def _route(self, uri: str, caller: ContextCaller) -> Route:
        route = self.routes.find(uri, self._learned)
        if route is None:
            raise no_resource(uri, caller)
        return route

    def _is_own(self, uri: str) -> bool:
        head, _, name = uri.rpartition("/")
        is_tool = head == TOOLS_URI and name in self._fleet.catalog.entries
        return is_tool or uri in (SERVERS_URI, TOOLS_URI)

    def _own(self, uri: str, caller: ContextCaller) -> dict[str, Any]:
        document = self._document(uri)
        if document is None:
            raise no_resource(uri, caller)
        text = json.dumps(document, ensure_ascii=False, indent=1)
        return {"contents": [{"uri": uri, "mimeType": _JSON, "text": text}]}

    def _document(self, uri: str) -> dict[str, Any] | None:
        catalog = self._fleet.catalog
        if uri == SERVERS_URI:
            fleet, now = self._fleet, anyio.current_time()
            return servers_document(catalog, fleet.descriptions, now, fleet.problem)
        if uri == TOOLS_URI:
            return tools_document(catalog)
        entry = catalog.entries.get(ToolName(uri.removeprefix(f"{TOOLS_URI}/")))
        return None if entry is None else tool_document(entry)


def no_resource(uri: str, caller: ContextCaller) -> MCPError:
    """Say that there is no such resource, in the way of the client's era."""
    code = types.INVALID_PARAMS if caller.era == "modern" else RESOURCE_NOT_FOUND
    return MCPError(code, f"There is no resource `{uri}`", {"uri": uri})
