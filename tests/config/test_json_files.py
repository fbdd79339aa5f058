"""A file of JSON says what the same text says as YAML, and is read without what YAML takes."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.basics.jsonc import bare
from aggregator.config.document import MAX_DEPTH, MAX_VALUES, Document, Value, read_document
from aggregator.config.yaml_document import read_yaml
from aggregator.errors import ConfigError

TEXTS = st.text(max_size=8) | st.sampled_from(["", "<<", "null", "~", "8080", "a: b", "\0", "\x7f"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(TEXTS, inside, max_size=4),
    max_leaves=12,
)

SERVERS = '{"mcpServers": {"a": {"command": "x", "args": ["-y", 1.10, true]}}}'


def told(read: Callable[[str, str], Document], text: str) -> Any:
    try:
        document = read(text, "servers.json")
    except ConfigError as error:
        return str(error), error.hint
    return document.data, document.lines


@settings(max_examples=300)
@given(VALUES, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_says_what_it_says_as_yaml(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    for each in (value, {"top": value}):
        text = json.dumps(each, indent=indent, ensure_ascii=ascii_only)
        assert told(read_document, text) == told(read_yaml, text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"<<": {"a": 1}}',
        '{"a": "\\ud83d"}',
        '{"a": "\\ud83d\\ude00"}',
        '{"a": "\\u0000"}',
        '{"a": "\x7f"}',
        '{"a": 1,}',
        '{"a": [1, 2}',
        "{a: 1}",
        "",
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "[" * MAX_DEPTH + "]" * MAX_DEPTH,
        "[" * 20_000,
        f"[{'0,' * MAX_VALUES}0]",
    ],
)
def test_what_is_odd_or_wrong_about_it_is_told_as_of_yaml(text: str) -> None:
    assert told(read_document, text) == told(read_yaml, text)


def test_a_key_may_stand_on_another_line_than_its_colon() -> None:
    document = read_document('{"a"\n: 1}', "servers.json")

    assert document.data == {"a": "1"}
    assert document.line(("a",)) == 1


COMMENTED = """\
// the servers of the team
{
  /* of which
     there is one */ "mcpServers": {
    "a": {
      "command": "x", // its program
      "args": ["-y", 1.10, "http://h/*", "\\"//", true,],
    },
  },
}
"""


def test_comments_and_trailing_commas_say_nothing() -> None:
    document = read_document(COMMENTED, "servers.json")

    args: list[Value] = ["-y", "1.10", "http://h/*", '"//', "true"]
    assert document.data == {"mcpServers": {"a": {"command": "x", "args": args}}}
    assert document.line(("mcpServers", "a", "args")) == 7
    assert (
        read_document(COMMENTED.replace("-y", "\u00fc"), "s.JSONC").line(("mcpServers", "a")) == 5
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{ // c\n  "a": 1\n  "b": 2\n}', "`s.json`, line 3: is not valid JSON: a `,` or `}` is"),
        ('{\n  /* c */ "a": [1, 2}', "`s.json`, line 2: is not valid JSON: a `,` or `]` is"),
        ('{"a": 1,\n/* c\n"b": "x"}', "`s.json`, line 3: is not valid JSON: it ends too early"),
        ('{ // c\n"a": 1,\n"a": 2}', "`s.json`, line 3: `a` is defined twice, first on line 2"),
        ('{"a": ]}', "`s.json`, line 1: is not valid JSON: a value is missing before a `]`"),
        ("a: b: c", "`s.json`, line 1: is not valid YAML: there is a second colon"),
    ],
)
def test_what_is_wrong_with_it_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_document(text, "s.json")

    assert told in str(caught.value)


def test_what_is_called_json_may_be_yaml() -> None:
    for text in ("{a: http://h}", "{'a': 'http://h'}", "a: http://h"):
        assert read_document(text, "s.json").data == {"a": "http://h"}


def test_in_yaml_two_slashes_begin_no_comment() -> None:
    assert read_document('{"a": //h}', "servers.yaml").data == {"a": "//h"}


@settings(max_examples=200)
@given(VALUES, st.sampled_from([None, 0, 2, "\t"]))
def test_what_has_no_comments_is_bare(value: Any, indent: int | str | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)

    assert bare(text) == text


@given(st.text(alphabet='"\\/*,]}\n\r\t a'))
def test_what_is_bare_has_the_lines_it_had(text: str) -> None:
    found = bare(text)

    assert len(found) == len(text)
    assert [at for at, each in enumerate(found) if each in "\r\n"] == [
        at for at, each in enumerate(text) if each in "\r\n"
    ]


@pytest.mark.parametrize("servers", [SERVERS, COMMENTED])
def test_what_reads_yaml_is_not_loaded_for_it(servers: str) -> None:
    program = (
        "import sys; from pathlib import Path; from aggregator.config import parse_config\n"
        f"parse_config({servers!r}, Path('servers.json'), {{}})\n"
        "print('yaml' in sys.modules, 'aggregator.basics.jsonc' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["False", str(servers is COMMENTED)]
