"""Everything known about all servers now, as one value that is replaced and never changed."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Literal

from aggregator.json import JsonObject, as_object
from aggregator.names import ServerName, ToolName


@dataclass(frozen=True)
class ToolEntry:
    """One callable tool."""

    name: ToolName
    """The name clients see."""
    server: ServerName
    tool: JsonObject
    """The definition as its server sent it, cleaned of what must not be shown."""
    always_load: bool = False
    hint: str = ""
    """Extra words to find the tool by; never shown."""
    read_only: bool = False
    """Whether a server whose annotations are trusted says that the tool changes nothing."""

    @cached_property
    def characters(self) -> int:
        """How long its definition is; what it costs a model follows from that."""
        schema = json.dumps(
            self.input_schema, ensure_ascii=False, separators=(",", ":"), default=dict
        )
        return len(self.name) + len(self.description) + len(schema)

    @property
    def own_name(self) -> str:
        """The name the tool has on its server."""
        return self.tool["name"]

    @property
    def description(self) -> str:
        """What the tool says of itself."""
        description = self.tool.get("description")
        return description if isinstance(description, str) else ""

    @property
    def input_schema(self) -> JsonObject:
        """The JSON Schema of the tool's arguments."""
        return as_object(self.tool.get("inputSchema"))


@dataclass(frozen=True, slots=True)
class PromptEntry:
    """One prompt."""

    name: str
    """The name clients see."""
    server: ServerName
    prompt: JsonObject
    """The definition as its server sent it, cleaned of what must not be shown."""

    @property
    def own_name(self) -> str:
        """The name the prompt has on its server."""
        return self.prompt["name"]


@dataclass(frozen=True, slots=True)
class ResourceEntry:
    """One resource, or a template of many."""

    server: ServerName
    resource: JsonObject
    """The definition as its server sent it, cleaned of what must not be shown."""

    @property
    def own_uri(self) -> str:
        """The URI, or the template of URIs, that its server knows."""
        uri = self.resource.get("uri")
        return uri if isinstance(uri, str) else self.resource["uriTemplate"]


@dataclass(frozen=True, slots=True)
class Offers:
    """What a server offers besides tools."""

    prompts: tuple[PromptEntry, ...] = ()
    resources: tuple[ResourceEntry, ...] = ()
    templates: tuple[ResourceEntry, ...] = ()
    reads: bool = False
    """Whether it has resources at all, listed or not."""
    completes: bool = False
    """Whether it completes arguments."""


NOTHING_BESIDES = Offers()


@dataclass(frozen=True, slots=True)
class Pending:
    """A server whose tools may still come."""

    reason: str | None = None
    """Why it is not ready yet, when there is more to say than that it is starting."""
    since: float = 0.0
    phase: Literal["starting", "retrying", "cooling down"] = "starting"
    last_words: tuple[str, ...] = ()
    """The last lines of its standard error, if it has failed."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A server whose tools can be called."""

    entries: tuple[ToolEntry, ...] = ()
    since: float = 0.0
    protocol_version: str = ""
    """The protocol version spoken with it."""
    version: str = ""
    """The name and version it gives itself."""
    instructions: str = ""
    refused: tuple[str, ...] = ()
    """What of its listing was refused, one sentence each."""
    unmatched: tuple[str, ...] = ()
    """What of its configuration holds for none of its tools, one sentence each."""
    offers: Offers = NOTHING_BESIDES


@dataclass(frozen=True, slots=True)
class Failed:
    """A server given up on until its configuration changes or someone asks."""

    reason: str
    since: float = 0.0
    last_words: tuple[str, ...] = ()
    """The last lines of its standard error."""


ServerState = Pending | Ready | Failed


@dataclass(frozen=True)
class Catalog:
    """The state of each configured server, in configuration order."""

    servers: Mapping[ServerName, ServerState] = field(default_factory=dict[ServerName, ServerState])

    def __repr__(self) -> str:
        ready = len(self.servers) - len(self.pending) - len(self.failed)
        return (
            f"<Catalog {len(self.entries)} tools of {ready} servers, "
            f"{len(self.pending)} pending, {len(self.failed)} failed>"
        )

    @classmethod
    def starting(cls, servers: Iterable[ServerName], since: float = 0.0) -> "Catalog":
        """Return the catalog of servers that have only just been configured."""
        return cls({name: Pending(since=since) for name in servers})

    def updated(self, server: ServerName, state: ServerState) -> "Catalog":
        """Return the catalog in which one server has a new state."""
        return Catalog({**self.servers, server: state})

    @cached_property
    def entries(self) -> Mapping[ToolName, ToolEntry]:
        """Every callable tool by name, in configuration order; the first of a name wins."""
        found: dict[ToolName, ToolEntry] = {}
        for state in self.servers.values():
            if isinstance(state, Ready):
                for entry in state.entries:
                    found.setdefault(entry.name, entry)
        return MappingProxyType(found)

    @cached_property
    def pending(self) -> tuple[ServerName, ...]:
        """The servers whose tools may still come."""
        return tuple(name for name, state in self.servers.items() if isinstance(state, Pending))

    @cached_property
    def failed(self) -> tuple[ServerName, ...]:
        """The servers given up on."""
        return tuple(name for name, state in self.servers.items() if isinstance(state, Failed))


@dataclass(frozen=True, slots=True)
class Changes:
    """What came and went since a client's last search."""

    tools_added: tuple[ToolName, ...] = ()
    tools_removed: tuple[ToolName, ...] = ()
    servers_added: tuple[ServerName, ...] = ()
    """Servers whose tools can be called now and could not before."""
    servers_removed: tuple[ServerName, ...] = ()

    def __bool__(self) -> bool:
        return any((self.tools_added, self.tools_removed, self.servers_added, self.servers_removed))


def difference(before: Catalog, after: Catalog) -> Changes:
    """Return what came and went between two catalogs."""
    earlier, later = _ready(before), _ready(after)
    return Changes(
        tools_added=tuple(name for name in after.entries if name not in before.entries),
        tools_removed=tuple(name for name in before.entries if name not in after.entries),
        servers_added=tuple(name for name in later if name not in earlier),
        servers_removed=tuple(name for name in earlier if name not in later),
    )


def _ready(catalog: Catalog) -> tuple[ServerName, ...]:
    return tuple(name for name, state in catalog.servers.items() if isinstance(state, Ready))


def digest(definition: JsonObject) -> str:
    """Return a digest that is the same for equal definitions, in any order of keys."""
    text = json.dumps(definition, sort_keys=True, default=dict)
    return sha256(text.encode()).hexdigest()
