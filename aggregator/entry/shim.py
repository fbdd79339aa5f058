"""Hand a client's descriptors to the hub, and wait until it has been served.

Nothing of what the client says passes through here: the hub reads and writes the very descriptors
that we were started with. The other side says `A` when it is ready to. Only then they are handed
over, with a `G`, and once it has them it says `B`: until then nothing has been read, and the client
can be served in this process all the same.
"""

import _socket
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from aggregator.entry import hub_process
from aggregator.entry.hub_socket import HubSocket, HubSocketError, identity, open_hub_socket
from aggregator.entry.place import config_path, example_path
from aggregator.entry.typed import Typed

PATIENCE = 10.0
"""Seconds after which a client is rather served in a process of its own."""
PAUSE = 0.02
"""Seconds between two looks for a hub that is starting."""
MAX_ENDINGS = 5
"""Times that a hub may hang up on us: one that is ending does so, and one that has no room."""

STANDARD = (0, 1, 2)
"""What is handed over."""
ACCEPTED, REFUSED, GO, BEGUN = b"A", b"N", b"G", b"B"
SERVE, JOIN, DOOR, STATUS, STOP = "serve", "join", "door", "status", "stop"
"""What can be asked for: to be served, to be if such servers run, to have whoever comes to a socket
served, and what commands want."""
SEPARATOR = b"\0"
"""What stands between the words of a hello; no path and no variable has it."""

OWN, SHARED_MEMORY = ("/proc/", "/dev/"), "/dev/shm/"  # noqa: S108 - nothing is made there
"""Where a path may mean another file in each process (`/dev/fd/3`), and where it does not."""
MAX_LINKS = 40
"""Links to follow from one to the next, as systems do."""

LOST = 1
"""The exit status of who was being served when the hub ended."""


class InProcessError(Exception):
    """The client is to be served in this process, for a reason that is told if there is one."""


def hand_over(serving: Typed) -> int | None:
    """Have the hub serve our client; return the exit status, or nothing if it cannot."""
    if serving.verbose or not hasattr(_socket, "SCM_RIGHTS") or os.isatty(0):
        return None
    try:
        for descriptor in STANDARD:
            os.fstat(descriptor)
        hub_socket = open_hub_socket(os.environ)
        try:
            connection = accepted(hub_socket, _hello(serving), STANDARD)
        finally:
            hub_socket.close()
    except (InProcessError, HubSocketError) as error:
        if reason := str(error):
            _note(f"not shared: {reason}")
        return None
    except OSError as error:
        _note(f"not shared: {error.strerror or error}")
        return None
    status = await_end(connection)
    if status == LOST:
        # The client is told by the end of its streams, which are ours too until we have gone.
        os._exit(status)
    return status


def hello(
    kind: str, config: str, here: str, variables: Mapping[str, str], profile: str = ""
) -> bytes:
    """Return what the hub is told of a client: what is asked for, from where, and with what."""
    words = [kind, identity(), config, here, profile]
    words += [f"{name}={value}" for name, value in variables.items()]
    return SEPARATOR.join(map(os.fsencode, words))


def send(connection: _socket.socket, message: bytes) -> None:
    """Send a message with its length before it."""
    connection.sendall(len(message).to_bytes(4, "big") + message)


def begin(connection: _socket.socket, descriptors: Sequence[int]) -> bool:
    """Hand descriptors over to a hub that is ready; say whether it has them.

    Nobody gives up from here on: two would read what the client says.
    """
    connection.settimeout(None)
    rights = b"".join(each.to_bytes(4, sys.byteorder) for each in descriptors)
    connection.sendmsg([GO], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    return connection.recv(1) == BEGUN


def is_same_for_all(path: str) -> bool:
    """Say whether a path leads to a file, and to the same one in whatever process."""
    for _ in range(MAX_LINKS):
        place = os.path.realpath(os.path.dirname(path))
        if f"{place}/".startswith(OWN) and not f"{place}/".startswith(SHARED_MEMORY):
            return False
        if not os.path.islink(path):
            return os.path.isfile(path)
        path = os.path.join(place, os.readlink(path))
    return False


def _hello(serving: Typed) -> bytes:
    here = _here()
    given = example_path() if serving.example else serving.config
    path = config_path(given, os.environ, here)
    if not is_same_for_all(path):
        # Where there is none, whoever looks for it in this process says so.
        raise InProcessError(f"`{path}` is no regular file" if os.path.exists(path) else "")
    return hello(SERVE, path, here, os.environ, serving.profile)


def accepted(hub_socket: HubSocket, words: bytes, descriptors: Sequence[int]) -> _socket.socket:
    """Return a connection to the hub that has our descriptors, after starting one if need be.

    Raises:
        InProcessError: None will.
    """
    deadline = time.monotonic() + PATIENCE
    has_started, endings = False, 0
    while (left := deadline - time.monotonic()) > 0:
        connection = hub_socket.connect()
        if connection is not None:
            connection.settimeout(left)
            if _is_taken(connection, words, descriptors):
                return connection
            endings += 1
            if endings == MAX_ENDINGS:
                raise InProcessError("the hub cannot take another client")
        elif (lock := hub_socket.lock()) is not None:
            if has_started:
                os.close(lock)
                raise InProcessError(f"the hub does not start; `{hub_socket.log}` may say why")
            hub_process.start(hub_socket, lock)
            has_started = True
        time.sleep(PAUSE)
    raise InProcessError(f"the hub did not answer within {PATIENCE:g} s")


def _is_taken(connection: _socket.socket, words: bytes, descriptors: Sequence[int]) -> bool:
    """Say whether the hub has begun to serve us; if not, nothing was read.

    Raises:
        InProcessError: It says that it will not.
    """
    reason: str | None = None
    # It may end before it has read anything of ours.
    with suppress(OSError):
        send(connection, words)
        answer = connection.recv(1)
        if answer == ACCEPTED and begin(connection, descriptors):
            return True
        reason = _rest(connection) if answer == REFUSED else None
    connection.close()
    if reason is not None:
        raise InProcessError(reason)
    return False


def _rest(connection: _socket.socket) -> str:
    said = bytearray()
    while chunk := connection.recv(4096):
        said += chunk
    return said.decode(errors="replace")


def await_end(connection: _socket.socket) -> int:
    """Wait until our client has been served; return how that ended."""
    _pass_signals_on(connection)
    try:
        status = connection.recv(1)
    except OSError:
        status = b""
    if status:
        return status[0]
    _note("the process that served this client and others has ended: connect again")
    return LOST


def _pass_signals_on(connection: _socket.socket) -> None:
    """Have the hub do what a signal to us means; the second one ends us at once."""
    follows_terminal = has_terminal()
    told: list[int] = []

    def pass_on(number: int, _frame: object) -> None:
        if number == signal.SIGHUP and follows_terminal and not has_terminal():
            number = signal.SIGTERM
        if told and number != signal.SIGHUP:
            os._exit(128 + number)
        if number != signal.SIGHUP:
            told.append(number)
        try:
            connection.send(bytes([number]))
        except OSError:
            os._exit(LOST)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)


def has_terminal() -> bool:
    """Whether there is a terminal that ends with us, or with whose end we are to end."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise InProcessError("the working directory is gone") from None


def _note(text: str) -> None:
    with suppress(OSError):
        os.write(2, f"aggregator: {text}\n".encode(errors="replace"))
