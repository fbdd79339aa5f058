"""What the benchmarks share: raw clients that cost nothing, medians, tables and JSON."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parent.parent
"""The project, from which benchmarks run the aggregator."""

INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}

Era = Literal["handshake", "modern"]
ERAS: tuple[Era, ...] = ("handshake", "modern")
MODERN = "2026-07-28"

ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": INITIALIZE["clientInfo"],
}
"""What a client of the modern era says with each request."""


def params_of(era: Era, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the parameters of a request as a client of an era sends them."""
    return {**(params or {})} if era == "handshake" else {**(params or {}), "_meta": ENVELOPE}


class RawClient:
    """A client that writes and reads JSON lines and does nothing else."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        era: Era = "handshake",
        cwd: Path = ROOT,
    ) -> None:
        self._era: Era = era
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            env={**os.environ, **(env or {})},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._last = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Write a request and return its id."""
        self._last += 1
        given = params_of(self._era, params)
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": given}
        self._input.write(json.dumps(message).encode() + b"\n")
        self._input.flush()
        return self._last

    def notify(self, method: str) -> None:
        self._input.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")
        self._input.flush()

    def read(self) -> dict[str, Any]:
        """Read the next answer, skipping notifications."""
        while True:
            message = json.loads(self._output.readline())
            if "id" in message and "method" not in message:
                return message

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self.send(method, params)
        return self.read()

    def open(self) -> None:
        """Say hello, in the way of its era."""
        if self._era == "modern":
            self.ask("server/discover")
            return
        self.ask("initialize", INITIALIZE)
        self.notify("notifications/initialized")

    def close(self) -> None:
        self._input.close()
        self._process.wait(timeout=30)
        self._output.close()


def aggregator(config: Path) -> list[str]:
    """Return the command that serves a configuration over stdio."""
    return [sys.executable, "-m", "aggregator", "serve", "--config", str(config)]


def memory_of(pid: int) -> float:
    """Return the megabytes a process has resident."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def processor_time(pid: int) -> float:
    """Return the seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def spread(values: Sequence[float]) -> str:
    """Return median and quartiles, in milliseconds."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{1e3 * middle:.2f} ms ({1e3 * low:.2f} to {1e3 * high:.2f})"


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table, and the same as JSON on one line."""
    print(f"\n## {title}\n")
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join("---" for _ in head) + " |")
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print("\n" + json.dumps([dict(zip(head, map(str, row), strict=True)) for row in rows]))
