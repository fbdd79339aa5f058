"""`aggregator call`: call one tool, as a model would."""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

from aggregator.cli.config_file import config_path, read_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.inspect import find_tool
from aggregator.cli.pages import as_json
from aggregator.cli.peer import AnswerError, Peer, serving
from aggregator.cli.results import text_of
from aggregator.cli.starting import Server, await_servers, clear_line, tell_progress
from aggregator.cli.typed import arguments_of
from aggregator.config import Config
from aggregator.errors import ERROR_META
from aggregator.inspection import SERVERS_URI, TOOLS_URI
from aggregator.json import as_object


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Call a tool and print its result."""
    with serving(config_path(options.config, environment), environment) as peer:
        config = read_config(options, environment)
        tool = _find(peer, environment, options, config)
        arguments = arguments_of(options.arguments, options.json, tool["definition"], environment)
        result = _call(peer, environment, tool["name"], arguments)
    if result.get("resultType") == "input_required":
        raise CommandError(
            f"`{tool['name']}` asks for more input while it runs, which only a client can give"
        )
    status = _status(result, tool["server"])
    if status is ExitStatus.ERROR and not options.raw:
        told = text_of(result)
        raise CommandError(told[0].lower() + told[1:])
    environment.say(as_json(result) if options.raw else text_of(result))
    return status


def _find(
    peer: Peer, environment: Environment, options: argparse.Namespace, config: Config
) -> dict[str, Any]:
    """Return the tool that is meant, as soon as its server has told of it."""
    wanted: str = options.tool
    owners = [
        server.name
        for server in config.enabled.values()
        if server.prefix and wanted.startswith(f"{server.prefix}__")
    ]

    def is_there(servers: Sequence[Server]) -> bool:
        return any(server["name"] in owners and _is_ready(server) for server in servers)

    await_servers(peer, environment, options.wait, enough=is_there, quiet=True)
    catalog = {**peer.read(SERVERS_URI), **peer.read(TOOLS_URI)}
    for server in catalog["servers"]:
        if server["name"] in owners and not _is_ready(server):
            raise CommandError(
                f"the server `{server['name']}` is not ready: {server['reason'] or 'starting'}",
                f"`aggregator inspect {server['name']}` shows what it wrote to stderr",
            )
    return peer.read(f"{TOOLS_URI}/{find_tool(wanted, catalog)}")


def _is_ready(server: Server) -> bool:
    return server["state"] == "ready"


def _call(
    peer: Peer, environment: Environment, tool: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    try:
        return peer.call(tool, arguments, partial(tell_progress, environment))
    except AnswerError as error:
        raise CommandError(
            f"`{tool}`: {error} (code {error.code})", status=ExitStatus.TOOL_ERROR
        ) from None
    finally:
        clear_line(environment)


def _status(result: dict[str, Any], server: str) -> ExitStatus:
    if not result.get("isError"):
        return ExitStatus.FINE
    # What went wrong on the way to a tool is said about its server; a server may have others
    # behind it, and says of them what we would.
    about = as_object(as_object(result.get("_meta")).get(ERROR_META)).get("server")
    return ExitStatus.ERROR if about == server else ExitStatus.TOOL_ERROR
