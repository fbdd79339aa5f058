"""The words in which clients and servers speak of tasks, which servers answer calls with.

The extension of this name has a server answer a call with a handle, which its client asks about
from time to time. What is said here of tasks is about those of the modern era alone.
"""

from aggregator.basics.json import JsonObject, as_object

TASKS = "io.modelcontextprotocol/tasks"
"""What the extension is called."""
GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"
METHODS = frozenset((GET, UPDATE, CANCEL))
"""What a client may ask about a task."""
ID = "taskId"
"""What names a task, in the params of these and in every handle."""

_OVER = frozenset(("completed", "failed", "cancelled"))
"""The states after which nothing more happens to a task."""


def is_task(result: JsonObject) -> bool:
    """Whether a result is not one yet, but the handle of a task."""
    return result.get("resultType") == "task"


def is_over(told: JsonObject) -> bool:
    """Whether nothing more happens to a task, by what is told of it."""
    status: object = told.get("status")
    return isinstance(status, str) and status in _OVER


def has_tasks(capabilities: JsonObject) -> bool:
    """Whether a client, or a server, has declared that it knows tasks."""
    return TASKS in as_object(capabilities.get("extensions"))


def without_tasks(capabilities: JsonObject) -> JsonObject:
    """Return what a client, or a server, has declared besides tasks."""
    if not has_tasks(capabilities):
        return capabilities
    rest = {**capabilities, "extensions": {**as_object(capabilities["extensions"])}}
    del rest["extensions"][TASKS]
    if not rest["extensions"]:
        del rest["extensions"]
    return rest
