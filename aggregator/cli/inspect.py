"""`aggregator inspect`: look at the catalog the way a client would, over stdio."""

import argparse
import json
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.peer import Peer, serving
from aggregator.cli.source import config_path, read_config
from aggregator.cli.starting import Server, await_servers, is_starting
from aggregator.cli.tables import Style, overview, server_page, tool_page
from aggregator.config import Config
from aggregator.inspection import SERVERS_URI, TOOLS_URI
from aggregator.names import Ambiguous, Lookup, ServerName, ToolName
from aggregator.search.repair import nearest

WATCH_INTERVAL = 1.0
"""Seconds between two looks."""

SUGGESTED = 3
"""Names that are offered for one that does not exist."""

CLEAR = "\x1b[H\x1b[2J"


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Print the catalog, one server or one tool."""
    with _peer(options, environment) as peer:
        # Of servers that have long been running, nobody needs to hear when they were ready.
        quiet = options.url is not None
        await_servers(
            peer, environment, options.wait, enough=_is_settled(options.subject or ""), quiet=quiet
        )
        page = _page(peer, environment, options)
        if not options.watch:
            environment.say(page)
            return ExitStatus.FINE
        with suppress(KeyboardInterrupt):
            _watch(peer, environment, options, page)
    return ExitStatus.FINE


def _is_settled(subject: str) -> Callable[[Sequence[Server]], bool]:
    """Return what tells whether the server that a person asks about has started, or failed."""
    names = (subject, subject.partition("__")[0])

    def enough(servers: Sequence[Server]) -> bool:
        own = [server for server in servers if server["name"] in names]
        return bool(own) and not any(map(is_starting, own))

    return enough


@contextmanager
def _peer(options: argparse.Namespace, environment: Environment) -> Generator[Peer]:
    if options.url is not None:
        from aggregator.cli.reach import Remote  # noqa: PLC0415 - most look at their own

        yield Remote(options.url, environment)
        return
    # Started before the file is checked: both take their time.
    with serving(config_path(options.config, environment), environment) as peer:
        _refuse_disabled(options.subject or "", read_config(options, environment))
        yield peer


def _refuse_disabled(subject: str, config: Config) -> None:
    """Say of a server that is not started, or of its tool, why nothing is known of it."""
    for name, server in config.servers.items():
        owns = bool(server.prefix) and subject.startswith(f"{server.prefix}__")
        if (subject == name or owns) and not server.enabled:
            raise CommandError(
                f"the server `{name}` is disabled in `{config.path}`",
                "Set its `enabled` to true there",
            )


def _watch(peer: Peer, environment: Environment, options: argparse.Namespace, page: str) -> None:
    """Print the page, and again whenever it changes; a person ends it."""
    environment.say(page)
    while True:
        time.sleep(WATCH_INTERVAL)
        before, page = page, _page(peer, environment, options)
        if page != before:
            environment.say(CLEAR + page if environment.stdout.isatty() else f"\n{page}")


def _page(peer: Peer, environment: Environment, options: argparse.Namespace) -> str:
    catalog = _catalog(peer)
    style: Style = environment.paint
    if options.subject is None:
        return as_json(catalog) if options.json else overview(catalog, style)
    subject: str = options.subject
    for server in catalog["servers"]:
        if server["name"] == subject:
            return _server_page(peer, catalog, server, options, style)
    tool = peer.read(f"{TOOLS_URI}/{find_tool(subject, catalog, 'server or tool')}")
    return as_json(tool) if options.json else tool_page(tool)


def _server_page(
    peer: Peer,
    catalog: dict[str, Any],
    server: dict[str, Any],
    options: argparse.Namespace,
    style: Style,
) -> str:
    tools = [tool for tool in catalog["tools"] if tool["server"] == server["name"]]
    words = [] if server["state"] == "ready" else _last_words(peer, server)
    page = {**server, "tools": tools, "stderr": words}
    return as_json(page) if options.json else server_page(page, style)


def _last_words(peer: Peer, server: dict[str, Any]) -> list[str]:
    """Return the end of what a server wrote to stderr; one that only hangs has no end yet."""
    return server.get("stderr") or peer.last_words(server["name"])


def find_tool(subject: str, catalog: dict[str, Any], what: str = "tool") -> ToolName:
    """Return the tool a person means, however they write it.

    Raises:
        CommandError: There is none, or there are several.
    """
    tools: list[dict[str, Any]] = catalog["tools"]
    lookup = Lookup.of(
        (ToolName(tool["name"]), ServerName(tool["server"]), tool["tool"]) for tool in tools
    )
    match lookup.find(subject):
        case Ambiguous(candidates=candidates):
            raise CommandError(f"several tools are called `{subject}`: {_listed(candidates)}")
        case None:
            raise _unknown(subject, catalog, what)
        case found:
            return ToolName(found)


def _unknown(subject: str, catalog: dict[str, Any], what: str) -> CommandError:
    if any(server["name"] == subject for server in catalog["servers"]):
        return CommandError(
            f"`{subject}` is a server and no tool",
            f"`aggregator inspect {subject}` lists its tools",
        )
    close = _closest(subject, catalog, what)
    hint = f"The closest are {_listed(close)}" if close else "`aggregator inspect` lists them"
    absent = [server["name"] for server in catalog["servers"] if server["state"] != "ready"]
    if absent:
        hint += f"; not ready, and so not known: {_listed(absent)}"
    return CommandError(f"there is no {what} `{subject}`", hint)


def _closest(subject: str, catalog: dict[str, Any], what: str) -> list[str]:
    """Return the names most like one that does not exist, of what is asked for."""
    # A server is not meant by the whole name of a tool, which begins with the server's.
    servers = catalog["servers"] if "server" in what and "__" not in subject else ()
    near = nearest(subject, [server["name"] for server in servers], 1)
    tools = nearest(subject, [tool["name"] for tool in catalog["tools"]])
    return [*near, *tools][:SUGGESTED]


def _catalog(peer: Peer) -> dict[str, Any]:
    visible = [tool["name"] for tool in peer.request("tools/list", {})["tools"]]
    return {**peer.read(SERVERS_URI), **peer.read(TOOLS_URI), "visible": visible}


def _listed(names: tuple[ToolName, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def as_json(value: object) -> str:
    """Return a value as JSON that a person can read too."""
    return json.dumps(value, ensure_ascii=False, indent=2)
