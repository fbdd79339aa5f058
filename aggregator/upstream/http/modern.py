"""Requests of the modern era: each by itself, its headers and its body in agreement."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner
from mcp.server.session import ServerSession
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_NAME_HEADER,
    MCP_PARAM_HEADER_PREFIX,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    decode_header_value,
    find_duplicated_routing_header,
    find_invalid_x_mcp_header,
    validate_mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import (
    HEADER_MISMATCH,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    RequestId,
)
from starlette.datastructures import Headers
from starlette.requests import Request

from aggregator.basics.json import JsonObject, as_object, is_object
from aggregator.basics.tasks import ID, METHODS
from aggregator.jsonrpc.encoding import encoded
from aggregator.upstream.caller import PROFILE
from aggregator.upstream.http.exchange import Exchange
from aggregator.upstream.http.reply import Reply
from aggregator.upstream.replica import ELSEWHERE

MAX_REMEMBERED = 1000
"""Tools of which it is remembered whether their calls have headers to be checked."""

_PREFIX = MCP_PARAM_HEADER_PREFIX.lower()


Schema = Callable[[str, str | None], Mapping[str, Any] | None]
"""Returns what the headers of a call are checked against, by the tool and what its client sees."""


class Modern:
    """Answers requests that stand for themselves."""

    def __init__(self, server: Server[Any], schema: Schema) -> None:
        self._server = server
        self._schema = schema
        self._mirrored: dict[str, tuple[object, bool]] = {}

    async def answer(self, exchange: Exchange, route: InboundModernRoute, reply: Reply) -> None:
        """Answer a request that was found to be in order."""
        # Nobody leaves anything to be cleaned up with a connection that is one request.
        answer = await exchange.run(ServerRunner(self._server, _connection(route), {}))
        if isinstance(answer, JSONRPCError):
            await reply.end(encoded(answer), status_of(answer.error.code))
        else:
            await reply.end(None if answer is None else encoded(answer))

    def route(
        self, message: JSONRPCRequest, request: Request
    ) -> InboundModernRoute | InboundLadderRejection:
        """Say how a request is to be answered, or why it is not."""
        headers = request.headers
        given = headers.items()
        twice = find_duplicated_routing_header(given)
        if twice is not None:
            return InboundLadderRejection(HEADER_MISMATCH, f"{twice} header appears more than once")
        body = {"method": message.method, "params": message.params}
        route = classify_inbound_request(body, headers=dict(given))
        if isinstance(route, InboundLadderRejection):
            return route
        if message.method in METHODS:
            return _misnamed(message.params or {}, headers) or route
        if message.method != "tools/call":
            return route
        profile: str | None = request.scope.get(PROFILE)
        return self._parameters(message.params or {}, headers, profile) or route

    def mirrors(self, message: JSONRPCRequest, request: Request) -> bool:
        """Whether the headers of a call have to repeat some of its arguments."""
        name = (message.params or {}).get("name")
        schema = self._schema(name, request.scope.get(PROFILE)) if isinstance(name, str) else None
        return schema is not None and self._is_mirrored(str(name), schema)

    def _parameters(
        self, params: JsonObject, headers: Headers, profile: str | None
    ) -> InboundLadderRejection | None:
        """Say where the headers of a call do not repeat what its arguments say, if they are to."""
        name, given = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not (given is None or is_object(given)):
            return None
        arguments = as_object(given)
        if not arguments and not any(header.startswith(_PREFIX) for header in headers):
            return None
        schema = self._schema(name, profile)
        if schema is None or not self._is_mirrored(name, schema):
            return None
        return validate_mcp_param_headers(schema, arguments, headers)

    def _is_mirrored(self, name: str, schema: Mapping[str, Any]) -> bool:
        """Whether any argument is to be repeated; looked up once for each definition of a tool."""
        known = self._mirrored.get(name)
        if known is None or known[0] is not schema:
            is_mirrored = find_invalid_x_mcp_header(schema) is None and bool(
                x_mcp_header_map(schema)
            )
            known = schema, is_mirrored
            if len(self._mirrored) >= MAX_REMEMBERED:
                del self._mirrored[next(iter(self._mirrored))]
            self._mirrored[name] = known
        return known[1]


def _misnamed(params: JsonObject, headers: Headers) -> InboundLadderRejection | None:
    """Say that the headers of a request do not name the task that it is about, if so."""
    task = params.get(ID)
    if task is None or decode_header_value(headers.get(MCP_NAME_HEADER)) == task:
        return None
    said = f"{MCP_NAME_HEADER} header does not match the request body's {ID!r} parameter"
    return InboundLadderRejection(HEADER_MISMATCH, said)


def speaking(route: InboundModernRoute, exchange: Exchange) -> ServerSession:
    """Return what reaches a client for as long as a request of it is under way."""
    return ServerSession(exchange, _connection(route))


def _connection(route: InboundModernRoute) -> Connection:
    return Connection.from_envelope(
        route.protocol_version, route.client_info, route.client_capabilities
    )


def rejection(
    found: InboundLadderRejection | ErrorData, identifier: RequestId | None = None
) -> tuple[bytes, int]:
    """Return what is said of a request that is not answered, and the status it is said with."""
    error = ErrorData(code=found.code, message=found.message, data=found.data)
    message = JSONRPCError(jsonrpc="2.0", id=identifier, error=error)
    return encoded(message), status_of(found.code)


def status_of(code: int) -> int:
    """Return the status that an error is answered with in the modern era."""
    if code == ELSEWHERE:
        return HTTPStatus.SERVICE_UNAVAILABLE
    return ERROR_CODE_HTTP_STATUS.get(code, HTTPStatus.OK)
