"""Who shows what: our own token, one with a name, or nothing that opens anything."""

import hmac
import re
from collections.abc import Sequence
from http import HTTPStatus

from aggregator.upstream.http.keys import Keys
from aggregator.upstream.http.refusal import Refusal
from aggregator.upstream.identity import OPERATOR, Identity

_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE | re.ASCII)


class Admission:
    """Finds out who asks, by what they show."""

    def __init__(self, token: str | None, keys: Keys) -> None:
        self._token = token
        """Our own; nothing if whoever comes is whoever runs us."""
        self._keys = keys

    def judge(self, given: Sequence[str]) -> Identity | Refusal:
        """Say whose a request with such an `Authorization` is, or why it is nobody's."""
        shown = presented(given)
        if (known := self._keys.known(shown)) is not None:
            return known.identity
        if self._token is None:
            return OPERATOR
        if not given:
            advice = f"it has no token; {_WAY_IN}"
            return Refusal(HTTPStatus.UNAUTHORIZED, "A token is required", advice, _CHALLENGE)
        if hmac.compare_digest(shown.encode("latin-1", "replace"), self._token.encode()):
            return OPERATOR
        invalid = f'{_CHALLENGE}, error="invalid_token"'
        advice = f"it has another token; {_WAY_IN}"
        return Refusal(HTTPStatus.UNAUTHORIZED, "The token is not the right one", advice, invalid)


def presented(given: Sequence[str]) -> str:
    """Return the token that a request shows; nothing if it shows none, or several."""
    match = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
    return match[1] if match else ""


_WAY_IN = (
    "clients must send `Authorization: Bearer TOKEN` with ours; "
    "`--no-auth` asks for none, on loopback only"
)
_CHALLENGE = 'Bearer realm="aggregator"'
