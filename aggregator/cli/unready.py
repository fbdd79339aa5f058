"""What a command says of servers that are not ready, what helps, and how it ends for them."""

import argparse
import shutil
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from aggregator.cli.environment import CommandError, ExitStatus
from aggregator.cli.opening import view
from aggregator.cli.pages import is_known, why_not
from aggregator.cli.peer import Peer
from aggregator.cli.starting import Server, is_starting
from aggregator.config import Config, ServerConfig
from aggregator.names import ServerName


def status_of(servers: Sequence[Server]) -> ExitStatus:
    """Return how a command ends that asked these: what some of them answer is an answer."""
    is_any = not servers or any(map(is_known, servers))
    if is_any:
        return ExitStatus.FINE
    wants_login = all(server["state"] == "needs login" for server in servers)
    return ExitStatus.NEEDS_LOGIN if wants_login else ExitStatus.UNAVAILABLE


def audit_trouble(catalog: Mapping[str, Any]) -> str | None:
    """Say why calls are not written down as the file wants it, if they are not."""
    reason = catalog.get("unaudited")
    if not reason:
        return None
    return f"calls cannot be written to the audit file {reason}; see to it, or change `audit.file`"


def counting_trouble(catalog: Mapping[str, Any]) -> str | None:
    """Say why tokens are not counted as the file wants it, if they are not."""
    reason = catalog.get("uncounted")
    return f"`tokens`: {reason}" if reason else None


def refuse_unready(
    servers: Sequence[Server],
    homes: Collection[str],
    peer: Peer,
    options: argparse.Namespace,
    *,
    config: Config | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Go on only if the servers that a tool can belong to are ready.

    Raises:
        CommandError: One of them is not.
    """
    for server in servers:
        name = server["name"]
        if name in homes and not is_known(server):
            entry = config.servers.get(ServerName(name)) if config else None
            problem = f"the server `{name}` is not ready: {why_not(server)}"
            if server["state"] == "needs login":
                # The reason has the command that helps.
                raise CommandError(problem, None, ExitStatus.NEEDS_LOGIN)
            if server.get("stderr") or peer.last_words(name):
                hint = f"`aggregator inspect {name}{view(options)}` shows what it wrote to stderr"
            elif entry is None or config is None:
                hint = f"`aggregator inspect {name}{view(options)}` shows what is known of it"
            else:
                hint = _remedy(entry, f"`{config.path}`", variables, server)
            raise CommandError(problem, hint, ExitStatus.UNAVAILABLE)


def _remedy(
    entry: ServerConfig, file: str, variables: Mapping[str, str], server: Server
) -> str | None:
    """Say what helps a server that never said a word."""
    if is_starting(server):
        return "`--wait SECONDS` waits longer for it"
    if entry.problem:
        return f"Put that right, or its entry in {file}"
    if entry.url:
        return f"See whether something answers at its `url` in {file}"
    if entry.cwd and not entry.cwd.is_dir():
        return f"Make it, or correct its `cwd` in {file}"
    if shutil.which(entry.command or "", path=entry.env.get("PATH") or variables.get("PATH")):
        return f"Run its `command` in {file} by hand, to see what it does"
    return f"Install it, or write its whole path as `command` in {file}"
