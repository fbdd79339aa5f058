"""Tasks: what a server goes on working on after it has answered, and for which it is kept."""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

import mcp_types as types

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject
from aggregator.basics.tasks import CANCEL, GET, ID, METHODS, has_tasks, is_over
from aggregator.downstream.need import Need

LONGEST = 24 * 3600.0
"""Seconds for which a server is kept for a task of which nobody asks anything."""
MAX_HELD = 1000
"""Tasks for which a server is kept; of more than that, those that live shortest do not count."""
MARK_BYTES = 4


def offers_tasks(era: Era, capabilities: JsonObject) -> bool:
    """Whether a server may answer calls with tasks."""
    return era == "modern" and has_tasks(capabilities)


class OpenTasks:
    """The tasks that a server works on as far as is known here, and for which it is kept."""

    def __init__(self, need: Need) -> None:
        self._need = need
        self._marks: dict[str, str] = {}

    def begin(self, task: str, told: JsonObject) -> str:
        """Take note of a task that a client was given; return what tells it from its namesakes.

        A server may call two tasks the same, one after the other: when it was started anew, say.
        """
        self._marks.pop(task, None)
        mark = self._marks[task] = token_hex(MARK_BYTES)
        self._hold(task, told)
        if len(self._marks) > MAX_HELD:
            self._let_go(min(self._marks, key=self._need.held_until))
        return mark

    def is_another(self, task: str, mark: str) -> bool:
        """Whether a task of this name is known, and another than the one that was marked so."""
        return self._marks.get(task, mark) != mark

    def told(self, method: str, params: Mapping[str, Any], result: JsonObject) -> None:
        """Take note of what a server says of a task, if it was asked about one."""
        task = params.get(ID)
        if method not in (GET, CANCEL) or not isinstance(task, str) or task not in self._marks:
            return
        # Of one that is to end its client need not ask again.
        if method == CANCEL or is_over(result):
            self._let_go(task)
        else:
            self._hold(task, result)

    def refused(self, method: str, params: Mapping[str, Any], code: int) -> None:
        """Take note that a server knows nothing of a task."""
        if method in METHODS and code == types.INVALID_PARAMS:
            self._let_go(params.get(ID))

    def clear(self) -> None:
        """Keep it for no task any more: the connection has ended."""
        for each in list(self._marks):
            self._need.let_go(each)

    def _hold(self, task: str, told: JsonObject) -> None:
        milliseconds: object = told.get("ttlMs")
        seconds = LONGEST
        if isinstance(milliseconds, int | float) and 0 <= milliseconds < LONGEST * 1000:
            seconds = milliseconds / 1000
        self._need.hold(task, seconds)

    def _let_go(self, task: object) -> None:
        if isinstance(task, str) and self._marks.pop(task, None) is not None:
            self._need.let_go(task)

    def __repr__(self) -> str:
        return f"<OpenTasks {len(self._marks)}>"
