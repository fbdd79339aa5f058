"""The hub: lets clients in, finds or founds their fleet, and ends when nobody needs it."""

import errno
import json
import logging
import os
import socket
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import anyio
import anyio.abc
from anyio import to_thread

from aggregator.app.hub.connection import HubConnection, HubConnectionError
from aggregator.app.hub.door import DoorSession
from aggregator.app.hub.hello import Hello, HelloError, read_hello
from aggregator.app.hub.likeness import Resolved
from aggregator.app.hub.report import report
from aggregator.app.hub.session import Session
from aggregator.app.hub.shared_fleet import Launch, SharedFleet, SharedFleetClosedError
from aggregator.app.life import Expect, running_fleet
from aggregator.basics.signals import Signal
from aggregator.config import check_profile, load_config
from aggregator.entry.hub_socket import SOCKET, HubSocket, identity, peer
from aggregator.entry.shim import ACCEPTED, BEGUN, DOOR, JOIN, REFUSED, SERVE, STATUS, STOP
from aggregator.errors import ConfigError

logger = logging.getLogger(__name__)

BACKLOG = 128
"""Clients that may wait to be let in."""
HELLO_PATIENCE = 10.0
"""Seconds that a client has to say who it is."""
GO_PATIENCE = 10.0
"""Seconds that it then has to hand over its streams."""
LOOK = 2.0
"""Seconds between two looks at whether we are still the one that new clients find."""
UNUSED = 60.0
"""Seconds after which we end if nobody has come at all."""
MAX_FLEETS = 32
"""Fleets at a time; whoever needs one more is served in a process of their own."""
FULL_PAUSE = 0.1
"""Seconds to wait where no descriptor is left for another client."""


class Hub:
    """All clients of a person, and their fleets."""

    def __init__(
        self, hub_socket: HubSocket, expect: Expect, launch: Launch = running_fleet
    ) -> None:
        self.hub_socket = hub_socket
        self.since = time.time()
        self.fleets: list[SharedFleet] = []
        self._expect = expect
        self._launch = launch
        self._identity = identity()
        self._numbers = count(1)
        self._has_served = False
        self._guests = 0
        """Connections that are open."""
        self._changed = Signal()
        self._turn = anyio.Lock()
        self._has_stopped = False
        self._is_found = True
        """Whether new clients come to us."""
        self._spare = os.open(os.devnull, os.O_RDONLY)

    async def run(self, lock: int) -> None:
        """Serve clients until nobody needs us or we are told to stop."""
        listener, inode = _listen(self.hub_socket)
        with listener:
            async with anyio.create_task_group() as group:
                group.start_soon(self._let_in, listener, group)
                await self._live(lock, inode)
                # Whoever is only just being let in is to find another hub.
                self._has_stopped = True
                self._resign(lock, inode)
                for shared in self.fleets:
                    shared.stop()
                while self.fleets or self._guests:
                    await self._changed.wait()
                group.cancel_scope.cancel()

    def stop(self) -> None:
        """Have all clients leave, and end."""
        self._has_stopped = True
        self._changed.send()

    def reload(self) -> None:
        """Have every file read again."""
        for shared in self.fleets:
            shared.orders.reload()

    async def _live(self, lock: int, inode: int) -> None:
        """Return when it is time to end; let others take our place once new clients do."""
        began = anyio.current_time()
        while not self._has_stopped:
            if self._is_found and not (_inode(self.hub_socket) == inode and self._is_installed()):
                logger.info("new clients are served by another process from now on")
                self._resign(lock, inode)
                for shared in self.fleets:
                    shared.close()
            is_idle = not self.fleets and not self._guests
            patience = UNUSED if self._is_found and not self._has_served else 0.0
            if is_idle and anyio.current_time() - began >= patience:
                return
            with anyio.move_on_after(LOOK):
                await self._changed.wait()

    def _resign(self, lock: int, inode: int) -> None:
        """Be found no longer, and let another be the hub."""
        if self._is_found:
            self._is_found = False
            _unlink(self.hub_socket, inode)
            os.close(lock)

    def _is_installed(self) -> bool:
        """Say whether new clients are still of our version."""
        try:
            return identity() == self._identity
        except OSError:
            # An upgrade takes away what we were started from before it puts something there.
            return False

    async def _let_in(self, listener: socket.socket, group: anyio.abc.TaskGroup) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                await anyio.wait_readable(listener)
            except OSError as error:
                await self._turn_away(listener, error)
            else:
                group.start_soon(self._welcome, connection, group)

    async def _turn_away(self, listener: socket.socket, error: OSError) -> None:
        """Let go of whoever comes while no descriptor is left: they are served without us."""
        if error.errno in (errno.EMFILE, errno.ENFILE):
            os.close(self._spare)
            with suppress(OSError):
                listener.accept()[0].close()
            self._spare = os.open(os.devnull, os.O_RDONLY)
        await anyio.sleep(FULL_PAUSE)

    async def _welcome(self, connection: socket.socket, group: anyio.abc.TaskGroup) -> None:
        line = HubConnection(connection)
        self._guests += 1
        try:
            process, user = peer(connection)
            if user == os.geteuid():
                await self._attend(line, process, group)
        except (HubConnectionError, HelloError) as error:
            logger.info("a client could not be understood: %s", error)
        except Exception:
            logger.exception("a client could not be served")
        finally:
            line.close()
            self._guests -= 1
            self._changed.send()

    async def _attend(self, line: HubConnection, process: int, group: anyio.abc.TaskGroup) -> None:
        message = b""
        with anyio.move_on_after(HELLO_PATIENCE):
            message = await line.hear()
        hello = read_hello(message)
        if hello.kind == STATUS:
            await line.give(
                json.dumps(report(self.fleets, self.since, self.hub_socket.log)).encode()
            )
        elif hello.kind == STOP:
            await line.give(ACCEPTED)
            self.stop()
        elif hello.identity != self._identity:
            await line.give(REFUSED + b"the hub is of another version")
        elif hello.kind in (SERVE, JOIN, DOOR):
            await self._serve(hello, line, process, group)

    async def _serve(
        self, hello: Hello, line: HubConnection, process: int, group: anyio.abc.TaskGroup
    ) -> None:
        try:
            shared = await self._find(hello, group)
        except SharedFleetClosedError:
            return
        except ConfigError:
            # In a process of its own, the client is told what is wrong.
            await line.give(REFUSED)
            return
        except RuntimeError as error:
            await line.give(REFUSED + f"the hub cannot read the file: {error}".encode())
            return
        if shared is None:
            await line.give(REFUSED + b"the hub has too many fleets already")
            return
        kind = DoorSession if hello.kind == DOOR else Session
        session = kind(next(self._numbers), hello, line, process)
        with shared.used(session), suppress(SharedFleetClosedError):
            upstream = await shared.opened()
            await line.give(ACCEPTED)
            with anyio.move_on_after(GO_PATIENCE):
                await line.take_over()
            if session.is_lost or not line.descriptors:
                # Nothing has been read: whoever is still there can come again.
                return
            await line.give(BEGUN)
            for warning in shared.resolved.config.warnings:
                session.say(f"warning: {warning}")
            status = await session.serve(upstream, shared.orders.reload)
            # Not before its streams are free: whoever started it may read to their end.
            line.let_go()
            await line.give(bytes([status]))

    async def _find(self, hello: Hello, group: anyio.abc.TaskGroup) -> SharedFleet | None:
        """Return the fleet that a client is to have: one that there is, or a new one.

        Raises:
            ConfigError: The file cannot be used, or has no such profile.
            PierClosedError: It is to have none of us, since we are ending.
        """
        config = await to_thread.run_sync(load_config, Path(hello.config), hello.variables)
        if self._has_stopped:
            raise SharedFleetClosedError
        check_profile(config, hello.profile)
        resolved = Resolved(config, hello.variables)
        # One after the other: two that come together are to have one fleet.
        async with self._turn:
            for shared in tuple(self.fleets):
                if shared.is_open and await shared.suits(resolved):
                    return shared
            if self._has_stopped:
                raise SharedFleetClosedError
            if hello.kind == JOIN or len(self.fleets) >= MAX_FLEETS:
                return None
            self._has_served = True
            shared = SharedFleet(resolved, self._expect, self._launch)
            self.fleets.append(shared)
            group.start_soon(self._run, shared)
            return shared

    async def _run(self, shared: SharedFleet) -> None:
        try:
            await shared.run()
        except Exception:
            logger.exception("a fleet has ended")
        finally:
            self.fleets.remove(shared)
            self._changed.send()


def _listen(hub_socket: HubSocket) -> tuple[socket.socket, int]:
    """Return the socket that clients find from now on, and what tells its file from others."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own = f".{hub_socket.name}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(own, dir_fd=hub_socket.descriptor)
    listener.bind(hub_socket.address(own))
    listener.listen(BACKLOG)
    listener.setblocking(False)
    # Whoever finds it finds somebody who listens; what a dead hub has left is replaced.
    os.rename(
        own,
        hub_socket.name + SOCKET,
        src_dir_fd=hub_socket.descriptor,
        dst_dir_fd=hub_socket.descriptor,
    )
    return listener, _inode(hub_socket)


def _inode(hub_socket: HubSocket) -> int:
    try:
        return os.stat(
            hub_socket.name + SOCKET, dir_fd=hub_socket.descriptor, follow_symlinks=False
        ).st_ino
    except OSError:
        return 0


def _unlink(hub_socket: HubSocket, inode: int) -> None:
    """Be found no longer."""
    if _inode(hub_socket) == inode:
        with suppress(OSError):
            os.unlink(hub_socket.name + SOCKET, dir_fd=hub_socket.descriptor)
