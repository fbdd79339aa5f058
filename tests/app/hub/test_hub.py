"""The hub in this process, where what happens to it can be chosen."""

import _socket
import os
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from aggregator.app.hub import hub as hubs
from aggregator.app.hub import shared_fleet as fleets
from aggregator.app.hub.hub import Hub
from aggregator.config import Config, load_config
from aggregator.entry import hub_socket as hub_sockets
from aggregator.entry.shim import ACCEPTED, REFUSED, SERVE, STATUS, hello, send
from tests.app.hub.hub_setup import HubSetup
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio


async def test_a_hub_whose_program_is_gone_ends_in_good_order(
    hub_setup: HubSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade takes a program away before it puts the next one there."""
    hub_socket = hub_setup.hub_socket()
    lock = hub_socket.lock()
    assert lock is not None
    hub = Hub(hub_socket, lambda _config: None)
    monkeypatch.setattr(hub_sockets, "__file__", str(hub_setup.directory / "entry" / "dock.py"))

    with anyio.fail_after(PATIENCE):
        await hub.run(lock)

    assert hub_socket.connect() is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(lock)
    hub_socket.close()


@asynccontextmanager
async def running(hub_setup: HubSetup) -> AsyncGenerator[Hub, None]:
    """Have a hub for the length of the block, which is to end by itself when told to."""
    hub_socket = hub_setup.hub_socket()
    lock = hub_socket.lock()
    assert lock is not None
    hub = Hub(hub_socket, lambda _config: None)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(hub.run, lock)
            await anyio.wait_all_tasks_blocked()
            yield hub
            hub.stop()
    hub_socket.close()


def come(hub_setup: HubSetup, hub: Hub, kind: str = SERVE) -> _socket.socket:
    """Say that a client is there."""
    connection = hub.hub_socket.connect()
    assert connection is not None
    connection.settimeout(PATIENCE)
    send(connection, hello(kind, str(hub_setup.config), "/", hub_setup.variables))
    return connection


async def hear(connection: _socket.socket) -> bytes:
    return await to_thread.run_sync(connection.recv, 1)


async def test_a_client_that_is_yet_to_hand_over_its_streams_can_be_let_go(
    hub_setup: HubSetup,
) -> None:
    hub_setup.write({"servers": {}})
    async with running(hub_setup) as hub:
        client = come(hub_setup, hub)
        assert await hear(client) == ACCEPTED
        (shared,) = hub.fleets
        for session in shared.sessions:
            session.drop("the servers have ended")
        client.close()


async def test_a_client_that_never_hands_over_its_streams_is_not_waited_for(
    hub_setup: HubSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "GO_PATIENCE", 0.0)
    hub_setup.write({"servers": {}})
    async with running(hub_setup) as hub:
        client = come(hub_setup, hub)
        assert await hear(client) == ACCEPTED
        assert await hear(client) == b""
        client.close()


@pytest.mark.parametrize(
    ("error", "answer"),
    [(RuntimeError("can't start new thread"), REFUSED), (OSError("whatever else"), b"")],
)
async def test_trouble_with_one_client_is_not_that_of_all(
    hub_setup: HubSetup, monkeypatch: pytest.MonkeyPatch, error: Exception, answer: bytes
) -> None:
    hub_setup.write({"servers": {}})
    async with running(hub_setup) as hub:
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise error

            patch.setattr(hubs, "load_config", fail)
            unlucky = come(hub_setup, hub)
            assert await hear(unlucky) == answer
            unlucky.close()
        client = come(hub_setup, hub)
        assert await hear(client) == ACCEPTED
        client.close()


async def test_a_client_whose_file_is_being_read_when_the_hub_stops_finds_another(
    hub_setup: HubSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_setup.write({"servers": {}})
    async with running(hub_setup) as hub:
        reading, may_read = threading.Event(), threading.Event()

        def load(path: Path, variables: Mapping[str, str]) -> Config:
            reading.set()
            may_read.wait(PATIENCE)
            return load_config(path, variables)

        monkeypatch.setattr(hubs, "load_config", load)
        client = come(hub_setup, hub)
        await to_thread.run_sync(reading.wait, PATIENCE)
        hub.stop()
        await anyio.wait_all_tasks_blocked()
        next_lock = hub.hub_socket.lock()
        may_read.set()

        assert next_lock is not None
        os.close(next_lock)
        assert await hear(client) == b""
        client.close()
        assert not hub.fleets


async def test_what_is_fixed_when_servers_start_is_had_from_others(hub_setup: HubSetup) -> None:
    hub_setup.write({"servers": {}})
    async with running(hub_setup) as hub:
        first = come(hub_setup, hub)
        assert await hear(first) == ACCEPTED
        (old,) = hub.fleets
        audit = {"file": str(hub_setup.directory / "audit.jsonl")}
        hub_setup.write({"servers": {}, "audit": audit})
        second = come(hub_setup, hub)
        assert await hear(second) == ACCEPTED

        (new,) = (each for each in hub.fleets if each is not old)
        assert new.resolved.config.settings.audit is not None
        assert not old.is_open
        first.close()
        second.close()


async def test_a_file_that_takes_long_to_be_read_again_holds_up_nobody(
    hub_setup: HubSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_setup.write({"servers": {}})
    async with running(hub_setup) as hub:
        first = come(hub_setup, hub)
        assert await hear(first) == ACCEPTED
        reading, may_read = threading.Event(), threading.Event()

        def load(path: Path, variables: Mapping[str, str], _deadline: float) -> Config:
            reading.set()
            may_read.wait(PATIENCE)
            return load_config(path, variables)

        monkeypatch.setattr(fleets, "load_config", load)
        hub_setup.write({"servers": {}, "toolSearch": "auto"})
        second = come(hub_setup, hub)
        await to_thread.run_sync(reading.wait, PATIENCE)
        other = come(hub_setup, hub, STATUS)

        assert await hear(other) == b"{"
        may_read.set()
        assert await hear(second) == ACCEPTED
        assert len(hub.fleets) == 1
        for each in (first, second, other):
            each.close()
