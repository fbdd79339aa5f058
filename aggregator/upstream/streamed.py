"""Requests of the modern era on a stream: each by itself, as it comes.

The SDK finds out the era of a stream by relaying all of its messages through another. Where the
first request has told it already, they are answered without that.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.runner import ServerRunner, modern_error_data
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import MessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, RequestId
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

Params = Mapping[str, Any] | None


class Streamed:
    """Answers the requests of one client."""

    def __init__(
        self, server: Server[Any], dispatcher: JSONRPCDispatcher[TransportContext], visitor: object
    ) -> None:
        self._server = server
        self._dispatcher = dispatcher
        self._outbound = NotifyOnlyOutbound(dispatcher)
        self._visitor = visitor

    async def run(self) -> None:
        """Answer for as long as anything comes."""
        await self._dispatcher.run(self._answer, self._hear)

    async def _answer(
        self, dispatched: DispatchContext[TransportContext], method: str, params: Params
    ) -> dict[str, Any]:
        if method == "initialize":
            raise _too_late(params)
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        connection = Connection.from_envelope(
            route.protocol_version,
            route.client_info,
            route.client_capabilities,
            outbound=self._outbound,
        )
        try:
            # Nobody leaves anything to be cleaned up with a connection that is one request.
            runner = ServerRunner(self._server, connection, self._visitor)
            return await runner.on_request(_Unasked(dispatched), method, params)
        except (MCPError, ValidationError):
            raise
        except Exception as error:
            told = modern_error_data(error)
            raise MCPError(told.code, told.message, told.data) from error

    async def _hear(
        self, dispatched: DispatchContext[TransportContext], method: str, params: Params
    ) -> None:
        connection = Connection.from_envelope(
            LATEST_MODERN_VERSION, None, None, outbound=self._outbound
        )
        runner = ServerRunner(self._server, connection, self._visitor)
        await runner.on_notify(_Unasked(dispatched), method, params)


class _Unasked:
    """What a request is reached by in an era in which nobody asks the client anything back."""

    can_send_request = False

    def __init__(self, dispatched: DispatchContext[TransportContext]) -> None:
        self._dispatched = dispatched
        self.transport = replace(dispatched.transport, can_send_request=False)
        self.request_id: RequestId | None = dispatched.request_id
        self.message_metadata: MessageMetadata = dispatched.message_metadata
        self.notify = dispatched.notify
        self.progress = dispatched.progress

    @property
    def cancel_requested(self) -> anyio.Event:
        """Set when the client takes its request back."""
        return self._dispatched.cancel_requested

    async def send_raw_request(
        self,
        method: str,
        params: Params,  # noqa: ARG002 - as the SDK has it
        opts: CallOptions | None = None,  # noqa: ARG002 - as the SDK has it
    ) -> dict[str, Any]:
        """Ask nothing.

        Raises:
            NoBackChannelError: Always.
        """
        raise NoBackChannelError(method)


def _too_late(params: Params) -> MCPError:
    """Refuse a handshake after the first request has shown that there is none."""
    requested = (params or {}).get("protocolVersion")
    data: dict[str, Any] = {"supported": list(MODERN_PROTOCOL_VERSIONS)}
    if isinstance(requested, str):
        data["requested"] = requested
    said = "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted"
    return MCPError(UNSUPPORTED_PROTOCOL_VERSION, said, data)
