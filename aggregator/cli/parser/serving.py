"""How serving is typed."""

import argparse

from aggregator.cli.parser.options import (
    Command,
    add_config,
    add_json,
    add_profile,
    add_show_arguments,
    file,
)


def _serve(parser: argparse.ArgumentParser) -> None:
    add_config(parser, example=True)
    _logging(parser)
    # For our own commands, which need one server and not all of them.
    parser.add_argument("--only", action="append", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--afresh", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--shared",
        action="store_true",
        help="have one process in the background serve all clients that can share servers",
    )
    add_profile(parser)
    parser.add_argument(
        "--http", metavar="[HOST:]PORT", help="serve many clients over HTTP (host: 127.0.0.1)"
    )
    parser.add_argument(
        "--no-auth", action="store_true", help="with --http: require no token; loopback only"
    )
    parser.add_argument(
        "--token-file",
        type=file,
        metavar="FILE",
        help="with --http: the file with the token, made if missing",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="with --http: another name by which clients reach this host",
    )
    parser.add_argument(
        "--tls-cert",
        type=file,
        metavar="FILE",
        help="with --http: serve HTTPS with this certificate, read again when it changes",
    )
    parser.add_argument(
        "--tls-key",
        type=file,
        metavar="FILE",
        help="with --tls-cert: its key, if it is in another file",
    )
    parser.add_argument(
        "--behind-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="with --http: trust what this proxy (address or network) says about its clients",
    )
    parser.add_argument(
        "--drain",
        type=_seconds,
        metavar="TIME",
        help="with --http: how long running calls may take after SIGTERM (10s)",
    )
    parser.add_argument(
        "--notice",
        type=_seconds,
        metavar="TIME",
        help="with --http: how long /readyz answers 503 before requests are refused (0s)",
    )
    parser.add_argument(
        "--state-key",
        type=file,
        metavar="FILE",
        help="with --http: be a replica; the file with the key of all replicas, made if missing",
    )
    parser.add_argument(
        "--state",
        metavar="URL",
        help="with --state-key: a Redis or Valkey that the replicas share (or $AGGREGATOR_STATE)",
    )
    add_show_arguments(parser, "with --http: ")


def _seconds(text: str) -> float:
    """Read a duration of at most an hour."""
    # Whoever types none does not wait for what reads them.
    from aggregator.config.quantities import seconds  # noqa: PLC0415 - see above

    try:
        found = seconds(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= _LONGEST:
        raise argparse.ArgumentTypeError("must be a duration up to an hour, as `30s` or `2m`")
    return found


_LONGEST = 3600.0


def _logging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="log more on stderr; -vv for everything"
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="form of the log (default: text)",
    )


def _token(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    actions = ("add", "list", "revoke")
    parser.add_argument("action", choices=actions, help="what to do")
    parser.add_argument("name", nargs="?", metavar="NAME", help="whom the token is for")
    parser.add_argument(
        "--profile",
        type=file,
        metavar="NAME",
        help="the profile that its holder sees (default: everything)",
    )
    parser.add_argument(
        "--expires", metavar="TIME", help="how long it is valid, such as 30d or 12h"
    )
    add_json(parser)


def _stop(_parser: argparse.ArgumentParser) -> None:
    """Take no options."""


SERVE = Command(
    "serve a client over stdio, or many over HTTP",
    """
aggregator serve                          what clients start; it speaks MCP on stdin and stdout
aggregator serve -v --config team.yaml    another file, and a log of what servers do on stderr
aggregator serve --shared                 one process with one set of servers for all clients
aggregator serve --profile reading        a client that sees only what this profile shows
aggregator serve --http 8765              many clients at http://127.0.0.1:8765/mcp with a token
aggregator serve --http 8765 --shared     the same, with the servers that clients share
""",
    _serve,
)


TOKEN = Command(
    "manage who may connect over HTTP, and what each of them sees",
    """
aggregator token add anna                           prints a token for `serve --http`
aggregator token add ci --profile reading --expires 30d
aggregator token list                               which tokens there are, and when they expire
aggregator token revoke anna                        it is no longer accepted, and its sessions end

A token is shown once; only a digest of it is kept.
""",
    _token,
)


STATUS = Command(
    "show what runs in the background for clients that share servers",
    """
aggregator status           which servers run, for which clients, since when, and why not shared
aggregator status --json    the same for programs
""",
    add_json,
)

STOP = Command(
    "end what runs in the background, with its servers",
    """
aggregator stop             clients that use it are told, and start it again when they connect
""",
    _stop,
)
