"""What clients ask of one server: a free place, a deadline, and how the server stood up to it."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.config import ServerConfig
from aggregator.downstream.call_slots import CallSlots
from aggregator.downstream.deadlines import Deadlines, Ending, Patience
from aggregator.downstream.envelope import NOTHING_MIRRORED, Mirrored
from aggregator.downstream.era_choice import EraChoice
from aggregator.downstream.exchange import REQUEST_FAILURES
from aggregator.downstream.failure import Failure, shown, undelivered
from aggregator.downstream.inflight import Caller, ClientCall
from aggregator.downstream.link import Link
from aggregator.downstream.need import Need
from aggregator.downstream.questions import Questions
from aggregator.downstream.sent import Sent, Settled
from aggregator.downstream.status import ServerStatus
from aggregator.downstream.tasks import OpenTasks
from aggregator.downstream.transport import NotSentError, UndeliveredError
from aggregator.errors import (
    BusyError,
    CallTimeoutError,
    ServerLostError,
    ServerUnavailableError,
    WrongEraError,
)

HOME_DIGITS = 16

TIMEOUTS_TOLERATED = 3
"""Calls in a row that may time out before the server is taken to be stuck."""


class Requests:
    """The way by which requests reach a server, for as long as it has a link."""

    def __init__(
        self,
        server: ServerConfig,
        *,
        status: ServerStatus,
        need: Need,
        era_choice: EraChoice,
        questions: Questions,
        part: Callable[[Link, str], None],
    ) -> None:
        self._server = server
        self._status = status
        self._need = need
        self._era_choice = era_choice
        self._questions = questions
        self._part = part
        """Ends a connection on which nothing is under way, for a reason."""
        self._slots = CallSlots(server.max_in_flight, server.max_queued)
        self.link: Link | None = None
        """What they are sent by now."""
        self.mirrored = NOTHING_MIRRORED
        """What of the arguments of calls is repeated in headers."""
        self.deadlines = Deadlines()
        """When they have taken too long; somebody has to run it."""
        self.tasks = OpenTasks(need)
        self._timeouts = 0
        self._answered = 0
        self._is_outdated = False

    def reconfigure(self, server: ServerConfig) -> None:
        """Give them other places and other deadlines."""
        self._slots.resize(server.max_in_flight, server.max_queued)
        self._server = server

    def open(self, link: Link, mirrored: Mirrored) -> None:
        """Send by another link from here on."""
        self.link, self.mirrored = link, mirrored
        self._timeouts, self._answered, self._is_outdated = 0, 0, False

    def mirror(self, mirrored: Mirrored) -> None:
        """Repeat in headers what another listing says."""
        self.mirrored = mirrored

    def close(self) -> None:
        """Send no more: who asks from here on has to wait."""
        self.link = None
        self.tasks.clear()

    def home(self, link: Link | None) -> str:
        """Return what tells where tasks are worked on from all else that has the server's name.

        A process has its own, which end with it; of an address we only know what it is.
        """
        if self._server.type == "stdio":
            return "" if link is None else link.run
        return sha256(str(self._server.url).encode()).hexdigest()[:HOME_DIGITS]

    def can_begin(self, caller: Caller) -> bool:
        """Whether a client's request can be sent without a wait, for all that is known here."""
        return self._direct_link(caller) is not None and self._slots.is_free(caller.party)

    def _direct_link(self, caller: Caller) -> Link | None:
        """Return what a client's request can be sent by at once, given a place."""
        link = self.link
        if link is None or not self.deadlines.is_watching:
            return None
        lowers = caller.log_level is not None and link.lowers(caller.log_level)
        return None if lowers else link

    def begin(
        self, method: str, params: Mapping[str, Any], caller: Caller, settled: Settled
    ) -> Sent | None:
        """Send a client's request, and have somebody told when it is settled.

        Nothing is sent where something has to be waited for. Whoever is told takes its plain
        result, or finishes it.
        """
        link, party = self._direct_link(caller), caller.party
        if link is None or not self._slots.take_free(party):
            return None
        is_sent = False
        try:
            sent = Sent(link, caller, self._patience, self._free, settled)
            is_sent = link.begin(
                sent.number, method, params, call=sent.call, mirrored=self.mirrored, waiting=sent
            )
        finally:
            if not is_sent:
                self._slots.give_back(party)
        if not is_sent:
            return None
        self.deadlines.hold(sent.patience)
        self._need.enter()
        return sent

    def _free(self, sent: Sent) -> None:
        self._slots.give_back(sent.caller.party)
        self.deadlines.let_go(sent.patience)

    def take_plain(self, sent: Sent) -> dict[str, Any] | None:
        """Return the result of a request that is settled, if nothing else is to be done with it."""
        result = sent.plain
        if result is None or result.get("resultType", "complete") != "complete":
            return None
        if result.get("isError") is True and sent.link.peer.era == "modern":
            # It may say that the server could not ask a question.
            return None
        self._timeouts = 0
        self._answered += 1
        self._leave()
        return result

    def give_up(self, sent: Sent) -> None:
        """Wait no more for a request that is not settled: its client does not."""
        sent.give_up()
        self._leave()

    async def finish(self, sent: Sent) -> dict[str, Any]:
        """Return the result of a request that is settled, as it came.

        Raises:
            CallError: The request could not be completed.
            MCPError: The server answered with an error of its own.
        """
        link = sent.link
        try:
            if not sent.is_overdue:
                return self._took(link, await sent.result())
        except REQUEST_FAILURES as error:
            await self._explain(error, link, sent.caller)
            raise
        finally:
            self._leave()
        raise self._timed_out(link, sent.patience)

    async def send(self, method: str, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Send a client's request and return the result as it came.

        Raises:
            CallError: The request could not be completed.
            MCPError: The server answered with an error of its own.
        """
        link, server = self.link, self._server
        if link is None:
            raise ServerUnavailableError(server.name, self._status.reason)
        if self._slots.turns_away(caller.party):
            raise BusyError(server.name)
        scope = anyio.CancelScope()
        patience = self._patience(scope)
        self._need.enter()
        try:
            with scope:
                with patience:
                    await self._slots.take(caller.party)
                    try:
                        if caller.log_level is not None:
                            await link.lower_level(caller.log_level)
                        call = ClientCall(caller, patience)
                        result = await link.request(
                            method, params, call=call, mirrored=self.mirrored
                        )
                    finally:
                        self._slots.give_back(caller.party)
                result = self._took(link, result)
                self.tasks.told(method, params, result)
                return result
        except REQUEST_FAILURES as error:
            if isinstance(error, MCPError):
                self.tasks.refused(method, params, error.code)
            await self._explain(error, link, caller)
            raise
        finally:
            self._leave()
        raise self._timed_out(link, patience)

    def _took(self, link: Link, result: dict[str, Any]) -> dict[str, Any]:
        """Take note of a result.

        Raises:
            WrongEraError: The server could not ask its question.
        """
        self._timeouts = 0
        self._check_era(link, result)
        self._answered += 1
        return result

    async def _explain(self, error: Exception, link: Link, caller: Caller) -> None:
        """Take note of a request that came to nothing, unless that is not the server's own doing.

        Raises:
            CallError: It was not.
        """
        name = self._server.name
        match error:
            case MCPError():
                self._check_era(link, error.message)
                self._questions.note_refusal(error, caller)
            case UndeliveredError():
                raise undelivered(name, error.undelivered, self._status.redact) from error
            case NotSentError():
                # A link may have ended a moment before it is known to be gone.
                await link.until_ended()
                raise ServerUnavailableError(name, self._end_of(link)) from error
            case _:
                await link.until_ended()
                raise ServerLostError(name, self._end_of(link)) from error

    def _timed_out(self, link: Link, patience: Patience) -> CallTimeoutError:
        """Take note of a request whose time is over.

        A server that no longer reads, or that has left too much unanswered, is given up.
        """
        self._timeouts += 1
        if link.transport.is_stuck():
            link.give_up("it stopped reading what it is sent")
        elif self._timeouts >= TIMEOUTS_TOLERATED:
            link.give_up(f"it did not answer {self._timeouts} calls in a row")
        return CallTimeoutError(self._server.name, round(anyio.current_time() - patience.began, 1))

    def _patience(self, ending: Ending) -> Patience:
        return Patience(
            ending,
            between=self._server.call_timeout,
            altogether=self._server.max_call_time,
            deadlines=self.deadlines,
        )

    def _end_of(self, link: Link) -> str:
        """Say how a link came to its end, with what its server said last."""
        end = Failure(link.fault or link.transport.describe_end())
        return shown(end.with_words(link.transport.last_words()).reason, self._status.redact)

    def _leave(self) -> None:
        """Count one request less."""
        self._need.leave()
        if not self._need.requests and self._is_outdated and self.link is not None:
            self._part(self.link, "it needs the handshake era to ask its questions")

    def _check_era(self, link: Link, outcome: Mapping[str, Any] | str) -> None:
        """Notice a server that could not ask its question, and speak the older era with it.

        Raises:
            WrongEraError: It is one.
        """
        if self._era_choice.misses_questions(link.peer.era, outcome):
            # A process holds what calls have made of it; elsewhere, this era has no state.
            is_fresh = self._server.type != "stdio" or not self._answered
            self._is_outdated = self._is_outdated or is_fresh
            raise WrongEraError(self._server.name, is_mended=self._is_outdated)

    def __repr__(self) -> str:
        return f"<Requests {self._slots}, {len(self.deadlines)} with a deadline>"
