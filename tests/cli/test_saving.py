"""A catalog so small that tool search costs more than it saves is told as such."""

import json
from typing import Any

import pytest

from aggregator.cli.saving import advise
from tests.cli.shell import Shell, faulty

READY: list[dict[str, Any]] = [{"name": "a", "state": "ready"}]
OURS: dict[str, Any] = {"name": "ToolSearch", "description": "x" * 988, "inputSchema": {}}
"""A tool that costs 400 tokens."""


def tool(name: str, tokens: int) -> dict[str, Any]:
    return {"name": name, "tokens": tokens}


def test_what_would_be_saved_is_said_with_the_setting() -> None:
    assert advise([OURS], [tool("a__b", 100), tool("a__c", 200)], READY) == (
        "Tool search costs more than it saves here: the 2 deferred tools are about 300 tokens, "
        "the search itself 400; `toolSearch: auto` in servers.yaml would save 100 on every turn"
    )
    assert "the 1 deferred tool is about 100" in advise([OURS], [tool("a__b", 100)], READY)


def test_nothing_is_said_where_nothing_would_be_saved_or_is_known_yet() -> None:
    small = [tool("a__b", 100)]

    assert advise([OURS], [tool("a__b", 400)], READY) == ""
    assert advise([tool("a__b", 100)], small, READY) == ""
    assert advise([OURS], small, [*READY, {"name": "b", "state": "pending"}]) == ""
    assert advise([OURS], [], READY) == ""


ONE_TOOL = f"servers:\n  test:\n    {faulty()}\n    tools: {{allow: [echo]}}\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["inspect", "check", "doctor"])
def test_each_command_that_shows_servers_says_so(shell: Shell, command: str) -> None:
    shell.write_servers(ONE_TOOL)
    deferring = shell.run(command)
    data = json.loads(shell.run(command, "--json").out)
    shell.write_servers(f"toolSearch: auto\n{ONE_TOOL}")
    shown = shell.run(command)

    assert data["advice"] in " ".join(deferring.out.split())
    assert data["advice"].startswith("Tool search costs more than it saves here: the 1 deferred")
    assert "Tool search costs" not in shown.out
