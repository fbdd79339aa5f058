"""Read and write messages on pipes without ever blocking the event loop.

Both ends work on the file descriptors themselves: no task and no queue stand between whoever
speaks and the other side, so nothing is read before it is wanted, and a message is on the wire
when `put` returns unless the pipe is full.
"""

import os
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import IO

import anyio
import anyio.lowlevel
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification

from aggregator.basics.signals import Signal
from aggregator.basics.turns import in_turns
from aggregator.jsonrpc.decoding import Decoded, Noise, decode, decoding
from aggregator.jsonrpc.encoding import encoded
from aggregator.jsonrpc.flood import BLANK_COST, BROKEN_COST, LINE_COST, Flood
from aggregator.jsonrpc.framing import Framing, Overlong
from aggregator.jsonrpc.outbox import LINE_BREAK, Outbox
from aggregator.jsonrpc.sdk_streams import Closable, Readable
from aggregator.jsonrpc.source import Source

WAITING_BYTES = 64 * 1024
"""Bytes that may wait for a full pipe before the next request has to."""

MAX_WAITING_BYTES = 16 * WAITING_BYTES
"""Bytes that may wait before notifications are dropped."""

MAX_ANSWER_BYTES = 16 * MAX_WAITING_BYTES
"""Bytes that may wait before answers are dropped, to a child that asks and does not listen."""

TAPPED_BYTES = 8 * 1024
"""Bytes of a message that is offered where it is read: what is long is read in turns."""

NOISE_AT_ONCE = 20
"""Lines of noise that are read before others have their turn."""

ENDLESS_BYTES = 1 << 30
"""Bytes after which a line that has not ended is taken to be noise."""


Tap = Callable[[JSONRPCMessage], bool]
"""Takes a message where it is read, or says that it does not; may not wait."""


async def discard(source: Source) -> None:
    """Read to the end and forget, so that a child that is still writing can go on to exit."""
    try:
        while await source.read():
            await anyio.lowlevel.checkpoint()
    finally:
        source.close()


class MessageReader(Readable):
    """The messages that come from a pipe; also what the SDK calls a read stream."""

    def __init__(
        self,
        fd: int,
        limit: int,
        *,
        on_noise: Callable[[Noise], None],
        on_end: Callable[[], Awaitable[None]],
        flood: Flood | None = None,
    ) -> None:
        self._source = Source(fd)
        self._flood = flood
        self._limit = limit
        self._on_noise = on_noise
        self._on_end = on_end
        self._framing = Framing(limit)
        self._lines: deque[bytes | Overlong] = deque()
        self._decoded: deque[Decoded] = deque()
        self._noise_in_a_row = 0
        self._cost = 0
        self.spoken = 0
        """How much of what came was a message."""
        self.is_flooded = False
        """Whether it was given up for what came instead of messages."""
        self.ended = anyio.Event()
        """Set when nothing more will come."""

    async def receive(self, tap: Tap | None = None) -> SessionMessage | Exception:
        """Return the next message that is not tapped as the SDK wants it."""
        return SessionMessage(await self.read(tap))

    async def read(self, tap: Tap | None = None) -> JSONRPCMessage:
        """Return the next message that is not tapped.

        Only what is short and comes by itself is offered to `tap`, and only where that is quick.

        Raises:
            EndOfStream: Nothing more will come.
        """
        if self._decoded or self._lines:
            await anyio.lowlevel.checkpoint()
        while True:
            while self._decoded:
                if message := self._accept(self._decoded.popleft()):
                    return message
            if self._noise_in_a_row % NOISE_AT_ONCE == NOISE_AT_ONCE - 1:
                await anyio.lowlevel.checkpoint()
            if self._lines:
                await self._decode(self._lines[0])
            elif self.ended.is_set():
                raise anyio.EndOfStream
            else:
                await self._pause()
                await self._fill(tap)

    def end(self) -> None:
        """Stop reading; what has been read is still delivered."""
        self._source.close()
        self.ended.set()

    async def aclose(self) -> None:
        """Stop reading and forget what has been read."""
        self.end()
        self._lines.clear()
        self._decoded.clear()

    async def _decode(self, line: bytes | Overlong) -> None:
        decoded = await in_turns(decoding(line, self._limit))
        if not self._lines:
            return
        # Not before: whoever reads may be cancelled meanwhile, and read on later.
        self._lines.popleft()
        self._decoded.extend(decoded)
        if isinstance(decoded[0], Noise):
            self._cost += _cost(line)

    async def _pause(self) -> None:
        """Read no faster than what is no message can be afforded; end what does not let up."""
        if not self._cost or self._flood is None:
            return
        seconds = self._flood.pause(self._cost, anyio.current_time())
        self._cost = 0
        if self._flood.is_lasting:
            self.is_flooded = True
            self.end()
        elif seconds:
            with anyio.move_on_after(seconds):
                await self.ended.wait()

    async def _fill(self, tap: Tap | None) -> None:
        try:
            chunk = await self._source.read(tap and partial(self._tapped, tap))
        except anyio.ClosedResourceError:
            chunk = b""
        if chunk:
            lines = self._framing.feed(chunk)
            self._lines.extend(lines)
            self._cost += BLANK_COST * (chunk.count(b"\n") - len(lines))
            if self._framing.size > ENDLESS_BYTES:
                self._cost += len(chunk)
            if not self._lines:
                # A long line may come as fast as it is read: others want their turn.
                await anyio.lowlevel.checkpoint()
        else:
            self._lines.extend(self._framing.finish())
            self._source.close()
            await self._on_end()
            self.ended.set()

    def _tapped(self, tap: Tap, chunk: bytes) -> bool:
        """Offer what has come to whoever may take it."""
        line = self._framing.only_line(chunk) if len(chunk) <= TAPPED_BYTES else None
        if not line:
            return False
        decoded = decode(line, self._limit)
        is_taken = len(decoded) == 1 and not isinstance(decoded[0], Noise) and tap(decoded[0])
        if is_taken:
            self._noise_in_a_row = 0
            self.spoken += 1
        return is_taken

    def _accept(self, decoded: Decoded) -> JSONRPCMessage | None:
        if not isinstance(decoded, Noise):
            self._noise_in_a_row = 0
            self.spoken += 1
            return decoded
        self._noise_in_a_row += 1
        self._on_noise(decoded)
        return None


def _cost(noise: bytes | Overlong) -> int:
    """Return how many bytes a line that is no message stands for."""
    if isinstance(noise, Overlong):
        return noise.size
    times = BROKEN_COST if noise.startswith((b"{", b"[")) else 1
    return max(len(noise), LINE_COST) * times


class MessageWriter(Closable):
    """The messages that go into a pipe; also what the SDK calls a write stream."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._waiting = Outbox()
        self._filled = Signal()
        self._drained = Signal()
        self.broken = anyio.Event()
        """Set when the other side no longer reads."""
        self.blocked_since: float | None = None
        """When the pipe last stopped taking bytes, on the clock of `anyio.current_time`."""

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message of the SDK's; wait only if much is waiting already.

        Notifications never wait: a courtesy cancel must not hold up the caller it is for.
        """
        if isinstance(item.message, JSONRPCNotification):
            self.send_now(item.message)
            return
        if self.is_full:
            await self.room()
        self.put(item.message)

    @property
    def is_full(self) -> bool:
        """Whether so much is waiting that the next request has to wait, too."""
        return self._waiting.size >= WAITING_BYTES

    async def room(self) -> None:
        """Wait until not too much is waiting."""
        while self.is_full:
            await self._drained.wait()

    def send_now(self, message: JSONRPCMessage, most: int = MAX_WAITING_BYTES) -> None:
        """Write a message that may be lost, if far too much is waiting already."""
        if self._waiting.size < most:
            self.put(message)

    def put(self, message: JSONRPCMessage) -> None:
        """Write a message, or have it wait for a pipe that is full.

        Raises:
            BrokenResourceError: Nobody reads it any more.
            ClosedResourceError: The pipe has been closed.
        """
        line = encoded(message)
        if self._pipe.closed:
            raise anyio.ClosedResourceError
        if self.broken.is_set():
            raise anyio.BrokenResourceError
        written = 0
        if not self._waiting.size:
            try:
                written = os.writev(self._fd, (line, LINE_BREAK))
            except BlockingIOError:
                self.blocked_since = anyio.current_time()
            except OSError:
                self.broken.set()
                return
            if written > len(line):
                return
            self._filled.send()
        self._waiting.add(line, written)

    async def flush(self) -> None:
        """Wait until nothing is waiting to be written."""
        while self._waiting.size:
            await self._drained.wait()

    async def run(self) -> None:
        """Write what a full pipe has left waiting, for as long as somebody reads."""
        try:
            while not self.broken.is_set():
                if not self._write_some():
                    await anyio.wait_writable(self._fd)
                elif not self.broken.is_set():
                    await self._filled.wait()
        except anyio.ClosedResourceError:
            return

    def close(self) -> None:
        """Close the pipe: the polite way to ask a child to end."""
        close_pipe(self._pipe)
        self._forget()

    async def aclose(self) -> None:
        """Do nothing: the pipe belongs to whoever opened it, and outlives the session."""

    def _write_some(self) -> bool:
        """Write until all is written or the pipe is full; say whether all is done."""
        try:
            while self._waiting.size:
                self._waiting.write_to(self._fd)
                self.blocked_since = None
                self._drained.send()
        except BlockingIOError:
            if self.blocked_since is None:
                self.blocked_since = anyio.current_time()
            return False
        except OSError:
            self.broken.set()
            self._forget()
        return True

    def _forget(self) -> None:
        self._waiting.clear()
        self.blocked_since = None
        self._drained.send()


def close_pipe(pipe: IO[bytes]) -> None:
    """Close a pipe and wake whoever waits for it."""
    if not pipe.closed:
        anyio.notify_closing(pipe.fileno())
        pipe.close()
