"""How variables reach the file, and what happens when they do not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.config import Config, load_config
from aggregator.config.quantities import seconds, size_in_bytes
from aggregator.config.variables import BadReferenceError, expand
from aggregator.names import ServerName
from tests.config.reading import config_of, refusal, server_of


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("${A}", "one"),
        ("x${A}y${A}z", "xoneyonez"),
        ("${A:-other}", "one"),
        ("${NO:-other}", "other"),
        ("${NO:-}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:-other}", "other"),
        ("${NO:-${A}}", "one"),
        ("${NO:-${NOR:-a ${A}}}", "a one"),
        ('${NO:-{"json": {}}}', '{"json": {}}'),
        ("$$", "$"),
        ("$${A}", "${A}"),
        ("$$${A}", "$one"),
        ("$A costs 5$", "$A costs 5$"),
        ("${A:-${NO}}", "one"),
        ("${NO:-a:-b}", "a:-b"),
    ],
)
def test_variables_are_expanded(text: str, expanded: str) -> None:
    assert expand(text, {"A": "one", "EMPTY": ""}) == expanded


@pytest.mark.parametrize("text", ["${", "${}", "${A", "${1}", "${a b}", "${A:x}", "${A-x}"])
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(BadReferenceError):
        expand(text, {"A": "one"})


def test_defaults_in_defaults_have_an_end() -> None:
    deep = "${A:-" * 5_000 + "}" * 5_000
    with pytest.raises(BadReferenceError):
        expand(deep, {})


@given(st.text())
def test_a_doubled_dollar_stands_for_any_text(text: str) -> None:
    assert expand(text.replace("$", "$$"), {}) == text


@given(st.text(), st.text())
def test_a_value_is_never_expanded_again(value: str, rest: str) -> None:
    assert expand("${A}" + rest.replace("$", "$$"), {"A": value}) == value + rest


def test_a_missing_variable_fails_that_server_only() -> None:
    config = config_of(
        "servers:\n  a:\n    command: x\n    env: {T: '${GITHUB_TOKEN}'}\n  b: {command: y}\n"
    )
    a, b = config.servers.values()
    assert b.problem is None
    assert a.problem == (
        "the variable `GITHUB_TOKEN` must be set, and many clients hide your environment: "
        "put it in a file named by `envFile`, or in `env` where the client configures the "
        "aggregator, or write a default: `${GITHUB_TOKEN:-default}`"
    )
    assert a.command == "x"


def test_every_missing_variable_is_named_once() -> None:
    server = server_of("command: ${A}\nargs: ['${B}', '${A}']\nconnectTimeout: ${C}")
    assert str(server.problem).startswith("the variables `A` and `B` and `C` must be set")
    assert (server.command, server.args, server.connect_timeout) == (None, (), 30.0)


def test_a_server_that_misses_a_variable_need_not_be_complete() -> None:
    assert server_of("url: ${URL}").problem is not None


def env_file(directory: Path, text: str, name: str = ".env") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def loaded(directory: Path, text: str, **environ: str) -> Config:
    path = directory / "servers.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, environ)


ONE = ServerName("one")


def test_an_env_file_supplies_variables_to_the_whole_file(tmp_path: Path) -> None:
    env_file(tmp_path, "TOKEN=t0ken\nSURFACE=relay\n")
    config = loaded(
        tmp_path,
        "envFile: ${NAME:-.env}\nsurface: ${SURFACE}\n"
        "servers: {one: {command: x, env: {T: '${TOKEN}'}}}",
    )
    assert config.settings.surface == "relay"
    assert config.servers[ONE].env == {"T": "t0ken"}, "and not the file's other variables"


def test_the_environment_wins_over_the_common_env_file(tmp_path: Path) -> None:
    env_file(tmp_path, "A=file\n")
    text = "envFile: .env\nservers: {one: {command: '${A}'}}"
    assert loaded(tmp_path, text, A="environment").servers[ONE].command == "environment"


def test_a_servers_own_env_file_is_given_to_it_and_wins(tmp_path: Path) -> None:
    env_file(tmp_path, "A=own\nB=file\n", "own.env")
    text = "servers: {one: {command: '${A}', envFile: own.env, env: {B: env}}, two: {command: x}}"
    config = loaded(tmp_path, text, A="environment")
    assert config.servers[ONE].command == "own"
    assert config.servers[ONE].env == {"A": "own", "B": "env"}
    assert config.servers[ServerName("two")].env == {}


def test_a_missing_common_env_file_is_only_warned_of(tmp_path: Path) -> None:
    """It is often kept out of version control; each server says what it misses."""
    config = loaded(tmp_path, "envFile: .env\nservers: {one: {command: '${A}'}, two: {command: x}}")
    assert config.warnings == (f"`envFile` `{tmp_path / '.env'}`: does not exist",)
    assert [bool(server.problem) for server in config.servers.values()] == [True, False]


def test_a_missing_env_file_of_a_server_fails_that_server_only(tmp_path: Path) -> None:
    config = loaded(tmp_path, "servers: {one: {command: x, envFile: no}, two: {command: x}}")
    one, two = config.servers.values()
    assert one.problem == f"its `envFile` `{tmp_path / 'no'}`: does not exist"
    assert two.problem is None


def test_an_env_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    config = loaded(tmp_path, "servers: {one: {command: x, envFile: .}}")
    assert str(config.servers[ONE].problem).endswith("cannot be read: is a directory")


def test_an_env_file_named_by_a_missing_variable_is_a_missing_variable() -> None:
    assert "`WHERE` must be set" in str(server_of("command: x\nenvFile: ${WHERE}").problem)


def test_an_env_file_that_is_not_text_is_refused_by_the_form() -> None:
    assert "`envFile` must be text" in str(refusal("envFile: [x]\nservers: {}"))


def test_a_broken_common_env_file_is_an_error_with_its_line(tmp_path: Path) -> None:
    env_file(tmp_path, "A=1\n\nnonsense\n")
    with pytest.raises(Exception, match="expected `NAME=value`") as caught:
        loaded(tmp_path, "envFile: .env\nservers: {}")
    assert str(caught.value).startswith(f"`{tmp_path / '.env'}`, line 3")


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"A=\xff\n", "is not UTF-8 text"),
        (b"A=\0\n", "is not an env file"),
        (b"#" * (1 << 20) + b"\n", "is not an env file"),
        (b'A="never closed\n', "expected `NAME=value`"),
        (b"A='x' y\n", "expected `NAME=value`"),
        (b"1A=x\n", "expected `NAME=value`"),
    ],
)
def test_a_broken_env_file_is_a_problem(raw: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(raw)
    config = loaded(tmp_path, "servers: {one: {command: x, envFile: .env}}")
    assert problem in str(config.servers[ONE].problem)


def test_env_files_are_read_as_people_write_them(tmp_path: Path) -> None:
    text = (
        "\ufeff# a comment\r\n"
        "PLAIN=value\r\n"
        "  SPACED = some words   # a comment\n"
        "export EXPORTED=yes\n"
        "HASH=a#b\n"
        "EMPTY=\n"
        "NOTHING= # only a comment\n"
        "SINGLE='$raw \\n # text' # a comment\n"
        'DOUBLE="a \\"quoted\\" word\\nand\\ta \\\\ #"\n'
        'KEY="-----BEGIN-----\nabc=\n-----END-----"\n'
        "URL=postgres://u:p@h/db?x=1\n"
        "DOLLAR=${NOT_EXPANDED}\n"
        "LAST=1"
    )
    env_file(tmp_path, text)
    config = loaded(tmp_path, "servers: {one: {command: x, envFile: .env}}")
    assert config.servers[ONE].env == {
        "PLAIN": "value",
        "SPACED": "some words",
        "EXPORTED": "yes",
        "HASH": "a#b",
        "EMPTY": "",
        "NOTHING": "",
        "SINGLE": "$raw \\n # text",
        "DOUBLE": 'a "quoted" word\nand\ta \\ #',
        "KEY": "-----BEGIN-----\nabc=\n-----END-----",
        "URL": "postgres://u:p@h/db?x=1",
        "DOLLAR": "${NOT_EXPANDED}",
        "LAST": "1",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30", 30), ("30s", 30), ("1.5s", 1.5), ("500ms", 0.5), ("2 min", 120), ("1h", 3600)],
)  # fmt: skip
def test_durations_are_read(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("4096", 4096), ("16MiB", 16 << 20), ("2 kib", 2048), ("1.5kB", 1500)]
)
def test_sizes_are_read(text: str, expected: int) -> None:
    assert size_in_bytes(text) == expected


@given(st.text())
def test_any_other_quantity_is_refused(text: str) -> None:
    for read in (seconds, size_in_bytes):
        try:
            assert read(text) >= 0
        except ValueError:
            continue
