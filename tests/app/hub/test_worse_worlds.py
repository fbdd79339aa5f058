"""What a system may refuse, and what may change under a hub that runs."""

import os
import platform
import shutil
import subprocess
import sys

import pytest

from aggregator.entry.hub_socket import SOCKET
from tests.app.hub.hub_setup import ROOT, HubSetup
from tests.app.hub.test_bad_worlds import served_alone
from tests.ends import await_ends
from tests.patience import PATIENCE

NO_SOCKETS = """
import ctypes, struct
from_call, from_family, is_equal, leave = 0x20, 0x20, 0x15, 0x06
steps = [
    (from_call, 0, 0, 0),             # which call it is
    (is_equal, 0, 3, 41),             # socket()
    (from_family, 0, 0, 16),          # its first argument
    (is_equal, 0, 1, 1),              # AF_UNIX
    (leave, 0, 0, 0x00050001),        # EPERM
    (leave, 0, 0, 0x7FFF0000),        # all else is allowed
]
code = b"".join(struct.pack("HBBI", *step) for step in steps)
held = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(held))
system = ctypes.CDLL(None, use_errno=True)
assert not system.prctl(38, 1, 0, 0, 0)
assert not system.prctl(22, 2, ctypes.c_char_p(program), 0, 0), ctypes.get_errno()
"""
"""A sandbox that keeps a process from meeting others, as the kernel has it for all of them."""

NO_PROCESSES = """
import errno, os
def refuse():
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
os.fork = refuse
"""

NO_ROOM = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""
"""Nothing can be written to any file, by this process and whatever it starts."""

ANOTHERS = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.setresuid(65534, 65534, 65534)
listener.listen()
print("listening", flush=True)
while True:
    listener.accept()
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="calls have other numbers elsewhere")
def test_a_client_in_a_sandbox_without_sockets_is_served_in_its_own_process(
    hub_setup: HubSetup,
) -> None:
    told = served_alone(hub_setup, after=NO_SOCKETS)

    assert told == "aggregator: not shared: Operation not permitted\n"
    assert not hub_setup.hubs()


def test_where_no_process_can_be_started_a_client_is_served_in_its_own(hub_setup: HubSetup) -> None:
    told = served_alone(hub_setup, after=NO_PROCESSES)

    assert told == "aggregator: not shared: Resource temporarily unavailable\n"
    assert not hub_setup.hubs()
    # The lock was given back: whoever comes next can start one.
    assert not served_alone(hub_setup)


def test_a_hub_that_can_write_nothing_serves_all_the_same(hub_setup: HubSetup) -> None:
    """On a full disk there is no log, and nothing is remembered."""
    client = hub_setup.client(after=NO_ROOM)
    other = hub_setup.client("modern")

    assert client.call("test__echo", text="hello") == "hello"
    assert other.call("test__echo", text="hello") == "hello"
    assert len(hub_setup.hubs()) == len(hub_setup.servers()) == 1
    assert client.leave() == other.leave() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else can become another user")
def test_a_hub_of_another_user_is_not_spoken_to(hub_setup: HubSetup) -> None:
    hub_socket = hub_setup.hub_socket()
    path = f"{hub_socket.path}/{hub_socket.name}{SOCKET}"
    hub_socket.close()
    command = [sys.executable, "-c", ANOTHERS, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listening:
        assert listening.stdout is not None
        assert listening.stdout.readline() == "listening\n"
        try:
            told = served_alone(hub_setup)
        finally:
            listening.terminate()

    assert "is another user's" in told
    assert told.count("\n") == 1


def test_an_upgrade_leaves_clients_to_the_old_hub_and_gives_new_ones_another(
    hub_setup: HubSetup,
) -> None:
    hub_setup.root = hub_setup.directory / "installed"
    shutil.copytree(ROOT / "aggregator", hub_setup.root / "aggregator")
    first = hub_setup.client()
    (old,) = hub_setup.hubs()

    os.utime(hub_setup.root / "aggregator" / "__init__.py", (0, 0))

    second = hub_setup.client("modern")
    (new,) = {*hub_setup.hubs()} - {old}
    assert first.call("test__echo", text="hello") == "hello"
    assert second.call("test__echo", text="hello") == "hello"
    assert first.leave() == 0
    await_ends([old], PATIENCE)
    assert hub_setup.hubs() == [new]
    assert second.leave() == 0
