"""What is typed wrong is told at once, with what was most likely meant."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell

ABSENT = "servers:\n  absent: {command: no-such-program-anywhere}\n"


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        (["title"], "`title` is not `key=value`"),
        (["count:=many"], "`count:=many` is not JSON after the `=`"),
        (["--json", "[1]"], "`--json` must be an object"),
    ],
)
def test_arguments_are_read_before_anything_is_started(
    shell: Shell, typed: list[str], problem: str
) -> None:
    """Where there is nothing to start, the arguments are complained about nevertheless."""
    ran = shell.run("call", "notes__add", *typed)

    assert ran.status is ExitStatus.USAGE
    assert ran.err.startswith(f"error: {problem}")


@pytest.mark.parametrize("command", ["inspect", "search", "check", "serve"])
def test_a_file_that_is_missing_is_told_before_anything_is_started(
    shell: Shell, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing can be started by a program that does not exist.
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")

    ran = shell.run(command, *(["notes"] if command == "search" else []), "--config", "nope.yaml")

    assert ran.status is ExitStatus.USAGE
    assert "nope.yaml` does not exist" in ran.err


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["inspect", "--wat=3"], "Did you mean `--wait`?"),
        (["search", "--maxresults", "3", "notes"], "Did you mean `--max-results`?"),
        (["check", "--everything"], "`aggregator check --help` shows how it is used"),
    ],
)
def test_the_option_that_was_meant_is_named(shell: Shell, typed: list[str], hint: str) -> None:
    ran = shell.run(*typed)

    assert ran.status is ExitStatus.USAGE
    assert ran.err.endswith(f"hint: {hint}\n")


@pytest.mark.parametrize(
    ("typed", "problem", "hint"),
    [
        (
            ["--config", "x", "inspect"],
            "`--config` must come after the command",
            "Write `aggregator COMMAND --config …`",
        ),
        (
            ["call", "notes__add", "--title", "Milk"],
            "unrecognized arguments: --title Milk",
            "An argument of the tool is written `title=Milk`",
        ),
    ],
)
def test_what_stands_in_the_wrong_place_is_told_from_what_is_unknown(
    shell: Shell, typed: list[str], problem: str, hint: str
) -> None:
    ran = shell.run(*typed)

    assert ran.status is ExitStatus.USAGE
    assert ran.err == f"error: {problem}\n\nhint: {hint}\n"


@pytest.mark.parametrize("key", ["allow", "deny", "readOnly"])
def test_a_rule_that_would_mean_its_opposite_is_refused(shell: Shell, key: str) -> None:
    shell.write_servers(f"servers:\n  a: {{command: x, tools: {{{key}: ['!echo']}}}}\n")

    ran = shell.run("check")

    assert ran.status is ExitStatus.USAGE
    assert f"`servers.a.tools.{key}` has `!echo`, and a `!` means nothing here" in ran.err


def test_a_program_that_is_not_there_can_be_added_and_is_pointed_out(shell: Shell) -> None:
    ran = shell.run("add", "a", "--", "no-such-program-anywhere")

    assert ran.status is ExitStatus.FINE
    assert "warning: `no-such-program-anywhere` is not on your PATH" in ran.err


def test_a_place_where_no_program_is_can_be_added_and_is_pointed_out(shell: Shell) -> None:
    ran = shell.run("add", "a", "--", "/no/such/program")

    assert ran.status is ExitStatus.FINE
    assert "warning: `/no/such/program` is not there" in ran.err


def test_a_place_is_looked_for_where_the_program_starts(shell: Shell) -> None:
    (shell.project / "tool.py").touch()

    there = shell.run("add", "a", "--", "./tool.py")
    missing = shell.run("add", "b", "--", "./none.py")
    meant = shell.run("add", "c", "--", "example.com/tool")

    assert "is not there" not in there.err
    assert "warning: `./none.py` is not there" in missing.err
    assert meant.status is ExitStatus.FINE


def test_a_directory_is_not_made_a_file(shell: Shell) -> None:
    ran = shell.run("init", "--yes", "--config", str(shell.project))

    assert ran.status is ExitStatus.ERROR
    assert f"error: `{shell.project}` is a directory\n" in ran.err
    assert f"such as `{shell.project / 'servers.yaml'}`" in ran.err


def test_the_file_that_the_environment_names_is_made(shell: Shell) -> None:
    shell.variables["AGGREGATOR_CONFIG"] = "mine.yaml"

    missing = shell.run("check")
    made = shell.run("init", "--yes")

    path = shell.project / "mine.yaml"
    assert f"hint: `aggregator init --config {path}` makes one" in missing.err
    assert "`AGGREGATOR_CONFIG` names this file" in missing.err
    assert made.status is ExitStatus.FINE, made.err
    assert path.exists()


def test_who_is_interrupted_while_it_loads_is_told_nothing() -> None:
    """The signal comes in the first line that follows the handler."""
    script = (
        "import os, signal, sys; sys.argv = ['aggregator', '--version']\n"
        "import aggregator.__main__ as entry\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "entry.run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("8080", "http://127.0.0.1:8080/mcp"),
        ("localhost:8080", "http://localhost:8080/mcp"),
        ("127.0.0.1:8080/mcp", "http://127.0.0.1:8080/mcp"),
    ],
)
def test_an_address_that_lacks_its_beginning_is_completed(
    shell: Shell, url: str, meant: str
) -> None:
    ran = shell.run("inspect", "--url", url)

    assert ran.status is ExitStatus.USAGE
    assert ran.err.endswith(f"hint: Did you mean `{meant}`?\n")


def test_an_address_with_a_password_is_not_repeated(shell: Shell) -> None:
    ran = shell.run("inspect", "--url", "me:hunter2@localhost:8080")

    assert ran.status is ExitStatus.USAGE
    assert "hunter2" not in ran.err


@pytest.mark.parametrize("command", [["add", "a", "--", "x"], ["remove", "a"]])
def test_a_file_that_is_no_yaml_is_a_mistake_of_usage(shell: Shell, command: list[str]) -> None:
    path = shell.write_servers("servers:\n  a: {command: [x\n")

    ran = shell.run(*command)

    assert ran.status is ExitStatus.USAGE
    assert f"`{path}` cannot be understood: a `[` is never closed, in line 2" in ran.err


def test_what_to_type_next_asks_the_same_file(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "my servers.yaml"
    path.write_text(ABSENT, encoding="utf-8")

    ran = shell.run("inspect", "absent__tool", "--config", str(path))

    assert ran.status is ExitStatus.UNAVAILABLE
    assert f"`aggregator inspect absent --config '{path}'` shows" in ran.err


def test_a_search_of_servers_that_all_failed_promises_nothing(shell: Shell) -> None:
    shell.write_servers(ABSENT)

    ran = shell.run("search", "notes", "--explain")

    assert 'Nothing was searched for "notes": no server is connected.' in ran.out
    assert ran.out.endswith("No tool was ranked for `notes`: there is nothing to explain\n")


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ('{"a":1', "a `}` is missing at the end"),
        ('{"a":[1', "a `]` is missing at the end"),
        ("{a:1}", 'a key needs double quotes (`{"key": 1}`) at `a:1}`'),
        ('{"a":tru}', "a value is missing, or text is without its quotes at `tru}`"),
        ('{"a":"x', 'a quotation mark is never closed at `"x`'),
    ],
)
def test_what_is_no_json_is_explained(shell: Shell, typed: str, problem: str) -> None:
    ran = shell.run("call", "a__b", typed)

    assert ran.status is ExitStatus.USAGE
    assert ran.err.startswith(f"error: `{typed}` is not JSON: {problem}\n")


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("secret", "`aggregator secret` needs `set` or `delete`, and `NAME`"),
        ("secret set", "`aggregator secret` needs `NAME`"),
        ("search", "`aggregator search` needs `QUERY`"),
    ],
)
def test_what_is_missing_is_named(shell: Shell, typed: str, problem: str) -> None:
    ran = shell.run(*typed.split())

    assert ran.status is ExitStatus.USAGE
    assert ran.err.startswith(f"error: {problem}\n")


def test_a_name_that_is_not_allowed_is_told_of_no_file(shell: Shell) -> None:
    ran = shell.run("add", "bad name!", "--", "true")

    assert ran.status is ExitStatus.USAGE
    assert ran.err.startswith("error: `bad name!` is not allowed as a name\n")


def test_who_replaces_a_server_hears_of_secrets_that_nothing_uses(shell: Shell) -> None:
    path = shell.write_servers("envFile: .env\nservers: {}\n")
    shell.run("add", "a", "-e", "API_TOKEN=5ecr3t-5ecr3t-5ecr3t", "--", "true")

    same = shell.run("add", "a", "--force", "-e", "API_TOKEN=${API_TOKEN}", "--", "false")
    none = shell.run("add", "a", "--force", "--", "true")

    assert "any more" not in same.err
    assert f"Nothing uses `API_TOKEN` in `{path.with_name('.env')}` any more\n" in none.err
