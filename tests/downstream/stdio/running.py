"""Start the faulty server, and call its tools without a handshake."""

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from mcp.shared.exceptions import MCPError
from mcp_types import RequestId

from aggregator.downstream.exchange import REQUEST_FAILURES, Exchange
from aggregator.downstream.introduction import Ourselves
from aggregator.downstream.link import Link, open_link
from aggregator.downstream.stdio.child import Child, ChildSpec, open_child
from aggregator.downstream.stdio.watchdog import Watchdog
from tests.census import Census
from tests.transports import NoNews

FAULTY = Path(__file__).parents[2] / "faulty.py"


def faulty(*arguments: str, **rest: Any) -> ChildSpec:
    """What to run to have the faulty server."""
    return ChildSpec(sys.executable, [str(FAULTY), *arguments], **rest)


@dataclass(slots=True)
class Running:
    """A child, what it logged, and a way to call its tools."""

    child: Child
    exchange: Exchange
    logged: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notified: list[str] = field(default_factory=list[str])

    async def call(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool and return its result as it came."""
        params = {"name": name, "arguments": arguments}
        return await self.exchange.request(self.exchange.next_number(), "tools/call", params)

    async def text(self, name: str, **arguments: object) -> str:
        """Call a tool and return the text of its result."""
        return (await self.call(name, **arguments))["content"][0]["text"]

    async def answer(
        self, _related: RequestId | None, method: str, _params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Refuse what the server asks."""
        raise MCPError(-32601, method)

    def hear(
        self, _related: RequestId | None, method: str, _params: Mapping[str, Any] | None
    ) -> None:
        """Note what the server tells."""
        self.notified.append(method)

    async def error(self, name: str, **arguments: object) -> Exception:
        """Call a tool and return the error it must end with."""
        try:
            result = await self.call(name, **arguments)
        except REQUEST_FAILURES as error:
            return error
        raise AssertionError(f"the call succeeded: {result}")


def linked(child: Child) -> AbstractAsyncContextManager[Link]:
    """Introduce ourselves to a child."""

    async def refuse(_call: object, method: str, _params: object) -> dict[str, Any]:
        raise MCPError(-32601, method)

    ours = Ourselves({"name": "tests", "version": "1"}, dict[str, Any])
    return open_link(child, ours=ours, era=None, events=NoNews(), answer=refuse)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something holds that needs no more than that."""
    while not condition():
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def watched(census: Census) -> AsyncGenerator[Watchdog]:
    """A watchdog whose children the census knows."""
    async with Watchdog() as watchdog:
        census.cookies.add(watchdog.cookie)
        yield watchdog


@asynccontextmanager
async def running(spec: ChildSpec, watchdog: Watchdog) -> AsyncGenerator[Running]:
    """Start a server and speak with it, without a handshake."""
    logged = list[tuple[str, str]]()

    def log(stream: str, line: str) -> None:
        logged.append((stream, line))

    async with open_child(spec, log=log, watchdog=watchdog) as child:
        running = Running(child, Exchange(child), logged)
        async with anyio.create_task_group() as group:
            await group.start(running.exchange.run, running)
            yield running
            group.cancel_scope.cancel()
