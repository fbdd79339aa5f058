"""Our own standard input and output as the streams the SDK serves a client on.

The SDK's transport reads standard input in a thread that cannot be interrupted, drops the requests
in flight when input ends, and does not answer a line it cannot read. This one waits for the
descriptor, lets what was asked be answered first, and says what was wrong with a line.
"""

import os
import select
import stat
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial

import anyio
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from aggregator.basics.shutdown_notice import ShutdownNotice
from aggregator.jsonrpc.decoding import Noise
from aggregator.jsonrpc.outbox import LINE_BREAK
from aggregator.jsonrpc.pipes import (
    MAX_ANSWER_BYTES,
    MAX_WAITING_BYTES,
    MessageReader,
    MessageWriter,
    Tap,
)
from aggregator.upstream.opening import Opening
from aggregator.upstream.takeover import MAX_REQUEST_BYTES, NOTHING, Takeover

DRAIN_PATIENCE = 5.0
"""Seconds that calls in flight have to finish once no more requests can come."""
STOP_PATIENCE = 3.0
"""The same when we are told to stop: whoever told us does not wait for ever."""
SILENCE = 0.5
"""Seconds after which whoever told us wonders what is waited for."""
DEAF_AFTER = 0.5
"""Seconds without a byte being read after which a client is not waited for when we stop."""
LOOK_INTERVAL = 0.05
"""Seconds between two looks whether there is still a client to answer."""
FLUSH_PATIENCE = 1.0
"""Seconds that the last answers have to be written."""
MAX_UNREAD = 2000
"""Requests that may be under way of a client that does not read what it is answered."""

_LEAVING = "We are shutting down: ask again when we are back"
_UNREAD = "Too many requests are under way: read some of the answers, then ask again"

_ENDLESS = frozenset({"subscriptions/listen"})
"""Requests that are answered only when the connection ends; nobody waits for those."""


class Outstanding:
    """The requests that have come in and are not answered yet."""

    def __init__(self) -> None:
        self._requests = Counter[RequestId]()
        self._settled: anyio.Event | None = None

    def came(self, message: JSONRPCMessage) -> None:
        """Note a message from the client."""
        if isinstance(message, JSONRPCRequest) and message.method not in _ENDLESS:
            self._requests[coerce_request_id(message.id)] += 1
        elif isinstance(message, JSONRPCNotification) and message.method.endswith("/cancelled"):
            self._settle((message.params or {}).get("requestId"))

    def went(self, message: JSONRPCMessage) -> None:
        """Note a message to the client."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._settle(message.id)

    def __len__(self) -> int:
        return self._requests.total()

    async def settle(self, patience: float = DRAIN_PATIENCE) -> None:
        """Wait, within bounds, until nothing is outstanding."""
        with anyio.move_on_after(patience):
            while self._requests:
                self._settled = self._settled or anyio.Event()
                await self._settled.wait()
        self.forget()

    def forget(self) -> None:
        """Wait no more: what has not come by now is not waited for again when the input ends."""
        self._requests.clear()

    def _settle(self, request: object) -> None:
        identifier = coerce_request_id(request) if isinstance(request, str | int) else None
        if identifier is not None and identifier in self._requests:
            self._requests[identifier] -= 1
            if not self._requests[identifier]:
                del self._requests[identifier]
        if self._settled is not None and not self._requests:
            self._settled.set()
            self._settled = None


class ClientReader(MessageReader):
    """What the client sends."""

    def __init__(
        self,
        stdin: int,
        writer: "ClientWriter",
        outstanding: Outstanding,
        takeover: Takeover = NOTHING,
        opening: Opening | None = None,
    ) -> None:
        super().__init__(
            stdin,
            MAX_REQUEST_BYTES,
            on_noise=writer.complain,
            on_end=self._settle,
        )
        self._writer = writer
        self._outstanding = outstanding
        self._opening = opening or Opening()
        self._is_leaving = False
        self._decoded.extend(takeover.messages)
        self._lines.extend(self._framing.feed(takeover.rest))

    async def receive(self, tap: Tap | None = None) -> SessionMessage | Exception:
        """Return the next message, unless it is a request for which it is too late or too much."""
        while True:
            item = await super().receive(tap and partial(self._offer, tap))
            if not isinstance(item, SessionMessage):
                return item
            message, reason = item.message, self._reason_against()
            if reason is None or not isinstance(message, JSONRPCRequest):
                self._outstanding.came(message)
                self._opening.came(message)
                return item
            self._writer.decline(message, reason)

    def _offer(self, tap: Tap, message: JSONRPCMessage) -> bool:
        """Offer a request to whoever may take it, unless it is to be declined."""
        if not isinstance(message, JSONRPCRequest) or self._reason_against() is not None:
            return False
        is_taken = tap(message)
        if is_taken:
            self._outstanding.came(message)
            self._opening.came(message)
        return is_taken

    async def _settle(self) -> None:
        """Let what was asked be answered while there is anybody to read it."""
        async with _only_until(self._writer.until_gone):
            await self._outstanding.settle()
        self._outstanding.forget()

    def leave(self) -> None:
        """Take no more requests; answers to ours may still be needed."""
        self._is_leaving = True

    def _reason_against(self) -> str | None:
        """Say why no request is taken now: each that is has to be unwound before we can leave."""
        if self._is_leaving:
            return _LEAVING
        is_unread = self._writer.is_full and len(self._outstanding) >= MAX_UNREAD
        return _UNREAD if is_unread else None

    async def opens_modern(self) -> bool:
        """Look, without taking it, whether the first request is of the modern era."""
        lead: list[JSONRPCMessage] = []
        with suppress(anyio.EndOfStream):
            while not (lead and isinstance(lead[-1], JSONRPCRequest)):
                item = await super().receive()
                if isinstance(item, SessionMessage):
                    lead.append(item.message)
        self._decoded.extendleft(reversed(lead))
        return bool(lead) and _is_modern(lead[-1])


class ClientWriter(MessageWriter):
    """What the client is sent."""

    def __init__(
        self,
        stdout: int,
        outstanding: Outstanding,
        takeover: Takeover = NOTHING,
        opening: Opening | None = None,
    ) -> None:
        super().__init__(os.fdopen(stdout, "wb", buffering=0, closefd=False))
        self._descriptor = stdout
        self._outstanding = outstanding
        self._takeover = takeover
        self._opening = opening or Opening()
        if takeover.unsent:
            self._waiting.add(takeover.unsent.removesuffix(LINE_BREAK))

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message."""
        await super().send(item)
        self._outstanding.went(item.message)

    def answer(self, message: JSONRPCResponse | JSONRPCError) -> None:
        """Write an answer without waiting; it is lost if nobody reads any more."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.put(message)
        self._outstanding.went(message)

    def put(self, message: JSONRPCMessage) -> None:
        """Write a message, unless it answers what has been answered before us."""
        self._opening.went(message)
        if not self._takeover.withholds(message):
            super().put(message)

    async def until_deaf(self) -> None:
        """Wait until the client has not read for so long that no answer will reach it."""
        while True:
            now = anyio.current_time()
            due = DEAF_AFTER + (now if self.blocked_since is None else self.blocked_since)
            if due <= now:
                return
            await anyio.sleep_until(due)

    async def until_gone(self) -> None:
        """Wait until nobody can read what the client is sent, as when its process has ended."""
        poll = select.poll()
        # That the other end is closed is told of whatever is asked for.
        poll.register(self._descriptor, 0)
        while not poll.poll(0):  # noqa: ASYNC110 - not every event loop tells of it
            await anyio.sleep(LOOK_INTERVAL)

    def complain(self, _noise: Noise) -> None:
        """Tell the client that it sent what cannot be read."""
        message = "This line is not a JSON-RPC 2.0 message; send one per line"
        self._err(None, ErrorData(code=PARSE_ERROR, message=message), MAX_WAITING_BYTES)

    def decline(self, request: JSONRPCRequest, reason: str) -> None:
        """Tell the client that we do not take a request."""
        self._err(request.id, ErrorData(code=INTERNAL_ERROR, message=reason), MAX_ANSWER_BYTES)

    def _err(self, identifier: RequestId | None, error: ErrorData, most: int) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.send_now(JSONRPCError(jsonrpc="2.0", id=identifier, error=error), most)


@contextmanager
def claimed() -> Generator[tuple[int, int], None, None]:
    """Keep standard input and output for the protocol: whatever else is printed goes to stderr."""
    private_in, private_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield private_in, private_out
    finally:
        os.dup2(private_in, 0)
        os.dup2(private_out, 1)
        os.close(private_in)
        os.close(private_out)


@asynccontextmanager
async def standard_streams(
    stdin: int,
    stdout: int,
    *,
    stop: anyio.Event,
    takeover: Takeover = NOTHING,
    opening: Opening | None = None,
    shutdown_notice: ShutdownNotice | None = None,
) -> AsyncGenerator[tuple[ClientReader, ClientWriter], None]:
    """Serve a client on two descriptors until its input ends or `stop` is set.

    Whoever sets it is told by the notice, if there is one, which calls that waits for.
    """
    outstanding, opening = Outstanding(), opening or Opening()
    writer = ClientWriter(stdout, outstanding, takeover, opening)
    reader = ClientReader(stdin, writer, outstanding, takeover, opening)

    async def heed() -> None:
        await stop.wait()
        reader.leave()
        async with _only_until(writer.until_deaf), anyio.create_task_group() as telling:
            if shutdown_notice is not None:
                telling.start_soon(_tell_of_calls, outstanding, shutdown_notice)
            await outstanding.settle(STOP_PATIENCE)
            telling.cancel_scope.cancel()
        outstanding.forget()
        reader.end()

    with _non_blocking(stdin), _non_blocking(stdout):
        async with anyio.create_task_group() as group:
            group.start_soon(heed)
            group.start_soon(writer.run)
            yield reader, writer
            async with _only_until(writer.until_deaf):
                with anyio.move_on_after(FLUSH_PATIENCE):
                    await writer.flush()
            reader.end()
            group.cancel_scope.cancel()


async def _tell_of_calls(outstanding: Outstanding, shutdown_notice: ShutdownNotice) -> None:
    """Say how many calls keep whoever stops us waiting."""
    await anyio.sleep(SILENCE)
    if number := len(outstanding):
        shutdown_notice.wait_for_calls(number, STOP_PATIENCE)


@asynccontextmanager
async def _only_until(vain: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Go on with the block only until it is in vain."""

    async def give_up() -> None:
        await vain()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(give_up)
        yield
        group.cancel_scope.cancel()


@contextmanager
def _non_blocking(descriptor: int) -> Generator[None, None, None]:
    """Let a descriptor return at once for the length of the block; a file always does."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        yield
        return
    before = os.get_blocking(descriptor)
    os.set_blocking(descriptor, False)
    try:
        yield
    finally:
        os.set_blocking(descriptor, before)


def _is_modern(message: JSONRPCMessage) -> bool:
    """Whether a request carries what only the modern era has."""
    if not isinstance(message, JSONRPCRequest) or message.method == "initialize":
        return False
    meta = (message.params or {}).get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta
