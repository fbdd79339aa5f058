"""Read a command line and run the command it names."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from aggregator import __version__
from aggregator.cli.environment import Environment, ExitStatus
from aggregator.config import Config, load_config
from aggregator.errors import ConfigError

DESCRIPTION = "One MCP server in front of all your others."

EXAMPLES = """\
examples:
  aggregator inspect                     what every server offers, and what a client would see
  aggregator inspect notes               the tools of one server
  aggregator inspect notes__create_note  one tool, whole
  aggregator serve                       serve a client over stdio; clients start this themselves
"""

CONFIG_VARIABLE = "AGGREGATOR_CONFIG"
DEFAULT_CONFIG = "servers.yaml"


def main(arguments: Sequence[str], environment: Environment) -> ExitStatus:
    """Run a command and return its exit status; never raises for what a person can do wrong."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as end:
        return ExitStatus.USAGE if end.code else ExitStatus.FINE
    try:
        config = load_config(config_path(options.config, environment), environment.variables)
        for warning in config.warnings:
            environment.warn(warning)
        return _run(options, config, environment)
    except ConfigError as error:
        environment.complain(str(error), error.hint)
        return ExitStatus.USAGE
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED


def config_path(given: str | None, environment: Environment) -> Path:
    """Say which file to read: the one named, or `servers.yaml` where the command is run."""
    chosen = given or environment.variables.get(CONFIG_VARIABLE) or DEFAULT_CONFIG
    return environment.directory / chosen


def _run(options: argparse.Namespace, config: Config, environment: Environment) -> ExitStatus:
    # Each command imports what it needs when it runs: `serve` has to be there within a second.
    match options.command:
        case "serve":
            from aggregator.cli.serve import serve  # noqa: PLC0415 - see above

            return serve(config, verbosity=options.verbose)
        case _:
            from aggregator.cli.inspect import inspect  # noqa: PLC0415 - see above

            return inspect(
                config,
                environment,
                subject=options.subject,
                wait=options.wait,
                as_json=options.json,
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aggregator",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"aggregator {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_serve(commands.add_parser("serve", help="serve a client over stdio"))
    _add_inspect(commands.add_parser("inspect", help="show what is behind the aggregator"))
    return parser


def _add_serve(parser: argparse.ArgumentParser) -> None:
    _add_config(parser)
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="say more on stderr; -vv for all of it"
    )


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    _add_config(parser)
    parser.add_argument("subject", nargs="?", metavar="SERVER or TOOL", help="what to show whole")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--wait",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="how long to wait for servers that are starting (default: 20)",
    )


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"default: ${CONFIG_VARIABLE}, or {DEFAULT_CONFIG} in this directory",
    )
