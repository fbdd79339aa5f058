"""What later sessions may know of earlier ones: how a client behaves, what it had loaded."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aggregator.json import JsonObject, as_object
from aggregator.memory import Memory, joined
from aggregator.upstream.conversation import Conversation

CLIENTS = "clients"
LOADED = "loaded"

RESTORED_WITHIN = 600.0
"""Seconds after which a loaded set is taken to be of another conversation."""


class Recollection:
    """Remembers clients between sessions.

    What a session has loaded is left only to the next on a stream of its own, as over stdio, and
    never while that session lives. Over HTTP sessions of one name may be of different people.
    """

    def __init__(
        self, memory: Memory, config: Path, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._memory = memory
        self._place = joined(str(config), os.getcwd())  # noqa: PTH109 - a part of a key, no path
        self._clock = clock

    def begin(self, conversation: Conversation) -> None:
        """Give a new session what an earlier one of the same client left behind."""
        learned = as_object(self._memory.get(CLIENTS, conversation.client)).get("relists")
        conversation.known_relist = learned if isinstance(learned, bool) else None
        left = as_object(self._memory.get(LOADED, self._key(conversation)))
        if conversation.is_alone and self._is_left_behind(left):
            conversation.session.restore(left.get("tools"))

    def note(self, conversation: Conversation) -> None:
        """Remember how things stand with a session that goes on."""
        self._keep(conversation, owner=os.getpid())

    def end(self, conversation: Conversation) -> None:
        """Leave a session's set to whoever comes next."""
        self._keep(conversation, owner=0)

    def _keep(self, conversation: Conversation, *, owner: int) -> None:
        observed = conversation.session.observed_relist
        if observed is not None:
            self._memory.put(CLIENTS, conversation.client, {"relists": observed})
        tools = conversation.session.export()
        if tools and conversation.is_alone:
            left: dict[str, Any] = {"tools": tools, "at": self._clock(), "owner": owner}
            self._memory.put(LOADED, self._key(conversation), left)

    def _key(self, conversation: Conversation) -> str:
        return joined(self._place, conversation.client)

    def _is_left_behind(self, left: JsonObject) -> bool:
        at, owner = left.get("at"), left.get("owner")
        if not isinstance(at, int | float) or not isinstance(owner, int):
            return False
        return self._clock() - at < RESTORED_WITHIN and not _is_alive(owner)


def _is_alive(process: int) -> bool:
    """Whether a process that has not handed on its set is still there to use it."""
    if process <= 0:
        return False
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True
