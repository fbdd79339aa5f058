"""Start the faulty server, and call its tools through the SDK's dispatcher."""

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext

from aggregator.downstream.stdio.child import Child, ChildSpec, open_child
from aggregator.downstream.stdio.watchdog import Watchdog
from tests.census import Census

FAULTY = Path(__file__).parents[2] / "faulty.py"


def faulty(*arguments: str, **rest: Any) -> ChildSpec:
    """What to run to have the faulty server."""
    return ChildSpec(sys.executable, [str(FAULTY), *arguments], **rest)


@dataclass(slots=True)
class Running:
    """A child, what it logged, and a way to call its tools."""

    child: Child
    dispatcher: JSONRPCDispatcher[TransportContext]
    logged: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notified: list[str] = field(default_factory=list[str])

    async def call(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool and return its result as it came."""
        params = {"name": name, "arguments": arguments}
        return await self.dispatcher.send_raw_request("tools/call", params)

    async def text(self, name: str, **arguments: object) -> str:
        """Call a tool and return the text of its result."""
        return (await self.call(name, **arguments))["content"][0]["text"]

    async def error(self, name: str, **arguments: object) -> MCPError:
        """Call a tool and return the error it must end with."""
        try:
            result = await self.call(name, **arguments)
        except MCPError as error:
            return error
        raise AssertionError(f"the call succeeded: {result}")


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
        running = Running(child, JSONRPCDispatcher(*child.streams), logged)
        async with anyio.create_task_group() as group:
            await group.start(run, running.dispatcher, running.notified.append)
            yield running
            group.cancel_scope.cancel()


async def run(
    dispatcher: JSONRPCDispatcher[TransportContext],
    heard: Callable[[str], None],
    *,
    task_status: anyio.abc.TaskStatus[None],
) -> None:
    """Read what the server sends; note its notifications, refuse its requests."""

    async def refuse(
        _context: DispatchContext[TransportContext], method: str, _params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        raise MCPError(-32601, method)

    async def ignore(
        _context: DispatchContext[TransportContext], _method: str, _params: Mapping[str, Any] | None
    ) -> None:
        """Leave it at `hear`."""

    def hear(method: str, _params: Mapping[str, Any] | None) -> bool:
        heard(method)
        return True

    await dispatcher.run(refuse, ignore, hear, task_status=task_status)
