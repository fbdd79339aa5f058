"""`aggregator check`: is the file right, and is every server there and in good order?"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from aggregator.cli.config_file import config_path
from aggregator.cli.environment import Environment, ExitStatus
from aggregator.cli.lint import Finding, lint
from aggregator.cli.pages import as_json, columns
from aggregator.cli.peer import Peer, serving
from aggregator.cli.starting import Server, await_servers
from aggregator.config import Config, load_config
from aggregator.inspection import TOOLS_URI

SHOWN = 3
"""Tools that are named where there may be many."""
LAST_WORDS = 5
"""Lines of what a server wrote before it failed; `inspect` has more."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Report on the file and on each server; the worst finding decides the exit status."""
    path = config_path(options.config, environment)
    config = load_config(path, environment.variables)
    findings = lint(config, environment.variables)
    patience = _patience(config, options.wait)
    with serving(path, environment) as peer:
        servers = await_servers(peer, environment, patience)
        reports = [_report(server, peer.seconds) for server in servers]
        known = {finding.server for finding in findings if finding.severity == "error"}
        findings.extend(_found(peer, servers, known, patience))
    disabled = [name for name in config.servers if name not in config.enabled]
    if options.json:
        found = list(map(asdict, findings))
        report = {"file": str(path), "servers": reports, "disabled": disabled, "findings": found}
        environment.say(as_json(report))
    else:
        environment.say(_page(reports, disabled, findings, environment))
    return _status(findings, strict=options.strict)


def _status(findings: Sequence[Finding], *, strict: bool) -> ExitStatus:
    bad = ("error", "warning") if strict else ("error",)
    failed = any(finding.severity in bad for finding in findings)
    return ExitStatus.ERROR if failed else ExitStatus.FINE


def _patience(config: Config, wait: float | None) -> float:
    """Give each server the time its own configuration gives it, unless told otherwise."""
    limits = [server.connect_timeout for server in config.enabled.values()]
    return wait if wait is not None else max(limits, default=0) + 1


def _report(server: Server, seconds: float) -> dict[str, Any]:
    ready = server["state"] == "ready"
    return {
        "name": server["name"],
        "state": server["state"],
        "secondsToReady": round(max(0.0, seconds - server["seconds"]), 1) if ready else None,
        "tools": server["tools"],
        "tokens": server.get("tokens", 0),
        "version": server.get("version", ""),
    }


def _found(
    peer: Peer, servers: Sequence[Server], known: set[str], patience: float
) -> Iterator[Finding]:
    """Yield what only a running server tells."""
    tools: list[dict[str, Any]] = peer.read(TOOLS_URI)["tools"]
    for server in servers:
        name: str = server["name"]
        if server["state"] == "ready":
            own = [tool for tool in tools if tool["server"] == name]
            yield from (Finding("warning", name, text) for text in _oddities(server, own))
        elif name not in known:
            reason = server["reason"] or f"not ready within {patience:g} s"
            # While it hangs at its first start, only the log has what it wrote.
            words = (server.get("stderr") or peer.last_words(name))[-LAST_WORDS:]
            yield Finding("error", name, "\n  ".join([reason, *words]))


def _oddities(server: Server, tools: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from server["refused"]
    yield from server["unmatched"]
    shortened = [tool["name"] for tool in tools if not _is_whole(tool["name"], tool["tool"])]
    if shortened:
        yield f"names were changed to fit every client: {_listed(shortened)}"
    silent = [tool["tool"] for tool in tools if not tool["description"]]
    if silent:
        yield f"tools do not say what they do: {_listed(silent)}"
    if not tools:
        yield "offers no tools"


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
    environment: Environment,
) -> str:
    rows = [_row(report) for report in reports]
    head = ("SERVER", "STATE", "READY", "TOOLS", "TOKENS", "VERSION")
    table = columns(head, rows, style=environment.paint) if rows else "There is no server to start"
    names = ", ".join(f"`{name}`" for name in disabled)
    unused = f"Disabled, and so not checked: {names}" if disabled else ""
    lines = [_coloured(finding, environment) for finding in findings]
    parts = (table, unused, "\n".join(lines), _sum(findings))
    return "\n\n".join(part for part in parts if part)


def _row(report: dict[str, Any]) -> tuple[str, ...]:
    seconds = report["secondsToReady"]
    return (
        report["name"],
        report["state"],
        "-" if seconds is None else f"{seconds:.1f} s",
        str(report["tools"]),
        f"{report['tokens']:,}",
        report["version"],
    )


def _coloured(finding: Finding, environment: Environment) -> str:
    colour = "red" if finding.severity == "error" else "yellow"
    return f"{environment.paint(f'{finding.severity}:', colour)} {finding.about}"


def _sum(findings: Sequence[Finding]) -> str:
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    return f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number or 'no'} {what}s"
