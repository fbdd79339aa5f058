"""How what servers offer is written down, compared and approved."""

import argparse

from aggregator.cli.parser.options import Command, add_config, add_json, file, seconds


def _lock(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--check",
        action="store_true",
        help="only compare: ends with 1 if it differs, 4 if a server is missing",
    )
    ways.add_argument(
        "--diff",
        nargs="?",
        const="",
        metavar="SERVER or TOOL",
        help="show what differs, old and new; ends with 0 even then",
    )
    ways.add_argument(
        "--merge",
        nargs=3,
        type=file,
        metavar=("BASE", "OURS", "THEIRS"),
        help="merge two versions of the file, as a merge driver for git",
    )
    add_json(parser)
    _wait(parser)


def _approve(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("subject", nargs="?", metavar="SERVER or TOOL", help="what to approve")
    parser.add_argument("--all", action="store_true", help="everything that servers offer now")
    _wait(parser)


def _wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wait",
        type=seconds,
        metavar="SECONDS",
        help="how long to wait for servers (default: as long as `connectTimeout` gives them)",
    )


LOCK = Command(
    "write down what every server offers, or compare it with what was written",
    """
aggregator lock                           write servers.lock beside servers.yaml
aggregator lock --check                   for continuous integration: has anything changed?
aggregator lock --diff                    what has changed, old and new
aggregator lock --diff notes__create_note
aggregator lock --merge BASE OURS THEIRS

If the file exists, what servers offer is compared with it; `drift: block` hides what differs.
""",
    _lock,
)

APPROVE = Command(
    "approve tools that differ from servers.lock",
    """
aggregator approve notes__create_note     one tool, as it is now
aggregator approve notes                  all of a server
aggregator approve --all                  everything

A running aggregator offers what is approved without a restart.
""",
    _approve,
)
