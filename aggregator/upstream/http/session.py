"""One session of a client of the handshake era: what it said of itself, and what is under way.

It is opened from what `initialize` settled and from nothing else, so that whoever knows that much
could open it again.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskStatus
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.server.session import ServerSession
from mcp.shared.dispatcher import CallOptions, coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    InitializeRequestParams,
    JSONRPCNotification,
    RequestId,
)
from starlette.requests import Request
from starlette.types import Scope

from aggregator.basics.clock import running_clock
from aggregator.basics.signals import Signal
from aggregator.jsonrpc.encoding import encoded
from aggregator.upstream.http.exchange import Exchange, Listening, Stoppable, notification
from aggregator.upstream.http.questions import Questions
from aggregator.upstream.http.replicas.mail import Mail
from aggregator.upstream.http.reply import Reply, status_here
from aggregator.upstream.http.sessions import Owner

IDLE_TIME = 30 * 60.0
"""Seconds after which a session without requests and without a stream is ended."""
SESSION = "mcp-session-id"


class Introduction(NamedTuple):
    """What a handshake settles."""

    client: InitializeRequestParams
    """What the client said of itself."""
    version: str
    """The version that both speak."""


class Place(NamedTuple):
    """Where a session is, and where it was opened; nothing where there is one place only."""

    replica: str
    home: str
    mail: Mail | None = None
    """How it is reached in other places."""
    loaded: tuple[str, ...] = ()
    """What it has loaded there."""


HERE = Place("", "")
INITIALIZED = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")


class Session:
    """Answers one client; it is also how that client is reached outside of its requests."""

    def __init__(
        self,
        key: str,
        introduction: Introduction,
        owner: Owner,
        server: Server[Any],
        place: Place = HERE,
    ) -> None:
        self.key = key
        self.owner = owner
        """Who alone may use it: whoever has opened it."""
        self.headers = ((SESSION.encode(), key.encode()),)
        """What every response of it says."""
        self.home = place.home
        """Which replica has opened it first, where there are several."""
        self.loaded = place.loaded
        """What it had loaded elsewhere when it came."""
        self._mail = place.mail
        self.questions = Questions(place.replica)
        self._connection = Connection(
            self,
            protocol_version=introduction.version,
            session_id=key,
            client_params=introduction.client,
        )
        self._runner = ServerRunner(server, self._connection, {})
        self._exchanges: dict[RequestId, Stoppable] = {}
        self._group = anyio.create_task_group()
        self._stream: Reply | None = None
        self._listening: Listening | None = None
        self._listens = Signal()
        self._is_welcome = False
        self._ended = anyio.Event()
        self._has_ended = False
        self._uses = 0
        self._clock = running_clock()
        self._idle_since = self._clock()

    @property
    def is_idle(self) -> bool:
        """Whether there is neither a request nor a stream of it now."""
        return not self._uses

    @property
    def has_ended(self) -> bool:
        """Whether it takes nothing more."""
        return self._has_ended

    @property
    def has_stream(self) -> bool:
        """Whether its client listens already."""
        return self._stream is not None

    def use(self) -> None:
        """Keep it from being idle."""
        self._uses += 1

    def let_go(self) -> None:
        """Let it be idle again, if nobody else uses it."""
        self._uses -= 1
        if not self._uses:
            self._idle_since = self._clock()

    def end(self) -> None:
        """Take nothing more; what is under way is told so."""
        self._has_ended = True
        self._ended.set()
        self._listens.send()
        self.questions.close()
        for exchange in tuple(self._exchanges.values()):
            exchange.stop("closed")
        if self._listening is not None:
            self._listening.stop("closed")

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Live until it is ended, or nobody has used it for long."""
        try:
            async with self._group as group:
                task_status.started()
                while not self.has_ended:
                    await self._age()
                group.cancel_scope.cancel()
        finally:
            self.end()
            await aclose_shielded(self._connection)

    async def _age(self) -> None:
        due = self._idle_since + IDLE_TIME if self.is_idle else anyio.current_time() + IDLE_TIME
        with anyio.move_on_after(due - anyio.current_time()):
            await self._ended.wait()
        if self.is_idle and anyio.current_time() >= self._idle_since + IDLE_TIME:
            self.end()

    async def answer(self, exchange: Exchange, reply: Reply) -> None:
        """Answer a request, unless it is taken back or the session ends before."""
        self.begin(exchange.request_id, exchange)
        try:
            answer = await exchange.run(self._runner)
        finally:
            self.forget(exchange.request_id, exchange)
        if exchange.has_been_stopped:
            # Who has taken a request back may be about to leave, and the SDK's client breaks if
            # there is JSON for it then; what it is told on a stream of events it may leave unread.
            await reply.begin()
        await reply.end(None if answer is None else encoded(answer), status_here(answer))

    def begin(self, request: RequestId, exchange: Stoppable) -> None:
        """Know what the client means by the id of a request."""
        self._exchanges[coerce_request_id(request)] = exchange

    def forget(self, request: RequestId, exchange: Stoppable) -> None:
        """Know it no longer, unless it means another one since."""
        key = coerce_request_id(request)
        if self._exchanges.get(key) is exchange:
            del self._exchanges[key]

    def speaking(self, exchange: Exchange) -> ServerSession:
        """Return what reaches the client for as long as a request of it is under way."""
        return ServerSession(exchange, self._connection)

    def welcome(self, scope: Scope) -> None:
        """Take the client for ready: whoever it has told so may be another replica, or nobody."""
        if not self._is_welcome:
            self.hear(INITIALIZED, Request(scope))

    def hear(self, message: JSONRPCNotification, request: Request) -> None:
        """Take a notification, and act on it beside everything else."""
        if message.method == INITIALIZED.method:
            if self._is_welcome:
                return
            self._is_welcome = True
        if message.method == "notifications/cancelled":
            cancelled = cancelled_request_id_from_params(message.params)
            if not self.cancel(cancelled) and self._mail is not None:
                self._mail.cancelled(self.key, cancelled)
        if not self.has_ended:
            self._group.start_soon(self._act_on, message, _Heard(self, request))

    def cancel(self, request: RequestId | None) -> bool:
        """Go on no longer with a request that is taken back; say whether there is such a one."""
        key = None if request is None else coerce_request_id(request)
        exchange = None if key is None else self._exchanges.get(key)
        if exchange is not None:
            exchange.stop("cancelled")
        return exchange is not None

    async def _act_on(self, message: JSONRPCNotification, heard: "_Heard") -> None:
        await self._runner.on_notify(heard, message.method, message.params)

    @contextmanager
    def heard_on(self, stream: Reply, listening: Listening) -> Generator[None, None, None]:
        """Have what is no part of an answer go there for the length of the block."""
        self._stream, self._listening = stream, listening
        self._listens.send()
        try:
            yield
        finally:
            self._stream = self._listening = None

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002 - as the SDK has it; nobody sets any
    ) -> dict[str, Any]:
        """Ask the client outside of its requests, as soon as it listens.

        Raises:
            MCPError: It refuses, or has gone.
        """
        return await self.questions.ask(self._tell_when_heard, method, params)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002 - as the SDK has it; nobody sets any
    ) -> None:
        """Tell the client something, if it listens."""
        if self._stream is not None:
            await self._stream.tell(notification(method, params))
        elif self._mail is not None:
            self._mail.told(self.key, method, params)

    async def _tell_when_heard(self, message: bytes) -> bool:
        while not self.has_ended:
            if self._stream is not None and await self._stream.tell(message):
                return True
            await self._listens.wait()
        return False


class _Heard:
    """What whoever acts on a notification reaches the client by: nothing of it is answered."""

    request_id = None
    transport = TransportContext(kind="streamable-http", can_send_request=True)
    can_send_request = True

    def __init__(self, session: Session, request: Request) -> None:
        self.message_metadata = ServerMessageMetadata(request_context=request)
        self.send_raw_request = session.send_raw_request
        self.notify = session.notify
        self.cancel_requested = anyio.Event()

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell nothing: a notification makes no progress."""
