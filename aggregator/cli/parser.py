"""What can be typed: the commands, their options, and help that teaches by example."""

import argparse
from collections.abc import Callable
from textwrap import fill
from typing import ClassVar, NoReturn

from aggregator.cli.environment import Environment
from aggregator.clients import INSTALLABLE

DESCRIPTION = "One MCP server in front of all your others."

EXAMPLES = """\
examples:
  aggregator import claude-code    take over the servers a client already has
  aggregator check                 is every server there, and in good order?
  aggregator install claude-code   let the client use them all through one
  aggregator search "open issues"  what the model would find

`aggregator COMMAND --help` shows examples of each command.
"""

CONFIG_VARIABLE = "AGGREGATOR_CONFIG"
DEFAULT_CONFIG = "servers.yaml"
USUAL_NAME = "toolbox"
"""What a client calls us unless told otherwise."""
WIDTH = 98
"""Columns the help may take."""
WAIT = 20.0
"""Seconds that servers are given to start."""
MAX_WAIT = 3600
"""Seconds that they can be given."""


class Parser(argparse.ArgumentParser):
    """A parser that writes where the environment says, in the words of every other error."""

    environment: ClassVar[Environment]

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, and leave."""
        self.environment.complain(message, f"`{self.prog} --help` shows how it is used")
        raise SystemExit(2)

    def print_help(self, file: object = None) -> None:  # noqa: ARG002 - argparse names it
        """Write help as a result."""
        self.environment.stdout.write(self.format_help())


def make_parser(surroundings: Environment) -> Parser:
    """Return the parser of all commands."""

    class Here(Parser):
        """The parsers of the commands are of the same class, and so in the same place."""

        environment = surroundings

    parser = Here(
        prog="aggregator", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=_as_written
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (about, examples, add_options) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=about,
            description=_sentence(about),
            epilog=_indented(examples),
            formatter_class=_as_written,
            # A prefix that is unique today may not be tomorrow.
            allow_abbrev=False,
        )
        add_options(command)
    return parser


def _as_written(prog: str) -> argparse.HelpFormatter:
    """Keep the lines of examples, and the same width everywhere: the help is also a page."""
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=28, width=WIDTH)


def _serve(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    _logging(parser)
    parser.add_argument(
        "--http", metavar="[HOST:]PORT", help="serve many clients over HTTP (host: 127.0.0.1)"
    )
    parser.add_argument(
        "--no-auth", action="store_true", help="with --http: ask for no token; loopback only"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="with --http: a further name by which clients reach this host",
    )


def _inspect(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("subject", nargs="?", metavar="SERVER or TOOL", help="what to show whole")
    parser.add_argument("--url", help="look at a running server, such as http://127.0.0.1:8080/mcp")
    parser.add_argument("--watch", action="store_true", help="keep showing until interrupted")
    _json(parser)
    _wait(parser)


def _search(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what a model would ask for")
    parser.add_argument(
        "--max-results",
        type=_number,
        metavar="N",
        help="how many tools to find (default: `maxResults` of the file)",
    )
    parser.add_argument("--explain", action="store_true", help="say how each tool was found")
    _json(parser)
    _wait(parser)


def _call(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("tool", metavar="TOOL", help="its name, as `inspect` shows it")
    parser.add_argument(
        "arguments",
        nargs="*",
        # Without a default, argparse counts even what may be left out among what is required.
        default=list[str](),
        metavar="key=value",
        help="an argument, of the type the tool asks for; key:=JSON to be exact",
    )
    parser.add_argument("--json", metavar="OBJECT", help="all arguments as JSON; - reads stdin")
    parser.add_argument("--raw", action="store_true", help="print the whole result as JSON")
    _wait(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("--strict", action="store_true", help="let warnings count as errors")
    _json(parser)
    parser.add_argument(
        "--wait",
        type=_seconds,
        metavar="SECONDS",
        help="how long to wait for servers (default: as long as `connectTimeout` gives them)",
    )


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="?",
        metavar="CLIENT or FILE",
        help="where the servers are now (default: every client that is found)",
    )
    parser.add_argument(
        "--into",
        type=_file,
        metavar="FILE",
        help=f"default: ${CONFIG_VARIABLE}, or {DEFAULT_CONFIG}",
    )
    parser.add_argument(
        "--json", action="store_true", help="list what is found as JSON; writes only with --yes"
    )
    _yes(parser)


def _install(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument(
        "client",
        nargs="?",
        metavar="CLIENT",
        help="such as claude-code, codex or cursor (default: list them)",
    )
    parser.add_argument("--scope", help="user, project or local, as the client has it")
    parser.add_argument(
        "--name", default=USUAL_NAME, help=f"what the client calls us (default: {USUAL_NAME})"
    )
    parser.add_argument(
        "--move", action="store_true", help="also move the servers it has into servers.yaml"
    )
    parser.add_argument("--undo", action="store_true", help="put everything back as it was")
    parser.add_argument("--json", action="store_true", help="list the clients as JSON")
    _yes(parser)


def _yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _doctor(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("--client", metavar="NAME", help="say how this client would be served")
    _json(parser)
    _wait(parser)


def _schema(_parser: argparse.ArgumentParser) -> None:
    """Take no options."""


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        type=_file,
        metavar="FILE",
        help=f"default: ${CONFIG_VARIABLE}, or {DEFAULT_CONFIG} in this directory",
    )


def _logging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="say more on stderr; -vv for all of it"
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="how to say it"
    )


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=WAIT,
        metavar="SECONDS",
        help=f"how long to wait for servers that are starting (default: {WAIT:g})",
    )


def _file(text: str) -> str:
    """Refuse what a shell makes of a variable that is not set; the default is not meant then."""
    if not text:
        raise argparse.ArgumentTypeError("must be the name of a file, and is empty")
    return text


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= MAX_WAIT:
        raise argparse.ArgumentTypeError(f"must be from 0 to {MAX_WAIT} seconds, not `{text}`")
    return number


def _number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not `{text}`")
    return number


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _indented(examples: str) -> str:
    lines = "".join(f"  {line}\n" for line in examples.strip().splitlines())
    return f"examples:\n{lines}"


def _clients() -> str:
    names = ", ".join(client.name for client in INSTALLABLE)
    # Examples are indented by two.
    return fill(f"Clients: {names}. The diff is shown first.", WIDTH - 2, break_on_hyphens=False)


COMMANDS: dict[str, tuple[str, str, Callable[[argparse.ArgumentParser], None]]] = {
    "serve": (
        "serve a client over stdio, or many over HTTP",
        """
aggregator serve                          what clients start; it speaks MCP on stdin and stdout
aggregator serve -v --config team.yaml    another file, and a word on stderr about each server
aggregator serve --http 8765              many clients, at http://127.0.0.1:8765/mcp with a token
""",
        _serve,
    ),
    "inspect": (
        "show what is behind the aggregator",
        """
aggregator inspect                        what every server offers, and what a client would see
aggregator inspect notes                  one server and its tools
aggregator inspect notes__create_note     one tool, whole
aggregator inspect --watch                keep looking
aggregator inspect --url http://127.0.0.1:8080/mcp
aggregator inspect --json | jq '.servers[] | select(.state != "ready")'
""",
        _inspect,
    ),
    "search": (
        "search as a model would, and print the answer it would read",
        """
aggregator search create a note            the best tools, with how to call them
aggregator search +github "open issue"     only tools that have the word github
aggregator search select:notes__search_notes
aggregator search --explain create a note  which words found what, and for how much
""",
        _search,
    ),
    "call": (
        "call a tool and print its result",
        """
aggregator call notes__create_note title=Milk body="Two litres"
aggregator call notes__search_notes query=milk limit=3
aggregator call notes__create_note tags=shopping tags=home title=Milk
aggregator call notes__create_note '{"title": "Milk", "tags": ["home"]}'

It ends with status 3 if the tool says that it failed, with 1 if the call never got through.
""",
        _call,
    ),
    "check": (
        "check servers.yaml and start each server once",
        """
aggregator check                          what is wrong, what may be, and how long servers take
aggregator check --strict                 for continuous integration: warnings fail too
aggregator check --json | jq '.findings[]'
""",
        _check,
    ),
    "import": (
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
    ),
    "install": (
        "register the aggregator in a client",
        f"""
aggregator install                         which clients there are, and where we are registered
aggregator install claude-code             for you, in every project
aggregator install vscode --scope project  for everybody, in this project
aggregator install codex --move            and move the servers it had into servers.yaml
aggregator install codex --undo            as it was, to the byte

{_clients()}
""",
        _install,
    ),
    "doctor": (
        "say on one page what is true here: versions, servers that fail, clients",
        """
aggregator doctor                         what to look at first, and what to send with a report
aggregator doctor --client claude-code    which surface it would get, and why
aggregator doctor --json
""",
        _doctor,
    ),
    "schema": (
        "print the JSON Schema of servers.yaml, for editors",
        """
aggregator schema > servers.schema.json

Then begin servers.yaml with this line, and the editor completes and explains its keys:
# yaml-language-server: $schema=servers.schema.json
""",
        _schema,
    ),
}
"""Each command: what it does, examples, and what adds its options."""
