"""Why a request is not let in, and how it is told so."""

import logging
from http import HTTPStatus

from starlette.responses import PlainTextResponse

from aggregator.basics.frozen import frozen

logger = logging.getLogger(__name__)

MAX_TOLD = 20
"""Refusals that are logged; whoever goes on being refused is known by then."""


@frozen
class Refusal:
    """Why a request is not let in."""

    status: HTTPStatus
    reason: str
    advice: str
    """What whoever runs us can do about it, for the log."""
    challenge: str | None = None
    """What would be let in, for the client."""
    hangs_up: bool = False
    """Whether nothing more is read on the connection."""
    retry_after: int | None = None
    """Seconds after which it is worth trying again, if it is."""

    def response(self) -> PlainTextResponse:
        """Return what the client is answered."""
        headers = {"www-authenticate": self.challenge} if self.challenge else {}
        if self.hangs_up:
            headers["connection"] = "close"
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        return PlainTextResponse(f"{self.reason}\n", self.status, headers)


class Told:
    """What the log has of refusals: each kind once, since whoever is refused may try for ever."""

    def __init__(self) -> None:
        self._advice = set[str]()

    def tell(self, found: Refusal) -> None:
        """Log it, if nothing like it was."""
        if found.advice not in self._advice and len(self._advice) < MAX_TOLD:
            self._advice.add(found.advice)
            logger.warning("a request was answered %d: %s", found.status, found.advice)
