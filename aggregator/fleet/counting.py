"""Have it counted what definitions cost, once for each set of tools, while others go on."""

import logging
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Protocol

from anyio import to_thread

from aggregator.basics.signals import Signal
from aggregator.catalog import CHARACTERS_PER_TOKEN, Catalog, Scale, ToolEntry
from aggregator.config.tokens import TokenCounter, Tokenizer
from aggregator.fleet.counters import Count, CountingError, open_counter
from aggregator.fleet.now import Now
from aggregator.memory import Memory
from aggregator.names import ServerName

logger = logging.getLogger(__name__)

SECTION = "tokens"
"""What is remembered of it between runs."""
DENSEST, SPARSEST = 0.25, 40.0
"""Characters to a token that can be believed."""

Entries = Sequence[ToolEntry]


class Weighed(Protocol):
    """What has tools that cost something."""

    now: Now
    changed: Signal

    def weigh(self, scale: Scale, problem: str | None, /) -> None:
        """Take note of what definitions cost, or of why that is not known."""
        ...


class Counted:
    """What was counted by one counter, of sets of tools by their names."""

    def __init__(self, source: Tokenizer | TokenCounter, memory: Memory) -> None:
        self._mark = source.mark
        self._memory = memory
        self._names: dict[ServerName, tuple[Entries, str]] = {}
        self._found: dict[str, float] = {}
        """Of this run, also what is not worth remembering: what nobody could count."""

    def find(self, server: ServerName, entries: Entries) -> float | None:
        """Return how many characters of these definitions make a token, if that is known."""
        key = self._key(server, entries)
        if not entries:
            return CHARACTERS_PER_TOKEN
        found = self._found.get(key) or self._memory.get(SECTION, key)
        return found if isinstance(found, float) and _is_credible(found) else None

    def learn(self, server: ServerName, entries: Entries, ratio: float | None) -> None:
        """Remember how many characters of these definitions make a token, if that can be said."""
        key = self._key(server, entries)
        self._found[key] = CHARACTERS_PER_TOKEN if ratio is None else ratio
        if ratio is not None:
            self._memory.put(SECTION, key, ratio)

    def scale(self, tools: Mapping[ServerName, Entries], *, is_growing: bool = False) -> Scale:
        """Return what is known of these servers."""
        found = {name: self.find(name, entries) for name, entries in tools.items()}
        counted = {name: each for name, each in found.items() if each is not None}
        return Scale.of(counted, is_growing=is_growing)

    def _key(self, server: ServerName, entries: Entries) -> str:
        known, key = self._names.get(server, ((), ""))
        if known is not entries or not key:
            names = "\0".join(sorted(each.name for each in entries))
            key = f"{self._mark}:{sha256(names.encode()).hexdigest()[:16]}"
            self._names[server] = entries, key
        return key


class Counting:
    """Follows the catalog with a counter."""

    def __init__(self, source: Tokenizer | TokenCounter, count: Count, memory: Memory) -> None:
        self._counted = Counted(source, memory)
        self._count = count
        self._problem: str | None = None

    def recall(self, fleet: Weighed) -> None:
        """Begin with what was counted in other runs."""
        self._show(fleet, is_growing=True)

    async def keep(self, fleet: Weighed) -> None:
        """Count what has not been counted, until cancelled, or until nobody can."""
        while True:
            tools = tools_of(fleet.now.catalog)
            due = [name for name in tools if self._counted.find(name, tools[name]) is None]
            if not due:
                self._show(fleet, is_growing=True)
                await fleet.changed.wait()
            elif not await self._try(due[0], tools[due[0]]):
                self._show(fleet, is_growing=False)
                return

    async def _try(self, server: ServerName, entries: Entries) -> bool:
        """Count the tools of one server; say whether others can be."""
        try:
            characters = await to_thread.run_sync(_characters, entries)
            ratio = _credible(characters / max(1, await self._count(entries)))
            self._counted.learn(server, entries, ratio)
        # One that cannot be told of is no reason to end, nor is a thread that cannot be started.
        except (CountingError, RuntimeError) as error:
            self._counted.learn(server, entries, None)
            if self._problem is None:
                self._problem = f"{error}, so tokens are told by length"
                logger.warning("`tokens`: %s", self._problem, extra={"server": server})
            return not (isinstance(error, CountingError) and error.is_final)
        return True

    def _show(self, fleet: Weighed, *, is_growing: bool) -> None:
        scale = self._counted.scale(tools_of(fleet.now.catalog), is_growing=is_growing)
        if (scale, self._problem) != (fleet.now.catalog.scale, fleet.now.uncounted):
            fleet.weigh(scale, self._problem)


def open_counting(source: Tokenizer | TokenCounter, memory: Memory) -> Counting:
    """Return what counts by what the file names."""
    return Counting(source, open_counter(source), memory)


def _characters(entries: Entries) -> int:
    return sum(each.characters for each in entries)


def _credible(ratio: float) -> float:
    if not _is_credible(ratio):
        raise CountingError(f"a token is said to have {ratio:.3g} characters")
    return ratio


def _is_credible(ratio: float) -> bool:
    return DENSEST <= ratio <= SPARSEST


def tools_of(catalog: Catalog) -> dict[ServerName, Entries]:
    """Return the tools of each server of which they are known."""
    return {name: known.entries for name, known in catalog.known.items()}
