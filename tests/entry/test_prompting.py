"""What is said again, and to whom: only what was said to the same client on the same ground."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aggregator.entry.ahead import Prompter
from aggregator.entry.basis import digest_of, digest_of_params, find_basis, stamp_of
from aggregator.entry.record import MAX_BYTES, Answer, Record, read, written
from tests.entry.gate import begun, line_of, request

ERAS = ("handshake", "modern")
TOOLS: dict[str, Any] = {"tools": [{"name": "a", "description": "…\ud800"}]}
FIRST: dict[str, Any] = {"serverInfo": {}}
Json = dict[str, Any]


class Person:
    """Somebody with a configuration, and what is remembered of a client."""

    def __init__(self, directory: Path, era: str = "handshake") -> None:
        self.config = directory / "servers.yaml"
        self.lock = directory / "servers.lock"
        self.secrets = directory / "secrets.env"
        self.variables = {"HOME": str(directory), "WHERE": "one"}
        self.opening = begun(era)
        self.config.write_text("servers: {}", encoding="utf-8")
        self.secrets.write_text("KEY=one", encoding="utf-8")
        self.path = self.remember()

    def remember(self, after: float = 0.0) -> Path:
        basis = find_basis(str(self.config), self.variables)
        assert basis is not None
        asked = [each for each in self.opening if "id" in each]
        results = [FIRST, TOOLS][-len(asked) :]
        names, files = ["WHERE"], [str(self.secrets)]
        stamp = stamp_of("salt", names, files, self.variables)
        assert stamp is not None
        answers = [
            Answer(each["method"], digest_of_params(each.get("params")).hex(), result)
            for each, result in zip(asked, results, strict=True)
        ]
        record = Record(answers, names=names, files=files, salt="salt", stamp=stamp, after=after)
        content = written(record)
        assert content is not None
        path = Path(basis.path(asked[0]["method"], asked[0].get("params")))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.touch(0o600)
        path.write_bytes(content)
        return path

    def said(self, *messages: Json) -> list[Any]:
        """Return the result of each message in turn, up to the first that is not understood."""
        basis = find_basis(str(self.config), self.variables)
        prompter = Prompter(basis, self.variables)
        found: list[Any] = []
        for message in messages or self.opening:
            answer = prompter.answer(line_of(message))
            if answer is None:
                break
            content, result = answer
            expected = {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
            assert content == b"" if result is None else json.loads(content) == expected
            found.append(result)
        return found


@pytest.fixture(params=ERAS)
def person(tmp_path: Path, request: pytest.FixtureRequest) -> Person:
    return Person(tmp_path, request.param)


def test_who_begins_as_before_is_answered_as_before(person: Person) -> None:
    said = person.said()

    assert [each for each in said if each is not None] == [FIRST, TOOLS]


def test_a_client_that_begins_with_its_list_is_answered_too(tmp_path: Path) -> None:
    person = Person(tmp_path, "modern")
    person.opening = [request("modern", "x", "tools/list")]
    person.remember()

    assert person.said() == [TOOLS]
    assert person.said(*person.opening, *person.opening) == [TOOLS]


def _edited(person: Person) -> None:
    person.config.write_text("servers: {} # other", encoding="utf-8")


def _locked(person: Person) -> None:
    person.lock.write_text("{}", encoding="utf-8")


def _another_value(person: Person) -> None:
    person.variables["WHERE"] = "two"


def _no_value(person: Person) -> None:
    del person.variables["WHERE"]


def _another_secret(person: Person) -> None:
    person.secrets.write_text("KEY=two", encoding="utf-8")


def _no_secret(person: Person) -> None:
    person.secrets.unlink()


def _another_search(person: Person) -> None:
    person.variables["AGGREGATOR_TOOL_SEARCH"] = "false"


def _secrets_in_a_pipe(person: Person) -> None:
    person.secrets.unlink()
    os.mkfifo(person.secrets)


def _config_in_a_pipe(person: Person) -> None:
    person.config.unlink()
    os.mkfifo(person.config)


def _unreadable(person: Person) -> None:
    person.config.unlink()
    person.config.mkdir()


def _huge_lock(person: Person) -> None:
    with person.lock.open("wb") as file:
        file.truncate(1 << 30)


def _damaged(person: Person) -> None:
    content = person.path.read_bytes()
    person.path.write_bytes(content.replace(b"serverInfo", b"serverInfa"))


def _cut(person: Person) -> None:
    person.path.write_bytes(person.path.read_bytes()[:-1])


def _empty(person: Person) -> None:
    person.path.write_bytes(b"")


def _huge(person: Person) -> None:
    with person.path.open("r+b") as file:
        file.truncate(1 << 40)


def _linked(person: Person) -> None:
    real = person.path.with_suffix(".real")
    person.path.rename(real)
    person.path.symlink_to(real)


def _a_pipe(person: Person) -> None:
    person.path.unlink()
    os.mkfifo(person.path, 0o600)


def _readable(person: Person) -> None:
    person.path.chmod(0o644)


CHANGES: list[Callable[[Person], None]] = [
    _edited,
    _locked,
    _another_value,
    _no_value,
    _another_secret,
    _no_secret,
    _another_search,
    _secrets_in_a_pipe,
    _config_in_a_pipe,
    _unreadable,
    _huge_lock,
    _damaged,
    _cut,
    _empty,
    _huge,
    _linked,
    _a_pipe,
    _readable,
]


@pytest.mark.parametrize("change", CHANGES)
def test_where_anything_is_different_nothing_is_said(
    tmp_path: Path, change: Callable[[Person], None]
) -> None:
    person = Person(tmp_path)
    change(person)

    assert person.said() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_another_user_wrote_is_not_said(tmp_path: Path) -> None:
    person = Person(tmp_path)
    os.chown(person.path, 12345, 12345)

    assert person.said() == []


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        '{"answers": [{}], "names": [], "files": [], "salt": "", "stamp": "", "after": 0.0}',
        '{"answers": 3, "names": [], "files": [], "salt": "", "stamp": "", "after": 0.0}',
        '{"answers": [], "names": [3], "files": [], "salt": "", "stamp": "", "after": 0.0}',
        '{"answers": [], "names": [], "files": [], "salt": "", "stamp": "", "after": "soon"}',
        "[" * 100_000,
    ],
)
def test_a_record_of_another_form_is_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "record"
    path.touch(0o600)
    path.write_bytes(digest_of(content.encode()).hex().encode() + b"\n" + content.encode())

    assert read(str(path)) is None


def test_what_is_out_of_all_proportion_is_not_remembered() -> None:
    answer = Answer("tools/list", "", {"tools": ["x" * MAX_BYTES]})

    assert written(Record([answer])) is None
    assert written(Record([Answer("initialize", "", {})], names=["X"] * 1000)) is None
    assert written(Record([])) is None


def test_another_client_is_another(person: Person) -> None:
    first = person.opening[0]
    other = {**first, "params": {**first["params"], "clientInfo": {"name": "other"}}}

    assert person.said(other) == []


def test_a_list_that_is_asked_for_otherwise_waits(person: Person) -> None:
    *before, listing = person.opening
    params = {**listing.get("params", {}), "cursor": "x"}

    assert person.said(*before, {**listing, "params": params})[len(before) :] == []


def test_a_list_before_the_session_has_begun_waits(tmp_path: Path) -> None:
    person = Person(tmp_path)
    first, _, listing = person.opening

    assert person.said(first, listing) == [FIRST]


def test_for_as_long_as_more_would_be_listed_the_list_waits(person: Person) -> None:
    person.remember(after=time.time() + 600)

    assert [each for each in person.said() if each is not None] == [FIRST]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nonsense",
        b"[]",
        b"3",
        b"\xff\xfe{}",
        b"[" * 60_000,
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "2.0", "method": 3, "id": 1}',
        b'{"jsonrpc": "2.0", "method": "initialize", "id": true}',
        b'{"jsonrpc": "2.0", "method": "initialize", "id": 1.0}',
        b'{"jsonrpc": "2.0", "method": "initialize", "id": {}}',
        b'{"jsonrpc": "2.0", "method": "initialize", "id": 1, "params": []}',
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b'{"method": "initialize", "id": 1}',
    ],
)
def test_what_is_no_request_is_left_alone(tmp_path: Path, line: bytes) -> None:
    person = Person(tmp_path)
    prompter = Prompter(find_basis(str(person.config), person.variables), person.variables)

    assert prompter.answer(line) is None


def test_without_a_place_for_state_nothing_is_remembered(tmp_path: Path) -> None:
    assert find_basis(str(tmp_path / "servers.yaml"), {}) is None


def test_what_was_answered_with_one_profile_is_not_answered_with_another(person: Person) -> None:
    plain = find_basis(str(person.config), person.variables)
    others = [find_basis(str(person.config), person.variables, each) for each in ("a", "b")]
    first = person.opening[0]
    answers = [
        Prompter(basis, person.variables).answer(line_of(first)) for basis in (plain, *others)
    ]

    assert answers[0] is not None
    assert answers[1:] == [None, None]
    assert others[0] is not None
    assert others[0].is_firm(person.variables)
