"""Where we listen: an address read from `[HOST:]PORT`, and the socket on it."""

import ipaddress
import socket
from dataclasses import dataclass

from aggregator.errors import AggregatorError
from aggregator.files import in_words

LOOPBACK = "127.0.0.1"
BACKLOG = 256
"""Connections that may wait to be accepted."""
LAST_PORT = 65_535


class BindingError(AggregatorError):
    """We cannot listen there."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Binding:
    """An interface and a port."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def authority(self) -> str:
        """The host and port as they stand in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_binding(text: str) -> Binding:
    """Read `PORT`, `HOST:PORT` or `[IPV6]:PORT`; the host is this machine's loopback by default.

    Raises:
        BindingError: It is none of these.
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= LAST_PORT):
        hint = f"Write a port up to {LAST_PORT}, as in `--http 8765`"
        raise BindingError(f"`{text}` does not end in a port", hint)
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" in bare and bare == host:
        raise BindingError(
            f"`{text}` is ambiguous", f"Write an IPv6 address in brackets: `[{host}]:{port}`"
        )
    return Binding(bare or LOOPBACK, int(port))


def listen(binding: Binding) -> socket.socket:
    """Return a socket that listens there.

    Raises:
        BindingError: The port is taken, or the address is not ours.
    """
    family = socket.AF_INET6 if ":" in binding.host else socket.AF_INET
    # Named in full: for a socket of no particular protocol asyncio leaves small writes waiting
    # for the acknowledgement of those before them, 40 ms at a time.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((binding.host, binding.port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        reason = in_words(error)
        raise BindingError(
            f"cannot listen on `{binding.authority}`: {reason}",
            "Choose another port, or stop the program that has this one",
        ) from error
    return sock
