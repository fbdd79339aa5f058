"""The aggregator behind a door of its own on the loopback interface, and clients that come in."""

import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from aggregator.basics.shutdown_notice import ShutdownNotice
from aggregator.config import Settings
from aggregator.downstream.transport import Connect
from aggregator.upstream.http.binding import Binding
from aggregator.upstream.http.keys import Keys
from aggregator.upstream.http.replicas.common import Common
from aggregator.upstream.http.serving import Access, Listener
from aggregator.upstream.http.site import MAX_SESSIONS
from aggregator.upstream.http.time_limits import HAS_HTTPTOOLS, REQUEST_TIME
from aggregator.upstream.server import Upstream
from tests.patience import PATIENCE
from tests.peers import MODES, Era, aggregating

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""To read certificates that nobody needs takes longer than most tests."""


class Parser:
    """Which parser reads what clients send."""

    is_fast = HAS_HTTPTOOLS


@dataclass(frozen=True)
class Open:
    """A door that is open."""

    url: str
    token: str
    upstream: Upstream
    stop: anyio.Event
    said: tuple[str, ...]

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/mcp")

    @property
    def credentials(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    @asynccontextmanager
    async def client(
        self, era: Era, verify: ssl.SSLContext = NO_CERTIFICATES, **options: Any
    ) -> AsyncGenerator[Client, None]:
        """Be a client of it."""
        async with (
            httpx2.AsyncClient(
                headers=self.credentials, timeout=PATIENCE, trust_env=False, verify=verify
            ) as http,
            Client(
                streamable_http_client(self.url, http_client=http), mode=MODES[era], **options
            ) as client,
        ):
            yield client


@asynccontextmanager
async def door(
    servers: Mapping[str, Connect],
    directory: Path,
    settings: Settings | None = None,
    patience: float = REQUEST_TIME,
    max_sessions: int = MAX_SESSIONS,
    *,
    port: int = 0,
    stats: Path | None = None,
    shows_arguments: bool = False,
    profile: str | None = None,
    keys: Keys | None = None,
    common: Common | None = None,
    outside: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncGenerator[Open, None]:
    """Serve the aggregator in front of these servers for the length of the block.

    `outside` has what else there is to say of the door: its certificate, its gateways, its end.
    """
    said: list[str] = []
    token_file = directory / "http-token"
    access = Access(
        Binding("127.0.0.1", port),
        token_file,
        profile=profile,
        keys=keys or Keys(None),
        patience=patience,
        max_sessions=max_sessions,
        is_fast=Parser.is_fast,
        say=said.append,
        stats=stats,
        shows_arguments=shows_arguments,
        common=common,
        asks_issuer=True,
        **(outside or {}),
    )
    if common is not None:
        options["replica"] = common.replica
    listener = Listener(access)
    stop = anyio.Event()
    token = token_file.read_text().strip()
    try:
        async with (
            aggregating(servers, settings, **options) as upstream,
            anyio.create_task_group() as group,
        ):
            group.start_soon(listener.serve, upstream, stop, ShutdownNotice(said.append))
            try:
                yield Open(listener.url, token, upstream, stop, tuple(said))
            finally:
                stop.set()
    finally:
        listener.close()
