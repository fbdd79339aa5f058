"""The requests in flight to one server, and whether the link to it is still worth keeping."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Protocol, Self

import anyio
from mcp_types import JSONRPCMessage, JSONRPCRequest, RequestId

from aggregator.downstream.transport import (
    Line,
    Received,
    Remedy,
    Tap,
    Undelivered,
    UndeliveredError,
)

FAILURES_TOLERATED = 3
"""Requests in a row that may fail before the link is given up and made anew."""

LASTING = "subscriptions/listen"
"""A request that is in flight for as long as the link is, and so is not waited for."""


class Abandoned(Protocol):
    """What waits for an answer."""

    def cancel(self) -> None:
        """Wait no more."""
        ...


class Traffic:
    """What is under way on one link, and what comes back: the half of a transport that hears."""

    def __init__(self) -> None:
        self._inbox, self._inward = anyio.create_memory_object_stream[Received](0)
        self._requests: dict[RequestId, Abandoned] = {}
        self._withdrawn = set[RequestId]()
        """Those of them that nobody wants an answer to: a server may end them without one."""
        self._calls = 0
        self._failures = 0
        self._loss: Undelivered | None = None
        self._is_over = False
        """Whether nothing more comes."""

    async def receive(self, _tap: Tap | None = None, /) -> Received:
        """Return what comes next.

        Raises:
            EndOfStream: Nothing more will come.
        """
        return await self._inward.receive()

    def describe_end(self) -> str:
        """Say why the link was given up."""
        return self._loss.reason if self._loss else "the connection closed"

    def is_stuck(self) -> bool:
        """Whether what was sent is not being read: each message has a connection of its own."""
        return False

    def is_barred(self) -> bool:
        """Say whether a new link would be turned away like this one."""
        return self._loss is not None and self._loss.is_barred

    def remedy(self) -> Remedy | None:
        """Return what a person can do so that a new link would not be turned away."""
        return self._loss.remedy if self._loss else None

    def last_words(self) -> Sequence[Line]:
        """Return nothing: what a server far away says besides messages is not heard here."""
        return ()

    @property
    def noise_count(self) -> int:
        """None: there are no lines."""
        return 0

    @property
    def is_lost(self) -> bool:
        """Whether the link is to be given up."""
        return self._loss is not None

    def check_open(self) -> None:
        """See to it that nothing is sent when nothing more comes.

        Raises:
            ClosedResourceError: The link is over, which its owner may not know yet.
        """
        if self._is_over:
            raise anyio.ClosedResourceError

    def begin(self, request: JSONRPCRequest, *, is_counted: bool = False) -> anyio.CancelScope:
        """Count a request before it is sent; it can be abandoned from then on."""
        if not is_counted:
            self._calls += request.method != LASTING
        scope = anyio.CancelScope()
        self._requests[request.id] = scope
        return scope

    @contextmanager
    def under_way(
        self, request: JSONRPCRequest, scope: anyio.CancelScope
    ) -> Generator[None, None, None]:
        """Count a request no more after the block; end the link after it if it is lost."""
        try:
            with scope:
                yield
        finally:
            self.leave(request)

    def enter(self, request: JSONRPCRequest, waiting: Abandoned) -> None:
        """Count a request until it leaves, and know what can be abandoned."""
        self._calls += request.method != LASTING
        self._requests[request.id] = waiting

    def leave(self, request: JSONRPCRequest) -> None:
        """Count a request no more; end the link after it if it is lost."""
        self._calls -= request.method != LASTING
        self._requests.pop(request.id, None)
        self._withdrawn.discard(request.id)
        self._settle()

    def withdraw(self, request: RequestId) -> None:
        """Note that nobody wants an answer any more, whatever becomes of the request."""
        if request in self._requests:
            self._withdrawn.add(request)

    def is_withdrawn(self, request: JSONRPCRequest) -> bool:
        """Whether nobody wants the answer to a request."""
        return request.id in self._withdrawn

    def abandon(self, request: RequestId) -> None:
        """Stop waiting for an answer that nobody wants any more."""
        if (scope := self._requests.get(request)) is not None:
            scope.cancel()

    async def deliver(self, item: JSONRPCMessage | Undelivered) -> None:
        """Hand on what came on the stream of no request, or what went wrong with one."""
        # Nobody may be there any more to take it.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._inbox.send(item)

    def note_answer(self) -> None:
        """Note that the server answers."""
        self._failures = 0

    def note_failure(self, error: UndeliveredError) -> None:
        """Note a failure; too many, or one that says enough, cost the link."""
        self._failures += 1
        says_enough = error.undelivered.is_unreachable or error.undelivered.is_barred
        if says_enough or self._failures >= FAILURES_TOLERATED:
            self.lose(error.undelivered)

    def lose(self, undelivered: Undelivered) -> None:
        """Give up the link as soon as no call is under way on it."""
        self._loss = self._loss or undelivered
        self._settle()

    def end(self, undelivered: Undelivered) -> None:
        """End the link at once, with whatever is under way on it."""
        self._loss = self._loss or undelivered
        self._close()

    def _settle(self) -> None:
        if self._loss is not None and not self._calls:
            self._close()

    def _close(self) -> None:
        self._is_over = True
        self._inbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self._close()
        self._inward.close()
