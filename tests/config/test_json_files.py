"""A file of JSON says what the same text says as YAML, and is read without what YAML takes."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.config.document import MAX_DEPTH, MAX_VALUES, Document, read_document
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


def test_what_reads_yaml_is_not_loaded_for_it() -> None:
    program = (
        "import sys; from pathlib import Path; from aggregator.config import parse_config\n"
        f"parse_config({SERVERS!r}, Path('servers.json'), {{}})\n"
        "print('yaml' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "False"
