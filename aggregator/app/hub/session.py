"""One client that is served on descriptors which were handed over."""

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import anyio

from aggregator.app.hub.connection import HubConnection
from aggregator.app.hub.hello import Hello
from aggregator.app.life import serve_client
from aggregator.basics.shutdown_notice import ShutdownNotice
from aggregator.upstream.server import Upstream
from aggregator.upstream.stdio import standard_streams
from aggregator.upstream.visitor import Visitor

Reload = Callable[[], None]
"""Has the file of a fleet read again."""

FINE, LOST = 0, 1
"""How a client's own process ends: as it would have by itself, or because we could not go on."""
STANDARD_ERROR = 2
MAX_WORDS = 4000
"""Bytes that a pipe takes at once, or not at all."""


class Session:
    """A client, from its arrival to its end."""

    def __init__(self, number: int, hello: Hello, line: HubConnection, process: int) -> None:
        self.hello = hello
        self.process = process
        self.since = time.time()
        profile = hello.profile or None
        self.visitor = Visitor(f"client {number}", hello.directory, process, profile)
        self._line = line
        self._stop = anyio.Event()
        # Not to our log, which nobody looks at who stops the client's own process.
        self._shutdown_notice = ShutdownNotice(self.say)
        self._scope = anyio.CancelScope()
        self._status = FINE

    @property
    def title(self) -> str:
        """What a person is told of it, if it does not say its name itself."""
        return ""

    @property
    def is_lost(self) -> bool:
        """Whether the client cannot be served any more."""
        return self._status == LOST

    async def serve(self, upstream: Upstream, reload: Reload) -> int:
        """Serve until the client leaves or is to leave; return how its process is to end."""
        with self._scope:
            async with anyio.create_task_group() as group:
                group.start_soon(self._heed, reload)
                await self._attend(upstream)
                group.cancel_scope.cancel()
        return self._status

    async def _attend(self, upstream: Upstream) -> None:
        """Answer what comes on what was handed over."""
        stdin, stdout = self._line.descriptors[:2]
        async with standard_streams(stdin, stdout, stop=self._stop) as streams:
            modern = await streams[0].opens_modern()
            await serve_client(upstream, streams, self.visitor, opens_modern=modern)

    def say(self, text: str) -> None:
        """Write a line where the client's own process would have, unless nobody takes it."""
        if not self._line.descriptors:
            # They are yet to be handed over.
            return
        errors = self._line.descriptors[STANDARD_ERROR]
        with suppress(OSError, ValueError):
            poll = select.poll()
            poll.register(errors, select.POLLOUT)
            if poll.poll(0) and poll.poll(0)[0][1] & select.POLLOUT:
                os.write(errors, text.encode(errors="replace")[:MAX_WORDS] + b"\n")

    def part(self) -> None:
        """Have the client leave in good order."""
        self._stop.set()

    def drop(self, why: str) -> None:
        """Let go of a client that cannot be served any more."""
        self._status = LOST
        self._scope.cancel()
        self.say(f"aggregator: {why}")

    async def _heed(self, reload: Reload) -> None:
        """Do what signals to the client's own process mean, and end with it."""
        while (number := await self._line.take()) is not None:
            if number == signal.SIGHUP:
                reload()
            else:
                self._shutdown_notice.told_by(number)
                self.part()
        self._scope.cancel()
