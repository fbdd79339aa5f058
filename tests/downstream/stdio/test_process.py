"""What is known of a process is said in words."""

import pytest

from aggregator.downstream.stdio.process import describe_status
from aggregator.downstream.stdio.tail import Lines, Tail, printable
from aggregator.downstream.transport import Line
from aggregator.secrecy import Redaction


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exited with status 0"),
        (127, "exited with status 127"),
        (-11, "was ended by SIGSEGV"),
        (-36, "was ended by signal 36"),
    ],
)
def test_how_a_process_ended(status: int, words: str):
    assert describe_status(status) == words


def test_a_tail_keeps_the_last_whole_lines():
    tail = Tail(12)
    tail.add(b"one\ntwo")
    assert tail.lines() == [Line("one"), Line("two")]
    tail.add(b"\nthree\nfour")
    assert tail.lines() == [Line("three"), Line("four")]
    tail.add(b"x" * 100)
    assert tail.lines() == []


def test_noise_ends_the_line_before():
    tail = Tail(12)
    tail.add_noise(b"one")
    tail.add(b"two")
    tail.add_noise(b"three")
    assert tail.lines() == [Line("one", is_noise=True), Line("two"), Line("three", is_noise=True)]
    tail.add(b"four")
    assert tail.lines() == [Line("two"), Line("three", is_noise=True), Line("four")]


def test_what_cannot_be_seen_is_spelled_out():
    assert printable("caf\u00e9 \u65e5\u672c") == "caf\u00e9 \u65e5\u672c"
    assert printable("\x1b[2J\u202e\u200b\udcff\t") == r"\x1b[2J\u202e\u200b\udcff\t"
    assert len(printable("x" * 10_000)) == 2001


def test_values_are_hidden_the_longest_first():
    redact = Redaction([("KEY", "secret"), ("LONG", "secret-and-more"), ("SHORT", "no")])
    assert redact("no secret, no secret-and-more") == "no [KEY], no [LONG]"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("using ghp_0123456789abcdef now", "using *** now"),
        ("key=sk-proj-0123456789", "key=***"),
        ("https://me:hunter2@db.example/x", "https://***@db.example/x"),
        ("the task-list of risk-management", "the task-list of risk-management"),
    ],
)
def test_what_looks_like_a_secret_is_hidden_whoever_it_belongs_to(said: str, shown: str):
    assert Redaction(())(said) == shown


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_line_is_seen_whole_however_it_comes(size: int):
    text = b"no secret\r\n\nmore of the secret\rand a secret without an end"
    lines = Lines(1000)
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    found = [line for chunk in chunks for line in lines.feed(chunk)] + lines.finish()
    assert [line for line in found if line] == [line for line in text.splitlines() if line]


def test_of_a_line_without_end_only_the_beginning_is_kept():
    lines = Lines(10)
    assert lines.feed(b"x" * 100) == []
    assert lines.feed(b"y" * 100) == []
    assert lines.feed(b"z\nnext") == [b"x" * 10 + b"z"]
    assert lines.finish() == [b"next"]
