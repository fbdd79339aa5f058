"""Tasks: clients ask about what a server works on after it has answered a call."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject, is_plain_object
from aggregator.catalog import ToolEntry
from aggregator.downstream.tasks import CANCEL, GET, ID, UPDATE
from aggregator.errors import CallError, ElsewhereError, ServerLostError, ServerUnavailableError
from aggregator.fleet.now import Now
from aggregator.names import ToolName
from aggregator.upstream.calls import learn_links
from aggregator.upstream.forwarding import Forward, Forwarding
from aggregator.upstream.hop import own_meta
from aggregator.upstream.replica import Replica
from aggregator.upstream.request import Request
from aggregator.upstream.results.guard import Guard, limit_for
from aggregator.upstream.rounds import with_labels
from aggregator.upstream.task_handles import Handle


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
        inner = told.get("result")
        if is_plain_object(inner):
            told["result"] = await self._shown(inner, handle, request)
        return told

    async def update(self, request: Request) -> dict[str, Any]:
        """Answer `tasks/update`, by which a client answers what a task asks it.

        Raises:
            MCPError: There is no such task, or its server refuses.
        """
        return (await self._asked(UPDATE, request))[1]

    async def cancel(self, request: Request) -> dict[str, Any]:
        """Answer `tasks/cancel`.

        Raises:
            MCPError: There is no such task, or its server refuses.
        """
        return (await self._asked(CANCEL, request))[1]

    async def _asked(self, method: str, request: Request) -> tuple[Handle, dict[str, Any]]:
        handle = self._opened(method, request)
        self._check(handle, request)
        own = {**request.params, ID: handle.task}
        forward = Forward(handle.server, method, own, handle.tool)
        try:
            result = await self._forwarding.send_when_ready(forward, request)
        except CallError as error:
            said = f"Nothing can be found out about the task now, ask again later: {_reason(error)}"
            raise MCPError(types.INTERNAL_ERROR, said) from error
        except MCPError as error:
            raise self._explained(error, handle, request) from error
        # Some servers say of the state of a task that it is one.
        result.pop("resultType", None)
        return handle, result

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

    def _check(self, handle: Handle, request: Request) -> None:
        """See to it that a task can be here.

        Raises:
            ElsewhereError: It is in a process of another replica's.
            MCPError: Its server is not there any more.
        """
        server = request.now.config.enabled.get(handle.server)
        if server is None or handle.server not in request.now.catalog.servers:
            raise MCPError(
                types.INVALID_PARAMS,
                f"The task is gone with its server `{handle.server}`, which is not configured any "
                "more",
            )
        if server.type == "stdio" and handle.place != self._replica.name:
            raise ElsewhereError("this task", handle.place)

    def _explained(self, error: MCPError, handle: Handle, request: Request) -> MCPError:
        """Say why a server does not know a task, if it is not the one that was asked then."""
        is_unknown = error.code == types.INVALID_PARAMS
        if not is_unknown or self._forwarding.run(handle.server, request) == handle.run:
            return error
        return MCPError(
            error.code,
            f"The task is gone: its server `{handle.server}` was started or connected anew since "
            f"it began, and answers: {error.message}",
            error.data,
        )

    async def _shown(
        self, result: dict[str, Any], handle: Handle, request: Request
    ) -> dict[str, Any]:
        """Return the result of the call as it would have been answered with at once."""
        name = ToolName(handle.tool)
        entry = request.now.catalog.entries.get(name) or ToolEntry(name, handle.server, {})
        learn_links(result, entry, request)
        limit = limit_for(request)
        result = _stripped(result)
        if not limit:
            return result
        called = replace(request, params={"name": handle.called})
        return await self._guard.fitted(result, called, entry, limit, of=request.params[ID])


def _reason(error: CallError) -> str:
    """Say why a request was not answered, of which nobody means that a tool should have run."""
    if isinstance(error, ServerUnavailableError | ServerLostError):
        return f"the server `{error.server}` is not connected: {error.reason or 'it is starting'}"
    return str(error)


def _stripped(result: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what belongs to the server's hop."""
    rest: JsonObject = {key: value for key, value in result.items() if key != "_meta"}
    meta = own_meta(result)
    return {**rest, "_meta": meta} if meta else dict(rest)
