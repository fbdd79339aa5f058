"""`aggregator login`: have a person log in to a server, or tell which logins there are."""

import argparse
import logging
import os
import stat
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit

import anyio
import anyio.abc
from anyio import to_thread

from aggregator.cli.browser import open_browser
from aggregator.cli.config_file import read_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.opening import chosen, place
from aggregator.cli.pages import as_json, columns
from aggregator.config import Config, ServerConfig
from aggregator.downstream.login.callback import Callback, LoginError
from aggregator.downstream.login.file import LoginFileError
from aggregator.downstream.login.place import Logins, open_logins
from aggregator.downstream.login.record import Login
from aggregator.names import ServerName

NONE = "none"


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Log in to one server, or list the logins to all."""
    config = read_config(options, environment, quiet=True)
    logins = logins_of(config, environment)
    if options.name is None:
        environment.say(_listing(config, logins, environment, as_data=options.json))
        return ExitStatus.FINE
    server = server_of(options, config)
    _check(server, place(options))
    return anyio.run(partial(_log_in, server, logins, options, environment))


def logins_of(config: Config, environment: Environment) -> Logins:
    """Return where logins are kept.

    Raises:
        CommandError: Nothing says where.
    """
    logins = open_logins(environment.variables, config.path)
    if logins is None:
        raise CommandError("the variable `HOME` is not set, so there is no place to keep a login")
    return logins


def server_of(options: argparse.Namespace, config: Config) -> ServerConfig:
    """Return the server that a person names.

    Raises:
        CommandError: There is none of that name.
    """
    (name,) = chosen([options.name], config.servers, place(options))
    return config.servers[ServerName(name)]


def _check(server: ServerConfig, there: str) -> None:
    name = server.name
    if server.problem is not None:
        raise CommandError(f"`{name}`: {server.problem}")
    if server.url is None:
        raise CommandError(
            f"`{name}` is a program on this machine, and only servers with a `url` take a login",
            "If it needs a credential, write it under its `env`",
            ExitStatus.USAGE,
        )
    if not server.may_log_in:
        raise CommandError(
            f"`{name}` is given its credentials in servers.yaml, so nobody logs in to it",
            "Take them out of its `headers`, or write `oauth: true` beside them",
            ExitStatus.USAGE,
        )
    if server.oauth and server.oauth.grant == "client_credentials":
        raise CommandError(
            f"`{name}` is used without a person (`grant: client_credentials`)",
            f"`aggregator check {name}{there}` tries it",
            ExitStatus.USAGE,
        )


async def _log_in(
    server: ServerConfig, logins: Logins, options: argparse.Namespace, environment: Environment
) -> ExitStatus:
    # What this takes to load is felt, and `aggregator login` alone has no use for it.
    from aggregator.downstream.login.flow import Done, log_in  # noqa: PLC0415 - see above

    # How often something is tried on the way is nothing that a person waits to hear.
    logging.getLogger("aggregator").setLevel(logging.ERROR)
    desk = _Desk(server, environment, opens_browser=not options.no_browser)
    done: Done | LoginError = LoginError(
        f"nobody logged in within {options.timeout:g} s",
        "An earlier login still holds; `--timeout` gives more time",
    )
    async with anyio.create_task_group() as group:
        with anyio.move_on_after(options.timeout):
            try:
                done = await log_in(
                    server,
                    logins.file(server),
                    show=desk.show,
                    meet=partial(_start_soon, group, desk),
                    scopes=tuple(options.scope.split()),
                    warn=environment.warn,
                )
            except LoginError as error:
                done = error
        group.cancel_scope.cancel()
    if isinstance(done, LoginError):
        raise CommandError(f"`{server.name}`: {done}", done.hint)
    if done.problem:
        raise CommandError(f"`{server.name}`: logged in, but then {done.problem}")
    count = done.tools or 0
    tools = f"{count} tool{'' if count == 1 else 's'}"
    scope = f"; scopes {done.login.scope}" if done.login.scope else ""
    environment.tell(f"{server.name}: logged in, {tools}{scope}; {_lasts(done.login)}")
    return ExitStatus.FINE


def _start_soon(group: anyio.abc.TaskGroup, desk: "_Desk", callback: Callback) -> None:
    group.start_soon(desk.listen, callback)


def _lasts(login: Login) -> str:
    if login.refresh_token is not None:
        return "renews by itself"
    if login.expires_at is None:
        return "lasts until it is revoked"
    return f"lasts until {_time(login.expires_at)}, and cannot be renewed without you"


class _Desk:
    """What a person sees of a login, and what they type."""

    def __init__(
        self, server: ServerConfig, environment: Environment, *, opens_browser: bool
    ) -> None:
        self._server = server
        self._environment = environment
        self._opens_browser = opens_browser
        self._uri = ""

    async def show(self, address: str, issuer: str) -> None:
        """Say where to log in, and go there if there is a browser."""
        host = urlsplit(self._server.url or "").hostname
        what = f"log in to {self._server.name} ({host}, by {issuer})"
        opened = self._opens_browser and await to_thread.run_sync(
            open_browser, address, self._environment.variables
        )
        note = self._environment.note
        if opened:
            note(f"Your browser opens, for you to {what}.")
            note("If nothing opens, or it opens on another machine, go to")
        else:
            note(f"To {what}, go to")
        note(f"  {address}")
        if self._can_paste():
            note(f"and paste here the address you end up at (it begins with {self._uri}):")

    async def listen(self, callback: Callback) -> None:
        """Take what a person pastes, for as long as there is one."""
        self._uri = callback.uri
        while self._can_paste():
            try:
                await anyio.wait_readable(self._environment.stdin)
            except OSError:
                # Some systems cannot wait for a terminal; the browser still comes back.
                return
            line = self._environment.read_line()
            if not line:
                return
            if (wrong := callback.paste(line)) is not None:
                self._environment.note(wrong)

    def _can_paste(self) -> bool:
        """Whether somebody may type, or a program may write, what we can wait for."""
        try:
            mode = os.fstat(self._environment.stdin.fileno()).st_mode
        except (OSError, ValueError):
            return False
        return self._environment.stdin.isatty() or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _listing(config: Config, logins: Logins, environment: Environment, *, as_data: bool) -> str:
    """Tell of each server that may want one what login there is."""
    rows = [_row(server, logins) for server in config.servers.values() if server.may_log_in]
    if as_data:
        names = ("server", "login", "scopes", "issuer")
        return as_json({"logins": [dict(zip(names, row, strict=True)) for row in rows]})
    if not rows:
        return "No server in servers.yaml takes a login"
    return columns(("SERVER", "LOGIN", "SCOPES", "ISSUER"), rows, environment.paper)


def ending_logins(config: Config, environment: Environment) -> Iterator[str]:
    """Yield which logins are good now, and will have to be made anew by their user."""
    logins = open_logins(environment.variables, config.path)
    now = datetime.now().timestamp()  # noqa: DTZ005 - a moment is one everywhere
    for server in config.servers.values() if logins else ():
        if logins is None or not server.may_log_in:
            continue
        try:
            login = logins.file(server).read()
        except LoginFileError:
            continue
        if login and login.expires_at and login.is_valid(now) and not login.is_renewable:
            yield f"{server.name}: you will be asked to log in again at {_time(login.expires_at)}"


def _row(server: ServerConfig, logins: Logins) -> tuple[str, str, str, str]:
    try:
        login = logins.file(server).read()
    except LoginFileError as error:
        return server.name, f"unusable: {error}", "", ""
    if login is None:
        return server.name, NONE, "", ""
    return server.name, describe(login, datetime.now().timestamp()), login.scope, login.issuer  # noqa: DTZ005


def describe(login: Login, now: float) -> str:
    """Say of a login how good it is."""
    if login.lost is not None and not login.is_valid(now):
        return f"lost: {login.lost}"
    if login.is_renewable:
        return "renews by itself" if login.is_valid(now) else "renewed when it is used"
    if login.expires_at is None:
        return "valid"
    return f"valid until {_time(login.expires_at)}" if login.is_valid(now) else "expired"


def _time(moment: float) -> str:
    when = datetime.fromtimestamp(moment)  # noqa: DTZ006 - on the clock of the person
    today = datetime.now().date()  # noqa: DTZ005 - the same
    return when.strftime("%H:%M" if when.date() == today else "%Y-%m-%d %H:%M")
