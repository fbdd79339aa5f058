"""Commands that start servers, typed as a person would."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aggregator.cli.environment import CommandError, ExitStatus
from aggregator.cli.inspect import find_tool
from tests.cli.session import start
from tests.cli.shell import Ran, Shell, faulty

pytestmark = pytest.mark.slow

ODD = Path(__file__).with_name("odd_server.py")
SERVERS = f"servers:\n  test:\n    {faulty()}\n"
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
    assert ran.err.startswith("test: ready after ")


def test_inspect_shows_why_a_server_is_not_there(shell: Shell) -> None:
    shell.write_servers(BROKEN)

    catalog = shell.run("inspect", "--json", "--wait", "5")
    server = shell.run("inspect", "broken", "--wait", "5")

    states = {each["name"]: each["state"] for each in json.loads(catalog.out)["servers"]}
    assert states == {"test": "ready", "broken": "pending", "lacking": "failed"}
    assert "It wrote to stderr:\n  no database here" in server.out
    assert "lacking: failed: the variable `LACKING_TOKEN` must be set" in catalog.err


def test_inspect_finds_a_tool_by_any_of_its_names(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    whole = shell.run("inspect", "echo", "--json")
    wrong = shell.run("inspect", "test__ecko")

    assert json.loads(whole.out)["name"] == "test__echo"
    assert wrong.status is ExitStatus.ERROR
    assert wrong.out == ""
    assert "error: there is no server or tool `test__ecko`" in wrong.err
    assert "`test__echo`" in wrong.err


@pytest.mark.parametrize("subject", ["off", "off__echo"])
def test_inspect_says_that_a_server_is_disabled(shell: Shell, subject: str) -> None:
    path = shell.write_servers(f"{SERVERS}  off: {{command: off-mcp, enabled: false}}\n")

    ran = shell.run("inspect", subject)

    assert ran.status is ExitStatus.ERROR
    assert ran.err.startswith(f"error: the server `off` is disabled in `{path}`\n")
    assert "hint: Set its `enabled` to true there" in ran.err


def test_on_a_terminal_progress_is_live_and_leaves_nothing_behind(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    shell.terminal = True

    ran = shell.run("inspect")

    assert "starting test" in ran.err
    assert ran.err.endswith("\r\x1b[K")
    assert "\x1b[32mready\x1b[0m" in ran.out


def test_search_prints_what_a_model_reads_and_explains_it(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    plain = shell.run("search", "echo", "text")
    explained = shell.run("search", "echo text", "--explain", "--max-results", "1")
    data = shell.run("search", "echo text", "--explain", "--json")

    assert plain.status is ExitStatus.FINE
    assert "## test__echo (server test)" in plain.out
    assert "Why these:\n1. test__echo  score " in explained.out
    assert "all words together: how much of the query it has, words of its name" in explained.out
    found = json.loads(data.out)
    assert [each["name"] for each in found["hits"]] == found["facts"]["matches"]
    assert found["hits"][0]["why"][0]["word"] == "echo"
    assert json.loads(data.out)["text"] + "\n" == plain.out


def test_a_name_is_looked_up_and_not_ranked(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    ran = shell.run("search", "select:test__echo", "--explain")

    assert "## test__echo" in ran.out
    assert "Nothing was ranked" in ran.out


def test_call_types_its_arguments_and_prints_the_text(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    pairs = shell.run("call", "test__echo", "text=hello there")
    whole = shell.run("call", "echo", "--json", '{"text": "hi"}')
    bare = shell.run("call", "echo", '{"text": "hi"}')
    piped = shell.run("call", "echo", "--json", "-", "--raw", typed='{"text": "hi"}')

    assert pairs.status is ExitStatus.FINE, pairs.err
    assert "hello there" in pairs.out
    assert "hi" in whole.out
    assert bare.out == whole.out
    assert json.loads(piped.out)["content"][0]["type"] == "text"


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["test__nope"], ExitStatus.ERROR, "there is no tool `test__nope`"),
        (["test"], ExitStatus.ERROR, "`test` is a server and no tool"),
        (["test__echo", "text"], ExitStatus.USAGE, "`text` is not `key=value`"),
        (["test__echo", "text:={"], ExitStatus.USAGE, "is not JSON"),
        (["test__echo", '{"text":'], ExitStatus.USAGE, '`{"text":` is not JSON'),
        (["test__echo", "--json", ""], ExitStatus.USAGE, "`--json` is not JSON"),
        (["test__echo", "--json", "{"], ExitStatus.USAGE, "`--json` is not JSON"),
        (["test__echo", "--json", "[]"], ExitStatus.USAGE, "must be an object"),
        (["odd__say", "number=x"], ExitStatus.USAGE, "number: must be integer"),
    ],
)
def test_a_call_that_cannot_be_made_is_explained(
    shell: Shell, arguments: list[str], status: ExitStatus, problem: str
) -> None:
    shell.write_servers(SERVERS + ODD_SERVER)

    ran = shell.run("call", *arguments)

    assert ran.status is status
    assert problem in ran.err.splitlines()[0]
    assert ran.out == ""


def test_only_what_can_be_meant_is_suggested(shell: Shell) -> None:
    shell.write_servers(SERVERS.replace("  test:", "  faults:"))

    server = shell.run("inspect", "fauts")
    tool = shell.run("call", "faults__ecko")

    assert "hint: The closest are `faults`, `faults__" in server.err
    assert "hint: The closest are `faults__echo`" in tool.err
    assert "`faults`" not in tool.err


def test_a_call_to_a_server_that_is_not_there_is_our_error(shell: Shell) -> None:
    shell.write_servers(BROKEN)

    unready = shell.run("call", "broken__anything", "--wait", "5")
    lost = shell.run("call", "test__fault", "kind=exit")

    assert unready.status is ExitStatus.ERROR
    assert "the server `broken` is not ready" in unready.err
    assert lost.status is ExitStatus.ERROR, lost
    assert "error: the server `test` went away" in lost.err
    assert lost.out == ""


@pytest.mark.parametrize(
    ("arguments", "status", "out", "err"),
    [
        (["fail"], ExitStatus.TOOL_ERROR, "there is no such note\n", "1 of 2: half done\n"),
        # It speaks as we would of it, and is not us.
        (["mourn"], ExitStatus.TOOL_ERROR, "The server `odd` went away\n", "1 of 2: half done\n"),
        (["refuse"], ExitStatus.TOOL_ERROR, "", "error: `odd__refuse`: not today (code -32601)\n"),
        (["count"], ExitStatus.FINE, '{\n  "count": 3\n}\n', "1 of 2: half done\n"),
        (["nothing"], ExitStatus.FINE, "(an empty result)\n", "1 of 2: half done\n"),
        (
            ["draw"],
            ExitStatus.FINE,
            "[image, image/png, 8 bytes; --raw prints it as Base64]\n",
            "1 of 2: half done\n",
        ),
        (
            ["say", "number=5", "tags=a", "tags=b"],
            ExitStatus.FINE,
            '{"number": 5, "tags": ["a", "b"]}\n',
            "",
        ),
    ],
)
def test_a_call_shows_its_progress_and_ends_as_the_tool_ended(
    shell: Shell, arguments: list[str], status: ExitStatus, out: str, err: str
) -> None:
    shell.write_servers(f"servers:\n{ODD_SERVER}")

    assert shell.run("call", *arguments) == Ran(status, out, err)


def test_an_argument_that_is_misspelt_is_pointed_out(shell: Shell) -> None:
    shell.write_servers(f"servers:\n{ODD_SERVER}")

    ran = shell.run("call", "say", "numbr=5")

    assert ran.status is ExitStatus.FINE
    assert ran.err == (
        "warning: `numbr` is none of the arguments that the tool describes; "
        "did you mean `number`?\n"
    )


def test_words_may_stand_on_both_sides_of_an_option(shell: Shell) -> None:
    shell.write_servers(f"servers:\n{ODD_SERVER}")

    call = shell.run("call", "say", "--wait", "20", "number=5")
    search = shell.run("search", "select:say", "--json", "draw")

    assert call.out == '{"number": 5}\n'
    assert json.loads(search.out)["query"] == "select:say draw"


def test_what_is_not_ready_in_time_is_said_with_the_time(shell: Shell) -> None:
    shell.write_servers(f"servers:\n  slow:\n    {faulty('hang_initialize')}\n")

    ran = shell.run("check", "--wait", "0.1")

    assert "error: slow: not ready within 0.1 s" in ran.out


def test_check_tells_errors_from_warnings(shell: Shell) -> None:
    shell.write_servers(SERVERS.replace("A test", '""'))
    fine = shell.run("check")
    strict = shell.run("check", "--strict")
    shell.write_servers(BROKEN)
    broken = shell.run("check", "--json")

    assert fine.status is ExitStatus.FINE, fine.out
    assert "warning: test: has no `description`" in fine.out
    assert "no errors, 1 warning" in fine.out
    assert strict.status is ExitStatus.ERROR
    assert broken.status is ExitStatus.ERROR
    errors = {
        each["server"]: each["text"]
        for each in json.loads(broken.out)["findings"]
        if each["severity"] == "error"
    }
    assert set(errors) == {"broken", "lacking"}
    assert "no database here" in errors["broken"]


def test_check_shows_the_last_lines_of_what_a_failing_server_wrote(shell: Shell) -> None:
    script = "import sys; print(*range(12), sep=chr(10), file=sys.stderr); sys.exit(1)"
    shell.write_servers(f"servers: {{bad: {{command: {sys.executable}, args: [-c, '{script}']}}}}")

    (finding,) = [
        each
        for each in json.loads(shell.run("check", "--json").out)["findings"]
        if each["severity"] == "error"
    ]

    assert finding["text"].split()[-5:] == ["7", "8", "9", "10", "11"]


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
    tools: {allow: ["*", test__release], deny: ["fault", evironment]}
"""
    shell.write_servers(SERVERS + settings)

    ran = shell.run("check", "--json")

    assert ran.status is ExitStatus.FINE, ran.out
    assert [each["text"] for each in json.loads(ran.out)["findings"]] == [
        "`no_such_*` in `alwaysLoad` matches none of its tools",
        "`test__release` in `tools.allow` matches none of its tools; did you mean `release`?",
        "`evironment` in `tools.deny` matches none of its tools; did you mean `environment`?",
        "`ecco` in `searchHints` matches none of its tools; did you mean `echo`?",
    ]


def test_watching_goes_on_until_it_is_interrupted(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    with start(shell, "inspect", "--watch") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        rest = iter(process.stdout.readline, "")
        assert any("Deferred" in line for line in rest)

        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)

    assert first.startswith("SERVER")
    assert process.returncode == ExitStatus.FINE


def test_a_broken_edit_is_shown_above_what_is_in_use(shell: Shell) -> None:
    path = shell.write_servers(SERVERS)
    with start(shell, "inspect", "--watch") as process:
        assert process.stdout is not None
        rest = iter(process.stdout.readline, "")
        assert any("Deferred" in line for line in rest)
        shell.write_servers("servers: [")
        problem = next(line for line in rest if "servers.yaml" in line)
        table = [next(rest), next(rest), next(rest)]

        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)

    assert problem.startswith(f"`{path.name}`, line 1: is not valid YAML")
    assert problem.endswith("; going on with the configuration in use\n")
    assert [line.split()[:2] for line in table] == [[], ["SERVER", "STATE"], ["test", "ready"]]


def test_who_asks_for_what_a_broken_edit_has_is_told_of_it() -> None:
    with pytest.raises(CommandError) as raised:
        find_tool("new__tool", {"servers": [], "tools": [], "problem": "`servers.yaml`: is empty"})

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


@pytest.mark.parametrize("subject", ["test", "test__echo"])
def test_inspect_waits_only_for_the_server_that_is_asked_about(shell: Shell, subject: str) -> None:
    shell.write_servers(SERVERS + HANGING)

    ran = shell.run("inspect", subject, "--wait", "60")

    assert ran.status is ExitStatus.FINE, ran.err
    assert "test: ready" in ran.err
    assert "hanging" not in ran.err
