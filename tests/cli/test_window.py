"""What is seen in windows of different widths."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from aggregator.cli.paper import width_of
from aggregator.cli.parser import COMMANDS
from tests.cli.shell import Shell, Terminal, faulty
from tests.cli.window import Window, plain

SERVERS = "".join(
    f"  {name}:\n    {faulty(mode)}\n    connectTimeout: 15s\n"
    for name, mode in (
        ("quick", "ok"),
        ("calendar-of-everybody", "hang_initialize"),
        ("mail-and-contacts", "hang_initialize"),
        ("an-archive-of-pictures", "hang_initialize"),
    )
)


def drawn(text: str) -> list[str]:
    """Return each state of the live line."""
    return [each for each in re.findall(r"\r\x1b\[(?:\d+A\x1b\[J|K)([^\r\n]*)", text) if each]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [24, 40, 80, 200])
def test_progress_stays_on_one_line_of_the_window(shell: Shell, columns: int) -> None:
    shell.write_servers(f"servers:\n{SERVERS}")

    with Window(shell, "inspect", "--wait", "3", columns=columns) as window:
        text = window.until_end()

    lines = drawn(text)
    assert len(lines) > 2
    assert max(map(width_of, lines)) < columns
    # However little of it is seen, it says how far it is; last comes the page.
    assert all("of 4 started" in line for line in lines[:-1])
    # It is drawn over, and never ends with a new line.
    page = re.split(r"\r\x1b\[K", text)[-1]
    assert "started" not in page
    assert all(width_of(line) <= columns for line in plain(page).splitlines() if " " in line)


@pytest.mark.slow
def test_a_server_that_failed_is_not_counted_as_started(shell: Shell) -> None:
    broken = "  broken:\n    command: no-such-program-anywhere\n"
    shell.write_servers(f"servers:\n{broken}{SERVERS}")

    with Window(shell, "check", "--wait", "3", columns=120) as window:
        text = window.until_end()

    assert re.search(r": 1 of 5 started, 1 failed; starting calendar", text)
    assert "2 of 5 started" not in text


@pytest.mark.slow
def test_progress_follows_the_width_of_the_window(shell: Shell) -> None:
    shell.write_servers(f"servers:\n{SERVERS}")

    with Window(shell, "inspect", "--wait", "30", columns=120) as window:
        before = len(window.until(lambda text: "starting calendar" in text))
        window.resize(30)
        window.until(lambda text: "\x1b[J" in text[before:])
        text = window.until(lambda text: len(drawn(text.rpartition("\x1b[J")[2])) > 3)

    wide, _, narrow = text.rpartition("\x1b[J")
    assert max(map(width_of, drawn(wide))) > 60
    # What the window broke into rows is taken away whole.
    assert re.search(r"\r\x1b\[[23]A$", wide)
    assert max(map(width_of, drawn(narrow))) < 30


@pytest.mark.parametrize("columns", ["30", "40", "80"])
@pytest.mark.parametrize("command", [[], ["install"], ["inspect"], ["search"], ["call"], ["serve"]])
def test_help_is_wrapped_at_words(shell: Shell, columns: str, command: list[str]) -> None:
    wide = shell.run(*command, "--help").out
    shell.variables = {"COLUMNS": columns}

    text = shell.run(*command, "--help").out

    too_long = [line for line in text.splitlines() if len(line) > int(columns)]
    assert all(len(line.split()) == 1 or line.startswith("  -t, ") for line in too_long)
    assert set(text.partition("examples:")[2].split()) == set(
        wide.partition("examples:")[2].split()
    )


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_the_window_with_every_address_whole(
    shell: Shell, columns: int, command: str
) -> None:
    wide = shell.run("help", *command.split()).out
    shell.variables = {"COLUMNS": str(columns)}

    text = shell.run("help", *command.split()).out

    assert [line for line in text.splitlines() if width_of(line) > columns] == []
    assert text.split() == wide.split()


@pytest.mark.parametrize("command", ["secret", "stats", "open"])
def test_a_paragraph_of_the_help_is_filled_anew(shell: Shell, command: str) -> None:
    shell.variables = {"COLUMNS": "40"}

    lines = shell.run(command, "--help").out.rstrip().rpartition("\n\n")[2].splitlines()

    # Each next word would not have had room; what is quoted is one.
    pairs = [(line, re.match(r" *(`[^`]*`\S*|\S+)", after)) for line, after in pairwise(lines)]
    assert pairs
    assert all(word and len(line) + 1 + len(word[1]) > 40 for line, word in pairs), lines


@pytest.mark.parametrize("columns", [60, 80])
def test_what_is_said_beside_results_is_wrapped_at_words(shell: Shell, columns: int) -> None:
    shell.terminal, shell.variables = True, {"COLUMNS": str(columns)}
    shell.give("cursor")
    commands = [
        ("init", "--yes"),
        ("add", "a-server-with-a-long-name", "--", "a-program-that-is-not-here-at-all", "--port"),
        ("import", "cursor", "--yes"),
        ("install", "cursor", "--yes"),
        ("install", "cursor", "--undo", "--yes"),
        ("check", "nothing-of-this-name"),
        ("remove", "a-server-with-a-long-name"),
        ("install",),
        ("status",),
        ("token", "list"),
    ]

    ran = [shell.run(*command) for command in commands]
    said = [each.err for each in ran] + [each.out for each in ran[-3:]]

    lines = [line for text in said for line in plain(text).splitlines()]
    assert len(lines) > 12
    # What has no place to break, as a path, is broken by the terminal.
    assert all(width_of(line) <= columns or " " not in line.strip() for line in lines), lines
    assert all(each in "\n".join(lines) for each in ("Using `~/", "Wrote `~/", "Backups are in"))


def test_a_question_is_wrapped_and_has_room_behind_it(shell: Shell) -> None:
    shell.variables = {"COLUMNS": "40"}
    out, err = Terminal(), Terminal()
    person = replace(shell.environment(out, err), stdin=Terminal("y\n"))

    assert person.agrees("Take over `github`, `playwright`, `memory` and 2 more of Claude Code?")

    assert err.getvalue().split("\n") == [
        "Take over `github`, `playwright`,",
        "  `memory` and 2 more of Claude Code?",
        "  [y/N] ",
    ]
