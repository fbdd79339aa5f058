"""A crowd of clients, each with many calls under way, and nothing that reaches the wrong one.

`python -m tests.loopback.crowd [CLIENTS] [CALLS] [AT_ONCE]` puts the aggregator, as a process that
serves over HTTP, in front of four servers: of either era, on pipes and over HTTP. Half of the
clients are of either era. Every call carries a nonce that nothing else has; it comes back as a
result, as progress, in log messages, and as what a server took to be cancelled.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc

from tests.loopback.visitor import Account, Visitor
from tests.soak.client import ROOT

PIPES = ("pipe_old", "pipe_new")
"""Servers on a pipe, where nothing says whose a log message is."""
SITES = ("web_old", "web_new")
SERVERS = (*PIPES, *SITES)
ERAS = {"old": "handshake", "new": "modern"}

PATIENCE = 3600.0
"""Seconds after which a run is taken to hang."""
SETTLING = 30.0
"""Seconds that the last cancellations have to arrive."""


@dataclass
class Report:
    """What came of a run."""

    calls: int = 0
    seconds: float = 0.0
    memory: list[int] = field(default_factory=list[int])
    """Bytes the aggregator held: when all clients had come, after half of the calls, at last."""
    wrong: Counter[str] = field(default_factory=Counter[str])
    """What reached somebody it was not meant for, or was not what it should be, by kind."""
    missing: Counter[str] = field(default_factory=Counter[str])
    arrived: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])

    def table(self) -> str:
        """Show it to a person."""
        rows = [f"{'':10}{'right':>10}{'wrong':>8}{'missing':>9}"]
        rows += [
            f"{kind:10}{self.arrived[kind]:>10,}{self.wrong[kind]:>8}{self.missing[kind]:>9}"
            for kind in ("results", "progress", "logs", "cancels")
        ]
        rate = self.calls / self.seconds if self.seconds else 0
        before, half, after = (size >> 20 for size in self.memory)
        rows += [
            f"calls: {self.calls:,} in {self.seconds:.0f} s ({rate:.0f} a second)",
            f"logs on pipes that could be anybody's: {self.missing['unattributable']:,}",
            f"memory: {before} MiB with all there, {half} MiB after half, {after} MiB at last",
        ]
        return "\n".join([*rows, *self.examples[:10]]) + "\n"


async def crowd(directory: Path, clients: int, calls: int, at_once: int) -> Report:
    """Have many clients make many calls each, so many at a time."""
    async with AsyncExitStack() as stack:
        url, process = await stack.enter_async_context(aggregator(directory))
        account = Account(SERVERS, PIPES)
        visitors = [Visitor(number, url, account) for number in range(clients)]
        for visitor in visitors:
            await stack.enter_async_context(visitor.present())
        report = Report(memory=[_memory(process)])
        began = time.perf_counter()
        half = calls // 20 * 10
        for share in (half, calls - half):
            async with anyio.create_task_group() as group:
                for visitor in visitors:
                    group.start_soon(visitor.make_calls, share, at_once)
            report.memory.append(_memory(process))
        report.seconds = time.perf_counter() - began
        await _settle(report, account, visitors[0])
    return report


async def _settle(report: Report, account: Account, visitor: Visitor) -> None:
    """Compare what clients have seen with what servers have."""
    for server in SERVERS:
        with anyio.move_on_after(SETTLING):
            await visitor.tally(server, len(account.cancelled[server]))
        await _compare(report, account, visitor, server)
    report.calls = account.calls
    report.wrong += account.wrong
    report.arrived += account.arrived
    report.missing += account.missing
    report.examples += account.examples


async def _compare(report: Report, account: Account, visitor: Visitor, server: str) -> None:
    """Hold what a server took to be cancelled against what clients have cancelled."""
    seen = Counter[str]((await visitor.tally(server, 0))["cancelled"])
    meant = Counter(account.cancelled[server])
    report.wrong["cancels"] += (seen - meant).total()
    report.missing["cancels"] += (meant - seen).total()
    report.arrived["cancels"] += (seen & meant).total()
    report.examples += [f"cancels: {server} did not see {nonce}" for nonce in meant - seen]


@asynccontextmanager
async def aggregator(directory: Path) -> AsyncGenerator[tuple[str, anyio.abc.Process], None]:
    """Serve over HTTP in front of the four servers; give the address and the process."""
    async with AsyncExitStack() as stack:
        servers = {name: _on_pipe(name) for name in PIPES}
        for name in SITES:
            url, _process = await stack.enter_async_context(_spoken(*_witness(name), "0"))
            servers[name] = {"url": url}
        bounds = {"maxInFlight": 10_000, "maxQueued": 10_000}
        configured = {name: {**server, **bounds} for name, server in servers.items()}
        path = directory / "servers.yaml"
        path.write_text(json.dumps({"state": False, "servers": configured}), encoding="utf-8")
        command = ("-m", "aggregator", "serve", "--config", str(path), "--http", "0", "--no-auth")
        yield await stack.enter_async_context(_spoken(*command))


def _witness(name: str) -> tuple[str, ...]:
    return "-m", "tests.loopback.witness", ERAS[name.partition("_")[2]]


def _on_pipe(name: str) -> dict[str, object]:
    return {"command": sys.executable, "args": [*_witness(name)], "cwd": str(ROOT)}


@asynccontextmanager
async def _spoken(*command: str) -> AsyncGenerator[tuple[str, anyio.abc.Process], None]:
    """Run a program of ours that says where it serves; give the address and the process."""
    async with await anyio.open_process([sys.executable, *command], cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = anyio.Event()
        found: list[str] = []

        async def listen(stream: anyio.abc.ByteReceiveStream) -> None:
            async for chunk in stream:
                for word in chunk.decode(errors="replace").split():
                    if not found and word.startswith("http://"):
                        found.append(word)
                        said.set()

        async with anyio.create_task_group() as group:
            group.start_soon(listen, process.stdout)
            group.start_soon(listen, process.stderr)
            with anyio.fail_after(SETTLING):
                await said.wait()
            try:
                yield found[0], process
            finally:
                # What still waits for something is not waited for.
                process.kill()
                with anyio.CancelScope(shield=True):
                    await process.wait()
                group.cancel_scope.cancel()


def _memory(process: anyio.abc.Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    lines = [line.split() for line in status.splitlines()]
    return 1024 * next(int(line[1]) for line in lines if line[0] == "VmRSS:")


async def main(*numbers: int) -> int:
    """Run it in full, unless told otherwise; return the exit status."""
    clients, calls, at_once = (*numbers, *(100, 1000, 10)[len(numbers) :])
    with tempfile.TemporaryDirectory() as directory, anyio.fail_after(PATIENCE):
        report = await crowd(Path(directory), clients, calls, at_once)
    sys.stdout.write(
        f"{clients} clients, {calls} calls each, {at_once} at a time\n{report.table()}"
    )
    unexpected = report.missing.total() - report.missing["unattributable"]
    return 1 if report.wrong or unexpected else 0


if __name__ == "__main__":
    sys.exit(anyio.run(main, *map(int, sys.argv[1:])))
