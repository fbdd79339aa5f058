"""Get to an aggregator: a running one by its address, or one of our own with what is needed."""

import argparse
import shlex
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import quote

from aggregator.cli.config_file import config_path, read_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.peer import Peer, serving
from aggregator.config import Config
from aggregator.names import Leads
from aggregator.names.forms import CLIENT_MARK

SEPARATORS = ("__", ".", "/", ":")
"""What people write between a server and its tool."""

NAMED = 10
"""Servers that are named where there may be many."""
SLIP = 0.8
"""How alike a word and a server's name are, of 1, if one is a slip of the other."""


@contextmanager
def opened(
    options: argparse.Namespace,
    environment: Environment,
    needed: Callable[[Config], Collection[str]] | None = None,
) -> Generator[Peer]:
    """Yield the aggregator to ask; one of our own starts only the servers that are needed.

    `needed` names them; none stands for all.
    """
    if options.url is None and needed is not None:
        only = needed(read_config(options, environment))
        with reached(options, environment, only) as peer:
            yield peer
        return
    if options.url is None and not config_path(options.config, environment).exists():
        read_config(options, environment)
    with reached(options, environment) as peer:
        if options.url is None:
            # Read after the start: both take their time.
            read_config(options, environment)
        yield peer


@contextmanager
def reached(
    options: argparse.Namespace,
    environment: Environment,
    only: Collection[str] = (),
    *,
    afresh: bool = False,
) -> Generator[Peer]:
    """Yield the aggregator to ask: a fleet that runs, or one of our own with these servers or all.

    What is to start `afresh` does so, unless it is about servers that are named and run.
    """
    afresh = afresh or getattr(options, "live", False)
    profile: str = getattr(options, "profile", None) or ""
    if options.url is not None:
        from aggregator.cli.reach import Remote, shown_token  # noqa: PLC0415 - most ask their own

        url = f"{options.url.rstrip('/')}/{quote(profile)}" if profile else options.url
        yield Remote(url, shown_token(options, environment))
        return
    if options.token_file is not None:
        raise CommandError("`--token-file` is of use only with `--url`", status=ExitStatus.USAGE)
    path = config_path(options.config, environment)
    with _running(path, environment, only, afresh=afresh, profile=profile) as running:
        if running is not None:
            yield running
            return
    with serving(path, environment, only, afresh=afresh, profile=profile) as peer:
        yield peer


@contextmanager
def _running(
    path: Path, environment: Environment, only: Collection[str], *, afresh: bool, profile: str
) -> Generator[Peer | None]:
    """Yield the fleet that clients share, where it can tell what is asked."""
    if environment.platform == "win32" or (afresh and not only):
        yield None
        return
    from aggregator.cli.joining import joined  # noqa: PLC0415 - no server runs on Windows

    with joined(path, environment, profile) as guest:
        # What was asked afresh must not be told from memory.
        is_told = guest is not None and (not afresh or guest.has_ready(only))
        yield guest if is_told else None


def owners(subject: str, config: Config, there: str = "") -> list[str]:
    """Return the servers that a name can belong to; none if it may be any of them.

    `there` is what commands are told to see the same.

    Raises:
        CommandError: The server is disabled, or there is none that can be meant.
    """
    meant = subject.casefold()
    found = [
        server
        for name, server in config.servers.items()
        if meant == name.casefold() or meant.startswith(_known_head(name, server.prefix))
    ]
    for server in found:
        if not server.enabled:
            raise CommandError(
                f"the server `{server.name}` is disabled in `{config.path}`",
                "Set its `enabled` to true there",
                ExitStatus.UNKNOWN,
            )
    if not found:
        _refuse_slip(subject, config, there)
    return [server.name for server in found]


def _refuse_slip(subject: str, config: Config, there: str) -> None:
    """Refuse, before anything starts, what names no server where it should or almost does.

    Raises:
        CommandError: It is so.
    """
    leads = {name: server.prefix for name, server in config.servers.items()}
    lead, separator, _tool = subject.partition("__")
    close = get_close_matches(lead, config.servers, 1, SLIP)
    is_led = separator and all(leads.values()) and not lead.casefold().startswith(CLIENT_MARK)
    if is_led and not Leads(leads).addressed(subject):
        names = [f"`{name}`" for name in leads]
        more = f" and {len(names) - NAMED} more" if names[NAMED:] else ""
        hint = f"There are {', '.join(names[:NAMED])}{more}"
        if not names:
            hint = "`aggregator add` adds one"
        if close:
            # Which tool of it is meant, only the server knows.
            lists = f"`aggregator inspect {close[0]}{there}` lists its tools"
            hint = f"Did you mean the server `{close[0]}`? {lists}"
        raise CommandError(f"there is no server `{lead}`", hint, ExitStatus.UNKNOWN)
    if close and not separator:
        raise CommandError(
            f"there is no server `{subject}`",
            f"Did you mean `{close[0]}`? A tool is named with its server: `SERVER__{subject}`",
            ExitStatus.UNKNOWN,
        )


def place(options: argparse.Namespace) -> str:
    """Return how the next command is told to ask the same aggregator."""
    names = ("url", "token_file") if getattr(options, "url", None) else ("config",)
    return _given(options, *names)


def view(options: argparse.Namespace) -> str:
    """Return how the next `inspect`, `search` or `call` is told to see the same as this one."""
    return place(options) + _given(options, "profile")


def file_of(options: argparse.Namespace) -> str | None:
    """Return what commands about the file are told; nothing if it is on another machine."""
    return None if getattr(options, "url", None) else place(options)


def _given(options: argparse.Namespace, *names: str) -> str:
    given = ((name.replace("_", "-"), getattr(options, name, None)) for name in names)
    return "".join(f" --{name} {shlex.quote(value)}" for name, value in given if value)


def chosen(names: Sequence[str], known: Collection[str], there: str = "") -> list[str]:
    """Return the servers that a person names; `there` is where else to look.

    Raises:
        CommandError: There is no such server.
    """
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, 1)
            lists = f"`aggregator inspect{there}` lists them"
            hint = f"Did you mean `{close[0]}`?" if close else lists
            raise CommandError(f"there is no server `{name}`", hint, ExitStatus.UNKNOWN)
    return list(dict.fromkeys(names))


def _known_head(name: str, prefix: str) -> tuple[str, ...]:
    leads = {name.casefold(), prefix.casefold()} - {""}
    return tuple(f"{lead}{separator}" for lead in leads for separator in SEPARATORS)
