"""Run one server as a child process and carry messages to and from it.

POSIX only: it waits for pipes, and ends groups of processes, in ways that Windows does not have.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from time import monotonic
from typing import Literal

import anyio
import anyio.lowlevel
import anyio.to_thread
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from aggregator.basics.frozen import frozen
from aggregator.basics.rate import Rate
from aggregator.config.limits import NO_LIMITS, Limits
from aggregator.downstream.stdio.overrun import overrun
from aggregator.downstream.stdio.process import (
    GRACE,
    SHORT_GRACE,
    Pipes,
    Process,
    SpawnError,
    describe_status,
    spawn,
)
from aggregator.downstream.stdio.tail import Lines, Tail, printable
from aggregator.downstream.stdio.watchdog import Watchdog
from aggregator.downstream.transport import NO_HEADERS, Headers, Line, Take, Tap
from aggregator.jsonrpc.decoding import Noise
from aggregator.jsonrpc.flood import LASTING, Flood
from aggregator.jsonrpc.pipes import (
    MAX_ANSWER_BYTES,
    MessageReader,
    MessageWriter,
    close_pipe,
    discard,
)
from aggregator.jsonrpc.source import Source
from aggregator.secrecy import Redaction

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Bytes one message of a server may have, unless it is configured otherwise."""

LOGGED_PER_MINUTE = 5
"""Lines of noise, and lines of standard error, that reach the log in a minute."""

LOGGED_BYTES = 4096
"""Bytes of a chunk, or of a line, that are looked at for the log."""

LINGER = 0.05
"""Seconds to read on after a child has ended; a descendant may hold its pipe open for ever."""

SETTLING = 0.05
"""Seconds between the end of a child's output and its own, if it is ending."""

Log = Callable[[Literal["stderr", "stdout"], str], None]
"""Takes the lines that a child wrote where no message is read, and where that was."""

STUCK_AFTER = 1.0
"""Seconds a server may leave unread what was written to it before a time-out means it hangs."""

_NOTHING_CONFIDED = Redaction(())


@frozen
class ChildSpec:
    """What to run, and how."""

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What it is given by its configuration."""
    inherited: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What it is given of our own environment."""
    redact: Redaction = field(default=_NOTHING_CONFIDED, repr=False)
    """What takes out of its words what it was given in confidence."""
    cwd: str | Path | None = None
    max_message_bytes: int = MAX_MESSAGE_BYTES
    limits: Limits = NO_LIMITS
    detach: bool = False
    """Whether what it starts is left alone when it ends."""


class Child:
    """A running server, for as long as its context is open."""

    def __init__(
        self,
        spec: ChildSpec,
        process: Process,
        pipes: Pipes,
        log: Log,
        *,
        has_flooded: bool = False,
    ) -> None:
        self._has_flooded = has_flooded
        self._process = process
        self._pipes = pipes
        self._log = log
        self._redact = spec.redact
        self._limits = spec.limits
        self._stderr = Source(pipes.stderr.fileno())
        self._words = Tail()
        self._spoken_before = 0
        """Messages that had come when it last wrote to standard error."""
        self._stderr_rate = Rate(LOGGED_PER_MINUTE, within=60.0)
        self._noise_rate = Rate(LOGGED_PER_MINUTE, within=60.0)
        self._exited = anyio.Event()
        self._reader = MessageReader(
            pipes.stdout.fileno(),
            spec.max_message_bytes,
            on_noise=self._on_noise,
            on_end=self._settle,
            flood=Flood(),
        )
        self._writer = MessageWriter(pipes.stdin)
        self.noise_count = 0
        """Lines on standard output that were no messages."""

    @property
    def pid(self) -> int:
        """The process, and the group it leads."""
        return self._process.pid

    @property
    def closed(self) -> anyio.Event:
        """Set as soon as the server has gone away."""
        return self._reader.ended

    async def receive(self, tap: Tap | None = None) -> JSONRPCMessage:
        """Return the next message that is not tapped.

        Raises:
            EndOfStream: Nothing more will come.
        """
        return await self._reader.read(tap)

    def put(self, request: JSONRPCRequest, _headers: Headers, _take: Take) -> bool:
        """Write a request, unless much is waiting already."""
        if self._writer.is_full:
            return False
        self._writer.put(request)
        return True

    async def send(self, message: JSONRPCMessage, _headers: Headers = NO_HEADERS) -> None:
        """Write a message; only requests wait, and only if much is waiting already.

        A courtesy cancel must not hold up the caller it is for, and answers would pile up for a
        child that only ever asks.
        """
        if isinstance(message, JSONRPCRequest):
            if self._writer.is_full:
                await self._writer.room()
            self._writer.put(message)
        elif isinstance(message, JSONRPCNotification):
            self._writer.send_now(message)
        else:
            self._writer.send_now(message, MAX_ANSWER_BYTES)

    @property
    def write_blocked_since(self) -> float | None:
        """When the server stopped reading (`anyio.current_time`), or nothing if it reads."""
        return self._writer.blocked_since

    def is_stuck(self) -> bool:
        """Whether what was written has not been read for a while."""
        since = self.write_blocked_since
        return since is not None and anyio.current_time() - since >= STUCK_AFTER

    @property
    def is_flooding(self) -> bool:
        """Whether it was given up for what it wrote instead of messages."""
        return self._reader.is_flooded

    def is_barred(self) -> bool:
        """Whether it would be pointless to start it again: any but a flood may be the last."""
        return self.is_flooding and self._has_flooded

    def remedy(self) -> None:
        """Nothing: nobody logs in to a process."""

    def exit_status(self) -> int | None:
        """Return how the process ended, negative for a signal, or nothing while it runs."""
        return self._process.exit_status()

    def describe_end(self) -> str:
        """Say how it came to its end, in words that follow the name of the server."""
        status = self.exit_status()
        if self.is_flooding:
            again = "it is flooding: started anew, again " if self._has_flooded else ""
            return (
                f"{again}it wrote thousands of lines, or megabytes, a second for {LASTING:g} s "
                "that are no messages; what is for people belongs on standard error"
            )
        if status is None:
            return "it stopped reading" if self._writer.broken.is_set() else "it closed its output"
        if status == 0 and not self._reader.spoken:
            return f"it {describe_status(status)} without speaking MCP"
        limit = overrun(self._limits, status, (line.text for line in self._words.lines()))
        cause = f", most likely for its `limits.{limit}`" if limit else ""
        return f"it {describe_status(status)}{cause}"

    def last_words(self) -> Sequence[Line]:
        """Return the last lines of standard error, safe to show.

        Among them is what a child wrote to standard output that has not sent a message yet.
        Whoever was ended by a signal has not told why in what it wrote before its last message.
        """
        status = self.exit_status()
        is_cut_off = status is not None and status < 0
        is_beside = is_cut_off and self._spoken_before < self._reader.spoken
        return [
            line._replace(text=self._shown(line.text), is_beside=is_beside)
            for line in self._words.lines()
        ]

    def __repr__(self) -> str:
        state = self.describe_end() if self.closed.is_set() else "running"
        return f"<Child {self.pid} {state}>"

    async def run(self) -> None:
        """Serve the pipes until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._writer.run)
            tasks.start_soon(self._read_stderr)
            tasks.start_soon(self._watch)
            tasks.start_soon(self._end_after, self._exited)
            tasks.start_soon(self._end_after, self._writer.broken)

    async def stop(self) -> None:
        """End the server and its group; `run` must have ended."""
        self._reader.end()
        self._writer.close()
        async with anyio.create_task_group() as tasks:
            # A child that is stuck writing could not see that its input has ended.
            tasks.start_soon(discard, Source(self._pipes.stdout.fileno()))
            tasks.start_soon(self._read_stderr)
            # One that is still starting does not read, so it would let all of its time go by.
            await self._process.end(GRACE if self._reader.spoken else SHORT_GRACE)
            tasks.cancel_scope.cancel()
        self._stderr.close()
        close_pipe(self._pipes.stdout)
        close_pipe(self._pipes.stderr)
        self._process.close()

    async def _watch(self) -> None:
        await self._process.exited()
        self._exited.set()

    async def _end_after(self, gone: anyio.Event) -> None:
        """End the connection soon after something that it cannot survive."""
        await gone.wait()
        with anyio.move_on_after(LINGER):
            await self.closed.wait()
        self._reader.end()

    async def _settle(self) -> None:
        """Let a process that has closed its output finish, so that its end can be described."""
        with anyio.move_on_after(SETTLING):
            await self._exited.wait()

    async def _read_stderr(self) -> None:
        lines = Lines(LOGGED_BYTES)
        while chunk := await self._stderr.read():
            self._words.add(chunk)
            self._spoken_before = self._reader.spoken
            self._log_errors(lines.feed(chunk))
            await anyio.lowlevel.checkpoint()
        self._log_errors(lines.finish())

    def _log_errors(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            if not self._stderr_rate.admits(monotonic()):
                break
            self._log("stderr", self._shown(line.decode(errors="replace")))

    def _on_noise(self, noise: Noise) -> None:
        self.noise_count += 1
        line = noise.line[:LOGGED_BYTES]
        if not self._reader.spoken:
            self._words.add_noise(line)
        if self._noise_rate.admits(monotonic()):
            shown = self._shown(line.decode(errors="replace"))
            self._log("stdout", str(Line(shown, is_noise=True)))

    def _shown(self, line: str) -> str:
        return printable(self._redact(line))


@asynccontextmanager
async def open_child(
    spec: ChildSpec, *, log: Log, watchdog: Watchdog, has_flooded: bool = False
) -> AsyncGenerator[Child, None]:
    """Start a server, and end it with the context, however that is left.

    `has_flooded` says whether it had to be ended for that the last time.

    Raises:
        SpawnError: It cannot be started.
    """
    watchdog.start()
    # The mark is inherited, and whatever carries it ends with us, also outside of the group.
    mark = {} if spec.detach else watchdog.environment
    environment = {**spec.inherited, **spec.env, **mark}
    # A thread that has begun is waited for, cancelled or not, so no process goes unnoticed.
    try:
        process, pipes = await anyio.to_thread.run_sync(
            spawn, [spec.command, *spec.args], environment, spec.cwd, spec.limits
        )
    except RuntimeError as error:
        raise SpawnError(f"the command `{spec.command}` could not be started: {error}") from error
    # No await from here until the child is in the care of the block below.
    watchdog.hold(process.pid)
    child = Child(spec, process, pipes, log, has_flooded=has_flooded)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child.run)
            yield child
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await child.stop()
        # One that could not be ended, stuck in the kernel, is left to the watchdog.
        if child.exit_status() is not None:
            watchdog.release(process.pid)
