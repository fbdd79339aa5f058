"""What befalls servers and their file on a bad day: kills, stops, floods, storms and edits."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random

import anyio

from tests.soak.author import DAMAGES, WRITERS
from tests.soak.client import Json, faulty, is_error, text_of
from tests.soak.houses import Caller, House

Servers = Mapping[str, Json]

Ask = Callable[[str, Caller, str, Json], Awaitable[Json | None]]

FAULTS: Mapping[str, tuple[str, int]] = {
    "floods of stdout": ("noise", 5_000),
    "floods of stderr": ("stderr", 5_000),
    "storms of changes": ("storm", 2_000),
}
"""What a server is asked to do itself, and how much of it."""

KINDS = ("kills", "stops", *FAULTS)

LONGEST_STOP = 6.0
"""Seconds that a server stands still at the most: some longer than a call may take, most not."""

BREATH = 1.5
"""Seconds between two misfortunes, and between two edits, on average the half."""

MORE_TOOLS = 5


def configured(names: list[str]) -> dict[str, Json]:
    """Configure servers of both eras in turn, each with answers nobody else can give."""
    eras = ("handshake", "modern", "both")
    return {
        name: faulty("ok", "--era", eras[number % 3], "--sign", f"{name}:", "--name", name)
        | {"callTimeout": 3, "description": "as it was"}
        for number, name in enumerate(names)
    }


class Mischief:
    """Whoever kills, stops, floods and storms."""

    def __init__(self, houses: list[House], victims: list[str], random: Random, ask: Ask) -> None:
        self.done = Counter[str]()
        self.wrong: list[str] = []
        """Answers to those who asked for it that were not the right ones."""
        self._ask = ask
        self._houses = houses
        self._victims = victims
        self._random = random

    async def run(self, until: float) -> None:
        """Do one thing after another to one victim after another."""
        async with anyio.create_task_group() as group:
            while time.monotonic() < until:
                house, victim = (
                    self._random.choice(self._houses),
                    self._random.choice(self._victims),
                )
                kind = self._random.choice(KINDS)
                group.start_soon(self._do, kind, house, victim, until)
                await anyio.sleep(self._random.uniform(0, BREATH))

    async def _do(self, kind: str, house: House, victim: str, until: float) -> None:
        if kind in FAULTS:
            await self._have(kind, house, victim)
        elif not (pids := house.servers().get(victim)):
            return
        elif kind == "kills":
            _send(pids[-1], signal.SIGKILL)
        else:
            await self._stop(pids[-1], until)
        self.done[kind] += 1

    async def _have(self, kind: str, house: House, victim: str) -> None:
        """Have a server misbehave by itself."""
        fault, size = FAULTS[kind]
        name, caller = self._random.choice(list(house.callers.items()))
        arguments: Json = {"kind": fault, "size": self._random.randint(1, size)}
        call: Json = {"name": f"{victim}__fault", "arguments": arguments}
        answer = await self._ask(name, caller, "tools/call", call)
        if answer is not None and not is_error(answer) and "after the" not in text_of(answer):
            self.wrong.append(f"{name}: {kind} of {victim} got {text_of(answer)}")

    async def _stop(self, pid: int, until: float) -> None:
        """Have a process stand still for a while."""
        with suppress(ProcessLookupError):
            process = os.pidfd_open(pid)
            try:
                signal.pidfd_send_signal(process, signal.SIGSTOP)
                with anyio.move_on_after(max(0.0, until - time.monotonic())):
                    await anyio.sleep(self._random.uniform(0, LONGEST_STOP))
                signal.pidfd_send_signal(process, signal.SIGCONT)
            finally:
                os.close(process)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


class Editor:
    """Whoever edits the file: victims are changed, taken out and put back, and it is broken."""

    def __init__(self, path: Path, servers: Servers, victims: list[str], random: Random) -> None:
        self.done = Counter[str]()
        self._path = path
        self._servers = dict(servers)
        self._victims = victims
        self._random = random
        self._editions = 0
        self.mend()

    async def run(self, until: float, houses: list[House]) -> None:
        """Edit the file over and over, and leave it as it was."""
        while time.monotonic() < until:
            kind = self._random.choice(("good", "good", "bad", "hang up"))
            if kind == "hang up":
                self._random.choice(houses).process.send_signal(signal.SIGHUP)
            else:
                self._put(self._changed() if kind == "good" else self._damaged())
            self.done[kind] += 1
            await anyio.sleep(self._random.uniform(0, 2 * BREATH))
        self.mend()

    def mend(self) -> None:
        """Write what is in the end to be in force."""
        self._put(self._text(self._servers))

    def _changed(self) -> str:
        victim = self._random.choice(self._victims)
        changes: tuple[Callable[[], Servers], ...] = (
            lambda: {name: each for name, each in self._servers.items() if name != victim},
            lambda: self._with(victim, description=f"as it is at {self._random.random()}"),
            lambda: self._with(victim, args=self._other_arguments(victim)),
            lambda: self._servers,
        )
        return self._text(self._random.choice(changes)())

    def _with(self, victim: str, **settings: object) -> Servers:
        return {**self._servers, victim: {**self._servers[victim], **settings}}

    def _other_arguments(self, victim: str) -> list[str]:
        program, *rest = self._servers[victim]["args"]
        return [program, "ok", "--tools", str(self._random.randint(1, MORE_TOOLS)), *rest[1:]]

    def _damaged(self) -> str | None:
        return self._random.choice(DAMAGES)(self._random, self._text(self._servers))

    def _text(self, servers: Servers) -> str:
        self._editions += 1
        lines = [f"  {name}: {json.dumps(server)}" for name, server in servers.items()]
        return "\n".join([f"# edition {self._editions}", "servers:", *lines, ""])

    def _put(self, text: str | None) -> None:
        if text is None:
            self._path.unlink(missing_ok=True)
        else:
            self._random.choice(WRITERS)(self._path, text)
