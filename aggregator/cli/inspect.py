"""`aggregator inspect`: look at the catalog the way a client would, over stdio."""

import argparse
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aggregator.cli.ending import Terminated
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.opening import file_of, opened, owners, view
from aggregator.cli.pages import as_json, is_known, overview, server_page, tool_page
from aggregator.cli.paper import Paper
from aggregator.cli.peer import Peer
from aggregator.cli.saving import advise
from aggregator.cli.starting import Server, await_servers, is_starting
from aggregator.cli.unready import audit_trouble, counting_trouble, refuse_unready, status_of
from aggregator.errors import closest
from aggregator.names import RESERVED, Ambiguous, Lookup, ServerName, ToolName, prefixes
from aggregator.records.inspection import SERVERS_URI, TOOLS_URI
from aggregator.search.repair import nearest

WATCH_INTERVAL = 1.0
"""Seconds between two looks."""

SUGGESTED = 3
"""Names that are offered for one that does not exist."""

_DURATION = re.compile(r"\(for [\d.,]+ \w+\)")


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Print the catalog, one server or one tool."""
    subject: str | None = options.subject
    # What is watched follows the file, and that may tell of any server.
    needed = (
        None if subject is None or options.watch else partial(owners, subject, there=view(options))
    )
    status = ExitStatus.FINE
    is_shown = False
    try:
        with opened(options, environment, needed) as peer:
            servers = _await(peer, environment, options)
            page = _page(peer, environment, options)
            # Before it is written: whoever has read it may interrupt before we are back from that.
            is_shown = True
            environment.say(page)
            if options.watch:
                _watch(peer, environment, options)
            status = status_of(_named(subject or "", servers) or servers)
    except KeyboardInterrupt as told:
        # Watching is ended by hand; whoever has seen nothing is interrupted.
        if not is_shown or isinstance(told, Terminated):
            raise
    return status


def _await(peer: Peer, environment: Environment, options: argparse.Namespace) -> list[Server]:
    # Of servers that have long been running, nobody needs to hear when they were ready.
    quiet = options.url is not None
    enough = _is_settled(options.subject or "")
    return await_servers(peer, environment, options.wait, enough=enough, quiet=quiet)


def _named(subject: str, servers: Sequence[Server]) -> list[Server]:
    """Return the server of a name, however it is written."""
    exact = [server for server in servers if server["name"] == subject]
    return exact or [each for each in servers if each["name"].casefold() == subject.casefold()]


def _is_settled(subject: str) -> Callable[[Sequence[Server]], bool]:
    """Return what tells whether the server that a person asks about has started, or failed."""
    names = (subject, subject.partition("__")[0])

    def enough(servers: Sequence[Server]) -> bool:
        own = [server for server in servers if server["name"] in names]
        return bool(own) and not any(map(is_starting, own))

    return enough


def _watch(peer: Peer, environment: Environment, options: argparse.Namespace) -> None:
    """Print the page again whenever it changes; a person ends it."""
    page = _page(peer, environment, options)
    while True:
        environment.wait_while_read(WATCH_INTERVAL)
        before, page = page, _page(peer, environment, options)
        # How long something has lasted is no news.
        if _DURATION.sub("", page) != _DURATION.sub("", before):
            environment.say_anew(page)


def _page(peer: Peer, environment: Environment, options: argparse.Namespace) -> str:
    catalog = _catalog(peer)
    page = _subject(peer, catalog, environment.paper, options)
    if options.json:
        return page
    problem = catalog.get("problem")
    told = [f"{problem}; going on with the configuration in use"] if problem else []
    told += [catalog["unpinned"]] if catalog.get("unpinned") else []
    told += filter(None, [audit_trouble(catalog), counting_trouble(catalog)])
    return "\n\n".join([*told, page])


def _subject(peer: Peer, catalog: dict[str, Any], paper: Paper, options: argparse.Namespace) -> str:
    if options.subject is None:
        return as_json(catalog) if options.json else overview(catalog, paper, file_of(options))
    subject: str = options.subject
    for server in _named(subject, catalog["servers"]):
        return _server_page(peer, catalog, server, options, paper)
    home = {subject.partition("__")[0]}
    refuse_unready(catalog["servers"], home, peer, options)
    tool = peer.read(f"{TOOLS_URI}/{find_tool(subject, catalog, options, 'server or tool')}")
    return as_json(tool) if options.json else tool_page(tool, paper)


def _server_page(
    peer: Peer,
    catalog: dict[str, Any],
    server: dict[str, Any],
    options: argparse.Namespace,
    paper: Paper,
) -> str:
    tools = [tool for tool in catalog["tools"] if tool["server"] == server["name"]]
    words = [] if is_known(server) else _last_words(peer, server)
    page = {**server, "tools": tools, "stderr": words}
    return as_json(page) if options.json else server_page(page, paper, file_of(options))


def _last_words(peer: Peer, server: dict[str, Any]) -> list[str]:
    """Return the end of what a server wrote to stderr; one that only hangs has no end yet."""
    return server.get("stderr") or peer.last_words(server["name"])


def find_tool(
    subject: str, catalog: dict[str, Any], options: argparse.Namespace, what: str = "tool"
) -> ToolName:
    """Return the tool a person means, however they write it.

    Raises:
        CommandError: There is none, or there are several.
    """
    tools: list[dict[str, Any]] = catalog["tools"]
    lookup = Lookup.of(
        ((ToolName(tool["name"]), ServerName(tool["server"]), tool["tool"]) for tool in tools),
        absent=prefixes(server["name"] for server in catalog["servers"]),
    )
    match lookup.find(subject):
        case Ambiguous(candidates=candidates):
            raise CommandError(
                f"several tools are called `{subject}`: {_listed(candidates)}",
                status=ExitStatus.UNKNOWN,
            )
        case None:
            raise _unknown(subject, catalog, options, what)
        case found:
            return ToolName(found)


def _unknown(
    subject: str, catalog: dict[str, Any], options: argparse.Namespace, what: str
) -> CommandError:
    if any(server["name"] == subject for server in catalog["servers"]):
        return CommandError(
            f"`{subject}` is a server and no tool",
            f"`aggregator inspect {subject}{view(options)}` lists its tools",
            ExitStatus.UNKNOWN,
        )
    if (ours := _own(subject, options)) is not None:
        return ours
    if (withheld := _withheld(subject, catalog, file_of(options))) is not None:
        return withheld
    close = _closest(subject, catalog, what)
    lists = f"`aggregator inspect{view(options)}` lists them"
    hint = f"The {closest(close)}" if close else lists
    absent = [server["name"] for server in catalog["servers"] if not is_known(server)]
    if absent:
        hint += f"; not ready, and so not known: {_listed(absent)}"
    if problem := catalog.get("problem"):
        hint += f"; what the file says now is not in use: {problem}"
    return CommandError(f"there is no {what} `{subject}`", hint, ExitStatus.UNKNOWN)


def _own(subject: str, options: argparse.Namespace) -> CommandError | None:
    """Say of a tool of ours, which is not in the catalog, which command does the same."""
    searches = f"`aggregator search{view(options)} QUERY` searches as it does"
    calls = f"`aggregator call{view(options)} TOOL key=value` calls a tool as it does"
    commands = {
        RESERVED.search: searches,
        RESERVED.call: calls,
        RESERVED.call_read_only: calls,
    }
    for name, command in commands.items():
        if subject.casefold() == name.casefold():
            problem = f"`{name}` is a tool of the aggregator itself, and of no server"
            return CommandError(problem, command, ExitStatus.UNKNOWN)
    return None


def _withheld(subject: str, catalog: dict[str, Any], there: str | None) -> CommandError | None:
    """Say of a tool that is not as it was approved why it is not there."""
    where = "" if there is not None else ", on the machine that it runs on,"
    for server in catalog["servers"]:
        for drift in server.get("drift", ()):
            names = (drift["tool"], f"{server['name']}__{drift['tool']}")
            if drift["withheld"] and subject in names:
                return CommandError(
                    f"`{subject}` is withheld: it {', '.join(drift['details'])}",
                    f"`aggregator lock --diff {subject}{there or ''}`{where} shows what is "
                    f"different, and `aggregator approve {subject}{there or ''}` approves it",
                    ExitStatus.UNKNOWN,
                )
    return None


def _closest(subject: str, catalog: dict[str, Any], what: str) -> list[str]:
    """Return the names most like one that does not exist, of what is asked for."""
    # A server is not meant by the whole name of a tool, which begins with the server's.
    servers = catalog["servers"] if "server" in what and "__" not in subject else ()
    near = nearest(subject, [server["name"] for server in servers], 1)
    tools = nearest(subject, [tool["name"] for tool in catalog["tools"]])
    return [*near, *tools][:SUGGESTED]


def _catalog(peer: Peer) -> dict[str, Any]:
    listed = peer.request("tools/list", {})["tools"]
    catalog = {**peer.read(SERVERS_URI), **peer.read(TOOLS_URI)}
    catalog["visible"] = [tool["name"] for tool in listed]
    catalog["advice"] = advise(listed, catalog["tools"], catalog["servers"])
    return catalog


def _listed(names: tuple[ToolName, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
