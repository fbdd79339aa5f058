"""Two doors that serve the same clients, in one process: each has a fleet of its own."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2

from aggregator.config import Settings
from aggregator.downstream.transport import Connect
from aggregator.upstream.http.binding import Binding
from aggregator.upstream.http.keys import Keys
from aggregator.upstream.http.replicas.cipher import SharedCipher
from aggregator.upstream.http.replicas.common import Common
from aggregator.upstream.http.replicas.key_file import ensure_keys
from aggregator.upstream.http.replicas.mail import Mail
from aggregator.upstream.http.replicas.store import Store
from tests.loopback.door import Open, door
from tests.patience import PATIENCE
from tests.peers import ready
from tests.upstream.http.test_endpoint import http


class Pair(NamedTuple):
    """Two replicas, and somebody who speaks to both."""

    one: Open
    two: Open
    client: httpx2.AsyncClient


def common(path: Path, name: str, store: str | None = None) -> Common:
    """Return what a replica of this name has in common with all that have the same file."""
    keys = ensure_keys(path)
    cipher = SharedCipher(keys)
    box = None if store is None else Store(store, cipher)
    made = Common.of(keys, cipher, Binding("127.0.0.1", 0), box)
    mail = None if box is None else Mail(box, name)
    return replace(made, replica=replace(made.replica, name=name, post=mail), mail=mail)


async def until_up(mail: Mail | None) -> None:
    """Wait until a replica is in touch with the store, if there is one."""
    with anyio.fail_after(PATIENCE):
        while mail is not None and not mail.is_up:  # noqa: ASYNC110 - it tells nobody
            await anyio.sleep(0.01)


@asynccontextmanager
async def pair(
    servers: Callable[[], Mapping[str, Connect]],
    directory: Path,
    settings: Settings | None = None,
    *,
    store: str | None = None,
    keys: Sequence[Keys] = (),
    stats: Sequence[Path] = (),
    **options: Any,
) -> AsyncGenerator[Pair, None]:
    """Serve from two replicas for the length of the block."""
    here, there = (common(directory / "state-key", name, store) for name in ("one", "two"))
    one_keys, two_keys = keys or (None, None)
    one_stats, two_stats = stats or (None, None)
    first: dict[str, Any] = {**options, "common": here, "keys": one_keys, "stats": one_stats}
    second: dict[str, Any] = {**options, "common": there, "keys": two_keys, "stats": two_stats}
    async with (
        door(servers(), directory, settings, **first) as one,
        door(servers(), directory, settings, **second) as two,
        http(one) as client,
    ):
        for each in (one, two):
            await ready(each.upstream)
        for each in (here.mail, there.mail):
            await until_up(each)
        yield Pair(one, two, client)
