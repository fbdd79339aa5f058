"""What can be typed: the commands, their options, and help that teaches by example."""

import argparse
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, NoReturn

from aggregator.cli.environment import Environment
from aggregator.cli.paper import fill, width_of
from aggregator.cli.parser.asking import CALL, CHECK, DOCTOR, INSPECT, SEARCH
from aggregator.cli.parser.beginning import ADD, INIT, REMOVE, SECRET
from aggregator.cli.parser.editing import IMPORT, INSTALL, SCHEMA
from aggregator.cli.parser.layout import Layout, laid_out
from aggregator.cli.parser.locking import APPROVE, LOCK
from aggregator.cli.parser.login import LOGIN, LOGOUT
from aggregator.cli.parser.options import Command
from aggregator.cli.parser.seeing import OPEN, STATS
from aggregator.cli.parser.serving import SERVE, STATUS, STOP, TOKEN

DESCRIPTION = "One MCP server in front of all your others."

EXAMPLES = """\
examples:
  aggregator init                  make a servers.yaml from the clients you have
  aggregator add fetch -- uvx mcp-server-fetch
  aggregator check                 is every server there, and in good order?
  aggregator install claude-code   let the client use them all through one
  aggregator search "open issues"  what the model would find

`aggregator COMMAND --help` shows examples of each command.
"""

MAX_WIDTH = 98
"""Columns the help may take."""
MIN_WIDTH = 24
"""Columns below which it is wrapped by the terminal, and looks like it."""
NARROW = 56
"""Columns below which what an option does stands below it: beside it, an address has no room."""
BELOW = 8
"""Columns before it then."""


COMMANDS: Mapping[str, Command] = {
    "init": INIT,
    "add": ADD,
    "remove": REMOVE,
    "secret": SECRET,
    "login": LOGIN,
    "logout": LOGOUT,
    "serve": SERVE,
    "token": TOKEN,
    "status": STATUS,
    "stop": STOP,
    "inspect": INSPECT,
    "search": SEARCH,
    "call": CALL,
    "check": CHECK,
    "lock": LOCK,
    "approve": APPROVE,
    "import": IMPORT,
    "install": INSTALL,
    "open": OPEN,
    "stats": STATS,
    "doctor": DOCTOR,
    "schema": SCHEMA,
}
"""In the order in which help shows them."""


USUALLY = {"aggregator add": "aggregator add fetch -- uvx mcp-server-fetch"}
"""What is shown to whoever leaves out what a command needs, instead of where its help is."""


_LACKS_OBJECT = "argument --json: expected one argument"
"""What argparse says of a `--json` that other commands print JSON for."""


_OF_ONE = re.compile(r"argument ([^:\s]+): (.*)", re.DOTALL)
"""What argparse says of one option, or of one word."""
_NEEDS = re.compile(r"expected (\d+) arguments")
_CHOICE = re.compile(r"invalid choice: '?(.*?)'? \(choose from (.*)\)", re.DOTALL)
_QUOTED = re.compile(r"[^\s',]+")


_CONTINUED = re.compile(r"(?<=[a-z,])\n +(?=[a-z`])(?!aggregator )(?![\s\S]*\n\n)")
"""Where a line of the last paragraph goes on: it is filled anew on a page of any width."""


class Parser(argparse.ArgumentParser):
    """A parser that writes where the environment says, in the words of every other error."""

    environment: ClassVar[Environment]
    typed: ClassVar[Sequence[str]]
    width: ClassVar[int]
    """Columns that help has."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, and leave."""
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            message = f"`{self.prog}` needs {self._forms(missing)}"
        shown = _in_plain_words(message, self.prog)
        hint = f"`{self.prog} --help` shows how it is used"
        strange = [each for each in self.typed[1:] if self._is_dashed(each)]
        if missing == "QUERY" and strange:
            hint = behind_dashes(self.prog, strange)
        if (self.prog, message) == ("aggregator call", _LACKS_OBJECT):
            hint = "`--json` takes the arguments; `--raw` prints the whole result as JSON"
        if missing != message and self.prog in USUALLY:
            hint = f"For example: `{USUALLY[self.prog]}`"
        self.environment.complain(shown, hint)
        raise SystemExit(2)

    def _is_dashed(self, word: str) -> bool:
        """Return whether a word looks like an option, and is none."""
        return word[:1] == "-" != word[1:2] and word not in self._option_string_actions

    def _forms(self, missing: str) -> str:
        """Return what is to be written, of what argparse knows by names of its own."""
        choices = {each.dest: each.choices for each in self._actions if not each.option_strings}
        ways = [choices.get(each) or (each,) for each in missing.split(", ")]
        return ", and ".join(_either([f"`{word}`" for word in each]) for each in ways)

    def format_help(self) -> str:
        """Return help that fits the page."""
        return laid_out(super().format_help(), self.width)

    def print_help(self, file: object = None) -> None:  # noqa: ARG002 - argparse names it
        """Write help as a result."""
        self.environment.stdout.write(self.format_help())


def _in_plain_words(message: str, program: str) -> str:  # noqa: PLR0911 - one for each sentence
    """Return what argparse says, without the words that only its own documentation explains."""
    told = _OF_ONE.fullmatch(message)
    if told is None:
        return message
    name, problem = told.groups()
    # Of an option with two names, the long one is enough; a word has a name of ours only.
    named = f"`{name.rpartition('/')[2]}`" if name.startswith("-") else f"`{program}`"
    if problem == "expected one argument":
        return f"{named} needs a value"
    if several := _NEEDS.fullmatch(problem):
        return f"{named} needs {several[1]} values"
    if choice := _CHOICE.fullmatch(problem):
        known = _either([f"`{each}`" for each in _QUOTED.findall(choice[2])])
        return f"{named} takes {known}, not `{choice[1]}`"
    if problem.startswith("not allowed with argument "):
        other = problem.removeprefix("not allowed with argument ").rpartition("/")[2]
        return f"{named} does not go together with `{other}`"
    if problem.startswith("ignored explicit argument "):
        return f"{named} takes no value"
    if problem.startswith("must "):
        return f"{named} {problem}" if name.startswith("-") else f"what follows {named} {problem}"
    return f"{named}: {problem}"


def _either(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def behind_dashes(program: str, words: Sequence[str]) -> str:
    """Say how words are written that begin as options do."""
    return f"Write what begins with `-` after `--`: `{program} -- {shlex.join(words)}`"


def make_parser(surroundings: Environment, words: Sequence[str] = ()) -> Parser:
    """Return the parser of the command that was typed, or else of all."""
    first = words[0] if words else ""

    # Not as wide as the terminal may be: lines stay readable, and the help is also a page.
    columns = max(MIN_WIDTH, min(MAX_WIDTH, surroundings.width(surroundings.stdout)))

    class Here(Parser):
        """The parsers of the commands are of the same class, and so in the same place."""

        environment = surroundings
        typed = words
        width = columns

    form = partial(Layout, width=columns)
    beside, is_narrow = min(28, columns // 2), columns < NARROW
    parser = Here(
        prog="aggregator",
        description=fill(DESCRIPTION, columns, hanging=""),
        epilog=_examples(EXAMPLES, columns),
        formatter_class=partial(form, max_help_position=beside),
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    # The others would not be asked for anything, and each takes a moment to make.
    wanted = {first: COMMANDS[first]} if first in COMMANDS else COMMANDS
    for name, (about, examples, add_options) in wanted.items():
        command = commands.add_parser(
            name,
            help=about,
            description=fill(_sentence(about), columns, hanging=""),
            epilog=_examples(_indented(examples), columns),
            formatter_class=partial(form, max_help_position=BELOW if is_narrow else beside),
            # A prefix that is unique today may not be tomorrow.
            allow_abbrev=False,
        )
        add_options(command)
    return parser


def _examples(text: str, width: int) -> str:
    """Keep each example on its line, and what it does beside it or, without room, below."""
    whole = _CONTINUED.sub(" ", text.strip("\n"))
    return "\n".join(_example(line, width) for line in whole.splitlines())


def _example(line: str, width: int) -> str:
    typed, _, about = line.strip().partition("  ")
    if width_of(line) <= width or not about:
        return fill(line, width, hanging="    " if typed.startswith("aggregator ") else "")
    below = fill(about.strip(), width, "      ", "      ")
    return f"{fill(typed, width, '  ', '      ')}\n{below}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _indented(examples: str) -> str:
    lines = "".join(f"  {line}\n" for line in examples.strip().splitlines())
    return f"examples:\n{lines}"
