"""What the SDK calls a stream, beyond the one method that reads a message or writes it."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

import anyio
from mcp.shared.message import SessionMessage


class Closable(ABC):
    """What is closed at the end of a block."""

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of what it is on."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class Readable(Closable):
    """What messages come from, one after another."""

    @abstractmethod
    async def receive(self) -> SessionMessage | Exception:
        """Return what comes next.

        Raises:
            EndOfStream: Nothing more will come.
        """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
