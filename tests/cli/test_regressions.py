"""`aggregator check --searches`: a person's own searches, and why some of them miss."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, Shell

NOTES = ROOT / "examples" / "servers" / "notes.py"
SERVERS = f"servers:\n  notes: {{command: [{sys.executable}, {NOTES}]}}\n"


def write(shell: Shell, *lines: str) -> Path:
    path = shell.project / "searches.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


HITS = (
    '- {query: "create a note", expect: notes__create_note, within: 1}',
    '- {query: "find a note", expect: [notes__search_notes, notes__list_notes]}',
    '- {query: "anything about notes", server: notes, within: 3}',
)
MISSES = (
    '- {query: "create a note", expect: notes__delete_note, within: 1}',
    '- {query: "create a note", expect: notes__craete_note}',
    '- {query: "qqqqzzzz", expect: notes__list_notes}',
    '- {query: "open a ticket", expect: jira__create_issue}',
)


@pytest.fixture
def locked(shell: Shell) -> Shell:
    shell.write_servers(SERVERS)
    assert shell.run("lock").status == 0
    return shell


@pytest.mark.slow
def test_searches_are_tried_on_running_servers_and_on_what_was_written_down(
    locked: Shell,
) -> None:
    write(locked, *HITS, *MISSES)

    live = locked.run("check", "--searches", "--json")
    # What is not configured cannot be started, so that one who tries to is found out.
    locked.write_servers(SERVERS.replace(str(NOTES), "no-such-file"))
    paper = locked.run("check", "--searches", "--lock", "--json")
    page = locked.run("check", "--searches", "--lock")

    assert live.status == paper.status == page.status == 1
    for ran in (live, paper):
        report = json.loads(ran.out)
        assert report["searches"] == 7
        missed = report["missed"]
        assert [each["query"] for each in missed] == [
            "create a note",
            "create a note",
            "qqqqzzzz",
            "open a ticket",
        ]
        assert missed[0]["rank"] != 1
        assert "first is `notes__create_note` by create, note" in missed[0]["why"]
        assert "did you mean `notes__create_note`?" in missed[1]["why"]
        assert "nothing is found" in missed[2]["why"]
        assert "there is no tool `jira__create_issue`" in missed[3]["why"]
    assert "4 of 7 searches miss what they should find" in page.out


@pytest.mark.slow
def test_searches_that_all_hit_are_told_in_a_line(locked: Shell) -> None:
    write(locked, *HITS)

    ran = locked.run("check", "--searches", "--lock")

    assert (ran.status, ran.out) == (0, "3 searches, and each finds what it should\n")


def test_a_server_that_was_not_written_down_is_the_reason(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    (shell.project / "servers.lock").write_text('{"lock": 1, "servers": {}}', encoding="utf-8")
    write(shell, '- {query: "a note", expect: notes__create_note}')

    ran = shell.run("check", "--searches", "--lock")

    assert ran.status == 1
    assert "`servers.lock` does not say what it offers" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("query: x", "must be a list"),
        ("- x", "must be a mapping"),
        ("- {query: x, expects: y}", "`expects` is not a known key"),
        ("- {expect: y}", "has no `query`"),
        ("- {query: x}", "needs `expect`"),
        ("- {query: x, expect: y, server: z}", "needs `expect`"),
        ("- {query: x, expect: y, within: 0}", "from 1 to 100"),
        ("- {query: x, expect: y, within: many}", "from 1 to 100"),
        ("- {query: x, expect: [[y]]}", "needs `expect`"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_its_line(
    shell: Shell, text: str, problem: str
) -> None:
    shell.write_servers(SERVERS)
    write(shell, "# searches", text)

    ran = shell.run("check", "--searches", "--lock")

    assert ran.status == 2
    assert problem in ran.err
    assert "line" in ran.err


def test_an_empty_file_is_told_how_searches_are_written(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    write(shell, "# searches")

    ran = shell.run("check", "--searches", "--lock")

    assert ran.status == 2
    assert "searches.yaml` is empty" in ran.err
    assert "hint: Write each search as `- {query:" in ran.err


def test_what_is_missing_is_told_with_what_to_do(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    without_file = shell.run("check", "--searches", "--lock")
    write(shell, *HITS)
    without_lock = shell.run("check", "--searches", "--lock")
    alone = shell.run("check", "--lock")
    elsewhere = shell.run("check", "--searches", "elsewhere.yaml", "--lock")

    assert "`aggregator stats` proposes some" in without_file.err
    assert "`aggregator lock` writes it" in without_lock.err
    assert "only with `--searches`" in alone.err
    assert "elsewhere.yaml" in elsewhere.err
    assert [each.status for each in (without_file, without_lock, alone)] == [1, 1, 2]
