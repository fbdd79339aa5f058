"""Read a command line and run the command it names."""

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module

from aggregator import __version__
from aggregator.basics import garbage
from aggregator.basics.files import in_words
from aggregator.cli.ending import Terminated
from aggregator.cli.environment import CommandError, Environment, ExitStatus, ToldError
from aggregator.cli.parser import COMMANDS, behind_dashes, make_parser
from aggregator.errors import ConfigError

Run = Callable[[argparse.Namespace, Environment], ExitStatus]

_MODULES = {"import": "importing"}
"""Commands whose modules cannot have their names."""
_WORDS = {"call": "arguments", "search": "query", "check": "servers", "remove": "names"}
"""Commands that take any number of words, before, between and after their options."""
_LATE: dict[str, tuple[str, str | None]] = {"token": ("name", None), "lock": ("diff", "")}
"""Commands of which one word may stand behind an option, and what there is of it until then."""
_ALONE = ("--help", "--version")
"""Options that stand without a command."""
_ELSEWHERE = {"start": "serve", "run": "serve", "list": "inspect"}
"""What commands are called by other programs, where it is not like what they are called here."""
_OTHERWISE = {"serve": {"--port": "--http"}, "install": {"--port": "--http"}}
"""And options."""

MAX_COMPLAINTS = 20
"""Mistakes of one file that are told at once."""


def main(arguments: Sequence[str], environment: Environment) -> ExitStatus:
    """Run a command and return its exit status; never raises for what a person can do wrong."""
    try:
        options = _parse(arguments, environment)
        command = _command(options)
        garbage.begin()
        return command(options, environment)
    except SystemExit as end:
        return ExitStatus.USAGE if end.code else ExitStatus.FINE
    except (ConfigError, CommandError) as error:
        return _complain(error, environment)
    except KeyboardInterrupt as told:
        return _broken_off(told, environment)
    except BrokenPipeError:
        # Whoever read our results has gone, as `head` does, and wants no more of them.
        environment.say_nothing_more()
        return ExitStatus.FINE
    except OSError as error:
        # What nobody foresaw of files and directories is no bug of ours, and no traceback helps.
        environment.complain(_described(error))
        return ExitStatus.ERROR


def _parse(arguments: Sequence[str], environment: Environment) -> argparse.Namespace:
    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:2], "--help"]
    first = arguments[0] if arguments else "--help"
    if not first.startswith("-") and first not in COMMANDS:
        close = _ELSEWHERE.get(first) or _nearest(first, COMMANDS)
        hint = f"Did you mean `{close}`?" if close else "`aggregator --help` lists the commands"
        raise CommandError(f"there is no command `{first}`", hint, ExitStatus.USAGE)
    if first.startswith("--") and first not in _ALONE:
        close = _nearest(first, _ALONE)
        if close and not any(first in _options_of(command) for command in COMMANDS):
            problem = f"there is no option `{first}`"
            raise CommandError(problem, f"Did you mean `{close}`?", ExitStatus.USAGE)
        raise CommandError(
            f"`{first}` must come after the command",
            f"Write `aggregator COMMAND {first} …`",
            ExitStatus.USAGE,
        )
    # argparse forgets it.
    noted = argparse.Namespace(behind_dashes="--" in arguments)
    parser = make_parser(environment, arguments)
    options, rest = parser.parse_known_args(arguments or [first], noted)
    if rest:
        _gather(options, rest)
    return options


def _gather(options: argparse.Namespace, rest: list[str]) -> None:
    """Take words behind an option for more of those before it; argparse gives up on them."""
    if options.command == "secret":
        # Most likely it is the secret, so it is not repeated.
        raise CommandError(
            "a secret is not given on the command line, where others can see it",
            "`aggregator secret set NAME` asks for it, or reads it from a pipe",
            ExitStatus.USAGE,
        )
    is_strange = any(each.startswith("-") for each in rest)
    late, until = _LATE.get(options.command, ("command", None))
    if not is_strange and len(rest) == 1 and getattr(options, late) == until:
        setattr(options, late, rest[0])
        return
    words = _WORDS.get(options.command)
    if words is None or is_strange:
        if (behind := _behind(options)) is None:
            hint = _meant(options, rest)
        else:
            hint = " ".join(filter(None, (_slip(options, rest), behind)))
        raise CommandError(f"unrecognized arguments: {' '.join(rest)}", hint, ExitStatus.USAGE)
    getattr(options, words).extend(rest)


def _behind(options: argparse.Namespace) -> str | None:
    """Say where a program to be added is written, if its options were taken for ours."""
    if options.command != "add" or options.behind_dashes or "://" in options.target[0]:
        return None
    name, program = map(shlex.quote, (options.name, options.target[0]))
    return f"Write a program after `--`: `aggregator add {name} -- {program} …`"


def _meant(options: argparse.Namespace, rest: Sequence[str]) -> str:
    """Say what was most likely meant, or where the options are listed."""
    usage = f"`aggregator {options.command or ''} --help` shows how it is used".replace("  ", " ")
    strange = _strange(rest)
    if options.command == "search" and strange is None and any(each[2:] for each in rest):
        return behind_dashes("aggregator search", [*options.query, *rest])
    if options.command == "lock" and not rest[0].startswith("-"):
        name = shlex.quote(rest[0])
        return f"It is about all servers; `aggregator approve {name}` is about one of them"
    if strange is None or options.command is None:
        return usage
    if options.command == "call" and rest[1:]:
        return f"An argument of the tool is written `{strange.lstrip('-')}={rest[1]}`"
    return _slip(options, rest) or usage


def _slip(options: argparse.Namespace, rest: Sequence[str]) -> str | None:
    """Say which option was most likely meant, if one is like what was typed."""
    strange = _strange(rest)
    if strange is None or options.command is None:
        return None
    typed, equals, value = strange.partition("=")
    close = _OTHERWISE.get(options.command, {}).get(typed)
    if close:
        given = value if equals else next(iter(rest[rest.index(strange) + 1 :]), "PORT")
        return f"Did you mean `{close} {shlex.quote(given)}`?"
    close = _nearest(typed, _options_of(options.command))
    return f"Did you mean `{close}`?" if close else None


def _strange(rest: Sequence[str]) -> str | None:
    return next((each for each in rest if each.startswith("--")), None)


def _options_of(command: str) -> list[str]:
    parser = argparse.ArgumentParser()
    COMMANDS[command].add_options(parser)
    # Not its usage, which leaves out each option that has a letter of its own.
    return re.findall(r"--[a-z][a-z-]+", parser.format_help())


def _nearest(typed: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 - who mistypes nothing does not need it

    return next(iter(get_close_matches(typed, known, 1)), None)


def _command(options: argparse.Namespace) -> Run:
    if options.version:
        return _version
    # Each command is imported when it runs: `serve` has to be there within a second, and has no
    # use for what the others need.
    name = _MODULES.get(options.command, options.command)
    return import_module(f"aggregator.cli.{name}").run


def _complain(error: ConfigError | CommandError, environment: Environment) -> ExitStatus:
    """Say what is wrong, unless that has been said, and how the command ends for it."""
    others = error.others if isinstance(error, ConfigError) else ()
    told = () if isinstance(error, ToldError) else (error, *others[: MAX_COMPLAINTS - 1])
    for each in told:
        environment.complain(str(each), each.hint)
    return error.status if isinstance(error, CommandError) else ExitStatus.USAGE


def _broken_off(told: KeyboardInterrupt, environment: Environment) -> ExitStatus:
    is_terminated = isinstance(told, Terminated)
    environment.note("terminated" if is_terminated else "interrupted")
    return ExitStatus.TERMINATED if is_terminated else ExitStatus.INTERRUPTED


def _version(_options: argparse.Namespace, environment: Environment) -> ExitStatus:
    environment.say(f"aggregator {__version__}")
    return ExitStatus.FINE


def _described(error: OSError) -> str:
    reason = in_words(error)
    return f"`{error.filename}`: {reason}" if error.filename else reason
