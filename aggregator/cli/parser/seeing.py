"""How what was done is looked at."""

import argparse
import re
import time

from aggregator.cli.parser.options import Command, add_config, add_json, add_show_arguments

_AGO = re.compile(r"(\d{1,5})([mhdw])")
_SECONDS = {"m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}


def _stats(parser: argparse.ArgumentParser) -> None:
    add_config(parser, example=True)
    parser.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="how far to look back, such as 24h, 7d or 2026-01-31 (default: 30d)",
    )
    add_json(parser)


def _open(parser: argparse.ArgumentParser) -> None:
    add_config(parser, example=True)
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address of the page instead"
    )
    add_show_arguments(parser)
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="log more on stderr; -vv for everything"
    )
    parser.set_defaults(only=[], afresh=False, log_format="text")


def moment(text: str) -> float:
    """Read a time that has passed."""
    if ago := _AGO.fullmatch(text):
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d"))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"write 24h, 7d or a day such as 2026-01-31, not `{text}`"
        ) from None


OPEN = Command(
    "open a page that shows what happens: servers, tools, searches, calls, what was saved",
    """
aggregator open                           in your browser, with the servers of servers.yaml
aggregator open --example                 with the example servers
aggregator open --no-browser              print the address, with the token in it

If `aggregator serve --http` serves the same file, its page is opened; otherwise the page is
served until Ctrl-C, on this machine only.
""",
    _open,
)

STATS = Command(
    "show what was called and searched for, and what it saved",
    """
aggregator stats                          the last 30 days
aggregator stats --since 24h              since yesterday
aggregator stats --json | jq '.unused[] | select(.whole) | .server'

It is counted on this machine only, without arguments and results; `stats: false` in the
file switches it off.
""",
    _stats,
)
