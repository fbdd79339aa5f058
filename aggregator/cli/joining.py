"""Ask a fleet that runs in the hub already, instead of starting servers for one command."""

import _socket
import json
import socket
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from aggregator.cli.environment import CommandError, Environment
from aggregator.cli.hubs import hub_socket_of
from aggregator.cli.peer import PATIENCE, Json, Peer
from aggregator.entry.hub_socket import HubSocketError
from aggregator.entry.shim import ACCEPTED, JOIN, begin, hello, send
from aggregator.records.inspection import SERVERS_URI

ANSWERED_WITHIN = 5.0
"""Seconds that a hub has to say whether it has what we need."""
STANDARD_ERROR = 2


class Guest(Peer):
    """A client of a fleet that others use as well."""

    def __init__(self, stream: socket.socket) -> None:
        super().__init__()
        self._stream = stream
        self._lines = stream.makefile("rb")

    def has_ready(self, servers: Collection[str]) -> bool:
        """Say whether each of these servers runs now."""
        states = {each["name"]: each["state"] for each in self.read(SERVERS_URI)["servers"]}
        return all(states.get(name) == "ready" for name in servers)

    def close(self) -> None:
        """Leave as a client does; nothing that was there before ends for it."""
        self._lines.close()
        self._stream.close()

    def _exchange(self, request: Json) -> Iterator[Json]:
        try:
            self._stream.sendall(json.dumps(request).encode() + b"\n")
            while line := self._lines.readline():
                yield json.loads(line)
        except OSError as error:
            raise CommandError(f"the hub did not answer: {error}") from None


@contextmanager
def joined(config: Path, environment: Environment, profile: str = "") -> Generator[Guest | None]:
    """Yield the fleet that runs for the same configuration, if one does in a hub of ours."""
    connection = _connected(environment)
    if connection is None:
        yield None
        return
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    with ours, closing(connection):
        with theirs:
            given = (theirs.fileno(), theirs.fileno(), STANDARD_ERROR)
            is_in = _is_in(connection, config, environment, given, profile)
        if not is_in:
            yield None
            return
        with closing(Guest(ours)) as guest:
            yield guest


def _connected(environment: Environment) -> _socket.socket | None:
    with suppress(CommandError, HubSocketError, OSError):
        hub_socket = hub_socket_of(environment)
        if hub_socket is not None:
            try:
                return hub_socket.connect()
            finally:
                hub_socket.close()
    return None


def _is_in(
    connection: _socket.socket,
    config: Path,
    environment: Environment,
    given: tuple[int, ...],
    profile: str,
) -> bool:
    """Say whether the hub has such a fleet, and serves us from it."""
    connection.settimeout(ANSWERED_WITHIN)
    words = hello(JOIN, str(config), str(environment.directory), environment.variables, profile)
    try:
        send(connection, words)
        return connection.recv(1) == ACCEPTED and begin(connection, given)
    except OSError:
        return False
