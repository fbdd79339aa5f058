"""Tokens that a client carries for us and cannot make, change, or use in another's name."""

import base64
import binascii
import hmac
import json
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Protocol

import anyio

from aggregator.basics.frozen import frozen
from aggregator.basics.json import is_object

VALID_FOR = 3600.0
"""Seconds a token can be used, unless it is to last."""

MAX_VALUE = 1 << 20
"""Bytes that a value may take as JSON: a client has to send it back, with its request around it."""
MAX_TOKEN = 3 << 19
"""Characters of a token: no value of that many bytes is written with more."""

STATE = "request state"
"""What tokens of requests are sealed for."""


class ForeignStateError(Exception):
    """A token is not ours, not unchanged, not this caller's, or not of this time."""


class TooLongError(Exception):
    """A value takes more than a client is to carry."""


@frozen
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


class Cipher(Protocol):
    """What only whoever has the key can close, and open for the same purpose."""

    def close(self, purpose: str, body: bytes, /) -> bytes:
        """Return a body as nobody else can make it."""
        ...

    def open(self, purpose: str, closed: bytes, /) -> bytes:
        """Return what was closed for a purpose.

        Raises:
            ForeignStateError: It was closed by somebody else, or for something else.
        """
        ...


class OwnCipher:
    """Closes with a key that lives as long as this process; anybody can read what is in it."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def close(self, purpose: str, body: bytes, /) -> bytes:
        """Return a body as nobody else can make it."""
        return self._sign(purpose, body) + body

    def open(self, purpose: str, closed: bytes, /) -> bytes:
        """Return what was closed for a purpose.

        Raises:
            ForeignStateError: It was closed by somebody else, or for something else.
        """
        signature, body = closed[: sha256().digest_size], closed[sha256().digest_size :]
        if not hmac.compare_digest(signature, self._sign(purpose, body)):
            raise ForeignStateError
        return body

    def _sign(self, purpose: str, body: bytes) -> bytes:
        return hmac.digest(self._key, purpose.encode() + b"\0" + body, "sha256")


class Sealer:
    """Seals values for requests that come later, here or wherever the same key is."""

    def __init__(
        self, cipher: Cipher | None = None, clock: Callable[[], float] = anyio.current_time
    ) -> None:
        self._cipher: Cipher = OwnCipher() if cipher is None else cipher
        self._clock = clock

    def seal(self, value: dict[str, Any], binding: Binding, *, is_lasting: bool = False) -> str:
        """Return a token for a value, to be used soon or for as long as there is the key.

        Raises:
            TooLongError: It takes more than `MAX_VALUE`.
        """
        # What is far too long is not even written.
        if any(isinstance(each, str) and len(each) > MAX_VALUE for each in value.values()):
            raise TooLongError
        until = None if is_lasting else self._clock() + VALID_FOR
        claims = {"value": value, "for": binding.digest(), "until": until}
        text = json.dumps(claims, separators=(",", ":"), ensure_ascii=False)
        body = text.encode(errors="surrogatepass")
        if len(body) > MAX_VALUE:
            raise TooLongError
        return written(self._cipher.close(STATE, body))

    def open(self, token: object, binding: Binding) -> dict[str, Any]:
        """Return the value of a token.

        Raises:
            ForeignStateError: The token cannot be trusted.
        """
        claims = json.loads(self._cipher.open(STATE, read(token)))
        is_meant = hmac.compare_digest(claims["for"], binding.digest())
        until = claims["until"]
        if not is_meant or (until is not None and self._clock() > until):
            raise ForeignStateError
        if not is_object(value := claims["value"]):
            raise ForeignStateError
        return dict(value)


def written(closed: bytes) -> str:
    """Return what was closed as a client can carry it."""
    return base64.urlsafe_b64encode(closed).decode()


def read(token: object) -> bytes:
    """Return what was written so.

    Raises:
        ForeignStateError: It was not.
    """
    if not isinstance(token, str) or len(token) > MAX_TOKEN:
        raise ForeignStateError
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError, ValueError):
        raise ForeignStateError from None
