"""The SDK's server with our answers in it: handlers, capabilities, and the form of each era."""

import json
import logging
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import anyio
import mcp_types as types
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aggregator import __version__
from aggregator.announce import announce
from aggregator.catalog import as_object
from aggregator.connect import Era
from aggregator.fleet import Fleet
from aggregator.inspection import (
    SERVERS_URI,
    TOOLS_URI,
    servers_document,
    tool_document,
    tools_document,
)
from aggregator.names import ToolName
from aggregator.session import Session
from aggregator.toolsearch import CALL_READ_ONLY_TOOL, CALL_TOOL, TOOL_SEARCH, instructions
from aggregator.upstream.calls import Calls
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.listing import Listing
from aggregator.upstream.recollection import Recollection
from aggregator.upstream.searching import Searching

logger = logging.getLogger(__name__)

NAME = "aggregator"
"""What we call ourselves: short, since clients build tool names from it."""

MAX_CONVERSATIONS = 4096
"""Clients remembered at a time; more than may have sessions."""

Context = ServerRequestContext[Any, Any]


class Upstream(Server[Any]):
    """One MCP server for clients of either era."""

    def __init__(self, fleet: Fleet, listing: Listing, recollection: Recollection) -> None:
        self._bus = InMemorySubscriptionBus()
        super().__init__(
            NAME,
            version=__version__,
            title="MCP tool aggregator",
            instructions=instructions(
                list(fleet.descriptions.items()), fleet.config.settings.surface
            ),
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        page = types.PaginatedRequestParams
        self.add_request_handler("tools/list", page, self._list_tools)
        self.add_request_handler("tools/call", types.CallToolRequestParams, self._call_tool)
        self.add_request_handler("resources/list", page, self._list_resources)
        self.add_request_handler("resources/templates/list", page, self._list_templates)
        self.add_request_handler(
            "resources/read", types.ReadResourceRequestParams, self._read_resource
        )
        self.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._attend
        )
        # Results of servers pass as they came: the SDK would validate them and drop what it
        # does not know. A middleware that answers by itself is trusted with its own result.
        self.middleware.append(self._answer_directly)
        self.fleet = fleet
        self._listing = listing
        self._calls = Calls(fleet)
        self._searching = Searching(fleet, listing)
        self._recollection = recollection
        self._conversations: dict[str, Conversation] = {}
        self.listed = anyio.Event()
        """Set once a client has fetched its first list."""

    @property
    def grows_lists(self) -> bool:
        """Whether a surface is pinned that only the handshake era allows."""
        return self.fleet.config.settings.surface in ("promote", "hybrid")

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Say truthfully that the list changes, also where the SDK's callers do not ask."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities or {"codex/tool-catalog-cache": {"cacheable": False}},
            extensions,
        )

    async def announce_changes(self) -> None:
        """Tell every modern client that listens when the list they share changes."""
        conversation = self._stranger("modern")
        conversation.shown.tools = self._listing.tools(conversation)

        async def tell() -> None:
            await self._bus.publish(ToolsListChanged())

        await announce(
            self.fleet,
            look=lambda: self._listing.tools(conversation),
            shown=conversation.shown,
            tell=tell,
        )

    async def _attend(self, ctx: Context, _params: types.NotificationParams) -> None:
        """Keep a handshake client told of changes; ends with its session."""
        conversation = self._conversation(ctx)
        conversation.shown.tools = self._listing.tools(conversation)
        try:
            await announce(
                self.fleet,
                look=lambda: self._listing.tools(conversation),
                shown=conversation.shown,
                tell=ctx.session.send_tool_list_changed,
            )
        finally:
            self._recollection.end(conversation)
            self._conversations.pop(_session_key(ctx) or "", None)

    async def _answer_directly(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer what concerns tools without a detour through the SDK's models."""
        era = _era(ctx)
        # Before the handshake only the SDK knows what may be answered.
        if ctx.request_id is None or (era == "handshake" and ctx.session.client_params is None):
            return await call_next(ctx)
        try:
            match ctx.method:
                case "tools/list":
                    result = self._listing.answer(self._conversation(ctx))
                    self.listed.set()
                case "tools/call" if isinstance((ctx.params or {}).get("name"), str):
                    result = await self._called(ctx, ctx.params or {})
                case _:
                    return await call_next(ctx)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - the one boundary between a bug and a client
            raise _unexpected(error) from None
        return self._enveloped(result) if era == "modern" else result

    async def _list_tools(
        self, ctx: Context, _params: types.PaginatedRequestParams
    ) -> dict[str, Any]:
        return self._listing.answer(self._conversation(ctx))

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        return await self._called(ctx, params.model_dump(by_alias=True, exclude_none=True))

    async def _called(self, ctx: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        conversation = self._conversation(ctx)
        conversation.session.called()
        match params["name"]:
            case name if name == TOOL_SEARCH:
                tell = ctx.session.send_tool_list_changed
                result = await self._searching.search(conversation, params, tell)
                self._recollection.note(conversation)
                return result
            case name if name in (CALL_TOOL, CALL_READ_ONLY_TOOL):
                return await self._calls.relayed(
                    conversation,
                    params,
                    ctx.session.report_progress,
                    read_only=name == CALL_READ_ONLY_TOOL,
                )
            case _:
                return await self._calls.direct(conversation, params, ctx.session.report_progress)

    async def _list_resources(
        self, _ctx: Context, _params: types.PaginatedRequestParams
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=SERVERS_URI,
                    name="servers",
                    title="Servers",
                    description="Each server: its state and why, how many tools, which protocol",
                    mime_type="application/json",
                ),
                types.Resource(
                    uri=TOOLS_URI,
                    name="tools",
                    title="Tools",
                    description="Every tool: its name, server, tokens, and whether it is deferred",
                    mime_type="application/json",
                ),
            ]
        )

    async def _list_templates(
        self, _ctx: Context, _params: types.PaginatedRequestParams
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=f"{TOOLS_URI}/{{name}}",
                    name="tool",
                    title="One tool",
                    description="The whole definition of one tool",
                    mime_type="application/json",
                )
            ]
        )

    async def _read_resource(
        self, _ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        text = json.dumps(self._document(uri), ensure_ascii=False, indent=1)
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[contents])

    def _document(self, uri: str) -> dict[str, Any]:
        if uri == SERVERS_URI:
            return servers_document(
                self.fleet.catalog, self.fleet.descriptions, anyio.current_time()
            )
        if uri == TOOLS_URI:
            return tools_document(self.fleet.catalog)
        name = uri.removeprefix(f"{TOOLS_URI}/")
        entry = self.fleet.catalog.entries.get(ToolName(name))
        if entry is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no resource `{uri}`", {"uri": uri})
        return tool_document(entry)

    def _conversation(self, ctx: Context) -> Conversation:
        """Find what is remembered of the client that asks, or begin to remember."""
        key = _session_key(ctx)
        if key is None:
            return self._stranger(_era(ctx), _client_name(ctx))
        known = self._conversations.get(key)
        if known is None:
            known = self._stranger(_era(ctx), _client_name(ctx))
            known.has_memory = True
            self._recollection.begin(known)
            self._conversations[key] = known
            if len(self._conversations) > MAX_CONVERSATIONS:
                # A client that opens sessions and never says it is ready is not seen to leave.
                del self._conversations[next(iter(self._conversations))]
        return known

    def _stranger(self, era: Era, client: str = "") -> Conversation:
        session = Session(self.fleet.config.settings.max_loaded)
        return Conversation(era, client, session, has_memory=False)

    def _enveloped(self, result: dict[str, Any]) -> dict[str, Any]:
        """Add what every result of the modern era must carry."""
        meta = {
            types.SERVER_INFO_META_KEY: self.server_info_stamp,
            **as_object(result.get("_meta")),
        }
        return {"resultType": "complete", **result, "_meta": meta}


def make_server(fleet: Fleet, recollection: Recollection) -> Upstream:
    """Make the server that clients are served by."""
    return Upstream(fleet, Listing(fleet), recollection)


def _era(ctx: Context) -> Era:
    return "modern" if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else "handshake"


def _client_name(ctx: Context) -> str:
    params = ctx.session.client_params
    return "" if params is None else params.client_info.name


def _session_key(ctx: Context) -> str | None:
    """Tell clients apart: a stream has one, HTTP has one for each session of the handshake era."""
    if ctx.request is None:
        return ""
    return ctx.request.headers.get("mcp-session-id") if _era(ctx) == "handshake" else None


def _unexpected(error: Exception) -> MCPError:
    """Keep the details of a bug of ours in the log, under a number the client is given too."""
    number = uuid4().hex[:12]
    logger.error("internal error %s", number, exc_info=error)
    return MCPError(
        types.INTERNAL_ERROR,
        f"The aggregator failed to answer (error {number}). Its log says why; try again",
    )
