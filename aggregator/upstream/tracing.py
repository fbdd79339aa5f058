"""Puts each request of a client, and each that is sent on for it, where it belongs in a trace."""

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware

from aggregator.basics.json import JsonObject
from aggregator.catalog import Ready
from aggregator.fleet.fleet import Fleet
from aggregator.names import ServerName, ToolName
from aggregator.records.events import Hop, Operation, Tracer
from aggregator.upstream.caller import Context


def serving(fleet: Fleet, tracer: Tracer) -> ServerMiddleware[Any]:
    """Return what has each request of a client followed, whoever answers it."""

    async def follow(ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            return await call_next(ctx)
        params = dict(ctx.params or {})
        operation = Operation(
            kind="server",
            method=ctx.method,
            params=params,
            target=_target(fleet, params.get("name")),
            protocol=ctx.protocol_version or "",
            request=str(ctx.request_id),
            is_remote=ctx.request is not None,
        )
        with tracer.following(operation) as hop:
            result = await call_next(replace(ctx, params=hop.params))
            if isinstance(result, dict):
                # By now its server has started, if it was not there.
                hop.answered(result, _target(fleet, params.get("name")))
            return result

    return follow


def forwarding(
    fleet: Fleet, tracer: Tracer, server: ServerName, method: str, params: JsonObject
) -> AbstractContextManager[Hop]:
    """Have a request followed that is sent on to a server."""
    state = fleet.now.catalog.servers.get(server)
    name: Any = params.get("name")
    return tracer.following(
        Operation(
            kind="client",
            method=method,
            params=params,
            target=name if isinstance(name, str) else "",
            protocol=state.protocol_version if isinstance(state, Ready) else "",
            server=server,
            is_remote=fleet.now.config.servers[server].url is not None,
        )
    )


def _target(fleet: Fleet, name: object) -> str:
    """Return the tool that is asked for, if there is one: anything else is a client's own words."""
    if not isinstance(name, str):
        return ""
    is_known = ToolName(name) in fleet.now.catalog.entries or fleet.now.own_tool(name) is not None
    return name if is_known else ""
