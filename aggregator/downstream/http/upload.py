"""Long requests over HTTP: written while their answer is awaited."""

import ssl
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc
import httpx2

from aggregator.downstream.http.reading import Head

PIECE_BYTES = 256 * 1024
"""Bytes of a long request that are written at once."""

BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, ssl.SSLError, OSError)
"""What a connection that is no more raises."""


class Upload:
    """A long request that is written while its answer is awaited: it may be refused before its end.

    A server that refuses it need not read the rest, and whoever writes first would wait in vain.
    """

    def __init__(self, stream: anyio.abc.ByteStream, data: bytes, patience: float) -> None:
        self._stream = stream
        self._data = data
        self._patience = patience
        self._head: Head | None = None
        self._failure: httpx2.HTTPError | None = None
        self._cause: BaseException | None = None

    async def run(self, head: Callable[[], Awaitable[Head]], spoil: Callable[[], None]) -> Head:
        """Write it, for as long as somebody reads and nothing is answered; return the answer.

        Raises:
            HTTPError: There was none.
        """
        is_whole = False
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, head, group.cancel_scope)
            try:
                await self._write()
                is_whole = True
            except TimeoutError as error:
                self._fail(httpx2.WriteTimeout("the request was not taken in time"), error)
                group.cancel_scope.cancel()
            except BROKEN as error:
                # A server may refuse what it has not read to the end, and close.
                self._fail(httpx2.WriteError(str(error)), error)
        if not is_whole:
            spoil()
        if self._head is None:
            raise self._failure or httpx2.ReadError("nothing was answered") from self._cause
        return self._head

    async def _listen(self, head: Callable[[], Awaitable[Head]], scope: anyio.CancelScope) -> None:
        try:
            self._head = await head()
        except httpx2.HTTPError as error:
            self._fail(error, error.__cause__)
        scope.cancel()

    def _fail(self, failure: httpx2.HTTPError, cause: BaseException | None) -> None:
        """Take note of what went wrong first."""
        if self._failure is None:
            self._failure, self._cause = failure, cause

    async def _write(self) -> None:
        """Write piece by piece: a server that is slow has its time for each."""
        view = memoryview(self._data)
        for at in range(0, len(view), PIECE_BYTES):
            with anyio.fail_after(self._patience):
                await self._stream.send(bytes(view[at : at + PIECE_BYTES]))
