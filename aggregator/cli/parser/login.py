"""What can be typed to log in and out."""

import argparse

from aggregator.cli.parser.options import Command, add_config, add_json

TIMEOUT = 300.0
"""Seconds that a person has to log in."""
MAX_TIMEOUT = 86400.0


def _add_login(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        metavar="SERVER",
        help="the server to log in to (default: list your logins)",
    )
    add_config(parser)
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address instead of opening a browser"
    )
    parser.add_argument(
        "--scope",
        default="",
        metavar="SCOPES",
        help="also ask for these scopes, as the server names them",
    )
    parser.add_argument(
        "--timeout",
        type=_duration,
        default=TIMEOUT,
        metavar="TIME",
        help="how long you have, such as 90s or 5m (default: 5m)",
    )
    add_json(parser)


def _add_logout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="SERVER")
    add_config(parser)


def _duration(text: str) -> float:
    # The room of configuration is heavy, and `--version` needs nothing of it.
    from aggregator.config.quantities import seconds  # noqa: PLC0415

    try:
        found = seconds(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= MAX_TIMEOUT:
        raise argparse.ArgumentTypeError("must be a duration such as 90s or 5m, at most 24h")
    return found


LOGIN = Command(
    "log in to a server, or list your logins",
    """
aggregator login                        which logins there are
aggregator login linear                 log in with your browser
aggregator login linear --no-browser    without a browser here: open the address elsewhere
aggregator login linear --scope admin   ask for more than before
""",
    _add_login,
)
LOGOUT = Command(
    "revoke a login and forget it",
    """
aggregator logout linear
""",
    _add_logout,
)
