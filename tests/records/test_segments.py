"""Lines that several processes append to: none is lost or torn, and the oldest leave."""

import json
import os
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from aggregator.records.segments import Segments, append_lines
from tests.patience import PATIENCE

WRITERS = 8
LINES = 400
NOON = 1_700_000_000.0
DAY = 24 * 3600.0

WRITER = """
import json, sys
from pathlib import Path
from aggregator.records.segments import Segments
directory, writer, lines = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
segments = Segments(directory, each=64 * 1024)
for first in range(0, lines, 8):
    some = [(n, "x" * (37 * n % 2000)) for n in range(first, first + 8)]
    lines = [json.dumps({"writer": writer, "line": n, "fill": fill}) for n, fill in some]
    segments.append([line.encode() for line in lines], 1_700_000_000.0)
"""


@pytest.mark.slow
def test_eight_processes_at_once_lose_nothing_and_tear_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [
        subprocess.Popen(
            [*command, str(number), str(LINES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=PATIENCE)
        assert writer.returncode == 0

    read = [json.loads(line) for line in Segments(tmp_path).read(0.0)]

    counted = Counter((each["writer"], each["line"]) for each in read)
    assert counted == {(writer, line): 1 for writer in range(WRITERS) for line in range(LINES)}
    assert len(list(tmp_path.iterdir())) > 1


def test_only_their_owner_can_read_them(tmp_path: Path) -> None:
    directory = tmp_path / "state" / "stats"

    Segments(directory).append([b"{}"], NOON)

    (path,) = directory.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_what_is_older_than_so_many_days_is_removed(tmp_path: Path) -> None:
    segments = Segments(tmp_path, days=30)
    for day in range(40):
        segments.append([b'{"day":%d}' % day], NOON + day * DAY)

    kept = [json.loads(line)["day"] for line in segments.read(0.0)]

    assert kept == list(range(9, 40))


def test_what_is_too_much_is_removed_the_oldest_first(tmp_path: Path) -> None:
    segments = Segments(tmp_path, most=10_000, each=1000)
    for number in range(1000):
        segments.append([b'{"number":%05d}' % (10_000 + number)], NOON)

    kept = [json.loads(line)["number"] for line in segments.read(0.0)]

    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 10_000
    assert kept == list(range(11_000 - len(kept), 11_000))
    assert len(kept) > 300


def test_only_days_that_are_asked_for_are_read(tmp_path: Path) -> None:
    segments = Segments(tmp_path)
    segments.append([b"1"], NOON)
    segments.append([b"2"], NOON + 3 * DAY)

    assert list(segments.read(NOON + DAY)) == ["2\n"]
    assert list(Segments(tmp_path / "none").read(0.0)) == []


def test_what_is_none_of_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "2020-01-01.000.jsonl").mkdir()
    (tmp_path / "2020-01-02.000.jsonl").symlink_to(tmp_path / "notes.txt")

    Segments(tmp_path).append([b"1"], NOON)

    assert list(Segments(tmp_path).read(0.0)) == ["1\n"]
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_what_the_system_does_not_take_is_told() -> None:
    """A pipe that has little room takes a part of what is written, as a full disk does."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    while True:
        try:
            os.write(writer, b"y" * 1024)
        except BlockingIOError:
            break
    room = 8192
    os.read(reader, room)
    lines = [bytes([letter]) * 3000 for letter in b"abc"]

    with pytest.raises(BlockingIOError):
        append_lines(writer, lines)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        written = file.read().lstrip(b"y").split(b"\n")

    assert written[:2] == lines[:2]
    assert written[2] == b"c" * (room - 2 * 3001)
