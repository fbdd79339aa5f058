"""Requests under way on one link: whom each is for, and what its server says meanwhile."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject
from aggregator.downstream.call_slots import Party
from aggregator.downstream.deadlines import Patience

Notify = Callable[[str, JsonObject], None]
"""Has a client told something, `(method, params)`, in its own time."""

MAX_NOTICES = 256
"""Notifications kept for a client that does not read them; the oldest are dropped."""
MAX_GIVEN_UP = 256
"""Calls remembered after they were given up."""
WITHDRAWING = 1.0
"""Seconds that a client has to take note that a question is withdrawn."""
LINGERING = 30.0
"""Seconds in which a server may still speak of a call that was given up."""


class Caller(Protocol):
    """The client behind a request, as its server may reach it."""

    @property
    def era(self) -> Era:
        """The era the client speaks."""
        ...

    @property
    def key(self) -> object:
        """Tells one client from another."""
        ...

    @property
    def party(self) -> Party:
        """Whose share of a server's places its requests count on."""
        ...

    @property
    def capabilities(self) -> JsonObject:
        """What the client can be asked."""
        ...

    @property
    def log_level(self) -> str | None:
        """The least level of log messages it wants, `None` if it has not said."""
        ...

    @property
    def notify(self) -> Notify:
        """Passes on a notification that belongs to none of its requests."""
        ...

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass on a notification that belongs to its request."""
        ...

    async def ask(self, method: str, params: JsonObject) -> dict[str, Any]:
        """Pass on a request of the server, and return the client's answer as it came."""
        ...


class WithdrawnError(MCPError):
    """The call that something was asked for has ended before there was an answer."""

    def __init__(self) -> None:
        super().__init__(types.INVALID_REQUEST, "The call that this was asked for has ended")


class _Heard:
    """What the server of a call has said meanwhile; of most calls it is nothing."""

    def __init__(self) -> None:
        self.notices = deque[tuple[str, JsonObject]](maxlen=MAX_NOTICES)
        self.turn = anyio.Lock(fast_acquire=True)


class ClientCall:
    """One request of a client, under way."""

    def __init__(self, caller: Caller, patience: Patience) -> None:
        self.caller = caller
        self._patience = patience
        self._heard: _Heard | None = None
        self._is_being_told = False
        self._questions: dict[anyio.CancelScope, anyio.Event] = {}
        self._has_ended = False

    @property
    def log_level(self) -> str | None:
        """The least level of log messages to ask of a server that must be asked for each call."""
        # A client with a session is sent messages until it says otherwise.
        usual = "info" if self.caller.era == "handshake" else None
        return self.caller.log_level or usual

    def hear(self, method: str, params: JsonObject) -> bool:
        """Take a notification in the order it came; say whether somebody is passing them on."""
        if method == "notifications/progress":
            self._patience.note_progress()
        if self._heard is None:
            self._heard = _Heard()
        self._heard.notices.append((method, params))
        was_being_told, self._is_being_told = self._is_being_told, True
        return was_being_told

    @property
    def is_quiet(self) -> bool:
        """Whether its server has said nothing and asks nothing, as of most."""
        return self._heard is None and not self._questions

    @property
    def has_heard(self) -> bool:
        """Whether the server has said anything; of most calls there is nothing but the result."""
        return self._heard is not None

    async def deliver(self) -> None:
        """Pass on what has been heard, in order."""
        if self._heard is None:
            return
        async with self._heard.turn:
            while self._heard.notices:
                await self.caller.tell(*self._heard.notices.popleft())
            self._is_being_told = False

    async def ask(self, method: str, params: JsonObject) -> dict[str, Any]:
        """Ask the client; the call's time stands still meanwhile.

        Raises:
            WithdrawnError: The call has ended before there was an answer.
            MCPError: The client refuses.
        """
        with anyio.CancelScope() as scope:
            withdrawn = self._questions[scope] = anyio.Event()
            try:
                if not self._has_ended:
                    await self.deliver()
                    with self._patience.paused():
                        return await self.caller.ask(method, params)
            finally:
                del self._questions[scope]
                withdrawn.set()
        raise WithdrawnError

    def end(self) -> None:
        """Withdraw the questions that are still open: nobody waits for what they are about."""
        self._has_ended = True
        for scope in self._questions:
            scope.cancel()

    async def until_withdrawn(self) -> None:
        """Wait, within bounds, until the client has been told so: behind the result it is late."""
        if not self._questions:
            return
        with anyio.move_on_after(WITHDRAWING):
            for withdrawn in list(self._questions.values()):
                await withdrawn.wait()


class InFlight:
    """The calls under way on one link, by request id."""

    def __init__(self) -> None:
        self._calls: dict[str | int, ClientCall] = {}
        self._given_up = deque[tuple[float, object]](maxlen=MAX_GIVEN_UP)

    def entered(self, number: int, call: ClientCall) -> "_Entered":
        """Keep a call for the length of the block."""
        return _Entered(self, number, call)

    def enter(self, number: int, call: ClientCall) -> None:
        """Keep a call until it leaves."""
        self._calls[number] = call

    def leave(self, number: int, *, is_given_up: bool) -> None:
        """Keep a call no more; of one that was given up, its server may still speak."""
        call = self._calls.pop(number)
        if is_given_up:
            self._given_up.append((anyio.current_time() + LINGERING, call.caller.key))

    def progressing(self, token: object) -> ClientCall | None:
        """Return the call that a progress token belongs to."""
        return self._calls.get(token) if isinstance(token, int) else None

    def meant(self, number: str | int | None = None) -> ClientCall | None:
        """Return the call that something a server says must belong to, if there is only one.

        Over HTTP the server says to which request. A pipe does not tell: what fits the calls of
        several clients belongs to nobody.
        """
        if number is not None:
            return self._calls.get(number)
        keys = {call.caller.key for call in self._calls.values()}
        if not self._calls or len(keys | self._lingering()) > 1:
            return None
        return self._calls[next(reversed(self._calls))]

    @property
    def is_idle(self) -> bool:
        """Whether nothing that the server says can belong to a call."""
        return not self._calls and not self._lingering()

    def __len__(self) -> int:
        return len(self._calls)

    def _lingering(self) -> set[object]:
        """Return whose calls were given up so recently that their server may still be at them."""
        while self._given_up and self._given_up[0][0] < anyio.current_time():
            self._given_up.popleft()
        return {key for _, key in self._given_up}


class _Entered:
    """A call for the length of a block; every call goes through one, so it is no generator."""

    __slots__ = ("_call", "_in_flight", "_number")

    def __init__(self, in_flight: InFlight, number: int, call: ClientCall) -> None:
        self._in_flight = in_flight
        self._number = number
        self._call = call

    def __enter__(self) -> None:
        self._in_flight.enter(self._number, self._call)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        is_given_up = kind is not None and issubclass(kind, anyio.get_cancelled_exc_class())
        self._in_flight.leave(self._number, is_given_up=is_given_up)
