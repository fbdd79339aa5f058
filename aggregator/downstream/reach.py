"""How to connect to a server, by what `servers.yaml` names."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aggregator.config import ServerConfig
from aggregator.downstream.stdio.child import ChildSpec, open_child
from aggregator.downstream.stdio.watchdog import Watchdog
from aggregator.downstream.transport import Connect, Transport

logger = logging.getLogger(__name__)


def way_to(server: ServerConfig, watchdog: Watchdog) -> Connect:
    """Return how to connect to a server."""
    if server.type == "stdio":
        return _way_to_child(server, watchdog)
    # Who has no servers over HTTP need not wait for what that takes.
    from aggregator.downstream.http.reach import reach  # noqa: PLC0415 - see above

    return reach(server)


def _way_to_child(server: ServerConfig, watchdog: Watchdog) -> Connect:
    """Return how to start a server as a child process and talk to it over its pipes."""
    spec = ChildSpec(
        command=server.command or "",
        args=server.args,
        env=server.env,
        cwd=server.cwd,
        max_message_bytes=server.max_message_bytes,
    )

    def log(stream: str, line: str) -> None:
        logger.info("%s", line, extra={"server": server.name, "stream": stream})

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        async with open_child(spec, log=log, watchdog=watchdog) as child:
            yield child

    return connect
