"""What `servers.yaml` says of each server, and all of it, as values."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from aggregator.basics.frozen import frozen
from aggregator.config.limits import NO_LIMITS, Limits
from aggregator.config.oauth import OAuth
from aggregator.config.rules import EVERYTHING, Rule, Whose, admits, rule
from aggregator.config.settings import DriftChoice, Settings
from aggregator.config.tokens import TokenCounter
from aggregator.names import RESERVED, MetaTools, ServerName, Spellings, spellings
from aggregator.secrecy import is_secret, secret_arguments

Judge = Callable[[str, str], bool]
"""Says whether a value of a name should be kept out of sight."""

ServerType = Literal["stdio", "http", "sse"]
EraChoice = Literal["auto", "handshake", "modern"]
StartChoice = Literal["auto", "eager", "lazy"]

CONNECT_TIMEOUT = 30.0
"""Seconds a server may take from its start to its first tool list."""
IDLE_TIMEOUT = 900.0
"""Seconds after its last use that a server runs which is started only when it is needed."""
CALL_TIMEOUT = 60.0
"""Seconds a call may go without an answer or a sign of progress."""
MAX_CALL_TIME = 600.0
"""Seconds a call may take in all, progress or not."""
MAX_MESSAGE_BYTES = 16 << 20
"""Bytes one message of a server may have."""
MAX_IN_FLIGHT = 32
"""Calls a program works on at a time."""
MAX_IN_FLIGHT_FAR = 100
"""Calls a server works on at a time that is reached over HTTP, and is made for many."""
MAX_QUEUED = 256
"""Calls that may wait for a server that is busy."""
SPELT_AT_ONCE = 50
"""Tools whose spellings are worked out before others have their turn."""


@frozen
class ServerConfig:
    """One server: how to reach it, and how its tools are treated.

    What can hold a secret is left out of the representation.
    """

    name: ServerName
    prefix: str
    """What its tools' names begin with; empty to leave them as they are."""
    reserved: MetaTools = RESERVED
    """The names of our own tools, which one without a prefix must not have."""
    others: Mapping[ServerName, str] = field(default_factory=dict[ServerName, str])
    """The prefixes of all other servers, whose tools one without a prefix must not imitate."""
    type: ServerType = "stdio"
    era: EraChoice = "auto"
    """The era of the protocol to speak with it."""
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    inherited: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What it is given of our own environment."""
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What of all this is from the keyring, or from variables named like secrets."""
    cwd: Path | None = None
    limits: Limits = NO_LIMITS
    detach: bool = False
    """Whether what leaves its group is left alone when it ends."""
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
    oauth: OAuth | Literal[False] | None = None
    """How to log in to it; `False` if nobody is to, `None` if nothing is said of it."""
    shared: bool = False
    """Whether it may be used in the name of whoever runs us by others, too."""
    description: str = ""
    always_load: bool | tuple[str, ...] = False
    """All of its tools, none, or those that match one of these globs."""
    allow: tuple[str, ...] = EVERYTHING
    deny: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict[str, str])
    """Another name for a tool, for its own."""
    describe: Mapping[str, str] = field(default_factory=dict[str, str])
    """Another description of a tool."""
    read_only: tuple[str, ...] = ()
    """Those that match one of these globs only read, whatever it says of them."""
    search_hints: Mapping[str, str] = field(default_factory=dict[str, str])
    """Extra words to find a tool by, for each tool's own name."""
    enabled: bool = True
    start: StartChoice = "auto"
    """Whether it starts with us, or when it is needed; `auto` is the latter once it is known."""
    idle_timeout: float | None = None
    """Seconds without use after which it is stopped, if the file says so."""
    per_client: bool = False
    """Whether each client has a process of its own, where several share us."""
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
    source: str = field(default="", compare=False, repr=False)
    """What stands for how the file says it is reached, with variables as they are written."""
    pin: bool = True
    """Whether its tools are compared with what was approved of them."""
    drift: DriftChoice = "warn"
    """What is done with those that are not as they were approved."""
    problem: str | None = None
    """Why it cannot be started as configured."""

    def is_reached_like(self, other: "ServerConfig") -> bool:
        """Return whether the other is the same process or address, however it is treated."""
        return self == replace(other, **{name: getattr(self, name) for name in _TREATMENT})

    @property
    def whose(self) -> Whose:
        """The server as rules about its tools know it."""
        return Whose(self.name, self.prefix)

    @property
    def may_log_in(self) -> bool:
        """Whether a login is shown to it: not where other credentials are, unless told to."""
        if self.url is None or self.oauth is False:
            return False
        return self.oauth is not None or not any(
            name.lower() == "authorization" or is_secret(name, value)
            for name, value in self.headers.items()
        )

    @property
    def is_personal(self) -> bool:
        """Whether it may be used in the name of a person, and so is for nobody else to use."""
        is_machine = bool(self.oauth) and self.oauth.grant == "client_credentials"
        return self.may_log_in and not is_machine and not self.shared

    def confidential(self, judge: Judge = is_secret) -> Iterator[tuple[str, str]]:
        """Yield the name and the value of each thing it is given that is for nobody to see."""
        yield from self.secrets.items()
        for name, value in (*self.env.items(), *self.inherited.items(), *self.headers.items()):
            if judge(name, value):
                yield name, value
                # `Bearer` and the like say how it is sent.
                yield name, value.rpartition(" ")[2]
        yield from secret_arguments((*self.args, self.url or "", self.proxy or ""))
        if self.oauth and self.oauth.client_secret:
            yield "clientSecret", self.oauth.client_secret

    def given(self) -> Iterator[tuple[str, str]]:
        """Yield the same and what else it is given, since nobody knows what that is."""
        yield from self.env.items()
        yield from self.headers.items()
        yield from self.confidential()

    def allows(self, tool: str) -> bool:
        """Return whether a tool, by its own name, may be seen and called at all."""
        return admits(self.allow, self.deny, self.whose, {tool, self.renamed(tool)})

    def renamed(self, tool: str) -> str:
        """Return what a tool is called here, by its own name."""
        return self._said(self.rename, tool) or tool

    def description_of(self, tool: str) -> str | None:
        """Return what is said of a tool in place of its own description, if anything is."""
        return self._said_of_either(self.describe, tool)

    def reads_only(self, tool: str) -> bool:
        """Return whether a tool, by its own name, is known to change nothing."""
        if not self.read_only:
            return False
        return rule(self.read_only, self.whose).means(spellings(tool, self.prefix))

    def loads_always(self, tool: str) -> bool:
        """Return whether a tool, by its own name, is configured as always-load."""
        if isinstance(self.always_load, bool) or not self.always_load:
            return bool(self.always_load)
        return rule(self.always_load, self.whose).means(spellings(tool, self.prefix))

    def hint(self, tool: str) -> str:
        """Return the extra words to find a tool by."""
        return self._said_of_either(self.search_hints, tool) or ""

    def _said_of_either(self, of_each: Mapping[str, str], tool: str) -> str | None:
        """Return what is written for a tool by its own name, or by the one it has here."""
        said = self._said(of_each, tool)
        return self._said(of_each, self.renamed(tool)) if said is None and self.rename else said

    def _said(self, of_each: Mapping[str, str], tool: str) -> str | None:
        """Return what is written for a tool, whichever of its names it is written for."""
        if not of_each:
            return None
        spelled = spellings(tool, self.prefix)
        written = map(of_each.get, (spelled.own, spelled.plain, spelled.whole))
        return next((said for said in written if said is not None), None)

    def unmatched(self, tools: Collection[str]) -> Iterator[tuple[str, str] | None]:
        """Yield each key and entry that holds for none of these tools, by their own names.

        For each that does hold, nothing is yielded, so that others can have their turn meanwhile.
        """
        always = () if isinstance(self.always_load, bool) else self.always_load
        named = (
            ("alwaysLoad", always),
            ("tools.allow", self.allow),
            ("tools.deny", self.deny),
            ("tools.readOnly", self.read_only),
        )
        written: list[Spellings] = []
        for number, tool in enumerate(tools, 1):
            written.append(spellings(tool, self.prefix))
            if number % SPELT_AT_ONCE == 0:
                yield None
        for key, globs in named:
            for glob in globs:
                held = rule((glob,), self.whose, is_generous=key == "tools.deny")
                yield from (None if means else (key, glob) for means in _tried(held, written))
        known = {name for each in written for name in (each.own, each.plain, each.whole)}
        yield from (("tools.rename", name) for name in self.rename if name not in known)
        if self.rename:
            called = (spellings(self.renamed(each.own), self.prefix) for each in written)
            known |= {name for each in called for name in (each.own, each.plain, each.whole)}
        told = (("tools.describe", self.describe), ("searchHints", self.search_hints))
        for key, names in told:
            yield from ((key, name) for name in names if name not in known)


def _tried(held: Rule, written: Sequence[Spellings]) -> Iterator[bool]:
    """Say of some tools at a time that it is not known yet, and at last if a rule means none."""
    for start in range(0, len(written), SPELT_AT_ONCE):
        yield True
        if any(map(held.means, written[start : start + SPELT_AT_ONCE])):
            return
    yield False


@frozen
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
    names: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The variables that the text refers to."""
    files: tuple[Path, ...] = field(default=(), compare=False, repr=False)
    """The files of variables that it refers to."""

    def __post_init__(self) -> None:
        """Have each server without a prefix know which names are another's."""
        servers = {name: self._beside_others(server) for name, server in self.servers.items()}
        object.__setattr__(self, "servers", MappingProxyType(servers))

    def _beside_others(self, server: ServerConfig) -> ServerConfig:
        if server.prefix:
            others = dict[ServerName, str]()
        else:
            # Those that are left out here still have their names.
            known = {name: other.prefix for name, other in self.servers.items()}
            others = {**server.others, **known}
            others.pop(server.name, None)
        return server if others == server.others else replace(server, others=others)

    @property
    def enabled(self) -> Mapping[ServerName, ServerConfig]:
        """The servers to start."""
        return {name: server for name, server in self.servers.items() if server.enabled}

    def confidential(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the value of each thing in it that is for nobody to see."""
        # What they inherit is the same for all.
        judge = cache(is_secret)
        for server in self.servers.values():
            yield from server.confidential(judge)
        if isinstance(self.settings.tokens, TokenCounter) and self.settings.tokens.key:
            yield "key", self.settings.tokens.key

    def afresh(self) -> "Config":
        """Return the same with all servers started and asked, whatever is known of them."""
        return replace(self, settings=replace(self.settings, recall=False))

    def only(self, names: Collection[str]) -> "Config":
        """Return the same with these servers alone, whatever the file says later."""
        servers = {name: server for name, server in self.servers.items() if name in names}
        return replace(self, servers=servers, settings=replace(self.settings, watch=False))


_TREATMENT = (
    "prefix",
    "reserved",
    "others",
    "description",
    "shared",
    "always_load",
    "allow",
    "deny",
    "rename",
    "describe",
    "read_only",
    "search_hints",
    "start",
    "idle_timeout",
    "connect_timeout",
    "call_timeout",
    "max_call_time",
    "max_in_flight",
    "max_queued",
    "trust_annotations",
    "honour_always_load",
    "pin",
    "drift",
)
"""What can change of a server while it runs; with anything else it is another one."""
