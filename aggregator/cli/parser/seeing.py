"""How what was done is looked at."""

import argparse
import re
import time

from aggregator.cli.parser.options import Command, add_config, add_json

_AGO = re.compile(r"(\d{1,5})([mhdw])")
_SECONDS = {"m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}


def _stats(parser: argparse.ArgumentParser) -> None:
    add_config(parser, example=True)
    parser.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="how far to look back, as 24h or 7d, or a day, as 2026-01-31 (default: 30d)",
    )
    add_json(parser)


def moment(text: str) -> float:
    """Read a time that has passed."""
    if ago := _AGO.fullmatch(text):
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d"))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"must be as 24h or 7d, or a day as 2026-01-31, not `{text}`"
        ) from None


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
