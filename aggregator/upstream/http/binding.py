"""Where we listen: an address read from `[HOST:]PORT`, and the socket on it."""

import errno
import ipaddress
import socket

from aggregator.basics.files import in_words
from aggregator.basics.frozen import frozen
from aggregator.errors import AggregatorError

LOOPBACK = "127.0.0.1"
BACKLOG = 256
"""Connections that may wait to be accepted."""
LAST_PORT = 65_535
MAX_DIGITS = 5
"""Digits that a port may have."""
PROTOCOL = "/mcp"
"""The path that clients come to."""


class BindingError(AggregatorError):
    """We cannot listen there."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


@frozen
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


def parse_binding(text: str, *, is_secure: bool = False) -> Binding:
    """Read `PORT`, `HOST:PORT`, `[IPV6]:PORT` or the URL that clients are given.

    The host is this machine's loopback by default.

    Raises:
        BindingError: It is none of these.
    """
    host, _, port = _authority(text, is_secure=is_secure).rpartition(":")
    hint = f"Write a port up to {LAST_PORT}, as in `--http 8765`"
    if not (port.isascii() and port.isdigit()):
        raise BindingError(f"`{text}` does not end in a port", hint)
    if len(port) > MAX_DIGITS or int(port) > LAST_PORT:
        raise BindingError(f"there is no port `{port}`", hint)
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" in bare and bare == host:
        raise BindingError(
            f"`{text}` is ambiguous", f"Write an IPv6 address in brackets: `[{host}]:{port}`"
        )
    return Binding(bare or LOOPBACK, int(port))


def _authority(text: str, *, is_secure: bool) -> str:
    """Return the host and port of what may be a URL.

    Raises:
        BindingError: It is a URL that we cannot be reached at.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        return text
    if scheme.lower() == "https" and not is_secure:
        raise BindingError(
            f"`{text}` cannot be served: there is only plain HTTP here",
            "Name a certificate with `--tls-cert` and `--tls-key`, or put a gateway with TLS in "
            "front, and name it with `--behind-proxy` and `--allow-host`",
        )
    if scheme.lower() not in ("http", "https") or (is_secure and scheme.lower() == "http"):
        served = "HTTPS" if is_secure else "plain HTTP"
        raise BindingError(f"`{text}` cannot be served: there is only {served} here")
    authority, slash, path = rest.partition("/")
    if path not in ("", PROTOCOL.removeprefix("/")):
        where = f"http://{authority}{PROTOCOL}"
        raise BindingError(
            f"`{slash}{path}` cannot be served: clients come to `{where}`",
            f"Write `--http {authority}`",
        )
    return authority


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
            f"cannot listen on `{binding.authority}`: {reason}", _advice(error)
        ) from error
    return sock


def _advice(error: OSError) -> str:
    """Say what to do where we cannot listen."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return (
            "That is no address of this machine: use 127.0.0.1, or 0.0.0.0 for all that it has, "
            "and name with `--allow-host` what clients call it"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return "Choose a port from 1024 on: lower ones are for the system"
    return "Choose another port, or stop the program that has this one"
