"""Calls that outlive a request: their server asks something, and the answer comes by another.

A client of the modern era cannot be asked anything in the middle of a request. What a server of
the handshake era asks is given to it as the result of the request; meanwhile the call is parked.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject, is_object
from aggregator.basics.signals import Signal
from aggregator.downstream.call_slots import Party
from aggregator.downstream.inflight import Caller, Notify
from aggregator.errors import CallError
from aggregator.upstream.background import Background

logger = logging.getLogger(__name__)

MAX_PARKED = 256
"""Calls that may wait for answers, or to be collected, at a time."""
PARKED_FOR = 600.0
"""Seconds a client has to answer."""

Run = Callable[[Caller], Awaitable[dict[str, Any]]]


@dataclass(eq=False)
class _Question:
    method: str
    params: JsonObject
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: dict[str, Any] = field(default_factory=dict[str, Any])

    def settle(self, answer: JsonObject) -> None:
        """Take the client's answer."""
        self.answer = dict(answer)
        self.answered.set()


class _Call:
    """One call that may be parked; to its server it is the client."""

    def __init__(self, lot: "Parking", caller: Caller) -> None:
        self.ticket = uuid4().hex
        self.caller = caller
        self.scope = anyio.CancelScope()
        self.news = Signal()
        """Sent when there is a question or the outcome."""
        self.outcome: dict[str, Any] | Exception | None = None
        self.collected = anyio.Event()
        """Set when the outcome has been given to a request."""
        self._lot = lot
        self._waiting: list[Caller] = []
        self._questions: dict[str, _Question] = {}
        self._numbers = count(1)

    @property
    def era(self) -> Era:
        return self.caller.era

    @property
    def key(self) -> object:
        return self.caller.key

    @property
    def party(self) -> Party:
        return self.caller.party

    @property
    def capabilities(self) -> JsonObject:
        return self.caller.capabilities

    @property
    def log_level(self) -> str | None:
        return self.caller.log_level

    @property
    def notify(self) -> Notify:
        return self.caller.notify

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on to whichever request of the client is there now."""
        await self.caller.tell(method, params)

    async def ask(self, method: str, params: JsonObject) -> dict[str, Any]:
        """Keep a question until the client has answered it, or its server takes it back."""
        if self._lot.is_full:
            raise MCPError(types.INTERNAL_ERROR, "Too many calls wait for answers already")
        key, question = f"question-{next(self._numbers)}", _Question(method, params)
        self._questions[key] = question
        self.news.send()
        try:
            await question.answered.wait()
        finally:
            self._questions.pop(key, None)
        return question.answer

    def answer(self, responses: Mapping[str, Any]) -> None:
        """Take the client's answers to questions that are still open."""
        for key in [key for key in self._questions if is_object(responses.get(key))]:
            self._questions.pop(key).settle(responses[key])

    async def finish(self, run: Run) -> None:
        """Take the call to its outcome."""
        try:
            self.outcome = await run(self)
        except (CallError, MCPError) as error:
            # It is raised where the result is awaited.
            self.outcome = error
        except Exception as error:
            logger.exception("a call that may be parked failed")
            self.outcome = error
        self.news.send()

    def end(self) -> None:
        """Have an outcome for whoever still waits, if it has none."""
        if self.outcome is None:
            self.outcome = MCPError(types.INVALID_PARAMS, "The call was given up")
        self.news.send()

    @contextmanager
    def awaited(self, caller: Caller) -> Generator[None, None, None]:
        """Count one request among those that wait, and give the call up with the last of them."""
        self.caller = caller
        self._waiting.append(caller)
        try:
            yield
        except anyio.get_cancelled_exc_class():
            if len(self._waiting) == 1:
                self.scope.cancel()
            raise
        finally:
            self._waiting.remove(caller)
            self.caller = self._waiting[-1] if self._waiting else caller

    @property
    def questions(self) -> dict[str, Any]:
        """The open questions, as a modern client is asked them."""
        return {
            key: {"method": each.method, **({"params": each.params} if each.params else {})}
            for key, each in self._questions.items()
        }


class Parking:
    """The calls that may be parked."""

    def __init__(self, background: Background) -> None:
        self._calls: dict[str, _Call] = {}
        self._background = background

    @property
    def is_full(self) -> bool:
        """Whether no further call may wait for an answer."""
        return len(self._calls) > MAX_PARKED

    async def begin(self, run: Run, caller: Caller) -> dict[str, Any] | str:
        """Start a call; return its result, or the ticket of one that waits for answers."""
        if self._background.group is None:
            return await run(caller)
        call = _Call(self, caller)
        self._calls[call.ticket] = call
        self._background.group.start_soon(self._hold, call, run)
        return await self._await(call, caller)

    async def resume(
        self, ticket: str, responses: Mapping[str, Any], caller: Caller
    ) -> dict[str, Any] | str:
        """Give a parked call the client's answers, and wait for it anew.

        Raises:
            MCPError: The call is no longer there.
        """
        call = self._calls.get(ticket)
        if call is None:
            raise MCPError(
                types.INVALID_PARAMS,
                "The call that asked for this is over: it waited too long, or its result has been "
                "given already. Start again without `requestState`",
            )
        call.scope.deadline = math.inf
        call.answer(responses)
        return await self._await(call, caller)

    def questions(self, ticket: str) -> dict[str, Any]:
        """Return what a parked call waits for."""
        call = self._calls.get(ticket)
        return {} if call is None else call.questions

    async def _await(self, call: _Call, caller: Caller) -> dict[str, Any] | str:
        """Wait for a call's result or its next question."""
        with call.awaited(caller):
            while call.outcome is None and not call.questions:
                await call.news.wait()
        if call.outcome is None:
            call.scope.deadline = anyio.current_time() + PARKED_FOR
            return call.ticket
        call.collected.set()
        if isinstance(call.outcome, Exception):
            raise call.outcome
        return call.outcome

    async def _hold(self, call: _Call, run: Run) -> None:
        """Keep a call until its outcome is collected, or its time is over."""
        try:
            with call.scope:
                await call.finish(run)
                await call.collected.wait()
        finally:
            self._calls.pop(call.ticket, None)
            call.end()
