"""What several commands are told in the same way."""

import argparse
from collections.abc import Callable
from typing import NamedTuple

from aggregator.entry.place import CONFIG_VARIABLE, DEFAULT_CONFIG, example_path

TOKEN_VARIABLE = "AGGREGATOR_TOKEN"  # noqa: S105 - its name
WAIT = 20.0
"""Seconds that servers are given to start."""
MAX_WAIT = 3600
"""Seconds that they can be given."""


class Command(NamedTuple):
    """What can be typed after `aggregator`."""

    about: str
    examples: str
    add_options: Callable[[argparse.ArgumentParser], None]


def add_config(parser: argparse.ArgumentParser, *, example: bool = False) -> None:
    """Let a file be named, or the example that comes with us."""
    files = parser.add_mutually_exclusive_group()
    files.add_argument(
        "--config",
        type=file,
        metavar="FILE",
        help=f"default: ${CONFIG_VARIABLE}, {DEFAULT_CONFIG} here or above, or your own",
    )
    if example:
        files.add_argument(
            "--example",
            dest="config",
            action="store_const",
            const=example_path(),
            help="the example servers that come with the aggregator",
        )


def add_door(parser: argparse.ArgumentParser) -> None:
    """Let a running aggregator be asked instead of one of our own."""
    parser.add_argument("--url", help="ask a running aggregator, such as http://127.0.0.1:8080/mcp")
    parser.add_argument(
        "--token-file",
        type=file,
        metavar="FILE",
        help=f"with --url: file with its token (default: ${TOKEN_VARIABLE}, or your own)",
    )


def add_show_arguments(parser: argparse.ArgumentParser, when: str = "") -> None:
    """Let the page show what calls are given."""
    parser.add_argument(
        "--show-arguments",
        action="store_true",
        help=f"{when}show the arguments of calls on the page, without known secrets",
    )


def add_profile(parser: argparse.ArgumentParser) -> None:
    """Let what is seen be that of one profile."""
    parser.add_argument(
        "--profile", type=file, metavar="NAME", help="as clients with this profile see it"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Let results be for programs."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_wait(parser: argparse.ArgumentParser, besides: str = "") -> None:
    """Let a person say how long to wait; `besides` is what is waited for anyhow."""
    parser.add_argument(
        "--wait",
        type=seconds,
        default=WAIT,
        metavar="SECONDS",
        help=f"how long to wait for servers that are starting{besides} (default: {WAIT:g})",
    )


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Let everything be agreed to."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def file(text: str) -> str:
    """Refuse what a shell makes of a variable that is not set; the default is not meant then."""
    if not text:
        raise argparse.ArgumentTypeError("must be the name of a file, and is empty")
    return text


def seconds(text: str) -> float:
    """Read how long to wait."""
    try:
        given = float(text)
    except ValueError:
        given = -1
    if not 0 <= given <= MAX_WAIT:
        raise argparse.ArgumentTypeError(f"must be from 0 to {MAX_WAIT} seconds, not `{text}`")
    return given


def number(text: str, least: int = 1) -> int:
    """Read how many."""
    try:
        given = int(text)
    except ValueError:
        given = -1
    if given < least:
        problem = f"must be a whole number of at least {least}, not `{text}`"
        raise argparse.ArgumentTypeError(problem)
    return given


def passed_over(text: str) -> int:
    """Read how many are left out, which may be none."""
    return number(text, least=0)
