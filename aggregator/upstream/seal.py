"""Tokens that a client carries for us and cannot make, change, or use in another's name."""

import base64
import binascii
import hmac
import json
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from aggregator.json import is_object

VALID_FOR = 3600.0
"""Seconds a token can be used."""


class ForeignStateError(Exception):
    """A token is not ours, not unchanged, not this caller's, or not of this time."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a token can be used for, and by whom."""

    principal: str
    server: str
    method: str
    subject: str
    """The tool, prompt or resource of the request."""

    def digest(self) -> str:
        """Return what of this goes into a token."""
        text = json.dumps([self.principal, self.server, self.method, self.subject])
        return sha256(text.encode()).hexdigest()


class Sealer:
    """Seals values with a key that lives as long as this process."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def seal(self, value: dict[str, Any], binding: Binding, now: float) -> str:
        """Return a token for a value."""
        claims = {"value": value, "for": binding.digest(), "until": now + VALID_FOR}
        body = json.dumps(claims, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._sign(body) + body).decode()

    def open(self, token: object, binding: Binding, now: float) -> dict[str, Any]:
        """Return the value of a token.

        Raises:
            ForeignStateError: The token cannot be trusted.
        """
        body = self._verified(token)
        claims = json.loads(body)
        if not hmac.compare_digest(claims["for"], binding.digest()) or now > claims["until"]:
            raise ForeignStateError
        if not is_object(value := claims["value"]):
            raise ForeignStateError
        return dict(value)

    def _verified(self, token: object) -> bytes:
        if not isinstance(token, str):
            raise ForeignStateError
        try:
            raw = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError, ValueError):
            raise ForeignStateError from None
        signature, body = raw[: sha256().digest_size], raw[sha256().digest_size :]
        if not hmac.compare_digest(signature, self._sign(body)):
            raise ForeignStateError
        return body

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")
