"""A login without a person: what a client may do in its own name (`grant: client_credentials`)."""

import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from uuid import uuid4

from aggregator.basics.files import in_words
from aggregator.config.oauth import OAuth
from aggregator.downstream.login.credentials import RenewalError, Send
from aggregator.downstream.login.discovery import Authority, DiscoveryError, Fetch, discover
from aggregator.downstream.login.record import Client, Login, with_tokens
from aggregator.downstream.login.renewal import (
    Ask,
    Refused,
    Reply,
    Unavailable,
    asked,
    outcome,
)

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTED = 300
"""Seconds for which we say that we are who we are."""
SKEW = 60.0
"""Seconds by which two clocks may differ before that is worth a word."""
_ON_CURVES = {256: "ES256", 384: "ES384", 521: "ES512"}
"""How a key on a curve signs, by its size."""


class MachineGrant:
    """Has logins for a client by what proves who it is."""

    needs_person = False

    def __init__(
        self,
        url: str,
        oauth: OAuth,
        send: Send,
        fetch: Fetch,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url = url
        self._oauth = oauth
        self._send = send
        self._fetch = fetch
        self._clock = clock

    def can_renew(self, login: Login | None) -> bool:
        """Whether it is worth trying, which it is whenever there is no good token."""
        return login is None or login.lost is None or not login.is_valid(self._clock())

    async def renew(self, _login: Login | None) -> Login | Refused | Unavailable:
        """Prove who we are and return what that gives."""
        try:
            authority = await discover(self._url, self._oauth.issuer, "", self._fetch)
        except DiscoveryError as error:
            return Unavailable(str(error))
        client = self._client(authority)
        reply = await self._send(self._ask(authority, client))
        answer = outcome(reply)
        if isinstance(answer, Refused):
            # Nobody is to log in; what is wrong stands in servers.yaml, or on the clock.
            told = f"`{authority.issuer}` refuses the client: {answer}{self._skew(reply)}"
            return Unavailable(told)
        if isinstance(answer, Unavailable):
            return answer
        fresh = Login(
            url=self._url,
            issuer=authority.issuer,
            token_endpoint=authority.token_endpoint,
            client=Client(client.id, None, client.method),
            access_token=answer.access_token,
            obtained_at=self._clock(),
            scope=" ".join(self._oauth.scopes),
            resource=self._resource(authority),
        )
        return with_tokens(fresh, answer._replace(refresh_token=None), self._clock())

    def _client(self, authority: Authority) -> Client:
        oauth = self._oauth
        if oauth.private_key is not None:
            return Client(oauth.client_id or "", None, "private_key_jwt")
        post = authority.methods and "client_secret_basic" not in authority.methods
        method = "client_secret_post" if post else "client_secret_basic"
        return Client(oauth.client_id or "", oauth.client_secret, method)

    def _ask(self, authority: Authority, client: Client) -> Ask:
        form: dict[str, str] = {"grant_type": "client_credentials"}
        if self._oauth.scopes:
            form["scope"] = " ".join(self._oauth.scopes)
        if (resource := self._resource(authority)) is not None:
            form["resource"] = resource
        if self._oauth.private_key is not None:
            form |= self._assertion(authority, client, self._oauth.private_key)
        return asked(authority.token_endpoint, client, form)

    def _resource(self, authority: Authority) -> str | None:
        if self._oauth.resource is False:
            return None
        return self._oauth.resource or authority.resource or self._url

    def _assertion(self, authority: Authority, client: Client, path: Path) -> Mapping[str, str]:
        """Sign who we are, for this authorisation server alone."""
        # Few servers are used so, and what signs takes its time to load.
        import jwt  # noqa: PLC0415 - see above
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - see above
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519  # noqa: PLC0415

        try:
            pem = path.read_bytes()
            key = serialization.load_pem_private_key(pem, None)
        except OSError as error:
            raise RenewalError(f"its `privateKey` cannot be read: {in_words(error)}") from error
        except (ValueError, TypeError) as error:
            raise RenewalError("its `privateKey` is no key, or one with a password") from error
        algorithm = "EdDSA" if isinstance(key, ed25519.Ed25519PrivateKey) else "RS256"
        if isinstance(key, ec.EllipticCurvePrivateKey):
            algorithm = _ON_CURVES.get(key.key_size, "ES256")
        now = int(self._clock())
        claims: dict[str, str | int] = {
            "iss": client.id,
            "sub": client.id,
            "aud": authority.issuer,
            "iat": now,
            "exp": now + ASSERTED,
            "jti": uuid4().hex,
        }
        signed = jwt.encode(claims, pem, algorithm)
        return {"client_assertion_type": ASSERTION, "client_assertion": signed}

    def _skew(self, reply: Reply) -> str:
        """Say that a clock is wrong, where that may be why."""
        try:
            theirs = parsedate_to_datetime(reply.date or "").timestamp()
        except (ValueError, OverflowError):
            return ""
        difference = self._clock() - theirs
        if self._oauth.private_key is None or abs(difference) < SKEW:
            return ""
        which = "ahead of" if difference > 0 else "behind"
        return f"; the clock of this machine is {abs(difference):.0f} s {which} its own"
