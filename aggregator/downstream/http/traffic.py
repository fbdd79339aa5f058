"""The requests in flight to one server, and whether the link to it is still worth keeping."""

from collections.abc import Generator
from contextlib import contextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, RequestId

from aggregator.downstream.http.fault import UndoneError
from aggregator.downstream.link import Undone

FAILURES_TOLERATED = 3
"""Requests in a row that may fail before the link is given up and made anew."""

LASTING = "subscriptions/listen"
"""A request that is in flight for as long as the link is, and so is not waited for."""

Inbox = MemoryObjectSendStream[SessionMessage | Exception]


class Traffic:
    """What is under way on one link."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._requests: dict[RequestId, anyio.CancelScope] = {}
        self._calls = 0
        self._failures = 0
        self._loss: Undone | None = None

    def describe_end(self) -> str:
        """Say why the link was given up."""
        return self._loss.reason if self._loss else "the connection closed"

    def is_barred(self) -> bool:
        """Say whether a new link would be turned away like this one."""
        return self._loss is not None and self._loss.is_barred

    @property
    def is_lost(self) -> bool:
        """Whether the link is to be given up."""
        return self._loss is not None

    def begin(self, request: JSONRPCRequest) -> anyio.CancelScope:
        """Note a request before it is sent, so that it can be abandoned from then on."""
        scope = anyio.CancelScope()
        self._requests[request.id] = scope
        return scope

    @contextmanager
    def under_way(
        self, request: JSONRPCRequest, scope: anyio.CancelScope
    ) -> Generator[None, None, None]:
        """Count a request for the length of the block; end the link after it if it is lost."""
        self._calls += request.method != LASTING
        try:
            with scope:
                yield
        finally:
            self._calls -= request.method != LASTING
            self._requests.pop(request.id, None)
            self._settle()

    def abandon(self, request: RequestId) -> None:
        """Stop waiting for an answer that nobody wants any more."""
        if (scope := self._requests.get(request)) is not None:
            scope.cancel()

    async def deliver(self, message: JSONRPCMessage, related: RequestId | None = None) -> None:
        """Hand on a message, with the request whose stream it came on if there was one.

        Nobody may be there any more to take it.
        """
        metadata = None if related is None else ServerMessageMetadata(related_request_id=related)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._inbox.send(SessionMessage(message, metadata))

    async def fail(self, request: JSONRPCRequest, error: UndoneError) -> None:
        """Answer a request with what went wrong."""
        await self.deliver(JSONRPCError(jsonrpc="2.0", id=request.id, error=error.error))

    def worked(self) -> None:
        """Note that the server answers."""
        self._failures = 0

    def failed(self, error: UndoneError) -> None:
        """Note a failure; too many, or one that says enough, cost the link."""
        self._failures += 1
        says_enough = error.is_unreachable or error.undone.is_barred
        if says_enough or self._failures >= FAILURES_TOLERATED:
            self.lose(error.undone)

    def lose(self, undone: Undone) -> None:
        """Give up the link as soon as no call is under way on it."""
        self._loss = self._loss or undone
        self._settle()

    def end(self, undone: Undone) -> None:
        """End the link at once, with whatever is under way on it."""
        self._loss = self._loss or undone
        self._inbox.close()

    def _settle(self) -> None:
        if self._loss is not None and not self._calls:
            self._inbox.close()
