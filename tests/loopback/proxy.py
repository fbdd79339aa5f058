"""A TCP proxy that does to chosen requests what networks and gateways do."""

import socket
import struct
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Self

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.stapled import MultiListener

LOST = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
LARGEST = 1 << 24


class Passage:
    """A client's connection through the proxy, and the request that is on its way."""

    def __init__(self, client: anyio.abc.SocketStream, server: anyio.abc.SocketStream) -> None:
        self.client = client
        self.server = server
        self.request = b""
        self.on_answer: Answered = client.send
        """What is done with each part of an answer."""

    async def forward(self) -> None:
        await self.server.send(self.request)

    async def reset(self) -> None:
        """Break the client's connection as a crash does: without a farewell."""
        sock = self.client.extra_attributes[anyio.abc.SocketAttribute.raw_socket]()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.client.aclose()


Answered = Callable[[bytes], Awaitable[None]]
Fault = Callable[[Passage], Awaitable[None]]
"""Does something else with a request than to forward it."""


async def reset_unsent(passage: Passage) -> None:
    """Break the connection before the server has seen the request."""
    await passage.reset()


async def reset_answer(passage: Passage) -> None:
    """Break the connection once the server has begun to answer."""

    async def break_off(_part: bytes) -> None:
        await passage.reset()

    passage.on_answer = break_off
    await passage.forward()


async def half_answer(passage: Passage) -> None:
    """End the connection politely in the middle of the result."""

    async def cut(part: bytes) -> None:
        whole, found, _ = part.partition(b'"result"')
        await passage.client.send(whole + found)
        if found:
            await passage.client.aclose()

    passage.on_answer = cut
    await passage.forward()


def held(released: anyio.Event) -> Fault:
    """Keep a request until it is released."""

    async def hold(passage: Passage) -> None:
        await released.wait()
        await passage.forward()

    return hold


async def trickled(passage: Passage) -> None:
    """Pass the answer on in crumbs."""

    async def crumble(part: bytes) -> None:
        for at in range(0, len(part), 40):
            await passage.client.send(part[at : at + 40])
            await anyio.lowlevel.checkpoint()

    passage.on_answer = crumble
    await passage.forward()


def saying(status: str, *headers: str, body: str = "<html>gateway</html>") -> Fault:
    """Answer in the server's stead."""
    lines = [f"HTTP/1.1 {status}", "content-type: text/html", f"content-length: {len(body)}"]
    answer = "\r\n".join([*lines, *headers, "", body]).encode()

    async def say(passage: Passage) -> None:
        await passage.client.send(answer)

    return say


class Proxy:
    """Stands in front of a server on the loopback interface."""

    def __init__(
        self, listener: MultiListener[anyio.abc.SocketStream], port: int, target: int
    ) -> None:
        self._listener = listener
        self._target = target
        self._faults: deque[tuple[bytes, Fault]] = deque()
        self.port = port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def next(self, fault: Fault, *, of: bytes = b'"tools/call"') -> Self:
        """Do something to the next request that contains these bytes."""
        self._faults.append((of, fault))
        return self

    async def run(self) -> None:
        await self._listener.serve(self._carry)

    async def _carry(self, client: anyio.abc.SocketStream) -> None:
        async with client:
            try:
                server = await anyio.connect_tcp("127.0.0.1", self._target)
            except OSError:
                return
            passage = Passage(client, server)
            async with server, anyio.create_task_group() as group:
                group.start_soon(self._requests, passage, group.cancel_scope)
                group.start_soon(_answers, passage, group.cancel_scope)

    async def _requests(self, passage: Passage, scope: anyio.CancelScope) -> None:
        source = BufferedByteReceiveStream(passage.client)
        try:
            while True:
                passage.request = await _request(source)
                await self._pass(passage)
        except LOST:
            scope.cancel()

    async def _pass(self, passage: Passage) -> None:
        if self._faults and self._faults[0][0] in passage.request:
            await self._faults.popleft()[1](passage)
        else:
            await passage.forward()


async def _request(source: BufferedByteReceiveStream) -> bytes:
    try:
        head = await source.receive_until(b"\r\n\r\n", LARGEST)
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        body = await source.receive_exactly(length) if length else b""
    except anyio.IncompleteRead as error:
        raise anyio.EndOfStream from error
    return head + b"\r\n\r\n" + body


async def _answers(passage: Passage, scope: anyio.CancelScope) -> None:
    try:
        while True:
            part = await passage.server.receive()
            await passage.on_answer(part)
    except LOST:
        scope.cancel()


@asynccontextmanager
async def proxied(target: int, *, port: int = 0) -> AsyncGenerator[Proxy, None]:
    """Stand in front of a port for the length of the block."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    bound = listener.extra_attributes[anyio.abc.SocketAttribute.local_port]()
    async with listener, anyio.create_task_group() as group:
        proxy = Proxy(listener, bound, target)
        group.start_soon(proxy.run)
        yield proxy
        group.cancel_scope.cancel()
