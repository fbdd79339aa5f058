"""Installing into a client, and undoing it to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli.clients.documents import format_of, found
from aggregator.cli.clients.foreign import is_ours, servers_in
from aggregator.cli.environment import ExitStatus
from aggregator.clients import INSTALLABLE
from tests.cli.shell import Shell, sample

SERVERS = "servers:\n  notes:\n    command: notes-mcp\n    env: {KEY: '${NOTES_KEY}'}\n"
NAMES = [client.name for client in INSTALLABLE]
KEPT_LOADED = {
    "claude-code": {"type": "stdio", "alwaysLoad": True},
    "codex": {"required": True, "omit_tools_from": ["deferred"], "env_vars": ["NOTES_KEY"]},
    "copilot-cli": {"type": "local", "tools": ["*"], "deferTools": "never"},
    "gemini-cli": {"env": {"NOTES_KEY": "$NOTES_KEY"}},
    "goose": {"type": "stdio", "enabled": True},
    "opencode": {"type": "local", "enabled": True},
}


@pytest.fixture
def shell(shell: Shell) -> Shell:
    """Keep the servers with the project, where there is no file yet."""
    shell.variables["AGGREGATOR_CONFIG"] = "servers.yaml"
    return shell


def servers_of(shell: Shell, client: str) -> dict[str, Any]:
    """Return the servers in a client's file."""
    return dict(servers_in(shell.file_of(client)))


def test_a_client_that_was_not_found_is_registered_and_a_person_told_so(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    shell.give("cursor", "project")

    absent = shell.run("install", "codex", "--yes")
    known_otherwise = shell.run("install", "cursor", "--yes")

    path = shell.file_of("codex").path
    assert f"Codex was not found here; `{path}` is written for when it is installed\n" in absent.err
    assert path.exists()
    assert "not found" not in known_otherwise.err


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_a_list_of_clients_has_every_path_whole(shell: Shell, columns: int) -> None:
    shell.variables["COLUMNS"] = str(columns)
    paths = {shell.give("roo"), shell.give("claude-code"), shell.give("claude-code", "project")}

    lines = shell.run("install").out.splitlines()

    found = {line.split()[-1]: line for line in lines if "/" in line}
    assert set(found) == set(map(str, paths))
    # What has no room beside other words has a line of its own.
    too_wide = [line for line in found.values() if len(line) > columns]
    assert too_wide
    assert all(line == f"  {line.strip()}" and " " not in line.strip() for line in too_wide)


@pytest.mark.parametrize("client", NAMES)
def test_installing_adds_one_entry_and_undoing_restores_every_byte(
    shell: Shell, client: str
) -> None:
    shell.write_servers(SERVERS)
    path = shell.give(client)
    before = path.read_bytes()

    installed = shell.run("install", client, "--yes")

    assert installed.status is ExitStatus.FINE, installed.err
    assert "Backups are in" in installed.err
    file = shell.file_of(client)
    form = format_of(path)
    text = path.read_text(encoding="utf-8")
    entry = found(form.read(text), (*file.keys, "toolbox"))
    assert "servers.yaml" in str(entry)
    assert {**entry, **KEPT_LOADED.get(client, {})} == entry
    assert form.read(form.drop(text, (*file.keys, "toolbox"))) == form.read(before.decode())

    undone = shell.run("install", client, "--undo", "--yes")

    assert undone.status is ExitStatus.FINE
    assert path.read_bytes() == before


def test_a_client_is_registered_to_share_if_that_is_asked_for(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    shell.run("install", "cursor", "--yes")
    alone = servers_of(shell, "cursor")["toolbox"]["args"]
    shell.run("install", "cursor", "--yes", "--shared")
    shared = servers_of(shell, "cursor")["toolbox"]["args"]

    assert "--shared" not in alone
    assert [word for word in shared if word != "--shared"] == alone
    assert shared.index("--shared") == shared.index("serve") + 1


SHARING = [client.name for client in INSTALLABLE if not client.unshared]


@pytest.mark.parametrize("client", NAMES)
def test_clients_that_are_known_to_share_well_do_unless_told_otherwise(
    shell: Shell, client: str
) -> None:
    shell.write_servers(SERVERS)
    written = list[str]()
    for options in ((), ("--no-shared",), ("--shared",)):
        shell.run("install", client, "--yes", *options)
        written.append(str(servers_of(shell, client)["toolbox"]))

    assert ["--shared" in each for each in written] == [client in SHARING, False, True]


@pytest.mark.parametrize("client", SHARING)
def test_nobody_shares_by_itself_elsewhere_or_in_a_file_for_others(
    shell: Shell, client: str
) -> None:
    shell.write_servers(SERVERS)
    shell.platform = "darwin"
    shell.run("install", client, "--yes")
    assert "--shared" not in str(servers_of(shell, client)["toolbox"])


def test_a_file_for_others_does_not_say_to_share(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    shell.run("install", "copilot-cli", "--scope", "project", "--yes")

    assert "--shared" not in (shell.project / ".github/mcp.json").read_text(encoding="utf-8")


WEB = [client.name for client in INSTALLABLE if client.web is not None]


@pytest.mark.parametrize("client", WEB)
def test_the_door_is_registered_with_its_token_by_reference(shell: Shell, client: str) -> None:
    shell.run("install", client, "--yes", "--http", "8765")
    entry = servers_of(shell, client)["toolbox"]

    assert "http://127.0.0.1:8765/mcp" in entry.values()
    assert "AGGREGATOR_TOKEN" in str(entry)
    assert "command" not in entry

    assert is_ours(entry)
    # So it is not taken over as a server, and can be replaced and undone like any other.
    again = shell.run("install", client, "--yes", "--http", "8766")
    assert again.status is ExitStatus.FINE, again.err
    assert "http://127.0.0.1:8766/mcp" in servers_of(shell, client)["toolbox"].values()


@pytest.mark.parametrize("client", sorted({*NAMES} - {*WEB}))
def test_a_client_whose_file_would_hold_the_token_is_refused(shell: Shell, client: str) -> None:
    path = shell.file_of(client).path
    before = path.read_bytes() if path.exists() else None
    refused = shell.run("install", client, "--yes", "--http", "8765")

    assert refused.status is ExitStatus.ERROR
    assert "would hold the token itself" in refused.err
    assert f"install {client} --shared" in refused.err
    assert (path.read_bytes() if path.exists() else None) == before


@pytest.mark.parametrize("words", [("--http", "x"), ("--http", "8765", "--shared")])
def test_a_door_that_cannot_be_is_refused(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell.run("install", "codex", "--yes", *words).status is ExitStatus.USAGE


@pytest.mark.parametrize("client", NAMES)
def test_every_line_of_the_file_survives_the_installation(shell: Shell, client: str) -> None:
    shell.write_servers(SERVERS)
    path = shell.give(client)
    lines = [line.rstrip(",") for line in path.read_text(encoding="utf-8").splitlines()]

    shell.run("install", client, "--yes")

    after = path.read_text(encoding="utf-8")
    if client != "windsurf":  # all on one line
        assert [line for line in lines if line not in after] == []


@pytest.mark.parametrize(
    ("client", "begins"),
    [
        ("continue", "name: Main Config\nversion: 1.0.0\nschema: v1\nmcpServers:\n"),
        ("librechat", "version: 1.2.1\nmcpServers:\n"),
    ],
)
def test_a_file_that_is_made_has_what_the_client_requires(
    shell: Shell, client: str, begins: str
) -> None:
    """Continue refuses a file without a name and a version."""
    shell.write_servers(SERVERS)

    shell.run("install", client, "--yes")

    assert shell.file_of(client).path.read_text(encoding="utf-8").startswith(begins)


@pytest.mark.parametrize("client", [name for name in NAMES if name != "librechat"])
def test_moving_takes_the_servers_over_and_undoing_gives_them_back(
    shell: Shell, client: str
) -> None:
    path = shell.give(client)
    before = path.read_bytes()

    moved = shell.run("install", client, "--move", "--yes")

    assert moved.status is ExitStatus.FINE, moved.err
    left = servers_of(shell, client)
    assert [name for name in left if name != "developer"] == ["toolbox"]
    assert (shell.project / "servers.yaml").exists()

    shell.run("install", client, "--undo", "--yes")

    assert path.read_bytes() == before
    assert list(shell.project.iterdir()) == []


def test_nothing_is_written_unless_a_person_agrees(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    path = shell.give("zed")

    refused = shell.run("install", "zed", typed="n\n")
    silent = shell.run("install", "zed", typed="")
    agreed = shell.run("install", "zed", typed="y\n")

    assert (refused.status, silent.status) == (ExitStatus.ERROR, ExitStatus.ERROR)
    assert "--yes" in silent.err
    assert agreed.status is ExitStatus.FINE
    assert '+    "toolbox": {' in agreed.out
    assert path.read_bytes() != sample("zed").read_bytes()


def test_no_secret_of_the_client_is_shown(shell: Shell) -> None:
    path = shell.give("claude-code")
    secret = "trk-0123456789abcdef"  # noqa: S105 - that of the sample
    assert secret in path.read_text(encoding="utf-8")

    moved = shell.run("install", "claude-code", "--move", "--yes")
    undone = shell.run("install", "claude-code", "--undo", "--yes")

    assert secret not in moved.out + moved.err + undone.out + undone.err


def test_the_names_of_variables_are_shown(shell: Shell) -> None:
    shell.give("codex")

    moved = shell.run("install", "codex", "--move", "--yes")

    assert '-bearer_token_env_var = "GITHUB_TOKEN"' in moved.out
    assert "***" not in moved.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["claud-code"], "there is no client `claud-code`"),
        (["--undo"], "`--undo` needs the name of a client"),
        (["codex", "--json"], "`--json` lists clients"),
        (["codex", "--scope", "project"], "Codex has no scope `project`"),
        (["codex", "--undo"], "`toolbox` is not registered in Codex"),
        (["codex", "--config", "nope.yaml"], "nope.yaml` does not exist"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    shell: Shell, arguments: list[str], problem: str
) -> None:
    ran = shell.run("install", *arguments)

    assert ran.status in (ExitStatus.ERROR, ExitStatus.USAGE)
    assert problem in ran.err.splitlines()[0]


def test_clients_are_listed_with_where_we_are_registered(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    shell.give("cursor")
    shell.give("codex")
    shell.run("install", "codex", "--yes")

    table = shell.run("install").out.splitlines()
    listed = {
        each["client"]: each for each in json.loads(shell.run("install", "--json").out)["clients"]
    }

    states = {line.split()[0]: line for line in table if " registered" in line}
    assert "registered as toolbox" in states["codex"]
    assert "not registered" in states["cursor"]
    absent = " ".join(table).partition("Not found here: ")[2]
    assert "zed," in absent.split()
    assert listed["codex"]["registered"] == ["toolbox"]
    assert listed["zed"]["files"] == []


@pytest.mark.parametrize("text", ["not json", '{"mcpServers": 3}', '{"mcpServers": []', "[1]"])
def test_a_file_that_is_not_understood_is_left_alone(shell: Shell, text: str) -> None:
    shell.write_servers(SERVERS)
    path = shell.file_of("cursor").path
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")

    ran = shell.run("install", "cursor", "--yes")

    assert ran.status is ExitStatus.ERROR
    assert ran.err.startswith("error: ")
    assert path.read_text(encoding="utf-8") == text


def test_a_directory_that_cannot_be_written_to_is_said(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    # Even the superuser cannot write below a file.
    (shell.home / ".cursor").write_text("", encoding="utf-8")

    ran = shell.run("install", "cursor", "--yes")

    assert ran.status is ExitStatus.ERROR
    assert "cannot be" in ran.err.splitlines()[0]


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("darwin", {}, "Library/Application Support/Claude/claude_desktop_config.json"),
        ("linux", {}, ".config/Claude/claude_desktop_config.json"),
        ("linux", {"XDG_CONFIG_HOME": "/etc/xdg"}, "/etc/xdg/Claude/claude_desktop_config.json"),
        (
            "win32",
            {"APPDATA": "/Roaming", "USERPROFILE": "/Users/me"},
            "/Roaming/Claude/claude_desktop_config.json",
        ),
    ],
)
def test_each_platform_has_its_places(
    shell: Shell, platform: str, variables: dict[str, str], expected: str
) -> None:
    shell.platform, shell.variables = platform, variables

    assert shell.file_of("claude-desktop").path == shell.home / Path(expected)
