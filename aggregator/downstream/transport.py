"""What carries messages to one server and back, whatever it is made of."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from mcp_types import JSONRPCMessage, JSONRPCRequest, RequestId

Headers = Mapping[str, str]
"""What Streamable HTTP repeats of a message beside it; nobody else looks at it."""

NO_HEADERS: Headers = MappingProxyType({})


class Related(NamedTuple):
    """A message that came on the stream of one of our requests."""

    message: JSONRPCMessage
    request: RequestId


class Remedy(NamedTuple):
    """What a person can do so that a server may be used."""

    command: str
    """What to type."""
    until_done: Callable[[], Coroutine[Any, Any, None]]
    """Waits until somebody may have done it."""
    scope: str = ""
    """The rights that the login there is does not have."""


class Undelivered(NamedTuple):
    """Why a request got no answer, from the transport that carried it."""

    reason: str
    may_have_run: bool = True
    """Whether the server may have acted on the request all the same."""
    retry_after: float = 0.0
    """Seconds the server asks to be left alone."""
    is_barred: bool = False
    """Whether trying again is pointless until something changes."""
    is_unreachable: bool = False
    """Whether no connection could be made at all."""
    request: RequestId | None = None
    """Which request it was, once that is known."""
    remedy: Remedy | None = None
    """What a person can do about it, if that is to log in."""


NOISE = "not a message on standard output: "
"""What such a line is shown with."""


class Line(NamedTuple):
    """A line that a server wrote besides its messages, safe to show."""

    text: str
    is_noise: bool = False
    """Whether it stood on standard output, where only messages belong."""
    is_beside: bool = False
    """Whether it says nothing of how the server ended."""

    def __str__(self) -> str:
        return f"{NOISE}{self.text}" if self.is_noise else self.text


Received = JSONRPCMessage | Related | Undelivered
"""What comes from a transport, in the order it came."""


Take = Callable[[Received], None]
"""Takes what comes."""


Tap = Callable[[JSONRPCMessage], bool]
"""Takes a message at once, or says that it does not."""


class UndeliveredError(Exception):
    """A request that got no answer, although the connection may be as good as before."""

    def __init__(self, undelivered: Undelivered) -> None:
        super().__init__(undelivered.reason)
        self.undelivered = undelivered


class ConnectionClosedError(Exception):
    """The connection closed before there was an answer."""

    def __init__(self) -> None:
        super().__init__("Connection closed")


class NotSentError(ConnectionClosedError):
    """The connection had closed before anything of the request was sent."""


class Transport(Protocol):
    """An open connection, before anybody has said anything on it."""

    async def receive(self, tap: Tap | None = None, /) -> Received:
        """Return what comes next and is not tapped.

        A transport may offer to `tap` what it can where it reads it.

        Raises:
            EndOfStream: Nothing more will come.
        """
        ...

    async def send(self, message: JSONRPCMessage, headers: Headers = NO_HEADERS, /) -> None:
        """Send a message.

        Raises:
            BrokenResourceError: Nobody reads it any more.
            ClosedResourceError: The connection has been closed.
        """
        ...

    def put(self, request: JSONRPCRequest, headers: Headers, take: Take, /) -> bool:
        """Send a request without waiting; say whether that can be done.

        What comes back on a way of its own is not received, but taken.

        Raises:
            BrokenResourceError: Nobody reads it any more.
            ClosedResourceError: The connection has been closed.
        """
        ...

    def describe_end(self) -> str:
        """Say, once nothing more comes, how it came to that."""
        ...

    def is_stuck(self) -> bool:
        """Whether what was sent is not being read."""
        ...

    def is_barred(self) -> bool:
        """Whether a new connection would be pointless until something changes."""
        ...

    def remedy(self) -> Remedy | None:
        """Return what a person can do so that a new connection would be of use."""
        ...

    def last_words(self) -> Sequence[Line]:
        """Return the last lines of what a server wrote besides its messages."""
        ...

    @property
    def noise_count(self) -> int:
        """How many lines that are no messages came where only messages belong."""
        ...


Connect = Callable[[], AbstractAsyncContextManager[Transport]]
"""Opens the transport to one server; entered and left by one task."""
