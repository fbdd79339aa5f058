"""Serve clients over HTTP: listen, let in, and leave in good order."""

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import uvicorn
from starlette.types import ASGIApp

from aggregator.upstream.http.binding import Binding, BindingError, listen
from aggregator.upstream.http.guard import Guard, Policy
from aggregator.upstream.http.patience import REQUEST_TIME, impatient
from aggregator.upstream.http.site import ALIVE, PROTOCOL, READY, Site
from aggregator.upstream.http.token import ensure_token
from aggregator.upstream.server import Upstream

DRAIN_TIME = 10.0
"""Seconds that calls under way are given to end before we leave."""
HANG_UP_TIME = 1
"""Seconds that connections are given to close after that."""
MAX_CONNECTIONS = 2000
"""Connections at a time; more are answered 503."""
MAX_HEADER_BYTES = 64 * 1024

Say = Callable[[str], None]
"""Tells the person who started us something."""


@dataclass(frozen=True, slots=True)
class Access:
    """Where to listen, and whom to let in."""

    binding: Binding
    token_file: Path | None
    """Where the token is, or is to be made; `None` to ask for none."""
    names: tuple[str, ...] = ()
    """Further names by which clients may know this host."""
    say: Say = field(default=lambda _text: None)
    patience: float = REQUEST_TIME
    """Seconds that a client has to send a request whole."""


class Listener:
    """A door that is open to those who know the token."""

    def __init__(self, access: Access) -> None:
        self._access = access
        if access.token_file is None and not access.binding.is_loopback:
            raise BindingError(
                f"`{access.binding.authority}` can be reached by others, so a token is required",
                "Leave out `--no-auth`, or listen on 127.0.0.1",
            )
        self._token = None if access.token_file is None else ensure_token(access.token_file)
        self._socket = listen(access.binding)
        self.binding = Binding(access.binding.host, self._socket.getsockname()[1])
        """Where we listen: with the port that was given to us, if we left the choice."""

    @property
    def url(self) -> str:
        """The address that clients connect to."""
        return f"http://{self.binding.authority}{PROTOCOL}"

    async def serve(self, upstream: Upstream, stop: anyio.Event) -> None:
        """Serve clients until we are told to stop."""
        site = Site(upstream)
        guard = Guard(site, self._policy(), open_paths=(ALIVE, READY))
        server = _Server(_settings(guard, self._access.patience))
        async with site.manager.run(), anyio.create_task_group() as group:
            group.start_soon(_serve, server, self._socket, stop)
            self._greet()
            await stop.wait()
            await site.drain(DRAIN_TIME)
            server.should_exit = True

    def close(self) -> None:
        """Give up the port."""
        self._socket.close()

    def _policy(self) -> Policy:
        binding = self.binding
        return Policy.of(binding.host, binding.port, names=self._access.names, token=self._token)

    def _greet(self) -> None:
        self._access.say(f"serving clients at {self.url}")
        if self._access.token_file is not None:
            self._access.say(
                "they must send `Authorization: Bearer TOKEN` with the token in "
                f"`{self._access.token_file}`"
            )


class _Server(uvicorn.Server):
    """uvicorn, with signals left to those who know what else has to stop."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def _serve(server: _Server, sock: socket.socket, stop: anyio.Event) -> None:
    await server.serve([sock])
    stop.set()


def _settings(app: ASGIApp, patience: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=impatient(patience),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        # Whoever connects is who connects: no header says otherwise.
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_graceful_shutdown=HANG_UP_TIME,
    )
