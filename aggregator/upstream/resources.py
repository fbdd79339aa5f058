"""Resources of all servers, and our own beside them: listed, read, watched."""

import json
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import anyio
import anyio.lowlevel
import mcp_types as types
from anyio import to_thread
from mcp.shared.exceptions import MCPError

from aggregator.basics.effort import Effort, Turn
from aggregator.basics.turns import in_turns
from aggregator.catalog import Catalog
from aggregator.config import Config
from aggregator.fleet.now import Now
from aggregator.fleet.pinning import RECORDING, recording
from aggregator.fleet.routes import SCHEME, Route
from aggregator.names import ServerName, ToolName
from aggregator.records.inspection import (
    LOCK_URI,
    POOL_URI,
    SERVERS_URI,
    TOOLS_URI,
    pool_document,
    servers_document,
    tool_document,
    tools_document,
)
from aggregator.toolsearch.offers.skills import Skill, SkillFileError, read_file
from aggregator.upstream.forwarding import RESOURCE_NOT_FOUND, Forward, Forwarding
from aggregator.upstream.links import Links
from aggregator.upstream.listing import search_for_hosts
from aggregator.upstream.login_invitations import Outlook
from aggregator.upstream.request import Request, keepable
from aggregator.upstream.results.guard import Guard
from aggregator.upstream.results.telling import name_in
from aggregator.upstream.skill_files import SKILLS_URI, contents_of, shown_skill
from aggregator.upstream.subscriptions import Subscriptions
from aggregator.upstream.watches import Watcher, Watches

OWN_SCHEME = "catalog://"
"""What the URIs of our own resources begin with."""

MAX_WATCHED = 1_000
"""Resources that one client may watch, or one request to listen may name."""
MAX_EDITIONS = 16
"""Pools, of several profiles, of which it is known where they can be asked for again."""
SOUGHT_AT_ONCE = 10
"""Resources that are looked for before others have their turn, with one effort for them all."""

NoteServer = Callable[[ServerName], None]
"""Told which server has what is asked for."""

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
        self, forwarding: Forwarding, subscriptions: Subscriptions, watches: Watches, guard: Guard
    ) -> None:
        self._forwarding = forwarding
        self._subscriptions = subscriptions
        self._watches = watches
        self._guard = guard
        self._pooled: list[tuple[Catalog, Config, str]] = []

    async def read(self, request: Request, note: NoteServer = lambda _: None) -> dict[str, Any]:
        """Read one of our own resources, or one of a server, which is noted.

        Raises:
            MCPError: There is no such resource, or its server answered with an error.
        """
        uri = str(request.params["uri"])
        if uri.startswith(f"{SKILLS_URI}/"):
            return keepable(await _read_skill(uri, request), 0, request.caller.era)
        if (name := name_in(uri)) is not None:
            if (contents := await self._guard.contents(name, request)) is None:
                raise no_resource(uri, request)
            return keepable({"contents": contents}, 0, request.caller.era)
        if uri == self._edition(request.now):
            return keepable(_told(uri, {"edition": uri}), 0, request.caller.era)
        if uri == POOL_URI or uri.startswith(f"{POOL_URI}/"):
            request = await self._forwarding.after_comparing(request)
            pool = {"search": search_for_hosts(request.now), **pool_document(request.now.catalog)}
            pool["edition"] = self._edition(request.now)
            return keepable(_told(uri, pool), 0, request.caller.era)
        if uri.startswith(OWN_SCHEME):
            # The catalog is asked for its state at this moment.
            request = await self._forwarding.after_comparing(request)
            text = await in_turns(_own(uri, request, self._forwarding))
            read = {"contents": [{"uri": uri, "mimeType": _JSON, "text": text}]}
            return keepable(read, 0, request.caller.era)
        request, route = await self._routed(uri, request)
        note(route.server)
        own = {**request.params, "uri": route.uri}
        forward = Forward(route.server, "resources/read", own, uri)
        result = await self._forwarding.send_or_refuse(forward, request)
        return result if "resultType" in result else keepable(result, 0, request.caller.era)

    def _edition(self, now: Now) -> str:
        """Return where this pool can be asked for again; elsewhere as soon as it may be another."""
        for catalog, config, uri in self._pooled:
            if catalog is now.catalog and config is now.config:
                return uri
        made = f"{POOL_URI}/{uuid4().hex}"
        self._pooled = [(now.catalog, now.config, made), *self._pooled[: MAX_EDITIONS - 1]]
        return made

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
            self._limit(watcher)
            self._subscriptions.add_own(watcher, uri)
        else:
            # One that is watched already is asked for again, and not watched twice.
            route = self._watches.find(watcher, uri)
            if route is None:
                _, route = await self._routed(uri, request)
            self._watches.drop(watcher, route, uri)
            self._limit(watcher)
            await self._forwarding.until_own(route.server, request)
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
        self, uris: list[str], watcher: Watcher, outlook: Outlook, links: Links
    ) -> AsyncGenerator[list[str], None]:
        """Watch resources for the length of the block, and say which of them.

        Those that servers refuse are left out, and what is more than may be watched; those of
        nobody never change.
        """
        uris, now = list(dict.fromkeys(uris))[:MAX_WATCHED], self._forwarding.seen(outlook)
        own = [uri for uri in uris if _is_own(uri, now)]
        if not all(_is_own(uri, now) or now.routes.tells(uri, links) for uri in uris):
            now = await self._forwarding.started("resources", outlook)
        routes, unsought = await _routes(uris, now, links)
        for uri in own:
            self._subscriptions.add_own(watcher, uri)
        try:
            async with self._subscriptions.held(watcher, routes) as refused:
                yield [uri for uri in uris if uri not in refused and uri not in unsought]
        finally:
            for uri in own:
                self._watches.drop_own(watcher, uri)

    def _limit(self, watcher: Watcher) -> None:
        """Let nobody watch without end."""
        if self._watches.number(watcher) >= MAX_WATCHED:
            text = f"{MAX_WATCHED:,} resources are watched already: unsubscribe from some first"
            raise MCPError(types.INVALID_REQUEST, text)

    async def _routed(self, uri: str, request: Request) -> tuple[Request, Route]:
        """Find whose a resource is, also of a server that has only just begun to start."""
        links, effort = request.conversation.links, Effort()
        if not request.now.routes.tells(uri, links):
            # Whose it is may be about to say so, whoever's template it fits until then.
            request = await self._forwarding.after_start(request, "resources")
        route = request.now.routes.find(uri, links, effort)
        if route is None:
            raise no_resource(uri, request, is_sure=not effort.fell_short)
        return request, route


async def _routes(uris: list[str], now: Now, links: Links) -> tuple[dict[str, Route], set[str]]:
    """Find whose resources are, and which there was no effort for to look for."""
    routes, unsought = dict[str, Route](), set[str]()
    for number, uri in enumerate(uris):
        if number % SOUGHT_AT_ONCE == 0:
            await anyio.lowlevel.checkpoint()
        effort = Effort().part(SOUGHT_AT_ONCE)
        if (route := now.routes.find(uri, links, effort)) is not None:
            routes[uri] = route
        elif effort.fell_short:
            unsought.add(uri)
    return routes, unsought


def answer_list(request: Request) -> dict[str, Any]:
    """Answer `resources/list`: one page."""
    routes = request.now.routes
    skills = map(shown_skill, routes.local.values())
    return request.cacheable({"resources": [*OWN_RESOURCES, *skills, *routes.shown_resources]})


def answer_templates(request: Request) -> dict[str, Any]:
    """Answer `resources/templates/list`: one page."""
    templates = [*OWN_TEMPLATES, *request.now.routes.shown_templates]
    return request.cacheable({"resourceTemplates": templates})


def _skill_file(uri: str, now: Now) -> tuple[Skill, str] | None:
    """Return the skill on this machine, and the path in it, that a URI of ours stands for."""
    name, _, path = uri.removeprefix(f"{SKILLS_URI}/").partition("/")
    skill = now.routes.local.get(name) if uri.startswith(f"{SKILLS_URI}/") else None
    return None if skill is None else (skill, unquote(path))


async def _read_skill(uri: str, request: Request) -> dict[str, Any]:
    """Read a file of a skill on this machine.

    Raises:
        MCPError: There is none.
    """
    if (found := _skill_file(uri, request.now)) is None:
        raise no_resource(uri, request)
    try:
        content = await to_thread.run_sync(read_file, *found)
    except SkillFileError as error:
        raise MCPError(no_resource(uri, request).code, str(error), {"uri": uri}) from None
    return {"contents": [contents_of(uri, content)]}


def _is_own(uri: str, now: Now) -> bool:
    if _skill_file(uri, now) is not None:
        return True
    head, _, name = uri.rpartition("/")
    is_tool = head == TOOLS_URI and name in now.catalog.entries
    return is_tool or uri in (SERVERS_URI, TOOLS_URI, POOL_URI)


def _own(uri: str, request: Request, forwarding: Forwarding) -> Generator[None, None, str]:
    """Return what one of our own resources says; yield where a turn is over."""
    text: str | None
    if uri.startswith(f"{LOCK_URI}/"):
        text = yield from lock_text(request.now, ServerName(uri.removeprefix(f"{LOCK_URI}/")))
    else:
        document = _document(uri, request.now, forwarding)
        text = None if document is None else _written(document)
    if text is None:
        raise no_resource(uri, request)
    return text


def _told(uri: str, document: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [{"uri": uri, "mimeType": _JSON, "text": _written(document)}]}


def _written(value: object) -> str:
    # With an indent it would be written by Python, value by value, and not by C.
    return json.dumps(value, ensure_ascii=False, default=dict)


def _document(uri: str, now: Now, forwarding: Forwarding) -> dict[str, Any] | None:
    if uri == SERVERS_URI:
        return servers_document(
            now.catalog,
            now.descriptions,
            anyio.current_time(),
            now.problem,
            noise=forwarding.noise,
            unpinned=now.unpinned,
            unaudited=now.unaudited,
            uncounted=now.uncounted,
            processes=forwarding.processes,
        )
    if uri == TOOLS_URI:
        return tools_document(now.catalog)
    entry = now.catalog.entries.get(ToolName(uri.removeprefix(f"{TOOLS_URI}/")))
    return None if entry is None else tool_document(entry, now.catalog.scale)


def lock_text(now: Now, server: ServerName) -> Generator[None, None, str | None]:
    """Return what would be written down of a server, and what clients call each of its tools.

    It is for commands alone, and so in no list: it has what is withheld from models.
    Yield where a turn is over.
    """
    known = now.catalog.known.get(server)
    if known is None:
        return None
    record = yield from recording(now.config.servers[server], known)
    turn, tools = Turn(), list[str]()
    for entry in known.whole:
        tools.append(f"{_written(entry.own_name)}: {_written(record.tools[entry.own_name])}")
        if turn.is_over(RECORDING, cleaned=entry.characters):
            yield
    names = {entry.own_name: entry.name for entry in known.whole}
    facts = {key: each for key, each in record._asdict().items() if key != "tools"}
    rest = _written({**facts, "names": names}).removesuffix("}")
    return f'{rest}, "tools": {{{", ".join(tools)}}}}}'


def no_resource(uri: str, request: Request, *, is_sure: bool = True) -> MCPError:
    """Say that there is no such resource, in the way of the client's era."""
    text = f"There is no resource `{uri}`"
    if not is_sure:
        text += " in the lists, and there are too many templates to try them all"
    code = types.INVALID_PARAMS if request.caller.era == "modern" else RESOURCE_NOT_FOUND
    if request.now.routes.is_learned(uri, request.conversation.links):
        text = f"Several servers have a resource `{uri}`: read `{SCHEME}<server>/{uri}`"
    return MCPError(code, text, {"uri": uri})
