"""Clients of a hub as real processes, in a runtime directory of their own."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from aggregator.basics.eras import Era
from aggregator.entry.hub_socket import HubSocket, open_hub_socket
from tests.ends import await_ends
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[3]
FAULTY = ROOT / "tests" / "faulty.py"
PROC = Path("/proc")

PROGRAM = (
    "import sys; from aggregator.entry import shim; shim.PATIENCE = {patience};"
    "from aggregator.__main__ import run; run()"
)
"""A client's process that waits for a hub for so long."""

SERVERS: dict[str, Any] = {"test": {"command": sys.executable, "args": [str(FAULTY)]}}

Json = dict[str, Any]


class Client:
    """One client, and the process that it has started."""

    def __init__(self, process: "subprocess.Popen[bytes]", era: Era) -> None:
        self.process = process
        self.era = era
        self._number = 0
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def open(self, name: str = "raw") -> Json:
        """Begin in the way of the era."""
        if self.era == "modern":
            return self.ask("server/discover")
        info = {"name": name, "version": "1"}
        params: Json = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}}
        answer = self.ask("initialize", {**params, "clientInfo": info})
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def send(self, method: str, params: Json | None = None) -> int:
        self._number += 1
        params = dict(params or {})
        if self.era == "modern":
            params["_meta"] = {
                **params.get("_meta", {}),
                "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        self.say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def ask(self, method: str, params: Json | None = None) -> Json:
        """Return the answer to a request."""
        number = self.send(method, params)
        while True:
            message = self.hear()
            if message is None:
                raise EOFError
            if message.get("id") == number:
                return message

    def call(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool, and return what it says."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return answer["result"]["content"][0]["text"]

    def say(self, message: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> Json | None:
        """Return the next message; nothing at the end."""
        line = self._lines.get(timeout=PATIENCE)
        return json.loads(line) if line else None

    def leave(self) -> int:
        """Close the input, and return how the process ends."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def errors(self) -> str:
        """Return what was said beside the protocol, once the process has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def close(self) -> None:
        """Leave nothing open."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with suppress(OSError):
                stream.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with suppress(ValueError):
            for line in self.process.stdout:
                self._lines.put(line)
        self._lines.put(b"")


class HubSetup:
    """A runtime directory, a configuration, and whoever comes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.runtime = directory / "run"
        self.runtime.mkdir(mode=0o700)
        self.root = ROOT
        """Where the program is loaded from."""
        self.config = directory / "servers.yaml"
        self.write({"servers": SERVERS})
        self._clients: list[Client] = []

    @property
    def variables(self) -> dict[str, str]:
        given = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        places = {"HOME": str(self.directory), "XDG_RUNTIME_DIR": str(self.runtime)}
        return {**given, **places, "PYTHONPATH": str(self.root)}

    def write(self, document: Json) -> None:
        """Replace the configuration as editors do."""
        fresh = self.config.with_suffix(".new")
        fresh.write_text(json.dumps(document), encoding="utf-8")
        fresh.replace(self.config)

    def client(
        self,
        era: Era = "handshake",
        *,
        opens: bool = True,
        patience: float = 10 * PATIENCE,
        after: str = "",
        profile: str = "",
        **variables: str,
    ) -> Client:
        """Have a client start its process, which waits for a hub however busy the machine is.

        `after` is what happens to that process before it begins.
        """
        program = f"{after}\n{PROGRAM.format(patience=patience)}"
        command = [sys.executable, "-c", program, "serve", "--shared"]
        process = subprocess.Popen(
            [*command, "--config", str(self.config), *([f"--profile={profile}"] * bool(profile))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.variables, **variables},
            cwd=self.root,
        )
        client = Client(process, era)
        self._clients.append(client)
        if opens:
            client.open()
        return client

    def run(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Type a command."""
        return subprocess.run(
            [sys.executable, "-m", "aggregator", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE * 2,
            env={**self.variables, **variables},
            cwd=ROOT,
        )

    def hub_socket(self, variables: Mapping[str, str] | None = None) -> HubSocket:
        """Return where the hub of these clients is."""
        return open_hub_socket(variables or self.variables)

    def hubs(self) -> list[int]:
        """Return the hubs that there are for this runtime directory."""
        found = processes("aggregator.cli.hub", str(self.runtime))
        # What it is just starting still looks like it.
        return [pid for pid in found if _parent(pid) not in found]

    def servers(self) -> list[int]:
        """Return the servers that run for this configuration."""
        return [pid for pid in processes(str(FAULTY)) if _cwd(pid) == str(self.directory)]

    def end(self) -> None:
        """Leave nothing running."""
        for client in self._clients:
            client.close()
        hubs = self.hubs()
        for pid in hubs:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        await_ends([*hubs, *self.servers()], PATIENCE)


def processes(*words: str) -> list[int]:
    """Return the processes whose command line has all of these words in it."""
    found: list[int] = []
    for each in PROC.iterdir():
        if each.name.isdigit() and int(each.name) != os.getpid():
            with suppress(OSError):
                line = (each / "cmdline").read_bytes().decode(errors="replace")
                if line and all(word in line for word in words):
                    found.append(int(each.name))
    return found


def _parent(pid: int) -> int:
    try:
        status = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])


def _cwd(pid: int) -> str:
    try:
        return str((PROC / str(pid) / "cwd").readlink())
    except OSError:
        return ""


@contextmanager
def hub_setup_in(directory: Path) -> Generator[HubSetup]:
    """Have a hub_setup for the length of the block."""
    hub_setup = HubSetup(directory)
    try:
        yield hub_setup
    finally:
        hub_setup.end()
