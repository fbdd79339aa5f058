"""What one client session has loaded, been shown and been told."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from aggregator.catalog import Catalog, Ready, ToolEntry
from aggregator.json import JsonObject, is_array
from aggregator.names import ServerName, ToolName
from aggregator.toolsearch import Changes

MAX_LOADED = 40
"""Tools one session may have loaded before the oldest unused ones leave."""

Seen = Literal["never", "same", "changed"]


@dataclass(frozen=True, slots=True)
class Loading:
    """What a search did to the loaded set."""

    added: tuple[ToolName, ...] = ()
    dropped: tuple[ToolName, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped)


@dataclass(frozen=True, slots=True)
class _Known:
    """What of a catalog a client has been told, in catalog order."""

    tools: Mapping[ToolName, None]
    servers: Mapping[ServerName, None]


@dataclass(slots=True)
class Session:
    """The memory of one client session; nothing of it is shared with another."""

    max_loaded: int = MAX_LOADED
    observed_relist: bool | None = None
    """Has this client been seen to list again after a promotion? `None`: not yet known."""
    _loaded: dict[ToolName, int] = field(default_factory=dict[ToolName, int])
    """Each loaded tool in the order of loading, with when it was last used; 0 is never."""
    _uses: int = 0
    _first_list: frozenset[str] | None = None
    _last_list: frozenset[str] = frozenset()
    _promotion: Literal["listed", "announced", "answered"] = "listed"
    _sent: dict[ToolName, JsonObject] = field(default_factory=dict[ToolName, JsonObject])
    _told: _Known | None = None

    @property
    def loaded(self) -> tuple[ToolName, ...]:
        """The tools that searches have found, in the order they were loaded."""
        return tuple(self._loaded)

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

    def announced(self) -> None:
        """Note that the client has been told of a list that a search has changed."""
        self._promotion = "announced"

    def answered(self) -> None:
        """Note that the answer to the search which changed the list has been sent."""
        if self._promotion == "announced":
            self._promotion = "answered"

    def listed(self, names: Iterable[str]) -> None:
        """Note that the client has asked for the list, and which names it was given."""
        self._last_list = frozenset(names)
        if self._first_list is None:
            self._first_list = self._last_list
        if self._promotion != "listed":
            self._promotion = "listed"
            self.observed_relist = True

    def called(self) -> None:
        """Note that the client has called something; without a new list, it did not re-list."""
        # Some clients list again only after the answer, so only a later call is proof. A client
        # that has listed again once can: one miss under load does not unlearn it.
        if self._promotion == "answered" and self.observed_relist is None:
            self.observed_relist = False

    @property
    def relisted(self) -> bool:
        """Has the client fetched the list since it was last told of a change?"""
        return self._promotion == "listed"

    def shows(self, name: str, *, relists: bool | None) -> bool:
        """Is this name in the list that the client's model works with?"""
        return name in self.list_of(relists=relists)

    def list_of(self, *, relists: bool | None) -> frozenset[str]:
        """Return the names in the list that the client's model works with."""
        # A client that does not hand late tools to its model works with the first list for good.
        names = self._first_list if relists is False else self._last_list
        return names or frozenset()

    def saw(self, entry: ToolEntry) -> None:
        """Note that the client has been sent an entry's definition."""
        self._sent[entry.name] = entry.tool

    def seen(self, entry: ToolEntry) -> Seen:
        """Say whether the client was sent this very definition, another one, or none."""
        sent = self._sent.get(entry.name)
        if sent is None:
            return "never"
        return "same" if sent is entry.tool or digest(sent) == digest(entry.tool) else "changed"

    def changes(self, catalog: Catalog) -> Changes | None:
        """Return what came and went since the last time this was asked; `None` if nothing."""
        before, self._told = self._told, _known(catalog)
        if before is None:
            return None

        return _difference(before, self._told) or None

    def export(self) -> list[str]:
        """Return the loaded set as plain data, to be kept for a later session."""
        return list(self._loaded)

    def restore(self, data: object) -> None:
        """Take over an exported set; anything else is ignored."""
        if is_array(data):
            self.load(ToolName(item) for item in data if isinstance(item, str))


def digest(definition: JsonObject) -> str:
    """Return a digest that is the same for equal definitions, in any order of keys."""
    text = json.dumps(definition, sort_keys=True, default=dict)
    return sha256(text.encode()).hexdigest()


def _known(catalog: Catalog) -> _Known:
    ready = (name for name, state in catalog.servers.items() if isinstance(state, Ready))
    return _Known(dict.fromkeys(catalog.entries), dict.fromkeys(ready))


def _difference(before: _Known, after: _Known) -> Changes:
    return Changes(
        tools_added=tuple(name for name in after.tools if name not in before.tools),
        tools_removed=tuple(name for name in before.tools if name not in after.tools),
        servers_added=tuple(name for name in after.servers if name not in before.servers),
        servers_removed=tuple(name for name in before.servers if name not in after.servers),
    )
