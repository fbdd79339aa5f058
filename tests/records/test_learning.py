"""What clients call after their searches is learned from what is counted."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from aggregator.basics.eras import Era
from aggregator.records.learning import experience, keep_learning
from aggregator.records.segments import Segments
from aggregator.records.stats import file_mark
from aggregator.records.tally import lessons
from aggregator.search.habits import Lesson, asked_words
from aggregator.search.hits import Experience
from tests.peers import Peer, aggregating, connect_to, ready, visiting
from tests.records.test_stats import counting

pytestmark = pytest.mark.anyio

CONFIG = Path("servers.yaml")
FILE = file_mark(CONFIG)


@pytest.fixture
def anyio_backend(virtual_time: Any) -> Any:
    return virtual_time


def searched(at: float, query: str, *found: str, **rest: Any) -> str:
    line = {"file": FILE, "at": at, "session": "s", "event": "search", "tokens": 1}
    return json.dumps({**line, "answers": [[query, found]], **rest})


def called(at: float, tool: str, outcome: str = "ok", **rest: Any) -> str:
    line = {"file": FILE, "at": at, "session": "s", "event": "call", "ms": 1.0}
    return json.dumps({**line, "server": "x", "tool": tool, "outcome": outcome, **rest})


def test_a_call_that_went_well_after_a_search_is_a_lesson() -> None:
    assert lessons([searched(1, "deploy it", "x__a"), called(2, "x__a")], FILE) == [
        Lesson("deploy it", "x__a", "s")
    ]


@pytest.mark.parametrize(
    "line",
    [
        called(2, "x__a", "tool-error"),
        called(2, "x__a", "cancelled"),
        called(2, "x__other"),
        called(2, "x__a", session="another"),
        called(2, "x__a", file="another"),
        called(2, "x__a", profile="another"),
        called(0, "x__a"),
        "torn {",
    ],
)
def test_what_failed_or_was_somebody_elses_is_none(line: str) -> None:
    assert lessons([searched(1, "deploy it", "x__a"), line], FILE) == []


def test_what_asks_for_a_tool_by_its_name_is_none() -> None:
    lines = [searched(1, "select:x__a", "x__a"), called(2, "x__a")]

    assert lessons(lines, FILE) == []


def test_each_profile_has_lessons_of_its_own() -> None:
    lines = [
        searched(1, "deploy it", "x__a", profile="work"),
        called(2, "x__a", profile="work"),
    ]

    assert lessons(lines, FILE) == []
    assert len(lessons(lines, FILE, "work")) == 1


def test_no_lines_teach_nothing(tmp_path: Path) -> None:
    assert experience(tmp_path / "nowhere", CONFIG) is None


async def test_what_is_called_after_searches_comes_first_later(
    client_era: Era, tmp_path: Path
) -> None:
    tools = {
        "support": {"description": "Open a ticket for somebody."},
        "report": {"description": "Open a ticket for a bug in a program."},
    }

    async def matches(experience: Experience | None = None) -> list[str]:
        """Search and call in a run of its own: a client without a session is one for a run."""
        async with aggregating({"desk": connect_to(Peer(**tools))}) as upstream:
            await ready(upstream)
            if experience is not None:
                upstream.fleet.index.learn(experience)
            async with counting(upstream, tmp_path), visiting(upstream, client_era) as client:
                found = await client.call_tool("ToolSearch", {"query": "open a ticket"})
                await client.call_tool("CallTool", {"name": "desk__report"})
        return (found.meta or {})["aggregator/search"]["matches"]

    before = [await matches() for _ in range(5)]
    taught: list[Experience] = []
    await learned(tmp_path, taught.append)
    after = await matches(taught[0])

    assert before == [["desk__support", "desk__report"]] * 5
    assert after == ["desk__report", "desk__support"]


async def test_what_is_counted_later_is_learned_later(tmp_path: Path) -> None:
    known: list[Mapping[str, float]] = []

    def count_and_note(experience: Experience) -> None:
        known.append(experience.strengths(asked_words(["deploy", "it"])))
        count(tmp_path, len(known))

    count(tmp_path, 0)
    await learned(tmp_path, count_and_note, 3)

    assert [each.get("x__a", 0.0) for each in known] == [
        0.0,
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
    ]


def count(directory: Path, number: int) -> None:
    """Count a search and a call of one more session."""
    session = str(number)
    lines = [searched(1, "deploy it", "x__a", session=session), called(2, "x__a", session=session)]
    Segments(directory).append([line.encode() for line in lines], 1e9)


async def learned(directory: Path, teach: Callable[[Experience], None], times: int = 1) -> None:
    """Learn so many times; a thread reads, which the virtual clock does not wait for."""
    left = [anyio.Event() for _ in range(times)]
    waiting = iter(left)

    def note(experience: Experience) -> None:
        teach(experience)
        next(waiting).set()

    async with anyio.create_task_group() as group:
        group.start_soon(keep_learning, directory, CONFIG, note)
        await left[-1].wait()
        group.cancel_scope.cancel()
