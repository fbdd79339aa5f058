"""Two versions of a published server: what differs is told by classes, withheld and approved."""

import json
import os
from pathlib import Path

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell
from tests.foreign.installing import CACHE_VARIABLE, install, ready_node, variables
from tests.foreign.published import SERVERS

OLD, NEW = "2025.7.1", "2026.1.14"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CACHE_VARIABLE not in os.environ,
        reason=f"installs servers from npm into ${CACHE_VARIABLE}",
    ),
]


def test_a_newer_version_of_a_server_is_looked_at_before_it_is_offered(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    ready_node()
    (server,) = (each for each in SERVERS if each.name == "filesystem")
    shell = Shell(home, project, variables=variables(server, home))
    program = project / "server"
    entry = f"command: ./server, args: [{project}], inheritEnv: true"
    shell.write_servers(f"drift: block\nservers:\n  files: {{{entry}}}\n")

    def become(version: str) -> None:
        program.unlink(missing_ok=True)
        program.symlink_to(install(server._replace(version=version)))

    become(OLD)
    assert shell.run("lock").status == ExitStatus.FINE
    known = set(json.loads((project / "servers.lock").read_bytes())["servers"]["files"]["tools"])
    become(NEW)
    checked = shell.run("lock", "--check", "--json")
    found = {each["tool"]: each["kind"] for each in json.loads(checked.out)["drift"]}
    offered = json.loads(shell.run("inspect", "files", "--live", "--json").out)

    assert checked.status == ExitStatus.ERROR
    assert "new" in found.values()
    alarms = {tool for tool, kind in found.items() if kind not in ("notation", "removed")}
    assert {each["tool"] for each in offered["tools"]} == known - alarms - {
        tool for tool, kind in found.items() if kind == "removed"
    }
    assert {each["tool"] for each in offered["drift"] if each["withheld"]} == alarms
    assert shell.run("approve", "files").status == ExitStatus.FINE
    assert shell.run("lock", "--check").status == ExitStatus.FINE
    after = json.loads(shell.run("inspect", "files", "--live", "--json").out)
    assert {each["tool"] for each in after["tools"]} >= alarms
