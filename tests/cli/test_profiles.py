"""Commands that look at what is there as clients of a profile do."""

import json

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell
from tests.cli.test_running import SERVERS

PROFILES = """
profiles:
  reading: {deny: [release, test__fault]}
  slips: {servers: [tset], allow: [test__ecco, "*"], deny: [destroy_*], alwaysLoad: [test__wat]}
"""


def test_one_profile_can_be_looked_at_searched_and_called(shell: Shell) -> None:
    shell.write_servers(SERVERS + PROFILES)

    looked = json.loads(shell.run("inspect", "--profile", "reading", "--json").out)
    searched = shell.run("search", "--profile", "reading", "select:test__release")
    called = shell.run("call", "--profile", "reading", "test__release")
    allowed = shell.run("call", "--profile", "reading", "test__echo", "text=hello")

    names = [each["name"] for each in looked["tools"]]
    assert "test__echo" in names
    assert "test__release" not in names
    assert "test__fault" not in names
    assert searched.out == 'There is no tool "test__release".\n'
    assert called.status is ExitStatus.UNKNOWN
    assert "there is no tool `test__release`" in called.err
    lost = shell.run("inspect", "--profile", "reading", "xyzzyx")
    assert "hint: `aggregator inspect --profile reading` lists them" in lost.err
    assert allowed.status is ExitStatus.FINE


def test_a_profile_that_is_not_in_the_file_is_said(shell: Shell) -> None:
    shell.write_servers(SERVERS + PROFILES)

    for command in (["inspect"], ["serve"], ["search", "x"], ["call", "test__echo"]):
        ran = shell.run(*command, "--profile", "raeding")
        assert ran.status is ExitStatus.USAGE
        assert "has no profile `raeding`" in ran.err
        assert "Did you mean `reading`?" in ran.err


def test_check_says_which_rules_of_profiles_match_nothing(shell: Shell) -> None:
    shell.write_servers(SERVERS + PROFILES)

    ran = shell.run("check", "--json")

    assert [each["text"] for each in json.loads(ran.out)["findings"]] == [
        "`profiles.slips.servers`: `tset` matches nothing",
        "`profiles.slips.allow`: `test__ecco` matches nothing",
        "`profiles.slips.deny`: `destroy_*` matches nothing",
        "`profiles.slips.alwaysLoad`: `test__wat` matches nothing",
    ]
