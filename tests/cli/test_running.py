"""Commands that start servers, typed as a person would."""

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aggregator.cli.environment import CommandError, ExitStatus
from aggregator.cli.inspect import find_tool
from tests.cli.serving import SERVERS
from tests.cli.session import start
from tests.cli.shell import Ran, Shell, faulty
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

ODD = Path(__file__).with_name("odd_server.py")
ODD_SERVER = f"  odd: {{command: {sys.executable}, args: [{ODD}]}}\n"
BROKEN = f"""\
servers:
  test:
    {faulty()}
  broken:
    command: {sys.executable}
    args: [-c, "import sys; sys.exit('no database here')"]
    description: Ends at once
  lacking:
    command: lacking-mcp
    env: {{TOKEN: "${{LACKING_TOKEN}}"}}
    description: Misses a variable
"""


def test_inspect_shows_every_server_and_what_a_client_would_see(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    ran = shell.run("inspect")

    assert ran.status is ExitStatus.FINE, ran.err
    assert ran.out.splitlines()[1].split()[:2] == ["test", "ready"]
    assert "A client sees 3: ToolSearch, CallTool, CallReadOnlyTool" in ran.out
    assert "\ntest: ready after " in ran.err


def test_the_example_servers_are_there_in_any_directory(shell: Shell) -> None:
    ran = shell.run("call", "--example", "units__convert_unit", "value=3", "source=km", "target=m")

    assert ran.status is ExitStatus.FINE, ran.err
    assert "3000" in ran.out


def test_inspect_shows_why_a_server_is_not_there(shell: Shell) -> None:
    shell.write_servers(BROKEN)

    catalog = shell.run("inspect", "--json", "--wait", "5")
    server = shell.run("inspect", "broken", "--wait", "5")

    states = {each["name"]: each["state"] for each in json.loads(catalog.out)["servers"]}
    assert states == {"test": "ready", "broken": "pending", "lacking": "failed"}
    assert "It wrote to stderr:\n  no database here" in server.out
    assert "lacking: failed\n" in catalog.err
    assert "the variable `LACKING_TOKEN` must be set" in catalog.out


def test_inspect_finds_a_tool_by_any_of_its_names(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    whole = shell.run("inspect", "echo", "--json")
    wrong = shell.run("inspect", "test__ecko")

    assert json.loads(whole.out)["name"] == "test__echo"
    assert wrong.status is ExitStatus.UNKNOWN
    assert wrong.out == ""
    assert "error: there is no server or tool `test__ecko`" in wrong.err
    assert "`test__echo`" in wrong.err


@pytest.mark.parametrize("subject", ["off", "off__echo"])
def test_inspect_says_that_a_server_is_disabled(shell: Shell, subject: str) -> None:
    path = shell.write_servers(f"{SERVERS}  off: {{command: off-mcp, enabled: false}}\n")

    ran = shell.run("inspect", subject)

    assert ran.status is ExitStatus.UNKNOWN
    assert f"\nerror: the server `off` is disabled in `{path}`\n" in f"\n{ran.err}"
    assert "hint: Set its `enabled` to true there" in ran.err


def test_on_a_terminal_progress_is_live_and_leaves_nothing_behind(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    shell.terminal = True

    ran = shell.run("inspect")

    assert "starting test" in ran.err
    assert ran.err.endswith("\r\x1b[K")
    assert "\x1b[32mready\x1b[0m" in ran.out


@pytest.mark.parametrize("command", ["inspect", "call"])
@pytest.mark.parametrize(
    ("ours", "hint"),
    [
        ("ToolSearch", "`aggregator search QUERY` searches as it does"),
        ("calltool", "`aggregator call TOOL key=value` calls a tool as it does"),
        ("CallReadOnlyTool", "`aggregator call TOOL key=value` calls a tool as it does"),
    ],
)
def test_who_asks_for_a_tool_of_ours_is_told_the_command(
    shell: Shell, command: str, ours: str, hint: str
) -> None:
    shell.write_servers(SERVERS)

    ran = shell.run(command, ours)

    assert ran.status is ExitStatus.UNKNOWN
    assert "is a tool of the aggregator itself, and of no server" in ran.err
    assert f"hint: {hint}\n" in ran.err


def test_only_what_can_be_meant_is_suggested(shell: Shell) -> None:
    shell.write_servers(SERVERS.replace("  test:", "  faults:"))

    server = shell.run("inspect", "fauts")
    tool = shell.run("call", "faults__ecko")
    both = shell.run("call", "fauts__ecko")

    assert both.status is ExitStatus.UNKNOWN
    lists = "`aggregator inspect faults` lists its tools"
    assert f"hint: Did you mean the server `faults`? {lists}" in both.err
    assert "hint: Did you mean `faults`? A tool is named with its server" in server.err
    assert "hint: The closest are `faults__echo`" in tool.err
    nothing = shell.run("inspect", "nosuch")
    assert "hint: `aggregator inspect` lists them" in nothing.err
    assert "`faults`" not in tool.err


def test_a_call_to_a_server_that_is_not_there_is_our_error(shell: Shell) -> None:
    shell.write_servers(BROKEN)

    unready = shell.run("call", "broken__anything", "--wait", "5")
    lost = shell.run("call", "test__fault", "kind=exit")

    assert unready.status is ExitStatus.UNAVAILABLE
    assert "the server `broken` is not ready" in unready.err
    assert lost.status is ExitStatus.UNAVAILABLE, lost
    assert "error: the server `test` went away" in lost.err
    assert lost.out == ""


@pytest.mark.parametrize(
    ("tool", "status", "out", "err"),
    [
        ("fail", ExitStatus.TOOL_ERROR, "there is no such note\n", "1 of 2: half done\n"),
        ("refuse", ExitStatus.TOOL_ERROR, "", "error: `odd__refuse`: not today (code -32601)\n"),
    ],
)
def test_a_call_of_a_server_of_our_own_ends_as_the_tool_ended(
    shell: Shell, tool: str, status: ExitStatus, out: str, err: str
) -> None:
    path = shell.write_servers(f"servers:\n{ODD_SERVER}")

    assert shell.run("call", tool) == Ran(status, out, f"Using `{path}`\n{err}")


def test_an_argument_that_is_misspelt_is_pointed_out(shell: Shell) -> None:
    path = shell.write_servers(f"servers:\n{ODD_SERVER}")

    ran = shell.run("call", "say", "numbr=5")

    assert ran.status is ExitStatus.FINE
    assert ran.err == (
        f"Using `{path}`\n"
        "warning: `numbr` is none of the arguments that the tool describes; "
        "did you mean `number`?\n"
    )


def test_what_is_not_ready_in_time_is_said_with_the_time(shell: Shell) -> None:
    shell.write_servers(f"servers:\n  slow:\n    {faulty('hang_initialize')}\n")

    ran = shell.run("check", "--wait", "0.1")

    assert "error: slow: it was not ready within 0.1 s" in ran.out


def test_check_tells_errors_from_warnings(shell: Shell) -> None:
    shell.write_servers(f"{SERVERS}    alwaysLoad: [nothing]\n")
    fine = shell.run("check")
    strict = shell.run("check", "--strict")
    shell.write_servers(BROKEN)
    broken = shell.run("check", "--json")

    assert fine.status is ExitStatus.FINE, fine.out
    assert "warning: test: `nothing` in `alwaysLoad` matches none" in fine.out
    assert "no errors, 1 warning" in fine.out
    assert strict.status is ExitStatus.ERROR
    assert broken.status is ExitStatus.UNAVAILABLE
    errors = {
        each["server"]: each["text"]
        for each in json.loads(broken.out)["findings"]
        if each["severity"] == "error"
    }
    assert set(errors) == {"broken", "lacking"}
    assert "no database here" in errors["broken"]


def test_check_tells_of_skills_that_cannot_be_used(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_text("---\nname: bad\n---\n")
    shell.write_servers(f"skills: [{tmp_path}]\n{SERVERS}")

    ran = shell.run("check")

    assert ran.status is ExitStatus.FINE, ran.out
    assert "warning" in ran.out
    assert "give it a `description`" in " ".join(ran.out.split())


def test_check_shows_the_last_lines_of_what_a_failing_server_wrote(shell: Shell) -> None:
    script = "import sys; print(*range(12), sep=chr(10), file=sys.stderr); sys.exit(1)"
    shell.write_servers(f"servers: {{bad: {{command: {sys.executable}, args: [-c, '{script}']}}}}")

    (finding,) = [
        each
        for each in json.loads(shell.run("check", "--json").out)["findings"]
        if each["severity"] == "error"
    ]

    assert finding["text"].split("\n  ") == [
        "it exited with status 1; its last words: 11",
        *("6", "7", "8", "9", "10"),
    ]


def test_check_names_what_a_server_asks_for_and_could_be_given(shell: Shell) -> None:
    shell.variables |= {"WEATHER_API_KEY": "canary", "WEATHER_ZONE": "x", "GIVEN_KEY": "y"}
    script = (
        "import sys; print('GIVEN_KEY: fine; WEATHER_API_KEY and OTHER_KEY are required',"
        " file=sys.stderr); sys.exit(1)"
    )
    entry = {
        "command": sys.executable,
        "args": ["-c", script],
        "description": "x",
        "inheritEnv": ["GIVEN_*"],
    }
    shell.write_servers(json.dumps({"servers": {"sky": entry}}))

    ran = shell.run("check", "--json")

    texts = [each["text"] for each in json.loads(ran.out)["findings"]]
    advice = "write `inheritEnv: [WEATHER_API_KEY]` under it"
    assert texts[1:] == [f"`WEATHER_API_KEY` is set here, but is not passed on to it; {advice}"]
    assert "canary" not in ran.out + ran.err


OLDER = "from mcp.server import Server; Server('old').list_tools()"
"""A program that was written for another version of the SDK than the one that is here."""


def test_check_says_how_to_run_a_server_of_an_older_sdk(shell: Shell, tmp_path: Path) -> None:
    uvx = tmp_path / "uvx"
    uvx.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "$2"\n', encoding="utf-8")
    uvx.chmod(0o755)
    plain = {"command": sys.executable, "args": ["-c", OLDER], "description": "x"}
    servers = {"plain": plain, "run": {**plain, "command": str(uvx)}}
    shell.write_servers(json.dumps({"servers": servers}))

    ran = shell.run("check", "--json")

    told = {each["server"]: each["text"] for each in json.loads(ran.out)["findings"]}
    assert told == {
        "plain": "it was written for version 1 of the MCP SDK: install `mcp<2` beside it",
        "run": (
            "it was written for version 1 of the MCP SDK, and runs with another: "
            "put `--with`, `mcp<2` at the beginning of its `args`"
        ),
    }


def test_check_names_the_servers_that_are_disabled(shell: Shell) -> None:
    shell.write_servers("servers: {off: {command: off-mcp, enabled: false}}")

    page = shell.run("check")
    data = shell.run("check", "--json")

    assert page.status is ExitStatus.FINE
    assert page.out.split("\n\n")[:2] == [
        "There is no server to start",
        "Disabled, and so not checked: `off`",
    ]
    assert json.loads(data.out)["disabled"] == ["off"]


def test_check_points_at_what_matches_no_tool(shell: Shell) -> None:
    settings = """\
    alwaysLoad: ["re*", "no_such_*"]
    searchHints: {echo: repeat, ecco: say again}
    tools: {allow: ["*", test__relase], deny: ["fault", evironment]}
"""
    shell.write_servers(SERVERS + settings)

    ran = shell.run("check", "--json")

    assert ran.status is ExitStatus.FINE, ran.out
    assert [each["text"] for each in json.loads(ran.out)["findings"]] == [
        "`no_such_*` in `alwaysLoad` matches none of its tools",
        "`test__relase` in `tools.allow` matches none of its tools; did you mean `release`?",
        "`evironment` in `tools.deny` matches none of its tools; did you mean `environment`?",
        "`ecco` in `searchHints` matches none of its tools; did you mean `echo`?",
    ]


def test_inspect_points_at_a_rule_that_protects_nothing(shell: Shell) -> None:
    shell.write_servers(SERVERS + "    tools: {deny: [destroy_*]}\n")
    told = "`destroy_*` in `tools.deny` matches none of its tools"

    assert f"test: {told}" in shell.run("inspect").out
    assert f"without effect: {told}" in shell.run("inspect", "test").out


def test_watching_goes_on_until_it_is_interrupted(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    with start(shell, "inspect", "--watch") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        rest = iter(process.stdout.readline, "")
        assert any("Deferred" in line for line in rest)

        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=PATIENCE)

    assert first.startswith("SERVER")
    assert process.returncode == ExitStatus.FINE


def test_watching_ends_when_nobody_reads_it_any_more(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    with start(shell, "inspect", "--watch") as process:
        assert process.stdout is not None
        assert any("Deferred" in line for line in iter(process.stdout.readline, ""))
        process.stdout.close()
        try:
            status = process.wait(PATIENCE)
        finally:
            process.kill()

    assert status == ExitStatus.FINE


def test_a_broken_edit_is_shown_above_what_is_in_use(shell: Shell) -> None:
    path = shell.write_servers(SERVERS)
    with start(shell, "inspect", "--watch") as process:
        assert process.stdout is not None
        rest = iter(process.stdout.readline, "")
        assert any("Deferred" in line for line in rest)
        shell.write_servers("servers: [")
        problem = next(line for line in rest if "line 1" in line)
        table = [next(rest), next(rest), next(rest)]

        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=PATIENCE)

    assert problem.startswith(f"`{path.name}`, line 1: is not valid YAML")
    assert problem.endswith("; going on with the configuration in use\n")
    assert [line.split()[:2] for line in table] == [[], ["SERVER", "STATE"], ["test", "ready"]]


def test_who_asks_for_what_a_broken_edit_has_is_told_of_it() -> None:
    with pytest.raises(CommandError) as raised:
        find_tool(
            "new__tool",
            {"servers": [], "tools": [], "problem": "`servers.yaml` is empty"},
            argparse.Namespace(url=None),
        )

    assert "what the file says now is not in use: `servers.yaml`" in (raised.value.hint or "")


def test_a_reader_that_leaves_early_is_no_error(shell: Shell) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m aggregator schema | head -1"],
        capture_output=True,
        text=True,
        check=False,
        env=shell.all_variables(),
        cwd=shell.project,
    )

    assert done.stdout == "{\n"
    assert done.stderr == ""


HANGING = "  hanging: {command: sleep, args: ['600'], connectTimeout: 20s}\n"


def test_check_says_once_what_a_program_says_instead_of_messages(shell: Shell) -> None:
    # A shell has said it long before, on any machine.
    script = "echo Listening on port 3000; exec sleep 600"
    entry = f'{{command: sh, args: [-c, "{script}"], connectTimeout: 2s}}'
    shell.write_servers(f"servers: {{web: {entry}}}\n")

    ran = shell.run("check")

    assert ran.status is ExitStatus.UNAVAILABLE
    assert ran.out.count("Listening on port 3000") == 1
    findings = ran.out.split("\n\n")[1].splitlines()
    assert findings[0].startswith("error: web: it was not ready within 2 s; it wrote `Listening")
    assert findings[-1].startswith("hint: web: no `description`")
    assert ran.out.endswith("\n\n1 error, no warnings, 1 hint\n")


def test_check_starts_only_the_servers_that_are_named(shell: Shell) -> None:
    shell.write_servers(SERVERS + HANGING)

    ran = shell.run("check", "test", "--json")
    wrong = shell.run("check", "tset")

    assert ran.status is ExitStatus.FINE, ran.out
    assert [each["name"] for each in json.loads(ran.out)["servers"]] == ["test"]
    assert (wrong.status, wrong.out) == (ExitStatus.UNKNOWN, "")
    assert wrong.err.endswith("error: there is no server `tset`\n\nhint: Did you mean `test`?\n")


@pytest.mark.parametrize("command", [["call", "test__environment"], ["inspect", "test"]])
def test_what_needs_one_server_starts_no_other(shell: Shell, command: list[str]) -> None:
    mark = shell.home / "started"
    other = f"  other: {{command: touch, args: [{mark}]}}\n"
    shell.write_servers(SERVERS + other)

    ran = shell.run(*command)

    assert ran.status is ExitStatus.FINE, ran.err
    assert not mark.exists()


def test_more_results_than_there_can_be_are_refused(shell: Shell) -> None:
    ran = shell.run("search", "x", "--max-results", "101")

    assert ran == Ran(
        ExitStatus.USAGE, "", "error: `--max-results` can be 100 at the most, and is 101\n"
    )


@pytest.mark.parametrize("subject", ["test", "test__echo"])
def test_inspect_waits_only_for_the_server_that_is_asked_about(shell: Shell, subject: str) -> None:
    shell.write_servers(SERVERS + HANGING)

    ran = shell.run("inspect", subject, "--wait", "60")

    assert ran.status is ExitStatus.FINE, ran.err
    assert "test: ready" in ran.err
    assert "hanging" not in ran.err
