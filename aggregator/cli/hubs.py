"""The hubs that run for this person, of whatever version, and what they are asked."""

import _socket
import json
import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any, NamedTuple

from aggregator.cli.environment import CommandError, Environment
from aggregator.entry.hub_socket import (
    SOCKET,
    HubSocket,
    HubSocketError,
    directory,
    open_hub_socket,
    peer,
)
from aggregator.entry.shim import STATUS, STOP, hello, send

PATIENCE = 10.0
"""Seconds that a hub has to answer."""
PARTING = 20.0
"""Seconds that it has to end, with all its servers."""
PAUSE = 0.05
READ_AT_ONCE = 1 << 16


class Running(NamedTuple):
    """A hub that runs."""

    process: int
    report: dict[str, Any] | None
    """What it says of itself; nothing if it does not answer."""


def hub_socket_of(environment: Environment) -> HubSocket | None:
    """Return where hubs are met, or nothing where none has ever been.

    Raises:
        CommandError: It is not this person's alone.
    """
    if environment.platform == "win32" or not os.path.lexists(directory(environment.variables)):
        return None
    try:
        return open_hub_socket(environment.variables)
    except HubSocketError as error:
        raise CommandError(str(error)) from None


def running(environment: Environment) -> Iterator[Running]:
    """Yield what each hub says of itself."""
    for connection in _connections(environment):
        with closing(connection):
            process = peer(connection)[0]
            answer = _asked(connection, STATUS)
            with suppress(ValueError):
                yield Running(process, json.loads(answer) if answer else None)


def stop(environment: Environment) -> list[tuple[int, bool]]:
    """Have every hub end; return which there were, and whether each has."""
    told: list[int] = []
    for connection in _connections(environment):
        with closing(connection):
            told.append(peer(connection)[0])
            _asked(connection, STOP)
    deadline = time.monotonic() + PARTING
    while any(map(_is_alive, told)) and time.monotonic() < deadline:
        time.sleep(PAUSE)
    return [(process, not _is_alive(process)) for process in told]


def _connections(environment: Environment) -> Iterator[_socket.socket]:
    hub_socket = hub_socket_of(environment)
    if hub_socket is None:
        return
    try:
        for name in sorted(os.listdir(hub_socket.path)):  # noqa: PTH208 - names are all that is wanted
            if name.endswith(SOCKET):
                with suppress(HubSocketError):
                    connection = hub_socket.connect(name)
                    if connection is not None:
                        yield connection
    finally:
        hub_socket.close()


def _asked(connection: _socket.socket, kind: str) -> bytes:
    """Return what a hub answers; nothing if it does not in time."""
    connection.settimeout(PATIENCE)
    parts: list[bytes] = []
    try:
        send(connection, hello(kind, "", "", {}))
        while chunk := connection.recv(READ_AT_ONCE):
            parts.append(chunk)
    except OSError:
        return b""
    return b"".join(parts)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True
