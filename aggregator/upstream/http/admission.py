"""Who shows what: our own token, one with a name, one of an issuer, or what opens nothing."""

import hmac
import re
from collections.abc import Callable, Sequence
from http import HTTPStatus

from aggregator.config.http import Http, Issuer
from aggregator.upstream.http.issuer.challenges import audiences, flawed, unknown, unsettled
from aggregator.upstream.http.issuer.reading import Flaw
from aggregator.upstream.http.issuer.verifying import Verifying
from aggregator.upstream.http.keys import Keys
from aggregator.upstream.http.refusal import Refusal
from aggregator.upstream.identity import OPERATOR, Identity

Look = Callable[[], Http]
"""Returns how clients over HTTP are treated now."""

_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE | re.ASCII)


class Admission:
    """Finds out who asks, by what they show."""

    def __init__(
        self, token: str | None, keys: Keys, look: Look = Http, *, has_no_auth: bool = True
    ) -> None:
        self._way_in = f"{_WAY_IN}; {_NO_AUTH}" if has_no_auth else _WAY_IN
        self._token = token
        """Our own; nothing if whoever comes is whoever runs us."""
        self._keys = keys
        self._look = look
        self._verifying = Verifying()

    async def run(self) -> None:
        """Have at hand what it takes to know who somebody is."""
        await self._verifying.run()

    @property
    def terms(self) -> tuple[object, ...]:
        """What a judgement depends on besides what is shown: the same for as long as it stands."""
        return self._keys.tokens, self._look()

    async def judge(self, given: Sequence[str], path: str) -> Identity | Refusal:
        """Say whose a request with such an `Authorization` is, or why it is nobody's."""
        shown, http = presented(given), self._look()
        if (known := self._keys.known(shown)) is not None:
            return known.identity
        if http.issuer is None:
            return self._by_token(given, shown)
        if not given:
            return unknown(http.issuer, path, advice="it has no token of the issuer")
        if self._is_ours(shown):
            return OPERATOR if http.local_token else flawed(http.issuer, path, _NOT_OURS)
        return await self._by_issuer(shown, http.issuer, path)

    async def _by_issuer(self, shown: str, issuer: Issuer, path: str) -> Identity | Refusal:
        found = await self._verifying.identity(shown, issuer, audiences(issuer, path))
        if found is None:
            return unsettled(issuer)
        return flawed(issuer, path, found) if isinstance(found, Flaw) else found

    def _by_token(self, given: Sequence[str], shown: str) -> Identity | Refusal:
        if self._token is None or self._is_ours(shown):
            return OPERATOR
        if not given:
            advice = f"it has no token; {self._way_in}"
            return Refusal(HTTPStatus.UNAUTHORIZED, "A token is required", advice, _CHALLENGE)
        invalid = f'{_CHALLENGE}, error="invalid_token"'
        advice = f"it has another token; {self._way_in}"
        return Refusal(HTTPStatus.UNAUTHORIZED, "The token is not the right one", advice, invalid)

    def _is_ours(self, shown: str) -> bool:
        token = self._token
        if token is None:
            return False
        return hmac.compare_digest(shown.encode("latin-1", "replace"), token.encode())


def presented(given: Sequence[str]) -> str:
    """Return the token that a request shows; nothing if it shows none, or several."""
    match = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
    return match[1] if match else ""


_WAY_IN = "clients must send `Authorization: Bearer TOKEN` with ours"
_NO_AUTH = "`--no-auth` asks for none, on loopback only"
_CHALLENGE = 'Bearer realm="aggregator"'
_NOT_OURS = Flaw(
    "This token opens nothing where people log in",
    "it has our own token, which is not taken beside an issuer; `http.localToken: true` takes it",
)
