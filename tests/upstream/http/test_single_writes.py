"""A response is one write, and nothing that is written waits longer than a turn."""

from collections.abc import Callable, Generator
from contextlib import suppress
from socket import MSG_WAITALL, socket, socketpair

import pytest

from aggregator.upstream.http.single_writes import SMALL_BYTES, SingleWrites

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Connection:
    """Notes what is done with it."""

    def __init__(self, **extra: object) -> None:
        self.done: list[bytes | str] = []
        self.later: list[Callable[[], None]] = []
        self.waiting = 0
        self._extra = extra
        self.gathered = SingleWrites(self, self.later.append)

    def write(self, data: bytes | memoryview) -> None:
        self.done.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def close(self) -> None:
        self.done.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.done

    def get_extra_info(self, name: str) -> object:
        return self._extra.get(name)

    def turn(self) -> None:
        while self.later:
            self.later.pop(0)()


@pytest.fixture
def connection() -> Connection:
    return Connection()


def test_a_head_is_written_with_its_body(connection: Connection) -> None:
    for _ in range(2):
        connection.gathered.write(HEAD)
        connection.gathered.write(b"{}")
        connection.turn()

    assert connection.done == [HEAD + b"{}"] * 2


def test_a_head_without_a_body_is_written_in_the_next_turn(connection: Connection) -> None:
    connection.gathered.write(HEAD)
    assert connection.done == []
    connection.turn()
    connection.gathered.write(b"2\r\n{}\r\n")

    assert connection.done == [HEAD, b"2\r\n{}\r\n"]


def test_a_large_body_is_not_copied(connection: Connection) -> None:
    body = b"x" * (SMALL_BYTES + 1)
    connection.gathered.write(HEAD)
    connection.gathered.write(body)

    assert connection.done == [HEAD, body]


def test_a_head_is_written_before_its_connection_is_closed(connection: Connection) -> None:
    connection.gathered.write(HEAD)
    connection.gathered.close()
    connection.turn()

    assert connection.done == [HEAD, "closed"]
    assert connection.gathered.is_closing()


@pytest.mark.parametrize("before", [[], [HEAD]])
def test_nothing_is_written_to_a_connection_that_is_closed(
    before: list[bytes], connection: Connection
) -> None:
    for each in before:
        connection.gathered.write(each)
    connection.done.append("closed")
    connection.turn()
    for each in (HEAD, b"{}", b"x" * (SMALL_BYTES + 1)):
        connection.gathered.write(each)
        connection.turn()
    connection.gathered.close()

    assert connection.done == ["closed", "closed"]


def test_all_else_is_asked_of_the_connection_itself() -> None:
    assert Connection(address="its own").gathered.get_extra_info("address") == "its own"


@pytest.fixture
def pair() -> Generator[tuple[socket, socket], None, None]:
    ours, theirs = socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("size", [2, SMALL_BYTES + 1])
def test_what_is_whole_is_written_at_once(size: int, pair: tuple[socket, socket]) -> None:
    ours, theirs = pair
    connection, body = Connection(socket=ours), b"x" * size
    connection.gathered.write_whole(HEAD, body)

    assert connection.done == []
    assert theirs.recv(len(HEAD) + size, MSG_WAITALL) == HEAD + body


def test_what_is_not_taken_at_once_is_left_to_the_connection(pair: tuple[socket, socket]) -> None:
    ours, theirs = pair
    connection, body = Connection(socket=ours), bytes(range(256)) * 40_000
    connection.gathered.write_whole(HEAD, body)
    theirs.setblocking(False)
    taken = b""
    with suppress(BlockingIOError):
        while True:
            taken += theirs.recv(1 << 20)

    left = b"".join(each for each in connection.done if isinstance(each, bytes))
    assert taken
    assert left
    assert taken + left == HEAD + body


@pytest.mark.parametrize("why", ["something waits", "it is secured", "it closes", "it is gone"])
def test_nothing_is_written_past_a_connection_that_has_to_know(
    why: str, pair: tuple[socket, socket]
) -> None:
    ours, theirs = pair
    secured = "yes" if why == "it is secured" else None
    connection = Connection(socket=ours, sslcontext=secured)
    if why == "something waits":
        connection.waiting = 1
    elif why == "it closes":
        connection.close()
    elif why == "it is gone":
        theirs.close()
    connection.gathered.write_whole(HEAD, b"{}")

    assert connection.done[-1] == HEAD + b"{}"
