"""Many clients of both eras at once, each with secrets of its own, and none that another sees.

python -m tests.loopback.soak [CLIENTS] [SECONDS]
"""

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import anyio
import mcp_types as types
from mcp import Client

from tests.downstream.http.test_reaching_servers import at
from tests.loopback.door import Open, door
from tests.loopback.web import peer_at
from tests.peers import ERAS, Context, Era, Peer, connect_to, ready, text_of


class Echo(Peer):
    """Says what it is told, and reports it as progress on the way."""

    def __init__(self) -> None:
        super().__init__("echo")

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        nonce = str((params.arguments or {}).get("nonce"))
        await ctx.session.report_progress(1, 2, nonce)
        return types.CallToolResult(content=[types.TextContent(type="text", text=nonce)])


@dataclass
class Tally:
    """What all clients have seen together."""

    calls: int = 0
    searches: int = 0
    crossings: list[str] = field(default_factory=list[str])
    sizes: list[int] = field(default_factory=list[int])

    def expect(self, sent: str, seen: str) -> None:
        if seen != sent:
            self.crossings.append(f"{sent} got {seen}")


async def crowd(directory: Path, clients: int, *, seconds: float = 0.0, rounds: int = 0) -> Tally:
    """Have many clients call and search, for a time or a number of rounds each."""
    tally = Tally()
    async with peer_at(Echo()) as url:
        servers = {"near": connect_to(Echo()), "web": at(url)}
        async with door(servers, directory) as opened:
            await ready(opened.upstream)
            until = anyio.current_time() + seconds
            async with anyio.create_task_group() as group:
                for number in range(clients):
                    group.start_soon(visit, opened, ERAS[number % 2], tally, until, rounds)
                group.start_soon(weigh, tally, until)
    return tally


async def visit(opened: Open, era: Era, tally: Tally, until: float, rounds: int) -> None:
    """Be one client."""
    async with opened.client(era) as client:
        while rounds > 0 or anyio.current_time() < until:
            rounds -= 1
            await call(client, "near", tally)
            await call(client, "web", tally)
            found = text_of(await client.call_tool("ToolSearch", {"query": "echo"}))
            tally.searches += 1
            tally.expect("found", "found" if "near__echo" in found else found)


async def call(client: Client, server: str, tally: Tally) -> None:
    """Send a secret, and see what comes back."""
    nonce = uuid4().hex

    async def step(progress: float, total: float | None, message: str | None) -> None:
        tally.expect(nonce, message or "")

    arguments = {"name": f"{server}__echo", "arguments": {"nonce": nonce}}
    result = await client.call_tool("CallTool", arguments, progress_callback=step)
    tally.calls += 1
    tally.expect(nonce, text_of(result))


async def weigh(tally: Tally, until: float) -> None:
    """Note how large the process is, every few seconds."""
    while anyio.current_time() < until:
        tally.sizes.append(_size())
        await anyio.sleep(5)


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20


async def _main(clients: int, seconds: float) -> None:
    tally = await crowd(Path(tempfile.mkdtemp()), clients, seconds=seconds)
    sys.stdout.write(
        f"{clients} clients, {tally.calls} calls, {tally.searches} searches\n"
        f"crossings: {len(tally.crossings)} {tally.crossings[:3]}; MiB: {tally.sizes}\n"
    )


if __name__ == "__main__":
    anyio.run(_main, int((sys.argv[1:] or ["100"])[0]), float((sys.argv[2:] or ["60"])[0]))
