"""Whatever the file says, it is read or refused: nothing else happens."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.config import Config, load_config, parse_config
from aggregator.errors import ConfigError

DEFAULT = Path(__file__).parents[2] / "servers.yaml"
WHOLE = """
envFile: none.env
toolSearch: auto:5
clients: {zed: relay}
servers:
  a: &a
    command: ./x
    args: [-y, "${A:-b}", '$$']
    env: {A: 1.10}
    alwaysLoad: [x_*]
    tools: {allow: ["*"], deny: [y]}
    connectTimeout: 30s
  b: {<<: *a, prefix: p}
  c: {url: "https://h/${P:-mcp}", headers: {A: b}}
mcpServers: {"d e": {command: [x, y], timeout: 500, disabled: true}}
"""
KEYS = ["servers", "mcpServers", "a", "command", "url", "env", "tools", "prefix", "timeout", "type"]
MARKS = [
    ":",
    "-",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a",
    "*a",
    "<<",
    "!!str",
    "'",
    '"',
    "#",
    "|",
    ">",
    "~",
    "${",
    "$$",
    ":-",
    "A",
    "\x00",
    "é",
    "\ufeff",
]
SPACES = ["\n", "\n  ", "\n    ", " ", ": ", "\t", "---\n"]
FRAGMENTS = st.sampled_from([*KEYS, *MARKS, *SPACES])


def read(text: str) -> Config | ConfigError:
    try:
        return parse_config(text, DEFAULT, {"A": "value"})
    except ConfigError as error:
        return error


def check(result: Config | ConfigError) -> None:
    if isinstance(result, ConfigError):
        assert "\n" not in str(result)
    else:
        assert all(server.prefix is not None for server in result.servers.values())


@settings(deadline=None)
@given(st.lists(FRAGMENTS, max_size=60))
def test_any_fragments_are_read_or_refused(fragments: list[str]) -> None:
    check(read("".join(fragments)))


@settings(deadline=None)
@given(st.data())
def test_a_file_with_any_damage_is_read_or_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(WHOLE)))
    until = data.draw(st.integers(at, min(at + 12, len(WHOLE))))
    put = data.draw(st.one_of(FRAGMENTS, st.text(max_size=5)))
    check(read(WHOLE[:at] + put + WHOLE[until:]))


def test_the_file_to_be_damaged_is_sound() -> None:
    assert isinstance(read(WHOLE), Config)


@settings(deadline=None)
@given(raw=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(
    raw: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(raw)
    try:
        check(load_config(path, {}))
    except ConfigError as error:
        check(error)
