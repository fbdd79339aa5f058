"""The bodies of requests under way: each is weighed before it is parsed, and all have a bound.

A few megabytes of `{},{},{},` are parsed to hundreds, and whoever parses them is deaf meanwhile.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.types import Message, Receive

from aggregator.jsonrpc.weight import weighing, weight
from aggregator.turns import in_turns

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
    async def taken(self, receive: Receive) -> AsyncGenerator[Receive, None]:
        """Read a body, and have room for it for the length of the block, where it comes again.

        Raises:
            BodyRefusedError: It is too long, too heavy, or there is no room for it now.
        """
        share = _Share(self)
        try:
            messages = await self._read(receive, share)

            async def again() -> Message:
                return messages.pop() if messages else await receive()

            yield again
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

    async def _read(self, receive: Receive, share: "_Share") -> list[Message]:
        """Return a body as one message, and before it, if the client has gone, that it has."""
        pieces: list[bytes] = []
        size = 0
        while (message := await receive())["type"] == "http.request":
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self._limit:
                raise BodyRefusedError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"A request may have {self._limit:,} bytes: send less at a time",
                )
            share.resize(size)
            if not message.get("more_body", False):
                return [await self._whole(b"".join(pieces), share)]
        return [message]

    async def _whole(self, body: bytes, share: "_Share") -> Message:
        if not await in_turns(weighing(body, self._limit)):
            raise BodyRefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The values in these {len(body):,} bytes would take too much memory: "
                "send fewer at a time",
            )
        if len(body) > SMALL_BYTES:
            share.resize(weight(body, self._limit))
        return {"type": "http.request", "body": body, "more_body": False}


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
