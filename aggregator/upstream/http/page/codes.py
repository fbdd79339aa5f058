"""Codes that stand for a token once, for a browser that is started with the address of the page.

What a program is started with, every user of the machine can see. A code opens nothing by itself:
it is exchanged for the token by the first who shows it, within a minute, and where the system tells
whose a connection is, by nobody but the person that we run for.
"""

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from aggregator.upstream.http.admission import presented
from aggregator.upstream.http.page.files import HEADERS

CODE = "/code"
"""Where whoever has the token is given a code."""
EXCHANGE = "/exchange"
"""Where whoever has a code is given the token."""
HEADER = b"aggregator-code"
"""What a code is sent in: no page of another origin can."""

CODE_BYTES = 32
LIFE = 60.0
"""Seconds that a browser has to start and to show its code."""
MAX_CODES = 16
"""Codes at a time; for one more, the oldest is forgotten."""

ROOT = 0
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Where Linux tells whose a connection is."""
ESTABLISHED = "01"
WORD = 4
ORDER = -1 if sys.byteorder == "little" else 1


class _Confided(NamedTuple):
    token: str
    until: float


class Codes:
    """Gives out codes and takes them back, each once."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, tables: tuple[Path, ...] = TABLES
    ) -> None:
        self._clock = clock
        self._tables = tables
        self._confided: dict[str, _Confided] = {}

    async def give(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer who shows the token with a code for it."""
        token = presented(_values(scope, b"authorization"))
        while len(self._confided) >= MAX_CODES:
            del self._confided[next(iter(self._confided))]
        code = secrets.token_urlsafe(CODE_BYTES)
        self._confided[code] = _Confided(token, self._clock() + LIFE)
        await _told({"code": code})(scope, receive, send)

    async def exchange(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer who shows a code with its token, and nobody after that."""
        shown = _values(scope, HEADER)
        code = shown[0] if len(shown) == 1 else ""
        found = self._confided.get(code)
        if found is None or found.until < self._clock():
            response: Response = _refused("There is no such code, or it has been used")
        elif not await to_thread.run_sync(_is_ours, scope.get("client"), self._tables):
            response = _refused("Another user of this machine may not use this code")
        else:
            # Two may have shown it at the same time.
            token = self._confided.pop(code, None)
            response = _told({"token": token.token}) if token else _refused("It has been used")
        await response(scope, receive, send)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _told(answer: dict[str, str]) -> Response:
    return JSONResponse(answer, headers={**HEADERS, "cache-control": "no-store"})


def _refused(why: str) -> Response:
    return Response(f"{why}\n", HTTPStatus.FORBIDDEN, {**HEADERS, "cache-control": "no-store"})


def _is_ours(client: tuple[str, int] | None, tables: tuple[Path, ...]) -> bool:
    """Whether a connection is the person's that we run for, as far as the system tells."""
    owners = set(_owners(client, tables)) if client else set[int]()
    return not owners or bool(owners & {os.getuid(), ROOT})


def _owners(client: tuple[str, int], tables: tuple[Path, ...]) -> Iterator[int]:
    """Yield who has a connection that comes from an address."""
    address = f"{_written(client[0])}:{client[1]:04X}"
    for table in tables:
        with suppress(OSError):
            for row in table.read_text(encoding="ascii").splitlines()[1:]:
                # Number, local address, remote address, state, queues, timer, retries, owner.
                _, local, _, state, _, _, _, owner, *_ = row.split()
                if local == address and state == ESTABLISHED:
                    yield int(owner)


def _written(host: str) -> str:
    """Return an address as the system writes it: word by word, the last byte of each first."""
    address = ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    packed = (mapped or address).packed
    words = (packed[at : at + WORD] for at in range(0, len(packed), WORD))
    return "".join(word[::ORDER].hex().upper() for word in words)
