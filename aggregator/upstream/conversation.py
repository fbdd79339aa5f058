"""One client for as long as it is connected: what it has loaded, been shown and been told."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from hashlib import sha256
from itertools import count
from typing import Any, Literal

from pydantic_core import to_json

from aggregator.basics.eras import Era
from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject
from aggregator.basics.signals import Signal
from aggregator.catalog import Catalog, Changes, ToolEntry, difference, digest
from aggregator.config.settings import MAX_LOADED
from aggregator.fleet.client_processes import Tenure
from aggregator.names import ServerName, ToolName
from aggregator.upstream.announcing import Shown
from aggregator.upstream.links import Links
from aggregator.upstream.notices import Notices
from aggregator.upstream.visitor import Visitor
from aggregator.upstream.watches import Watcher

MAX_CONVERSATIONS = 10_000
"""Sessions of clients that are remembered at a time."""

Seen = Literal["never", "same", "changed"]


@frozen
class Loading:
    """What a search did to the loaded set."""

    added: tuple[ToolName, ...] = ()
    dropped: tuple[ToolName, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped)


Claim = Callable[[ServerName, str, Tenure], Awaitable[None]]
"""Sees to it that somebody may have a process of a server, for as long as that is used."""


async def _anything(_server: ServerName, _who: str, _tenure: Tenure) -> None:
    """Let a client have processes of its own here."""


def share_nothing(_names: Sequence[str]) -> None:
    """Keep what is loaded to ourselves."""


def _fingerprint(arguments: JsonObject) -> bytes:
    """Return what tells the arguments of a call from others."""
    try:
        text = to_json(dict(sorted(arguments.items())))
    except (ValueError, RecursionError):
        # Half a character, or too deep: all calls with these names are taken for one.
        text = repr(sorted(arguments)).encode(errors="backslashreplace")
    return sha256(text).digest()


@dataclass(slots=True, eq=False)
class Conversation:
    """The memory of one client; nothing of it is shared with another."""

    era: Era = "handshake"
    client: str = ""
    """The name it gives itself, empty if it gives none."""
    max_loaded: int = MAX_LOADED
    has_memory: bool = True
    """Whether later requests can be told to come from the same client."""
    is_alone: bool = False
    """Whether it is on a stream of its own, so that the next of its name goes on where it ended.

    Over HTTP a name is all that many clients may have in common.
    """
    visitor: Visitor | None = None
    """Who it is among those on streams, where it is one of them."""
    profile: str | None = None
    """What it sees; nothing stands for everything."""
    sees: Callable[[ServerName], bool] = lambda _server: True
    """Says whether a server exists for it."""
    claim: Claim = _anything
    """Sees to it that a process of its own may be begun here, or raises why not."""
    share: Callable[[Sequence[str]], None] = share_nothing
    """Tells others who may serve it what it has loaded."""
    keeps_list: bool = False
    """Whether its list never grows: the next request may be answered by who knows nothing of it."""
    known_relist: bool | None = None
    """Whether clients of this name list again when told to, as earlier sessions have shown.

    What this session shows is for later ones: a list must not change shape under a client.
    """
    capabilities: JsonObject = field(default_factory=dict[str, Any])
    """What it declared in the handshake that it can be asked."""
    can_log_in: bool = False
    """Whether it can show the person of this machine a page to log in at."""
    remembered: InitVar[Sequence[str]] = ()
    """What an earlier session of the same client had loaded."""
    log_level: str | None = None
    """The least level of log messages it has asked for."""
    observed_relist: bool | None = None
    """Has this client been seen to list again after a promotion? `None`: not yet known."""
    shown: Shown = field(default_factory=Shown)
    """The list of tools as the client knows it."""
    watcher: Watcher = field(default_factory=Watcher)
    links: Links = field(default_factory=Links)
    """What the results that it was given link to."""
    notices: Notices = field(default_factory=Notices)
    number: int = field(default_factory=count(1).__next__)
    """Tells it from others of this process, and opens nothing."""
    is_attended: bool = False
    """Whether we shall see it leave."""
    has_left: bool = False
    _loaded: dict[ToolName, int] = field(default_factory=dict[ToolName, int])
    """Each loaded tool in the order of loading, with when it was last used; 0 is never."""
    _uses: int = 0
    _first_list: frozenset[str] | None = None
    _last_list: frozenset[str] = frozenset()
    _promotion: Literal["listed", "announced", "answered"] = "listed"
    _listed: Signal = field(default_factory=Signal)
    _sent: dict[ToolName, JsonObject] = field(default_factory=dict[ToolName, JsonObject])
    _told: Catalog | None = None
    _refused: tuple[ToolName, bytes] | None = None
    """The last call that was answered with what does not fit, and what its arguments are known by.

    They themselves may be megabytes.
    """

    def __post_init__(self, remembered: Sequence[str]) -> None:
        self.load(map(ToolName, remembered))

    def __repr__(self) -> str:
        return f"<Conversation {self.client or 'unnamed'} {self.era} {len(self._loaded)} loaded>"

    @property
    def loaded(self) -> tuple[ToolName, ...]:
        """The tools that searches have found, in the order they were loaded."""
        return tuple(self._loaded)

    def attend(self) -> None:
        """Note that from here on we see the client leave."""
        self.is_attended = True

    def leave(self) -> None:
        """Note that the client has left."""
        self.has_left = True

    def load(self, names: Iterable[ToolName]) -> Loading:
        """Add found tools, best first; over the cap, make room by dropping one batch."""
        found = tuple(dict.fromkeys(names))[: self.max_loaded]
        added = tuple(name for name in found if name not in self._loaded)
        dropped = self._surplus(len(self._loaded) + len(added), keep=found)
        for name in dropped:
            del self._loaded[name]
        self._loaded |= dict.fromkeys(added, 0)
        return Loading(added, dropped)

    def _surplus(self, size: int, keep: Sequence[ToolName]) -> tuple[ToolName, ...]:
        """Choose what leaves: first the never used, oldest first, then the longest unused."""
        if size <= self.max_loaded:
            return ()

        # A quarter at a time: each drop changes the head of the list, which clients cache.
        batch = max(size - self.max_loaded, self.max_loaded // 4)
        candidates = [name for name in self._loaded if name not in set(keep)]
        leaving = set(sorted(candidates, key=self._loaded.__getitem__)[:batch])
        return tuple(name for name in self._loaded if name in leaving)

    def used(self, name: ToolName) -> None:
        """Note that a tool was called, so that it stays loaded longer than idle ones."""
        if name in self._loaded:
            self._uses += 1
            self._loaded[name] = self._uses

    def promoted(self, tools: Sequence[JsonObject]) -> None:
        """Note that the client is told of a list that a search has changed."""
        self.shown.show(tools)
        self._promotion = "announced"

    def answered(self) -> None:
        """Note that the answer to the search which changed the list has been sent."""
        if self._promotion == "announced":
            self._promotion = "answered"

    def listed(self, tools: Sequence[JsonObject]) -> None:
        """Note that the client has asked for the list, and what it was given."""
        self.shown.show(tuple(tools))
        self._last_list = frozenset(tool["name"] for tool in tools)
        if self._first_list is None:
            self._first_list = self._last_list
        if self._promotion != "listed":
            self._promotion = "listed"
            self.observed_relist = True
            self._listed.send()

    async def until_listed(self) -> None:
        """Wait until the client has fetched the list that it was last told of."""
        while self._promotion != "listed":
            await self._listed.wait()

    def called(self) -> None:
        """Note that the client has called something; without a new list, it did not re-list."""
        # Some clients list again only after the answer, so only a later call is proof. A client
        # that has listed again once can: one miss under load does not unlearn it.
        if self._promotion == "answered" and self.observed_relist is None:
            self.observed_relist = False

    def list_of(self, *, relists: bool | None) -> frozenset[str]:
        """Return the names in the list that the client's model works with."""
        # A client that does not hand late tools to its model works with the first list for good.
        names = self._first_list if relists is False else self._last_list
        return names or frozenset()

    def wants_logs(self, level: str | None) -> None:
        """Note the least level of log messages that the client asks for."""
        self.log_level = level

    def saw(self, entry: ToolEntry) -> None:
        """Note that the client has been sent an entry's definition."""
        self._sent[entry.name] = entry.tool

    def seen(self, entry: ToolEntry) -> Seen:
        """Say whether the client was sent this very definition, another one, or none."""
        sent = self._sent.get(entry.name)
        if sent is None:
            return "never"
        return "same" if sent is entry.tool or digest(sent) == digest(entry.tool) else "changed"

    def refused(self, name: ToolName, arguments: JsonObject) -> None:
        """Note that a call was answered with what does not fit."""
        self._refused = name, _fingerprint(arguments)

    def insists(self, name: ToolName, arguments: JsonObject) -> bool:
        """Say whether a call is the very one that was refused last."""
        if self._refused is None or self._refused[0] != name:
            return False
        return self._refused[1] == _fingerprint(arguments)

    def changes(self, catalog: Catalog) -> Changes | None:
        """Return what came and went since the last time this was asked; `None` if nothing."""
        before, self._told = self._told, catalog
        return None if before is None else difference(before, catalog) or None


class Conversations:
    """The clients that are connected, by what tells them apart."""

    def __init__(self) -> None:
        self._known: dict[str, Conversation] = {}
        self.newest: Conversation | None = None
        """The one on a stream of its own that has come last, also once it has left."""

    def __iter__(self) -> Iterator[Conversation]:
        return iter(self._known.values())

    def of(self, key: str, begin: Callable[[], Conversation]) -> Conversation:
        """Find what is remembered of a client, or begin to remember."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = begin()
            if known.is_alone:
                self.newest = known
            if len(self._known) > MAX_CONVERSATIONS:
                # A client that opens sessions and never says it is ready is not seen to leave.
                del self._known[next(iter(self._known))]
        return known

    def get(self, key: str) -> Conversation | None:
        """Return what is remembered of a client, if anything is."""
        return self._known.get(key)

    def forget(self, key: str) -> None:
        """Drop what is remembered of a client that has left."""
        self._known.pop(key, None)

    def forget_visitor(self, visitor: Visitor) -> None:
        """Drop all that is remembered of whoever was at the other end of a stream."""
        left = [key for key, each in self._known.items() if each.visitor == visitor]
        for key in left:
            del self._known[key]
