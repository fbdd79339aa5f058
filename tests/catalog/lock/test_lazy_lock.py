"""A file is taken apart in small steps, however it is written, and costs nothing if it is none."""

import json

import pytest
from hypothesis import given

from aggregator.basics.effort import finished
from aggregator.catalog.lock import (
    LazyLock,
    Lock,
    LockError,
    Record,
    kept,
    read,
    taken_apart,
    written,
)
from aggregator.catalog.lock.lazy_lock import MAX_KEY_BYTES, MAX_TOOL_BYTES
from aggregator.names import ServerName
from tests.catalog.lock.locks import LOCKS, tool
from tests.work import longest_turn

NOTES = ServerName("notes")
FORMS = [{"indent": 1}, {"indent": 2}, {"indent": "\t"}, {"indent": 0}, {}]


def apart(text: str) -> LazyLock:
    return finished(taken_apart(text.encode("utf-8", "surrogatepass")))


def said(lazy_lock: LazyLock) -> dict[str, dict[str, object]]:
    return {
        name: {each: locked.tool(each) for each in locked.spans}
        for name, locked in lazy_lock.items()
    }


def known(lock: Lock) -> dict[str, dict[str, object]]:
    return {
        name: {each: kept(tool) for each, tool in record.tools.items()}
        for name, record in lock.items()
    }


@given(LOCKS)
def test_what_is_written_is_found(lock: Lock) -> None:
    lazy_lock = apart(written(lock))

    assert said(lazy_lock) == known(lock)
    assert {name: locked.source for name, locked in lazy_lock.items()} == {
        name: record.source for name, record in lock.items()
    }


@pytest.mark.parametrize("form", FORMS)
@given(LOCKS)
def test_it_is_found_however_it_is_laid_out(form: dict[str, object], lock: Lock) -> None:
    text = json.dumps(json.loads(written(lock)), **form)  # type: ignore[arg-type]

    assert said(apart(text)) == said(apart(text.replace("\n", "\r\n"))) == known(lock)


def test_it_is_found_in_a_form_that_nobody_uses() -> None:
    lock = {NOTES: Record("s", tools={"add": tool("Adds."), "list": tool("Lists.")})}
    odd = "\n".join(line.strip() for line in written(lock).splitlines())

    assert said(apart(odd)) == known(lock)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"lockfileVersion": 3}',
        '{"lock": 2, "servers": {}}',
        '{"lock": true, "servers": {}}',
        '{"lock": 1}',
        '{"lock": 1, "servers": {"a": 3}}',
        '{"lock": 1, "servers": {"a": {}}}',
        '{"lock": 1, "servers": {}} more',
        '{"lock": 1, "servers": {"a": {"tools": {}}, "a": {"tools": {}}}}',
        '{"lock": 1, "servers": {"a": {"tools": {"t": {}, "\\u0074": {}}}}}',
        '{"lock": 1, "servers": {"a": {"tools": {"t": ' + "[" * 100_000 + "}}}}",
        '{"lock": 1, "x": "' + "y" * (MAX_TOOL_BYTES + 9) + '", "servers": {}}',
        '{"lock": 1, "servers": {"a": {"tools": {"t" {}}}}}',
        "\ud83d",
        written({NOTES: Record("s", tools={"add": tool("Adds.")})})[:-9],
        "<<<<<<< ours\n" + written({NOTES: Record("s")}),
    ],
)
def test_what_is_no_lock_is_said_in_one_sentence(text: str) -> None:
    with pytest.raises(LockError) as raised:
        apart(text)

    assert len(str(raised.value)) < 200
    assert "\n" not in str(raised.value)


def test_a_tool_that_cannot_be_read_was_approved_by_nobody() -> None:
    lock = {NOTES: Record("s", tools={"add": tool("Adds."), "list": tool("Lists.")})}
    locked = apart(written(lock).replace('"Adds."', '"Adds." "'))[NOTES]

    assert locked.tool("add") is None
    assert locked.tool("list") == tool("Lists.")
    assert locked.tool("other") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Adds.", "Adds, and sends your mail."),
        ('"Adds."', '"Adds." "'),
        ('"description": "Adds."', '"description": "Adds.", "x": 1'),
        ('"add": {', '"add": [], "more": {'),
        ('"sha256"', '"sha1"'),
        ("\n", "\r\n"),
        ("\n", " "),
    ],
)
def test_a_file_says_the_same_to_whoever_serves_and_to_commands(old: str, new: str) -> None:
    lock = {NOTES: Record("s", tools={"add": tool("Adds."), "list": tool("Lists.")})}
    text = written(lock).replace(old, new)

    locked, record = apart(text)[NOTES], read(text.encode())[NOTES]

    served = {name: locked.tool(name) for name in locked.spans}
    assert {name: each for name, each in served.items() if each is not None} == record.tools
    assert tuple(name for name, each in served.items() if each is None) == record.altered
    assert record.source == locked.source


def test_what_python_takes_to_be_equal_and_json_does_not_is_no_approval() -> None:
    text = written({NOTES: Record("s", tools={"add": tool("Adds.", default=True)})})

    assert apart(text.replace("true", "1"))[NOTES].tool("add") is None


@pytest.mark.parametrize("kind", ["top", "facts", "servers", "tools"])
def test_however_many_names_a_file_has_others_have_their_turn(kind: str) -> None:
    def text(number: int) -> bytes:
        many = ",".join(f'"k{each}": {{"tools": {{}}}}' for each in range(number))
        empty = '"a": {"tools": {}}'
        return {
            "top": f'{{"lock": 1, {many}, "servers": {{{empty}}}}}',
            "facts": f'{{"lock": 1, "servers": {{"a": {{{many}, "tools": {{}}}}}}}}',
            "servers": f'{{"lock": 1, "servers": {{{many}}}}}',
            "tools": f'{{"lock": 1, "servers": {{"a": {{"tools": {{{many}}}}}}}}}',
        }[kind].encode()

    longest = longest_turn(taken_apart(text(1_000)))

    assert longest_turn(taken_apart(text(4_000))) <= 1.5 * longest


def test_a_name_without_end_is_no_name() -> None:
    endless = "x" * (MAX_KEY_BYTES + 1)

    with pytest.raises(LockError):
        apart(f'{{"lock": 1, "servers": {{"a": {{"tools": {{"{endless}": {{}}}}}}}}}}')
