"""One client as we know it: its era, its name, and what its session has been shown."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from aggregator.eras import Era
from aggregator.json import JsonObject
from aggregator.upstream.announcing import Shown
from aggregator.upstream.notices import Notices
from aggregator.upstream.session import Session
from aggregator.upstream.watches import Watcher


@dataclass(slots=True, eq=False)
class Conversation:
    """What is remembered of one client for as long as it is connected."""

    era: Era
    client: str
    """The name it gives itself, empty if it gives none."""
    session: Session
    has_memory: bool = True
    """Whether later requests can be told to come from the same client."""
    is_alone: bool = False
    """Whether it is on a stream of its own, so that the next of its name goes on where it ended.

    Over HTTP a name is all that many clients may have in common.
    """
    known_relist: bool | None = None
    """Whether clients of this name list again when told to, as earlier sessions have shown.

    What this session shows is for later ones: a list must not change shape under a client.
    """
    shown: Shown = field(default_factory=lambda: Shown(()))
    relisted: anyio.Event = field(default_factory=anyio.Event)
    capabilities: JsonObject | None = None
    """What it can be asked, once that has been looked up; only for clients with a session."""
    log_level: str | None = None
    """The least level of log messages it has asked for."""
    watcher: Watcher = field(default_factory=Watcher)
    notices: Notices = field(default_factory=Notices)

    def lists(self, tools: Sequence[JsonObject]) -> None:
        """Note that the client has fetched the list."""
        self.shown.tools = tools
        self.session.listed(tool["name"] for tool in tools)
        self.relisted.set()
