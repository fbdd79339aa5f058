"""The era to speak with one server: what is configured, remembered, found out, or needed.

A server of both eras may ask its client questions in the way of the older one alone. Where it
finds that it cannot, its SDK says so in a text: there is no code for it.
"""

import re

from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject, as_object, items
from aggregator.config import ServerConfig
from aggregator.downstream.eras import Eras
from aggregator.downstream.exchange import REQUEST_FAILURES
from aggregator.downstream.introduction import EraUnclearError, LinkLostError

LONGEST = 500
"""Characters that such a text may have."""

_MISSED = re.compile(
    # Python's SDK, and TypeScript's. What only quotes them, as a page may do, is longer.
    r"[^\n]{0,150}this transport context has no back-channel for server-initiated requests\.?"
    r"|[^\n]{0,150}Server-to-client requests are not available on protocol revision[^\n]{0,150}"
)


class EraChoice:
    """Which era to speak with one server, as far as that is known by now."""

    def __init__(self, server: ServerConfig, eras: Eras) -> None:
        self._server = server
        self._eras = eras
        self._is_free = server.era == "auto"
        self.era: Era | None = eras.recall(server)
        """The era to speak; if there is none, it is to be found out."""
        self._is_guess = False
        self._was_guess = False
        """Whether it was met in an era that was a guess before."""

    def met(self, era: Era) -> None:
        """Take note of the era in which the server has introduced itself."""
        if not self._is_free:
            return
        self.era = era
        if not self._is_guess:
            self._eras.note(self._server, era)
            return
        is_known = self._eras.suspect(self._server) or self._was_guess
        self._is_guess, self._was_guess = False, True
        if not is_known:
            # It may have ended for any reason, and speak both: the next time tells.
            self.era = None

    def doubt(self, error: Exception) -> None:
        """Take note of what stood in the way: perhaps it was the era."""
        if not self._is_free:
            return
        if self.era == "handshake" and isinstance(error, MCPError):
            self._eras.forget(self._server)
        if isinstance(error, EraUnclearError):
            self._is_guess = self.era is None
            self.era = "handshake" if self._is_guess else None
        elif isinstance(error, (*REQUEST_FAILURES, LinkLostError)):
            # It may have been remembered to speak an era that it no longer does.
            self.era, self._is_guess = None, False

    def misses_questions(self, spoken: Era, outcome: JsonObject | str) -> bool:
        """Say whether the server could not ask what it wanted to, and remember its need then.

        Args:
            spoken: The era of the call.
            outcome: The result of the call, or the text of the error that came in its place.
        """
        text = outcome if isinstance(outcome, str) else _told(outcome)
        if not self._is_free or spoken == "handshake" or not _is_complaint(text):
            return False
        self.era = "handshake"
        self._eras.note_need(self._server)
        return True


def _is_complaint(text: str) -> bool:
    return len(text) <= LONGEST and _MISSED.fullmatch(text.strip()) is not None


def _told(result: JsonObject) -> str:
    """Return what the result of a call says has gone wrong, if anything has."""
    if result.get("isError") is not True:
        return ""
    return str(as_object(next(iter(items(result.get("content"))), None)).get("text", ""))
