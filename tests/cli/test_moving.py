"""Installing with the servers that a client had, and where they stay."""

import json
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell
from tests.cli.test_install import SERVERS, servers_of

UNITS = {"command": "units-mcp", "args": ["-p", "80"], "env": {"API_KEY": "sk-secret-123456"}}


def write_cursor(shell: Shell, **servers: dict[str, Any]) -> Path:
    """Let Cursor have servers."""
    path = shell.file_of("cursor").path
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def test_moving_takes_out_what_was_imported_before(shell: Shell) -> None:
    path = write_cursor(shell, units=UNITS)
    before = path.read_bytes()
    shell.run("import", "cursor", "--yes")
    shell.run("install", "cursor", "--yes")

    moved = shell.run("install", "cursor", "--move", "--yes")

    assert moved.status is ExitStatus.FINE, moved.err
    assert "`units` is in `servers.yaml` already" in moved.err
    assert list(servers_of(shell, "cursor")) == ["toolbox"]
    shell.run("install", "cursor", "--undo", "--yes")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "written",
    [
        "{command: units-mcp, args: [-p, 80], env: {API_KEY: sk-secret-123456}}",
        "{command: [units-mcp, -p, '80'], env: {API_KEY: '${KEY}'}, enabled: true}",
        "{command: units-mcp, args: [-p, 80], env: {API_KEY: '${KEY}'}, tools: {deny: [x]}}",
    ],
)
def test_moving_takes_out_what_is_the_same_with_its_values(shell: Shell, written: str) -> None:
    write_cursor(shell, units=UNITS)
    shell.write_servers(f"envFile: .env\nservers:\n  units: {written}\n")
    (shell.project / ".env").write_text("KEY=sk-secret-123456\n", encoding="utf-8")

    moved = shell.run("install", "cursor", "--move", "--yes")

    assert moved.status is ExitStatus.FINE, moved.err
    assert list(servers_of(shell, "cursor")) == ["toolbox"]


@pytest.mark.parametrize(
    "written",
    [
        "{command: other-mcp}",
        "{command: units-mcp, args: [-p, 80]}",
        "{command: units-mcp, args: [-p, 80], env: {API_KEY: '${UNKNOWN}'}}",
        "{command: units-mcp, args: [-p, 80], env: {API_KEY: sk-secret-123456}, enabled: false}",
        "{command: units-mcp, args: [-p, 80], env: {API_KEY: sk-secret-123456}, cwd: /}",
        "null",
    ],
)
def test_moving_leaves_what_is_another_server_and_says_so(shell: Shell, written: str) -> None:
    write_cursor(shell, units=UNITS, broken={})
    shell.write_servers(f"servers:\n  units: {written}\n")

    moved = shell.run("install", "cursor", "--move", "--yes")

    assert list(servers_of(shell, "cursor")) == ["units", "broken", "toolbox"]
    assert "stays in Cursor: `servers.yaml` has another server of that name" in moved.err
    assert "`broken` stays in Cursor: `broken` has neither" in moved.err


def test_moving_names_the_env_file_that_holds_the_same_secret(shell: Shell) -> None:
    write_cursor(shell, units=UNITS)
    shell.run("import", "cursor", "--into", "team.yaml", "--yes")
    path = shell.write_servers(
        "servers:\n  units: {command: units-mcp, args: [-p, 80], env: {API_KEY: '${API_KEY}'}}\n"
    )

    shell.run("install", "cursor", "--move", "--yes")

    assert "envFile: .env" in path.read_text(encoding="utf-8")
    assert list(servers_of(shell, "cursor")) == ["toolbox"]


def test_installing_tells_of_the_servers_that_a_client_keeps(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    write_cursor(shell, units=UNITS)

    first = shell.run("install", "cursor", "--yes")
    again = shell.run("install", "cursor", "--yes")
    moved = shell.run("install", "cursor", "--move", "--yes")

    said = "Cursor keeps 1 server of its own; `--move` takes it over"
    assert said in first.err
    assert said in again.err
    assert "of its own" not in moved.err
