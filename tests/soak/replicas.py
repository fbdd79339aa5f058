"""Several replicas behind a proxy: what fails when one ends, or all are replaced."""

import tempfile
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

from tests.replicas.cluster import STORE, cluster, storehouse
from tests.replicas.proxies import HAPROXY, NGINX
from tests.replicas.trial import edits, kills, loses_store, nothing, restarts, trial


async def measure(directory: Path, clients: int, steps: int) -> AsyncIterator[str]:
    """Yield what came of everything that can happen."""
    if HAPROXY.command is None:
        yield "there is no haproxy here"
        return
    for size, happens in product((2, 3), (nothing, edits, kills, restarts)):
        async with cluster(_own(directory), size) as running:
            found = await trial(running, clients, steps, happens)
            yield f"{size} replicas, {happens.__name__}: {found.line()}"
            for each in found.examples():
                yield f"  {each}"


async def measure_behind_nginx(directory: Path, clients: int, steps: int) -> AsyncIterator[str]:
    """Yield what came of it behind another proxy, which asks nobody whether they are ready."""
    if NGINX.command is None:
        yield "there is no nginx here"
        return
    for size, happens in product((2, 3), (nothing, kills, restarts)):
        async with cluster(_own(directory), size, proxy=NGINX) as running:
            found = await trial(running, clients, steps, happens)
            yield f"{size} replicas behind nginx, {happens.__name__}: {found.line()}"
            for each in found.examples():
                yield f"  {each}"


async def measure_with_store(directory: Path, clients: int, steps: int) -> AsyncIterator[str]:
    """Yield what came of everything that can happen to replicas that have a store in common."""
    if HAPROXY.command is None or STORE is None:
        yield "there is no haproxy here, or neither Redis nor Valkey"
        return
    for size, happens in product((2, 3), (nothing, edits, kills, restarts, loses_store)):
        own = _own(directory)
        async with storehouse(own) as store, cluster(own, size, store=store) as running:
            found = await trial(running, clients, steps, happens)
            yield f"{size} replicas and a store, {happens.__name__}: {found.line()}"
            for each in found.examples():
                yield f"  {each}"


async def compare(directory: Path, clients: int, steps: int) -> AsyncIterator[str]:
    """Yield how much three replicas do, of what one does."""
    rates = list[float]()
    for size in (1, 3):
        async with cluster(_own(directory), size) as running:
            await trial(running, clients, 5)
            rates.append((await trial(running, clients, steps)).rate)
    one, three = rates
    yield f"{one:.0f} requests a second with one, {three:.0f} with three: {three / one:.2f}"


def _own(directory: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=directory))
