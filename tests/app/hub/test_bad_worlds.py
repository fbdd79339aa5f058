"""Whatever is wrong with the hub or its place: the client is served, or told in one line."""

import fcntl
import json
import os
import resource
import signal
import socket
import termios
from array import array
from itertools import count
from pathlib import Path
from typing import Self

import pytest

from aggregator.entry import hub_socket as hub_sockets
from aggregator.entry.hub_socket import LOG, SOCKET
from aggregator.entry.shim import (
    ACCEPTED,
    GO,
    REFUSED,
    SERVE,
    begin,
    hello,
    is_same_for_all,
    send,
)
from tests.app.hub.hub_setup import PROC, HubSetup
from tests.ends import await_ends
from tests.patience import PATIENCE

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def place_of(hub_setup: HubSetup) -> Path:
    return hub_setup.runtime / f"aggregator-{os.geteuid()}"


def served_alone(hub_setup: HubSetup, patience: float = 10 * PATIENCE, after: str = "") -> str:
    """Have a client come and leave; return what it was told beside the protocol."""
    client = hub_setup.client(patience=patience, after=after)
    assert client.call("test__echo", text="hello") == "hello"
    assert client.leave() == 0
    return client.errors()


def test_a_link_in_the_place_of_the_directory_is_not_followed(hub_setup: HubSetup) -> None:
    elsewhere = hub_setup.directory / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    place_of(hub_setup).symlink_to(elsewhere)

    told = served_alone(hub_setup)

    assert told.startswith("aggregator: not shared: ")
    assert told.count("\n") == 1
    assert not list(elsewhere.iterdir())


def test_a_directory_that_others_may_enter_is_not_used(hub_setup: HubSetup) -> None:
    place_of(hub_setup).mkdir()
    place_of(hub_setup).chmod(0o755)

    told = served_alone(hub_setup)

    assert "is open to other users" in told
    assert not list(place_of(hub_setup).iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else can give a directory away")
def test_a_directory_of_another_user_is_not_used(hub_setup: HubSetup) -> None:
    place_of(hub_setup).mkdir(mode=0o700)
    os.chown(place_of(hub_setup), 65534, 65534)

    assert "is open to other users" in served_alone(hub_setup)


def test_a_runtime_directory_that_is_not_there_is_told(hub_setup: HubSetup) -> None:
    hub_setup.runtime.rmdir()

    assert "cannot be made: No such file or directory" in served_alone(hub_setup)


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_path_that_only_this_process_can_follow_is_not_handed_over(
    hub_setup: HubSetup, *, is_linked: bool
) -> None:
    with hub_setup.config.open() as opened:
        path = Path(f"/dev/fd/{opened.fileno()}")
        if is_linked:
            hub_setup.config.with_suffix(".link").symlink_to(path)
            path = hub_setup.config.with_suffix(".link")

        assert path.is_file()
        assert not is_same_for_all(str(path))
    assert is_same_for_all(str(hub_setup.config))


def test_a_log_that_cannot_be_written_is_done_without(hub_setup: HubSetup) -> None:
    hub_socket = hub_setup.hub_socket()
    Path(hub_socket.log).mkdir()
    hub_socket.close()

    assert not served_alone(hub_setup)
    assert len(hub_setup.hubs()) == 1


def test_a_socket_that_nobody_listens_on_is_replaced(hub_setup: HubSetup) -> None:
    hub_socket = hub_setup.hub_socket()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(hub_socket.address(hub_socket.name + SOCKET))
    hub_socket.close()

    assert not served_alone(hub_setup)
    assert len(hub_setup.hubs()) == 1


def test_a_hub_without_room_for_more_descriptors_lets_clients_serve_themselves(
    hub_setup: HubSetup,
) -> None:
    first = hub_setup.client()
    first.call("test__echo", text="hello")
    (hub,) = hub_setup.hubs()
    taken = {int(each.name) for each in (PROC / str(hub) / "fd").iterdir()}
    free = next(number for number in count() if number not in taken)
    resource.prlimit(hub, resource.RLIMIT_NOFILE, (free, free))

    told = served_alone(hub_setup)

    assert "the hub cannot take another client" in told
    assert first.call("test__echo", text="hello")


def test_a_hub_that_hangs_is_not_waited_for(hub_setup: HubSetup) -> None:
    first = hub_setup.client()
    (hub,) = hub_setup.hubs()
    os.kill(hub, signal.SIGSTOP)
    try:
        told = served_alone(hub_setup, patience=0.5)
    finally:
        os.kill(hub, signal.SIGCONT)

    assert "the hub did not answer within 0.5 s" in told
    assert first.call("test__echo", text="hello")


def test_a_hub_whose_socket_is_gone_serves_its_clients_to_the_end(hub_setup: HubSetup) -> None:
    first = hub_setup.client()
    (old,) = hub_setup.hubs()
    hub_socket = hub_setup.hub_socket()
    (Path(hub_socket.path) / (hub_socket.name + SOCKET)).unlink()
    hub_socket.close()

    second = hub_setup.client("modern")

    (new,) = set(hub_setup.hubs()) - {old}
    assert first.call("test__echo", text="hello")
    assert first.leave() == 0
    await_ends([old], PATIENCE)
    assert hub_setup.hubs() == [new]
    assert second.call("test__echo", text="hello")


def test_another_version_has_another_socket(
    hub_setup: HubSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = hub_setup.hub_socket()
    monkeypatch.setattr(hub_sockets, "__version__", "0.0.0")
    theirs = hub_setup.hub_socket()
    ours.close()
    theirs.close()

    assert ours.path == theirs.path
    assert ours.name != theirs.name


def test_whoever_finds_a_hub_of_another_version_is_refused(
    hub_setup: HubSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_setup.client()
    monkeypatch.setattr(hub_sockets, "__version__", "0.0.0")
    words = hello(SERVE, str(hub_setup.config), "/", hub_setup.variables)
    with Handing(hub_setup) as handing:
        handing.connection.settimeout(PATIENCE)
        send(handing.connection, words)

        assert handing.connection.recv(1) == REFUSED


class Handing:
    """The other side of a hub, with descriptors of its own to hand over."""

    def __init__(self, hub_setup: HubSetup) -> None:
        ours, theirs = os.pipe(), os.pipe()
        self.given = (ours[0], theirs[1], 2)
        self.input, self.output = ours[1], theirs[0]
        hub_socket = hub_setup.hub_socket()
        # The name is that of the hub which runs, whatever version we take ourselves for.
        (name,) = (each for each in os.listdir(hub_socket.path) if each.endswith(SOCKET))  # noqa: PTH208
        connection = hub_socket.connect(name)
        hub_socket.close()
        assert connection is not None
        self.connection = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        for each in (*self.given[:2], self.input, self.output):
            os.close(each)


def test_nothing_is_read_before_the_client_agrees(hub_setup: HubSetup) -> None:
    """Whoever gives up waiting serves the client itself, from its very first byte on."""
    hub_setup.client()
    words = hello(SERVE, str(hub_setup.config), "/", hub_setup.variables)
    line = json.dumps(PING).encode() + b"\n"
    with Handing(hub_setup) as handing:
        handing.connection.settimeout(PATIENCE)
        os.write(handing.input, line)
        send(handing.connection, words)
        answer = handing.connection.recv(1)
        waiting = unread(handing.given[0])
        begun = begin(handing.connection, handing.given)
        said = json.loads(os.read(handing.output, 4096))

        assert (answer, begun) == (ACCEPTED, True)
        assert waiting == len(line)
        assert said == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_hello_in_pieces_or_none_at_all_holds_nobody_up(hub_setup: HubSetup) -> None:
    first = hub_setup.client()
    words = hello(SERVE, str(hub_setup.config), "/", hub_setup.variables)
    with Handing(hub_setup), Handing(hub_setup) as slow:
        slow.connection.settimeout(PATIENCE)
        slow.connection.sendall(len(words).to_bytes(4, "big"))

        assert hub_setup.client("modern").call("test__echo", text="hello")
        slow.connection.sendall(words)
        assert slow.connection.recv(1) == ACCEPTED
        # Without descriptors there is nobody to be served.
        slow.connection.sendall(GO)
        assert slow.connection.recv(1) == b""
    assert first.call("test__echo", text="hello")


def unread(descriptor: int) -> int:
    """Return how many bytes wait in a pipe."""
    held = array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, held)
    return held[0]


def test_the_log_says_what_went_wrong(hub_setup: HubSetup) -> None:
    hub_setup.write({"servers": {"broken": {"command": "no-such-program"}}})
    client = hub_setup.client()
    client.call("ToolSearch", query="anything", wait=5)
    (log,) = place_of(hub_setup).glob(f"*{LOG}")

    assert "no-such-program" in log.read_text()
