"""`aggregator stats`: what a session came to, on a page and for programs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import ROOT, Shell
from tests.patience import PATIENCE

NOTES = ROOT / "examples" / "servers" / "notes.py"
UNITS = ROOT / "examples" / "servers" / "units.py"


def servers(top: str = "") -> str:
    return (
        f"{top}servers:\n"
        f"  notes: {{command: [{sys.executable}, {NOTES}]}}\n"
        f"  units: {{command: [{sys.executable}, {UNITS}], description: Converts}}\n"
    )


def talk(shell: Shell, *requests: tuple[str, dict[str, Any]]) -> None:
    """Be a client of `aggregator serve` that asks one thing after the other, and leaves."""
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "somebody", "version": "1"},
    }
    command = [sys.executable, "-m", "aggregator", "serve", "--config", "servers.yaml"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=shell.project,
        env=shell.all_variables(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, (method, params) in enumerate((("initialize", hello), *requests)):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(f"{json.dumps(request)}\n")
            process.stdin.flush()
            while json.loads(process.stdout.readline()).get("id") != number:
                pass
            if method == "initialize":
                ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                process.stdin.write(f"{json.dumps(ready)}\n")
        process.stdin.close()
        process.wait(timeout=PATIENCE)


def search(query: str) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": "ToolSearch", "arguments": {"query": query, "wait": 20}}


def call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": tool, "arguments": arguments}


def counted(shell: Shell) -> Path:
    (found,) = (shell.home / ".local/state/mcp-tool-aggregator/stats").iterdir()
    return found


@pytest.mark.slow
def test_a_session_is_shown_on_a_page_and_for_programs(shell: Shell) -> None:
    shell.write_servers(servers())
    talk(
        shell,
        search("create a note"),
        call("notes__create_note", title="Milk", body="canary-4711"),
        call("notes__list_notes"),
        search("qqqqzzzz"),
        ("tools/list", {}),
    )

    page = shell.run("stats")
    document = json.loads(shell.run("stats", "--json").out)

    assert page.status == 0
    assert "2 calls of 2 tools on 1 server, no errors" in page.out
    assert "2 searches: 1 found nothing, 1 led to a call, 1 of them of the first" in page.out
    assert 'Found nothing: "qqqqzzzz" (1)' in page.out
    assert [use["calls"] for use in document["tools"]] == [1, 1]
    assert document["servers"][0]["name"] == "notes"
    assert document["searches"]["followed"] == [
        {"query": "create a note", "tool": "notes__create_note", "rank": 1}
    ]
    assert "1 list of tools sent: about " in page.out
    assert "fewer than with all known tools in each" in " ".join(page.out.split())
    assert document["lists"]["served"] == 1
    assert document["lists"]["tokensSaved"] > 0
    assert document["proposedSearches"] == [
        {"query": "create a note", "expect": "notes__create_note", "within": 3}
    ]
    assert '- {query: "create a note", expect: notes__create_note, within: 3}' in page.out
    units = next(each for each in document["unused"] if each["server"] == "units")
    assert units["whole"]
    assert units["savedByDropping"] > 0
    notes = next(each for each in document["unused"] if each["server"] == "notes")
    assert "notes__create_note" not in notes["tools"]
    assert "canary-4711" not in counted(shell).read_text(encoding="utf-8")

    shell.variables["COLUMNS"] = "60"
    # What is to be copied into a file stays whole.
    lines = [each for each in shell.run("stats").out.splitlines() if not each.startswith("- {")]
    assert max(map(len, lines)) <= 60
    assert "Nothing has been counted" in shell.run("stats", "--since", "2099-01-01").out


@pytest.mark.slow
@pytest.mark.parametrize("top", ["stats: false\n", "state: false\n"])
def test_nothing_is_counted_where_that_is_switched_off(shell: Shell, top: str) -> None:
    shell.write_servers(servers(top))
    talk(shell, search("create a note"))

    ran = shell.run("stats")

    assert "nothing more is counted" in ran.err
    assert "Nothing has been counted yet" in ran.out
    assert not (shell.home / ".local/state/mcp-tool-aggregator/stats").exists()


def test_another_configuration_has_numbers_of_its_own(shell: Shell) -> None:
    shell.write_servers(servers())
    place = shell.home / ".local/state/mcp-tool-aggregator/stats"
    place.mkdir(parents=True)
    line = {"file": "of another", "at": 9e9, "session": "s", "event": "call", "outcome": "ok"}
    (place / "2099-01-01.000.jsonl").write_text(json.dumps({**line, "ms": 1}), encoding="utf-8")

    assert "Nothing has been counted yet" in shell.run("stats").out


def test_how_far_to_look_back_is_said_in_words_that_are_understood(shell: Shell) -> None:
    shell.write_servers(servers())

    assert shell.run("stats", "--since", "7d").status == 0
    refused = shell.run("stats", "--since", "a while")

    assert refused.status == 2
    assert "7d" in refused.err


def test_one_tool_that_was_never_called_is_one_tool(shell: Shell) -> None:
    program = f"command: [{sys.executable}, {NOTES}]"
    two = "tools: {allow: [list_tags, search_notes]}"
    shell.write_servers(f"servers:\n  notes: {{{program}, {two}}}\n")
    talk(shell, call("notes__list_tags"), ("tools/list", {}))

    page = shell.run("stats")

    assert "1 tool of servers that are used never had a call: " in " ".join(page.out.split())


def test_calls_that_were_all_cancelled_took_no_time_that_is_known(shell: Shell) -> None:
    shell.write_servers(servers())
    talk(shell, call("notes__list_tags"))
    path = counted(shell)
    path.write_text(
        path.read_text("utf-8").replace('"outcome":"ok"', '"outcome":"cancelled"'), "utf-8"
    )

    (row,) = [line for line in shell.run("stats").out.splitlines() if "notes__list_tags" in line]
    (tool,) = json.loads(shell.run("stats", "--json").out)["tools"]

    assert row.split() == ["1", "0", "-", "-", "notes__list_tags"]
    assert tool["milliseconds"] == {"p50": None, "p95": None}
