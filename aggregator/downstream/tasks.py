"""Tasks: what a server goes on working on after it has answered, and for which it is kept.

The extension of this name has a server answer a call with a handle, which its client asks about
from time to time. What is said here of tasks is about those of the modern era alone.
"""

from collections.abc import Mapping
from typing import Any

import mcp_types as types

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject, as_object
from aggregator.downstream.need import Need

TASKS = "io.modelcontextprotocol/tasks"
"""What the extension is called."""
GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"
METHODS = frozenset((GET, UPDATE, CANCEL))
"""What a client may ask about a task."""
ID = "taskId"
"""What names a task, in the params of these and in every handle."""

OVER = frozenset(("completed", "failed", "cancelled"))
"""The states after which nothing more happens to a task."""
LONGEST = 24 * 3600.0
"""Seconds for which a server is kept for a task of which nobody asks anything."""
MAX_HELD = 1000
"""Tasks for which a server is kept; of more than that, the oldest are not counted."""


def is_task(result: JsonObject) -> bool:
    """Whether a result is not one yet, but the handle of a task."""
    return result.get("resultType") == "task"


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


def offers_tasks(era: Era, capabilities: JsonObject) -> bool:
    """Whether a server may answer calls with tasks."""
    return era == "modern" and has_tasks(capabilities)


class OpenTasks:
    """The tasks that one process of a server works on, which would end with it."""

    def __init__(self, need: Need) -> None:
        self._need = need
        self._held: dict[str, None] = {}

    def begin(self, handle: JsonObject) -> None:
        """Take note of a task that a server has answered with."""
        self._hold(handle.get(ID), handle)

    def told(self, method: str, params: Mapping[str, Any], result: JsonObject) -> None:
        """Take note of what a server says of a task, if it was asked about one."""
        if method == GET and result.get("status") not in OVER:
            self._hold(params.get(ID), result)
        elif method in (GET, CANCEL):
            # Of one that is to end its client need not ask again.
            self._let_go(params.get(ID))

    def refused(self, method: str, params: Mapping[str, Any], code: int) -> None:
        """Take note that a server knows nothing of a task."""
        if method in METHODS and code == types.INVALID_PARAMS:
            self._let_go(params.get(ID))

    def clear(self) -> None:
        """Count no task any more: the process has ended."""
        for each in list(self._held):
            self._let_go(each)

    def _hold(self, task: object, told: JsonObject) -> None:
        if not isinstance(task, str):
            return
        self._held[task] = None
        if len(self._held) > MAX_HELD:
            self._let_go(next(iter(self._held)))
        milliseconds: object = told.get("ttlMs")
        seconds = LONGEST
        if isinstance(milliseconds, int | float) and 0 <= milliseconds < LONGEST * 1000:
            seconds = milliseconds / 1000
        self._need.hold(task, seconds)

    def _let_go(self, task: object) -> None:
        if isinstance(task, str) and task in self._held:
            del self._held[task]
            self._need.let_go(task)

    def __repr__(self) -> str:
        return f"<OpenTasks {len(self._held)}>"
