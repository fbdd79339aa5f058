"""Serve clients over HTTP: listen, let in, and leave in good order."""

import socket
import time
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import field
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from starlette.types import ASGIApp

from aggregator.basics.descriptors import limit
from aggregator.basics.frozen import frozen
from aggregator.basics.shutdown_notice import ShutdownNotice
from aggregator.clients.client import FROM_ENVIRONMENT
from aggregator.config.http import Http
from aggregator.upstream.http.admission import Admission
from aggregator.upstream.http.authenticated import Authenticated
from aggregator.upstream.http.binding import BACKLOG, PROTOCOL, Binding, BindingError, listen
from aggregator.upstream.http.guard import Guard, Policy
from aggregator.upstream.http.issuer.reading import LEEWAY
from aggregator.upstream.http.keys import Keys
from aggregator.upstream.http.proxies import Behind, Network
from aggregator.upstream.http.replicas.common import Common
from aggregator.upstream.http.replicas.message_handling import MessageHandling
from aggregator.upstream.http.site import MAX_SESSIONS, Site
from aggregator.upstream.http.time_limits import HAS_HTTPTOOLS, REQUEST_TIME, timed_protocol
from aggregator.upstream.http.tls import Certificate
from aggregator.upstream.http.tls_handshakes import HANDSHAKE_TIME, TlsHandshakes
from aggregator.upstream.http.token import check_token, ensure_token
from aggregator.upstream.http.unauthenticated import Unauthenticated
from aggregator.upstream.server import Upstream

DRAIN_TIME = 10.0
"""Seconds that calls under way are given to end before we leave."""
HANG_UP_TIME = 1
"""Seconds that connections are given to close after that."""
MAX_CONNECTIONS = 2000
"""Connections at a time; more are answered 503."""
MAX_HEADER_BYTES = 64 * 1024
LOOK = 1.0
"""Seconds between two looks at the file of tokens."""

Say = Callable[[str], None]
"""Tells the person who started us something."""

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104
"""What means all addresses of a machine, with the one that it has for itself."""


@frozen
class Access:
    """Where to listen, and whom to let in."""

    binding: Binding
    token_file: Path | None
    """Where the token is, or is to be made; `None` to ask for none."""
    token: str | None = field(default=None, repr=False)
    """The token itself, where it is given to us and no file is needed."""
    names: tuple[str, ...] = ()
    """Further names by which clients may know this host."""
    profile: str | None = None
    """What all clients see, if there is to be no choice."""
    keys: Keys = field(default_factory=lambda: Keys(None), repr=False)
    """The tokens with names, which open the door as well."""
    say: Say = field(default=lambda _text: None)
    is_fast: bool = HAS_HTTPTOOLS
    """Whether requests are read by a compiled parser."""
    patience: float = REQUEST_TIME
    """Seconds that a client has to send a request whole."""
    max_sessions: int = MAX_SESSIONS
    """Sessions of handshake clients at a time."""
    stats: Path | None = None
    """Where it is kept what was counted, for the page; `None` if nothing is."""
    shows_arguments: bool = False
    """Whether the page shows what calls are given."""
    certificate: Certificate | None = None
    """What connections are secured with, if they are."""
    proxies: tuple[Network, ...] = ()
    """Gateways that are believed what they say of their clients."""
    drain_time: float = DRAIN_TIME
    """Seconds that calls under way are given to end before we leave."""
    notice: float = 0.0
    """Seconds that gateways are told of our leaving before clients are."""
    common: Common | None = None
    """What this process has in common with others that serve the same clients, if there are any."""
    has_no_auth: bool = True
    """Whether the command that opens it could have been told to ask for no token."""
    asks_issuer: bool = False
    """Whether people come in by the word of the issuer that the file names, if it does."""
    takes_token: bool = True
    """Whether whoever has the token is let in, as far as it is known when we start."""
    notes: tuple[str, ...] = ()
    """What else whoever starts us is to know."""


class Listener:
    """A door that is open to those who know the token."""

    def __init__(self, access: Access, opened: socket.socket | None = None) -> None:
        """Open it, unless somebody has: then `opened` is where clients come."""
        self._access = access
        self._token = _token(access)
        if self._token is None and not access.binding.is_loopback:
            raise BindingError(
                f"`{access.binding.authority}` can be reached by others, so a token is required",
                "Leave out `--no-auth`, or listen on 127.0.0.1",
            )
        self._socket = listen(access.binding) if opened is None else opened
        self.binding = Binding(access.binding.host, self._socket.getsockname()[1])
        """Where we listen: with the port that was given to us, if we left the choice."""

    @property
    def near(self) -> str:
        """The host and port by which this machine reaches us."""
        host = _EVERYWHERE.get(self.binding.host, self.binding.host)
        return Binding(host, self.binding.port).authority

    @property
    def url(self) -> str:
        """The address that clients connect to."""
        scheme = "http" if self._access.certificate is None else "https"
        # All addresses of a machine are none that it could be asked for by.
        names = self._access.names if self._is_everywhere and not self._access.proxies else ()
        authority = Binding(names[0], self.binding.port).authority if names else self.near
        return f"{scheme}://{authority}{PROTOCOL}"

    @property
    def _is_everywhere(self) -> bool:
        return self.binding.host in _EVERYWHERE

    async def serve(
        self, upstream: Upstream, stop: anyio.Event, shutdown_notice: ShutdownNotice
    ) -> None:
        """Serve clients until we are told to stop; say meanwhile what that waits for."""
        access, look = self._access, self._look(upstream)
        site = Site(
            upstream,
            access.max_sessions,
            access.stats,
            shows_arguments=access.shows_arguments,
            profile=access.profile,
            http=look,
            mail=access.common and access.common.mail,
        )
        files = limit()
        unauthenticated = Unauthenticated.among(files)
        # The other half is for servers, and for whatever else has to be opened.
        most = min(MAX_CONNECTIONS, files // 2)
        admission = Admission(self._token, access.keys, look, has_no_auth=access.has_no_auth)
        guard = Guard(
            site,
            Policy.of(self.binding.host, self.binding.port, names=access.names),
            admission,
            upstream.allowances,
            open_paths=site.open_paths,
            unauthenticated=unauthenticated,
            authenticated=Authenticated.among(most),
        )
        protocol = timed_protocol(access.patience, unauthenticated, is_fast=access.is_fast)
        seconds = min(access.patience, HANDSHAKE_TIME)
        secure = access.certificate and TlsHandshakes(
            protocol, access.certificate.context, unauthenticated, seconds
        )
        backlog = max(1, min(BACKLOG, unauthenticated.most // 2))
        app = Behind(guard, access.proxies) if access.proxies else guard
        server = _Server(_settings(app, secure or protocol, most, backlog))
        stream, wants = upstream.fleet.stream, access.shows_arguments
        with stream.heard_by(site.metrics.hear), stream.heard_by(site.activity.hear, content=wants):
            async with site.endpoint.open(), anyio.create_task_group() as group:
                group.start_soon(_serve, server, self._socket, stop, secure)
                self.greet()
                # What others tell concerns calls that are under way, too, until these have ended.
                async with _handling(access, site, upstream):
                    async with anyio.create_task_group() as watching:
                        watching.start_soon(_follow, access, site, look)
                        watching.start_soon(admission.run)
                        await stop.wait()
                        watching.cancel_scope.cancel()
                    if access.notice:
                        site.give_notice()
                        await anyio.sleep(access.notice)
                    await site.drain(access.drain_time, shutdown_notice)
                server.should_exit = True

    def _look(self, upstream: Upstream) -> Callable[[], Http]:
        """Return what says how clients are treated, as the file has it at each moment."""
        if not self._access.asks_issuer:
            return Http
        return lambda: upstream.fleet.now.config.settings.http

    @property
    def descriptor(self) -> int:
        """What clients come to, for whoever is to serve them in our place."""
        return self._socket.fileno()

    def told(self) -> dict[str, Any]:
        """Return whom to let in, for whoever is to serve them in our place."""
        binding, access = self.binding, self._access
        return {
            "host": binding.host,
            "port": binding.port,
            "token": self._token,
            "names": list(access.names),
            "stats": access.stats and str(access.stats),
            "shows_arguments": access.shows_arguments,
            "profile": access.profile,
            "asks_issuer": access.asks_issuer,
            "ring": access.keys.place,
            "tls": access.certificate and access.certificate.place,
            "proxies": [str(each) for each in access.proxies],
            "drain": [access.drain_time, access.notice],
        }

    def close(self) -> None:
        """Give up the port."""
        self._socket.close()

    def greet(self) -> None:
        """Say where clients come, and what they must know."""
        others = ", and at the other addresses of this machine" if self._is_everywhere else ""
        self._access.say(f"serving clients at {self.url}{others}")
        if self._token is not None and self._access.takes_token:
            place = FROM_ENVIRONMENT if self._access.token else self._access.token_file
            self._access.say(
                f"they must send `Authorization: Bearer TOKEN` with the token in `{place}`"
            )
        for note in self._access.notes:
            self._access.say(note)
        is_secure = self._access.certificate is not None or self._access.proxies
        if not self.binding.is_loopback and not is_secure:
            self._access.say(
                "warning: others on the network can read the token and all else on the way; use "
                "`--tls-cert` and `--tls-key`, put a gateway with TLS in front and name its "
                "address with `--behind-proxy`, or listen on 127.0.0.1"
            )


def _token(access: Access) -> str | None:
    """Return what clients must know, if they must know anything."""
    if access.token is not None:
        check_token(access.token)
        return access.token
    return None if access.token_file is None else ensure_token(access.token_file)


class _Server(uvicorn.Server):
    """uvicorn, with signals left to those who know what else has to stop."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _handling(access: Access, site: Site, upstream: Upstream) -> AbstractAsyncContextManager[None]:
    """Return what is open for as long as other replicas are heard, if there are any."""
    mail = access.common and access.common.mail
    if mail is None:
        return nullcontext()
    return MessageHandling(mail, site.endpoint, upstream, access.keys, access.stats).open()


async def _follow(access: Access, site: Site, look: Callable[[], Http]) -> None:
    """Part with whoever came in by a token that has been revoked or has expired.

    So it is with those whom an issuer knows, once the file says of it something else.
    """
    keys, common = access.keys, access.common
    valid, issuer = keys.valid, look().issuer
    while True:
        await anyio.sleep(LOOK)
        keys.look()
        if access.certificate is not None:
            access.certificate.look()
        if common is not None:
            common.keys.look()
        before, valid = valid, keys.valid
        known, issuer = issuer, look().issuer
        # Who has neither a token with a name nor our own is known by the issuer.
        unauthenticated = (
            frozenset[str]() if issuer == known else site.endpoint.grants - valid - {""}
        )
        if gone := (before - valid) | unauthenticated:
            site.part_with(gone)
        site.endpoint.under_way.part_with_overdue(time.time() - LEEWAY)
        if common is not None and common.mail is not None and keys.is_sound and before - valid:
            common.mail.revoked(before - valid)


async def _serve(
    server: _Server, sock: socket.socket, stop: anyio.Event, handshakes: TlsHandshakes | None
) -> None:
    async with nullcontext() if handshakes is None else handshakes.open():
        await server.serve([sock])
    stop.set()


def _settings(app: ASGIApp, protocol: Any, most: int, backlog: int) -> uvicorn.Config:  # noqa: ANN401 - what makes one
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        # Only what `--behind-proxy` names is believed, and that is read by ourselves.
        proxy_headers=False,
        server_header=False,
        limit_concurrency=most,
        # As many are accepted at once, before any of them is heard.
        backlog=backlog,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_graceful_shutdown=HANG_UP_TIME,
    )
