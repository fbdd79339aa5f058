"""A client's request, sent on to a server, and its result, given back in the client's era."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import era_of, is_modern
from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, as_object
from aggregator.basics.tasks import METHODS, is_task
from aggregator.catalog import Ready, ServerState
from aggregator.downstream.inflight import Caller
from aggregator.downstream.link import Link
from aggregator.downstream.questions import (
    is_input_required,
    refusal_labelled,
    without_questions,
)
from aggregator.downstream.requests import Requests
from aggregator.downstream.sent import Sent, Settled
from aggregator.downstream.server import Downstream
from aggregator.errors import CallError, ElsewhereError
from aggregator.fleet.client_processes import Resident
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.names import ServerName
from aggregator.records.events import Tracer
from aggregator.upstream.background import Background
from aggregator.upstream.caller import ContextCaller
from aggregator.upstream.hop import forwarded, stripped
from aggregator.upstream.login_invitations import Outlook
from aggregator.upstream.parking import Parking, Run
from aggregator.upstream.replica import Replica
from aggregator.upstream.request import Request
from aggregator.upstream.rounds import ROUND_PARAMS, fulfil, with_labels
from aggregator.upstream.seal import MAX_VALUE, Binding, ForeignStateError, TooLongError
from aggregator.upstream.task_handles import Handle, TaskHandles, checked
from aggregator.upstream.tracing import forwarding

RESOURCE_NOT_FOUND = -32002
"""How the handshake era says that there is no such resource."""


@frozen
class Forward:
    """One request on its way to a server."""

    server: ServerName
    method: str
    params: Mapping[str, Any]
    """In the server's own words: its names, its URIs."""
    subject: str
    """What tells this request from others of its method."""


class Begun(NamedTuple):
    """A request that was sent on, and whom its answer goes back by."""

    requests: Requests
    sent: Sent

    def take_plain(self) -> dict[str, Any] | None:
        """Return its result, if it is settled with that and nothing else."""
        result = self.requests.take_plain(self.sent)
        return None if result is None else stripped(result)

    def give_up(self) -> None:
        """Wait for it no more."""
        self.requests.give_up(self.sent)


class Forwarding:
    """Sends requests on to servers."""

    def __init__(self, fleet: Fleet, background: Background, replica: Replica) -> None:
        self._fleet = fleet
        self._replica = replica
        self._sealer = replica.sealer
        self.task_handles = TaskHandles(replica)
        """What clients know tasks by."""
        self._parking = Parking(background)

    @property
    def noise(self) -> dict[ServerName, int]:
        """How many lines that are no messages each server has written since it was started."""
        names = self._fleet.now.config.enabled
        return {name: self._fleet.server(name).noise_count for name in names}

    @property
    def processes(self) -> dict[ServerName, int | None]:
        """How many clients have a process of each server of which every client has its own."""
        fleet = self._fleet
        own = [name for name, each in fleet.now.config.enabled.items() if each.per_client]
        return {
            name: fleet.client_processes.number(name) if fleet.is_own(name) else None
            for name in own
        }

    def requests(self, server: ServerName, request: Request) -> Requests:
        """Return the way to a server, as one client has it.

        Raises:
            ServerUnavailableError: It is no longer there.
        """
        return self._fleet.server(server, request.resident).requests

    async def until_ready(self, server: ServerName, request: Request) -> Request:
        """Return a request as it is once a server is there.

        Raises:
            CallError: It did not become ready.
        """
        await self._fleet.until_ready(server, request.resident)
        return request.at(self._fleet.now)

    async def until_own(self, server: ServerName, request: Request) -> None:
        """Begin a client's own process of a server, if every client has its own.

        Raises:
            MCPError: It could not be begun.
        """
        if self._fleet.is_own(server):
            try:
                await self._fleet.until_ready(server, request.resident)
            except CallError as error:
                raise MCPError(types.INTERNAL_ERROR, str(error)) from error

    async def after_start(self, request: Request, kind: str) -> Request:
        """Return a request as it is once servers are there that have only just begun to start."""
        return replace(request, now=await self.started(kind, request.outlook))

    async def started(self, kind: str, outlook: Outlook) -> Now:
        """Return what a client sees once servers are there that have only just begun to start."""
        await self._fleet.awaiting.until_started(lambda now: outlook(now).catalog.servers, kind)
        return outlook(self._fleet.now)

    def seen(self, outlook: Outlook) -> Now:
        """Return what a client sees now."""
        return outlook(self._fleet.now)

    async def after_comparing(self, request: Request) -> Request:
        """Return a request as it is once what is shown has been compared with what was approved."""
        await self._fleet.awaiting.until_compared()
        return request.at(self._fleet.now)

    async def send(
        self, forward: Forward, request: Request, *, is_traced: bool = False
    ) -> dict[str, Any]:
        """Send a request on and return its result in the form of the client's era.

        Raises:
            CallError: The request could not be completed.
            MCPError: The server answered with an error of its own.
        """
        if self._fleet.stream.tracer is not None and not is_traced:
            return await self._send_traced(self._fleet.stream.tracer, forward, request)
        caller = request.caller
        servers = _Servers(self._fleet, request.resident)
        server = servers.server(forward.server)
        params = forwarded(forward.params)
        own = self._fleet.own_state(forward.server, request.resident)
        is_modern = _speaks_modern(own or request.now.catalog.servers.get(forward.server))
        binding = _binding(forward, caller)
        try:
            if caller.era == "handshake" and is_modern:
                result = await fulfil(servers, forward.server, forward.method, params, caller)
            elif caller.era == "handshake":
                result = without_questions(await server.request(forward.method, params, caller))
            elif "ticket" in (state := self._opened(params, binding)):
                result = await self._resume(state, params, caller, binding)
            elif is_modern:
                passed, link = _with_state(params, state), server.requests.link
                result = await server.request(forward.method, passed, caller)
                return stripped(self._passed(result, forward, request, server.requests, link))
            else:
                result = await self._park(server, forward, params, caller)
            return stripped(_without_task(result))
        except MCPError as error:
            raise _translated(refusal_labelled(forward.server, error), caller) from error

    def can_begin(self, server: ServerName, request: Request) -> bool:
        """Whether a request can be sent on where nothing has to be waited for."""
        return self._is_direct(server, request) and self._fleet.server(server).requests.can_begin(
            request.caller
        )

    def _is_direct(self, server: ServerName, request: Request) -> bool:
        """Whether a request passes as it is.

        It does not to a server of another era, to one that rests, or where it is followed.
        """
        fleet = self._fleet
        if fleet.stream.tracer is not None or fleet.is_own(server):
            return False
        state = request.now.catalog.servers.get(server)
        return isinstance(state, Ready) and era_of(state.protocol_version) == request.caller.era

    def begin(self, forward: Forward, request: Request, settled: Settled) -> Begun | None:
        """Send a request on where nothing has to be waited for, and have somebody told then."""
        if not self._is_direct(forward.server, request):
            return None
        requests = self._fleet.server(forward.server).requests
        params = forwarded(forward.params)
        if request.caller.era == "modern":
            # What has no state of ours has none, and is passed on as in `send`.
            params.pop("requestState", None)
        sent = requests.begin(forward.method, params, request.caller, settled)
        return None if sent is None else Begun(requests, sent)

    async def finish(self, begun: Begun, forward: Forward, request: Request) -> dict[str, Any]:
        """Return the result of a request that is settled, in the form of the client's era.

        Raises:
            CallError: The request could not be completed.
            MCPError: The server answered with an error of its own.
        """
        caller = request.caller
        try:
            result = await begun.requests.finish(begun.sent)
            if caller.era == "handshake":
                return stripped(_without_task(result))
            requests, link = begun.requests, begun.sent.link
            return stripped(self._passed(result, forward, request, requests, link))
        except MCPError as error:
            raise _translated(refusal_labelled(forward.server, error), caller) from error

    async def _send_traced(
        self, tracer: Tracer, forward: Forward, request: Request
    ) -> dict[str, Any]:
        server, method = forward.server, forward.method
        with forwarding(self._fleet, tracer, server, method, forward.params) as hop:
            traced = replace(forward, params=hop.params)
            result = await self.send(traced, request, is_traced=True)
            hop.answered(result)
            return result

    async def send_or_refuse(self, forward: Forward, request: Request) -> dict[str, Any]:
        """Send a request whose result cannot say in words that it failed.

        A server that is gone is waited for: nobody else may answer.

        Raises:
            MCPError: The request could not be completed.
        """
        try:
            return await self.send(forward, await self.until_ready(forward.server, request))
        except CallError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error

    def _passed(
        self,
        result: dict[str, Any],
        forward: Forward,
        request: Request,
        requests: Requests,
        link: Link | None,
    ) -> dict[str, Any]:
        """Return a result of the modern era, with an id of ours if it is the handle of a task.

        If it asks for something, its state is sealed.

        Raises:
            MCPError: It is a task, and nobody could ask about it.
        """
        caller = request.caller
        if is_task(result) and forward.method == "tools/call":
            task = checked(result, forward.server, caller)
            handle = Handle(
                forward.server,
                task,
                forward.subject,
                str(request.params["name"]),
                requests.home(link),
                requests.tasks.begin(task, result),
                self._replica.name,
            )
            return self.task_handles.given(result, handle, caller)
        if forward.method in METHODS:
            return result
        if not is_input_required(_without_task(result)):
            return result
        result = with_labels(result, forward.server)
        if isinstance(state := result.get("requestState"), str):
            try:
                sealed = self._sealed({"state": state}, _binding(forward, caller))
            except TooLongError:
                raise MCPError(types.INTERNAL_ERROR, _too_long(forward.server, state)) from None
            result["requestState"] = sealed
        return result

    async def _park(
        self, server: Downstream, forward: Forward, params: dict[str, Any], caller: ContextCaller
    ) -> dict[str, Any]:
        """Send a request of the modern era to a server that asks in the middle of it."""
        own = {key: value for key, value in params.items() if key not in ROUND_PARAMS}
        if not caller.capabilities:
            return without_questions(await server.request(forward.method, own, caller))

        async def run(behind: Caller) -> dict[str, Any]:
            return without_questions(await server.request(forward.method, own, behind))

        return await self.hold(run, caller, _binding(forward, caller))

    async def hold(self, run: Run, caller: ContextCaller, binding: Binding) -> dict[str, Any]:
        """Do what may ask the client something; return its result, or what it asks."""
        if caller.era == "handshake" or not caller.capabilities:
            return await run(caller)
        return self._outcome(await self._parking.begin(run, caller), binding)

    async def resumed(
        self, params: JsonObject, caller: ContextCaller, binding: Binding
    ) -> dict[str, Any] | None:
        """Go on with what has asked the client something; nothing if that was not this."""
        try:
            state = self._sealer.open(params.get("requestState"), binding)
        except ForeignStateError:
            return None
        return await self._resume(state, params, caller, binding)

    async def _resume(
        self, state: JsonObject, params: JsonObject, caller: ContextCaller, binding: Binding
    ) -> dict[str, Any]:
        """Go on with a call that waits.

        Raises:
            ElsewhereError: It waits in another process.
        """
        ticket, place = state["ticket"], state.get("at", "")
        if place != self._replica.name:
            raise ElsewhereError("the call that asked for this", place)
        answers = as_object(params.get("inputResponses"))
        return self._outcome(await self._parking.resume(ticket, answers, caller), binding)

    def _outcome(self, outcome: dict[str, Any] | str, binding: Binding) -> dict[str, Any]:
        """Make a result of what became of a call: its own, or its questions."""
        if not isinstance(outcome, str):
            return outcome
        return {
            "resultType": "input_required",
            "inputRequests": self._parking.questions(outcome),
            "requestState": self._sealed({"ticket": outcome, "at": self._replica.name}, binding),
        }

    def _sealed(self, value: dict[str, Any], binding: Binding) -> str:
        return self._sealer.seal(value, binding)

    def _opened(self, params: Mapping[str, Any], binding: Binding) -> JsonObject:
        if params.get("requestState") is None:
            return {}
        try:
            return self._sealer.open(params["requestState"], binding)
        except ForeignStateError:
            raise MCPError(
                types.INVALID_PARAMS, "`requestState` was not issued for this request"
            ) from None


def _with_state(params: JsonObject, state: JsonObject) -> dict[str, Any]:
    """Return a request of the modern era with the state that its server gave, and none of ours."""
    own = {key: value for key, value in params.items() if key != "requestState"}
    return {**own, "requestState": state["state"]} if "state" in state else own


def _too_long(server: ServerName, state: str) -> str:
    return (
        f"The server `{server}` asked a question with a `requestState` of {len(state):,} "
        f"characters, which is more than a client is given to carry: it may take "
        f"{MAX_VALUE >> 20} MiB as JSON"
    )


def _binding(forward: Forward, caller: ContextCaller) -> Binding:
    return Binding(caller.principal, forward.server, forward.method, forward.subject)


class _Servers:
    """The servers as one client has them."""

    def __init__(self, fleet: Fleet, resident: Resident) -> None:
        self._fleet = fleet
        self._resident = resident

    def server(self, name: ServerName, /) -> Downstream:
        """Return a server that is configured, or the client's own process of it."""
        return self._fleet.server(name, self._resident)


def _speaks_modern(state: ServerState | None) -> bool:
    return isinstance(state, Ready) and is_modern(state.protocol_version)


def _without_task(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result of which only the modern era has another.

    Raises:
        MCPError: It is the handle of a task, which its client could not ask about.
    """
    if is_task(result):
        raise MCPError(
            types.INTERNAL_ERROR,
            "The server answered with a task although nobody said that tasks can be followed; the "
            "request may have taken effect",
        )
    return result


def _translated(error: MCPError, caller: ContextCaller) -> MCPError:
    """Say that there is no such resource in the way of the client's era."""
    if error.code == RESOURCE_NOT_FOUND and caller.era == "modern":
        return MCPError(types.INVALID_PARAMS, error.message, error.data)
    return error
