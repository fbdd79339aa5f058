"""The SDK's server with our answers in it: handlers, capabilities, and the form of each era."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any

import anyio
import mcp_types as types
from mcp.server import NotificationOptions, Server
from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from aggregator import __version__
from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject, as_object
from aggregator.basics.tasks import CANCEL, GET, TASKS, UPDATE
from aggregator.catalog import ToolEntry
from aggregator.downstream.link import LEVELS
from aggregator.downstream.login.home import Home
from aggregator.errors import ERROR_META, ElsewhereError, OverLimitError
from aggregator.fleet.fleet import Fleet
from aggregator.names import ToolName
from aggregator.upstream import listing, prompts, resources
from aggregator.upstream.allowances import UNLIMITED, Allowances
from aggregator.upstream.background import Background
from aggregator.upstream.caller import (
    Context,
    client_name,
    era_of,
    stream_of,
)
from aggregator.upstream.calls import Calls
from aggregator.upstream.change_listeners import ChangeListeners
from aggregator.upstream.client_memory import ClientMemory
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.fast_path import FastPath
from aggregator.upstream.forwarding import Forwarding
from aggregator.upstream.internal_errors import internal_error, new_number
from aggregator.upstream.keeping import Again, again
from aggregator.upstream.logging_in import LoggingIn
from aggregator.upstream.observer import Observer
from aggregator.upstream.offered import Offered
from aggregator.upstream.outlooks import Outlooks
from aggregator.upstream.plain_calls import PlainCalls
from aggregator.upstream.prompts import Prompts
from aggregator.upstream.replica import ALONE, ELSEWHERE, Replica
from aggregator.upstream.request import Request, meeting
from aggregator.upstream.requesters import INTRODUCING, Requesters
from aggregator.upstream.resources import Resources
from aggregator.upstream.results.guard import Guard
from aggregator.upstream.results.kept import KeptResults
from aggregator.upstream.served import SERVED, is_well_formed
from aggregator.upstream.stream_client import QUESTION
from aggregator.upstream.stream_fast_path import Answers, Rest, Source, StreamFastPath
from aggregator.upstream.subscriptions import Subscriptions
from aggregator.upstream.tasks import Tasks, are_offered
from aggregator.upstream.visitor import Visitor

logger = logging.getLogger(__name__)

NAME = "aggregator"
"""What we call ourselves: short, since clients build tool names from it."""

Look = Callable[[Request], dict[str, Any]]
"""Answers from what is known."""

_FREE = nullcontext()

EVERYTHING_CHANGES = NotificationOptions(
    prompts_changed=True, resources_changed=True, tools_changed=True
)


class Upstream(Server[Any]):
    """One MCP server for clients of either era."""

    def __init__(
        self,
        fleet: Fleet,
        connected: ConnectedClients,
        client_memory: ClientMemory,
        logins: Home | None = None,
        replica: Replica = ALONE,
    ) -> None:
        super().__init__(
            NAME,
            version=__version__,
            title="MCP tool aggregator",
            get_tool_input_schema=self.schema,
        )
        for method, params_type in SERVED.items():
            self.add_request_handler(method, params_type, self._answer_modelled)
        # Results of servers pass as they came: the SDK would validate them and drop what it
        # does not know. A middleware that answers by itself is trusted with its own result.
        # It stands alone: nobody reads the spans that the SDK would make of each message.
        self.middleware[:] = [self._answer_directly]
        # The SDK makes a copy for each, and nobody changes any.
        self._stamp = self.server_info_stamp
        self.fleet = fleet
        self.replica = replica
        """What this process is among those that serve the same clients."""
        self._background = Background()
        self._forwarding = Forwarding(fleet, self._background, replica)
        subscriptions = Subscriptions(fleet, connected.watches)
        self.kept = KeptResults(replica.name)
        """The results that were shortened."""
        guard = Guard(self.kept)
        self._resources = Resources(self._forwarding, subscriptions, connected.watches, guard)
        self._prompts = Prompts(self._forwarding)
        self._observer = Observer(fleet.stream, fleet.redact)
        self._logging_in = LoggingIn(fleet, self._forwarding, self._background, logins)
        offered = Offered(fleet, self._forwarding, self._resources)
        self._calls = Calls(
            fleet, self._forwarding, self._logging_in, offered, observer=self._observer, guard=guard
        )
        tasks = Tasks(self._forwarding, replica, guard)
        self._stream_fast_paths: dict[str | None, StreamFastPath] = {}
        """What takes plain calls out of each stream."""
        outlooks = Outlooks(fleet.profile_views, invites=logins is not None)
        self._client_memory = client_memory
        self._requesters = Requesters(
            fleet, connected, client_memory, self._logging_in, outlooks, replica=replica
        )
        self.change_listeners = ChangeListeners(
            fleet,
            connected,
            client_memory,
            requesters=self._requesters,
            outlooks=outlooks,
            resources=self._resources,
            subscriptions=subscriptions,
            kept=self.kept,
            replica=replica,
        )
        """Who is kept told of changes."""
        self._attend()
        self.conversations = connected.conversations
        self._askable = connected.askable
        self.allowances = Allowances(is_shared=replica.post is not None)
        """How much each identity has asked."""
        self.asked = anyio.Event()
        """Set once a client has fetched its list of tools, or asks for what only servers have."""
        self.fast_path = FastPath(
            PlainCalls(fleet, self._forwarding, observer=self._observer, guard=guard),
            fleet,
            connected.askable,
            shape=self._enveloped,
            asked=self.asked,
        )
        """Where plain calls are sent on."""
        self._at_once: Mapping[str, Look] = {
            "tools/list": self._list_tools,
            "logging/setLevel": _set_level,
        }
        """What is answered from what is known."""
        self._listed_once: Mapping[str, tuple[str, Look]] = {
            "prompts/list": ("prompts", prompts.answer_list),
            "resources/list": ("resources", resources.answer_list),
            "resources/templates/list": ("resources", resources.answer_templates),
        }
        """What many clients ask for only once, so that what comes a moment later is waited for."""
        self._answers: Mapping[str, Callable[[Request], Awaitable[dict[str, Any]]]] = {
            "tools/call": self._calls.answer,
            "prompts/get": self._prompts.get,
            "resources/read": self._resources.read,
            "resources/subscribe": self._resources.subscribe,
            "resources/unsubscribe": self._resources.unsubscribe,
            "completion/complete": self._prompts.complete,
            GET: tasks.get,
            UPDATE: tasks.update,
            CANCEL: tasks.cancel,
        }
        """What is answered by a server."""

    def grows_lists(self, profile: str | None = None) -> bool:
        """Whether a surface is pinned for a profile that only the handshake era allows."""
        now = self.fleet.profile_views.seen(profile, self.fleet.now)
        return now.config.settings.surface in ("promote", "hybrid")

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
        async with self._background.open():
            await self.change_listeners.run()

    @asynccontextmanager
    async def stream_fast_path(
        self, source: Source, answers: Answers, visitor: Visitor | None
    ) -> AsyncGenerator[Rest, None]:
        """Take plain calls out of a client's stream, for the length of the block."""
        stream = "" if visitor is None else visitor.key
        async with anyio.create_task_group() as group:
            stream_fast_path = StreamFastPath(self.fast_path, answers=answers, group=group)
            self._stream_fast_paths[stream] = stream_fast_path
            try:
                yield Rest(source, stream_fast_path)
            finally:
                del self._stream_fast_paths[stream]
                stream_fast_path.close()
                group.cancel_scope.cancel()

    def _attend(self) -> None:
        """Have whoever is to be told of changes be known."""
        told, change_listeners = types.NotificationParams, self.change_listeners
        self.add_notification_handler("notifications/initialized", told, change_listeners.attend)
        self.add_notification_handler(
            "notifications/roots/list_changed", told, change_listeners.pass_on_roots
        )
        listening = types.SubscriptionsListenRequestParams
        self.add_request_handler("subscriptions/listen", listening, change_listeners.listen)

    async def _answer_directly(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer by ourselves, without a detour through the SDK's models."""
        self._requesters.meet(ctx)
        # Before the handshake, and of what is malformed, only the SDK knows what may be answered.
        if not is_well_formed(ctx):
            result = await call_next(ctx)
            return self._introduced(ctx, result) if ctx.method in INTRODUCING else result
        try:
            request = self._requesters.request(ctx)
            if (stream_fast_path := self._stream_fast_paths.get(stream_of(ctx))) is not None:
                stream_fast_path.meet(request)
            elif (meet := meeting(ctx)) is not None:
                meet(request)
            result = await self._answer(ctx.method, request)
        except MCPError:
            raise
        except ElsewhereError as error:
            raise MCPError(ELSEWHERE, str(error), {ERROR_META: dict(error.facts)}) from error
        except Exception:
            number = new_number()
            logger.exception("internal error %s", number)
            raise internal_error(number) from None
        return self._enveloped(result) if era_of(ctx) == "modern" else result

    async def _answer_modelled(self, ctx: Context, _params: BaseModel) -> dict[str, Any]:
        """Answer what the SDK takes to be well-formed although we did not."""
        return await self._answer(ctx.method, self._requesters.request(ctx))

    async def _answer(self, method: str, request: Request) -> dict[str, Any]:
        if (look := self._at_once.get(method)) is not None:
            return look(request)
        if (listed := self._listed_once.get(method)) is not None:
            kind, look = listed
            outlook = request.outlook
            await self.fleet.awaiting.until_started(lambda now: outlook(now).catalog.servers, kind)
            return look(request.at(self.fleet.now))
        self.asked.set()
        admitted = await self._askable.admit(method, request, self.fleet.tell_roots_changed)
        if admitted is None:
            return dict(QUESTION)
        request = admitted
        try:
            with self._allowance(request):
                if method == "tools/call":
                    request.conversation.called()
                    now = request.now
                    if now.own_tool(request.params["name"]) == now.own_names.search:
                        return await self._search(request)
                return await self._answers[method](request)
        except OverLimitError as error:
            if method == "tools/call":
                return self._calls.turn_away(request, error)
            raise MCPError(types.INTERNAL_ERROR, str(error), dict(error.facts)) from error

    def _allowance(self, request: Request) -> AbstractContextManager[None]:
        """Return what counts a request for whoever asks, where that is limited."""
        limits, holder = request.now.config.settings.http.limits, request.caller.identity.holder
        if not holder or limits == UNLIMITED:
            return _FREE
        return self.allowances.spent(holder, limits)

    def acknowledge(self, given: Mapping[types.RequestId, Sequence[JsonObject]]) -> None:
        """Take note of the tools that a client was given before us, by its requests for them."""
        self._requesters.acknowledge(given)

    def again(self) -> Again | None:
        """Return what the client on our standard streams would be given if it came again."""
        conversation = self.conversations.newest
        if conversation is None:
            return None
        now = self.fleet.profile_views.seen(conversation.profile, self.fleet.now)
        return again(now, conversation, self._client_memory)

    def _list_tools(self, request: Request) -> dict[str, Any]:
        self.asked.set()
        if request.given is not None:
            # It may be another list than this, of which it is told once it is known to have it.
            self.fleet.changed.send()
        answer = listing.answer(request)
        self._observer.see_list(request, answer["tools"])
        return answer

    async def _search(self, request: Request) -> dict[str, Any]:
        # The first list does not wait for what only searches take.
        from aggregator.upstream.searching import Searching  # noqa: PLC0415 - see above

        conversation = request.conversation
        before = conversation.loaded
        result = await Searching(self.fleet, self._observer).search(request)
        self._client_memory.note(conversation)
        if conversation.loaded != before:
            conversation.share(conversation.loaded)
        return result

    def schema(self, name: str, profile: str | None = None) -> Mapping[str, Any] | None:
        """Return what the headers of a call are checked against, for who sees what a profile shows.

        Who has chosen none may yet be given one: what some may not see is then not checked at all.
        """
        now = self.fleet.profile_views.seen(profile, self.fleet.now)
        entry = now.catalog.entries.get(ToolName(name))
        if entry is None or (profile is None and not self._is_open(entry)):
            return None
        return entry.input_schema

    def _is_open(self, entry: ToolEntry) -> bool:
        """Whether every client may see a tool."""
        now, profile_views = self.fleet.now, self.fleet.profile_views
        server = now.config.servers.get(entry.server)
        if server is None or server.is_personal:
            return False
        views = now.config.settings.views
        return all(entry.name in profile_views.seen(name, now).catalog.entries for name in views)

    def _introduced(self, ctx: Context, result: HandlerResult) -> HandlerResult:
        """Tell a client how it will reach tools, by its era and its name."""
        if not isinstance(result, dict):
            return result
        era: Era = "handshake" if ctx.method == "initialize" else "modern"
        introduced = as_object(as_object(ctx.params).get("clientInfo")).get("name")
        client = introduced if isinstance(introduced, str) else client_name(ctx)
        profile = self._requesters.profile(ctx, client)
        now = self.fleet.profile_views.seen(profile, self.fleet.now)
        nobody = self._requesters.nobody(era, client, profile=profile)
        told = {**result, "instructions": listing.instructions_for(now, nobody)}
        if era == "modern" and are_offered(now):
            capabilities = as_object(result.get("capabilities"))
            tasks: JsonObject = {TASKS: {}}
            extensions = {**as_object(capabilities.get("extensions")), **tasks}
            told["capabilities"] = {**capabilities, "extensions": extensions}
        return told

    def _enveloped(self, result: dict[str, Any]) -> dict[str, Any]:
        """Add what every result of the modern era must carry."""
        meta = {
            types.SERVER_INFO_META_KEY: self._stamp,
            **as_object(result.get("_meta")),
        }
        return {"resultType": "complete", **result, "_meta": meta}


def _set_level(request: Request) -> dict[str, Any]:
    level = request.params["level"]
    request.conversation.wants_logs(level if level in LEVELS else None)
    return {}
