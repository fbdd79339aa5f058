"""Why a request is not let in, and how it is told so."""

from dataclasses import dataclass
from http import HTTPStatus

from starlette.responses import PlainTextResponse


@dataclass(frozen=True, slots=True)
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
