"""A client of the aggregator over HTTP, of either era, with any number of requests under way."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import anyio
import h11
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from aggregator.basics.eras import Era
from tests.loopback.bare import Wire
from tests.soak.client import ENVELOPE, INTRODUCTION, GoneError, Json

VERSIONS: Mapping[Era, str] = {
    "handshake": LATEST_HANDSHAKE_VERSION,
    "modern": LATEST_MODERN_VERSION,
}

HEARD: Mapping[str, Any] = {"notifications": {"toolsListChanged": True}}


class WebClient:
    """Sends requests, and gives each its answer."""

    def __init__(self, url: str, token: str, era: Era) -> None:
        self.era: Era = era
        self.notices: list[Json] = []
        self.is_deaf = False
        """Whether the stream of what is announced has ended."""
        self._url = url
        self._wire = Wire(url)
        self._headers = {"authorization": f"Bearer {token}", "mcp-protocol-version": VERSIONS[era]}
        self._numbers = count(1)

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Json:
        message, headers = self._message(method, params or {}), self._about(method, params or {})
        async with self._wire.send("POST", message, headers) as messages:
            async for each in messages:
                if "method" not in each:
                    return each
        raise GoneError

    async def hang_up(self) -> None:
        """Give back the connections that no request has in use."""
        wire, self._wire = self._wire, Wire(self._url)
        await wire.close()

    @asynccontextmanager
    async def present(self) -> AsyncGenerator[None, None]:
        """Introduce ourselves, and listen to what is announced for the length of the block."""
        if self.era == "handshake":
            await self.request("initialize", INTRODUCTION)
            self._headers["mcp-session-id"] = self._wire.session
            told: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            async with self._wire.send("POST", told, self._headers):
                pass
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen)
            yield
            group.cancel_scope.cancel()
        await self._wire.close()

    async def _listen(self) -> None:
        wire, listen = Wire(self._url), "subscriptions/listen"
        modern = self.era == "modern"
        message = self._message(listen, HEARD) if modern else None
        headers = self._about(listen, {}) if modern else self._headers
        with suppress(OSError, h11.RemoteProtocolError):
            async with wire.send("POST" if modern else "GET", message, headers) as messages:
                async for each in messages:
                    self.notices.append(each)
        self.is_deaf = True

    def _message(self, method: str, params: Mapping[str, Any]) -> Json:
        stamped = {**params, "_meta": ENVELOPE} if self.era == "modern" else params
        number = next(self._numbers)
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": stamped}

    def _about(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        if self.era == "handshake":
            return self._headers
        named = {"mcp-name": params["name"]} if "name" in params else {}
        return {**self._headers, "mcp-method": method, **named}
