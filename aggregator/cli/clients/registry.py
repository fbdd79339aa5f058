"""Where each client keeps its servers, how it writes them, and what it needs to keep us loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from aggregator.cli.environment import CommandError, Environment, ExitStatus

Shape = Literal["plain", "array", "goose", "named"]
"""How a program is written: command and args, one array, goose's keys, or with its name inside."""
Handing = Literal["", "names", "references"]
"""How a client that hides the environment is told which variables to hand on."""

USUAL_NAME = "toolbox"
"""What a client calls us unless told otherwise."""

PLAIN = ("env", "braces", "place")
EDITOR = (*PLAIN, "input")


@dataclass(frozen=True)
class Place:
    """A file, and the keys in it that lead to the servers."""

    file: str
    keys: tuple[str, ...] = ("mcpServers",)


@dataclass(frozen=True)
class Found:
    """A place on this machine."""

    path: Path
    keys: tuple[str, ...]
    listed: bool = False
    """Whether the servers are a list, each with its name inside."""


@dataclass(frozen=True)
class ClientFiles:
    """One client, as far as its files go."""

    name: str
    title: str
    places: Mapping[str, Place]
    """By scope; the first is the usual one."""
    variables: tuple[str, ...] = ()
    """The ways to write variables in its files."""
    shape: Shape = "plain"
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it is told beside the command, mostly so that it does not hide us."""
    handing: Handing = ""

    def place(self, scope: str | None, environment: Environment) -> Found:
        """Return where this client keeps its servers.

        Raises:
            CommandError: It has no such scope.
        """
        scope = scope or next(iter(self.places))
        if scope not in self.places:
            known = ", ".join(f"`{each}`" for each in self.places)
            raise CommandError(
                f"{self.title} has no scope `{scope}`", f"It has {known}", ExitStatus.USAGE
            )
        place = self.places[scope]
        words = _words(environment)
        path = Path(place.file.format_map(words))
        twin = path.with_suffix(".jsonc")
        chosen = twin if path.suffix == ".json" and twin.exists() and not path.exists() else path
        keys = tuple(key.format_map(words) for key in place.keys)
        return Found(chosen, keys, listed=self.shape == "named")

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
        return {**lead, **entry, **self.extra, **self._handed(variables)}

    def _handed(self, variables: Sequence[str]) -> dict[str, object]:
        if self.handing == "names" and variables:
            return {"env_vars": [*variables]}
        if self.handing == "references" and variables:
            return {"env": {name: f"${name}" for name in variables}}
        return {}


CLIENTS: tuple[ClientFiles, ...] = (
    ClientFiles(
        "claude-code",
        "Claude Code",
        {
            "user": Place("{claude}/.claude.json"),
            "project": Place("{project}/.mcp.json"),
            "local": Place("{claude}/.claude.json", ("projects", "{project}", "mcpServers")),
        },
        variables=PLAIN,
        extra={"type": "stdio", "alwaysLoad": True},
    ),
    ClientFiles(
        "claude-desktop",
        "Claude Desktop",
        {"user": Place("{support}/Claude/claude_desktop_config.json")},
    ),
    ClientFiles(
        "codex",
        "Codex",
        {"user": Place("{codex}/config.toml", ("mcp_servers",))},
        extra={"required": True, "omit_tools_from": ["deferred"]},
        handing="names",
    ),
    ClientFiles(
        "gemini-cli",
        "Gemini CLI",
        {
            "user": Place("{home}/.gemini/settings.json"),
            "project": Place("{project}/.gemini/settings.json"),
        },
        variables=("braces", "bare", "percent"),
        handing="references",
    ),
    ClientFiles(
        "copilot-cli",
        "GitHub Copilot CLI",
        {
            "user": Place("{home}/.copilot/mcp-config.json"),
            "project": Place("{project}/.github/mcp.json"),
        },
        variables=("braces", "bare"),
        extra={"type": "local", "tools": ["*"], "deferTools": "never"},
    ),
    ClientFiles(
        "vscode",
        "VS Code",
        {
            "user": Place("{support}/Code/User/mcp.json", ("servers",)),
            "project": Place("{project}/.vscode/mcp.json", ("servers",)),
        },
        variables=EDITOR,
        extra={"type": "stdio"},
    ),
    ClientFiles(
        "cursor",
        "Cursor",
        {
            "user": Place("{home}/.cursor/mcp.json"),
            "project": Place("{project}/.cursor/mcp.json"),
        },
        variables=EDITOR,
    ),
    ClientFiles(
        "windsurf",
        "Windsurf",
        {"user": Place("{home}/.codeium/windsurf/mcp_config.json")},
        variables=(*PLAIN, "file"),
    ),
    ClientFiles(
        "cline",
        "Cline",
        {"user": Place("{home}/.cline/data/settings/cline_mcp_settings.json")},
        variables=PLAIN,
        extra={"disabled": False},
    ),
    ClientFiles(
        "roo",
        "Roo Code",
        {
            "user": Place(
                "{support}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/"
                "mcp_settings.json"
            ),
            "project": Place("{project}/.roo/mcp.json"),
        },
        variables=PLAIN,
        extra={"disabled": False},
    ),
    ClientFiles(
        "zed",
        "Zed",
        {
            "user": Place("{config}/zed/settings.json", ("context_servers",)),
            "project": Place("{project}/.zed/settings.json", ("context_servers",)),
        },
    ),
    ClientFiles(
        "goose",
        "Goose",
        {"user": Place("{config}/goose/config.yaml", ("extensions",))},
        shape="goose",
        extra={"enabled": True, "timeout": 300},
    ),
    ClientFiles(
        "opencode",
        "opencode",
        {
            "user": Place("{config}/opencode/opencode.json", ("mcp",)),
            "project": Place("{project}/opencode.json", ("mcp",)),
        },
        variables=("curly",),
        shape="array",
        extra={"enabled": True},
    ),
    ClientFiles(
        "continue",
        "Continue",
        {"user": Place("{home}/.continue/config.yaml")},
        variables=("secrets",),
        shape="named",
    ),
    ClientFiles(
        "librechat",
        "LibreChat",
        {"project": Place("{project}/librechat.yaml")},
        variables=("braces",),
        extra={"type": "stdio"},
    ),
)
"""Every client whose files are known."""


def client_named(name: str) -> ClientFiles:
    """Return a client by its name.

    Raises:
        CommandError: It is not known.
    """
    by_name = {client.name: client for client in CLIENTS}
    if name in by_name:
        return by_name[name]
    close = get_close_matches(name.casefold(), by_name, 1)
    known = ", ".join(f"`{each}`" for each in by_name)
    hint = f"Did you mean `{close[0]}`? Known are {known}" if close else f"Known are {known}"
    raise CommandError(f"there is no client `{name}`", hint, ExitStatus.USAGE)


def _words(environment: Environment) -> Mapping[str, str]:
    """Return what stands for the braces in the table of places."""
    home = str(environment.home)
    variables = environment.variables
    roaming = variables.get("APPDATA") or f"{home}/AppData/Roaming"
    on_windows = environment.platform == "win32"
    config = roaming if on_windows else variables.get("XDG_CONFIG_HOME") or f"{home}/.config"
    on_mac = environment.platform == "darwin"
    return {
        "home": home,
        "project": str(environment.directory),
        "claude": variables.get("CLAUDE_CONFIG_DIR") or home,
        "codex": variables.get("CODEX_HOME") or f"{home}/.codex",
        "config": config,
        "support": f"{home}/Library/Application Support" if on_mac else config,
    }
