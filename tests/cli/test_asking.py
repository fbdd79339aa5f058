"""What commands say of the answers they get, from one aggregator that serves already."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.serving import SERVERS, serving
from tests.cli.shell import Ran, Shell

pytestmark = pytest.mark.slow

ODD = Path(__file__).with_name("odd_server.py")
ODD_SERVER = f"  odd: {{command: {sys.executable}, args: [{ODD}]}}\n"


@dataclass(frozen=True)
class Running:
    """An aggregator that serves already, and a person who asks it."""

    shell: Shell
    url: str

    def run(self, command: str, *words: str, typed: str = "") -> Ran:
        return self.shell.run(command, "--url", self.url, *words, typed=typed)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all commands that only ask: to start one takes longer than all they do."""
    shell = Shell(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project"))
    with serving(shell, SERVERS + ODD_SERVER) as (url, _said):
        yield Running(shell, url)


def test_call_types_its_arguments_and_prints_the_text(running: Running) -> None:
    pairs = running.run("call", "test__echo", "text=hello there")
    whole = running.run("call", "echo", "--json", '{"text": "hi"}')
    bare = running.run("call", "echo", '{"text": "hi"}')
    piped = running.run("call", "echo", "--json", "-", "--raw", typed='{"text": "hi"}')

    assert pairs.status is ExitStatus.FINE, pairs.err
    assert "hello there" in pairs.out
    assert "hi" in whole.out
    assert bare.out == whole.out
    assert json.loads(piped.out)["content"][0]["type"] == "text"


def test_search_prints_what_a_model_reads_and_explains_it(running: Running) -> None:
    plain = running.run("search", "echo", "text")
    explained = running.run("search", "echo text", "--explain", "--max-results", "1")
    data = running.run("search", "echo text", "--explain", "--json")

    assert plain.status is ExitStatus.FINE
    assert "## test__echo (server test)" in plain.out
    assert "Why these:\n1. test__echo  score " in explained.out
    assert "all words together: how much of the query it has, words of its name" in explained.out
    found = json.loads(data.out)
    assert [each["name"] for each in found["hits"]] == found["facts"]["matches"]
    assert found["hits"][0]["why"][0]["word"] == "echo"
    assert json.loads(data.out)["text"] + "\n" == plain.out


def test_a_search_goes_on_where_the_last_one_ended(running: Running) -> None:
    first = running.run("search", "a text", "--max-results", "1", "--offset", "0", "--json")
    second = running.run("search", "a text", "--max-results", "1", "--offset", "1", "--json")

    found = [json.loads(each.out)["facts"]["matches"] for each in (first, second)]
    both = running.run("search", "a text", "--max-results", "2", "--json")
    assert json.loads(both.out)["facts"]["matches"] == [*found[0], *found[1]]
    assert all(len(each) == 1 for each in found)


def test_a_name_is_looked_up_and_not_ranked(running: Running) -> None:
    ran = running.run("search", "select:test__echo", "--explain")

    assert "## test__echo" in ran.out
    assert "No tool was ranked for `select:test__echo`" in ran.out


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["test__nope"], ExitStatus.UNKNOWN, "there is no tool `test__nope`"),
        (["test"], ExitStatus.UNKNOWN, "`test` is a server and no tool"),
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
    running: Running, arguments: list[str], status: ExitStatus, problem: str
) -> None:
    ran = running.run("call", *arguments)

    assert ran.status is status
    assert any(problem in line for line in ran.err.splitlines()[:2])
    assert ran.out == ""


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
    running: Running, arguments: list[str], status: ExitStatus, out: str, err: str
) -> None:
    assert running.run("call", *arguments) == Ran(status, out, err)


def test_words_may_stand_on_both_sides_of_an_option(running: Running) -> None:
    call = running.run("call", "say", "--wait", "20", "number=5")
    search = running.run("search", "select:say", "--json", "draw")

    assert call.out == '{"number": 5}\n'
    assert json.loads(search.out)["query"] == "select:say draw"
