"""`aggregator lock`: write down what every server offers, or hold it against what was written."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from aggregator.basics.json import JsonObject
from aggregator.catalog.lock import Drift, Kind, Lock, Record, merged
from aggregator.cli.comparing import compared
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.locking import (
    Offered,
    ask,
    begin,
    brought,
    compared_of,
    differences,
    pinned,
    place_of,
    read_lock,
    refuse_unpinned,
    rewrite,
    tell_absent,
    tell_altered,
    write_lock,
)
from aggregator.cli.opening import owners, place
from aggregator.cli.pages import as_json, columns, counted
from aggregator.config import Config
from aggregator.names import ServerName

Found = Mapping[ServerName, Sequence[Drift]]

NOTHING = Record()


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Write the file, or say how it differs."""
    if options.merge:
        base, ours, theirs = map(environment.directory.joinpath, options.merge)
        return _merge(base, ours, theirs, environment)
    config = begin(options, environment)
    path = place_of(options, environment)
    lock = read_lock(path)
    tell_altered(lock or {}, path, environment)
    if not options.check and options.diff is None:
        return _write(path, lock, config, environment, options)
    if lock is None:
        raise CommandError(f"there is no `{path}`", f"`aggregator lock{place(options)}` writes it")
    subject: str = options.diff or ""
    only = owners(subject, config, place(options)) if subject else ()
    refuse_unpinned(only, config)
    offered = ask(config, environment, options.wait, only)
    found = differences(config, lock, offered)
    if options.diff is None:
        return _check(found, lock, offered, environment, options)
    return _diff(found, lock, offered, environment, options)


def _write(
    path: Path,
    before: Lock | None,
    config: Config,
    environment: Environment,
    options: argparse.Namespace,
) -> ExitStatus:
    offered = ask(config, environment, options.wait)
    known = before or {}
    found = {} if before is None else differences(config, known, offered)
    lock: Lock = {}

    def write(latest: Lock | None) -> Lock:
        nonlocal lock
        lock = {**_left(latest or {}, config, offered), **offered.records}
        return lock

    is_changed = rewrite(path, write)
    if options.json:
        environment.say(as_json(_document(found, offered)))
    elif found:
        environment.say(_table(found, known, offered, environment))
    tell_absent(offered, environment, known)
    for name in (each for each in known if each in config.servers and each not in lock):
        environment.note(f"`{name}` is left out from now on: it has `pin: false`")
    tools = counted(sum(len(each.tools) for each in lock.values()), "tool")
    what = f"{tools} of {counted(len(lock), 'server')}"
    done = "has" if is_changed else "still has"
    environment.note(f"`{path}` {done} {what}")
    return ExitStatus.UNAVAILABLE if offered.absent else ExitStatus.FINE


def _left(known: Lock, config: Config, offered: Offered) -> Lock:
    """Return what stays as it is known: of what did not come, or is switched off."""
    # What is gone from the configuration is gone.
    return {
        name: record
        for name, record in known.items()
        if name in offered.absent
        or (name in config.servers and config.servers[name].pin and name not in pinned(config))
    }


def _check(
    found: Found,
    lock: Lock,
    offered: Offered,
    environment: Environment,
    options: argparse.Namespace,
) -> ExitStatus:
    if options.json:
        environment.say(as_json(_document(found, offered)))
    elif found:
        environment.say(_table(found, lock, offered, environment))
    tell_absent(offered, environment)
    differing = sum(_is_drift({name: drifts}) for name, drifts in found.items())
    if offered.absent or differing:
        how = f"differences in {differing}" if differing else "no difference"
        environment.note(f"{compared_of(offered)}, {how}")
    if differing:
        name, what = "NAME", "a tool or a server"
        if len(found) == 1:
            name, what = next(iter(found)), "what it offers now"
        environment.note(
            f"`aggregator lock --diff{place(options)}` shows old and new,\n"
            f"`aggregator approve {name}{place(options)}` approves {what}"
        )
        return ExitStatus.ERROR
    if offered.absent:
        return ExitStatus.UNAVAILABLE
    environment.note("Every tool is as it was approved")
    return ExitStatus.FINE


def _is_drift(found: Found) -> bool:
    return any(each.kind is not Kind.NOTATION for drifts in found.values() for each in drifts)


def _diff(
    found: Found,
    lock: Lock,
    offered: Offered,
    environment: Environment,
    options: argparse.Namespace,
) -> ExitStatus:
    subject: str = options.diff
    pages = [
        compared(
            f"{offered.name(server, drift.tool)} {', '.join(drift.details)}",
            _definition(lock.get(server, NOTHING), drift),
            _definition(offered.records.get(server, NOTHING), drift),
            environment.paper,
        )
        for server, drift in _each(found)
        if _is_meant(subject, server, drift, offered)
    ]
    tell_absent(offered, environment)
    if pages:
        environment.say("\n\n".join(pages))
    elif subject and not _is_known(subject, lock, offered):
        raise CommandError(
            f"there is no server or tool `{subject}`",
            f"`aggregator inspect{place(options)}` lists them",
            ExitStatus.UNKNOWN,
        )
    elif not offered.absent:
        environment.note(f"{subject or 'Every tool'} is as it was approved")
    return ExitStatus.UNAVAILABLE if offered.absent and not pages else ExitStatus.FINE


def _definition(record: Record, drift: Drift) -> JsonObject | None:
    """Return what is written down of what differs; a server's instructions read as a tool's do."""
    if drift.tool:
        return record.tools.get(drift.tool)
    return {"description": record.instructions} if record.instructions else None


def _is_known(subject: str, lock: Lock, offered: Offered) -> bool:
    return any(
        _is_meant(subject, server, Drift(tool, Kind.NOTATION), offered)
        for records in (lock, offered.records)
        for server, record in records.items()
        for tool in ("", *record.tools)
    )


def _is_meant(subject: str, server: ServerName, drift: Drift, offered: Offered) -> bool:
    names = (server, drift.tool, f"{server}/{drift.tool}", offered.name(server, drift.tool))
    return not subject or subject in names


def _each(found: Found) -> Iterator[tuple[ServerName, Drift]]:
    """Yield what differs of all servers, the gravest first."""
    flat = [(server, drift) for server, drifts in found.items() for drift in drifts]
    yield from sorted(flat, key=lambda each: (each[1].kind, each[0], each[1].tool))


def _table(found: Found, lock: Lock, offered: Offered, environment: Environment) -> str:
    # Of a server that is not configured any more, or not known yet, one line is enough.
    gone = found.keys() - offered.records.keys()
    new = found.keys() - gone - lock.keys()
    rows = [
        (drift.kind.name.lower(), offered.name(server, drift.tool), ", ".join(drift.details))
        for server, drift in _each(found)
        if server not in gone and server not in new
    ]
    rows += [
        ("new", server, f"is not in the lock yet, with {brought(found[server])}")
        for server in sorted(new)
    ]
    rows += [
        (
            "removed",
            server,
            f"is not configured any more, with {counted(len(found[server]), 'tool')}",
        )
        for server in sorted(gone)
    ]
    return columns(("CLASS", "TOOL", "WHAT"), rows, environment.paper)


def _document(found: Found, offered: Offered) -> dict[str, object]:
    return {
        "drift": [
            {
                "server": server,
                "tool": drift.tool,
                "name": offered.name(server, drift.tool),
                "kind": drift.kind.name.lower(),
                "details": list(drift.details),
            }
            for server, drift in _each(found)
        ],
        "absent": [{"server": name, "reason": why} for name, why in offered.absent.items()],
    }


def _merge(base: Path, ours: Path, theirs: Path, environment: Environment) -> ExitStatus:
    """Put two versions of the file together in the place of ours, as git asks for it."""
    old, mine, other = (_version(each) for each in (base, ours, theirs))
    lock, conflicts = merged(old, mine, other)
    altered = [
        tell_altered(each, path, environment) for each, path in ((mine, ours), (other, theirs))
    ]
    write_lock(ours, lock)
    for each in conflicts:
        environment.warn(f"`{each}` was changed on both sides; ours is kept")
    return ExitStatus.ERROR if conflicts or any(altered) else ExitStatus.FINE


def _version(path: Path) -> Lock:
    """Return what one version of the file says; git has an empty one for what was not there."""
    with suppress(OSError):
        if path.is_file() and not path.stat().st_size:
            return {}
    lock = read_lock(path)
    if lock is None:
        hint = "`--merge BASE OURS THEIRS` takes three versions of the file, as git has them"
        raise CommandError(f"there is no `{path}`", hint)
    return lock
