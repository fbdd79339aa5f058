"""`aggregator token`: make, list and end what opens the door over HTTP."""

import json
import re

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell

FILE = "servers: {}\nprofiles: {reading: {}}\n"


def test_a_token_is_shown_once_and_listed_without_it(shell: Shell) -> None:
    shell.write_servers(FILE)

    made = shell.run("token", "add", "anna", "--profile", "reading", "--expires", "30d")
    listed = shell.run("token", "list")
    (facts,) = json.loads(shell.run("token", "list", "--json").out)["tokens"]

    token = made.out.strip()
    assert token.startswith("agg_")
    assert "It is shown only now; only a digest of it is kept" in made.err
    assert token not in listed.out
    assert listed.out.splitlines()[0].split() == ["NAME", "PROFILE", "MADE", "EXPIRES"]
    assert listed.out.splitlines()[1].split()[:2] == ["anna", "reading"]
    assert round(facts["expires"] - facts["made"]) == 30 * 86_400
    assert facts["expired"] is False


def test_how_long_a_token_is_valid_has_a_unit(shell: Shell) -> None:
    shell.write_servers(FILE)

    ran = shell.run("token", "add", "anna", "--expires", "5")

    assert ran.status is ExitStatus.USAGE
    assert "error: `--expires 5` lacks a unit" in ran.err
    assert "hint: Write `5d` for days or `5h` for hours" in ran.err
    assert "There are no tokens" in shell.run("token", "list").out


@pytest.mark.parametrize(
    ("duration", "form"),
    [
        ("5s", r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
        ("12h", r"\d{4}-\d\d-\d\d \d\d:\d\d"),
        ("30d", r"\d{4}-\d\d-\d\d"),
    ],
)
def test_until_when_a_token_is_valid_is_said(shell: Shell, duration: str, form: str) -> None:
    shell.write_servers(FILE)

    made = shell.run("token", "add", "anna", "--expires", duration)
    row = shell.run("token", "list").out.splitlines()[1].strip()

    assert re.search(rf"which sees all and is valid until {form}\. It is shown only now", made.err)
    assert re.fullmatch(rf"anna +\d{{4}}-\d\d-\d\d +{form}", row)


def test_a_token_is_revoked_by_its_name(shell: Shell) -> None:
    shell.write_servers(FILE)
    shell.run("token", "add", "anna")

    assert shell.run("token", "revoke", "anna").status is ExitStatus.FINE
    again = shell.run("token", "revoke", "anna")

    assert again.status is ExitStatus.UNKNOWN
    assert "there is no token `anna`" in again.err
    assert "There are no tokens" in shell.run("token", "list").out


def test_a_name_may_stand_behind_the_options(shell: Shell) -> None:
    shell.write_servers(FILE)

    shell.run("token", "add", "--profile", "reading", "anna")

    (facts,) = json.loads(shell.run("token", "list", "--json").out)["tokens"]
    assert (facts["name"], facts["profile"]) == ("anna", "reading")


def test_a_file_is_the_same_however_its_path_is_written(shell: Shell) -> None:
    shell.write_servers(FILE)

    shell.run("token", "add", "anna", "--config", f"../{shell.project.name}/./servers.yaml")

    assert "anna" in shell.run("token", "list").out


@pytest.mark.parametrize("typed", [("add", "anna"), ("revoke", "anna")])
def test_where_tokens_cannot_be_kept_that_is_said(shell: Shell, typed: tuple[str, str]) -> None:
    shell.write_servers(FILE)
    (shell.project / "file").write_text("", encoding="utf-8")
    shell.variables = {"XDG_STATE_HOME": str(shell.project / "file")}

    ran = shell.run("token", *typed)

    assert (ran.status, ran.out) == (ExitStatus.ERROR, "")
    folder = shell.project / "file" / "mcp-tool-aggregator"
    assert f"error: tokens cannot be kept in `{folder}`: " in ran.err
    assert "hint: Set XDG_STATE_HOME to a directory" in ran.err


def test_a_path_through_a_link_leads_where_the_system_says(shell: Shell) -> None:
    shell.write_servers(FILE)
    other = shell.home / "elsewhere" / "deep"
    other.mkdir(parents=True)
    (other.parent / "servers.yaml").write_text(FILE, encoding="utf-8")
    (shell.project / "link").symlink_to(other)

    shell.run("token", "add", "anna", "--config", "link/../servers.yaml")

    assert "anna" not in shell.run("token", "list").out


def test_a_slip_in_a_name_revokes_nobody(shell: Shell) -> None:
    shell.write_servers(FILE)
    shell.run("token", "add", "anna")

    ran = shell.run("token", "revoke", "ana")

    assert ran.status is ExitStatus.UNKNOWN
    assert "Did you mean `anna`?" in ran.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["add"], "a name is needed"),
        (["add", "a b"], "`a b` is not allowed as a name"),
        (["add", "anna", "--expires", "soon"], "`soon` is not a duration that a token can have"),
        (["add", "anna", "--expires", "0s"], "`0s` is not a duration that a token can have"),
        (["add", "anna", "--profile", "raeding"], "servers.yaml` has no profile `raeding`"),
        (["revoke"], "a name is needed"),
    ],
)
def test_what_makes_no_sense_makes_no_token(shell: Shell, words: list[str], problem: str) -> None:
    shell.write_servers(FILE)

    ran = shell.run("token", *words)

    assert ran.status is ExitStatus.USAGE
    assert problem in ran.err
    assert json.loads(shell.run("token", "list", "--json").out)["tokens"] == []


def test_there_is_one_of_a_name(shell: Shell) -> None:
    shell.write_servers(FILE)
    shell.run("token", "add", "anna")

    ran = shell.run("token", "add", "anna")

    assert ran.status is ExitStatus.ERROR
    assert "there is a token `anna` already" in ran.err
    assert "aggregator token revoke anna" in ran.err
