"""`aggregator call`: call one tool, or use what else a search finds, as a model would."""

import argparse
import re
import time
from collections.abc import Sequence
from typing import Any

from aggregator.basics.json import as_object, items
from aggregator.basics.tasks import is_task
from aggregator.cli.elicitation import answer
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.following import ABLE, follow
from aggregator.cli.inspect import find_tool
from aggregator.cli.live import LiveLine
from aggregator.cli.opening import opened, owners, view
from aggregator.cli.pages import as_json, is_known
from aggregator.cli.peer import AnswerError, Peer
from aggregator.cli.results import text_of
from aggregator.cli.starting import Server, await_servers, how_far
from aggregator.cli.typed import fitted, typed
from aggregator.cli.unready import refuse_unready
from aggregator.config import Config
from aggregator.errors import ERROR_META
from aggregator.names import RESERVED
from aggregator.records.inspection import SERVERS_URI, TOOLS_URI
from aggregator.toolsearch.offers import split

_WORD = re.compile(r"[A-Za-z][\w-]*", re.ASCII)

MAX_ROUNDS = 10
"""Times a server may ask before it is taken to go round in circles."""
STATE_ONLY_PAUSE = 0.25
"""Seconds to wait before asking again a server that only wants to be asked again."""
URL_ELICITATION_REQUIRED = -32042
"""The code of a server that refuses until a person has been somewhere; the handshake era has it."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Call a tool and print its result, and only then clean up."""
    _refuse_parted(options.tool, options.arguments)
    given = typed(options.arguments, options.json, environment)
    read: list[Config] = []

    def needed(config: Config) -> list[str]:
        read.append(config)
        return (
            owners(options.tool, config, view(options))
            if offer is None
            else _homes(offer[1], config)
        )

    offer = split(options.tool)
    with opened(options, environment, needed) as peer:
        if offer is not None:
            return _use(peer, environment, options, given)
        tool = _find(peer, environment, options, read[0] if read else None)
        arguments = fitted(given, tool["definition"], environment)
        result = _call(peer, environment, tool["name"], arguments)
        status = _status(result, tool["server"])
        if status is ExitStatus.UNAVAILABLE and not options.raw:
            told = text_of(result)
            raise CommandError(told[0].lower() + told[1:], status=status)
        environment.hand_over(as_json(result) if options.raw else text_of(result))
    return status


def _refuse_parted(tool: str, words: Sequence[str]) -> None:
    """Refuse a tool that is written as two words: its server, and its name there.

    Raises:
        CommandError: It is.
    """
    is_parted = words and _WORD.fullmatch(tool) and _WORD.fullmatch(words[0])
    if is_parted and "__" not in tool:
        raise CommandError(
            f"`{words[0]}` is not `key=value`",
            f"If it is a tool of `{tool}`, write `{tool}__{words[0]}`; arguments are `key=value`",
            ExitStatus.USAGE,
        )


def _homes(name: str, config: Config) -> list[str]:
    """Return the server that a prompt or a skill is of by its name; none if it may be any."""
    prefixes = {
        server.prefix or server.name: str(server.name) for server in config.servers.values()
    }
    heads = (name.partition(sign)[0] for sign in ("__", "/"))
    return [prefixes[head] for head in heads if head in prefixes][:1]


def _use(
    peer: Peer, environment: Environment, options: argparse.Namespace, given: dict[str, Any]
) -> ExitStatus:
    """Fill a prompt in, or read a skill or a resource, once what may have it has started."""
    await_servers(peer, environment, options.wait, quiet=True)
    asked = {"name": options.tool, "arguments": given}
    # Whatever it is called here, it answers to this name, too.
    result = _call(peer, environment, RESERVED.call, asked)
    environment.hand_over(as_json(result) if options.raw else text_of(result))
    return ExitStatus.TOOL_ERROR if result.get("isError") else ExitStatus.FINE


def _find(
    peer: Peer, environment: Environment, options: argparse.Namespace, config: Config | None
) -> dict[str, Any]:
    """Return the tool that is meant, as soon as its server has told of it."""
    wanted: str = options.tool
    homes = owners(wanted, config) if config else []

    def is_there(servers: Sequence[Server]) -> bool:
        if options.url is not None:
            return any(tool["name"] == wanted for tool in peer.read(TOOLS_URI)["tools"])
        return any(server["name"] in homes and is_known(server) for server in servers)

    await_servers(peer, environment, options.wait, enough=is_there, quiet=True)
    catalog = {**peer.read(SERVERS_URI), **peer.read(TOOLS_URI)}
    servers: list[Server] = catalog["servers"]
    refuse_unready(servers, homes, peer, options, config=config, variables=environment.variables)
    return peer.read(f"{TOOLS_URI}/{find_tool(wanted, catalog, options)}")


def _call(
    peer: Peer, environment: Environment, tool: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Call a tool, and again with a person's answers for as long as its server asks something."""
    answers: dict[str, Any] = {}
    for _round in range(MAX_ROUNDS):
        try:
            result = _send(peer, environment, {"name": tool, "arguments": arguments, **answers})
        except AnswerError as error:
            if error.code != URL_ELICITATION_REQUIRED or not _went(error, environment):
                raise CommandError(
                    f"`{tool}`: {error.message} (code {error.code})", status=ExitStatus.TOOL_ERROR
                ) from None
            continue
        if is_task(result):
            return follow(tool, result, peer, environment)
        if result.get("resultType") != "input_required":
            return result
        answers = _answers(result, environment)
    raise CommandError(f"`{tool}` does not stop asking questions", status=ExitStatus.TOOL_ERROR)


def _send(peer: Peer, environment: Environment, params: dict[str, Any]) -> dict[str, Any]:
    line = LiveLine(environment)

    def tell(params: dict[str, Any]) -> None:
        (line.show if line.is_seen else environment.note)(how_far(params))

    try:
        return peer.request("tools/call", params, tell, ABLE)
    finally:
        line.clear()


def _answers(result: dict[str, Any], environment: Environment) -> dict[str, Any]:
    """Return what goes with the call when it is sent again."""
    questions = as_object(result.get("inputRequests"))
    if not questions:
        time.sleep(STATE_ONLY_PAUSE)
    answers = {key: answer(as_object(each), environment) for key, each in questions.items()}
    state = {"requestState": result["requestState"]} if "requestState" in result else {}
    return {"inputResponses": answers, **state}


def _went(error: AnswerError, environment: Environment) -> bool:
    """Return whether a person went everywhere that a server wants them to go before a call."""
    asked = [as_object(each) for each in items(as_object(error.data).get("elicitations"))]
    taken = [answer({"params": {**each, "mode": "url"}}, environment) for each in asked]
    return bool(taken) and all(each["action"] == "accept" for each in taken)


def _status(result: dict[str, Any], server: str) -> ExitStatus:
    if not result.get("isError"):
        return ExitStatus.FINE
    # What went wrong on the way to a tool is said about its server; a server may have others
    # behind it, and says of them what we would.
    about = as_object(as_object(result.get("_meta")).get(ERROR_META)).get("server")
    return ExitStatus.UNAVAILABLE if about == server else ExitStatus.TOOL_ERROR
