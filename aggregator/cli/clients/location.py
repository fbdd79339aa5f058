"""Where clients keep their servers on this machine."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from aggregator.basics.frozen import frozen
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.clients import INSTALLABLE, Client


@frozen(slots=False)
class ClientFile:
    """A file on this machine, and where in it the servers stand."""

    path: Path
    keys: tuple[str, ...]
    client: Client | None = None
    """Whose it is, if that is known."""
    of_project: bool = False
    """Whether it comes with the directory, and so from whoever wrote what is there."""

    @property
    def title(self) -> str:
        """What to call it."""
        return f"{self.client.title} (`{self.path}`)" if self.client else f"`{self.path}`"

    @property
    def listed(self) -> bool:
        """Whether the servers are a list, each with its name inside."""
        return self.client is not None and self.client.shape == "named"

    @property
    def preamble(self) -> tuple[tuple[str, str], ...]:
        """What it must begin with, if it is to be made."""
        return tuple(self.client.preamble.items()) if self.client else ()


def client_named(name: str) -> Client:
    """Return a client that keeps its servers in a file, by its name.

    Raises:
        CommandError: It is not known.
    """
    by_name = {client.name: client for client in INSTALLABLE}
    if name in by_name:
        return by_name[name]
    close = get_close_matches(name.casefold(), by_name, 1)
    known = ", ".join(f"`{each}`" for each in by_name)
    hint = f"Did you mean `{close[0]}`? Known are {known}" if close else f"Known are {known}"
    raise CommandError(f"there is no client `{name}`", hint, ExitStatus.USAGE)


def locate(client: Client, scope: str | None, environment: Environment) -> ClientFile:
    """Return where a client keeps its servers.

    Raises:
        CommandError: It has no such scope.
    """
    scope = scope or next(iter(client.files))
    if scope not in client.files:
        known = ", ".join(f"`{each}`" for each in client.files)
        raise CommandError(
            f"{client.title} has no scope `{scope}`", f"It has {known}", ExitStatus.USAGE
        )
    template = client.files[scope]
    directories = _directories(environment)
    path = Path(template.path.format_map(directories))
    twin = path.with_suffix(".jsonc")
    chosen = twin if path.suffix == ".json" and twin.exists() and not path.exists() else path
    keys = tuple(key.format_map(directories) for key in template.keys)
    return ClientFile(chosen, keys, client, template.path.startswith("{project}"))


def _directories(environment: Environment) -> Mapping[str, str]:
    """Return what stands for the braces in the table of clients."""
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
