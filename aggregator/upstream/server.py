"""The SDK's server with our answers in it: handlers, capabilities, and the form of each era."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

import anyio
import mcp_types as types
from mcp.server import NotificationOptions, Server
from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_client_request
from pydantic import BaseModel, ValidationError

from aggregator import __version__
from aggregator.downstream.link import LEVELS
from aggregator.downstream.questions import declared
from aggregator.eras import Era
from aggregator.fleet.fleet import Fleet
from aggregator.json import as_object, is_object
from aggregator.names import ToolName
from aggregator.toolsearch import TOOL_SEARCH
from aggregator.upstream import listing, prompts, resources
from aggregator.upstream.announcing import Subject, announce
from aggregator.upstream.audience import Audience
from aggregator.upstream.caller import Context, ContextCaller, era_of, introduced, notify
from aggregator.upstream.calls import Calls
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.forwarding import Forwarding
from aggregator.upstream.links import Links
from aggregator.upstream.listing import tools_for
from aggregator.upstream.prompts import Prompts
from aggregator.upstream.recollection import Recollection
from aggregator.upstream.request import Request
from aggregator.upstream.resources import Resources
from aggregator.upstream.searching import Searching
from aggregator.upstream.subscriptions import Subscriptions
from aggregator.upstream.watches import Watcher

logger = logging.getLogger(__name__)

NAME = "aggregator"
"""What we call ourselves: short, since clients build tool names from it."""

Tell = Callable[[], Awaitable[None]]
"""Tells one client, or all that listen, that a list changed."""

SERVED: Mapping[str, type[BaseModel]] = {
    "tools/list": types.PaginatedRequestParams,
    "tools/call": types.CallToolRequestParams,
    "prompts/list": types.PaginatedRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "resources/list": types.PaginatedRequestParams,
    "resources/templates/list": types.PaginatedRequestParams,
    "resources/read": types.ReadResourceRequestParams,
    "resources/subscribe": types.SubscribeRequestParams,
    "resources/unsubscribe": types.UnsubscribeRequestParams,
    "completion/complete": types.CompleteRequestParams,
    "logging/setLevel": types.SetLevelRequestParams,
}
"""What we answer ourselves; the SDK derives our capabilities from it."""

INTRODUCING = ("initialize", "server/discover")
"""What is answered with instructions."""

EVERYTHING_CHANGES = NotificationOptions(
    prompts_changed=True, resources_changed=True, tools_changed=True
)


class Upstream(Server[Any]):
    """One MCP server for clients of either era."""

    def __init__(self, fleet: Fleet, audience: Audience, recollection: Recollection) -> None:
        self._bus = InMemorySubscriptionBus()
        self._listener = ListenHandler(self._bus)
        super().__init__(
            NAME,
            version=__version__,
            title="MCP tool aggregator",
            on_subscriptions_listen=self._listen,
            get_tool_input_schema=self._schema,
        )
        for method, params_type in SERVED.items():
            self.add_request_handler(method, params_type, self._answer_modelled)
        self.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._attend
        )
        # Results of servers pass as they came: the SDK would validate them and drop what it
        # does not know. A middleware that answers by itself is trusted with its own result.
        # It stands alone: nobody reads the spans that the SDK would make of each message.
        self.middleware[:] = [self._answer_directly]
        self.fleet = fleet
        links = Links()
        self._forwarding = Forwarding(fleet)
        self._subscriptions = Subscriptions(fleet, audience.watches)
        self._resources = Resources(self._forwarding, self._subscriptions, audience.watches, links)
        self._prompts = Prompts(self._forwarding)
        self._calls = Calls(fleet, self._forwarding, links)
        self._searching = Searching(fleet)
        self._recollection = recollection
        self._conversations = audience.conversations
        self._listeners = Watcher()
        self.listed = anyio.Event()
        """Set once a client has fetched its first list."""
        self._at_once: Mapping[str, Callable[[Request], dict[str, Any]]] = {
            "tools/list": self._list_tools,
            "prompts/list": prompts.answer_list,
            "resources/list": resources.answer_list,
            "resources/templates/list": resources.answer_templates,
            "logging/setLevel": _set_level,
        }
        """What is answered from what is known."""
        self._answers: Mapping[str, Callable[[Request], Awaitable[dict[str, Any]]]] = {
            "tools/call": self._calls.answer,
            "prompts/get": self._prompts.get,
            "resources/read": self._resources.read,
            "resources/subscribe": self._resources.subscribe,
            "resources/unsubscribe": self._resources.unsubscribe,
            "completion/complete": self._prompts.complete,
        }
        """What is answered by a server."""

    @property
    def grows_lists(self) -> bool:
        """Whether a surface is pinned that only the handshake era allows."""
        return self.fleet.now.config.settings.surface in ("promote", "hybrid")

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Say truthfully that the lists change, also where the SDK's callers do not ask."""
        return super().create_initialization_options(
            notification_options or EVERYTHING_CHANGES,
            experimental_capabilities or {"codex/tool-catalog-cache": {"cacheable": False}},
            extensions,
        )

    async def announce_changes(self) -> None:
        """Tell modern clients of changes, and hold calls that outlive a request of theirs."""

        async def updated(uri: str) -> None:
            await self._bus.publish(ResourceUpdated(uri))

        subjects = self._subjects(
            self._stranger("modern"),
            tools=lambda: self._bus.publish(ToolsListChanged()),
            prompts=lambda: self._bus.publish(PromptsListChanged()),
            resources=lambda: self._bus.publish(ResourcesListChanged()),
        )
        async with self._forwarding.parking.open(), anyio.create_task_group() as group:
            group.start_soon(self._listeners.run, updated)
            group.start_soon(self._subscriptions.run)
            await announce(self.fleet.changed, subjects)

    async def _attend(self, ctx: Context, _params: types.NotificationParams) -> None:
        """Keep a handshake client told of changes; ends with its session."""
        conversation = self._conversation(ctx)
        session = ctx.session
        subjects = self._subjects(
            conversation,
            tools=session.send_tool_list_changed,
            prompts=session.send_prompt_list_changed,
            resources=session.send_resource_list_changed,
        )
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(conversation.watcher.run, session.send_resource_updated)
                group.start_soon(conversation.notices.run, partial(notify, session))
                await announce(self.fleet.changed, subjects)
        finally:
            self._subscriptions.forget(conversation.watcher)
            self._recollection.end(conversation)
            self._conversations.forget(_session_key(ctx) or "")

    def _subjects(
        self, conversation: Conversation, *, tools: Tell, prompts: Tell, resources: Tell
    ) -> tuple[Subject, ...]:
        """Return the lists of which a client is kept told, and how it is told of each."""
        fleet = self.fleet

        def look_at_resources() -> object:
            routes = fleet.now.routes
            return routes.shown_resources, routes.shown_templates

        return (
            Subject(lambda: tools_for(fleet.now, conversation), tools, conversation.shown),
            Subject(lambda: fleet.now.routes.shown_prompts, prompts),
            Subject(look_at_resources, resources),
        )

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell a modern client of what it asks to be told of, for as long as it listens."""
        asked = params.notifications
        uris = asked.resource_subscriptions or []
        async with self._resources.watching(uris, self._listeners, self.fleet.now) as watched:
            # What a server refuses to tell of is not promised.
            promised = asked.model_copy(update={"resource_subscriptions": watched or None})
            return await self._listener(ctx, params.model_copy(update={"notifications": promised}))

    async def _answer_directly(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer by ourselves, without a detour through the SDK's models."""
        self._meet(ctx)
        # Before the handshake, and of what is malformed, only the SDK knows what may be answered.
        if not _is_well_formed(ctx):
            result = await call_next(ctx)
            return self._introduced(ctx, result) if ctx.method in INTRODUCING else result
        try:
            request = self._request(ctx)
            result = await self._answer(ctx.method, request)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - the one boundary between a bug and a client
            raise _unexpected(error) from None
        return self._enveloped(result) if era_of(ctx) == "modern" else result

    async def _answer_modelled(self, ctx: Context, _params: BaseModel) -> dict[str, Any]:
        """Answer what the SDK takes to be well-formed although we did not."""
        return await self._answer(ctx.method, self._request(ctx))

    async def _answer(self, method: str, request: Request) -> dict[str, Any]:
        if (look := self._at_once.get(method)) is not None:
            return look(request)
        if method == "tools/call":
            request.conversation.called()
            if request.params["name"] == TOOL_SEARCH:
                return await self._search(request)
        return await self._answers[method](request)

    def _list_tools(self, request: Request) -> dict[str, Any]:
        self.listed.set()
        return listing.answer(request)

    async def _search(self, request: Request) -> dict[str, Any]:
        result = await self._searching.search(request)
        self._recollection.note(request.conversation)
        return result

    def _request(self, ctx: Context) -> Request:
        conversation = self._conversation(ctx)
        caller = ContextCaller(ctx, conversation)
        return Request(self.fleet.now, conversation, caller, ctx.params or {})

    def _schema(self, name: str) -> Mapping[str, Any] | None:
        """Return what the headers of a call are checked against."""
        entry = self.fleet.now.catalog.entries.get(ToolName(name))
        return None if entry is None else entry.input_schema

    def _introduced(self, ctx: Context, result: HandlerResult) -> HandlerResult:
        """Tell a client how it will reach tools, by its era and its name."""
        if not isinstance(result, dict):
            return result
        era: Era = "handshake" if ctx.method == "initialize" else "modern"
        introduced = as_object(as_object(ctx.params).get("clientInfo")).get("name")
        client = introduced if isinstance(introduced, str) else _client_name(ctx)
        text = listing.instructions_for(self.fleet.now, self._stranger(era, client))
        return {**result, "instructions": text}

    def _meet(self, ctx: Context) -> None:
        """Take note of what a new client can be asked."""
        params = ctx.params or {}
        if ctx.method == "initialize":
            self.fleet.meet(declared(as_object(params.get("capabilities"))))
        elif ctx.method == "server/discover":
            meta = as_object(params.get("_meta"))
            self.fleet.meet(declared(as_object(meta.get(types.CLIENT_CAPABILITIES_META_KEY))))

    def _conversation(self, ctx: Context) -> Conversation:
        """Find what is remembered of the client that asks, or begin to remember."""
        key = _session_key(ctx)
        if key is None:
            return self._stranger(era_of(ctx), _client_name(ctx))
        return self._conversations.of(key, lambda: self._begin(ctx))

    def _begin(self, ctx: Context) -> Conversation:
        """Begin to remember a client, with what earlier sessions of it have left behind."""
        client, is_alone = _client_name(ctx), ctx.request is None
        return Conversation(
            era_of(ctx),
            client,
            max_loaded=self.fleet.now.config.settings.max_loaded,
            is_alone=is_alone,
            known_relist=self._recollection.relists(client),
            capabilities=introduced(ctx),
            remembered=self._recollection.loaded(client) if is_alone else (),
        )

    def _stranger(self, era: Era, client: str = "") -> Conversation:
        """Return a client of which nothing will be remembered."""
        return Conversation(era, client, has_memory=False)

    def _enveloped(self, result: dict[str, Any]) -> dict[str, Any]:
        """Add what every result of the modern era must carry."""
        meta = {
            types.SERVER_INFO_META_KEY: self.server_info_stamp,
            **as_object(result.get("_meta")),
        }
        return {"resultType": "complete", **result, "_meta": meta}


def _set_level(request: Request) -> dict[str, Any]:
    level = request.params["level"]
    request.conversation.wants_logs(level if level in LEVELS else None)
    return {}


def _is_well_formed(ctx: Context) -> bool:
    """Whether a message is a request that we can answer without the SDK's help."""
    if ctx.request_id is None or ctx.method not in SERVED:
        return False
    if era_of(ctx) == "handshake" and ctx.session.client_params is None:
        return False
    if ctx.method == "tools/call":
        params = ctx.params or {}
        arguments = params.get("arguments")
        return isinstance(params.get("name"), str) and (arguments is None or is_object(arguments))
    try:
        validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
    except (KeyError, ValidationError):
        return False
    return True


def _client_name(ctx: Context) -> str:
    params = ctx.session.client_params
    return "" if params is None else params.client_info.name


def _session_key(ctx: Context) -> str | None:
    """Tell clients apart: a stream has one, HTTP has one for each session of the handshake era."""
    if ctx.request is not None:
        return ctx.request.headers.get("mcp-session-id") if era_of(ctx) == "handshake" else None
    # A stream of the handshake era begins with the words by which its client introduced itself.
    return f"stream {id(ctx.session.client_params)}" if era_of(ctx) == "handshake" else ""


def _unexpected(error: Exception) -> MCPError:
    """Keep the details of a bug of ours in the log, under a number the client is given too."""
    number = uuid4().hex[:12]
    logger.error("internal error %s", number, exc_info=error)
    return MCPError(
        types.INTERNAL_ERROR,
        f"The aggregator failed to answer (error {number}). Its log says why; try again",
    )
