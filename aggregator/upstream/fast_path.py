"""Calls that need no more than to be sent on, past the SDK: from where each is read to its answer.

A task for each, and the SDK's way to it, cost more than all else that is done with such a call. It
is sent on where it is read, and answered where its answer is read. Who asks is known from another
request of the same client, which went the usual way.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio
import anyio.abc
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject, as_object, is_object
from aggregator.downstream.sent import Sent
from aggregator.fleet.fleet import Fleet
from aggregator.upstream.askable import AskableClients
from aggregator.upstream.caller import Way
from aggregator.upstream.calls import Bound
from aggregator.upstream.internal_errors import internal_error, new_number
from aggregator.upstream.plain_calls import Calling, PlainCalls
from aggregator.upstream.request import Request

logger = logging.getLogger(__name__)

CALL = "tools/call"

SAID_OF_ITSELF = (
    types.PROTOCOL_VERSION_META_KEY,
    types.CLIENT_INFO_META_KEY,
    types.CLIENT_CAPABILITIES_META_KEY,
    types.LOG_LEVEL_META_KEY,
)
"""What each request of the modern era says of its client."""

Shape = Callable[[dict[str, Any]], dict[str, Any]]
"""Gives a result the form of its client's era."""


class Known(NamedTuple):
    """Who asks, by a request that went the usual way."""

    request: Request
    said: tuple[object, ...]

    @classmethod
    def by(cls, request: Request) -> "Known":
        """Return who has asked."""
        return cls(request, _said(request, request.params.get("_meta")))


class FastPath:
    """Where plain calls are looked at."""

    def __init__(
        self,
        calls: PlainCalls,
        fleet: Fleet,
        askable: AskableClients,
        *,
        shape: Shape,
        asked: anyio.Event,
    ) -> None:
        self.calls = calls
        self.fleet = fleet
        self.shape = shape
        self._askable = askable
        self._asked = asked

    def begin(
        self, fast_call: "FastCall", params: JsonObject, known: Known, way: Way | None = None
    ) -> bool:
        """Send a call on, unless somebody else has to look at it; say whether it was sent."""
        try:
            bound = self._bound(params, known, way)
            begun = bound and self.calls.begin(bound, fast_call.settle)
        except Exception:
            # Nothing has been sent. Whoever looks at it on the usual way says what is told.
            logger.exception("a call could not be looked at")
            return False
        if bound is None or begun is None:
            return False
        self._asked.set()
        fast_call.begin(self.calls.seen(bound, begun))
        return True

    def _bound(self, params: JsonObject, known: Known, way: Way | None) -> Bound | None:
        """Return where a call goes, unless somebody else has to look at it."""
        meta, arguments = params.get("_meta"), params.get("arguments")
        if not isinstance(params.get("name"), str):
            return None
        if (
            not (_is_given(arguments) and _is_given(meta))
            or _said(known.request, meta) != known.said
        ):
            return None
        request = known.request.again(params, self.fleet.now, way)
        return None if self._askable.owes(request) else self.calls.bound(request)


class FastCall(ABC):
    """One call; its kinds know where its answer goes."""

    def __init__(self, fast_path: FastPath, group: anyio.abc.TaskGroup) -> None:
        self._fast_path = fast_path
        self._group = group
        self._calling: Calling | None = None
        """What is under way; nothing once it is over, so that nothing of it is kept."""
        self._scope: anyio.CancelScope | None = None

    @abstractmethod
    def answered(self, result: dict[str, Any]) -> None:
        """Give its client the result."""

    @abstractmethod
    def refused(self, error: types.ErrorData) -> None:
        """Tell its client what became of it instead."""

    def begin(self, calling: Calling) -> None:
        """Take note that it was sent on."""
        self._calling = calling

    def give_up(self) -> None:
        """Have nothing more be done with it."""
        calling = self._end()
        if self._scope is not None:
            self._scope.cancel()
        elif calling is not None:
            calling.give_up()

    def settle(self, _sent: Sent) -> None:
        """Answer it now that it is settled, or have it answered."""
        if (calling := self._calling) is None:
            return
        calls, result = self._fast_path.calls, None
        try:
            result = calls.take_plain(calling)
            if result is not None and calls.shows(result, calling.bound):
                self._answer(result)
            else:
                self._scope = anyio.CancelScope()
                self._group.start_soon(self._finish, calling, result, self._scope)
        except Exception:
            bug = new_number()
            logger.exception("internal error %s", bug)
            self._fail(bug)
        if result is not None:
            self._note(calling, result)

    def _note(self, calling: Calling, result: dict[str, Any]) -> None:
        """Have a result counted and written down; its client does not wait for that."""
        try:
            self._fast_path.calls.note(calling, result)
        except Exception:
            logger.exception("a call could not be taken note of")

    async def _finish(
        self, calling: Calling, result: dict[str, Any] | None, scope: anyio.CancelScope
    ) -> None:
        """Answer it with what takes longer: an error, or a part of a result."""
        calls = self._fast_path.calls
        with scope:
            try:
                if result is None:
                    result = await calls.finish(calling)
                self._answer(await calls.shortened(result, calling.bound))
            except MCPError as error:
                if self._end() is not None:
                    self.refused(error.error)
            except Exception:
                bug = new_number()
                logger.exception("internal error %s", bug)
                self._fail(bug)

    def _answer(self, result: dict[str, Any]) -> None:
        if (calling := self._end()) is None:
            return
        if calling.bound.request.caller.era == "modern":
            result = self._fast_path.shape(result)
        self.answered(result)

    def _fail(self, bug: str) -> None:
        """Answer it although a bug of ours has left it without an answer."""
        self._end()
        self.refused(internal_error(bug).error)

    def _end(self) -> Calling | None:
        """Return what is under way no longer, unless it was that before."""
        calling, self._calling = self._calling, None
        return calling


def _said(request: Request, meta: object) -> tuple[object, ...]:
    """Return what a request says of its client, if it says so each time."""
    if request.caller.era == "handshake":
        return ()
    given = as_object(meta)
    return tuple(given.get(key) for key in SAID_OF_ITSELF)


def _is_given(value: object) -> bool:
    """Whether a value is an object, or left out."""
    return value is None or is_object(value)
