"""What the machine has to give, as it tells of itself or not at all."""

from pathlib import Path

import pytest

from aggregator.downstream import processors
from aggregator.downstream.processors import LEAST_SHARE, share_of_one


def _two(_pid: int) -> set[int]:
    return {0, 1}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with two processors, of which nothing else is known."""
    monkeypatch.setattr(processors, "LOADS", tmp_path / "loadavg")
    monkeypatch.setattr(processors, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(processors.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(processors.os, "sched_getaffinity", _two, raising=False)
    return tmp_path


def test_this_machine_has_something_to_give() -> None:
    assert processors.processors() >= 1
    assert LEAST_SHARE <= share_of_one(1) <= 1


@pytest.mark.parametrize(("wanting", "share"), [(1, 1.0), (3, 1.0), (9, 0.25), (2000, 0.05)])
def test_where_the_system_says_how_many_want_one(machine: Path, wanting: int, share: float) -> None:
    (machine / "loadavg").write_text(f"0.10 0.20 0.30 {wanting}/800 4711\n", "ascii")

    assert share_of_one(starting=50) == share


@pytest.mark.parametrize("text", [None, "", "0.1 0.2 0.3", "a b c d/e f"])
def test_where_it_does_not_each_that_starts_wants_one(machine: Path, text: str | None) -> None:
    if text is not None:
        (machine / "loadavg").write_text(text, "ascii")

    assert [share_of_one(starting) for starting in (0, 2, 8)] == [1.0, 1.0, 0.25]


@pytest.mark.parametrize(
    ("text", "number"), [("max 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("?", 2)]
)
def test_a_container_may_use_less_than_there_is(machine: Path, text: str, number: int) -> None:
    (machine / "cpu.max").write_text(text, "ascii")

    assert processors.processors() == number


def test_and_what_others_on_the_machine_want_is_nothing_to_it(machine: Path) -> None:
    (machine / "cpu.max").write_text("100000 100000", "ascii")
    (machine / "loadavg").write_text("0.10 0.20 0.30 90/800 4711\n", "ascii")

    assert share_of_one(starting=2) == 0.5


def test_a_system_without_affinity_has_all(monkeypatch: pytest.MonkeyPatch, machine: Path) -> None:
    assert machine.is_dir()
    monkeypatch.delattr(processors.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(processors.os, "cpu_count", lambda: None)

    assert processors.processors() == 1
