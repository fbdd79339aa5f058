"""What is written is read again, and what is no lock is said to be none."""

import json
from itertools import pairwise

import pytest
from hypothesis import given

from aggregator.basics.json import JsonObject
from aggregator.catalog.lock import (
    Lock,
    LockError,
    Record,
    fingerprint,
    kept,
    read,
    veiled,
    written,
)
from aggregator.names import ServerName
from tests.catalog.lock.locks import LOCKS, tool

GITHUB = ServerName("github")
NOTES = ServerName("notes")


@given(LOCKS)
def test_what_is_written_is_read_again(lock: Lock) -> None:
    assert read(written(lock).encode()) == lock


@given(LOCKS)
def test_the_order_in_which_it_became_known_does_not_show(lock: Lock) -> None:
    turned = {
        name: record._replace(tools=dict(reversed(list(record.tools.items()))))
        for name, record in reversed(list(lock.items()))
    }

    assert written(turned) == written(lock)


def test_a_file_is_a_block_for_each_tool_in_the_order_of_names() -> None:
    tools = {"list": tool("Lists."), "add": tool("Adds.", required=["title"])}
    text = written({NOTES: Record("s", tools=tools), GITHUB: Record("t")})

    lines = text.splitlines()
    servers = [line.strip() for line in lines if line.startswith("  ") and line[2] == '"']
    assert servers == ['"github": {', '"notes": {']
    blocks = [at for at, line in enumerate(lines) if line.startswith('    "')]
    assert [lines[at].strip() for at in blocks] == ['"add": {', '"list": {']
    assert all(after - before > 5 for before, after in pairwise(blocks))
    assert text.endswith("}\n")
    assert "\r" not in text


def test_half_a_character_can_be_written() -> None:
    lock = {NOTES: Record(instructions="\ud83d")}

    assert read(written(lock).encode()) == lock


def test_what_a_tool_is_known_by_is_the_same_for_ever() -> None:
    """Another fingerprint would have every person approve every tool again."""
    assert fingerprint(tool("Adds a note.", required=["title"])) == (
        "69cec361a99295c4e9a9e1a4d65e7d3c19477edd1e38662aaf5ac33fed0d4b44"
    )


def test_what_passes_is_not_kept() -> None:
    definition: JsonObject = {
        "name": "add",
        "description": "Adds.",
        "_meta": {"at": 1},
        "icons": [],
    }

    assert kept(definition) == {"description": "Adds."}


def test_a_tool_that_was_changed_in_the_file_was_seen_by_nobody() -> None:
    text = written({NOTES: Record(tools={"add": tool("Adds."), "list": tool("Lists.")})})

    lock = read(text.replace("Adds.", "Adds, and sends your mail.").encode())

    assert list(lock[NOTES].tools) == ["list"]
    assert lock[NOTES].altered == ("add",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is no file of `aggregator lock`"),
        ("{", "is damaged at line 1"),
        (written({NOTES: Record("s")})[:-9], "is damaged at line 6"),
        ("[]", "is no file of `aggregator lock`"),
        ('{"lockfileVersion": 3}', "is no file of `aggregator lock`"),
        ('{"lock": 2, "servers": {}}', "has the form 2, of which this version knows nothing"),
        ('{"lock": true, "servers": {}}', "has the form true, of which"),
        ('{"lock": "x' + "y" * 1000 + '"}', 'has the form "xyyyyyyyyyyyyyyyyyy, of which'),
        ('{"lock": 1}', "names no servers"),
        ('{"lock": 1, "servers": {"a": 3}}', 'has an entry that is no server: "a"'),
        ('{"lock": 1, "servers": {"a": {}}}', 'has an entry that is no server: "a"'),
        ("[" * 200_000, "is no file of `aggregator lock`"),
        ('{"lock": 1, "x": ' + "[" * 200_000, "is nested too deep"),
        ('{"lock": 1, "servers": ' + '{"a":' * 900 + "1" + "}" * 901, "has an entry that"),
    ],
)
def test_what_is_no_lock_is_said_in_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(LockError) as raised:
        read(text.encode())

    assert str(raised.value).startswith(problem)
    assert len(str(raised.value)) < 300
    assert "\n" not in str(raised.value)


def test_a_tool_that_is_nested_without_end_costs_only_the_file() -> None:
    deep: object = 1
    for _ in range(900):
        deep = {"a": deep}
    text = json.dumps({"lock": 1, "servers": {"a": {"tools": {"t": {"x": deep}}}}})

    assert read(text.encode()) == {ServerName("a"): Record(altered=("t",))}


def test_a_secret_that_a_server_puts_into_its_words_is_veiled() -> None:
    known = 'pass"word\\one'
    said = tool(f"Uses {known}.", properties={known: {"enum": [known, "x"]}}, title="pass")

    assert veiled(said, [known, "pass"]) == tool(
        "Uses ***.", properties={known: {"enum": ["***", "x"]}}, title="***"
    )
    assert veiled(said, ["another"]) is said
    assert veiled(said, []) is said


def test_what_only_has_the_name_of_a_name_is_veiled_like_everything() -> None:
    said = {
        "name": "secret_tool",
        "arguments": [{"name": "secret", "description": "secret", "required": True}],
        "inputSchema": {
            "properties": {"name": {"description": "a secret"}, "uri": {"default": "secret"}},
            "required": ["secret", {"x": "secret"}],
            "default": {"name": "secret"},
        },
    }

    assert veiled(said, ["secret"]) == {
        "name": "secret_tool",
        "arguments": [{"name": "secret", "description": "***", "required": True}],
        "inputSchema": {
            "properties": {"name": {"description": "a ***"}, "uri": {"default": "***"}},
            "required": ["secret", {"x": "***"}],
            "default": {"name": "***"},
        },
    }
