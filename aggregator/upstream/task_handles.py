"""Ids of tasks as clients have them: each says whose a task is, and where it is worked on."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject
from aggregator.basics.tasks import ID, TASKS, has_tasks
from aggregator.names import ServerName
from aggregator.upstream.caller import ContextCaller
from aggregator.upstream.replica import Replica
from aggregator.upstream.seal import Binding, ForeignStateError

MAX_OWN = 2048
"""Characters of JSON that a server's own id of a task may take: ours goes into a header."""
MAX_GIVEN = 8 * 1024
"""Characters of an id that are looked at."""


class Handle(NamedTuple):
    """What the id of a task says."""

    server: ServerName
    task: str
    """What its server calls it."""
    tool: str
    """The tool that was called, by the name that clients know."""
    called: str
    """What the client has called: that tool, or one of ours."""
    home: str
    """The process that works on it, or the address of one."""
    mark: str
    """What tells it from others that its server calls the same."""
    place: str
    """The replica that asked it."""


class TaskHandles:
    """Gives out ids of tasks, each of use to its client alone."""

    def __init__(self, replica: Replica) -> None:
        self._sealer = replica.sealer

    def given(self, result: JsonObject, handle: Handle, caller: ContextCaller) -> dict[str, Any]:
        """Return the handle that a server has answered with as its client is given it."""
        sealed = self._sealer.seal(handle._asdict(), _binding(caller), is_lasting=True)
        return {**result, ID: sealed}

    def opened(self, params: Mapping[str, Any], caller: ContextCaller) -> Handle:
        """Return what the id says by which a client asks about a task.

        Raises:
            MCPError: The client was not given it.
        """
        if not has_tasks(caller.capabilities):
            refuse_undeclared()
        given = params.get(ID)
        if not isinstance(given, str):
            raise MCPError(types.INVALID_PARAMS, f"`{ID}` must be a string")
        try:
            # More than that is none of ours.
            return Handle(**self._sealer.open(given[:MAX_GIVEN], _binding(caller)))
        except (ForeignStateError, TypeError):
            # Another version of ours may say something else in it.
            raise MCPError(
                types.INVALID_PARAMS,
                "There is no such task: this client was not given that id, or the aggregator was "
                "started anew since",
            ) from None


def checked(result: JsonObject, server: ServerName, caller: ContextCaller) -> str:
    """Return what a server calls the task that it has answered with.

    Raises:
        MCPError: It can be of no use to the client.
    """
    if not has_tasks(caller.capabilities):
        raise MCPError(
            types.INTERNAL_ERROR,
            f"The server `{server}` answered with a task, which this client did not say it can "
            "follow; the tool may have taken effect",
        )
    task = result.get(ID)
    if isinstance(task, str) and 0 < len(task) <= MAX_OWN and len(json.dumps(task)) <= MAX_OWN + 2:
        return task
    raise MCPError(
        types.INTERNAL_ERROR,
        f"The server `{server}` answered with a task whose `{ID}` is of no use: it must be a "
        f"string of 1 to {MAX_OWN:,} characters as JSON writes them",
    )


def refuse_undeclared() -> NoReturn:
    """Tell a client that it has to declare what it wants to use.

    Raises:
        MCPError: Always.
    """
    raise MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"Tasks are for clients that declare the extension `{TASKS}` with each request",
        {"requiredCapabilities": {"extensions": {TASKS: {}}}},
    )


def _binding(caller: ContextCaller) -> Binding:
    return Binding(caller.principal, "", TASKS, "")
