"""What later sessions may know of earlier ones: how a client behaves, what it had loaded."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aggregator.basics.json import JsonObject, as_object, items
from aggregator.memory import Memory, joined
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.visitor import Visitor

CLIENTS = "clients"
LOADED = "loaded"

RESTORED_WITHIN = 600.0
"""Seconds after which a loaded set is taken to be of another conversation."""


class ClientMemory:
    """Remembers clients between sessions.

    What a session has loaded is left only to the next on a stream of its own, as over stdio, and
    never while that session lives. Over HTTP sessions of one name may be of different people.
    """

    def __init__(
        self, memory: Memory, config: Path, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._memory = memory
        self._config = str(config)
        self._here = Visitor.of_process()
        self._clock = clock

    def relists(self, client: str) -> bool | None:
        """Say whether clients of this name list again when told to, if earlier ones have shown."""
        learned = as_object(self._memory.get(CLIENTS, client)).get("relists")
        return learned if isinstance(learned, bool) else None

    @property
    def restored_until(self) -> float:
        """Until when what is loaded now would be left to the next session."""
        return self._clock() + RESTORED_WITHIN

    def loaded(self, client: str, visitor: Visitor | None = None) -> Sequence[str]:
        """Return what an earlier session of the same client has left behind in the same place."""
        left = as_object(self._memory.get(LOADED, self.key(client, visitor)))
        if not self._is_left_behind(left):
            return ()
        return [name for name in items(left.get("tools")) if isinstance(name, str)]

    def note(self, conversation: Conversation) -> None:
        """Remember how things stand with a session that goes on."""
        self._keep(conversation, owner=(conversation.visitor or self._here).process)

    def end(self, conversation: Conversation) -> None:
        """Leave a session's set to whoever comes next."""
        self._keep(conversation, owner=0)

    def _keep(self, conversation: Conversation, *, owner: int) -> None:
        observed = conversation.observed_relist
        if observed is not None:
            self._memory.put(CLIENTS, conversation.client, {"relists": observed})
        tools = list(conversation.loaded)
        if tools and conversation.is_alone:
            left: dict[str, Any] = {"tools": tools, "at": self._clock(), "owner": owner}
            self._memory.put(LOADED, self.key(conversation.client, conversation.visitor), left)

    def key(self, client: str, visitor: Visitor | None = None) -> str:
        """Return under which name a client's set is kept."""
        here = visitor or self._here
        place = joined(self._config, here.directory)
        return joined(place if here.profile is None else joined(place, here.profile), client)

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
