"""Who may speak to us over HTTP: the right Host, no foreign Origin, and somebody we know.

A web page can make a browser send requests to this machine, and a name that its author controls
can be made to point here. Neither can choose the headers that are checked.
"""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from math import ceil

from starlette.types import ASGIApp, Receive, Scope, Send

from aggregator.basics.frozen import frozen
from aggregator.upstream.allowances import Allowances
from aggregator.upstream.caller import PEER
from aggregator.upstream.http.admission import Admission
from aggregator.upstream.http.authenticated import Authenticated
from aggregator.upstream.http.issuer.challenges import WELL_KNOWN
from aggregator.upstream.http.presence import presence
from aggregator.upstream.http.proxies import ASKED_FOR
from aggregator.upstream.http.refusal import Refusal, Told
from aggregator.upstream.http.shortcut import STANDS, Shortcut
from aggregator.upstream.http.unauthenticated import Unauthenticated
from aggregator.upstream.identity import IDENTITY, Identity

MAX_SHOWN = 80
"""Characters of what a stranger sent that are logged."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")

Headers = Sequence[tuple[bytes, bytes]]

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::([0-9]{1,5}))?", re.ASCII)
_NOT_FROM_ELSEWHERE = ("same-origin", "none")


@frozen
class Policy:
    """What a request must show to be let in."""

    hosts: frozenset[str]
    """Hosts with their ports, as clients may name us."""
    names: frozenset[str] = frozenset()
    """Hosts that may name us at any port, as behind a gateway."""

    @classmethod
    def of(cls, host: str, port: int, *, names: Iterable[str] = ()) -> "Policy":
        """Return the policy of an address that we listen on."""
        bare = f"[{host}]" if ":" in host else host
        wildcard = host in ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
        ours = {*LOCAL_NAMES, *(() if wildcard else (bare.lower(),))}
        hosts = frozenset(f"{name}:{port}" for name in ours)
        # A client leaves the port out where it is the usual one.
        usual = frozenset(ours) if port in _USUAL_PORTS else frozenset[str]()
        return cls(hosts | usual, frozenset(name.lower() for name in names))

    def knows(self, authority: str, address: str | None) -> bool:
        """Whether a host and port are ones that we answer to."""
        match = _AUTHORITY.fullmatch(authority.lower())
        if match is None:
            return False
        # An address, unlike a name, cannot be made to point anywhere else.
        is_own_address = address is not None and authority.lower() == address
        return authority.lower() in self.hosts or match[1] in self.names or is_own_address


_USUAL_PORTS = (80, 443)


def refusal(
    headers: Headers, policy: Policy, *, address: str | None = None, asked_for: str | None = None
) -> Refusal | None:
    """Say why a request that arrived at an address is nobody's business here; `None` if it is.

    Whoever asks may be let in, but not by a page of somebody else. What a gateway says that was
    asked for must be ours as well: it is one more thing to be checked, and no way in.
    """
    return (
        _two_lengths(headers)
        or _wrong_host(_all(headers, b"host"), policy, address)
        or (None if asked_for is None else _wrong_host([asked_for], policy, address))
        or _wrong_origin(headers, policy, address)
    )


class Guard:
    """Lets through to an application only what may come in."""

    def __init__(
        self,
        app: ASGIApp,
        policy: Policy,
        admission: Admission,
        allowances: Allowances,
        *,
        open_paths: Iterable[str] = (),
        unauthenticated: Unauthenticated | None = None,
        authenticated: Authenticated | None = None,
    ) -> None:
        self._app = app
        self._admission = admission
        self._allowances = allowances
        self._unauthenticated = unauthenticated
        self._authenticated = authenticated
        self._policy = policy
        self._open_paths = frozenset(open_paths)
        self._told = Told()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it; anything else is not served at all."""
        if scope["type"] != "http":
            return
        found = refusal(
            scope["headers"],
            self._policy,
            address=_address(scope),
            asked_for=scope.get(ASKED_FOR),
        )
        if found is None and not self._is_open(scope["path"]):
            given = _all(scope["headers"], b"authorization")
            judged = await self._admission.judge(given, scope["path"])
            if isinstance(judged, Refusal):
                found = judged
            elif scope["method"] == "POST" and (wait := self._allowances.barred(judged.holder)):
                found = _too_many(wait)
            else:
                scope[IDENTITY] = judged
                self._vouch(judged, scope)
                if self._unauthenticated is not None and scope.get("client"):
                    self._unauthenticated.release(scope.get(PEER) or scope["client"])
        if found is None and self._authenticated is not None and IDENTITY in scope:
            await self._let_in(self._authenticated, scope, receive, send)
        elif found is None:
            await self._app(scope, receive, send)
        else:
            await self._refuse(found, scope, receive, send)

    def _vouch(self, identity: Identity, scope: Scope) -> None:
        """Say how to know whether a request like this would be let in again.

        Of whoever has a share of anything each request is counted, so none of theirs is taken
        without being looked at, nor what comes on the same connection.
        """
        if identity.is_operator and PEER not in scope:
            admission, terms = self._admission, self._admission.terms
            scope[STANDS] = lambda: admission.terms == terms
        elif (shortcut := scope["state"].get(Shortcut.KEY)) is not None:
            shortcut.forget()

    async def _let_in(
        self, authenticated: Authenticated, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer somebody, unless it has more under way than its share of connections."""
        # What a gateway has is not the client's, and may be the next one's.
        connection = None if PEER in scope else presence(scope)
        with authenticated.taken(scope[IDENTITY].holder, connection) as has_room:
            if has_room:
                await self._app(scope, receive, send)
                return
        await self._refuse(_no_share(authenticated.share), scope, receive, send)

    async def _refuse(self, found: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        self._told.tell(found)
        await found.response()(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        """Whether whoever asks for it may know."""
        return path in self._open_paths or path.startswith(WELL_KNOWN)


def _too_many(seconds: float) -> Refusal:
    """Refuse somebody who goes on although every call of theirs was."""
    return Refusal(
        HTTPStatus.TOO_MANY_REQUESTS,
        "You have been told to wait",
        "it is of an identity that goes on calling after it was told that these are too many",
        retry_after=ceil(seconds),
    )


def _no_share(most: int) -> Refusal:
    """Refuse somebody who has taken all that one may have."""
    return Refusal(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"You have {most} requests and streams open here, and nobody may have more: close some",
        f"it is of an identity that has {most} requests and streams open, its share of them",
        hangs_up=True,
        retry_after=1,
    )


def _two_lengths(headers: Headers) -> Refusal | None:
    """Refuse what a gateway before us may have read to another end than we would."""
    if not (_all(headers, b"content-length") and _all(headers, b"transfer-encoding")):
        return None
    advice = "it has both `Content-Length` and `Transfer-Encoding`, as in request smuggling"
    return Refusal(
        HTTPStatus.BAD_REQUEST,
        "Send either Content-Length or Transfer-Encoding, not both",
        advice,
        hangs_up=True,
    )


def _wrong_host(hosts: Sequence[str], policy: Policy, address: str | None) -> Refusal | None:
    if len(hosts) == 1 and policy.knows(hosts[0], address):
        return None
    if not hosts:
        # Whoever sends none is no browser: it is a proxy that asks how we are.
        advice = (
            "it has no `Host`, as when a proxy asks `/readyz` in the shortest way; have it send "
            "one that `--allow-host` names, or our own address with the port"
        )
        return Refusal(HTTPStatus.MISDIRECTED_REQUEST, "Send the header Host", advice)
    host = _shown(hosts[0]) if len(hosts) == 1 else f"{len(hosts)} hosts"
    match = _AUTHORITY.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
    option = f"`--allow-host {match[1]}`" if match else "`--allow-host NAME`"
    advice = f"it asks for {host}; if that is what clients call this machine, use {option}"
    return Refusal(HTTPStatus.MISDIRECTED_REQUEST, "This is not the host you asked for", advice)


def _wrong_origin(headers: Headers, policy: Policy, address: str | None) -> Refusal | None:
    origins = _all(headers, b"origin")
    sites = _all(headers, b"sec-fetch-site")
    is_ours = all(_is_ours(origin, policy, address) for origin in origins)
    if len(origins) <= 1 and is_ours and all(site in _NOT_FROM_ELSEWHERE for site in sites):
        return None
    page = _shown(origins[0]) if origins else "another site"
    advice = (
        f"it comes from a page of {page} in a browser; only pages of this host, and of those "
        "named with `--allow-host`, are let in"
    )
    return Refusal(HTTPStatus.FORBIDDEN, "Pages of other origins may not ask this", advice)


def _is_ours(origin: str, policy: Policy, address: str | None) -> bool:
    scheme, separator, authority = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and policy.knows(authority, address)


def _shown(value: str) -> str:
    """Return what a stranger sent, as it may stand in a log."""
    plain = "".join(each if each.isascii() and each.isprintable() else "?" for each in value)
    return f"`{plain[:MAX_SHOWN]}`"


def _all(headers: Headers, name: bytes) -> list[str]:
    """Return every value of a header: two that differ would be read by different parties."""
    # In ASGI, names are in lower case.
    return [value.decode("latin-1") for key, value in headers if key == name]


def _address(scope: Scope) -> str | None:
    server = scope.get("server")
    if server is None or server[1] is None:
        return None
    host = f"[{server[0]}]" if ":" in server[0] else server[0]
    return f"{host}:{server[1]}".lower()
