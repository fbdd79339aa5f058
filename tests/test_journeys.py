"""How long the ways through the rooms are: a call, and a server that comes late.

Every frame on the way of a call costs time and has to be read by whoever follows it. Measured in
memory, so what a pipe adds is not counted.
"""

import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

import aggregator
from aggregator.catalog import Ready
from aggregator.config import Settings
from tests.peers import Era, Peer, aggregating, connect_to, ready, until, visiting
from tests.raw import on_pipes

pytestmark = pytest.mark.anyio

FRAMES = 8
"""Functions of ours that a call is inside of when it is handed to its server's transport.

To write it to a pipe takes two more.
"""
HOPS = 6
"""Functions of ours from the report that a server is ready to the announcement of its tools."""

ROOMS = f"{Path(aggregator.__file__).parent}/"

Look = Callable[[FrameType], None]


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@contextmanager
def looking(look: Look) -> Generator[None]:
    """Look at every function as it is entered or gone on with."""

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            look(frame)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def frames_of_ours(frame: FrameType | None) -> list[FrameType]:
    """Return the functions of ours that one is inside of, the outermost first."""
    found: list[FrameType] = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(ROOMS):
            found.append(frame)
        frame = frame.f_back
    return found[::-1]


def place(frame: FrameType) -> str:
    """Say where a function is, as the map has it."""
    return f"{frame.f_code.co_filename.removeprefix(ROOMS)}:{frame.f_code.co_qualname}"


def sent(frame: FrameType) -> Any:
    """Return the message that is put into a stream by this very function, if one is."""
    item: Any = frame.f_locals.get("item") if frame.f_code.co_name.startswith("send") else None
    match item:
        case SessionMessage() | (_, SessionMessage()):
            # Where it is sent at once, it is with its context.
            return item.message if isinstance(item, SessionMessage) else item[1].message
        case _:
            return None


async def test_a_call_crosses_few_frames(client_era: Era, server_era: Era) -> None:
    stacks: list[list[str]] = []

    def look(frame: FrameType) -> None:
        match sent(frame):
            case JSONRPCRequest(method="tools/call", params={"name": "query"}):
                stacks.append([place(each) for each in frames_of_ours(frame)])
            case _:
                pass

    async with aggregating({"db": connect_to(Peer("query"), server_era)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, client_era) as client:
            with looking(look):
                await client.call_tool("db__query", {})

    # A transport that waits is looked at again; and what the server's side does is not ours.
    stack = max(stacks, key=len)
    assert stack[0].startswith("upstream/")
    assert stack[-1].startswith("downstream/")
    assert len(stack) <= FRAMES, "\n".join(stack)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_plain_call_crosses_few_frames(client_era: Era) -> None:
    stacks: list[list[str]] = []

    def look(frame: FrameType) -> None:
        match sent(frame):
            case JSONRPCRequest(method="tools/call", params={"name": "query"}):
                stacks.append([place(each) for each in frames_of_ours(frame)])
            case _:
                pass

    async with aggregating({"db": connect_to(Peer("query"), client_era)}) as upstream:
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            with looking(look):
                await client.request("tools/call", {"name": "db__query", "arguments": {}})

    # What reads is inside of nothing, and has decoded it.
    stack = [each for each in max(stacks, key=len) if not each.startswith("jsonrpc/")]
    assert stack[0].startswith("upstream/")
    assert stack[-1].startswith("downstream/")
    assert len(stack) <= FRAMES, "\n".join(stack)


class Way:
    """The functions of ours from the report of a ready server to an announcement.

    A hop is a function that is entered on the way, or one that waited and is woken by it. The way
    is followed from one to the next wherever somebody is woken, and ends where the announcement
    is handed to the client's transport; what is computed beside it does not count.
    """

    def __init__(self) -> None:
        self.hops: list[str] = []
        self.is_over = False
        self._before = set[FrameType]()
        self._began = False

    def look(self, frame: FrameType) -> None:
        if self.is_over:
            return
        if not self._began:
            self._began = self._reports_ready(frame)
        if not self._began:
            if frame.f_code.co_filename.startswith(ROOMS):
                self._before.add(frame)
        elif self._wakes(frame) or self._announces(frame):
            self._follow(frames_of_ours(frame))
            self.is_over = self._announces(frame)

    def _follow(self, stack: list[FrameType]) -> None:
        """Count what was entered since, and of what waited only the innermost."""
        waited = [each for each in stack if each in self._before]
        entered = [each for each in stack if each not in self._before]
        is_downstream = waited and place(waited[-1]).startswith("downstream/")
        if is_downstream and not any(place(each).startswith("fleet/") for each in entered):
            # The server's own task goes on beside the way.
            return
        for each in [*([] if is_downstream else waited[-1:]), *entered]:
            if place(each) not in self.hops:
                self.hops.append(place(each))

    def _reports_ready(self, frame: FrameType) -> bool:
        """Whether this is where a downstream tells the fleet that it is ready."""
        callers = frames_of_ours(frame.f_back)
        return (
            place(frame).startswith("fleet/")
            and bool(callers)
            and place(callers[-1]).startswith("downstream/")
            and any(isinstance(each, Ready) for each in frame.f_locals.values())
        )

    def _wakes(self, frame: FrameType) -> bool:
        return frame.f_code.co_qualname == "Event.set" and bool(frames_of_ours(frame))

    def _announces(self, frame: FrameType) -> bool:
        match sent(frame):
            case JSONRPCNotification(method="notifications/tools/list_changed"):
                return bool(frames_of_ours(frame))
            case _:
                return False


async def test_a_late_server_is_announced_in_few_hops() -> None:
    gate = anyio.Event()
    way = Way()
    told: list[object] = []
    heard = anyio.Event()

    @asynccontextmanager
    async def late() -> AsyncGenerator[Any, None]:
        await gate.wait()
        async with connect_to(Peer("query"))() as wire:
            yield wire

    async def hear(message: object) -> None:
        told.append(message)
        heard.set()

    async with aggregating({"late": late}, Settings(surface="full")) as upstream:
        with looking(way.look):
            async with visiting(upstream, "handshake", message_handler=hear) as client:
                await client.list_tools()
                await anyio.sleep(1)
                gate.set()
                await until(lambda: bool(told), lambda: heard)

    assert way.is_over
    assert len(way.hops) <= HOPS, "\n".join(way.hops)
