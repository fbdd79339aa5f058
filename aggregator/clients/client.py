"""What one client is: how its programs behave, and how its files are written."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NamedTuple

from aggregator.basics.frozen import frozen

SurfaceChoice = Literal["auto", "promote", "hybrid", "relay", "full"]
"""How found tools reach a client, as a person may choose it."""

Relists = Literal["same-turn", "after-result", "never", "unknown"]
"""What a client does when it is told that the list changed.

`same-turn`: its model can call a new tool in its next step. `after-result`: the same, but it lists
again only once the call that changed the list has returned, too late for the answer to promise it.
`never`: its model does not get the new tool in this conversation. `unknown`: no evidence.
"""

VariableStyle = Literal[
    "secrets", "place", "input", "file", "env", "braces", "bare", "percent", "curly"
]
"""A way to write a variable in a file."""

EntryShape = Literal["plain", "array", "goose", "named"]
"""How a program is written: command and args, one array, goose's keys, or with its name inside."""

Handing = Literal["", "names", "references"]
"""How a client that hides the environment is told which variables to hand on."""


class ClientProfile(NamedTuple):
    """What to expect of a program; the defaults are those of one that nobody has studied."""

    names: tuple[str, ...] = ()
    """What it calls itself in `clientInfo`, the usual name first; letter case does not matter."""
    relists: Relists = "unknown"
    title: str = ""
    """Where one client is several programs, what this one is called."""
    tool_form: str = "{}"
    """How it shows the name of a tool to its model; `<server>` is what we are registered as."""
    defers_late_tools: bool = False
    """It hides a tool that joins the list behind a search of its own."""
    shows_whole_result: bool = False
    """Its model reads the whole result as JSON, `_meta` too."""
    max_result_chars: int | None = None
    """What of a text result reaches its model uncut, where that is known to be limited."""
    max_result_tokens: int | None = None
    """What a result may cost its model, where more is lost to it or costs it all there is."""
    needs_structured: bool = True
    """It refuses a result without the structured content that the tool's definition promises."""
    reads_questions: bool = True
    """In the modern era, it understands a result that asks something before the call goes on."""
    skill_places: tuple[str, ...] = ()
    """Directories, by the ends of their paths, whose skills it shows to its model by itself."""
    evidence: str = "no evidence"
    """How we know; `lab` is the published client run against a scripted model."""
    surface: SurfaceChoice | None = None
    """The surface that configuration sets for this client."""

    def shows(self, tool: str) -> str:
        """Return the name by which its model knows a tool of ours."""
        return self.tool_form.format(tool)

    @property
    def calls_late_tools(self) -> bool | None:
        """Can an answer promise its model a tool that has just joined the list?"""
        if self.relists == "unknown":
            return None
        return self.relists == "same-turn" and not self.defers_late_tools


class FileTemplate(NamedTuple):
    """A file, with braces for directories of a machine, and the keys that lead to the servers."""

    path: str
    keys: tuple[str, ...] = ("mcpServers",)


FROM_ENVIRONMENT = "AGGREGATOR_TOKEN"
"""The variable that has the token of the door over HTTP: for us, and for whoever comes to it."""


class WebEntry(NamedTuple):
    """How a client writes a server over HTTP so that its token is not in the file."""

    token: str
    """How its files refer to a variable in a header; nothing if they name it in a key."""
    extra: Mapping[str, Any] = {}
    """What it is told beside the address."""
    address: str = "url"
    """The key of the address."""


UNTRIED = "it was not tried with a hub"
ROOTED = (
    "it tells servers its roots, and one that asks for them outside of a call is refused "
    "where several clients share it"
)


@frozen
class Client:
    """One client as people know it."""

    name: str
    """What a person types."""
    title: str
    profiles: tuple[ClientProfile, ...]
    """The programs it consists of, the usual one first."""
    files: Mapping[str, FileTemplate] = field(default_factory=dict[str, FileTemplate])
    """Where it keeps its servers, by scope, the usual one first; none if that is not known."""
    variables: tuple[VariableStyle, ...] = ()
    """The ways to write variables in its files."""
    shape: EntryShape = "plain"
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it is told beside the command, mostly so that it does not hide us."""
    handing: Handing = ""
    takes_any_name: bool = True
    """Whether a server may be called anything; letters, digits, `-` and `_` if not."""
    tries_transports: bool = False
    """Whether a bare `url` in its files may be that of a server with the older transport."""
    preamble: Mapping[str, str] = field(default_factory=dict[str, str])
    """What a file of its kind must begin with."""
    unshared: str = UNTRIED
    """Why it does not share servers unless a person says so; nothing if it does."""
    web: WebEntry | None = None
    """How it reaches us over HTTP, if it can without a token in its file."""

    def entry(
        self, name: str, command: Sequence[str], variables: Sequence[str]
    ) -> dict[str, object]:
        """Return our own registration, as this client writes it."""
        program, *arguments = command
        match self.shape:
            case "array":
                entry: dict[str, object] = {"type": "local", "command": [*command]}
            case "goose":
                entry = {"name": name, "type": "stdio", "cmd": program, "args": arguments}
            case "named":
                entry = {"name": name, "command": program, "args": arguments}
            case "plain":
                entry = {"command": program, "args": arguments}
        lead = {"type": self.extra["type"]} if "type" in self.extra else {}
        return {**lead, **entry, **self.extra, **self._hand(variables)}

    def door(self, url: str) -> dict[str, object] | None:
        """Return our registration at an address, or nothing if the token would be in it."""
        if self.web is None:
            return None
        reference = {"headers": {"Authorization": f"Bearer {self.web.token}"}}
        named = {"bearer_token_env_var": FROM_ENVIRONMENT}
        lead = {key: value for key, value in self.web.extra.items() if key == "type"}
        by = reference if self.web.token else named
        return {**lead, self.web.address: url, **by, **self.web.extra}

    def _hand(self, variables: Sequence[str]) -> dict[str, object]:
        if self.handing == "names" and variables:
            return {"env_vars": [*variables]}
        if self.handing == "references" and variables:
            return {"env": {name: f"${name}" for name in variables}}
        return {}
