"""A response is one write, and nothing that is written waits longer than a turn."""

from collections.abc import Callable

import pytest

from aggregator.upstream.http.gathered import SMALL_BYTES, Gathered

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Connection:
    """Notes what is done with it."""

    def __init__(self) -> None:
        self.done: list[bytes | str] = []
        self.later: list[Callable[[], None]] = []
        self.gathered = Gathered(self, self.later.append)

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.done

    def get_extra_info(self, name: str) -> str:
        return f"its {name}"

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


def test_all_else_is_asked_of_the_connection_itself(connection: Connection) -> None:
    assert connection.gathered.get_extra_info("address") == "its address"
