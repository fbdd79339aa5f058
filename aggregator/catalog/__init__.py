"""Everything known about all servers now, as one value that is replaced and never changed."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import islice
from math import inf
from types import MappingProxyType
from typing import Literal

from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject
from aggregator.catalog.entries import (
    NOTHING_BESIDES,
    Addresses,
    Offers,
    PromptEntry,
    ResourceEntry,
    SkillEntry,
    ToolEntry,
)
from aggregator.catalog.lock import Drift
from aggregator.catalog.scale import BY_LENGTH, CHARACTERS_PER_TOKEN, Scale
from aggregator.names import ServerName, ToolName, grouped, plain_server

__all__ = [
    "BY_LENGTH",
    "CHARACTERS_PER_TOKEN",
    "NOTHING_BESIDES",
    "Addresses",
    "Catalog",
    "Changes",
    "Failed",
    "Idle",
    "Offers",
    "Pending",
    "Phase",
    "PromptEntry",
    "Ready",
    "ResourceEntry",
    "Scale",
    "ServerState",
    "SkillEntry",
    "ToolEntry",
    "difference",
    "digest",
    "explain_unreachable",
]

MAX_NAMED = 5
"""Tools that are named in one sentence."""

Phase = Literal["starting", "retrying", "cooling down"]
"""What is done about a server that is not there."""


@frozen
class Pending:
    """A server whose tools may still come."""

    reason: str | None = None
    """Why it is not ready yet, when there is more to say than that it is starting."""
    since: float = 0.0
    phase: Phase = "starting"
    last_words: tuple[str, ...] = ()
    """The last lines of its standard error, if it has failed."""
    known: "Ready | None" = None
    """What it is known to offer, since it was there a moment ago or in another run."""
    until: float = inf
    """When that is no longer taken to hold: it has been away for too long."""

    def lacks(self, kind: str) -> bool:
        """Whether it is not known what it offers of this kind."""
        return self.known is None or kind in self.known.offers.unlisted


@frozen
class Idle:
    """A server that does not run, since nobody needs it: a call starts it."""

    known: "Ready"
    since: float = 0.0
    reason: str | None = None
    """Why it did not start when it was last needed, if it did not."""
    last_words: tuple[str, ...] = ()
    """The last lines of its standard error then."""


@frozen
class Ready:
    """A server that is connected."""

    entries: tuple[ToolEntry, ...] = ()
    since: float = 0.0
    protocol_version: str = ""
    """The protocol version spoken with it."""
    version: str = ""
    """The name and version it gives itself."""
    instructions: str = ""
    about: str = ""
    """What it says of itself in a line, for people."""
    refused: tuple[str, ...] = ()
    """What of its listing was refused, one sentence each."""
    unmatched: tuple[str, ...] = ()
    """What of its configuration holds for none of its tools, one sentence each."""
    offers: Offers = NOTHING_BESIDES
    drift: tuple[Drift, ...] = ()
    """What is not as it was approved, the gravest first."""
    listed: tuple[ToolEntry, ...] = ()
    """All that it lists, where some of that is withheld because of that."""
    is_muted: bool = False
    """Whether its instructions are withheld because of that."""
    is_new: bool = False
    """Whether nothing of it has been approved yet: the lock does not name it."""
    is_partial: bool = False
    """Whether it may show more to clients that can be asked more than those it was told of."""

    @property
    def whole(self) -> tuple[ToolEntry, ...]:
        """All that it lists, offered or not."""
        return self.listed or self.entries

    @property
    def told(self) -> str:
        """Its instructions, as far as they may be shown."""
        return "" if self.is_muted else self.instructions

    @property
    def known(self) -> "Ready":
        """What it offers, as of any other state of which that is known."""
        return self

    def with_listed(self, kind: str) -> "Ready":
        """Return the state in which what it offers of this kind is no longer waited for."""
        if kind not in self.offers.unlisted:
            return self
        return replace(self, offers=replace(self.offers, unlisted=self.offers.unlisted - {kind}))


@frozen
class Failed:
    """A server given up on until its configuration changes or someone asks."""

    reason: str
    since: float = 0.0
    last_words: tuple[str, ...] = ()
    """The last lines of its standard error."""
    login: str | None = None
    """The command that logs in to it, if that is all it needs."""
    scope: str = ""
    """The rights that the login there is does not have."""

    @property
    def known(self) -> None:
        """Nothing: what it offered cannot be called."""


ServerState = Pending | Idle | Ready | Failed


@frozen(slots=False)
class Catalog:
    """The state of each configured server, in configuration order."""

    servers: Mapping[ServerName, ServerState] = field(default_factory=dict[ServerName, ServerState])
    logins: tuple[ToolEntry, ...] = ()
    """Tools of ours that have a person log in to servers, where clients can show one a page."""
    scale: Scale = BY_LENGTH
    """What definitions cost a model."""

    def __repr__(self) -> str:
        return (
            f"<Catalog {len(self.entries)} tools of {len(self.known)} servers, "
            f"{len(self.pending)} pending, {len(self.failed)} failed>"
        )

    @classmethod
    def starting(cls, servers: Iterable[ServerName], since: float = 0.0) -> "Catalog":
        """Return the catalog of servers that have only just been configured."""
        return cls({name: Pending(since=since) for name in servers})

    def updated(self, server: ServerName, state: ServerState) -> "Catalog":
        """Return the catalog in which one server has a new state."""
        return Catalog({**self.servers, server: state}, scale=self.scale)

    @cached_property
    def known(self) -> Mapping[ServerName, Ready]:
        """What each server offers of which that is known, connected or not."""
        return {name: known for name, state in self.servers.items() if (known := state.known)}

    @cached_property
    def entries(self) -> Mapping[ToolName, ToolEntry]:
        """Every callable tool by name, in configuration order; the first of a name wins."""
        hidden = self.withheld
        if not hidden:
            return MappingProxyType(self._owners)
        owned = self._owners.items()
        return MappingProxyType({name: each for name, each in owned if name not in hidden})

    @cached_property
    def _owners(self) -> dict[ToolName, ToolEntry]:
        """What each name leads to, offered or not.

        One whose tool is withheld leads to no other, which would be called in its place.
        """
        found: dict[ToolName, ToolEntry] = {}
        for known in self.known.values():
            for entry in (*known.entries, *known.listed):
                found.setdefault(entry.name, entry)
        for entry in self.logins:
            found.setdefault(entry.name, entry)
        return found

    @cached_property
    def always_loaded(self) -> tuple[ToolEntry, ...]:
        """The tools that are visible as soon as they are known."""
        return tuple(entry for entry in self.entries.values() if entry.always_load)

    @cached_property
    def withheld(self) -> Mapping[ToolName, ToolEntry]:
        """Every tool that is not offered since it is not as it was approved, by name."""
        found: dict[ToolName, ToolEntry] = {}
        for known in self.known.values():
            offered = {each.name for each in known.entries} if known.listed else ()
            hidden = (each for each in known.listed if each.name not in offered)
            found.update((each.name, each) for each in hidden if self._owners[each.name] is each)
        return found

    @cached_property
    def drifted(self) -> Mapping[tuple[ServerName, str], Drift]:
        """What is not as it was approved, by its server and its name there."""
        known = self.known.items()
        return {(name, each.tool): each for name, state in known for each in state.drift}

    def owner(self, name: ToolName) -> ServerName:
        """Return whose tool a name leads to, offered or not."""
        return self._owners[name].server

    def drift_of(self, entry: ToolEntry) -> Drift | None:
        """Return how a tool differs from what was approved, if it does."""
        return self.drifted.get((entry.server, entry.own_name)) if self.drifted else None

    def unreachable(self, server: ServerName) -> Mapping[ToolName, ServerName]:
        """Return those tools of a server whose names lead to a tool of another, and to whose."""
        known = self.known.get(server)
        if known is None or not self._has_namesakes:
            return {}
        owners = ((entry.name, self.owner(entry.name)) for entry in known.entries)
        return {name: owner for name, owner in owners if owner != server}

    @cached_property
    def _has_namesakes(self) -> bool:
        """Whether two servers have a tool of the same name, which hardly ever happens."""
        return sum(len(known.whole) for known in self.known.values()) > len(self._owners)

    @cached_property
    def plainly(self) -> Mapping[str, tuple[ServerName, ...]]:
        """The servers by their names without what people forget of them."""
        return _plainly(tuple(self.servers))

    @cached_property
    def pending(self) -> tuple[ServerName, ...]:
        """The servers whose tools are not known and may still come."""
        states = self.servers.items()
        return tuple(
            name for name, state in states if isinstance(state, Pending) and state.lacks("tools")
        )

    @cached_property
    def failed(self) -> tuple[ServerName, ...]:
        """The servers given up on."""
        return tuple(name for name, state in self.servers.items() if isinstance(state, Failed))


@lru_cache(maxsize=16)
def _plainly(names: tuple[ServerName, ...]) -> Mapping[str, tuple[ServerName, ...]]:
    # Of a catalog nearly everything changes more often than the names of its servers.
    return grouped((plain_server(name), name) for name in names)


@frozen
class Changes:
    """What came and went since a client's last search."""

    tools_added: tuple[ToolName, ...] = ()
    tools_removed: tuple[ToolName, ...] = ()
    servers_added: tuple[ServerName, ...] = ()
    """Servers whose tools can be called now and could not before."""
    servers_removed: tuple[ServerName, ...] = ()

    def __bool__(self) -> bool:
        return any((self.tools_added, self.tools_removed, self.servers_added, self.servers_removed))


def explain_unreachable(catalog: Catalog, server: ServerName) -> str | None:
    """Say which tools of a server cannot be reached, why, and what to do; nothing if all can."""
    hidden = catalog.unreachable(server)
    if not hidden:
        return None
    owners = ", ".join(f"`{owner}`" for owner in dict.fromkeys(hidden.values()))
    names = ", ".join(f"`{name}`" for name in islice(hidden, MAX_NAMED))
    rest = f" and {len(hidden) - MAX_NAMED} more" if len(hidden) > MAX_NAMED else ""
    return f"{names}{rest} cannot be reached: {owners} comes first; give one of them a `prefix`"


def difference(before: Catalog, after: Catalog) -> Changes:
    """Return what came and went between two catalogs."""
    if before is after:
        return Changes()
    earlier, later = before.known, after.known
    return Changes(
        tools_added=tuple(name for name in after.entries if name not in before.entries),
        tools_removed=tuple(name for name in before.entries if name not in after.entries),
        servers_added=tuple(name for name in later if name not in earlier),
        servers_removed=tuple(name for name in earlier if name not in later),
    )


def digest(definition: JsonObject) -> str:
    """Return a digest that is the same for equal definitions, in any order of keys."""
    text = json.dumps(definition, sort_keys=True, default=dict)
    return sha256(text.encode()).hexdigest()
