"""`${keyring:NAME}`, and `aggregator secret`, with a keyring that is a file."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest

from aggregator.cli.environment import ExitStatus
from aggregator.cli.logs import Lines
from aggregator.config import Config, parse_config
from aggregator.config.keychain import KeyringError, held, keep, look_up
from aggregator.errors import ConfigError
from aggregator.names import ServerName
from tests.cli.rings import (
    FILE,
    BrokenRing,
    FileRing,
    LockedRing,
    SilentRing,
    TalkativeRing,
    in_use,
)
from tests.cli.session import run, start
from tests.cli.shell import ROOT, Shell, faulty
from tests.cli.window import Window
from tests.patience import PATIENCE

RING = "tests.cli.rings.FileRing"
WEB = ServerName("web")


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let this process have a keyring of its own."""
    path = tmp_path / "ring.json"
    monkeypatch.setenv(FILE, str(path))
    with in_use(FileRing()):
        yield path


def use_ring(shell: Shell, backend: str = RING) -> Path:
    """Let the processes of a shell have one, the way keyring is told which."""
    path = shell.home / "ring.json"
    shell.variables |= {"PYTHON_KEYRING_BACKEND": backend, FILE: str(path)}
    return path


def parsed(text: str, **variables: str) -> Config:
    return parse_config(text, Path("servers.yaml"), variables)


def test_a_reference_stands_in_every_string(ring: Path) -> None:
    keep("BOARD_TOKEN", "hunter22")
    keep("work/me@example.com", "s3cr3t")

    config = parsed("""
servers:
  web:
    url: https://example.com/${keyring:BOARD_TOKEN}/mcp
    headers: {Authorization: "Bearer ${keyring:BOARD_TOKEN}"}
    description: ${keyring:work/me@example.com}
  local:
    command: notes
    args: ["--x=${keyring:BOARD_TOKEN}", "${keyring:NONE:-default}", "$${keyring:BOARD_TOKEN}"]
    env: {A: "${keyring:BOARD_TOKEN}"}
mcpServers:
  theirs: {command: notes, args: ["${keyring:BOARD_TOKEN}"]}
""")

    web, local = config.servers[WEB], config.servers[ServerName("local")]
    assert web.url == "https://example.com/hunter22/mcp"
    assert web.headers == {"Authorization": "Bearer hunter22"}
    assert web.description == "s3cr3t"
    assert local.args == ("--x=hunter22", "default", "${keyring:BOARD_TOKEN}")
    assert local.env == {"A": "hunter22"}
    assert config.servers[ServerName("theirs")].args == ("hunter22",)
    assert web.secrets == {
        "keyring:BOARD_TOKEN": "hunter22",
        "keyring:work/me@example.com": "s3cr3t",
    }
    assert "hunter22" not in repr(config)


def test_what_is_from_the_keyring_is_not_passed_on_or_logged(ring: Path) -> None:
    keep("PLAIN", "a plain sentence")
    config = parsed(
        "env: {GREETING: '${keyring:PLAIN}'}\ninheritEnv: true\nservers: {web: {command: x}}", A="1"
    )
    lines = Lines(as_json=False)
    lines.expect(config)

    server = config.servers[WEB]
    assert server.env == {"GREETING": "a plain sentence"}
    assert server.inherited["A"] == "1"
    assert not [name for name in server.inherited if name.startswith("keyring")]
    record = logging.makeLogRecord({"msg": "it said: a plain sentence"})
    assert lines.format(record) == "it said: ***"


def test_what_variables_put_into_a_server_is_secret_by_their_names() -> None:
    text = """
servers:
  web:
    command: x
    args: ["-H", "Authorization: Bearer ${MY_TOKEN}", "${PLAIN}", "${A:-${DB_PASSWORD}}"]
    env: {B: "${API_KEY:-a default}"}
"""
    given = {"MY_TOKEN": "hunter22", "PLAIN": "in the open", "DB_PASSWORD": "s3cr3t!"}
    server = parsed(text, **given).servers[WEB]

    assert server.secrets == {
        "MY_TOKEN": "hunter22",
        "DB_PASSWORD": "s3cr3t!",
        "API_KEY": "a default",
    }


@pytest.mark.slow
@pytest.mark.parametrize("key", ["command", "cwd", "envFile"])
def test_what_of_the_keyring_is_in_a_path_is_not_shown(shell: Shell, key: str) -> None:
    held_there = {"mcp-tool-aggregator/PLACE": "hunter22"}
    use_ring(shell).write_text(json.dumps(held_there), encoding="utf-8")
    entry = {"command": "cat", key: "./at/${keyring:PLACE}/it"}
    shell.write_servers(json.dumps({"servers": {"web": entry}}))

    checked = run(shell, "check")
    inspected = run(shell, "inspect", "--json")

    for ran in (checked, inspected):
        assert "hunter22" not in ran.out + ran.err
        assert "at/[keyring:PLACE]/it" in ran.out + ran.err


@pytest.mark.parametrize("is_there", [True, False])
def test_nor_in_the_path_of_the_env_file_of_all(ring: Path, tmp_path: Path, is_there: bool) -> None:
    keep("PLACE", "hunter22")
    if is_there:
        (tmp_path / "hunter22").write_bytes(b"\xff")
    text = "envFile: '${keyring:PLACE}'\nservers: {web: {command: x}}"

    try:
        config = parse_config(text, tmp_path / "servers.yaml", {})
        said = " ".join(config.warnings)
    except ConfigError as error:
        said = str(error)

    assert "hunter22" not in said
    assert "[keyring:PLACE]" in said


def test_a_keyring_that_repeats_what_it_was_given_is_quoted_without_it(
    shell: Shell, ring: Path
) -> None:
    keyring.set_keyring(TalkativeRing())

    ran = shell.run("secret", "set", "A", typed="hunter'22\n")

    assert ran.status is ExitStatus.ERROR
    assert "cannot store " in ran.err
    assert "hunter" not in ran.out + ran.err


def test_what_the_keyring_does_not_have_is_one_server_s_problem(ring: Path) -> None:
    config = parsed("servers: {web: {command: x, env: {A: '${keyring:NONE}'}}, b: {command: y}}")

    assert config.servers[WEB].problem == (
        "the keyring has no `NONE`: `aggregator secret set NONE` puts it there"
    )
    assert config.servers[ServerName("b")].problem is None


def test_what_the_settings_need_must_be_there(ring: Path) -> None:
    with pytest.raises(ConfigError, match="line 1: the keyring has no `NONE`"):
        parsed("env: {A: '${keyring:NONE}'}\nservers: {web: {command: x}}")


@pytest.mark.parametrize("name", ["", "a b", "@x", "a:b", "x" * 129])
def test_what_is_no_name_is_said(ring: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"or `\$\{keyring:NAME\}`"):
        parsed(f"servers: {{web: {{command: x, args: ['${{keyring:{name}}}']}}}}")


def test_a_locked_keyring_is_told_with_its_own_words(ring: Path) -> None:
    keyring.set_keyring(LockedRing())

    with pytest.raises(KeyringError, match="cannot be used: the collection is locked"):
        look_up("A")
    with pytest.raises(KeyringError, match="cannot be used: the collection is locked"):
        keep("A", "x")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("TEST_KEYRING"), "KeyError: 'TEST_KEYRING'"),
        (OSError("no bus"), "no bus"),
        (AssertionError(), "AssertionError"),
        (RuntimeError(), "RuntimeError"),
        (SystemExit(3), "SystemExit: 3"),
    ],
    ids=repr,
)
def test_whatever_a_keyring_raises_is_a_reason_and_no_silence(
    ring: Path, error: BaseException, reason: str
) -> None:
    keyring.set_keyring(BrokenRing(error))

    found = held({"a": "${keyring:A}"}, patience=PATIENCE)

    assert found.problems == {"keyring:A": f"the keyring cannot be used: {reason}"}
    assert not found.is_silent


def test_who_presses_ctrl_c_at_a_keyring_is_heard(ring: Path) -> None:
    keyring.set_keyring(BrokenRing(KeyboardInterrupt()))

    with pytest.raises(KeyboardInterrupt):
        look_up("A")


@pytest.mark.parametrize("variables", [{}, {"PYTHON_KEYRING_BACKEND": RING}])
def test_a_ring_of_these_tests_is_used_only_where_it_is_named(variables: dict[str, str]) -> None:
    script = (
        "import keyring, tests.cli.rings as rings\n"
        "used = keyring.get_keyring()\n"
        "all_used = [used, *getattr(used, 'backends', [])]\n"
        "print(any(isinstance(each, rings.FileRing) for each in all_used))"
    )
    others = {k: v for k, v in os.environ.items() if k != "PYTHON_KEYRING_BACKEND"}
    found = subprocess.check_output(
        [sys.executable, "-c", script], text=True, cwd=ROOT, env=others | variables
    )

    assert found == f"{bool(variables)}\n"


def test_a_silent_keyring_is_asked_once_and_not_waited_for(ring: Path) -> None:
    silent = SilentRing()
    keyring.set_keyring(silent)

    found = held({"a": "${keyring:A}", "b": ["${keyring:B} ${keyring:C}"]}, patience=0.01)

    silent.unlocked.set()
    assert found.values == {}
    assert set(found.problems) == {"keyring:A", "keyring:B", "keyring:C"}
    assert "did not answer within 0.01 s; unlock it" in found.problems["keyring:C"]
    assert silent.asked <= 1


def test_a_file_that_needs_no_keyring_does_not_import_it() -> None:
    script = (
        "import sys; from pathlib import Path; from aggregator.config import parse_config\n"
        "parse_config('servers: {a: {command: x, args: [\"$${keyring:A}\"]}}', Path('x'), {})\n"
        "print([name for name in sys.modules if name.partition('.')[0] == 'keyring'])"
    )

    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"


@pytest.mark.slow
def test_a_secret_is_set_used_and_deleted(shell: Shell) -> None:
    path = use_ring(shell)
    shell.write_servers(f"servers:\n  test:\n    {faulty()}\n    env: {{A: '${{keyring:A.B}}'}}\n")

    with start(shell, "secret", "set", "A.B") as process:
        out, err = process.communicate("hunter22\n", timeout=60)
    called = run(shell, "call", "test__environment")
    deleted = run(shell, "secret", "delete", "A.B")
    again = run(shell, "secret", "delete", "A.B")
    checked = run(shell, "check")

    assert process.returncode == ExitStatus.FINE
    assert (out, "write `${keyring:A.B}` where it is needed" in err) == ("", True)
    assert "hunter22" in called.out, called.err
    assert deleted.status is ExitStatus.FINE
    assert json.loads(path.read_text(encoding="utf-8")) == {}
    assert "the keyring has no `A.B`" in again.err
    assert "`aggregator secret set A.B` puts it there" in checked.out + checked.err


@pytest.mark.slow
def test_what_is_typed_is_not_shown(shell: Shell) -> None:
    path = use_ring(shell)

    with Window(shell, "secret", "set", "BOARD_TOKEN") as window:
        window.until(lambda text: "(not shown): " in text)
        window.type("hunter22\n")
        seen = window.until_end()

    assert "hunter22" not in seen
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "mcp-tool-aggregator/BOARD_TOKEN": "hunter22"
    }


@pytest.mark.slow
def test_where_there_is_no_keyring_it_is_said_what_to_do(shell: Shell) -> None:
    use_ring(shell, "keyring.backends.fail.Keyring")
    without = run(shell, "secret", "delete", "A")
    absent = shell.home / "absent" / "keyring.py"
    absent.parent.mkdir()
    absent.write_text("raise ImportError\n", encoding="utf-8")
    shell.variables["PYTHONPATH"] = f"{absent.parent}:{shell.all_variables()['PYTHONPATH']}"
    missing = run(shell, "secret", "delete", "A")

    assert without.status is missing.status is ExitStatus.ERROR
    assert "this system has no keyring that can be used: write `${NAME}` instead" in without.err
    assert f"`{sys.executable} -m pip install 'mcp-tool-aggregator[keyring]'`" in missing.err


@pytest.mark.parametrize("given", ["", "\n"])
def test_nothing_is_not_kept(shell: Shell, ring: Path, given: str) -> None:
    ran = shell.run("secret", "set", "A", typed=given)

    assert (ran.status, ring.exists()) == (ExitStatus.ERROR, False)
    assert "no value was given, so nothing was stored" in ran.err


def test_a_secret_may_have_lines_and_must_have_a_name(shell: Shell, ring: Path) -> None:
    assert shell.run("secret", "set", "A", typed="one\ntwo\r\n").status is ExitStatus.FINE
    assert look_up("A") == "one\ntwo"
    assert shell.run("secret", "set", "a b", typed="x").status is ExitStatus.USAGE


@pytest.mark.parametrize(
    "typed",
    [
        ["set", "A", "hunter22"],
        ["set", "A", "--value=hunter22"],
        ["set", "A=hunter22"],
        ["set", "A", "and", "hunter22"],
        ["A=hunter22", "set"],
    ],
    ids=" ".join,
)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(
    shell: Shell, ring: Path, typed: list[str]
) -> None:
    ran = shell.run("secret", *typed, typed="x")

    assert (ran.status, ring.exists()) == (ExitStatus.USAGE, False)
    assert "hunter22" not in ran.out + ran.err
