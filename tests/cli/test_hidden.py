"""Nothing hidden reaches an eye: not from a server, and not from a file that is imported."""

import json
import re
import sys
import unicodedata
from pathlib import Path

import pytest
import yaml

from aggregator.cli.environment import ExitStatus
from tests.cli.hiding_server import FORGED
from tests.cli.shell import Shell

HIDING = Path(__file__).with_name("hiding_server.py")
OURS = re.compile(r"\x1b\[(?:0|1|2|31|32|33)m|\r?\x1b\[K|\r")
"""What we write ourselves: colours, and the line at the foot of a terminal."""


def check(text: str) -> None:
    """Fail where a text has what an eye does not see, or a line or colour that a server made."""
    assert "\x1b[32mFORGED" not in text
    seen = OURS.sub("", text)
    assert not [
        each
        for each in seen
        if unicodedata.category(each) in ("Cf", "Cc", "Cn", "Co") and each not in "\n\t"
    ]
    assert not re.search("[\u2028\u2029\U000e0100-\U000e01ef\ufe00-\ufe0f]", seen)
    assert not re.search("[\u034f\u115f\u17b4\u180b\u2800\u3164\uffa0]", seen)
    assert not re.search(r"^(?:error|web): FORGED", seen, re.MULTILINE)


def hiding(shell: Shell, era: str, place: str) -> None:
    shell.write_servers(
        f"servers:\n  hiding: {{command: {sys.executable}, args: [{HIDING}, {era}, {place}]}}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("era", "terminal"), [("handshake", True), ("modern", False)])
def test_what_a_server_refuses_with_is_one_line_of_text(
    shell: Shell, era: str, *, terminal: bool
) -> None:
    hiding(shell, era, "refusal")
    shell.terminal = terminal

    for command in ("inspect", "inspect --json", "check", "call hiding__plain"):
        ran = shell.run(*command.split())
        check(ran.out)
        check(ran.err)
        assert "FORGED" in ran.out + ran.err


@pytest.mark.slow
@pytest.mark.parametrize(("era", "terminal"), [("handshake", True), ("modern", False)])
def test_what_a_server_says_of_itself_and_its_tools_is_text(
    shell: Shell, era: str, *, terminal: bool
) -> None:
    hiding(shell, era, "listing")
    shell.terminal = terminal
    pages = [
        "inspect",
        "inspect hiding",
        "inspect hiding__plain",
        "search plain",
        "search x --json",
    ]

    for page in pages:
        ran = shell.run(*page.split())
        assert ran.status is ExitStatus.FINE, (page, ran.err)
        check(ran.out)
        check(ran.err)
    assert "ends lines here" in json.loads(shell.run("inspect", "--json").out)["tools"][1]["tool"]


@pytest.mark.slow
def test_a_result_is_a_person_s_to_see_and_a_program_s_to_have(shell: Shell) -> None:
    hiding(shell, "handshake", "listing")

    piped = shell.run("call", "hiding__plain")
    raw = shell.run("call", "hiding__plain", "--raw")
    shell.terminal = True
    seen = shell.run("call", "hiding__plain")

    assert piped.out == f"{FORGED}\n"
    assert json.loads(raw.out)["content"][0]["text"] == FORGED
    check(raw.out)
    assert "\x1b[32m" not in seen.out
    assert "\u202e" not in seen.out


@pytest.mark.parametrize("terminal", [True, False])
def test_the_diff_a_person_agrees_to_shows_what_is_hidden(shell: Shell, *, terminal: bool) -> None:
    entry = {"command": "x\u202ehs", "args": ["-c", "good\r+    evil\x1b[2K", "\U000e0041\u2028"]}
    path = shell.project / "mcp.json"
    named = {f"web{FORGED}": entry, "bad\nerror: FORGED": {}}
    path.write_text(json.dumps({"mcpServers": named}), encoding="utf-8")
    shell.terminal = terminal

    ran = shell.run("import", str(path), "--into", "servers.yaml", "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    check(ran.out)
    check(ran.err)
    for shown in (r"\u202e", r"\r", r"\u001b", r"\u2028"):
        assert shown in ran.out or shown.replace("u001b", "e") in ran.out
    servers = (shell.project / "servers.yaml").read_text(encoding="utf-8")
    assert "+    evil" not in servers.splitlines()


@pytest.mark.parametrize("terminal", [True, False])
def test_the_diff_shows_selectors_fillers_and_joiners(shell: Shell, *, terminal: bool) -> None:
    path = shell.project / "mcp.json"
    words = ["hi\ufe03\ufe0b", "\u3164\uffa0", "z\u200c\u200dz"]
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "args": words}}}), "utf-8")
    shell.terminal = terminal

    ran = shell.run("import", str(path), "--into", "servers.yaml", "--yes")

    check(ran.out)
    for shown in (r"hi\ufe03\ufe0b", r"\u3164\uffa0", r"z\u200c\u200dz"):
        assert shown in ran.out
    written = (shell.project / "servers.yaml").read_text("utf-8")
    assert yaml.safe_load(written)["servers"]["a"]["args"] == words


def test_the_diff_shows_every_line_of_the_file_and_no_other(shell: Shell) -> None:
    shell.write_servers("servers:\n  a: {command: x} # one\u2028  b: {command: y}\r  c\x0b\n")

    ran = shell.run("add", "new", "--", "true")

    check(ran.out)
    check(ran.err)


def test_a_file_that_names_what_it_should_not_cannot_forge_a_line(shell: Shell) -> None:
    shell.write_servers(f"servers:\n  {json.dumps(FORGED)}: {{command: x}}\n")

    ran = shell.run("check")

    assert ran.status is ExitStatus.USAGE
    check(ran.err)
