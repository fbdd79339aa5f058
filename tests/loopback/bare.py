"""Bare HTTP to one address: what a client costs that does nothing else."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import h11

Json = dict[str, Any]

CHUNK = 65536
KEPT = 1.0
"""Seconds a connection may be idle before it is taken to be closed by the other side soon."""


class Wire:
    """Connections to one address, each kept for the next request."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._host, self._port, self._path = address.hostname or "", address.port or 0, address.path
        self._idle: list[tuple[float, anyio.abc.ByteStream, h11.Connection]] = []
        self.session = ""
        """The session that the latest answer to open one has opened."""

    async def close(self) -> None:
        """Hang up."""
        for _, stream, _ in self._idle:
            await stream.aclose()

    @asynccontextmanager
    async def send(
        self, method: str, message: Json | None, headers: dict[str, str]
    ) -> AsyncGenerator[AsyncGenerator[Json, None], None]:
        """Send a message, and give the messages that answer it; leave early to hang up."""
        stream, parser = await self._connection()
        try:
            body = b"" if message is None else json.dumps(message).encode()
            await stream.send(self._request(parser, method, body, headers))
            async with aclosing(self._messages(stream, parser)) as messages:
                yield messages
        finally:
            if parser.our_state is parser.their_state is h11.DONE:
                parser.start_next_cycle()
                self._idle.append((anyio.current_time(), stream, parser))
            else:
                with anyio.CancelScope(shield=True):
                    await anyio.aclose_forcefully(stream)

    async def _connection(self) -> tuple[anyio.abc.ByteStream, h11.Connection]:
        while self._idle:
            since, stream, parser = self._idle.pop()
            if anyio.current_time() - since < KEPT:
                return stream, parser
            await stream.aclose()
        stream = await anyio.connect_tcp(self._host, self._port)
        return stream, h11.Connection(h11.CLIENT)

    def _request(
        self, parser: h11.Connection, method: str, body: bytes, headers: dict[str, str]
    ) -> bytes:
        all_headers = {
            "host": f"{self._host}:{self._port}",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "content-length": str(len(body)),
            **headers,
        }
        request = h11.Request(method=method, target=self._path, headers=list(all_headers.items()))
        data = parser.send(request) or b""
        data += (parser.send(h11.Data(data=body)) or b"") if body else b""
        return data + (parser.send(h11.EndOfMessage()) or b"")

    async def _messages(
        self, stream: anyio.abc.ByteStream, parser: h11.Connection
    ) -> AsyncGenerator[Json, None]:
        rest, is_stream = bytearray(), False
        while True:
            match parser.next_event():
                case h11.NEED_DATA:
                    parser.receive_data(await _received(stream))
                case h11.Response() as response:
                    is_stream = self._begins_stream(response)
                case h11.Data(data=data):
                    rest += data
                    for event in _events(rest) if is_stream else ():
                        yield json.loads(event)
                case h11.EndOfMessage():
                    if rest and not is_stream:
                        yield json.loads(rest)
                    return
                case other:
                    raise ConnectionError(other)

    def _begins_stream(self, response: h11.Response) -> bool:
        """Take note of what a response begins with; return whether events follow."""
        headers = {bytes(name): bytes(value) for name, value in response.headers}
        assert response.status_code in (200, 202, 400), (response.status_code, headers)
        self.session = headers.get(b"mcp-session-id", self.session.encode()).decode()
        return headers.get(b"content-type", b"").startswith(b"text/event-stream")


async def _received(stream: anyio.abc.ByteStream) -> bytes:
    with suppress(anyio.EndOfStream):
        return await stream.receive(CHUNK)
    return b""


def _events(rest: bytearray) -> Iterator[bytes]:
    """Take the data of each whole event off a stream."""
    while (end := rest.find(b"\r\n\r\n")) >= 0:
        lines = bytes(rest[:end]).split(b"\r\n")
        del rest[: end + 4]
        if data := b"".join(line[5:].strip() for line in lines if line.startswith(b"data:")):
            yield data
