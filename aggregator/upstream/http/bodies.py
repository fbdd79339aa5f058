"""The bodies of requests under way: each is weighed before it is parsed, and all have a bound.

A few megabytes of `{},{},{},` are parsed to hundreds, and whoever parses them is deaf meanwhile.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.types import Message, Receive

from aggregator.basics.turns import in_turns
from aggregator.jsonrpc.weight import weighing, weight

MAX_BODY_BYTES = 16 << 20
"""Bytes one request of a client may have."""
MAX_TOGETHER = 320 << 20
"""Bytes of memory that the larger bodies may take together: four of the heaviest."""
SMALL_BYTES = 64 * 1024
"""Bytes up to which a body is let in beside the larger ones, however many there are."""


class BodyRefusedError(Exception):
    """A body that is not parsed."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Bodies:
    """Knows how much memory is left for bodies."""

    def __init__(self, limit: int = MAX_BODY_BYTES, together: int = MAX_TOGETHER) -> None:
        self._limit = limit
        self._room = together

    @asynccontextmanager
    async def taken(self, receive: Receive, first: Message) -> AsyncGenerator[bytes | None, None]:
        """Read the rest of a body, and have room for all of it for the length of the block.

        There is none where the client has gone meanwhile.

        Raises:
            BodyRefusedError: It is too long, too heavy, or there is no room for it now.
        """
        share = _Share(self)
        try:
            yield await self._read(receive, first, share)
        finally:
            share.resize(0)

    def take(self, size: int) -> None:
        """Take some of the room, or give some back.

        Raises:
            BodyRefusedError: There is not as much left.
        """
        if size > self._room:
            raise BodyRefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Too many large requests are under way: try again when some are answered",
            )
        self._room -= size

    async def _read(self, receive: Receive, first: Message, share: "_Share") -> bytes | None:
        pieces: list[bytes] = []
        size = 0
        message = first
        while message["type"] == "http.request":
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self._limit:
                raise too_long(self._limit)
            share.resize(size)
            if not message.get("more_body", False):
                return await self._whole(b"".join(pieces), share)
            message = await receive()
        return None

    async def _whole(self, body: bytes, share: "_Share") -> bytes:
        if not await in_turns(weighing(body, self._limit)):
            raise BodyRefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The values in these {len(body):,} bytes would take too much memory: "
                "send fewer at a time",
            )
        if len(body) > SMALL_BYTES:
            share.resize(weight(body, self._limit))
        return body


def too_long(limit: int) -> BodyRefusedError:
    """Return what is said of a body that has more bytes than it may have."""
    return BodyRefusedError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"A request may have {limit:,} bytes: send less at a time",
    )


def small(message: Message) -> bytes | None:
    """Return the body that is in a message whole, if it is so small that it needs no room."""
    if message["type"] != "http.request" or message.get("more_body", False):
        return None
    body: bytes = message.get("body", b"")
    return body if len(body) <= SMALL_BYTES else None


class _Share:
    """What one body has of the room."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._size = 0

    def resize(self, size: int) -> None:
        """Have as much; a small body needs none."""
        size = size if size > SMALL_BYTES else 0
        self._bodies.take(size - self._size)
        self._size = size
