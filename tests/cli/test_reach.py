"""Looking at an aggregator that serves over HTTP."""

import json
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell, faulty


@contextmanager
def serving(shell: Shell) -> Generator[str]:
    """Serve over HTTP on a free port, and return where."""
    path = shell.write_servers(f"servers:\n  test:\n    {faulty()}\n")
    command = [sys.executable, "-m", "aggregator", "serve", "--config", str(path), "--http", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=shell.all_variables()
    ) as process:
        assert process.stderr is not None
        said = iter(process.stderr.readline, "")
        found = next(filter(None, (re.search(r"http://\S+", line) for line in said)))
        try:
            yield found[0]
        finally:
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.slow
def test_a_running_server_is_inspected_with_the_token_of_its_owner(shell: Shell) -> None:
    with serving(shell) as url:
        owner = shell.run("inspect", "--url", url, "--json")
        tool = shell.run("inspect", "test__echo", "--url", url)
        astray = shell.run("inspect", "--url", url.removesuffix("/mcp"))
        shell.variables = {"HOME": "/nowhere"}
        stranger = shell.run("inspect", "--url", url)
        shell.variables = {"AGGREGATOR_TOKEN": "wrong"}
        impostor = shell.run("inspect", "--url", url)

    assert owner.status is ExitStatus.FINE, owner.err
    assert [server["name"] for server in json.loads(owner.out)["servers"]] == ["test"]
    assert tool.out.startswith("test__echo (test, deferred")
    assert owner.err == tool.err == ""
    assert "refused: 404" in astray.err
    assert f"hint: An aggregator serves at `{url}`" in astray.err
    assert stranger.status is ExitStatus.ERROR
    assert "refused: 401" in stranger.err
    assert "`AGGREGATOR_TOKEN`" in stranger.err
    assert impostor.status is ExitStatus.ERROR


@pytest.mark.parametrize(
    ("url", "status", "problem"),
    [
        ("http://127.0.0.1:1/mcp", ExitStatus.ERROR, "did not answer: connection refused"),
        ("file:///etc/passwd", ExitStatus.USAGE, "must begin with http:// or https://"),
        ("nonsense", ExitStatus.USAGE, "must begin with http:// or https://"),
    ],
)
def test_an_address_where_nobody_is_is_said(
    shell: Shell, url: str, status: ExitStatus, problem: str
) -> None:
    ran = shell.run("inspect", "--url", url)

    assert ran.status is status
    assert problem in ran.err
