"""What definitions cost is counted once for each set of tools, while others go on."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from aggregator.basics.signals import Signal
from aggregator.catalog import BY_LENGTH, Scale, ToolEntry
from aggregator.config import Settings
from aggregator.config.mode import ToolSearchMode
from aggregator.config.tokens import Tokenizer
from aggregator.fleet.counters import CountingError
from aggregator.fleet.counting import SECTION, Counting, tools_of
from aggregator.fleet.now import Now
from aggregator.memory import Memory, NoMemory, Notebook
from aggregator.names import ServerName
from tests.peers import configured
from tests.threads import refuse
from tests.toolsearch.views import ready, tool

DB, WEB = ServerName("db"), ServerName("web")
SOURCE = Tokenizer("tiktoken", "any")


pytestmark = pytest.mark.anyio


class Shown:
    """What is known, and is told what it weighs."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.now = Now.starting(configured({DB: {}, WEB: {}}, settings), since=0.0)
        self.changed = Signal()
        self.weighed = 0

    def offer(self, server: ServerName, *names: str) -> None:
        each = (tool(name, "Does what its name says") for name in names)
        self.now = self.now.with_state(server, ready(server, *each))
        self.changed.send()

    def weigh(self, scale: Scale, problem: str | None, /) -> None:
        self.now = self.now.with_scale(scale, problem)
        self.weighed += 1
        self.changed.send()

    def tokens(self, server: ServerName) -> float:
        catalog = self.now.catalog
        return round(catalog.scale.cost(catalog.known[server].entries), 6)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.changed.wait()


class Counter:
    """Says that each tool costs so many tokens."""

    def __init__(self, tokens: int, *failures: CountingError) -> None:
        self.asked: list[list[str]] = []
        self._tokens = tokens
        self._failures = list(failures)

    async def __call__(self, entries: Sequence[ToolEntry]) -> int:
        self.asked.append([entry.name for entry in entries])
        await anyio.lowlevel.checkpoint()
        if self._failures:
            raise self._failures.pop(0)
        return self._tokens * len(entries)


def counting(count: Counter, memory: Memory | None = None) -> Counting:
    return Counting(SOURCE, count, memory or NoMemory())


async def test_each_set_of_tools_is_counted_once() -> None:
    shown, count = Shown(), Counter(10)
    shown.offer(DB, "query", "explain")
    async with anyio.create_task_group() as group:
        group.start_soon(counting(count).keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        shown.offer(WEB, "fetch")
        await shown.until(lambda: WEB in shown.now.catalog.scale.counted)
        shown.offer(WEB, "fetch")
        shown.offer(WEB, "fetch", "crawl_deeply")
        await shown.until(lambda: len(count.asked) == 3 and shown.tokens(WEB) == 20)
        group.cancel_scope.cancel()

    assert count.asked == [
        ["db__query", "db__explain"],
        ["web__fetch"],
        ["web__fetch", "web__crawl_deeply"],
    ]
    assert shown.tokens(DB) == 20
    assert not shown.now.catalog.scale.awaits(shown.now.catalog.known)


async def test_what_was_counted_in_another_run_holds_from_the_first_moment_on(
    tmp_path: Path,
) -> None:
    shown, memory = Shown(), Notebook(tmp_path / "state.json")
    shown.offer(DB, "query")
    async with anyio.create_task_group() as group:
        group.start_soon(counting(Counter(7), memory).keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        group.cancel_scope.cancel()
    assert memory.save()

    again = Shown()
    again.offer(DB, "query")
    other = Counter(7)
    counting(other, Notebook(tmp_path / "state.json")).recall(again)
    assert again.tokens(DB) == 7
    assert other.asked == []

    elsewhere = Shown()
    elsewhere.offer(DB, "query")
    by_another = Counting(Tokenizer("tiktoken", "other"), other, Notebook(tmp_path / "state.json"))
    by_another.recall(elsewhere)
    assert elsewhere.now.catalog.scale.awaits([DB])


@pytest.mark.parametrize("junk", [0.0, -3.0, 1e9, "4.0", None, [4.0], True])
async def test_what_nobody_can_have_counted_is_counted_again(junk: object) -> None:
    shown, memory, count = Shown(), Notebook(None), Counter(5)
    shown.offer(DB, "query")
    async with anyio.create_task_group() as group:
        group.start_soon(counting(count, memory).keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        group.cancel_scope.cancel()
    (key,) = memory.take().facts
    memory.put(*key, junk)

    again = Shown()
    again.offer(DB, "query")
    counting(count, memory).recall(again)

    assert key[0] == SECTION
    assert again.now.catalog.scale.awaits([DB])


async def test_what_cannot_be_counted_is_told_by_its_length_and_once_in_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shown = Shown()
    shown.offer(DB, "query")
    shown.offer(WEB, "fetch")
    count = Counter(5, CountingError("it is down"), CountingError("it is down again"))
    by_length = BY_LENGTH.cost(shown.now.catalog.known[DB].entries)
    async with anyio.create_task_group() as group:
        group.start_soon(counting(count).keep, shown)
        await shown.until(lambda: {DB, WEB} <= shown.now.catalog.scale.counted.keys())
        group.cancel_scope.cancel()

    assert shown.tokens(DB) == round(by_length, 6)
    assert shown.now.uncounted == "it is down, so tokens are told by length"
    assert [record.getMessage() for record in caplog.records] == [
        "`tokens`: it is down, so tokens are told by length"
    ]


async def test_where_no_thread_can_be_started_it_is_told_by_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(to_thread, "run_sync", refuse)
    shown, counting = Shown(), Counting(SOURCE, Counter(5), NoMemory())
    shown.offer(DB, "one")
    async with anyio.create_task_group() as group:
        group.start_soon(counting.keep, shown)
        await shown.until(lambda: shown.now.uncounted is not None)
        group.cancel_scope.cancel()
    assert shown.now.uncounted == "can't start new thread, so tokens are told by length"


async def test_nobody_is_asked_again_who_can_count_nothing() -> None:
    shown = Shown()
    shown.offer(DB, "query")
    shown.offer(WEB, "fetch")
    count = Counter(5, CountingError("it is not installed", is_final=True))

    await counting(count).keep(shown)

    assert len(count.asked) == 1
    assert not shown.now.catalog.scale.awaits(shown.now.catalog.known)


async def test_a_count_that_cannot_be_is_none() -> None:
    shown, count = Shown(), Counter(10_000_000)
    shown.offer(DB, "query")
    async with anyio.create_task_group() as group:
        group.start_soon(counting(count).keep, shown)
        await shown.until(lambda: shown.now.uncounted is not None)
        group.cancel_scope.cancel()

    assert "a token is said to have" in str(shown.now.uncounted)


async def test_what_auto_decides_by_a_guess_it_decides_again_once_it_is_counted() -> None:
    """A guess that stays would make whatever is counted later useless."""
    mode = ToolSearchMode.parse("auto:1")
    shown = Shown(Settings(tool_search=mode, context_window=10_000))
    subject = counting(Counter(4))
    subject.recall(shown)
    shown.offer(DB, *(f"tool_{number}" for number in range(20)))
    assert shown.now.deferral.deferring
    async with anyio.create_task_group() as group:
        group.start_soon(subject.keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        group.cancel_scope.cancel()
    assert not shown.now.deferral.deferring
    assert shown.now.deferral.tokens == 80
    assert "about 80 tokens" in shown.now.deferral.why


async def test_what_auto_decides_by_a_count_it_keeps() -> None:
    mode = ToolSearchMode.parse("auto:1")
    shown = Shown(Settings(tool_search=mode, context_window=10_000))
    subject = counting(Counter(50))
    shown.offer(DB, "one", "two", "three")
    async with anyio.create_task_group() as group:
        group.start_soon(subject.keep, shown)
        await shown.until(lambda: DB in shown.now.catalog.scale.counted)
        assert shown.now.deferral.deferring
        shown.offer(DB)
        await shown.until(lambda: not shown.now.catalog.known[DB].entries)
        group.cancel_scope.cancel()
    assert shown.now.deferral.deferring


def test_another_profile_is_told_nothing_of_servers_it_does_not_see() -> None:
    scale = Scale.of({DB: 2.0, WEB: 4.0}, is_growing=True)

    assert scale.usual == 3.0
    assert scale.only({WEB}) == Scale.of({WEB: 4.0}, is_growing=True)
    assert scale.only({DB, WEB}) is scale
    assert scale.tokens_of_text(7) == 3
    assert not BY_LENGTH.awaits([DB])


def test_tools_are_known_of_servers_that_are() -> None:
    shown = Shown()
    shown.offer(DB, "query")

    assert [*tools_of(shown.now.catalog)] == [DB]
