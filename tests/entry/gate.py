"""The command as a client starts it, with a gate before everything that is heavy."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("anyio", "mcp", "mcp_types", "pydantic", "pydantic_core", "yaml")
"""What takes long to import, and must not be imported before a client is answered."""

VERSIONS = {"handshake": "2025-11-25", "modern": "2026-07-28"}
META = {
    "io.modelcontextprotocol/protocolVersion": VERSIONS["modern"],
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}

_GATE = """\
import importlib, os, sys
with open(os.environ["GATE"]) as gate:
    gate.read()
sys.path.remove(os.path.dirname(__file__))
del sys.modules[__name__]
sys.modules[__name__] = importlib.import_module(__name__)
"""

Json = dict[str, Any]


class Start:
    """One start of `aggregator serve`, and the lines it has written."""

    def __init__(
        self,
        directory: Path,
        *options: str,
        era: str = "handshake",
        gated: bool = True,
        command: tuple[str, ...] = (sys.executable, "-m", "aggregator"),
        state: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.lines: list[Json] = []
        self._era = era
        self._gate = directory / "gate"
        self._buffer = b""
        paths = [str(ROOT)]
        if gated:
            paths.insert(0, str(_modules(directory)))
            if not self._gate.exists():
                os.mkfifo(self._gate)
        self._is_open = not gated
        given = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.process = subprocess.Popen(
            [*command, "serve", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env={
                **given,
                "HOME": str(directory),
                "PYTHONPATH": os.pathsep.join(paths),
                "GATE": str(self._gate),
                "XDG_STATE_HOME": state,
                **(variables or {}),
            },
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input, self._output = self.process.stdin, self.process.stdout

    def open_gate(self) -> None:
        """Let everything be loaded."""
        self._is_open = True
        # It is waited for there as soon as the first of it is wanted.
        self._gate.write_bytes(b"")

    def write(self, *lines: bytes) -> None:
        self._input.write(b"".join(lines))
        self._input.flush()

    def send(self, *messages: Json) -> None:
        self.write(*map(line_of, messages))

    def read(self) -> Json:
        """Read the next message."""
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._buffer:
            patience = max(0.0, deadline - time.monotonic())
            assert select.select([self._output], [], [], patience)[0], "nothing came"
            chunk = os.read(self._output.fileno(), 1 << 16)
            assert chunk, "the output has ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        self.lines.append(json.loads(line))
        return self.lines[-1]

    def until(self, method: str) -> Json:
        """Read on to a notification."""
        while True:
            if (message := self.read()).get("method") == method:
                return message

    def answer(self, identifier: object) -> Json:
        """Read on to an answer."""
        while True:
            message = self.read()
            if message.get("id") == identifier and "method" not in message:
                return message

    def ask(self, identifier: object, method: str, **params: Any) -> Json:
        self.send(request(self._era, identifier, method, **params))
        return self.answer(identifier)

    def open(self) -> Json:
        """Begin in the way of the era, and return the first list."""
        opening = begun(self._era)
        self.send(*opening[:1])
        assert "result" in self.answer(1)
        self.send(*opening[1:])
        return self.answer(2)["result"]

    def end(self) -> int:
        """End the input, and read whatever else comes."""
        if not self._is_open:
            self.open_gate()
        self._input.close()
        rest = self._buffer + self._output.read()
        self.lines += map(json.loads, rest.splitlines())
        self._buffer = b""
        return self.process.wait(PATIENCE)

    def signal(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self._input.close()
        self.process.wait()
        self._output.close()
        assert self.process.stderr is not None
        self.process.stderr.close()


def _modules(directory: Path) -> Path:
    """Write modules that stand before the heavy ones, and wait."""
    modules = directory / "modules"
    modules.mkdir(exist_ok=True)
    for name in HEAVY:
        (modules / f"{name}.py").write_text(_GATE, encoding="utf-8")
    return modules


def line_of(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def request(era: str, identifier: object, method: str, **params: Any) -> Json:
    whole = {**params, **({"_meta": META} if era == "modern" else {})}
    message: Json = {"jsonrpc": "2.0", "id": identifier, "method": method}
    return {**message, "params": whole} if whole else message


def begun(era: str, client: str = "raw") -> list[Json]:
    """Return what a client says first."""
    if era == "modern":
        return [request(era, 1, "server/discover"), request(era, 2, "tools/list")]
    introduction = {
        "protocolVersion": VERSIONS[era],
        "capabilities": {},
        "clientInfo": {"name": client, "version": "1"},
    }
    return [
        request(era, 1, "initialize", **introduction),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(era, 2, "tools/list"),
    ]
