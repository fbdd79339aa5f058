"""A client's request, sent on to a server, and its result, given back in the client's era."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Ready
from aggregator.downstream.inflight import Caller
from aggregator.downstream.questions import refusal_labelled
from aggregator.downstream.server import Downstream
from aggregator.eras import is_modern
from aggregator.errors import CallError
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.json import JsonObject, as_object
from aggregator.names import ServerName
from aggregator.upstream.caller import ContextCaller
from aggregator.upstream.parking import Parking
from aggregator.upstream.request import Request
from aggregator.upstream.rounds import ROUND_PARAMS, fulfil, is_input_required, with_labels
from aggregator.upstream.seal import Binding, ForeignStateError, Sealer

RESERVED_META = "io.modelcontextprotocol/"
"""What belongs to one hop and is never passed on."""

RESOURCE_NOT_FOUND = -32002
"""How the handshake era says that there is no such resource."""


@dataclass(frozen=True, slots=True)
class Forward:
    """One request on its way to a server."""

    server: ServerName
    method: str
    params: Mapping[str, Any]
    """In the server's own words: its names, its URIs."""
    subject: str
    """What tells this request from others of its method."""


class Forwarding:
    """Sends requests on to servers."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._sealer = Sealer()
        self.parking = Parking()

    async def send(self, forward: Forward, request: Request) -> dict[str, Any]:
        """Send a request on and return its result in the form of the client's era.

        Raises:
            CallError: The request could not be completed.
            MCPError: The server answered with an error of its own.
        """
        caller = request.caller
        server = self._fleet.server(forward.server)
        params = _forwarded(forward.params)
        is_modern = _speaks_modern(request.now, forward.server)
        try:
            if caller.era == "handshake" and is_modern:
                result = await fulfil(self._fleet, forward.server, forward.method, params, caller)
            elif caller.era == "handshake":
                result = await server.request(forward.method, params, caller)
            elif is_modern:
                result = await self._pass(server, forward, params, caller)
            else:
                result = await self._park(server, forward, params, caller)
            return _stripped(result)
        except MCPError as error:
            raise _translated(refusal_labelled(forward.server, error), caller) from error

    async def send_or_refuse(self, forward: Forward, request: Request) -> dict[str, Any]:
        """Send a request whose result cannot say in words that it failed.

        Raises:
            MCPError: The request could not be completed.
        """
        try:
            return await self.send(forward, request)
        except CallError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error

    async def _pass(
        self, server: Downstream, forward: Forward, params: dict[str, Any], caller: ContextCaller
    ) -> dict[str, Any]:
        """Pass a round trip of the modern era through, its state sealed."""
        binding = _binding(forward, caller)
        state = self._opened(params, binding)
        if "ticket" in state:
            return await self._resume(state["ticket"], params, caller, binding)
        params.pop("requestState", None)
        if "state" in state:
            params["requestState"] = state["state"]
        result = await server.request(forward.method, params, caller)
        if not is_input_required(result):
            return result
        result = with_labels(result, forward.server)
        if isinstance(result.get("requestState"), str):
            result["requestState"] = self._sealed({"state": result["requestState"]}, binding)
        return result

    async def _park(
        self, server: Downstream, forward: Forward, params: dict[str, Any], caller: ContextCaller
    ) -> dict[str, Any]:
        """Send a request of the modern era to a server that asks in the middle of it."""
        binding = _binding(forward, caller)
        state = self._opened(params, binding)
        if "ticket" in state:
            return await self._resume(state["ticket"], params, caller, binding)
        own = {key: value for key, value in params.items() if key not in ROUND_PARAMS}
        if not caller.capabilities:
            return await server.request(forward.method, own, caller)

        async def run(behind: Caller) -> dict[str, Any]:
            return await server.request(forward.method, own, behind)

        return self._outcome(await self.parking.begin(run, caller), binding)

    async def _resume(
        self, ticket: str, params: JsonObject, caller: ContextCaller, binding: Binding
    ) -> dict[str, Any]:
        answers = as_object(params.get("inputResponses"))
        return self._outcome(await self.parking.resume(ticket, answers, caller), binding)

    def _outcome(self, outcome: dict[str, Any] | str, binding: Binding) -> dict[str, Any]:
        """Make a result of what became of a call: its own, or its questions."""
        if not isinstance(outcome, str):
            return outcome
        return {
            "resultType": "input_required",
            "inputRequests": self.parking.questions(outcome),
            "requestState": self._sealed({"ticket": outcome}, binding),
        }

    def _sealed(self, value: dict[str, Any], binding: Binding) -> str:
        return self._sealer.seal(value, binding, anyio.current_time())

    def _opened(self, params: Mapping[str, Any], binding: Binding) -> JsonObject:
        if params.get("requestState") is None:
            return {}
        try:
            return self._sealer.open(params["requestState"], binding, anyio.current_time())
        except ForeignStateError:
            raise MCPError(
                types.INVALID_PARAMS, "`requestState` was not issued for this request"
            ) from None


def _binding(forward: Forward, caller: ContextCaller) -> Binding:
    return Binding(caller.principal, forward.server, forward.method, forward.subject)


def _speaks_modern(now: Now, server: ServerName) -> bool:
    state = now.catalog.servers.get(server)
    return isinstance(state, Ready) and is_modern(state.protocol_version)


def _forwarded(params: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a client's params what belongs to our hop, and tasks, which end with it."""
    forwarded = {key: value for key, value in params.items() if key not in ("_meta", "task")}
    meta = {key: value for key, value in _own_meta(params).items() if key != "progressToken"}
    return {**forwarded, "_meta": meta} if meta else forwarded


def _stripped(result: dict[str, Any]) -> dict[str, Any]:
    """Take what belonged to the server's hop off a result; the rest passes as it came.

    Raises:
        MCPError: The result is only a handle, which is worth nothing on another connection.
    """
    if result.get("resultType") == "task":
        raise MCPError(types.INTERNAL_ERROR, "The server answered with a task; those do not pass")
    if result.get("resultType") == "complete":
        result.pop("resultType")
    if "_meta" in result and (meta := _own_meta(result)) != result["_meta"]:
        result["_meta"] = meta
        if not meta:
            del result["_meta"]
    return result


def _own_meta(holder: Mapping[str, Any]) -> dict[str, Any]:
    meta = as_object(holder.get("_meta"))
    return {key: value for key, value in meta.items() if not key.startswith(RESERVED_META)}


def _translated(error: MCPError, caller: ContextCaller) -> MCPError:
    """Say that there is no such resource in the way of the client's era."""
    if error.code == RESOURCE_NOT_FOUND and caller.era == "modern":
        return MCPError(types.INVALID_PARAMS, error.message, error.data)
    return error
