"""Many clients of one hub: cold, when it is killed, one after another, and all at once."""

import _socket
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aggregator.basics.eras import Era
from aggregator.entry.shim import ACCEPTED, SERVE, STATUS, begin, hello, send
from tests.app.hub.hub_setup import FAULTY, ROOT, Client, HubSetup, hub_setup_in
from tests.patience import PATIENCE
from tests.soak.client import ENVELOPE, INTRODUCTION
from tests.soak.scales import Scales, Weight

ERAS: Mapping[str, Sequence[Era]] = {
    "handshake": ("handshake",),
    "modern": ("modern",),
    "mixed": ("handshake", "modern"),
}
STUBBORN = ("--ignore-eof", "--ignore-term")
AT_ONCE = 16
"""Calls of one client that are under way at a time."""


@dataclass(frozen=True, slots=True)
class Cold:
    """What became of clients that came together while no hub ran."""

    clients: int
    served: int
    shared: int
    """Those that the hub served, and not a process of their own."""
    hubs: int
    servers: int
    seconds: float
    """Until the last of them had its first answer."""


def _in_turn(mixture: str, clients: int) -> Iterator[Era]:
    """Yield the eras of so many clients."""
    eras = ERAS[mixture]
    return (eras[each % len(eras)] for each in range(clients))


def cold(directory: Path, clients: int, patience: float) -> Cold:
    """Have clients come at the same moment."""
    with hub_setup_in(directory) as hub_setup, ThreadPoolExecutor(clients) as pool:
        began = time.monotonic()
        came = [
            hub_setup.client(era, opens=False, patience=patience)
            for era in _in_turn("mixed", clients)
        ]
        served = sum(pool.map(_is_served, came))
        seconds = time.monotonic() - began
        hubs, servers = len(hub_setup.hubs()), len(hub_setup.servers())
        for client in came:
            client.leave()
        shared = sum("not shared" not in client.errors() for client in came)
    return Cold(clients, served, shared, hubs, servers, seconds)


def _is_served(client: Client) -> bool:
    client.open()
    return client.call("test__echo", text="hello") == "hello"


@dataclass(frozen=True, slots=True)
class Killed:
    """What became of clients and servers when their hub was killed."""

    told: tuple[float, ...]
    """Seconds until each client's process had ended, which is how it is told."""
    statuses: tuple[int, ...]
    processes: int
    orphans: int
    """What was left of the servers after three seconds."""
    gone: float
    """Seconds until the last of them had gone."""
    works: bool
    """Whether the next start worked."""


def killed(directory: Path, clients: int, allowed: float = 3.0) -> Killed:
    """Kill a hub with clients and servers of all manners."""
    manners = ((), STUBBORN, (*STUBBORN, "--fork"))
    servers = {
        name: {"command": sys.executable, "args": [str(FAULTY), *manner]}
        for name, manner in zip(("test", "stubborn", "forking"), manners, strict=True)
    }
    with hub_setup_in(directory) as hub_setup:
        hub_setup.write({"servers": servers})
        came = [hub_setup.client(era) for era in _in_turn("mixed", clients)]
        for client in came:
            for name in servers:
                assert client.call(f"{name}__echo", text="hello") == "hello"
        (hub,), family = hub_setup.hubs(), hub_setup.servers()
        os.kill(hub, signal.SIGKILL)
        told = _ends([client.pid for client in came], PATIENCE)
        gone = _ends(family, allowed)
        statuses = tuple(client.process.wait(PATIENCE) for client in came)
        orphans = len(hub_setup.servers())
        works = hub_setup.client().call("test__echo", text="again") == "again"
    return Killed(tuple(told), statuses, len(family), orphans, max(gone, default=0.0), works)


def _ends(processes: Iterable[int], patience: float) -> list[float]:
    """Return after how many seconds each of these processes ended; none for who did not."""
    began = time.monotonic()
    poll, found = select.poll(), list[float]()
    waiting = set[int]()
    for process in processes:
        try:
            waiting.add(os.pidfd_open(process))
        except ProcessLookupError:
            found.append(0.0)
    for descriptor in waiting:
        poll.register(descriptor, select.POLLIN)
    while waiting and (left := began + patience - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(1000 * left):
            poll.unregister(descriptor)
            os.close(descriptor)
            waiting.remove(descriptor)
            found.append(time.monotonic() - began)
    for descriptor in waiting:
        os.close(descriptor)
    return found


@dataclass(frozen=True, slots=True)
class Passing:
    """What a hub held before and after many sessions."""

    sessions: int
    before: Weight
    after: Weight


def passing(directory: Path, sessions: int, warm_up: int) -> Passing:
    """Open and close sessions one after another, beside one client that stays."""
    with hub_setup_in(directory) as hub_setup, _weighed(hub_setup) as (hub, scales):
        stays = hub_setup.client()
        stays.call("test__echo", text="hello")
        for number in range(warm_up):
            _visit(hub_setup, number)
        before = _weigh(hub_setup, hub, scales)
        for number in range(sessions):
            _visit(hub_setup, number)
        stays.call("test__echo", text="hello")
        after = _weigh(hub_setup, hub, scales, before)
        assert stays.leave() == 0
    return Passing(sessions, before, after)


@contextmanager
def _weighed(hub_setup: HubSetup) -> "Generator[tuple[subprocess.Popen[bytes], Scales]]":
    """Have a hub that can be weighed."""
    hub_socket = hub_setup.hub_socket()
    lock = hub_socket.lock()
    assert lock is not None
    scales = Scales(hub_setup.directory / "scales")
    words = [hub_socket.path, str(hub_socket.descriptor), hub_socket.name, str(lock)]
    command = [sys.executable, "-m", "tests.soak.scales", str(scales.path), "hub", *words]
    given = (hub_socket.descriptor, lock)
    with subprocess.Popen(command, pass_fds=given, env=hub_setup.variables, cwd=ROOT) as hub:
        os.close(lock)
        hub_socket.close()
        try:
            yield hub, scales
        finally:
            hub.terminate()
            scales.close()


def _weigh(
    hub_setup: HubSetup, hub: "subprocess.Popen[bytes]", scales: Scales, most: Weight | None = None
) -> Weight:
    """Weigh a hub once all but one have left, and what they leave has had its time to go."""
    deadline = time.monotonic() + PATIENCE
    while _clients(hub_setup) > 1:
        assert time.monotonic() < deadline
    weight = scales.weigh_now(hub.pid)
    while most and (weight.tasks > most.tasks or weight.descriptors > most.descriptors):
        if time.monotonic() > deadline:
            break
        weight = scales.weigh_now(hub.pid)
    return weight


def _clients(hub_setup: HubSetup) -> int:
    """Return how many clients the hub says that it has."""
    with closing(_connected(hub_setup)) as connection:
        send(connection, hello(STATUS, "", "", {}))
        said = bytearray()
        while chunk := connection.recv(1 << 16):
            said += chunk
    return sum(len(fleet["clients"]) for fleet in json.loads(said)["fleets"])


def _connected(hub_setup: HubSetup) -> _socket.socket:
    hub_socket = hub_setup.hub_socket()
    connection = hub_socket.connect()
    hub_socket.close()
    assert connection is not None
    connection.settimeout(PATIENCE)
    return connection


def _visit(hub_setup: HubSetup, number: int) -> None:
    """Be a client for a moment: hand streams over, call, and leave."""
    ours, theirs = socket.socketpair()
    with closing(_connected(hub_setup)) as connection, ours:
        send(connection, hello(SERVE, str(hub_setup.config), "/", hub_setup.variables))
        assert connection.recv(1) == ACCEPTED
        with theirs:
            assert begin(connection, (theirs.fileno(), theirs.fileno(), 2))
        with ours.makefile("rwb") as stream:
            for message in _talk("modern" if number % 2 else "handshake"):
                stream.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
                stream.flush()
                while "id" in message and json.loads(stream.readline()).get("id") != message["id"]:
                    pass
        ours.shutdown(socket.SHUT_RDWR)
        # It leaves in good order, or as if it were killed.
        assert number % 3 == 0 or connection.recv(1) == b"\0"


def _talk(era: Era) -> Generator[dict[str, Any]]:
    call = {"name": "test__echo", "arguments": {"text": "hello"}}
    if era == "modern":
        yield {"id": 1, "method": "server/discover", "params": {"_meta": ENVELOPE}}
        yield {"id": 2, "method": "tools/call", "params": {**call, "_meta": ENVELOPE}}
        return
    yield {"id": 1, "method": "initialize", "params": INTRODUCTION}
    yield {"method": "notifications/initialized"}
    yield {"id": 2, "method": "tools/call", "params": call}


@dataclass(frozen=True, slots=True)
class Crossing:
    """Whether anybody got what was another's."""

    calls: int
    crossed: int
    seconds: float


def crossing(directory: Path, eras: Sequence[Era], clients: int, calls: int) -> Crossing:
    """Have clients call at once through one hub, each with words of its own."""
    with hub_setup_in(directory) as hub_setup, ThreadPoolExecutor(clients) as pool:
        came = [hub_setup.client(eras[each % len(eras)]) for each in range(clients)]
        began = time.monotonic()
        crossed = sum(pool.map(partial(_crossed, calls=calls), came))
        seconds = time.monotonic() - began
        assert len(hub_setup.hubs()) == len(hub_setup.servers()) == 1
    return Crossing(clients * calls, crossed, seconds)


def _crossed(client: Client, calls: int) -> int:
    """Return how many answers were not those to this client's own words."""
    wanted: dict[int, str] = {}
    left, crossed = iter(range(calls)), 0
    for number in left:
        nonce = f"{client.pid} {number} {os.urandom(8).hex()}"
        call = {"name": "test__echo", "arguments": {"text": nonce}}
        wanted[client.send("tools/call", call)] = nonce
        while len(wanted) >= AT_ONCE or (wanted and number == calls - 1):
            message = client.hear()
            assert message is not None
            if "id" in message:
                content = message.get("result", {}).get("content", [{}])
                crossed += content[0].get("text") != wanted.pop(message["id"], None)
    return crossed
