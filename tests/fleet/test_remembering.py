"""What is noted reaches the disk, whenever it is noted, and nobody waits for that."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import anyio
import pytest
from anyio import from_thread

from aggregator.basics.signals import Signal
from aggregator.fleet.remembering import SAVING_PAUSE, save_news
from aggregator.memory import Batch, Notebook, Sections
from tests.patience import PATIENCE
from tests.peers import Peer, aggregating, connect_to, ready

pytestmark = pytest.mark.anyio


class Spied(str):
    """A key that tells when it is looked up by another thread than the one that notes facts."""

    __slots__ = ("on_look",)
    on_look: Callable[[], None]

    def __hash__(self) -> int:
        if current_thread() is not main_thread():
            self.on_look()
        return super().__hash__()

    __eq__ = str.__eq__


def spied(text: str, on_look: Callable[[], None]) -> Spied:
    key = Spied(text)
    key.on_look = on_look
    return key


class Watched(Notebook):
    """A notebook of which one can see when facts have been taken to disk."""

    def __init__(self, path: Path) -> None:
        self.news = Signal()
        self.settled = Signal()
        super().__init__(path, self.news.send)

    def settle(self, batch: Batch, written: Sections | None) -> None:
        super().settle(batch, written)
        self.settled.send()


def facts(path: Path, section: str) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))[section] if path.exists() else {}


@pytest.mark.parametrize("moment", range(1, 9))
async def test_a_fact_noted_at_any_moment_of_a_save_is_saved_too(
    tmp_path: Path, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop goes on while a thread writes, and may come between any two steps of it."""
    monkeypatch.setattr("aggregator.fleet.remembering.SAVING_PAUSE", 0.01)
    path = tmp_path / "state.json"
    book = Watched(path)
    looks = 0

    def note_more() -> None:
        nonlocal looks
        looks += 1
        if looks in (1, moment):
            from_thread.run_sync(book.put, "clients", spied(f"later {looks}", note_more), looks)

    book.put("clients", spied("early", note_more), 0)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(save_news, book, book.news)
            while looks < moment or book.has_news:
                await book.settled.wait()
                if looks < moment:
                    book.put("clients", spied("early", note_more), looks)
            group.cancel_scope.cancel()

    assert sorted(facts(path, "clients")) == sorted({"early", "later 1", f"later {moment}"})
    assert book.get("clients", f"later {moment}") == moment


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_is_noted_at_the_very_end_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    book = Watched(path)

    async with anyio.create_task_group() as group:
        group.start_soon(save_news, book, book.news)
        await anyio.wait_all_tasks_blocked()
        book.put("clients", "opencode", 1)
        group.cancel_scope.cancel()

    assert facts(path, "clients") == {"opencode": 1}


class TestOverTime:
    """On the virtual clock."""

    @pytest.fixture
    def anyio_backend(self, virtual_time: object) -> object:
        return virtual_time

    async def test_an_era_is_saved_although_no_client_ever_came(self, tmp_path: Path) -> None:
        path = tmp_path / "state.json"
        book = Watched(path)

        async with aggregating({"db": connect_to(Peer("query"), "handshake")}, memory=book) as ours:
            async with anyio.create_task_group() as group:
                group.start_soon(save_news, book, book.news)
                await ready(ours)
                await book.settled.wait()
                group.cancel_scope.cancel()

        assert [fact["era"] for fact in facts(path, "eras").values()] == ["handshake"]

    async def test_facts_are_gathered_for_a_moment(self, tmp_path: Path) -> None:
        path = tmp_path / "state.json"
        book = Watched(path)

        async with anyio.create_task_group() as group:
            group.start_soon(save_news, book, book.news)
            await anyio.wait_all_tasks_blocked()
            began = anyio.current_time()
            book.put("clients", "one", 1)
            await anyio.sleep(SAVING_PAUSE / 2)
            book.put("clients", "two", 2)
            assert not path.exists()
            await book.settled.wait()
            assert anyio.current_time() - began == SAVING_PAUSE
            group.cancel_scope.cancel()

        assert facts(path, "clients") == {"one": 1, "two": 2}

    async def test_what_cannot_be_written_is_tried_again_with_the_next_fact(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "state").write_text("in the way", encoding="utf-8")
        path = tmp_path / "state" / "state.json"
        book = Watched(path)

        async with anyio.create_task_group() as group:
            group.start_soon(save_news, book, book.news)
            book.put("clients", "one", 1)
            await book.settled.wait()
            (tmp_path / "state").unlink()
            book.put("clients", "two", 2)
            await book.settled.wait()
            group.cancel_scope.cancel()

        assert facts(path, "clients") == {"one": 1, "two": 2}


async def test_where_no_thread_can_be_started_a_fact_waits_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tried = tmp_path / "state.json", anyio.Event()
    book = Watched(path)

    async def refuse(*_arguments: object) -> None:
        tried.set()
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("aggregator.fleet.remembering.SAVING_PAUSE", 0.01)
    async with anyio.create_task_group() as group:
        with monkeypatch.context() as world:
            world.setattr("anyio.to_thread.run_sync", refuse)
            group.start_soon(save_news, book, book.news)
            book.put("clients", "one", 1)
            await tried.wait()
        book.put("clients", "two", 2)
        with anyio.move_on_after(PATIENCE):
            await book.settled.wait()
        group.cancel_scope.cancel()

    assert facts(path, "clients") == {"one": 1, "two": 2}
