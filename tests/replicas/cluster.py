"""Several replicas as processes of their own, behind a real proxy that sends each request on to
the next of them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2

from tests.loopback.door import NO_CERTIFICATES
from tests.patience import PATIENCE
from tests.replicas.proxies import HAPROXY, Proxy
from tests.soak.client import ROOT

STORE = shutil.which("redis-server") or shutil.which("valkey-server")


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Replica:
    """One process that serves clients."""

    def __init__(self, directory: Path, number: int, *options: str) -> None:
        self.port = free_port()
        self._directory = directory
        self._state = directory / f"state-{number}"
        self._log = directory / f"replica-{number}.log"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    async def start(self) -> None:
        """Start it, and wait until its servers are there."""
        self._spawn()
        await self.until_ready()

    def _spawn(self) -> None:
        command = [sys.executable, "-m", "aggregator", "serve", "--http", str(self.port)]
        command += ["--config", str(self._directory / "servers.yaml"), "--no-auth"]
        command += ["--allow-host", "127.0.0.1", "--notice", "1"]
        command += ["--state-key", str(self._directory / "state-key"), *self._options]
        environment = {**os.environ, "XDG_STATE_HOME": str(self._state)}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    async def until_ready(self) -> None:
        async with httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES) as client:
            with anyio.fail_after(PATIENCE):
                while True:
                    try:
                        answer = await client.get(f"http://127.0.0.1:{self.port}/readyz")
                    except httpx2.TransportError:
                        pass
                    else:
                        if answer.status_code == 200:
                            return
                    await anyio.sleep(0.05)

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """End it in one way or another, and wait for it."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Storehouse:
    """A Redis or Valkey of its own, which remembers nothing of an earlier life."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._log = directory / "store.log"
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it, and wait until it can be asked."""
        assert STORE is not None
        self._process = _begun(
            self._log, STORE, "--port", str(self.port), "--save", "", "--appendonly", "no"
        )
        await _until_open(self.port)

    def stop(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@asynccontextmanager
async def storehouse(directory: Path) -> AsyncGenerator[Storehouse, None]:
    """Run a store for the length of the block."""
    store = Storehouse(directory)
    await store.start()
    try:
        yield store
    finally:
        store.stop()


class Cluster:
    """All of them, and the one address that clients know."""

    def __init__(
        self, directory: Path, replicas: list[Replica], port: int, store: Storehouse | None
    ) -> None:
        self.replicas = replicas
        self.store = store
        self.url = f"http://127.0.0.1:{port}/mcp"
        self._directory = directory
        self._edits = 0

    def edit(self) -> None:
        """Change what lists show: every replica sees it, each in its own time."""
        self._edits += 1
        write_config(self._directory, self.store, shows_more=bool(self._edits % 2))

    async def restart_all(self) -> None:
        """Replace one after the other, while the others serve."""
        for replica in self.replicas:
            await replica.stop()
            await replica.start()


def write_config(directory: Path, store: Storehouse | None, *, shows_more: bool) -> None:
    servers = {
        name: {
            "command": sys.executable,
            "args": ["-m", "tests.loopback.witness", era],
            "cwd": str(ROOT),
            "start": "eager",
            "alwaysLoad": ["step", *(["log"] if shows_more else [])],
            "maxInFlight": 10_000,
            "maxQueued": 10_000,
        }
        for name, era in (("old", "handshake"), ("new", "modern"))
    }
    http = {} if store is None else {"state": store.url}
    content = {"state": False, "toolSearch": True, "servers": servers, "http": http}
    temporary = directory / "servers.yaml.new"
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(directory / "servers.yaml")


@asynccontextmanager
async def cluster(
    directory: Path, size: int, *, store: Storehouse | None = None, proxy: Proxy = HAPROXY
) -> AsyncGenerator[Cluster, None]:
    """Run so many replicas behind a proxy for the length of the block."""
    assert proxy.command is not None
    write_config(directory, store, shows_more=False)
    replicas = [Replica(directory, number) for number in range(size)]
    port = free_port()
    settings = directory / "proxy.cfg"
    addresses = [f"127.0.0.1:{each.port}" for each in replicas]
    settings.write_text(proxy.form(directory, port, addresses), encoding="utf-8")
    running: subprocess.Popen[bytes] | None = None
    try:
        # The first makes the key that the others read.
        for replica in replicas:
            await replica.start()
        running = _begun(directory / "proxy.log", proxy.command, *proxy.options, str(settings))
        await _until_open(port)
        yield Cluster(directory, replicas, port, store)
    finally:
        if running is not None:
            running.terminate()
            running.wait()
        with anyio.CancelScope(shield=True):
            for replica in replicas:
                await replica.stop()


def _begun(log: Path, *command: str) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL)


async def _until_open(port: int) -> None:
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                stream = await anyio.connect_tcp("127.0.0.1", port)
            except OSError:
                await anyio.sleep(0.05)
            else:
                await stream.aclose()
                return
