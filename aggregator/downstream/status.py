"""How one server stands: what is said of it, and what it offers or did when that was last known."""

import logging
from functools import cached_property
from math import inf

import anyio

from aggregator.catalog import Failed, Idle, Pending, Phase, Ready, ServerState
from aggregator.config import ServerConfig
from aggregator.downstream.failure import Failure
from aggregator.downstream.inventory import complain
from aggregator.downstream.news import ServerEvents
from aggregator.secrecy import Redaction


class ServerStatus:
    """The state of one server, reported whenever it is another."""

    def __init__(self, server: ServerConfig, events: ServerEvents, known: Ready | None) -> None:
        self._server = server
        self._events = events
        self.ready = known
        """What it offers, or did before it went away, or in another run."""
        self.reason: str | None = None
        """Why it is not there."""
        self._until = inf
        """When it has been away for too long for what it offered to hold."""
        self._unmatched: tuple[str, ...] = ()
        self._is_silent = False

    @cached_property
    def redact(self) -> Redaction:
        """What takes out of a sentence about it what it was given in confidence."""
        return Redaction(self._server.given())

    def know(self, ready: Ready | None) -> None:
        """Take note of what it is known to offer while it is not there."""
        self.ready = ready

    def offer(self, ready: Ready) -> None:
        """Say that it is there, and what it offers."""
        self.ready, self.reason, self._until = ready, None, inf
        if ready.unmatched != self._unmatched:
            self._unmatched = ready.unmatched
            # Once and not at each connection. Whoever wrote a rule relies on it; without anybody
            # asking, only errors are told.
            complain(self._server, ready.unmatched, logging.ERROR)
        self._say(ready)

    def leave(self, reason: str, until: float) -> None:
        """Say that it has gone away, and until when what it offered counts."""
        self.reason, self._until = reason, until
        self.wait()

    def stay_away(self, reason: str, until: float) -> None:
        """Take note of why it could not be reached, and until when what it offered counts."""
        self.reason, self._until = reason, min(self._until, until)

    def wait(self, phase: Phase = "starting", last_words: tuple[str, ...] = ()) -> None:
        """Say that it is not there, and what it is known to offer."""
        since = anyio.current_time()
        self._say(Pending(self.reason, since, phase, last_words, self.ready, self._until))

    def rest(self, reason: str | None = None, last_words: tuple[str, ...] = ()) -> None:
        """Say that it is started when somebody needs it."""
        self.reason, self._until = None, inf
        if self.ready is not None:
            self._say(Idle(self.ready, anyio.current_time(), reason, last_words))

    def fail(self, failure: Failure) -> None:
        """Say that it offers nothing until a person does something."""
        self.ready, remedy = None, failure.remedy
        login, scope = (remedy.command, remedy.scope) if remedy else (None, "")
        now = anyio.current_time()
        self._say(Failed(failure.reason, now, failure.last_words, login, scope))

    def silence(self) -> None:
        """Report nothing more, since somebody else has the name now, or nobody."""
        self._is_silent = True

    def _say(self, state: ServerState) -> None:
        if not self._is_silent:
            self._events.reported(self._server.name, state)
