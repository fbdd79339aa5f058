"""What can be typed to begin with: the commands that make `servers.yaml` and change it."""

import argparse

from aggregator.cli.parser.options import Command, add_config, add_yes, file


def _init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="CLIENT or FILE",
        help="take over the servers there, without asking; can be repeated",
    )
    parser.add_argument(
        "--config",
        type=file,
        metavar="FILE",
        help="make this file (default: one for you, everywhere)",
    )
    add_yes(parser)


def _add(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    _describe_server(parser)
    _accept_yes(parser)


def _remove(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("names", nargs="+", metavar="NAME", help="its name, as `inspect` shows it")
    _accept_yes(parser)


def _accept_yes(parser: argparse.ArgumentParser) -> None:
    """Let nobody stumble who types what other commands that change files take."""
    parser.add_argument("-y", "--yes", action="store_true", help=argparse.SUPPRESS)


def _describe_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what the server is to be called")
    parser.add_argument(
        "target",
        # At least one: argparse would take none of them before an option that follows the name.
        nargs="+",
        metavar="URL or -- COMMAND",
        help="its address, or the program and its arguments behind --",
    )
    parser.add_argument(
        "-e",
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable for the program",
    )
    parser.add_argument(
        "-H",
        "--header",
        action="append",
        default=[],
        metavar="NAME:VALUE",
        help="a header for the address",
    )
    parser.add_argument(
        "-t",
        "--transport",
        choices=("stdio", "http", "sse"),
        help="usually known from the rest; sse is for older servers",
    )
    parser.add_argument("--description", metavar="TEXT", help="one line, shown to the model")
    parser.add_argument("--force", action="store_true", help="replace a server of that name")


def _secret(parser: argparse.ArgumentParser) -> None:
    actions = ("set", "delete")
    parser.add_argument("action", choices=actions, type=_action, help="what to do with it")
    parser.add_argument("name", metavar="NAME", help="its name in `${keyring:NAME}`")


def _action(text: str) -> str:
    """Refuse what is no action without repeating it: it may be the secret.

    Raises:
        ArgumentTypeError: It is none.
    """
    if text not in ("set", "delete"):
        raise argparse.ArgumentTypeError("must be `set` or `delete`")
    return text


INIT = Command(
    "make a servers.yaml, from the clients you have",
    """
aggregator init                           asks what to take over, and where to register it
aggregator init --from claude-code        with the servers of one client
aggregator init --config servers.yaml     in this directory, for this project
aggregator init --yes                     takes over all you have, and registers it nowhere

Secrets move to an env file. `--yes` leaves out servers that come with this directory.
Every command uses the file if there is no servers.yaml in its directory or a parent.
""",
    _init,
)

ADD = Command(
    "add a server to servers.yaml",
    """
aggregator add fetch -- uvx mcp-server-fetch
aggregator add docs https://docs.example.com/mcp --header "X-Team: blue"
aggregator add board https://board.example.com/mcp -H 'Authorization: Bearer ${BOARD_TOKEN}'
aggregator add tracker -e TRACKER_HOST=localhost -- npx -y @acme/tracker --stdio
aggregator add fetch --force -- uvx mcp-server-fetch@latest

Comments and order stay as they are. Secrets move to an env file; ${NAME} stays a reference.
""",
    _add,
)

REMOVE = Command(
    "remove servers from servers.yaml",
    """
aggregator remove fetch                   also removes the comment right above it
aggregator remove fetch docs              both, or none if one of them does not exist

Comments and order stay as they are.
""",
    _remove,
)

SECRET = Command(
    "put a secret into the system's keyring, or remove it",
    """
aggregator secret set BOARD_TOKEN         asks for it, and does not show it
aggregator secret delete BOARD_TOKEN
pass show board | aggregator secret set BOARD_TOKEN

Then write ${keyring:BOARD_TOKEN} in servers.yaml. It is read when the file is: at the start, and
when the file has changed. It needs the extra: pip install 'mcp-tool-aggregator[keyring]'.
""",
    _secret,
)
