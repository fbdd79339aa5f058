"""Tasks: clients ask about what a server works on after it has answered a call."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject, is_plain_object
from aggregator.basics.tasks import CANCEL, GET, ID, UPDATE
from aggregator.catalog import ToolEntry
from aggregator.downstream.questions import refusal_labelled
from aggregator.errors import (
    BusyError,
    CallError,
    CallTimeoutError,
    ElsewhereError,
    ServerLostError,
    ServerUnavailableError,
    TurnedAwayError,
)
from aggregator.fleet.now import Now
from aggregator.names import ToolName
from aggregator.upstream.calls import learn_links
from aggregator.upstream.forwarding import Forward, Forwarding
from aggregator.upstream.hop import own_meta
from aggregator.upstream.replica import Replica
from aggregator.upstream.request import Request
from aggregator.upstream.results.guard import Guard, limit_for
from aggregator.upstream.results.sources import has_tool
from aggregator.upstream.rounds import with_labels
from aggregator.upstream.task_handles import Handle

_OF_CALLS = ("resultType", "requestState")
"""What says of the answer to a call that it is none yet; some servers say so of a task's state."""


def are_offered(now: Now) -> bool:
    """Whether any server may answer calls with tasks."""
    return any(each.offers.tasks for each in now.catalog.known.values())


class Tasks:
    """Passes on what clients ask about their tasks."""

    def __init__(self, forwarding: Forwarding, replica: Replica, guard: Guard) -> None:
        self._forwarding = forwarding
        self._replica = replica
        self._guard = guard

    async def get(self, request: Request) -> dict[str, Any]:
        """Answer `tasks/get`: the state of a task and, once it is over, the result of its call.

        Raises:
            MCPError: There is no such task, or nobody says how it stands.
        """
        handle, result = await self._asked(GET, request)
        told = with_labels({**result, ID: request.params[ID]}, handle.server)
        for key in _OF_CALLS:
            told.pop(key, None)
        if is_plain_object(error := told.get("error")):
            told["error"] = _labelled(error, handle)
        if is_plain_object(inner := told.get("result")):
            told["result"] = await self._shown(inner, handle, request)
        return told

    async def update(self, request: Request) -> dict[str, Any]:
        """Answer `tasks/update`, by which a client answers what a task asks it.

        Raises:
            MCPError: There is no such task, or its server refuses.
        """
        return _acknowledged((await self._asked(UPDATE, request))[1])

    async def cancel(self, request: Request) -> dict[str, Any]:
        """Answer `tasks/cancel`.

        Raises:
            MCPError: There is no such task, or its server refuses.
        """
        return _acknowledged((await self._asked(CANCEL, request))[1])

    async def _asked(self, method: str, request: Request) -> tuple[Handle, dict[str, Any]]:
        handle = self._opened(method, request)
        try:
            request = await self._until_there(handle, request)
            self._check(method, handle, request)
            own = {**request.params, ID: handle.task}
            forward = Forward(handle.server, method, own, handle.tool)
            # Between this and what was checked nobody else has a turn.
            return handle, await self._forwarding.send(forward, request)
        except CallError as error:
            said = f"Nothing can be found out about the task now, ask again later: {_reason(error)}"
            raise MCPError(types.INTERNAL_ERROR, said) from error

    def _opened(self, method: str, request: Request) -> Handle:
        """Return which task a client asks about.

        Raises:
            MCPError: It was not given that one, or nobody is given any.
        """
        try:
            return self._forwarding.task_handles.opened(request.params, request.caller)
        except MCPError as error:
            if are_offered(request.now):
                raise
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method) from error

    async def _until_there(self, handle: Handle, request: Request) -> Request:
        """Return a request as it is once the server of a task can be asked.

        Raises:
            CallError: It cannot.
            ElsewhereError: The task is in a process of another replica's.
            MCPError: It is gone.
        """
        name = handle.server
        server = request.now.config.enabled.get(name)
        if server is None or name not in request.now.catalog.servers:
            raise _gone(f"with its server `{name}`, which is not configured any more")
        if server.type != "stdio":
            return await self._forwarding.until_ready(name, request)
        if handle.place != self._replica.name:
            raise ElsewhereError("this task", handle.place)
        # A process that is started for this would not know it.
        return request

    def _check(self, method: str, handle: Handle, request: Request) -> None:
        """See to it that a task is where it was, and that its client may still ask about it.

        Raises:
            MCPError: It is gone, or not for this client any more.
        """
        name, tool = handle.server, ToolName(handle.tool)
        try:
            requests = self._forwarding.requests(name, request)
        except ServerUnavailableError:
            raise _gone(f"with the process of its server `{name}`") from None
        if requests.home(requests.link) != handle.home:
            raise _gone(f"since its server `{name}` was started anew, or is another one now")
        if requests.tasks.is_another(handle.task, handle.mark):
            raise _gone(f"since its server `{name}` has begun another of the same name")
        if method != CANCEL and not has_tool(tool, name, request.now):
            raise MCPError(
                types.INVALID_PARAMS,
                f"The task is of the tool `{tool}`, which is not offered any more; it can only be "
                "cancelled",
            )

    async def _shown(
        self, result: dict[str, Any], handle: Handle, request: Request
    ) -> dict[str, Any]:
        """Return the result of the call as it would have been answered with at once."""
        name = ToolName(handle.tool)
        entry = request.now.catalog.entries.get(name) or ToolEntry(name, handle.server, {})
        learn_links(result, entry, request)
        limit = limit_for(request)
        result = _final(result)
        if not limit:
            return result
        called = replace(request, params={"name": handle.called})
        return await self._guard.fitted(result, called, entry, limit, of=request.params[ID])


def _gone(why: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"The task is gone {why}")


def _reason(error: CallError) -> str:
    """Say why a request was not answered, of which nobody means that a tool should have run."""
    match error:
        case ServerUnavailableError() | ServerLostError():
            reason = error.reason or "it is starting"
            return f"the server `{error.server}` is not connected: {reason}"
        case TurnedAwayError():
            return f"the server `{error.server}` did not take the request: {error.reason}"
        case CallTimeoutError():
            return f"the server `{error.server}` did not answer within {error.seconds:g} s"
        case BusyError():
            return f"the server `{error.server}` is busy"
        case _:
            return str(error)


def _labelled(error: JsonObject, handle: Handle) -> JsonObject:
    """Say of what a task asks by its failure which server asks."""
    code: object = error.get("code")
    if not isinstance(code, int):
        return error
    told = refusal_labelled(handle.server, MCPError(code, "", error.get("data")))
    return error if told.error.data is None else {**error, "data": told.error.data}


def _acknowledged(result: JsonObject) -> dict[str, Any]:
    """Return an answer in which nothing is to be said."""
    meta = own_meta(result)
    return {"_meta": meta} if meta else {}


def _final(result: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what belongs to the server's hop, and what nobody could answer any more."""
    left_out = ("_meta", "inputRequests", *_OF_CALLS)
    rest = {key: value for key, value in result.items() if key not in left_out}
    if result.get("resultType") == "complete":
        rest["resultType"] = "complete"
    meta = own_meta(result)
    return {**rest, "_meta": meta} if meta else rest
