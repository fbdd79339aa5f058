"""What `servers.yaml` says, as values."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from aggregator.clients import SurfaceChoice
from aggregator.names import ServerName

ServerType = Literal["stdio", "http", "sse"]

CONNECT_TIMEOUT = 30.0
"""Seconds a server may take from its start to its first tool list."""
CALL_TIMEOUT = 60.0
"""Seconds a call may go without an answer or a sign of progress."""
MAX_CALL_TIME = 600.0
"""Seconds a call may take in all, progress or not."""
MAX_MESSAGE_BYTES = 16 << 20
"""Bytes one message of a server may have."""
MAX_IN_FLIGHT = 32
"""Calls a server works on at a time."""
MAX_QUEUED = 256
"""Calls that may wait for a server that is busy."""
CONTEXT_WINDOW = 200_000
"""Tokens a model can hold."""
DEFAULT_RESULTS = 5
"""Tools a search returns unless it asks for another number."""
MAX_RESULTS = 100
"""Tools that the file, or a search, may ask for."""
MAX_RESULT_CHARS = 8_000
"""Characters the answer to a search may have, unless the file or the client says otherwise."""
MAX_LOADED = 40
"""Tools that searches may add to one client's list."""
RELIST_WAIT = 0.4
"""Seconds to wait for a client to list again before its search is answered."""


@dataclass(frozen=True, slots=True)
class ToolSearchMode:
    """When tools are deferred: once their definitions fill so much of the context window.

    Always is 0 percent, never is 100: the three ways to write it are one number.
    """

    percent: int = 0

    @property
    def always(self) -> bool:
        """Whether tools are deferred however few they are."""
        return self.percent == 0

    @property
    def never(self) -> bool:
        """Whether every tool is shown however many they are."""
        return self.percent == 100  # noqa: PLR2004 a hundred percent

    @classmethod
    def parse(cls, text: str) -> "ToolSearchMode":
        """Return the mode written as `true`, `false`, `auto` or `auto:N`.

        Raises:
            ValueError: It is none of these.
        """
        plain = text.strip().lower()
        if plain in _WORDS:
            return cls(_WORDS[plain])
        percent = plain.removeprefix("auto:")
        if percent == plain or not percent.isdecimal() or not 0 <= int(percent[:4]) <= 100:  # noqa: PLR2004
            raise ValueError(text)
        return cls(int(percent))

    def __str__(self) -> str:
        """Return the mode as it is written."""
        return "true" if self.always else "false" if self.never else f"auto:{self.percent}"


_WORDS = {"true": 0, "on": 0, "yes": 0, "false": 100, "off": 100, "no": 100, "auto": 10}


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for all servers and clients."""

    tool_search: ToolSearchMode = field(default_factory=ToolSearchMode)
    context_window: int = CONTEXT_WINDOW
    """Tokens a model can hold; `auto` measures against it."""
    surface: SurfaceChoice = "auto"
    max_results: int = DEFAULT_RESULTS
    max_result_chars: int = MAX_RESULT_CHARS
    max_loaded: int = MAX_LOADED
    relist_wait: float = RELIST_WAIT
    state: bool = True
    """Whether what was learned is kept between runs."""
    watch: bool = True
    """Whether changes of the file are applied while running."""
    semantic: bool = True
    """Whether searches go by meaning too, where the extra is installed."""
    clients: Mapping[str, SurfaceChoice] = field(default_factory=dict[str, SurfaceChoice])
    """The surface of each client named here."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server: how to reach it, and how its tools are treated.

    What can hold a secret is left out of the representation.
    """

    name: ServerName
    prefix: str
    """What its tools' names begin with; empty to leave them as they are."""
    type: ServerType = "stdio"
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: Path | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    verify: bool = True
    """Whether the server must prove who it is."""
    client_cert: Path | None = None
    """Certificate to show to the server."""
    client_key: Path | None = None
    proxy: str | None = field(default=None, repr=False)
    description: str = ""
    always_load: bool | tuple[str, ...] = False
    """All of its tools, none, or those that match one of these globs."""
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    search_hints: Mapping[str, str] = field(default_factory=dict[str, str])
    """Extra words to find a tool by, for each tool's own name."""
    enabled: bool = True
    connect_timeout: float = CONNECT_TIMEOUT
    call_timeout: float = CALL_TIMEOUT
    max_call_time: float = MAX_CALL_TIME
    max_message_bytes: int = MAX_MESSAGE_BYTES
    max_in_flight: int = MAX_IN_FLIGHT
    max_queued: int = MAX_QUEUED
    trust_annotations: bool = True
    """Whether its word that a tool only reads is believed."""
    honour_always_load: bool = True
    """Whether its own wishes for always-load tools are granted."""
    problem: str | None = None
    """Why it cannot be started as configured."""

    def allows(self, tool: str) -> bool:
        """Return whether a tool, by its own name, may be seen and called at all."""
        return _matches(tool, self.allow) and not _matches(tool, self.deny)

    def loads_always(self, tool: str) -> bool:
        """Return whether a tool, by its own name, is configured as always-load."""
        if isinstance(self.always_load, bool):
            return self.always_load
        return _matches(tool, self.always_load)

    def hint(self, tool: str) -> str:
        """Return the extra words to find a tool by."""
        return self.search_hints.get(tool, "")

    def unmatched(self, tools: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield each key and entry that holds for none of these tools, by their own names."""
        always = () if isinstance(self.always_load, bool) else self.always_load
        named = (("alwaysLoad", always), ("tools.allow", self.allow), ("tools.deny", self.deny))
        for key, globs in named:
            for glob in globs:
                if not any(_matches(tool, (glob,)) for tool in tools):
                    yield key, glob
        for name in self.search_hints:
            if name not in tools:
                yield "searchHints", name


@dataclass(frozen=True, slots=True)
class Config:
    """A whole file."""

    path: Path
    servers: Mapping[ServerName, ServerConfig] = field(
        default_factory=lambda: MappingProxyType[ServerName, ServerConfig]({})
    )
    """Every server in the order of the file, also those that are not enabled."""
    settings: Settings = field(default_factory=Settings)
    warnings: tuple[str, ...] = ()
    digest: bytes | None = field(default=None, compare=False, repr=False)
    """What stands for the text that it was read from, if that was a file."""

    @property
    def enabled(self) -> Mapping[ServerName, ServerConfig]:
        """The servers to start."""
        return {name: server for name, server in self.servers.items() if server.enabled}


def _matches(tool: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, glob) for glob in globs)
