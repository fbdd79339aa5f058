"""Standard error holds nobody up, and loses nothing that can still be read."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from aggregator.cli.stderr_writer import MAX_WAITING_BYTES, StderrWriter, never_blocking

LINE = b"x" * 999 + b"\n"
PATIENCE = 20


@dataclass(frozen=True)
class Pipe:
    """One that is read when a test wants it to be."""

    output: int
    input: int

    def read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            found += os.read(self.output, size - len(found))
        return found

    def fill(self) -> int:
        """Write until it takes no more; return how much that was."""
        os.set_blocking(self.input, False)
        size = 0
        try:
            while True:
                size += os.write(self.input, LINE)
        except BlockingIOError:
            os.set_blocking(self.input, True)
        return size


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    output, written = os.pipe()
    yield Pipe(output, written)
    os.close(output)
    os.close(written)


def test_what_is_said_has_been_written_when_it_is_flushed(pipe: Pipe) -> None:
    with open(pipe.input, "w", encoding="ascii", errors="replace", closefd=False) as plain:
        stream = never_blocking(plain, StderrWriter(pipe.input))

        print("né", "a line", file=stream, flush=True)

    assert os.read(pipe.output, 100) == b"n? a line\n"


def test_a_pipe_that_nobody_reads_holds_up_nobody_and_what_was_lost_is_told(
    pipe: Pipe,
) -> None:
    writer, full = StderrWriter(pipe.input), pipe.fill()
    writer.never_wait()
    told = b"5 lines were dropped here, as nobody read them\n"
    kept = MAX_WAITING_BYTES // len(LINE)
    for _ in range(kept + 5):
        writer.write(LINE)
        writer.flush()

    pipe.read(full)
    assert pipe.read(kept * len(LINE)) == kept * LINE
    assert pipe.read(len(told)) == told


def test_the_last_words_are_not_waited_for_where_nobody_reads_them(pipe: Pipe) -> None:
    writer, full = StderrWriter(pipe.input), pipe.fill()
    writer.write(LINE)
    writer.drain()

    pipe.read(full)
    assert pipe.read(len(LINE)) == LINE


def test_a_pipe_that_another_program_has_made_non_blocking_loses_nothing(pipe: Pipe) -> None:
    writer, full = StderrWriter(pipe.input), pipe.fill()
    os.set_blocking(pipe.input, False)
    writer.never_wait()
    for _ in range(10):
        writer.write(LINE)

    pipe.read(full)
    assert pipe.read(10 * len(LINE)) == 10 * LINE


def test_a_pipe_whose_reader_has_gone_takes_everything() -> None:
    output, written = os.pipe()
    os.close(output)
    writer = StderrWriter(written)
    for _ in range(2 * MAX_WAITING_BYTES // len(LINE)):
        writer.write(LINE)
        writer.flush()
    writer.drain()
    os.close(written)


def test_a_thread_that_cannot_be_started_loses_nothing(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    writer = StderrWriter(pipe.input)
    writer.never_wait()
    with monkeypatch.context() as world:
        world.setattr(threading.Thread, "start", refuse)
        writer.write(b"first\n")
    writer.write(b"second\n")

    assert pipe.read(13) == b"first\nsecond\n"


def test_a_signal_during_the_start_of_the_thread_has_nothing_written_twice(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[object] = []
    start = threading.Thread.start
    first, second, third = (LINE.replace(b"x", each) for each in (b"1", b"2", b"3"))

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading, "excepthook", failures.append)
    writer, full = StderrWriter(pipe.input), pipe.fill()
    writer.never_wait()
    with monkeypatch.context() as world:
        world.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.write(first)
    writer.write(second)
    pipe.read(full)

    assert pipe.read(2 * len(LINE)) == first + second
    writer.write(third)
    assert pipe.read(len(LINE)) == third
    assert failures == []


SAID = 500
"""Lines that a pipe holds, however slow its reader is."""
SCRIPT = f"""
import sys
from aggregator.cli.environment import Environment
environment = Environment.of_process()
environment.writer.never_wait()
for number in range({SAID}):
    environment.note(f"line {{number:090}}")
raise SystemExit("the end")
"""


def test_a_normal_end_loses_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], stderr=subprocess.PIPE, timeout=PATIENCE, check=False
    )
    *lines, last = ended.stderr.splitlines()

    assert (len(lines), last, ended.returncode) == (SAID, b"the end", 1)
