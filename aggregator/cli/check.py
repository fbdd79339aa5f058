"""`aggregator check`: is the file right, and is every server there and in good order?"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from aggregator.cli.config_file import config_path, tell_file
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.issuers import tell_logins
from aggregator.cli.lint import SEVERITIES, Finding, Severity, gathered, lint
from aggregator.cli.opening import chosen, file_of, place, reached
from aggregator.cli.pages import (
    all_changed,
    as_json,
    beside,
    columns,
    counted,
    is_known,
    last_time,
    noise_of,
    why_not,
)
from aggregator.cli.paper import Colour, Paper
from aggregator.cli.peer import Peer
from aggregator.cli.profiles import unmatched
from aggregator.cli.regressions import run_searches
from aggregator.cli.saving import advise
from aggregator.cli.sdk_version import tell_older_sdk
from aggregator.cli.starting import TURNS, Server, await_servers, is_starting
from aggregator.cli.stores import tell_shared
from aggregator.cli.unready import audit_trouble, counting_trouble
from aggregator.cli.withheld import tell_withheld
from aggregator.config import Config, load_config
from aggregator.names import ServerName
from aggregator.records.inspection import SERVERS_URI, TOOLS_URI

SHOWN = 3
"""Tools that are named where there may be many."""
LEEWAY = 10.0
"""Seconds that we and the machine may take to start servers, beside the time they have."""
LAST_WORDS = 5
"""Lines of what a server wrote before it failed; `inspect` has more."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Report on the file and on each server; the worst finding decides the exit status."""
    if options.searches is not None:
        return run_searches(options, environment)
    if options.lock:
        hint = f"`aggregator lock --check{place(options)}` compares servers with `servers.lock`"
        raise CommandError(
            "`--lock` is of use only with `--searches`", hint, status=ExitStatus.USAGE
        )
    path = config_path(options.config, environment)
    config = Config(path) if options.url else load_config(path, environment.variables)
    if not options.url:
        tell_file(path, environment)
    wanted = [] if options.url else chosen(options.servers, config.servers, place(options))
    findings = [] if options.url else _concerning(wanted, lint(config, environment.variables))
    patience = _patience(config, wanted, options.wait)
    with reached(options, environment, wanted, afresh=True) as peer:
        servers = await_servers(peer, environment, patience, quiet=options.url is not None)
        if options.url:
            wanted = chosen(options.servers, [server["name"] for server in servers], place(options))
            servers = [each for each in servers if not wanted or each["name"] in wanted]
        # What a server could not start for is said in the words that it is said in everywhere.
        told = {server["name"] for server in servers if server["reason"]}
        findings = [
            each for each in findings if each.severity != "error" or each.server not in told
        ]
        known = {finding.server for finding in findings if finding.severity == "error"}
        findings.extend(_found(peer, servers, known, patience, config))
        findings.extend(_drifted(servers, file_of(options)))
        findings.extend(_troubles(peer.read(SERVERS_URI)))
        if options.url:
            findings.extend(_unused(peer))
        else:
            findings.extend(_withheld(peer, servers, config, environment))
            findings.extend(_idle_rules(peer, servers, config))
            findings.extend(tell_logins(config, wanted))
            findings.extend(() if wanted else tell_shared(config.settings.http.replicas))
        advice = "" if wanted else _advice(peer, servers)
        findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
        # When a running one became ready is not known here.
        seconds = None if options.url else peer.seconds
        reports = [_report(server, seconds) for server in servers]
        disabled = _disabled(config, wanted)
        if options.json:
            found = list(map(asdict, findings))
            report = {"servers": reports, "disabled": disabled, "findings": found}
            where = options.url or str(path)
            environment.say(as_json({"file": where, **report, "advice": advice}))
        else:
            page = _page(reports, disabled, gathered(findings), environment.paper)
            environment.say(f"{page}\n\n{environment.paper.fill(advice)}" if advice else page)
    return _status(servers, findings, strict=options.strict)


def _troubles(catalog: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what of the file's own wishes is not done."""
    if trouble := audit_trouble(catalog):
        yield Finding("error", "", trouble)
    if trouble := counting_trouble(catalog):
        yield Finding("warning", "", trouble)


def _advice(peer: Peer, servers: Sequence[Server]) -> str:
    return advise(peer.request("tools/list", {})["tools"], peer.read(TOOLS_URI)["tools"], servers)


def _concerning(wanted: Sequence[str], findings: Sequence[Finding]) -> list[Finding]:
    """Return what concerns these servers, or the whole file."""
    return [each for each in findings if not wanted or not each.server or each.server in wanted]


def _disabled(config: Config, wanted: Sequence[str]) -> list[str]:
    names = [name for name, server in config.servers.items() if not server.enabled]
    return [name for name in names if not wanted or name in wanted]


def _status(servers: Sequence[Server], findings: Sequence[Finding], *, strict: bool) -> ExitStatus:
    absent = {server["state"] for server in servers if not _is_well(server)}
    if absent - {"needs login"}:
        return ExitStatus.UNAVAILABLE
    if absent:
        return ExitStatus.NEEDS_LOGIN
    bad = ("error", "warning") if strict else ("error",)
    failed = any(finding.severity in bad for finding in findings)
    return ExitStatus.ERROR if failed else ExitStatus.FINE


def _is_well(server: Server) -> bool:
    """Return whether a server is there, or rests and started when it was last needed."""
    return is_known(server) and not server["reason"]


def _patience(config: Config, wanted: Sequence[str], wait: float | None) -> float:
    """Give each server the time its own configuration gives it, and its turn, unless told."""
    if wait is not None:
        return wait
    limits = [
        each.connect_timeout
        for each in config.enabled.values()
        if not wanted or each.name in wanted
    ]
    return TURNS * max(limits, default=0) + LEEWAY


def _report(server: Server, seconds: float | None) -> dict[str, Any]:
    since = None if seconds is None or server["state"] != "ready" else seconds - server["seconds"]
    return {
        "name": server["name"],
        "state": server["state"],
        "secondsToReady": None if since is None else round(max(0.0, since), 1),
        "tools": server["tools"],
        "tokens": server.get("tokens", 0),
        "version": server.get("version", ""),
    }


def _found(
    peer: Peer, servers: Sequence[Server], known: set[str], patience: float, config: Config
) -> Iterator[Finding]:
    """Yield what only a running server tells."""
    tools: list[dict[str, Any]] = peer.read(TOOLS_URI)["tools"]
    for server in servers:
        name: str = server["name"]
        if _is_well(server):
            own = [tool for tool in tools if tool["server"] == name]
            yield from (Finding("warning", name, text) for text in _oddities(server, own))
            yield from (Finding("hint", name, text) for text in _hints(own, config))
            # An older aggregator at `--url` does not count it.
            if server.get("noise"):
                yield Finding("hint", name, noise_of(server))
        elif name not in known:
            reason = last_time(server) or why_not(server, patience if is_starting(server) else None)
            # While it hangs at its first start, only the log has what it wrote.
            said = server.get("stderr") or peer.last_words(name)
            words = beside(said, reason)
            yield Finding("error", name, "\n  ".join([reason, *words[-LAST_WORDS:]]))


def _withheld(
    peer: Peer, servers: Sequence[Server], config: Config, environment: Environment
) -> Iterator[Finding]:
    """Yield what a server misses, by its own words, and could be given or run with."""
    for server in servers:
        name: str = server["name"]
        words = server.get("stderr") or peer.last_words(name)
        configured = config.servers[ServerName(name)]
        if (told := tell_withheld(words, configured, environment.variables)) is not None:
            yield Finding("warning", name, told)
        if not is_known(server) and (told := tell_older_sdk(words, configured)) is not None:
            yield Finding("warning", name, told)


def _idle_rules(peer: Peer, servers: Sequence[Server], config: Config) -> Iterator[Finding]:
    """Yield what profiles say of nothing that the servers have."""
    if not config.settings.profiles:
        return
    ready = [ServerName(each["name"]) for each in servers if is_known(each)]
    tools: list[dict[str, Any]] = peer.read(TOOLS_URI)["tools"]
    named = {name: [each["tool"] for each in tools if each["server"] == name] for name in ready}
    for prompt in peer.request("prompts/list", {})["prompts"]:
        lead, _, own = prompt["name"].partition("__")
        for name in ready:
            if config.servers[name].prefix in ("", lead):
                named[name].append(own or lead)
    yield from (Finding("warning", "", text) for text in unmatched(config, named))


def _unused(peer: Peer) -> Iterator[Finding]:
    """Yield why a running aggregator does not use its file as it is now."""
    if problem := peer.read(SERVERS_URI)["problem"]:
        yield Finding("error", "", f"{problem}; going on with the configuration in use")


def _oddities(server: Server, tools: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from server["refused"]
    yield from server["unmatched"]
    if not tools and not server.get("drift"):
        yield "no tools are offered, or none that `tools` allows"


def _drifted(servers: Sequence[Server], there: str | None) -> Iterator[Finding]:
    """Yield which servers offer something else than was approved."""
    for name, told in all_changed(servers, there):
        yield Finding("warning", name, told)


def _hints(tools: Sequence[dict[str, Any]], config: Config) -> Iterator[str]:
    """Yield what works, and could be better."""
    shortened = [
        tool["name"]
        for tool in tools
        if not _is_whole(tool["name"], _called(tool["server"], tool["tool"], config))
    ]
    if shortened:
        yield f"names were changed to fit every client: {_listed(shortened)}"
    silent = [tool["tool"] for tool in tools if not tool["description"]]
    if silent:
        yield f"tools do not say what they do: {_listed(silent)}"


def _called(server: str, tool: str, config: Config) -> str:
    """Return what the configuration calls a tool."""
    entry = config.servers.get(ServerName(server))
    return tool if entry is None else entry.renamed(tool)


def _is_whole(name: str, own_name: str) -> bool:
    """Return whether a tool kept its name; other letters for `-` and `.` are no loss."""
    plain = "".join(each if each.isalnum() else "_" for each in own_name)
    return name.endswith((own_name, plain))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if names[SHOWN:] else shown


def _page(
    reports: Sequence[dict[str, Any]],
    disabled: Sequence[str],
    findings: Sequence[Finding],
    paper: Paper,
) -> str:
    rows = [_row(report) for report in reports]
    head = ("SERVER", "STATE", "READY", "TOOLS", "TOKENS", "VERSION")
    table = columns(head, rows, paper) if rows else "There is no server to start"
    names = ", ".join(f"`{name}`" for name in disabled)
    unused = paper.fill(f"Disabled, and so not checked: {names}") if disabled else ""
    lines = [_line(finding, paper) for finding in findings]
    parts = (table, unused, "\n".join(lines), _sum(findings))
    return "\n\n".join(part for part in parts if part)


def _row(report: dict[str, Any]) -> tuple[str, ...]:
    seconds = report["secondsToReady"]
    known = is_known(report)
    return (
        report["name"],
        report["state"],
        "-" if seconds is None else f"{seconds:.1f} s",
        str(report["tools"]) if known else "-",
        f"{report['tokens']:,}" if known else "-",
        report["version"],
    )


_COLOURS: Mapping[Severity, Colour] = {"error": "red", "warning": "yellow", "hint": "dim"}


def _line(finding: Finding, paper: Paper) -> str:
    kind = f"{finding.severity}:"
    told = paper.fill(f"{kind} {finding.about}").removeprefix(kind)
    return paper.paint(kind, _COLOURS[finding.severity]) + told


def _sum(findings: Sequence[Finding]) -> str:
    numbers = Counter(finding.severity for finding in findings)
    said = [_counted(numbers[severity], severity) for severity in SEVERITIES]
    return ", ".join(said if numbers["hint"] else said[:-1])


def _counted(number: int, what: str) -> str:
    return counted(number, what) if number else f"no {what}s"
