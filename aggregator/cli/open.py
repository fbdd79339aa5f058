"""`aggregator open`: a page that shows what happens, in a person's browser."""

import argparse
import logging
import secrets
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

from aggregator.cli.browser import open_browser
from aggregator.cli.config_file import config_path
from aggregator.cli.doorway import Door, code_of, page_of
from aggregator.cli.environment import Environment, ExitStatus
from aggregator.cli.opening import place
from aggregator.cli.serve import prepare

TOKEN_BYTES = 32


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Show the page of a door that is open, or open one until told to stop."""
    if environment.platform != "win32" and _show_running(options, environment):
        return ExitStatus.FINE
    return start(options, environment)


def start(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Open a door of our own that only whoever opens the page knows, until told to stop.

    What it shows are the servers of a hub, where one runs those of the same configuration.
    """
    config, lines = prepare(options, environment, logging.WARNING)
    # It takes longer to load than a door that is open already takes to be found.
    from aggregator.cli.door import serve_door, stats_of  # noqa: PLC0415 - see above
    from aggregator.cli.joining import joined  # noqa: PLC0415 - see above
    from aggregator.upstream.http.binding import LOOPBACK, Binding  # noqa: PLC0415 - see above
    from aggregator.upstream.http.serving import Access, Listener  # noqa: PLC0415 - see above

    token = secrets.token_urlsafe(TOKEN_BYTES)
    access = Access(
        Binding(LOOPBACK, 0),
        None,
        token,
        stats=stats_of(config, environment),
        shows_arguments=options.show_arguments,
        has_no_auth=False,
    )

    def show(listener: Listener) -> None:
        # Some browsers are waited for until they are there.
        asked = Door(listener.near, token=token), token, options, environment
        Thread(target=_show, args=asked, kwargs={"is_ours": True}, daemon=True).start()

    with joined(config.path, environment) as guest:
        is_shared = guest is not None
    return serve_door(
        access,
        config,
        environment,
        lines.expect,
        on_open=show,
        confides=True,
        is_shared=is_shared,
    )


def _show_running(options: argparse.Namespace, environment: Environment) -> bool:
    """Show the page of a door that serves the same file now, if there is one."""
    # There is no such thing on Windows, where nothing is served.
    from aggregator.cli.doors import open_door  # noqa: PLC0415 - see above

    door = open_door(config_path(options.config, environment), environment)
    if door is None:
        return False
    if options.show_arguments:
        environment.warn("an aggregator that runs already serves the page; its own option decides")
    token = door.token
    if door.token_file is not None:
        try:
            token = Path(door.token_file).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            token = None
    _show(door, token, options, environment, is_ours=False)
    return True


def _show(
    door: Door,
    token: str | None,
    options: argparse.Namespace,
    environment: Environment,
    *,
    is_ours: bool,
) -> None:
    """Open the page in a browser that a person can see, or say where it is."""
    page = page_of(door)
    # What stands behind a `#` stays in the browser: it is in no request, and so in no log.
    address = page if token is None else f"{page}#token={token}"
    if not options.no_browser and _is_opened(page, door, token, environment.variables):
        environment.note(f"Your browser opens {page}")
    else:
        environment.say(address)
    if is_ours:
        environment.note(
            f"Ctrl-C ends it; until then, `aggregator open{place(options)}` opens it again"
        )


def _is_opened(page: str, door: Door, token: str | None, variables: Mapping[str, str]) -> bool:
    """Open the page in a browser; say whether there is one.

    What it is started with is seen by all users of the machine, so that has a code and no token.
    """
    if token is None:
        return open_browser(page, variables)
    code = code_of(door, token)
    return code is not None and open_browser(f"{page}#code={code}", variables)
