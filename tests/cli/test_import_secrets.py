"""What is secret in the file of a client: moved to a file for its owner, never shown."""

import json
import stat

import pytest

from aggregator.config import load_config
from aggregator.names import ServerName
from tests.cli.shell import Shell


@pytest.fixture
def shell(shell: Shell) -> Shell:
    """Keep the servers with the project, where there is no file yet."""
    shell.variables["AGGREGATOR_CONFIG"] = "servers.yaml"
    return shell


def test_a_secret_moves_to_a_file_for_its_owner_alone_and_is_never_shown(shell: Shell) -> None:
    shell.give("claude-code")

    ran = shell.run("import", "claude-code", "--yes")

    env_file = shell.project / ".env"
    assert env_file.read_text(encoding="utf-8") == "TRACKER_TOKEN=trk-0123456789abcdef\n"
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    assert "trk-0123456789abcdef" not in ran.out + ran.err
    assert "+TRACKER_TOKEN=***" in ran.out
    servers = load_config(shell.project / "servers.yaml", {}).servers
    assert servers[ServerName("tracker")].env["TRACKER_TOKEN"] == "trk-0123456789abcdef"  # noqa: S105 - a sample


@pytest.mark.parametrize("written", ["sk-secret-123456", "${env:API_KEY}"])
def test_an_env_file_that_holds_the_secret_already_is_named(shell: Shell, written: str) -> None:
    (shell.project / ".env").write_text("API_KEY=sk-secret-123456\n", encoding="utf-8")
    entry = {"command": "units-mcp", "env": {"API_KEY": written}}
    (shell.project / "m.json").write_text(
        json.dumps({"mcpServers": {"units": entry}}), encoding="utf-8"
    )

    shell.run("import", "m.json", "--yes")

    path = shell.project / "servers.yaml"
    assert "envFile: .env" in path.read_text(encoding="utf-8")
    server = load_config(path, {}).servers[ServerName("units")]
    assert server.env == {"API_KEY": "sk-secret-123456"}


def test_an_env_file_that_no_server_needs_is_not_named(shell: Shell) -> None:
    (shell.project / ".env").write_text("OTHER=1\n", encoding="utf-8")
    shell.give("cursor")

    shell.run("import", "cursor", "--yes")

    assert "envFile:" not in (shell.project / "servers.yaml").read_text(encoding="utf-8")


def test_the_password_of_a_connection_string_is_neither_shown_nor_written(shell: Shell) -> None:
    address = "postgresql://app:hunter2hunter2@db/x"
    entry = {"command": "pg-mcp", "args": [address], "env": {"DATABASE_URL": address}}
    (shell.project / "m.json").write_text(
        json.dumps({"mcpServers": {"pg": entry}}), encoding="utf-8"
    )

    ran = shell.run("import", "m.json", "--yes")

    target = shell.project / "servers.yaml"
    assert "hunter2" not in ran.out + ran.err + target.read_text(encoding="utf-8")
    assert (shell.project / ".env").read_text(encoding="utf-8") == "PG_PASSWORD=hunter2hunter2\n"
    server = load_config(target, {}).servers[ServerName("pg")]
    assert (server.args, server.env) == ((address,), {"DATABASE_URL": address})


def test_what_is_asked_for_or_read_from_a_file_is_pointed_out(shell: Shell) -> None:
    shell.give("vscode")
    shell.give("opencode")

    asked = shell.run("import", "vscode", "--yes")
    read = shell.run("import", "opencode", "--into", "other.yaml", "--yes")

    assert "set `TRACKER_TOKEN`, which the client asked you for" in asked.err
    assert "set `TRACKER_KEY` to what is in `~/.tracker-key`" in read.err
