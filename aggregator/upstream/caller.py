"""The client behind one of its requests, as the server it is forwarded to may reach it."""

from hashlib import sha256
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, RootModel, ValidationError

from aggregator import eras
from aggregator.downstream.inflight import Notify
from aggregator.downstream.link import LEVELS
from aggregator.downstream.questions import declared
from aggregator.eras import Era
from aggregator.json import JsonObject, as_object
from aggregator.upstream.conversation import Conversation

Context = ServerRequestContext[Any, Any]


class _Raw(BaseModel):
    """A message to a client, as a server sent it and not as the SDK would model it."""

    method: str
    params: dict[str, Any]


_Answer = RootModel[dict[str, Any]]


class ContextCaller:
    """The client of one request."""

    def __init__(self, ctx: Context, conversation: Conversation) -> None:
        self._ctx = ctx
        self.era: Era = era_of(ctx)
        self.key: object = conversation if conversation.has_memory else object()
        """Tells one client from another: without a session, each request is one of its own."""
        meta = as_object((ctx.params or {}).get("_meta"))
        self.capabilities: JsonObject = self._declared(meta, conversation)
        self.notify: Notify = conversation.notices.put
        """Reaches only clients with a session: nobody else can be told anything by itself."""
        self._token = meta.get("progressToken")
        wanted = meta.get(types.LOG_LEVEL_META_KEY)
        self.log_level: str | None = conversation.log_level
        if self.era == "modern":
            self.log_level = wanted if wanted in LEVELS else None

    @property
    def principal(self) -> str:
        """What a token for this client is bound to: its credentials, if it has any."""
        if self._ctx.request is None:
            return ""
        credentials = self._ctx.request.headers.get("authorization", "")
        return sha256(credentials.encode()).hexdigest()

    @property
    def _answers(self) -> bool:
        """Whether the client can be asked: with a request back, or by the result of its own."""
        return self.era == "modern" or self._ctx.session.can_send_request

    def _declared(self, meta: JsonObject, conversation: Conversation) -> JsonObject:
        """Return what the client can be asked."""
        if not self._answers:
            return {}
        if self.era == "modern":
            return declared(as_object(meta.get(types.CLIENT_CAPABILITIES_META_KEY)))
        return conversation.capabilities

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass on a notification, in the form of our own hop."""
        if method == "notifications/progress":
            if self._token is None:
                return
            params = {**params, "progressToken": self._token}
        elif method == "notifications/message" and not self._wants(params.get("level")):
            return
        await notify(self._ctx.session, method, params, self._ctx.request_id)

    async def tell_list_changed(self) -> None:
        """Tell the client, now, that its list of tools has changed."""
        await self._ctx.session.send_tool_list_changed()

    async def ask(self, method: str, params: JsonObject) -> dict[str, Any]:
        """Ask the client on the stream of its request.

        Raises:
            MCPError: The client refuses, or answers in a form that the protocol does not know.
        """
        try:
            answer = await self._ctx.session.send_request(
                _Raw(method=method, params=dict(params)),  # pyright: ignore[reportArgumentType]
                _Answer,
                metadata=ServerMessageMetadata(related_request_id=self._ctx.request_id),
            )
        except ValidationError:
            raise MCPError(types.INTERNAL_ERROR, "The client's answer is malformed") from None
        return answer.root

    def _wants(self, level: object) -> bool:
        """Whether a log message of this level is wanted."""
        if self.log_level is None:
            return self.era == "handshake"
        return reaches(level, self.log_level)


async def notify(
    session: ServerSession,
    method: str,
    params: JsonObject,
    related: types.RequestId | None = None,
) -> None:
    """Send a client a notification as a server sent it."""
    await session.send_notification(
        _Raw(method=method, params=dict(params)),  # pyright: ignore[reportArgumentType]
        related_request_id=related,
    )


def reaches(level: object, least: str) -> bool:
    """Whether a level of log messages is at least another."""
    return level in LEVELS and LEVELS.index(level) >= LEVELS.index(least)


def era_of(ctx: Context) -> Era:
    """Return the era in which a client speaks."""
    return eras.era_of(ctx.protocol_version)


def introduced(ctx: Context) -> JsonObject:
    """Return what a client has declared in the handshake that it can be asked."""
    known = ctx.session.client_capabilities
    if known is None:
        return {}
    return declared(known.model_dump(by_alias=True, mode="json", exclude_none=True))
