"""How to connect to a server, by what `servers.yaml` names."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from aggregator.config import ServerConfig
from aggregator.downstream.login.home import Home
from aggregator.downstream.stdio.child import ChildSpec, open_child
from aggregator.downstream.stdio.watchdog import Watchdog
from aggregator.downstream.transport import Connect, Transport
from aggregator.secrecy import Redaction

logger = logging.getLogger(__name__)

FORGIVEN_AFTER = 3600.0
"""Seconds that a server which was ended for flooding has to run without."""


def way_to(server: ServerConfig, watchdog: Watchdog, home: Home | None = None) -> Connect:
    """Return how to connect to a server, with the login to it if there may be one."""
    if server.type == "stdio":
        return _way_to_child(server, watchdog)
    # Who has no servers over HTTP need not wait for what that takes.
    from aggregator.downstream.http.reach import reach  # noqa: PLC0415 - see above
    from aggregator.downstream.login.place import Logins  # noqa: PLC0415 - see above

    return reach(server, None if home is None else Logins(*home))


def _way_to_child(server: ServerConfig, watchdog: Watchdog) -> Connect:
    """Return how to start a server as a child process and talk to it over its pipes."""
    spec = ChildSpec(
        command=server.command or "",
        args=server.args,
        env=server.env,
        inherited=server.inherited,
        redact=Redaction(server.given()),
        cwd=server.cwd,
        max_message_bytes=server.max_message_bytes,
        limits=server.limits,
        detach=server.detach,
    )

    def log(stream: str, line: str) -> None:
        logger.info("%s", line, extra={"server": server.name, "stream": stream})

    has_flooded = False

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        nonlocal has_flooded
        began = anyio.current_time()
        async with open_child(spec, log=log, watchdog=watchdog, has_flooded=has_flooded) as child:
            try:
                yield child
            finally:
                is_forgiven = anyio.current_time() - began >= FORGIVEN_AFTER
                has_flooded = child.is_flooding or (has_flooded and not is_forgiven)

    return connect
