"""What is known now, as clients see it that can show a person a page to log in at."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from aggregator.basics.json import JsonObject
from aggregator.catalog import Failed, ToolEntry
from aggregator.config import ServerConfig
from aggregator.fleet.now import Now
from aggregator.names import Register, ServerName, prefixes, qualify

OWN_NAME = "login"
"""What the tool is called behind the name of its server."""
HINT = "log in, sign in, authenticate, authorize, oauth, connect"
"""What else it can be found by."""

Outlook = Callable[[Now], Now]
"""Returns what is known as one client sees it."""


def plain(now: Now) -> Now:
    """Return what is known as it is."""
    return now


class LoginInvitations:
    """Adds, once at each change, tools that have a person log in to servers that need it."""

    def __init__(self) -> None:
        self._before: Now | None = None
        self._after: Now | None = None

    def __call__(self, now: Now) -> Now:
        """Return what is known with these tools in it."""
        if self._after is None or now is not self._before:
            self._before, self._after = now, _with_invitations(now)
        return self._after


def _with_invitations(now: Now) -> Now:
    logins = tuple(_tools(now))
    if not logins:
        return now
    ours = tuple(Register.of(each.server, (each.forms,)) for each in logins)
    return replace(
        now,
        catalog=replace(now.catalog, logins=logins),
        lookup=replace(now.lookup, ours=ours),
    )


def _tools(now: Now) -> Iterator[ToolEntry]:
    for name, state in now.catalog.servers.items():
        if isinstance(state, Failed) and state.login is not None:
            yield _tool(now.config.servers[name])


def _tool(server: ServerConfig) -> ToolEntry:
    prefix = server.prefix or prefixes([server.name])[server.name]
    named = qualify(prefix, [OWN_NAME])
    return ToolEntry(named[OWN_NAME], server.name, _definition(server.name), hint=HINT)


def _definition(server: ServerName) -> JsonObject:
    title = f"Log in to {server}"
    return {
        "name": OWN_NAME,
        "title": title,
        "description": (
            f"{server} needs its user to log in, so its tools are not here. This shows the user a "
            "page where they can, waits until they have, and says which tools there are then."
        ),
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {
            "title": title,
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": True,
        },
    }
