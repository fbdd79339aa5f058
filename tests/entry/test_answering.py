"""A client that is answered before anything heavy is loaded, and then by the server itself."""

import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aggregator.entry.record import Answer, Record, read, written
from tests.entry.gate import ROOT, Start, begun, line_of, request

pytestmark = pytest.mark.slow

ERAS = ("handshake", "modern")
FAULTY = str(ROOT / "tests" / "faulty.py")
SERVERS = {
    "servers": {"test": {"command": sys.executable, "args": [FAULTY], "alwaysLoad": True}},
    "toolSearch": True,
}
TOOL = "test__echo"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which a client of each era has been before."""
    directory = tmp_path_factory.mktemp("home")
    (directory / "servers.yaml").write_text(json.dumps(SERVERS), encoding="utf-8")
    for era in ERAS:
        with Start(directory, era=era, gated=False) as start:
            start.open()
            number = 3
            while TOOL not in names(start.ask(number, "tools/list")["result"]):
                number += 1
            assert start.end() == 0
    return directory


@pytest.fixture
def state(home: Path, tmp_path: Path) -> str:
    """What is remembered of them, for one test to change."""
    shutil.copytree(home / ".local" / "state", tmp_path / "state")
    return str(tmp_path / "state")


def names(result: Mapping[str, Any]) -> list[str]:
    return [tool["name"] for tool in result["tools"]]


def records(state: str) -> list[Path]:
    return sorted(Path(state).glob("*/ahead/*.json"))


def changed(state: str, tools: list[dict[str, Any]]) -> None:
    """Have other tools be remembered than there are."""
    for path in records(state):
        record = read(str(path))
        assert record is not None
        answers = [
            Answer(each.method, each.params, {**each.result, "tools": tools})
            if "tools" in each.result
            else each
            for each in record.answers
        ]
        rest = {key: getattr(record, key) for key in ("names", "files", "salt", "stamp")}
        content = written(Record(answers, **rest))
        assert content is not None
        path.write_bytes(content)


def answered(start: Start) -> Counter[Any]:
    return Counter(line["id"] for line in start.lines if "id" in line and "method" not in line)


@pytest.mark.parametrize("era", ERAS)
def test_the_first_list_comes_before_anything_heavy_is_imported(
    home: Path, state: str, era: str
) -> None:
    """Whatever is heavy waits at the gate, and so nobody else can have answered."""
    with Start(home, era=era, state=state) as start:
        listed = start.open()
        start.open_gate()
        again = start.ask(3, "tools/list")["result"]
        called = start.ask(4, "tools/call", name=TOOL, arguments={"text": "hello"})
        status = start.end()

    assert TOOL in names(listed)
    assert listed["tools"] == again["tools"]
    assert called["result"]["content"] == [{"type": "text", "text": "hello"}]
    assert answered(start) == {1: 1, 2: 1, 3: 1, 4: 1}
    assert [line for line in start.lines if "list_changed" in str(line.get("method"))] == []
    assert status == 0


def test_the_console_script_goes_the_same_way(home: Path, state: str) -> None:
    script = "from aggregator.__main__ import run; run()"
    command = (sys.executable, "-c", script)
    with Start(home, command=command, state=state) as start:
        assert TOOL in names(start.open())
        assert start.end() == 0

    assert answered(start) == {1: 1, 2: 1}


@pytest.mark.parametrize("era", ERAS)
def test_a_list_that_is_another_by_now_is_corrected(home: Path, state: str, era: str) -> None:
    gone = {"name": "test__gone", "inputSchema": {"type": "object"}}
    changed(state, [gone])

    with Start(home, era=era, state=state) as start:
        assert names(start.open()) == ["test__gone"]
        start.open_gate()
        if era == "modern":
            listen = {"notifications": {"toolsListChanged": True}}
            start.send(request(era, 3, "subscriptions/listen", **listen))
        start.until("notifications/tools/list_changed")
        assert TOOL in names(start.ask(4, "tools/list")["result"])
        start.end()

    kept = [
        names(answer.result)
        for path in records(state)
        for answer in getattr(read(str(path)), "answers", ())
        if "tools" in answer.result
    ]
    assert [TOOL in each for each in kept].count(True) == 1, "the other era was not asked"
    assert ["test__gone"] in kept


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_is_sent_at_once_is_answered_once(home: Path, state: str, era: str) -> None:
    call = request(era, 3, "tools/call", name=TOOL, arguments={"text": "hello"})
    half = line_of(request(era, 4, "ping" if era == "handshake" else "tools/list"))
    with Start(home, era=era, state=state) as start:
        start.send(*begun(era), call)
        start.write(half[:20])
        start.answer(2)
        start.open_gate()
        assert start.answer(3)["result"]["content"] == [{"type": "text", "text": "hello"}]
        start.write(half[20:])
        start.answer(4)
        start.end()

    assert answered(start) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_ids_that_repeat_are_each_answered(home: Path, state: str) -> None:
    messages = [{**each, "id": 1} if "id" in each else each for each in begun("handshake")]
    with Start(home, state=state) as start:
        start.send(messages[0])
        introduced = start.answer(1)["result"]
        start.send(*messages[1:])
        listed = start.answer(1)["result"]
        start.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        start.open_gate()
        start.answer(1)
        start.end()

    assert "protocolVersion" in introduced
    assert TOOL in names(listed)
    assert answered(start) == {1: 3}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\n\nnonsense\n" + line_of(begun("handshake")[0]), id="broken"),
        pytest.param(line_of({"a": 1}), id="no message"),
        pytest.param(
            json.dumps([*begun("handshake")]).encode() + b"\n",
            id="a batch",
        ),
        pytest.param(
            line_of({**begun("handshake")[0], "long": "x" * 200_000})
            + b"".join(map(line_of, begun("handshake")[1:])),
            id="a long line",
        ),
        pytest.param(line_of(begun("handshake")[0])[:-1], id="without an end"),
        pytest.param(
            b"\xef\xbb\xbf" + b"".join(map(line_of, begun("handshake"))), id="a mark before it"
        ),
        pytest.param(
            b"".join(map(line_of, [*begun("handshake"), *begun("handshake")])), id="twice"
        ),
    ],
)
def test_whatever_comes_is_answered_as_if_nothing_was_remembered(
    home: Path, state: str, tmp_path: Path, content: bytes
) -> None:
    said = list[list[str]]()
    for each in (state, str(tmp_path / "empty")):
        with Start(home, gated=False, state=each) as start:
            start.write(content)
            assert start.end() == 0
        said.append(sorted(json.dumps(without_tools(line)) for line in start.lines))

    remembered, new = said
    assert remembered == new


def without_tools(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line without what depends on how far servers have got."""
    result = line.get("result")
    return {**line, "result": "a list"} if isinstance(result, dict) and "tools" in result else line


def test_what_a_client_does_not_read_keeps_nobody_waiting(home: Path, state: str) -> None:
    """The answer is longer than a pipe, and half of it is written when the server takes over."""
    long = {"name": "test__long", "description": "x" * 500_000, "inputSchema": {"type": "object"}}
    changed(state, [long])

    with Start(home, state=state) as start:
        start.send(*begun("handshake"))
        start.answer(1)
        start.open_gate()
        start.send(request("handshake", 3, "ping"))
        start.answer(2)
        start.answer(3)
        start.end()

    (listed,) = [line["result"] for line in start.lines if line.get("id") == 2]
    assert listed == {"tools": [long]}
    assert answered(start) == {1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)]
)
def test_who_is_told_to_stop_before_everything_is_loaded_does(
    home: Path, state: str, number: signal.Signals, status: int
) -> None:
    with Start(home, state=state) as start:
        start.open()
        assert start.signal(number) == status
        assert start.process.stderr is not None
        # Whether it got as far as the command, which says so, is for the machine to decide.
        assert start.process.stderr.read() in (b"", b"interrupted\n")


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (("--config", "servers.yaml"), {}),
        (("--config=servers.yaml", "-v"), {}),
        ((), {"AGGREGATOR_CONFIG": "servers.yaml"}),
    ],
)
def test_a_file_is_found_however_it_is_named(
    home: Path, state: str, options: tuple[str, ...], variables: dict[str, str]
) -> None:
    """A path is part of what answers rest on, and it is the same in each of these."""
    named = str(home / "servers.yaml")
    options = tuple(each.replace("servers.yaml", named) for each in options)
    with Start(home, *options, state=state, variables=variables) as start:
        assert TOOL in names(start.open())
        start.end()


def test_who_may_remember_nothing_is_not_remembered(tmp_path: Path) -> None:
    text = json.dumps({**SERVERS, "state": False})
    (tmp_path / "servers.yaml").write_text(text, encoding="utf-8")

    with Start(tmp_path, gated=False) as start:
        start.open()
        start.end()

    assert list((tmp_path / ".local").rglob("ahead")) == []


def test_what_is_remembered_is_for_nobody_else(state: str) -> None:
    (first, *_) = records(state)

    assert first.stat().st_mode & 0o777 == 0o600
    assert first.parent.stat().st_mode & 0o777 == 0o700
    assert first.stat().st_uid == os.geteuid()
