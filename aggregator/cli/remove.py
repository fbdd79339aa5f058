"""`aggregator remove`: fewer servers in `servers.yaml`."""

import argparse
from difflib import get_close_matches
from functools import reduce
from pathlib import Path

from aggregator.basics.json import is_array, is_plain_object
from aggregator.cli.clients.changes import make, show
from aggregator.cli.clients.documents import Format, Tree, found
from aggregator.cli.clients.foreign import read_tree
from aggregator.cli.clients.plan import edited, tell_unused
from aggregator.cli.clients.vault import secrets_in
from aggregator.cli.config_file import config_path
from aggregator.cli.environment import CommandError, Environment, ExitStatus


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Take the servers out of the file, and show what was changed."""
    target = config_path(options.config, environment)
    tree = read_tree(target, ExitStatus.USAGE)
    places = [(_section(tree, name, target), name) for name in dict.fromkeys(options.names)]

    def drop(form: Format, text: str) -> str:
        return reduce(form.drop, places, text)

    change = edited(target, drop, environment)
    show([change], secrets_in(tree), environment, asks=False)
    make([change])
    for _, name in places:
        environment.note(f"`{name}` is no longer in `{environment.known_as(target)}`")
    tell_unused([found(tree, place) for place in places], target, environment)
    return ExitStatus.FINE


def _section(tree: Tree, name: str, target: Path) -> str:
    """Return under which key a server stands.

    Raises:
        CommandError: There is none of that name.
    """
    for section in ("servers", "mcpServers"):
        if name in _names(tree.get(section)):
            return section
    known = [*_names(tree.get("servers")), *_names(tree.get("mcpServers"))]
    close = get_close_matches(name, known, 1)
    some = ", ".join(f"`{each}`" for each in known[:20])
    hint = f"Did you mean `{close[0]}`?" if close else f"It has {some}" if some else None
    raise CommandError(f"`{target}` has no server `{name}`", hint, ExitStatus.UNKNOWN)


def _names(servers: object) -> list[str]:
    if is_array(servers):
        return [str(each.get("name")) for each in servers if is_plain_object(each)]
    return list(servers) if is_plain_object(servers) else []
