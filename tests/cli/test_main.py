"""What can be typed wrong, and what is said about it."""

import re
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from aggregator import __version__
from aggregator.cli.environment import ExitStatus
from aggregator.cli.parser import COMMANDS, make_parser
from aggregator.clients import INSTALLABLE
from tests.cli.shell import ROOT, Shell

MODULES = {"import": "importing"}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_teaches_by_example(shell: Shell, command: str) -> None:
    ran = shell.run(command, "--help")

    assert ran.status is ExitStatus.FINE
    assert f"\nexamples:\n  aggregator {command}" in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_can_be_typed(shell: Shell, command: str) -> None:
    examples = re.findall(r"^  (aggregator .*)$", shell.run(command, "--help").out, re.MULTILINE)
    typed = [shlex.split(re.split("  |[|>] ", example)[0])[1:] for example in examples]
    parser = make_parser(shell.environment(StringIO(), StringIO()))

    assert typed
    assert {parser.parse_args(words).command for words in typed} == {command}


def test_of_the_commands_only_the_typed_one_is_made(shell: Shell) -> None:
    said = make_parser(shell.environment(StringIO(), StringIO()), ["serve"]).format_help()

    assert [command for command in COMMANDS if f"\n    {command} " in said] == ["serve"]


def test_the_help_of_install_names_every_client_that_can_be_installed(shell: Shell) -> None:
    said = " ".join(shell.run("install", "--help").out.split())

    assert f" Clients: {', '.join(client.name for client in INSTALLABLE)}. " in said


def test_help_names_every_command(shell: Shell) -> None:
    asked, bare = shell.run("--help"), shell.run()

    assert asked == bare == shell.run("help")
    assert shell.run("help", "call") == shell.run("call", "--help")
    assert all(f"\n    {command} " in asked.out for command in COMMANDS)
    assert shell.run("--version").out == f"aggregator {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        (["inspct"], "there is no command `inspct`", "Did you mean `inspect`?"),
        (["start"], "there is no command `start`", "Did you mean `serve`?"),
        (["run"], "there is no command `run`", "Did you mean `serve`?"),
        (["--vesion"], "there is no option `--vesion`", "Did you mean `--version`?"),
        (["--verbose"], "`--verbose` must come after", "`aggregator COMMAND --verbose …`"),
        (["serve", "--port", "3"], "unrecognized arguments: --port 3", "mean `--http 3`?"),
        (["serve", "--port=3"], "unrecognized arguments: --port=3", "mean `--http 3`?"),
        (["search", "-git"], "needs `QUERY`", "`aggregator search -- -git`"),
        (["search", "log", "-git"], "arguments: -git", "`aggregator search -- log -git`"),
        (["xyzzy"], "there is no command `xyzzy`", "`aggregator --help`"),
        (["inspect", "--jsn"], "unrecognized arguments: --jsn", "Did you mean `--json`?"),
        (["search"], "needs `QUERY`", "`aggregator search --help`"),
        (["check", "--example", "--config", "x"], "does not go together with", "--help"),
        (["search", "x", "--max-results", "0"], "number of at least 1, not `0`", "--help"),
        (["search", "x", "--max-results", "few"], "number of at least 1, not `few`", "--help"),
        (["inspect", "--wait", "-1"], "must be from 0 to 3600 seconds, not `-1`", "--help"),
        (["inspect", "--wait", "soon"], "must be from 0 to 3600 seconds, not `soon`", "--help"),
        (["check", "--config", ""], "`--config` must be the name of a file", "--help"),
        (["import", "--into="], "`--config` must be the name of a file", "--help"),
        (["serve", "--log-format", "xml"], "`--log-format` takes `text` or `json`, not", "--help"),
        (["stats", "--since", "-5d"], "`--since` needs a value", "--help"),
        (["inspect", "--config"], "`--config` needs a value", "--help"),
        (["inspect", "--json=3"], "`--json` takes no value", "--help"),
        (["inspect", "--wait", "-3"], "`--wait` must be from 0 to 3600 seconds", "--help"),
        (["lock", "--merge", "a"], "`--merge` needs 3 values", "--help"),
        (["token", "ad", "x"], "`aggregator token` takes `add`, `list` or `revoke`", "--help"),
        (["secret", "x", "y"], "what follows `aggregator secret` must be `set` or", "--help"),
        (
            ["inspect", "--config", "a", "--example"],
            "`--example` does not go together with `--config`",
            "--help",
        ),
        (["call"], "needs `TOOL`\n", "--help"),
        (["stats", "--since", "banana"], "write 24h, 7d or a day such as 2026-01-31", "--help"),
        (["add", "a", "x", "--descripton", "d"], "arguments: --descripton", "`--description`? W"),
        (["call", "a__b", "a=1", "--json"], "`--json` needs a value", "`--raw` prints the whole"),
        (["token"], "needs `add`, `list` or `revoke`\n", "--help"),
        (["lock", "notes"], "unrecognized arguments: notes", "`aggregator approve notes`"),
    ],
)
def test_a_wrong_command_line_is_explained(
    shell: Shell, arguments: list[str], problem: str, hint: str
) -> None:
    ran = shell.run(*arguments)

    first, _, last = ran.err.strip().splitlines()
    assert ran.status is ExitStatus.USAGE
    assert first.startswith("error: ")
    assert problem in f"{first}\n"
    assert last.startswith("hint: ")
    assert hint in last
    assert ran.out == ""


@pytest.mark.parametrize("command", ["inspect", "check", "serve", "search x", "call x"])
def test_a_file_that_is_not_there_is_said_in_one_line(shell: Shell, command: str) -> None:
    ran = shell.run(*command.split())

    assert ran.status is ExitStatus.USAGE
    assert ran.err.splitlines()[0].endswith("servers.yaml` does not exist")
    assert "hint: " in ran.err


def test_a_file_that_is_wrong_is_said_with_its_line(shell: Shell) -> None:
    path = shell.write_servers("servers:\n  a:\n    comand: x\n")

    ran = shell.run("check")

    assert ran.status is ExitStatus.USAGE
    assert ran.err.startswith(f"error: `{path}`, line 3: `servers.a.comand` is not a known key")


def test_a_directory_in_the_place_of_a_file_is_said(shell: Shell) -> None:
    ran = shell.run("check", "--config", str(shell.home))

    assert ran.status is ExitStatus.USAGE
    assert "is a directory" in ran.err


def test_colour_is_for_those_who_want_to_see_it(shell: Shell) -> None:
    plain = shell.run("xyzzy").err
    shell.terminal = True
    coloured = shell.run("xyzzy").err
    shell.variables = {"NO_COLOR": "1"}
    declined = shell.run("xyzzy").err
    shell.variables = {"TERM": "dumb"}

    assert "\x1b[31m" in coloured
    assert plain == declined == shell.run("xyzzy").err
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


def test_without_a_home_the_commands_that_need_one_say_so(shell: Shell) -> None:
    shell.variables = {"HOME": ""}

    ran = shell.run("import")

    assert ran.status is ExitStatus.ERROR
    assert "`HOME` is not set" in ran.err


EDITING = ("init", "add", "remove", "import", "install", "doctor")
IMPORTING = """
import os, sys
from importlib import import_module

def look(command, module):
    import_module(f"aggregator.cli.{module}")
    print(command, "tomlkit" in sys.modules, flush=True)

for each in sys.argv[1].split():
    look(*each.split("="))
for each in sys.argv[2].split():
    # Each by itself, beside what all others have loaded.
    if os.fork() == 0:
        look(*each.split("="))
        os._exit(0)
    os.wait()
"""


def test_only_the_commands_that_edit_files_import_what_edits_them() -> None:
    named = {command: f"{command}={MODULES.get(command, command)}" for command in COMMANDS}
    others = [each for command, each in named.items() if command not in EDITING]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            IMPORTING,
            " ".join(others),
            " ".join(named[each] for each in EDITING),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )

    found = dict(line.split() for line in done.stdout.splitlines())
    assert found == {command: str(command in EDITING) for command in COMMANDS}


def test_the_page_of_commands_shows_the_help_as_it_is(shell: Shell) -> None:
    """Run `python -m tests.cli.test_main` when it does not."""
    assert PAGE.read_text(encoding="utf-8") == page(shell)


PAGE = ROOT / "docs" / "commands.md"
INTRODUCTION = """\
# Commands

Results go to stdout, everything else to stderr.
`NO_COLOR` turns colours off; output outside a terminal has none.
Output is as wide as the terminal, or as `COLUMNS` says.
`inspect`, `search`, `call` and `check` start the servers they need.
If a hub runs servers for the same configuration, they use those instead.
With `--url` they ask a running aggregator.

| status | means |
| --- | --- |
| 0 | success |
| 1 | any other error, such as a file that cannot be written; warnings with `check --strict` |
| 2 | the command line is not understood, or `servers.yaml` cannot be used as written |
| 3 | the called tool reports that it failed |
| 4 | a server is not ready or went away; for `inspect` and `search`, no server is ready |
| 5 | there is no such server or tool, or the name is ambiguous |
| 6 | no aggregator at `--url` answered, or it ended before it did, or refused the request |
| 7 | servers are not ready only because someone has to log in |
| 130 | the command was interrupted |
| 143 | the command was ended by SIGTERM |

`serve` runs until you end it, and so does `inspect --watch` once it has shown something.
Ctrl-C ends them with status 0, and so does SIGTERM with `serve`.

The rest of this page is the output of `--help`.
"""


def page(shell: Shell) -> str:
    parts = [f"{INTRODUCTION}\n```console\n$ aggregator --help\n{shell.run('--help').out}```\n"]
    for command in COMMANDS:
        text = shell.run(command, "--help").out
        parts.append(f"## {command}\n\n```console\n$ aggregator {command} --help\n{text}```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(Shell(Path.home(), ROOT)), encoding="utf-8")
