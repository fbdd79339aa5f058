"""Find out which era a server speaks, and introduce ourselves in it."""

from collections.abc import Callable
from dataclasses import replace

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from aggregator.basics.eras import Era
from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, as_object, items
from aggregator.basics.tasks import without_tasks
from aggregator.downstream.envelope import Envelope
from aggregator.downstream.exchange import REQUEST_FAILURES, Exchange
from aggregator.downstream.peer import Peer, describe
from aggregator.downstream.questions import is_limited
from aggregator.downstream.transport import UndeliveredError

PROBE_HEAD_START = 3.0
"""Seconds `server/discover` may go unanswered before `initialize` is sent beside it.

A server that is merely slow to start answers the first; one that ignores what it does not know
answers the second. Nothing is concluded from silence.
"""


class LinkLostError(Exception):
    """The connection ended before the server was of any use; says how."""


class EraUnclearError(LinkLostError):
    """The server closed the connection on `server/discover`: an old one may need `initialize`."""


@frozen
class Ourselves:
    """What servers are told of us."""

    identity: JsonObject
    capabilities: Callable[[], JsonObject]
    """What our clients can be asked, as far as we know by then."""


async def introduce(exchange: Exchange, ours: Ourselves, era: Era | None) -> Peer:
    """Find a server's era, unless it is known, and introduce ourselves in it.

    Raises:
        LinkLostError: The connection ended meanwhile.
        MCPError: The server refuses.
        UndeliveredError: The transport could not get an answer.
        ConnectionClosedError: The connection closed.
    """
    if era == "handshake":
        return await _initialize(exchange, ours)
    if era == "modern":
        return await _discover(exchange, ours)
    return await _probe(exchange, ours)


async def _probe(exchange: Exchange, ours: Ourselves) -> Peer:
    """Ask in both eras, the modern one first, and take the first good answer."""
    found: list[Peer] = []
    errors: list[Exception] = []
    refused = anyio.Event()

    async def modern() -> None:
        try:
            found.append(await _discover(exchange, ours))
            group.cancel_scope.cancel()
        except REQUEST_FAILURES as error:
            errors.append(error)
            refused.set()

    async def handshake() -> None:
        with anyio.move_on_after(PROBE_HEAD_START):
            await refused.wait()
        if exchange.closed.is_set():
            return
        try:
            found.append(await _initialize(exchange, ours))
            group.cancel_scope.cancel()
        except REQUEST_FAILURES as error:
            errors.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(modern)
        group.start_soon(handshake)
    if found:
        return found[0]
    if not exchange.closed.is_set():
        raise errors[-1]
    # What the transport says of the end tells more than that it has come.
    unclear = EraUnclearError(exchange.transport.describe_end())
    raise next((each for each in errors if isinstance(each, UndeliveredError)), unclear)


async def _discover(exchange: Exchange, ours: Ourselves) -> Peer:
    """Ask in the modern era; again in another version of it if the server wants that."""
    try:
        return await _discover_in(MODERN_PROTOCOL_VERSIONS[-1], exchange, ours)
    except MCPError as error:
        mutual = _mutual(as_object(error.data).get("supported"))
        if error.code != types.UNSUPPORTED_PROTOCOL_VERSION or not mutual:
            raise
        return await _discover_in(mutual[-1], exchange, ours)


async def _discover_in(version: str, exchange: Exchange, ours: Ourselves) -> Peer:
    envelope, number = Envelope(version, ours.identity), exchange.next_number()
    result = await exchange.request(
        number,
        "server/discover",
        envelope.wrap({}, number),
        envelope.headers("server/discover", None),
        cancellable=False,
    )
    mutual = _mutual(result.get("supportedVersions"))
    if not mutual:
        raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, "No modern version in common")
    stamp = as_object(result.get("_meta")).get(types.SERVER_INFO_META_KEY)
    return describe(mutual[-1], stamp, result)


def _mutual(offered: object) -> list[str]:
    """Return the modern versions that both sides speak, the oldest first."""
    theirs = items(offered)
    return [each for each in MODERN_PROTOCOL_VERSIONS if each in theirs]


async def _initialize(exchange: Exchange, ours: Ourselves) -> Peer:
    told = without_tasks(ours.capabilities())
    result = await exchange.request(
        exchange.next_number(),
        "initialize",
        {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": told,
            "clientInfo": ours.identity,
        },
        cancellable=False,
    )
    version = str(result.get("protocolVersion"))
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise MCPError(
            types.UNSUPPORTED_PROTOCOL_VERSION,
            f"It speaks the unknown protocol {version[:40]!r}",
        )
    await exchange.notify("notifications/initialized")
    # In the modern era nothing is said of any client where a server is asked what it offers.
    peer = describe(version, result.get("serverInfo"), result)
    return replace(peer, is_told_less=is_limited(told))
