"""How files are taken over, changed and explained."""

import argparse

from aggregator.cli.parser.options import Command, add_config, add_yes, file
from aggregator.clients import INSTALLABLE
from aggregator.entry.place import CONFIG_VARIABLE, DEFAULT_CONFIG

USUAL_NAME = "toolbox"
"""What a client calls us unless told otherwise."""


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="?",
        metavar="CLIENT or FILE",
        help="where the servers are now (default: every client that is found)",
    )
    parser.add_argument(
        "--into",
        "--config",
        type=file,
        metavar="FILE",
        help=f"default: ${CONFIG_VARIABLE}, {DEFAULT_CONFIG} here or above, or your own",
    )
    parser.add_argument(
        "--json", action="store_true", help="list what is found as JSON; writes only with --yes"
    )
    add_yes(parser)


def _install(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument(
        "client",
        nargs="?",
        metavar="CLIENT",
        help="such as claude-code, codex or cursor (default: list them)",
    )
    parser.add_argument("--scope", help="user, project or local, if the client has it")
    parser.add_argument(
        "--name",
        default=USUAL_NAME,
        help=f"the name of the aggregator in the client (default: {USUAL_NAME})",
    )
    parser.add_argument(
        "--move", action="store_true", help="also move the servers it has into servers.yaml"
    )
    parser.add_argument(
        "--shared",
        action=argparse.BooleanOptionalAction,
        help="share servers with other clients registered with --shared, or not",
    )
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        help="register the address of `aggregator serve --http`, with its token by reference",
    )
    parser.add_argument("--undo", action="store_true", help="put everything back as it was")
    parser.add_argument("--json", action="store_true", help="list the clients as JSON")
    add_yes(parser)


def _schema(_parser: argparse.ArgumentParser) -> None:
    """Take no options."""


def _clients() -> str:
    names = ", ".join(client.name for client in INSTALLABLE)
    return f"Clients: {names}. The diff is shown first."


IMPORT = Command(
    "take over the servers that a client has",
    """
aggregator import                         those of every client on this machine
aggregator import claude-code             those of one client
aggregator import .vscode/mcp.json        those in a file
aggregator import cursor --into team.yaml --yes
aggregator import --json | jq '.servers[].name'

The diff is shown first. Variables stay references, and secrets move to an env file.
""",
    _import,
)

INSTALL = Command(
    "register the aggregator in a client",
    f"""
aggregator install                         which clients there are, and where it is registered
aggregator install claude-code             for you, in every project
aggregator install vscode --scope project  for everybody, in this project
aggregator install codex --move            and move the servers it had into servers.yaml
aggregator install codex --http 8765       the address of `serve --http 8765`
aggregator install codex --undo            as it was, to the byte

{_clients()}
""",
    _install,
)

SCHEMA = Command(
    "print the JSON Schema of servers.yaml, for editors",
    """
aggregator schema > servers.schema.json

Then begin servers.yaml with this line, and the editor completes and explains its keys:
# yaml-language-server: $schema=servers.schema.json
""",
    _schema,
)
