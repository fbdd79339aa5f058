"""What others write while a person is asked is not overwritten."""

import os
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TextIO

import pytest

from aggregator.cli import main
from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Ran, Shell, Terminal

SERVERS = "servers:\n  notes:\n    command: notes-mcp\n"


class Slow(StringIO):
    """A person who says yes, but only after something else has happened."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__("y\n")
        self._meanwhile = meanwhile

    def readline(self, size: int = -1, /) -> str:
        self._meanwhile()
        return super().readline(size)


def run(shell: Shell, *arguments: str, meanwhile: Callable[[], object]) -> Ran:
    return answered(shell, *arguments, stdin=Slow(meanwhile))


def answered(shell: Shell, *arguments: str, stdin: TextIO) -> Ran:
    out, err = StringIO(), StringIO()
    environment = replace(shell.environment(out, err), stdin=stdin)
    return Ran(main(arguments, environment), out.getvalue(), err.getvalue())


def files(shell: Shell) -> dict[Path, bytes]:
    """Return every file of a person, with what it holds."""
    folders = (shell.home, shell.project)
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in paths}


def is_refused(ran: Ran, path: Path) -> bool:
    said = f"`{path}` has changed meanwhile" in ran.err and "Run it again" in ran.err
    return ran.status is ExitStatus.ERROR and said


def test_installing_leaves_what_the_client_wrote_while_a_person_was_asked(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    path = shell.give("claude-code")
    before = files(shell)

    ran = run(shell, "install", "claude-code", meanwhile=lambda: path.write_bytes(b'{"new": 1}'))

    assert is_refused(ran, path)
    assert files(shell) == {**before, path: b'{"new": 1}'}
    assert shell.run("install", "claude-code", typed="y\n").status is ExitStatus.FINE


def test_undoing_leaves_what_the_client_wrote_while_a_person_was_asked(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    path = shell.give("claude-code")
    shell.run("install", "claude-code", "--yes")
    before = files(shell)
    written = before[path].replace(b"42", b"43")

    ran = run(
        shell, "install", "claude-code", "--undo", meanwhile=lambda: path.write_bytes(written)
    )

    assert is_refused(ran, path)
    assert files(shell) == {**before, path: written}


@pytest.mark.parametrize("name", ["servers.yaml", ".env"])
def test_importing_leaves_what_was_written_while_a_person_was_asked(
    shell: Shell, name: str
) -> None:
    shell.give("claude-code")
    path = shell.project / name
    before = files(shell)

    command = ("import", "claude-code", "--into", "servers.yaml")
    ran = run(shell, *command, meanwhile=lambda: path.write_bytes(b"# mine\n"))

    assert is_refused(ran, path)
    assert files(shell) == {**before, path: b"# mine\n"}


@pytest.mark.parametrize("command", ["import cursor --into new.yaml", "install cursor"])
def test_a_question_is_asked_only_where_somebody_can_answer(shell: Shell, command: str) -> None:
    shell.write_servers(SERVERS)
    shell.give("cursor")

    with Path(os.devnull).open(encoding="utf-8") as nobody:
        alone = answered(shell, *command.split(), stdin=nobody)
    at_terminal = answered(shell, *command.split(), stdin=Terminal("n\n"))
    piped = answered(shell, *command.split(), stdin=StringIO("y\n"))

    assert "[y/N]" not in alone.err
    assert "error: nothing was changed, as there is nobody to ask" in alone.err
    assert "[y/N] " in at_terminal.err
    assert "Nothing was changed" in at_terminal.err
    assert piped.status is ExitStatus.FINE


def unread(shell: Shell, *arguments: str, typed: str = "", path: str | None = None) -> Ran:
    """Type a command whose results go into a pipe that nobody reads any more, or to a device."""
    read, written = os.pipe()
    os.close(read)
    err = StringIO()
    with os.fdopen(written, "w") if path is None else Path(path).open("w") as out:
        environment = replace(shell.environment(StringIO(), err), stdout=out)
        environment = replace(environment, stdin=Terminal(typed))
        return Ran(main(arguments, environment), "", err.getvalue())


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("install cursor --yes", "home/.cursor/mcp.json"),
        ("init --from cursor --config new.yaml --yes", "project/new.yaml"),
        ("import cursor --into new.yaml --yes", "project/new.yaml"),
        ("import cursor --into new.yaml --yes --json", "project/new.yaml"),
        ("add other -- other-mcp", "project/servers.yaml"),
        ("remove notes", "project/servers.yaml"),
    ],
)
def test_what_need_not_be_asked_is_done_although_nobody_reads_it(
    shell: Shell, tmp_path: Path, command: str, changed: str
) -> None:
    shell.write_servers(SERVERS)
    shell.give("cursor")
    before = files(shell)

    ran = unread(shell, *command.split())

    after = files(shell)
    assert ran.status is ExitStatus.FINE, ran
    assert after.get(tmp_path / changed) != before.get(tmp_path / changed)


@pytest.mark.parametrize(
    "command",
    ["install cursor", "import cursor --into new.yaml", "init --from cursor --config new.yaml"],
)
def test_nobody_agrees_to_what_was_not_read(shell: Shell, command: str) -> None:
    shell.write_servers(SERVERS)
    shell.give("cursor")
    before = files(shell)

    ran = unread(shell, *command.split(), typed="y\n")

    assert ran.status is ExitStatus.ERROR
    assert "error: nothing was changed, as what would change was not read to its end" in ran.err
    assert files(shell) == before


def test_an_undoing_that_nobody_reads_is_done_if_it_need_not_be_asked(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    path = shell.give("cursor")
    before = path.read_bytes()
    shell.run("install", "cursor", "--yes")

    asked = unread(shell, "install", "cursor", "--undo", typed="y\n")
    kept = path.read_bytes()
    ran = unread(shell, "install", "cursor", "--undo", "--yes")

    assert asked.status is ExitStatus.ERROR
    assert kept != before
    assert (ran.status, path.read_bytes()) == (ExitStatus.FINE, before)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
def test_where_there_is_no_room_for_results_standard_output_is_named(shell: Shell) -> None:
    ran = unread(shell, "schema", path="/dev/full")

    assert ran.status is ExitStatus.ERROR
    assert ran.err == "error: standard output cannot be written: no space left on device\n"


@pytest.mark.parametrize("path", [None, "/dev/full"])
def test_a_token_that_cannot_be_printed_is_revoked(shell: Shell, path: str | None) -> None:
    shell.write_servers(SERVERS)

    ran = unread(shell, "token", "add", "anna", path=path)

    assert ran.status is ExitStatus.ERROR
    assert "the token of `anna` could not be printed, so it was revoked" in ran.err
    assert "anna" not in shell.run("token", "list").out


def test_a_file_that_is_gone_meanwhile_is_not_written_again(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    path = shell.give("cursor")

    ran = run(shell, "install", "cursor", meanwhile=path.unlink)

    assert is_refused(ran, path)
    assert not path.exists()
