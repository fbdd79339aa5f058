"""Several registrations: of others under our name, and of ours in several places."""

import shlex
from pathlib import Path

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell
from tests.cli.test_install import SERVERS, servers_of
from tests.cli.test_moving import write_cursor


def write_toolbox(shell: Shell, *command: str) -> Path:
    """Let Cursor have a server of the name that we would have."""
    program, *arguments = command
    return write_cursor(shell, toolbox={"command": program, "args": arguments})


@pytest.mark.parametrize("name", ["a b", "", "a.b", "\u00e4"])
def test_a_name_that_a_client_does_not_take_is_refused(shell: Shell, name: str) -> None:
    shell.write_servers(SERVERS)

    ran = shell.run("install", "codex", "--yes", "--name", name)

    assert ran.status is ExitStatus.USAGE
    assert f"`{name}` is not allowed as a name" in ran.err
    assert not (shell.home / ".codex").exists()


@pytest.mark.parametrize("options", [(), ("--move",)])
def test_a_server_of_the_same_name_is_not_replaced(shell: Shell, options: tuple[str, ...]) -> None:
    shell.write_servers(SERVERS)
    path = write_toolbox(shell, "/opt/google/toolbox", "--prebuilt", "postgres")
    before = path.read_bytes()

    ran = shell.run("install", "cursor", "--yes", *options)
    undone = shell.run("install", "cursor", "--undo", "--yes")

    assert (ran.status, undone.status) == (ExitStatus.ERROR, ExitStatus.ERROR)
    assert "Cursor has a server `toolbox` that is not the aggregator" in ran.err
    assert "--name NAME" in ran.err
    assert path.read_bytes() == before
    named = shell.run("install", "cursor", "--yes", "--name", "agg", *options)
    assert named.status is ExitStatus.FINE


@pytest.mark.parametrize(
    "command",
    [
        ("/old/bin/aggregator", "serve", "--config", "old.yaml"),
        ("/old/bin/python3", "-m", "aggregator", "serve"),
        ("uv", "run", "--directory", "/src", "aggregator", "serve"),
    ],
)
def test_another_registration_of_the_aggregator_is_replaced(
    shell: Shell, command: tuple[str, ...]
) -> None:
    shell.write_servers(SERVERS)
    write_toolbox(shell, *command)

    ran = shell.run("install", "cursor", "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    assert str(shell.project / "servers.yaml") in servers_of(shell, "cursor")["toolbox"]["args"]


def test_one_of_two_registrations_can_be_undone_after_the_other(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    shell.give("cursor")
    before = servers_of(shell, "cursor")
    shell.run("install", "cursor", "--yes")
    shell.run("install", "cursor", "--name", "team", "--yes")

    first = shell.run("install", "cursor", "--undo", "--yes")
    second = shell.run("install", "cursor", "--name", "team", "--undo", "--yes")

    assert "Cursor still starts the aggregator as `team`" in first.err
    assert "no longer starts the aggregator" in second.err
    assert servers_of(shell, "cursor") == before


def test_a_project_can_have_a_registration_of_its_own(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    shell.run("install", "claude-code", "--scope", "project", "--yes", "--name", "team")
    shell.run("install", "claude-code", "--scope", "local", "--yes")

    assert "team" in (shell.project / ".mcp.json").read_text(encoding="utf-8")
    assert str(shell.project) in (shell.home / ".claude.json").read_text(encoding="utf-8")


def test_undoing_in_one_scope_leaves_the_other_of_the_same_file(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    shell.give("claude-code")
    before = servers_of(shell, "claude-code")
    shell.run("install", "claude-code", "--yes")
    installed = servers_of(shell, "claude-code")
    shell.run("install", "claude-code", "--scope", "local", "--yes")

    shell.run("install", "claude-code", "--scope", "local", "--undo", "--yes")

    assert servers_of(shell, "claude-code") == installed
    shell.run("install", "claude-code", "--undo", "--yes")
    assert servers_of(shell, "claude-code") == before


@pytest.mark.parametrize(
    ("options", "typed"),
    [
        ([], "aggregator install vscode --undo"),
        (["--scope", "user"], "aggregator install vscode --undo"),
        (["--scope", "project"], "aggregator install vscode --scope project --undo"),
        (
            ["--scope", "project", "--name", "my team"],
            "aggregator install vscode --scope project --name 'my team' --undo",
        ),
    ],
)
def test_the_command_that_is_printed_undoes_the_installation(
    shell: Shell, options: list[str], typed: str
) -> None:
    shell.write_servers(SERVERS)

    installed = shell.run("install", "vscode", "--yes", *options)
    undone = shell.run(*shlex.split(typed)[1:], "--yes")

    assert f"`{typed}` takes that back" in installed.err
    assert undone.status is ExitStatus.FINE, undone.err
    assert "no longer starts the aggregator" in undone.err


def test_undoing_what_is_not_there_names_what_is(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    shell.run("install", "vscode", "--scope", "project", "--yes")
    shell.run("install", "vscode", "--name", "team", "--yes")

    ran = shell.run("install", "vscode", "--undo", "--yes")
    scoped = shell.run("install", "vscode", "--undo", "--scope", "project", "--name", "x", "--yes")

    user, project = (shell.file_of("vscode", scope).path for scope in ("user", "project"))
    assert ran.err == (
        "error: `toolbox` is not registered in VS Code\n\n"
        f"hint: Use `aggregator install vscode --name team --undo` for `team` in `{user}`, "
        f"or `aggregator install vscode --scope project --undo` for `toolbox` in `{project}`\n"
    )
    assert "error: `x` is not registered in VS Code for scope `project`\n" in scoped.err
