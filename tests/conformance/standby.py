"""Clients that the suite starts at once: what they need is loaded here, and each is a fork.

`python -m tests.conformance.standby SOCKET` waits for `summon.py`, which the suite starts in the
place of a client: most of what a scenario takes would be the same imports again.
"""

import gc
import json
import os
import signal
import socket
import sys
import threading
import traceback
from typing import Any

import anyio

from tests.conformance import authorized, client

CLIENTS = {"client": client.main, "authorized": authorized.main}


def main(place: str) -> None:
    """Have a fork of this process be each client that is asked for."""
    # Nobody waits for a fork but who asked for it.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(place)
        door.listen()
        print("ready", flush=True)  # noqa: T201 - for who started it
        while True:
            visitor, _ = door.accept()
            with visitor:
                if os.fork() == 0:
                    _be(visitor)


def _be(visitor: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, descriptors, _flags, _address = socket.recv_fds(visitor, 1 << 17, 2)
    asked: dict[str, Any] = json.loads(message)
    for descriptor, ours in zip(descriptors, (1, 2), strict=True):
        os.dup2(descriptor, ours)
    os.environ.update(asked["variables"])
    threading.Thread(target=_leave_with, args=(visitor,), daemon=True).start()
    status = 0
    try:
        anyio.run(CLIENTS[asked["who"]], asked["url"])
    except BaseException:  # noqa: BLE001 - it is told, and the suite is told that it failed
        traceback.print_exc()
        status = 1
    visitor.send(bytes([status]))
    os._exit(status)


def _leave_with(visitor: socket.socket) -> None:
    """End with whoever asked for us: the suite ends a client that takes too long."""
    if not visitor.recv(1):
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
