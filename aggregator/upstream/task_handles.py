"""Ids of tasks as clients have them: each says whose a task is, and where it is worked on."""

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject
from aggregator.downstream.tasks import ID, TASKS, has_tasks
from aggregator.names import ServerName
from aggregator.upstream.caller import ContextCaller
from aggregator.upstream.replica import Replica
from aggregator.upstream.seal import Binding, ForeignStateError

MAX_OWN = 1024
"""Characters that a server's own id of a task may have: ours goes into a header."""
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
    run: str
    """The connection on which the server was asked."""
    place: str
    """The replica that asked it."""


class TaskHandles:
    """Gives out ids of tasks, each of use to its client alone."""

    def __init__(self, replica: Replica) -> None:
        self._sealer = replica.sealer

    def given(self, result: JsonObject, handle: Handle, caller: ContextCaller) -> dict[str, Any]:
        """Return the handle that a server has answered with as its client is given it.

        Raises:
            MCPError: It can be of no use.
        """
        if not has_tasks(caller.capabilities):
            raise MCPError(
                types.INTERNAL_ERROR,
                f"The server `{handle.server}` answered with a task, which this client did not "
                "say it can follow; the tool may have taken effect",
            )
        if not 0 < len(handle.task) <= MAX_OWN:
            raise MCPError(
                types.INTERNAL_ERROR,
                f"The server `{handle.server}` answered with a task, and its `{ID}` is none: it "
                f"must be a string of 1 to {MAX_OWN:,} characters",
            )
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
        except ForeignStateError:
            raise MCPError(
                types.INVALID_PARAMS,
                "There is no such task: this client was not given that id, or the aggregator was "
                "started anew since",
            ) from None


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
