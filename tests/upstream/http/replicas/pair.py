"""Two doors that serve the same clients, in one process: each has a fleet of its own."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from aggregator.config import Settings
from aggregator.downstream.transport import Connect
from aggregator.upstream.http.binding import Binding
from aggregator.upstream.http.replicas.common import Common
from aggregator.upstream.http.replicas.key_file import KeyFile
from aggregator.upstream.http.replicas.wax import SharedWax
from tests.loopback.door import Open, door
from tests.peers import ready
from tests.upstream.http.test_endpoint import http


class Pair(NamedTuple):
    """Two replicas, and somebody who speaks to both."""

    one: Open
    two: Open
    client: httpx2.AsyncClient


def common(path: Path, name: str) -> Common:
    """Return what a replica of this name has in common with all that have the same file."""
    keys = KeyFile(path)
    made = Common.of(keys, SharedWax(keys), Binding("127.0.0.1", 0))
    return replace(made, replica=replace(made.replica, name=name))


@asynccontextmanager
async def pair(
    servers: Callable[[], Mapping[str, Connect]],
    directory: Path,
    settings: Settings | None = None,
    **options: Any,
) -> AsyncGenerator[Pair, None]:
    """Serve from two replicas for the length of the block."""
    key = directory / "state-key"
    async with (
        door(servers(), directory, settings, common=common(key, "one"), **options) as one,
        door(servers(), directory, settings, common=common(key, "two"), **options) as two,
        http(one) as client,
    ):
        for each in (one, two):
            await ready(each.upstream)
        yield Pair(one, two, client)
