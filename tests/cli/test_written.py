"""Files as the clients' own programs wrote them: read, moved, and given back to the byte."""

from pathlib import Path

import pytest
import yaml

from aggregator.cli.clients.documents import format_of, found
from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell

WRITTEN = {path.name.partition("@")[0]: path for path in Path(__file__).parent.glob("clients/*@*")}

FILES: dict[str, object] = {
    "command": "npx",
    "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"],
}
LOGGING = {"env": {"LOG_LEVEL": "debug"}}
DOCS: dict[str, object] = {"url": "https://docs.example.com/mcp"}
TEAM = {"headers": {"X-Team": "blue"}}
FEED = {"url": "https://feed.example.com/sse", "type": "sse"}

EXPECTED: dict[str, dict[str, object]] = {
    "claude-code": {"files": FILES | LOGGING, "docs": DOCS | TEAM, "feed": FEED},
    "cline": {"files": FILES, "docs": DOCS | TEAM, "feed": FEED},
    "codex": {
        "files": FILES | LOGGING,
        "docs": DOCS | {"headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}},
    },
    "continue": {},
    "copilot-cli": {"files": FILES | LOGGING, "docs": DOCS | TEAM, "feed": FEED},
    "gemini-cli": {"files": FILES | LOGGING, "docs": DOCS | TEAM, "feed": FEED},
    "opencode": {
        "files": {"command": ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"]}
        | LOGGING,
        "docs": DOCS | TEAM,
    },
}
HAVING = [client for client, servers in EXPECTED.items() if servers]


def test_every_file_is_tried() -> None:
    assert set(WRITTEN) == set(EXPECTED)


@pytest.mark.parametrize("client", HAVING)
def test_what_a_client_wrote_is_taken_over(shell: Shell, client: str) -> None:
    give(shell, client)

    ran = shell.run("import", client, "--into", "servers.yaml", "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    assert taken(shell) == EXPECTED[client]
    assert "warning" not in ran.err


@pytest.mark.parametrize("client", EXPECTED)
def test_we_join_what_a_client_wrote_and_leave_without_a_trace(shell: Shell, client: str) -> None:
    path = give(shell, client)
    before = path.read_bytes()
    shell.write_servers("servers: {}\n")

    installed = shell.run("install", client, "--yes")

    assert installed.status is ExitStatus.FINE, installed.err
    file = shell.file_of(client)
    form = format_of(path)
    servers = found(form.read(path.read_text(encoding="utf-8")), file.keys)
    names = [each["name"] for each in servers] if file.listed else list(servers)
    assert names == [*EXPECTED[client], "toolbox"]

    assert shell.run("install", client, "--undo", "--yes").status is ExitStatus.FINE
    assert path.read_bytes() == before


@pytest.mark.parametrize("client", HAVING)
def test_what_a_client_wrote_is_moved_whole(shell: Shell, client: str) -> None:
    path = give(shell, client)
    before = path.read_bytes()
    shell.write_servers("servers: {}\n")

    moved = shell.run("install", client, "--move", "--yes")

    assert moved.status is ExitStatus.FINE, moved.err
    assert taken(shell) == EXPECTED[client]
    file = shell.file_of(client)
    left = found(format_of(path).read(path.read_text(encoding="utf-8")), file.keys)
    assert list(left) == ["toolbox"]

    shell.run("install", client, "--undo", "--yes")
    assert path.read_bytes() == before


def give(shell: Shell, client: str) -> Path:
    """Put what a client wrote where the client keeps it."""
    usual = shell.file_of(client).path
    path = usual.with_suffix(WRITTEN[client].suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(WRITTEN[client].read_bytes())
    return path


def taken(shell: Shell) -> object:
    """Return the servers that stand in `servers.yaml` now."""
    return yaml.safe_load((shell.project / "servers.yaml").read_text(encoding="utf-8"))["servers"]
