"""Tasks: what a server goes on working on after it has answered, and for which it is kept."""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

import mcp_types as types

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject
from aggregator.basics.tasks import CANCEL, GET, ID, has_tasks, is_over
from aggregator.downstream.need import Need

LONGEST = 24 * 3600.0
"""Seconds for which a server is kept for a task of which nobody asks anything."""
MAX_HELD = 1000
"""Tasks for which a server is kept; of more than that, those that live shortest do not count."""
ENDING = 60.0
"""Seconds for which a server is kept for a task that was cancelled."""
MAX_MARKED = 4000
"""Tasks that are told from their namesakes; of more than that, the newest."""
MARK_BYTES = 4


def offers_tasks(era: Era, capabilities: JsonObject) -> bool:
    """Whether a server may answer calls with tasks."""
    return era == "modern" and has_tasks(capabilities)


class OpenTasks:
    """The tasks that clients were given of a server, and those for which it is kept."""

    def __init__(self, need: Need) -> None:
        self._need = need
        self._marks: dict[str, str] = {}
        self._held: dict[str, None] = {}

    def begin(self, task: str, told: JsonObject) -> str:
        """Take note of a task that a client was given; return what tells it from its namesakes.

        A server may call two tasks the same, one after the other: when it was started anew, say.
        """
        self._marks.pop(task, None)
        mark = self._marks[task] = token_hex(MARK_BYTES)
        self._hold(task, _lifetime(told))
        if len(self._marks) > MAX_MARKED:
            oldest = next(iter(self._marks))
            del self._marks[oldest]
            self._let_go(oldest)
        return mark

    def is_another(self, task: str, mark: str) -> bool:
        """Whether a task of this name is known, and another than the one that was marked so.

        It stays known when it is over: its name is still that of its client.
        """
        return self._marks.get(task, mark) != mark

    def told(self, method: str, params: Mapping[str, Any], result: JsonObject) -> None:
        """Take note of what a server says of a task, if it was asked about one."""
        task = params.get(ID)
        if not isinstance(task, str) or task not in self._marks:
            return
        if method == GET and is_over(result):
            self._let_go(task)
        elif method == GET:
            self._hold(task, _lifetime(result))
        elif method == CANCEL and task in self._held:
            # It need not end, but its client may never ask whether it has.
            self._hold(task, ENDING)

    def refused(self, method: str, params: Mapping[str, Any], code: int) -> None:
        """Take note that a server knows nothing of a task."""
        if method == GET and code == types.INVALID_PARAMS:
            self._let_go(params.get(ID))

    def clear(self) -> None:
        """Keep it for no task any more: the connection has ended."""
        for each in list(self._held):
            self._let_go(each)

    def _hold(self, task: str, seconds: float) -> None:
        self._held[task] = None
        self._need.hold(task, seconds)
        if len(self._held) > MAX_HELD:
            self._let_go(min(self._held, key=self._need.held_until))

    def _let_go(self, task: object) -> None:
        if isinstance(task, str) and task in self._held:
            del self._held[task]
            self._need.let_go(task)

    def __repr__(self) -> str:
        return f"<OpenTasks {len(self._held)} of {len(self._marks)}>"


def _lifetime(told: JsonObject) -> float:
    """Return for how many seconds a task lives, as far as its server says so."""
    milliseconds: object = told.get("ttlMs")
    if isinstance(milliseconds, int | float) and 0 <= milliseconds < LONGEST * 1000:
        return milliseconds / 1000
    return LONGEST
