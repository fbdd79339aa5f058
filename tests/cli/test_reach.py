"""Looking at an aggregator that serves over HTTP."""

import json
import sys

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.serving import SERVERS, serving
from tests.cli.shell import FAULTY, Shell


@pytest.mark.slow
def test_a_running_server_is_inspected_with_the_token_of_its_owner(shell: Shell) -> None:
    with serving(shell) as (url, _said):
        owner = shell.run("inspect", "--url", url, "--json")
        tool = shell.run("inspect", "test__echo", "--url", url)
        astray = shell.run("inspect", "--url", url.removesuffix("/mcp"))
        shell.variables = {"HOME": "/nowhere"}
        stranger = shell.run("inspect", "--url", url)
        shell.variables = {"AGGREGATOR_TOKEN": "wrong"}
        impostor = shell.run("inspect", "--url", url)

    assert owner.status is ExitStatus.FINE, owner.err
    assert [server["name"] for server in json.loads(owner.out)["servers"]] == ["test"]
    assert tool.out.startswith("test__echo (test, shown when found")
    assert owner.err == tool.err == ""
    assert "refused: 405" in astray.err
    assert f"hint: An aggregator serves at `{url}`" in astray.err
    assert stranger.status is ExitStatus.UNREACHED
    assert "refused: 401" in stranger.err
    assert "`AGGREGATOR_TOKEN`" in stranger.err
    assert impostor.status is ExitStatus.UNREACHED


@pytest.mark.slow
def test_every_command_can_ask_a_running_server(shell: Shell) -> None:
    with serving(shell) as (url, _said):
        (token,) = shell.home.rglob("http-token")
        mine = token.rename(shell.project / "token")
        named = ("--url", url, "--token-file", "token")
        call = shell.run("call", "test__echo", "text=hello", *named)
        bare = shell.run("call", "echo", "text=hello", *named)
        check = shell.run("check", *named)
        wrong = shell.run("check", "tset", *named)
        (shell.project / "servers.yaml").unlink()
        shell.variables = {"AGGREGATOR_TOKEN": mine.read_text(encoding="utf-8").strip()}
        search = shell.run("search", "echo text", "--url", url)
        absent = shell.run("search", "echo", "--url", url, "--token-file", "nowhere")

    assert (call.status, call.err) == (ExitStatus.FINE, "")
    assert "hello" in call.out
    assert bare == call
    assert check.status is ExitStatus.FINE, check
    assert check.out.splitlines()[1].split()[:2] == ["test", "ready"]
    assert wrong.status is ExitStatus.UNKNOWN
    assert "## test__echo (server test)" in search.out
    assert absent.status is ExitStatus.USAGE
    assert "nowhere` cannot be read: no such file or directory" in absent.err


@pytest.mark.slow
def test_servers_that_start_when_called_are_in_order(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    assert shell.run("inspect").status is ExitStatus.FINE
    with serving(shell) as (url, _said):
        check = shell.run("check", "--url", url)
        document = shell.run("check", "--url", url, "--json")

    row = check.out.splitlines()[1].split()
    assert check.status is ExitStatus.FINE, check
    assert row[:3] == ["test", "idle", "-"]
    assert int(row[3]) > 0
    assert json.loads(document.out)["findings"] == []


@pytest.mark.slow
def test_servers_that_did_not_start_when_called_are_not_in_order(shell: Shell) -> None:
    script = shell.project / "start"
    servers = f"servers:\n  test: {{command: sh, args: [{script}]}}\n"
    script.write_text(f"exec {sys.executable} {FAULTY}", encoding="utf-8")
    shell.write_servers(servers)
    assert shell.run("inspect").status is ExitStatus.FINE
    script.write_text("echo out of order >&2; exit 1", encoding="utf-8")
    with serving(shell, servers) as (url, _said):
        shell.run("call", "test__echo", "text=hello", "--url", url)
        # It tries a few times before it rests again.
        while "pending" in (check := shell.run("check", "--url", url)).out:
            pass

    assert check.status is ExitStatus.UNAVAILABLE
    assert "error: test: The last time it did not start: " in check.out
    assert "out of order" in check.out


def test_a_token_is_for_a_running_server(shell: Shell) -> None:
    shell.write_servers("servers: {}")

    ran = shell.run("check", "--token-file", "token")

    assert ran.status is ExitStatus.USAGE
    assert "`--token-file` is of use only with `--url`" in ran.err


@pytest.mark.slow
def test_a_broken_edit_is_told_to_who_looks_at_a_running_server(shell: Shell) -> None:
    with serving(shell) as (url, said):
        shell.write_servers("servers:\n  test:\n    comand: x\n")
        next(line for line in said if "going on with the configuration in use" in line)
        page = shell.run("inspect", "--url", url)
        document = shell.run("inspect", "--url", url, "--json")
        check = shell.run("check", "--url", url)

    assert check.status is ExitStatus.ERROR
    assert "error: `servers.yaml`, line 3: " in check.out
    assert page.out.startswith("`servers.yaml`, line 3: ")
    assert "comand" in page.out.partition("going on with the configuration in use")[0]
    assert json.loads(document.out)["problem"].startswith("`servers.yaml`, line 3: ")


@pytest.mark.parametrize(
    ("url", "status", "problem"),
    [
        ("http://127.0.0.1:1/mcp", ExitStatus.UNREACHED, "did not answer: connection refused"),
        ("file:///etc/passwd", ExitStatus.USAGE, "must begin with http:// or https://"),
        ("http://[", ExitStatus.USAGE, "`--url` has a `[` or a `]` without the other"),
        ("http://a:b/", ExitStatus.USAGE, "`--url` must have a number from 1 to 65535 as its port"),
        ("nonsense", ExitStatus.USAGE, "must begin with http:// or https://"),
    ],
)
def test_an_address_where_nobody_is_is_said(
    shell: Shell, url: str, status: ExitStatus, problem: str
) -> None:
    ran = shell.run("inspect", "--url", url)

    assert ran.status is status
    assert problem in ran.err
