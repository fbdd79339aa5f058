"""What commands that start servers say of those that are not there, and how they end."""

import json
import sys
from io import StringIO

import pytest

from aggregator.cli import main
from aggregator.cli.environment import ExitStatus
from tests.cli.shell import ROOT, Shell, Terminal, faulty

pytestmark = pytest.mark.slow


def test_check_says_once_what_holds_for_many_servers(shell: Shell) -> None:
    entries = "".join(
        f"  {name}: {{command: npx-of-{name[0]}, args: [thing]}}\n" for name in ("a1", "a2", "b1")
    )
    shell.write_servers(f"servers:\n{entries}")

    ran = shell.run("check")

    lost = [line for line in (ran.out + ran.err).splitlines() if "was not found on PATH" in line]
    assert lost == [
        "error: a1, a2: the command `npx-of-a` was not found on PATH",
        "error: b1: the command `npx-of-b` was not found on PATH",
    ]
    assert ran.out.count("no `description`") == 1
    assert "hint: a1, a2, b1: no `description`" in ran.out
    assert "2 errors, no warnings, 1 hint" in ran.out


def test_who_reads_the_result_elsewhere_sees_on_the_terminal_what_failed(shell: Shell) -> None:
    shell.write_servers("servers: {lost: {command: no-such-mcp}}")
    out, err = StringIO(), Terminal()

    main(("inspect",), shell.environment(out, err))

    told = err.getvalue().rpartition("\x1b[K")[2]
    assert "lost: the command `no-such-mcp` was not found on PATH" in told


@pytest.mark.parametrize("command", [("search", "x"), ("inspect",), ("inspect", "lost")])
def test_where_no_server_is_there_the_status_says_so(
    shell: Shell, command: tuple[str, ...]
) -> None:
    shell.write_servers("servers: {lost: {command: no-such-mcp}}")

    ran = shell.run(*command)

    assert ran.status is ExitStatus.UNAVAILABLE
    assert "the command `no-such-mcp` was not found on PATH" in ran.out


def test_what_some_servers_answer_is_an_answer(shell: Shell) -> None:
    shell.write_servers(f"servers:\n  lost: {{command: no-such-mcp}}\n  test:\n    {faulty()}\n")

    ran = shell.run("search", "echo")

    assert ran.status is ExitStatus.FINE
    assert "test__echo" in ran.out
    assert "lost: failed\n" in ran.err


def test_a_search_of_the_one_server_that_is_not_there_ends_as_such(shell: Shell) -> None:
    ending = f"{{command: {sys.executable}, args: [-c, \"import sys; sys.exit('no database')\"]}}"
    shell.write_servers(f"servers:\n  sqlite: {ending}\n  test:\n    {faulty()}\n")

    ran = shell.run("search", "server:sqlite")

    assert ran.status is ExitStatus.UNAVAILABLE
    assert "\nsqlite | " in ran.out
    assert "no database" in ran.out
    assert shell.run("search", "server:sqlite server:test").status is ExitStatus.FINE


def test_without_servers_nothing_is_missing(shell: Shell) -> None:
    shell.write_servers("servers: {}")

    assert shell.run("search", "x").status is ExitStatus.FINE


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("command: no-such-mcp", "Install it, or write its whole path as `command` in `{path}`"),
        ("command: sh, cwd: /no/such", "Make it, or correct its `cwd` in `{path}`"),
        ('command: sh, args: ["${LACKING}"]', "Put that right, or its entry in `{path}`"),
        ('url: "http://127.0.0.1:9/mcp"', "See whether something answers at its `url` in `{path}`"),
        ("command: sh, args: [-c, exit 1]", "Run its `command` in `{path}` by hand, to see what"),
        (
            "command: sh, args: [-c, 'echo no >&2']",
            "`aggregator inspect lost` shows what it wrote to stderr",
        ),
    ],
)
def test_a_call_of_a_server_that_is_not_there_names_what_helps(
    shell: Shell, entry: str, hint: str
) -> None:
    path = shell.write_servers(f"servers: {{lost: {{{entry}}}}}")

    ran = shell.run("call", "lost__x")

    assert ran.status is ExitStatus.UNAVAILABLE
    assert f"hint: {hint.format(path=path)}" in ran.err


@pytest.mark.parametrize(
    ("command", "subject", "hint"),
    [
        ("inspect", "notess", "Did you mean `notes`?"),
        ("inspect", "nots__read", "Did you mean the server `notes`? `aggregator inspect notes`"),
        ("call", "nots__read", "Did you mean the server `notes`? `aggregator inspect notes`"),
        ("call", "other__read", "There are `notes`"),
        ("check", "nots", "Did you mean `notes`?"),
    ],
)
def test_a_slip_in_a_servers_name_starts_nothing(
    shell: Shell, command: str, subject: str, hint: str
) -> None:
    shell.write_servers("servers: {notes: {command: touch, args: [started]}}")

    ran = shell.run(command, subject)

    assert ran.status is ExitStatus.UNKNOWN
    assert "error: there is no server " in ran.err
    assert f"hint: {hint}" in ran.err
    assert not (shell.project / "started").exists()


def test_a_tool_that_is_written_as_two_words_is_told_as_one(shell: Shell) -> None:
    ran = shell.run("call", "time", "now")

    assert ran.status is ExitStatus.USAGE
    assert "hint: If it is a tool of `time`, write `time__now`" in ran.err


def test_where_there_is_no_server_a_call_says_how_to_add_one(shell: Shell) -> None:
    shell.write_servers("servers: {}")

    ran = shell.run("call", "notes__read")

    assert ran.status is ExitStatus.UNKNOWN
    assert "hint: `aggregator add` adds one" in ran.err


@pytest.mark.parametrize("command", ["inspect", "inspect talks", "check", "doctor", "install"])
def test_on_a_narrow_page_lines_are_broken_at_words(shell: Shell, command: str) -> None:
    words = " ".join(["word"] * 30)
    shell.write_servers(
        f"servers:\n  talks: {{command: sh, args: [-c, 'echo {words} >&2; exit 1']}}\n"
        f"  test:\n    {faulty()}\n"
    )
    shell.give("cursor")
    shell.variables["COLUMNS"] = "40"

    ran = shell.run(*command.split())

    assert [line for line in ran.out.splitlines() if len(line) > 40 and "/" not in line] == []


@pytest.mark.parametrize("command", ["check", "doctor", "inspect"])
def test_an_audit_file_that_cannot_be_written_is_told(shell: Shell, command: str) -> None:
    (shell.project / "audit.jsonl").mkdir()
    shell.write_servers("audit: {file: audit.jsonl}\nservers: {}\n")

    ran = shell.run(command)

    told = " ".join((ran.out + ran.err).split())
    assert "calls cannot be written to the audit file" in told
    assert "is a directory; see to it, or change `audit.file`" in told
    assert ran.status is (ExitStatus.ERROR if command == "check" else ExitStatus.FINE)


@pytest.mark.parametrize("command", ["inspect", "check"])
def test_what_has_anothers_name_is_refused_also_where_the_other_is_not_started(
    shell: Shell, command: str
) -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("git__push", "help")]
    (shell.project / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    listing = [sys.executable, str(ROOT / "tests" / "cli" / "listing_server.py"), "tools.json"]
    servers = {"bare": {"command": listing, "prefix": ""}, "git": {"command": "no-such-mcp"}}
    shell.write_servers(json.dumps({"servers": servers}))

    ran = shell.run(command, "bare")

    words = " ".join(ran.out.split())
    assert "`git__push` has the name of a tool of `git`; give `bare` a `prefix`" in words
    assert ran.out.count("git__push") == 1
