"""A bad day, all at once: half of the servers are ill-treated while everybody works.

Three aggregators share one file: two on pipes, with a client of either era, and one behind HTTP
with three. In the lulls, of which the first one is taken before anything happens, everything must
be as it was: the servers are back, and nothing has become more.
"""

import json
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import h11

from tests.soak.client import GoneError, Json, is_error, text_of
from tests.soak.ends import await_ends, cookie_of, family
from tests.soak.houses import Caller, House, on_pipes, on_the_web
from tests.soak.mischief import Editor, Mischief, configured
from tests.soak.scales import Weight
from tests.soak.web import WebClient

LULLS = 16
"""How often the day is interrupted to see whether everything is as it was."""

PACE = 0.03
"""Seconds between two calls of one caller, on average the half."""

HANDS = 2
"""Requests that each client has under way at a time."""

PATIENCE = 30.0
"""Seconds after which a request counts as unanswered: ten times what a call may take."""

RECOVERY = 60.0
"""Seconds that everything has to be as it was, once nothing happens any more."""

LOOK = 0.2
"""Seconds between two looks at the processes, until they are as they were."""

MANNERS = ("end of input", "SIGTERM", "SIGKILL")
"""How the aggregators end in turn."""


@dataclass(slots=True)
class Tally:
    """What one client has seen."""

    calls: Counter[str] = field(default_factory=Counter[str])
    """By kind: of untouched servers, of touched ones, searches and lists."""
    errors: int = 0
    """Of touched servers, where they are what is to be expected."""
    slowest: float = 0.0
    """Seconds that a call of an untouched server took at the most."""


@dataclass(slots=True)
class Day:
    """What came of it."""

    tallies: dict[str, Tally] = field(default_factory=dict[str, Tally])
    wrong: list[str] = field(default_factory=list[str])
    unanswered: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])
    """Errors of servers that nobody had touched."""
    weights: dict[str, list[Weight]] = field(default_factory=dict[str, list[Weight]])
    misfortunes: Counter[str] = field(default_factory=Counter[str])
    edits: Counter[str] = field(default_factory=Counter[str])
    replaced: list[str] = field(default_factory=list[str])
    """Untouched servers with another process than at the beginning."""
    absent: list[str] = field(default_factory=list[str])
    """Servers that did not come back, or were not what the file says."""
    zombies: list[str] = field(default_factory=list[str])
    orphans: list[str] = field(default_factory=list[str])
    trouble: list[str] = field(default_factory=list[str])
    """What the logs say of bugs, and whatever ended that should not have."""

    def failures(self) -> dict[str, list[str]]:
        """Return what was promised and not kept."""
        return {
            "wrong answers": self.wrong,
            "unanswered": self.unanswered,
            "errors of untouched servers": self.errors,
            "untouched servers replaced": self.replaced,
            "servers not back": self.absent,
            "zombies": self.zombies,
            "orphans": self.orphans,
            "bugs": self.trouble,
            "grown": [each for name in self.weights for each in grown(name, self.weights[name])],
        }


def table(day: Day) -> list[str]:
    """Show a day to a person."""
    rows = [
        f"{'client':20}{'untouched':>10}{'touched':>9}{'errors':>8}{'searches':>9}{'slowest':>9}"
    ]
    for name, tally in day.tallies.items():
        calls = tally.calls
        rows.append(
            f"{name:20}{calls['untouched']:>10,}{calls['touched']:>9,}{tally.errors:>8,}"
            f"{calls['searches']:>9,}{tally.slowest:>8.2f}s"
        )
    rows.append(_counted(day.misfortunes))
    rows.append("edits: " + _counted(day.edits))
    rows.append(f"{'held in each lull':20}{'first':>10}{'second':>9}{'half':>8}{'last':>9}")
    for name, weights in day.weights.items():
        shown = (weights[0], weights[1], weights[len(weights) // 2], weights[-1])
        for what, unit in (("memory", 1 << 20), ("objects", 1), ("descriptors", 1), ("tasks", 1)):
            first, second, half, last = (getattr(each, what) // unit for each in shown)
            label = f"{name} {'MiB' if what == 'memory' else what}"
            rows.append(f"{label:29.29}{first:>9,}{second:>9,}{half:>8,}{last:>9,}")
    for what, found in day.failures().items():
        rows += [f"{len(found)} {what}", *(f"  {each[:300]}" for each in found[:5])]
    return rows


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))


ALLOWED = Weight(memory=8 << 20, objects=5_000, descriptors=2, tasks=4)
"""By how much the second half of a day may be above the first: what caches and allocators vary."""


def grown(name: str, weights: list[Weight]) -> list[str]:
    """Say what has become more, in the most of the second half over the most of the first.

    The very first is left out: what is done for the first time is often kept.
    """
    half = (len(weights) + 1) // 2
    if half < 2:
        return []
    return [
        f"{name}: {what} from {before:,} to {after:,}"
        for what in ("memory", "objects", "descriptors", "tasks")
        if (after := max(getattr(each, what) for each in weights[half:]))
        > (before := max(getattr(each, what) for each in weights[1:half])) + getattr(ALLOWED, what)
    ]


class Run:
    """One day, as it goes on."""

    def __init__(self, houses: list[House], names: list[str], victims: set[str]) -> None:
        self.day = Day()
        self.houses = houses
        self.names = names
        self.victims = victims
        self.untouched = [name for name in names if name not in victims]
        self._first: dict[tuple[str, str], list[int]] = {}

    async def work(self, name: str, caller: Caller, until: float, seed: str) -> None:
        """Call, search and list until the time is over."""
        random = Random(seed)  # noqa: S311 - the same in every run
        while time.monotonic() < until:
            kind = random.choices(
                (self._call_untouched, self._call_touched, self._search, self._list), (9, 9, 2, 1)
            )[0]
            if not await kind(name, caller, random):
                return
            await anyio.sleep(random.uniform(0, PACE))

    async def _call_untouched(self, name: str, caller: Caller, random: Random) -> bool:
        server = random.choice(self.untouched)
        began = time.perf_counter()
        answer, right = await self._call(name, caller, server, random)
        tally = self.day.tallies[name]
        tally.slowest = max(tally.slowest, time.perf_counter() - began)
        tally.calls["untouched"] += 1
        if answer is not None and text_of(answer) != right:
            self.day.errors.append(f"{name}: {right} got {text_of(answer)}")
        return answer is not None

    async def _call_touched(self, name: str, caller: Caller, random: Random) -> bool:
        answer, right = await self._call(name, caller, random.choice([*self.victims]), random)
        tally = self.day.tallies[name]
        tally.calls["touched"] += 1
        if answer is not None and is_error(answer):
            tally.errors += 1
        elif answer is not None and text_of(answer) != right:
            self.day.wrong.append(f"{name}: {right} got {text_of(answer)}")
        return answer is not None

    async def _call(
        self, name: str, caller: Caller, server: str, random: Random
    ) -> tuple[Json | None, str]:
        """Call a server by one of the ways; return the answer, and what the right one says."""
        nonce = f"{name} {random.random()}"
        call: Json = {"name": f"{server}__echo", "arguments": {"text": nonce}}
        if random.random() < 0.5:
            call = {"name": "CallTool", "arguments": call}
        return await self.ask(name, caller, "tools/call", call), f"{server}:{nonce}"

    async def _search(self, name: str, caller: Caller, random: Random) -> bool:
        tool = f"{random.choice(self.untouched)}__echo"
        query: Json = {"name": "ToolSearch", "arguments": {"query": f"select:{tool}"}}
        answer = await self.ask(name, caller, "tools/call", query)
        self.day.tallies[name].calls["searches"] += 1
        if answer is not None and tool not in text_of(answer):
            self.day.errors.append(f"{name}: a search for {tool} got {text_of(answer)}")
        return answer is not None

    async def _list(self, name: str, caller: Caller, _random: Random) -> bool:
        answer = await self.ask(name, caller, "tools/list", {})
        self.day.tallies[name].calls["lists"] += 1
        if answer is not None and "result" not in answer:
            self.day.errors.append(f"{name}: a list got {text_of(answer)}")
        return answer is not None

    async def ask(self, name: str, caller: Caller, method: str, params: Json) -> Json | None:
        """Send a request; one that is not answered in good time is written down."""
        try:
            with anyio.fail_after(PATIENCE):
                return await caller.request(method, params)
        except (
            TimeoutError,
            OSError,
            GoneError,
            anyio.BrokenResourceError,
            h11.ProtocolError,
        ) as e:
            self.day.unanswered.append(f"{name}: {method} {json.dumps(params)[:200]}: {e!r}")
            return None

    async def lull(self) -> None:
        """See whether everything is as it was, and weigh what there is."""
        for house in self.houses:
            for name, caller in house.callers.items():
                await self._recover(name, caller)
                if isinstance(caller, WebClient):
                    await caller.hang_up()
            await self._settle(house)
            self.day.weights.setdefault(house.name, []).append(
                await house.scales.weigh(house.process)
            )

    async def _recover(self, name: str, caller: Caller) -> None:
        """Call every server until it answers as it should."""
        for server in self.names:
            answer: Json | None = None
            with anyio.move_on_after(RECOVERY):
                while not _says(answer, f"{server}:again"):
                    arguments = {"text": "again"}
                    call: Json = {"name": f"{server}__echo", "arguments": arguments}
                    answer = await self.ask(name, caller, "tools/call", call)
            if not _says(answer, f"{server}:again"):
                self.day.absent.append(f"{name}: {server}: {answer}")

    async def _settle(self, house: House) -> None:
        """Wait until there is one process for each server, and none that has ended."""
        for _ in range(round(RECOVERY / LOOK)):
            if not self._unsettled(house):
                break
            await anyio.sleep(LOOK)
        self.day.absent += self._unsettled(house)
        self.day.zombies += house.zombies()
        for name in self.untouched:
            pids = house.servers().get(name, [])
            if self._first.setdefault((house.name, name), pids) != pids:
                self.day.replaced.append(f"{house.name}: {name}")
        self.day.trouble += [
            f"{name} hears nothing any more"
            for name, caller in house.callers.items()
            if isinstance(caller, WebClient) and caller.is_deaf
        ]

    def _unsettled(self, house: House) -> list[str]:
        found = house.servers()
        unlike = [name for name in {*found, *self.names} if len(found.get(name, [])) != 1]
        return [f"{house.name}: {name} {found.get(name, [])}" for name in unlike] + house.zombies()


def _says(answer: Json | None, text: str) -> bool:
    return answer is not None and not is_error(answer) and text_of(answer) == text


async def measure(directory: Path, *, servers: int, seconds: float, lulls: int, seed: int) -> Day:
    """Live through a day."""
    names = [f"server{number}" for number in range(servers)]
    victims = names[::2]
    random = Random(seed)  # noqa: S311 - the same in every run
    path = directory / "servers.yaml"
    editor = Editor(path, configured(names), victims, random)
    async with _houses(path) as houses:
        run = Run(houses, names, set(victims))
        mischief = Mischief(houses, victims, random, run.ask)
        for house in houses:
            run.day.tallies |= {name: Tally() for name in house.callers}
        await run.lull()
        for number in range(lulls):
            until = time.monotonic() + seconds / lulls
            async with anyio.create_task_group() as group:
                for each, (name, caller) in enumerate(_callers(houses)):
                    for hand in range(HANDS):
                        group.start_soon(
                            run.work, name, caller, until, f"{seed} {number} {each} {hand}"
                        )
                group.start_soon(mischief.run, until)
                group.start_soon(editor.run, until, houses)
            await run.lull()
        run.day.misfortunes, run.day.edits = mischief.done, editor.done
        run.day.wrong += mischief.wrong
        await _end(run.day, houses)
    return run.day


def _callers(houses: list[House]) -> list[tuple[str, Caller]]:
    return [each for house in houses for each in house.callers.items()]


@asynccontextmanager
async def _houses(config: Path) -> AsyncGenerator[list[House], None]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(house)
            for house in (
                on_pipes(config, "handshake"),
                on_pipes(config, "modern"),
                on_the_web(config, ("handshake", "modern", "handshake")),
            )
        ]


async def _end(day: Day, houses: list[House]) -> None:
    """End each aggregator in another way, and look for what is left of it."""
    for house, manner in zip(houses, MANNERS, strict=True):
        if house.process.returncode is not None:
            day.trouble.append(f"{house.name} had ended with {house.process.returncode}")
            continue
        cookies = {cookie_of(house.process.pid)}
        status = await house.end(manner)
        if manner != "SIGKILL" and status != 0:
            day.trouble.append(f"{house.name} ended with {status}")
        await await_ends(cookies, time.monotonic(), [])
        day.orphans += [f"{house.name}: {each}" for each in family(cookies)]
        day.trouble += [f"{house.name}: {line}" for line in house.log.trouble()]
