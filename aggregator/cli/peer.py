"""Talk to our own `serve` over stdio, as any client would.

The SDK's client would be loaded for longer than it is used: a few lines of JSON are enough here,
and commands answer a second sooner.
"""

import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

from aggregator import __version__
from aggregator.cli.environment import CommandError, Environment

PROTOCOL = "2026-07-28"
NAME = "aggregator-cli"
PATIENCE = 700.0
"""Seconds to wait for any one answer: longer than any call may take by default."""
PARTING = 10.0
"""Seconds that `serve` has to stop its servers once its client has left."""
LAST_LINES = 20
"""Lines of a server's stderr that are shown when it fails."""

Json = dict[str, Any]
OnProgress = Callable[[Json], None]


class AnswerError(Exception):
    """A JSON-RPC error in the place of an answer."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error.get("message", "no reason given")))
        self.code = error.get("code")


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
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None = None
    ) -> Json:
        """Return the answer to a request.

        Raises:
            AnswerError: The answer is an error.
            CommandError: There is no answer.
        """
        number = next(self._numbers)
        meta: Json = {
            "io.modelcontextprotocol/protocolVersion": PROTOCOL,
            "io.modelcontextprotocol/clientInfo": {"name": NAME, "version": __version__},
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": number,
        }
        sent = {**params, "_meta": {**params.get("_meta", {}), **meta}}
        request: Json = {"jsonrpc": "2.0", "id": number, "method": method, "params": sent}
        for message in self._exchange(request):
            if message.get("id") == number:
                return _result(message)
            if on_progress and message.get("method") == "notifications/progress":
                on_progress(message["params"])
        raise CommandError("the aggregator ended its answer too early")

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


def _result(message: Json) -> Json:
    if "error" in message:
        raise AnswerError(message["error"])
    return message["result"]


class Child(Peer):
    """An aggregator of our own, at the other end of a pair of pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: IO[bytes]) -> None:
        super().__init__()
        self._process = process
        self._log = log
        self._received: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        threading.Thread(target=self._receive, daemon=True).start()

    def last_words(self, server: str) -> list[str]:
        """Return the last lines that a server wrote to its stderr."""
        said = [
            line["message"]
            for line in self._lines()
            if (line.get("server"), line.get("stream")) == (server, "stderr")
        ]
        return list(dict.fromkeys(said))[-LAST_LINES:]

    def _exchange(self, request: Json) -> Iterator[Json]:
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
        stream = self._process.stdin
        assert stream is not None  # noqa: S101 - it was asked for
        try:
            stream.write(json.dumps(message).encode() + b"\n")
            stream.flush()
        except OSError:
            raise self._gone() from None

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
        for line in stream:
            self._received.put(json.loads(line))
        self._received.put(None)

    def _gone(self) -> CommandError:
        status = self._process.wait(PARTING)
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip()
        return CommandError(f"`aggregator serve` ended with status {status}", said or None)


@contextmanager
def serving(config: Path, environment: Environment) -> Generator[Peer]:
    """Run `serve` for the length of the block."""
    command = [sys.executable, "-m", "aggregator", "serve", "--config", str(config)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [*command, "-v", "--log-format", "json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=dict(environment.variables),
        )
        try:
            yield Child(process, log)
        finally:
            _part(process)


def _part(process: "subprocess.Popen[bytes]") -> None:
    """Leave as a client does, and make sure that nothing stays behind."""
    with suppress(OSError):
        if process.stdin:
            process.stdin.close()
    try:
        process.wait(PARTING)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
    finally:
        if process.stdout:
            process.stdout.close()
