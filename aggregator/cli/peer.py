"""Talk to our own `serve` over stdio, as any client would.

The SDK's client would be loaded for longer than it is used: a few lines of JSON are enough here,
and commands answer a second sooner.
"""

import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

from aggregator import __version__
from aggregator.basics.json import as_object
from aggregator.basics.shutdown_notice import waiting_for
from aggregator.cli.ending import again, heeding_sigterm
from aggregator.cli.environment import CommandError, Environment, ExitStatus, ToldError
from aggregator.errors import ERROR_META
from aggregator.records.events import OURSELVES
from aggregator.records.inspection import SERVERS_URI

PROTOCOL = "2026-07-28"
PATIENCE = 700.0
"""Seconds to wait for any one answer: longer than any call may take by default."""
SILENCE = 0.5
"""Seconds after which a person wonders what is waited for."""
PARTED = 1.0
"""Seconds after which servers that are slow to end are left to it: a person waits for a prompt."""
PARTING = 10.0
"""Seconds that `serve` has to stop its servers once its client has left."""
GIVEN_UP = ("failed", "needs login")
"""The states of servers that nothing runs for."""
READ_AT_ONCE = 1 << 16
"""Bytes that are read at once."""
LAST_LINES = 20
"""Lines of a server's stderr that are shown when it fails."""

_CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled"}

Json = dict[str, Any]
OnProgress = Callable[[Json], None]


class AnswerError(CommandError):
    """A JSON-RPC error in the place of an answer."""

    def __init__(self, method: str, error: Mapping[str, Any]) -> None:
        self.message = str(error.get("message", "no reason given"))
        self.code = error.get("code")
        self.data: object = error.get("data")
        problem = f"`{method}` was refused: {self.message} (code {self.code})"
        super().__init__(problem, status=ExitStatus.UNREACHED)


class Peer(ABC):
    """The aggregator, as a client of the modern era sees it."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.began = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long we have known it."""
        return time.monotonic() - self.began

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: OnProgress | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> Json:
        """Return the answer to a request; capabilities are what may be asked of us for it.

        Raises:
            AnswerError: The answer is an error.
            CommandError: There is no answer, or the aggregator itself says why there is none.
        """
        number = next(self._numbers)
        meta: Json = {
            "io.modelcontextprotocol/protocolVersion": PROTOCOL,
            "io.modelcontextprotocol/clientInfo": {"name": OURSELVES, "version": __version__},
            "io.modelcontextprotocol/clientCapabilities": dict(capabilities or {}),
            "progressToken": number,
        }
        sent = {**params, "_meta": {**params.get("_meta", {}), **meta}}
        request: Json = {"jsonrpc": "2.0", "id": number, "method": method, "params": sent}
        for message in self._exchange(request):
            if message.get("id") == number:
                return _result(method, message)
            if on_progress and message.get("method") == "notifications/progress":
                on_progress(message["params"])
        raise CommandError("the aggregator ended its answer too early", status=ExitStatus.UNREACHED)

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        on_progress: OnProgress | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """Call a tool."""
        params = {"name": tool, "arguments": arguments, "_meta": meta or {}}
        return self.request("tools/call", params, on_progress)

    def read(self, uri: str) -> Json:
        """Read a resource that is a JSON document."""
        return json.loads(self.request("resources/read", {"uri": uri})["contents"][0]["text"])

    def last_words(self, _server: str) -> list[str]:
        """Return the last lines that a server wrote to its stderr, where they are known."""
        return []

    @abstractmethod
    def _exchange(self, request: Json) -> Iterator[Json]:
        """Send a request and yield what comes back."""


def _result(method: str, message: Json) -> Json:
    """Return what an answer holds.

    Raises:
        AnswerError: It is an error.
        CommandError: It is one of the aggregator's own, as its facts say.
    """
    if "error" not in message:
        return message["result"]
    error = AnswerError(method, as_object(message["error"]))
    if ERROR_META in as_object(error.data):
        told = error.message
        raise CommandError(told[:1].lower() + told[1:], status=ExitStatus.UNREACHED)
    raise error


class Child(Peer):
    """An aggregator of our own, at the other end of a pair of pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: IO[bytes]) -> None:
        super().__init__()
        self._process = process
        self._log = log
        self._names: list[str] = []
        self._asked: int | None = None
        self._received: queue.SimpleQueue[Json | None] = queue.SimpleQueue()

    def listen(self) -> None:
        """Take from now on what it says."""
        threading.Thread(target=self._receive, daemon=True).start()

    def last_words(self, server: str) -> list[str]:
        """Return the last lines that a server wrote, besides messages."""
        said = [
            line["message"]
            for line in self._lines()
            if line.get("server") == server and line.get("stream") in ("stderr", "stdout")
        ]
        return list(dict.fromkeys(said))[-LAST_LINES:]

    def read(self, uri: str) -> Json:
        """Read a document, and keep in mind which servers there are."""
        document = super().read(uri)
        if uri == SERVERS_URI:
            # Whatever is not given up may have a process that has to end.
            live = [each for each in document["servers"] if each["state"] not in GIVEN_UP]
            self._names = [str(each["name"]) for each in live]
        return document

    def part(self) -> None:
        """Leave as a client does.

        Servers that are slow to end keep the time they have, but nobody has to wait for it: what
        we leave ends them, and its watchdog if it cannot.
        """
        self._hang_up()
        try:
            self._process.wait(PARTED)
        except subprocess.TimeoutExpired:
            # Where we live on, it is not left a zombie.
            threading.Thread(target=self._process.wait, daemon=True).start()

    def break_off(self, environment: Environment, again: str) -> None:
        """Cancel what is under way and leave; say what that waits for, and what ends it at once."""
        # Nothing that is not cancelled is dropped before it has had its time.
        with suppress(OSError, ValueError):
            self._write({**_CANCELLED, "params": {"requestId": self._asked}})
        self._hang_up()
        try:
            self._process.wait(SILENCE)
        except subprocess.TimeoutExpired:
            self._await_end(environment, again)

    def _hang_up(self) -> None:
        with suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()

    def _await_end(self, environment: Environment, again: str) -> None:
        # Not on one line that is drawn again: a narrow terminal would not show what helps.
        environment.note(waiting_for(self._names, again))
        try:
            self._process.wait(PARTING)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait()
        except KeyboardInterrupt:
            # Its watchdog ends what it leaves.
            self._process.kill()
            raise

    def _exchange(self, request: Json) -> Iterator[Json]:
        self._asked = request["id"]
        self._send(request)
        while True:
            yield self._next()

    def _lines(self) -> list[Json]:
        self._log.seek(0)
        found: list[Json] = []
        for line in self._log.read().splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return found

    def _send(self, message: Json) -> None:
        try:
            self._write(message)
        except OSError:
            raise self._gone() from None

    def _write(self, message: Json) -> None:
        stream = self._process.stdin
        assert stream is not None  # noqa: S101 - it was asked for
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()

    def _next(self) -> Json:
        try:
            message = self._received.get(timeout=PATIENCE)
        except queue.Empty:
            raise CommandError(f"the aggregator did not answer within {PATIENCE:g} s") from None
        if message is None:
            raise self._gone()
        return message

    def _receive(self) -> None:
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 - it was asked for
        with stream:
            for line in _lines_of(stream.fileno()):
                self._received.put(json.loads(line))
        self._received.put(None)

    def _gone(self) -> CommandError:
        status = self._process.wait(PARTING)
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip()
        return CommandError(f"`aggregator serve` ended with status {status}", said or None)


def _lines_of(descriptor: int) -> Iterator[bytes]:
    """Yield what comes line by line; who leaves meanwhile need not wait for what is held here.

    A buffered stream that a thread reads from can be closed only once something has come.
    """
    parts: list[bytes] = []
    while chunk := os.read(descriptor, READ_AT_ONCE):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            yield b"".join([*parts, line])
            parts.clear()
        parts.append(rest)


@contextmanager
def serving(
    config: Path,
    environment: Environment,
    only: Collection[str] = (),
    *,
    afresh: bool = False,
    profile: str = "",
) -> Generator[Peer]:
    """Run `serve` for the length of the block, with some servers or all; tell of errors at once.

    Of what servers offered in another run, nothing counts for one that is to start `afresh`.
    """
    command = [environment.python, "-m", "aggregator", "serve", "--config", str(config)]
    chosen = [f"--only={name}" for name in only] + ["--afresh"] * afresh
    chosen += [f"--profile={profile}"] if profile else []
    with tempfile.TemporaryFile() as log, heeding_sigterm():
        process = subprocess.Popen(  # noqa: S603 - our own program
            [*command, *chosen, "-v", "--log-format", "json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=dict(environment.variables),
        )
        child = Child(process, log)
        child.listen()
        try:
            yield child
        except KeyboardInterrupt as told:
            child.break_off(environment, again(told))
            raise
        except CommandError as error:
            environment.complain(str(error), error.hint)
            raise ToldError(str(error), error.hint, error.status) from None
        finally:
            child.part()
