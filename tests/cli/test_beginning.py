"""The first five minutes: a file is made, found, added to and taken from."""

import json
import os
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import yaml

from aggregator.cli import main
from aggregator.cli.environment import ExitStatus
from aggregator.config import load_config
from aggregator.names import ServerName
from tests.cli.session import run
from tests.cli.shell import FILES, Ran, Shell, faulty

COMMENTED = """\
# Mine.
servers:
  # Notes of all kinds.
  notes:
    command: notes-mcp   # from the team
    # args: [--verbose]

  # Where code lives.
  github: {url: "https://api.githubcopilot.com/mcp/"}

# The end.
"""


def own(shell: Shell) -> Path:
    """Return the file that a person has for every directory."""
    return shell.home / ".config" / "mcp-tool-aggregator" / "servers.yaml"


def servers(path: Path) -> dict[str, object]:
    return yaml.safe_load(path.read_text(encoding="utf-8-sig"))["servers"]


def add(shell: Shell, *words: str) -> Ran:
    ran = shell.run("add", *words)
    assert ran.status is ExitStatus.FINE, ran.err
    return ran


@pytest.mark.parametrize(
    ("target", "problem"),
    [("http://", "`servers.x.url` names no host"), ("", "`x` has neither `command` nor `url`")],
)
def test_what_cannot_be_added_is_not_on_a_line_of_the_file(
    shell: Shell, target: str, problem: str
) -> None:
    shell.write_servers("servers: {}\n")

    ran = shell.run("add", "x", target)

    assert ran.status == ExitStatus.USAGE
    assert f"error: `x` cannot be added: {problem}\n" in ran.err
    assert "line" not in ran.err


@pytest.mark.parametrize("command", ["add", "import"])
def test_an_address_that_has_no_parts_is_refused_like_any_other(
    shell: Shell, tmp_path: Path, command: str
) -> None:
    theirs = tmp_path / "theirs.json"
    theirs.write_text('{"mcpServers": {"z": {"url": "http://[::1"}}}', encoding="utf-8")

    ran = (
        shell.run("add", "z", "http://[::1")
        if command == "add"
        else shell.run("import", str(theirs), "--yes")
    )

    assert "has a `[` or a `]` without the other" in ran.err


def test_a_file_is_made_from_the_clients_a_person_chooses(shell: Shell) -> None:
    shell.give("cursor")
    shell.give("zed")

    ran = shell.run("init", typed="y\nn\ny\nn\nn\n")

    assert ran.status is ExitStatus.FINE, ran.err
    path = own(shell)
    assert list(servers(path)) == ["tracker"]
    assert path.read_text(encoding="utf-8").startswith("# The servers behind the aggregator.")
    assert f"Wrote `{path}`" in ran.err
    assert "Register it in Cursor, and take out what is in your file now:" in ran.err
    assert "Register it in Zed:" in ran.err
    assert "`aggregator install CLIENT`" in ran.err
    assert load_config(path, {}).servers[ServerName("tracker")].command == "tracker-mcp"


def test_that_no_client_was_found_is_said(shell: Shell) -> None:
    ran = shell.run("init", "--yes")
    other = shell.run(
        "init", "--config", "other.yaml", "--from", str(FILES / "cursor.json"), "--yes"
    )

    assert ran.status is ExitStatus.FINE, ran.err
    assert "No client with servers was found on this machine\n" in ran.err
    assert "No client" not in other.err


def test_a_client_that_was_taken_from_is_registered_without_what_it_had(shell: Shell) -> None:
    client = shell.give("cursor")

    ran = shell.run("init", "--from", "cursor", typed="y\ny\n")

    assert ran.status is ExitStatus.FINE, ran.err
    assert list(json.loads(client.read_text(encoding="utf-8"))["mcpServers"]) == ["toolbox"]
    assert str(own(shell)) in client.read_text(encoding="utf-8")
    assert "`aggregator install CLIENT`" not in ran.err


def test_whom_nobody_can_ask_about_is_not_registered(shell: Shell) -> None:
    client = shell.give("cursor")
    before = client.read_bytes()

    ran = shell.run("init", "--from", "cursor", typed="y\n")

    assert ran.status is ExitStatus.FINE, ran.err
    assert own(shell).exists()
    assert client.read_bytes() == before
    assert "`aggregator install CLIENT`" in ran.err


def test_a_file_without_servers_can_be_used_and_added_to(shell: Shell) -> None:
    ran = shell.run("init", "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    assert servers(own(shell)) == {}
    add(shell, "fetch", "--", "uvx", "mcp-server-fetch")
    assert servers(own(shell)) == {"fetch": {"command": "uvx", "args": ["mcp-server-fetch"]}}
    assert "# Another server" in own(shell).read_text(encoding="utf-8")


def test_without_questions_all_that_a_person_has_is_taken_over(shell: Shell) -> None:
    secret = "ghp_" + "a1B2" * 9
    client = shell.file_of("cursor").path
    client.parent.mkdir(parents=True)
    entry = {"url": "https://a.example/mcp", "headers": {"Authorization": f"Bearer {secret}"}}
    client.write_text(json.dumps({"mcpServers": {"gh": entry}}), encoding="utf-8")
    zed = shell.give("zed")
    before = client.read_bytes(), zed.read_bytes()

    ran = shell.run("init", "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    assert next(iter(servers(own(shell)))) == "gh"
    assert "tracker" in servers(own(shell))
    assert secret not in own(shell).read_text(encoding="utf-8") + ran.out + ran.err
    assert secret in own(shell).with_name(".env").read_text(encoding="utf-8")
    assert "`aggregator install CLIENT`" in ran.err
    assert (client.read_bytes(), zed.read_bytes()) == before


def test_what_comes_with_a_directory_is_taken_over_only_if_that_is_agreed(shell: Shell) -> None:
    path = shell.file_of("cursor", "project").path
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"theirs": {"command": "run-me"}}}', encoding="utf-8")
    shell.give("zed")

    ran = shell.run("init", "--config", "own.yaml", "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    assert "theirs" not in servers(shell.project / "own.yaml")
    assert f"Left out, as it comes with this directory: `theirs` of Cursor (`{path}`)" in ran.err
    assert "`aggregator import --into own.yaml` takes that over too" in ran.err
    assert shell.run("import", "--into", "own.yaml", "--yes").status is ExitStatus.FINE
    assert "theirs" in servers(shell.project / "own.yaml")


def test_at_home_nobody_is_taken_for_somebody_else(shell: Shell) -> None:
    shell.give("cursor")
    shell.project = shell.home

    ran = shell.run("init", "--yes")

    assert "tracker" in servers(own(shell))
    assert "Left out" not in ran.err
    assert "already" not in ran.err


def test_a_file_that_has_no_servers_yet_gets_them(shell: Shell) -> None:
    shell.run("init", "--yes")
    shell.give("cursor")

    ran = shell.run("init", "--from", "cursor", "--yes")
    again = shell.run("init", "--from", "cursor", "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    assert "tracker" in servers(own(shell))
    assert again.status is ExitStatus.ERROR
    assert f"`{own(shell)}` is there already" in again.err


def test_without_anybody_to_ask_the_plan_is_shown_with_the_command_for_it(shell: Shell) -> None:
    shell.give("cursor")
    shell.give("zed")

    ran = shell.run("init")

    assert ran.status is ExitStatus.ERROR
    assert not own(shell).exists()
    assert "`tracker` from Cursor" in ran.err
    assert "+  tracker:" in ran.out
    assert "nothing was changed, as there is nobody to ask" in ran.err
    assert "hint: `aggregator init --yes` does what is shown" in ran.err
    assert shell.run("init", "--yes").out == ran.out


def test_several_servers_are_removed_or_none(shell: Shell) -> None:
    path = shell.write_servers(COMMENTED)

    failed = shell.run("remove", "notes", "gone")
    before = path.read_text(encoding="utf-8")
    ran = shell.run("remove", "notes", "--yes", "github")

    assert failed.status is ExitStatus.UNKNOWN
    assert before == COMMENTED
    assert ran.status is ExitStatus.FINE, ran.err
    assert not servers(path)
    assert f"`notes` is no longer in `{path}`\n`github` is no longer in `{path}`" in ran.err


def test_who_agrees_to_what_is_not_asked_adds_a_server(shell: Shell) -> None:
    add(shell, "docs", "https://docs.example.com/mcp", "--yes")
    add(shell, "fetch", "-y", "--", "uvx", "fetch", "--yes")

    assert list(servers(own(shell))) == ["docs", "fetch"]


def test_a_file_that_is_there_is_not_made_again(shell: Shell) -> None:
    path = shell.write_servers(COMMENTED)

    ran = shell.run("init", "--config", "servers.yaml", "--yes")

    assert ran.status is ExitStatus.ERROR
    assert f"`{path}` is there already" in ran.err
    assert path.read_text(encoding="utf-8") == COMMENTED


def test_an_answer_that_is_neither_yes_nor_no_is_asked_for_again(shell: Shell) -> None:
    ran = shell.run("init", typed="maybe\nY\n")

    assert ran.status is ExitStatus.FINE, ran.err
    assert ran.err.count("Answer `y` or `n`") == 1
    assert own(shell).exists()
    assert shell.run("init", "--config", "x.yaml", typed="\n").status is ExitStatus.ERROR


class Impatient(StringIO):
    """What a person types who interrupts the next question."""

    def readline(self, size: int | None = -1, /) -> str:
        if not (line := super().readline(-1 if size is None else size)):
            raise KeyboardInterrupt
        return line


@pytest.mark.parametrize(
    ("typed", "done"),
    [
        ("y\n", "Nothing was written"),
        ("y\ny\n", "Written so far: `OWN`; `aggregator install CLIENT` registers it"),
        ("y\ny\ny\n", "Written so far: `OWN`, the registration in Cursor; `aggregator install"),
    ],
)
def test_whoever_interrupts_is_told_what_is_written(shell: Shell, typed: str, done: str) -> None:
    shell.give("cursor")
    shell.file_of("zed").path.parent.mkdir(parents=True)
    shell.file_of("zed").path.write_text("{}", encoding="utf-8")
    err = StringIO()
    person = replace(shell.environment(StringIO(), err), stdin=Impatient(typed))

    status = main(["init"], person)

    assert status is ExitStatus.INTERRUPTED
    assert done.replace("OWN", str(own(shell))) in err.getvalue()
    assert own(shell).exists() == ("Written" in done)


def test_a_no_makes_nothing(shell: Shell) -> None:
    ran = shell.run("init", typed="n\n")

    assert ran.status is ExitStatus.ERROR
    assert not own(shell).exists()


@pytest.mark.parametrize(
    ("platform", "variables", "place"),
    [
        ("linux", {}, "HOME/.config"),
        ("linux", {"XDG_CONFIG_HOME": "HOME/xdg"}, "HOME/xdg"),
        ("linux", {"XDG_CONFIG_HOME": "relative"}, "HOME/.config"),
        ("darwin", {}, "HOME/Library/Application Support"),
        ("win32", {"APPDATA": "HOME/Roaming"}, "HOME/Roaming"),
        ("win32", {"USERPROFILE": "HOME"}, "HOME/AppData/Roaming"),
    ],
)
def test_each_platform_has_its_place_for_the_file(
    shell: Shell, platform: str, variables: dict[str, str], place: str
) -> None:
    shell.platform = platform
    home = str(shell.home)
    shell.variables = {key: value.replace("HOME", home) for key, value in variables.items()}

    ran = shell.run("init", "--yes")

    path = Path(place.replace("HOME", home), "mcp-tool-aggregator", "servers.yaml")
    assert ran.status is ExitStatus.FINE, ran.err
    assert path.exists()
    assert f"`{path}`" in shell.run("add", "x", "--", "y").err


def test_without_a_home_there_is_no_file_for_everywhere(shell: Shell) -> None:
    shell.variables = {"HOME": ""}

    assert "`HOME` is not set" in shell.run("init", "--yes").err
    add(shell, "x", "--", "y")
    assert list(servers(shell.project / "servers.yaml")) == ["x"]


def test_the_nearest_file_is_used_and_named(shell: Shell) -> None:
    """Here, in a parent, or the person's own, in that order; results stay what they are."""
    own(shell).parent.mkdir(parents=True)
    own(shell).write_text("servers: {}", encoding="utf-8")
    here = shell.project
    shell.project = here / "deep" / "down"
    shell.project.mkdir(parents=True)

    everywhere = shell.run("check", "--json")
    above = here / "servers.yaml"
    above.write_text("servers: {}", encoding="utf-8")
    in_parent = shell.run("check", "--json")
    nearest = shell.write_servers("servers: {}")
    in_place = shell.run("check", "--json")

    for ran, path in ((everywhere, own(shell)), (in_parent, above), (in_place, nearest)):
        assert json.loads(ran.out)["file"] == str(path)
        assert f"Using `{path}`\n" in ran.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_others_put_above_us_is_not_used(shell: Shell) -> None:
    above = shell.write_servers("servers: {}")
    os.chown(above, 12345, 12345)
    shell.project /= "deep"
    shell.project.mkdir()

    assert f"`x` is in `{own(shell)}`" in add(shell, "x", "--", "y").err


@pytest.mark.slow
@pytest.mark.parametrize("command", ["inspect --json", "search --json read", "doctor --json"])
def test_every_command_says_which_file_it_used(shell: Shell, command: str) -> None:
    path = shell.write_servers(f"servers:\n  test:\n    {faulty()}\n")

    ran = run(shell, *command.split())

    assert ran.status is ExitStatus.FINE, ran.err
    json.loads(ran.out)
    assert f"Using `{path}`\n" in ran.err or json.loads(ran.out).get("config") == str(path)


def test_a_server_is_added_and_removed_without_a_trace(shell: Shell) -> None:
    path = shell.write_servers(COMMENTED)

    added = add(shell, "fetch", "-e", "LEVEL=a=b", "--", "uvx", "fetch", "--", "--flag")

    assert list(servers(path)) == ["notes", "github", "fetch"]
    assert servers(path)["fetch"] == {
        "command": "uvx",
        "args": ["fetch", "--", "--flag"],
        "env": {"LEVEL": "a=b"},
    }
    assert "+    command: uvx" in added.out
    assert f"`fetch` is in `{path}`" in added.err
    assert shell.run("remove", "fetch").status is ExitStatus.FINE
    assert path.read_text(encoding="utf-8") == COMMENTED


def test_an_address_is_added_with_its_headers(shell: Shell) -> None:
    path = shell.write_servers("servers: {}\n")

    add(shell, "docs", "https://a.example/mcp", "-H", "X-Team: blue", "--description", "All docs")
    add(shell, "feed", "-t", "sse", "https://a.example/sse")

    assert servers(path) == {
        "docs": {
            "url": "https://a.example/mcp",
            "headers": {"X-Team": "blue"},
            "description": "All docs",
        },
        "feed": {"url": "https://a.example/sse", "type": "sse"},
    }


def test_a_variable_that_is_not_set_is_told_when_it_is_first_written(shell: Shell) -> None:
    header = "Authorization: Bearer ${MISSING_TOKEN}"

    ran = add(shell, "gh", "https://a.example/mcp", "-H", header)

    assert "gh: the variable `MISSING_TOKEN` must be set" in ran.err


def test_a_secret_that_is_typed_moves_to_the_env_file(shell: Shell) -> None:
    secret = "ghp_" + "a1B2" * 9
    path = shell.write_servers("# Mine.\nservers:\n  a: {command: x}\n")

    added = add(shell, "gh", "https://a.example/mcp", "-H", f"Authorization: Bearer {secret}")

    assert secret not in added.out + added.err + path.read_text(encoding="utf-8")
    assert secret in (shell.project / ".env").read_text(encoding="utf-8")
    assert load_config(path, {}).servers[ServerName("gh")].headers == {
        "Authorization": f"Bearer {secret}"
    }
    # Behind the servers it would part them from the examples that follow.
    assert path.read_text(encoding="utf-8").startswith("# Mine.\nenvFile: .env\nservers:\n")
    assert "Nothing uses `GH_TOKEN` in" in shell.run("remove", "gh").err


def test_a_server_of_that_name_is_replaced_only_if_meant(shell: Shell) -> None:
    path = shell.write_servers(COMMENTED)

    refused = shell.run("add", "notes", "--", "other")
    assert refused.status is ExitStatus.ERROR
    assert "`--force` replaces it" in refused.err
    assert path.read_text(encoding="utf-8") == COMMENTED

    add(shell, "notes", "--force", "--", "other")
    old = "command: notes-mcp   # from the team\n    # args: [--verbose]"
    assert path.read_text(encoding="utf-8") == COMMENTED.replace(old, "command: other")


def test_a_removed_server_takes_its_comment_with_it(shell: Shell) -> None:
    path = shell.write_servers(COMMENTED)

    removed = shell.run("remove", "notes")

    assert removed.status is ExitStatus.FINE, removed.err
    begin, end = COMMENTED.index("  # Notes"), COMMENTED.index("\n  # Where")
    assert path.read_text(encoding="utf-8") == COMMENTED[:begin] + COMMENTED[end:]


FORMS = {
    "a block": "servers:\n  a:\n    command: x\n",
    "without an end": "servers:\n  a:\n    command: x",
    "braces": "servers: {a: {command: x}}\n",
    "JSON": '{\n  "servers": {\n    "a": {"command": "x"}\n  }\n}\n',
    "a client's": '{"mcpServers": {"a": {"command": "x"}}}\n',
    "a client's block": "mcpServers:\n  a: {command: x}\n",
    "a client's list": "mcpServers:\n  - name: a\n    command: x\n",
    "anchors": "servers:\n  a: &one {command: x}\n  b: *one\n",
    "settings below": "servers:\n  a:\n    command: x\nwatch: false\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_any_form_of_the_file_is_kept(shell: Shell, text: str, end: str, mark: str) -> None:
    path = shell.project / "servers.yaml"
    before = (mark + text.replace("\n", end)).encode()
    path.write_bytes(before)

    add(shell, "on", "--", "y", "z")

    after = path.read_bytes()
    assert load_config(path, {}).servers[ServerName("on")].args == ("z",)
    assert after.startswith(b"\xef\xbb\xbf") == bool(mark)
    assert after.count(b"\n") == after.count(b"\r\n") or end == "\n" or end.encode() not in before
    assert shell.run("remove", "on").status is ExitStatus.FINE
    assert path.read_bytes().rstrip() == before.rstrip()


@pytest.mark.parametrize("text", ["", "# Nothing yet.\n", "servers:\n", "servers: {}\n"])
def test_a_file_that_says_nothing_is_added_to(shell: Shell, text: str) -> None:
    path = shell.write_servers(text)

    add(shell, "a", "--", "x")

    assert servers(path) == {"a": {"command": "x"}}
    assert path.read_text(encoding="utf-8").startswith(text.partition(":")[0])


def test_a_file_in_json_stays_json(shell: Shell) -> None:
    path = shell.project / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}', encoding="utf-8")

    add(shell, "b", "--config", "mcp.json", "--", "y")

    assert json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["b"] == {"command": "y"}


def test_a_program_that_is_named_from_here_starts_here(shell: Shell) -> None:
    (shell.project / "server.py").touch()

    ran = add(shell, "mine", "--", "python", "server.py")
    add(shell, "other", "--", "python", "-m", "server")

    assert servers(own(shell))["mine"] == {
        "command": "python",
        "args": ["server.py"],
        "cwd": str(shell.project),
    }
    assert f"`mine` starts in `{shell.project}`, as `server.py` is there" in ran.err
    assert servers(own(shell))["other"] == {"command": "python", "args": ["-m", "server"]}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("add x https://a.example/mcp --env A=1", "`--env` is for programs"),
        ("add x https://a.example/mcp -t stdio", "not reached over stdio"),
        ("add x --header A:1 -- y", "`--header` is for addresses"),
        ("add x -t http -- y", "`y` is not an address"),
        ("add x --env A -- y", "`--env` needs a name and a value"),
        ("add x", "needs `URL or -- COMMAND`"),
        ("add x,y -- z", "`x,y` is not allowed as a name"),
        ("add x ftp://a.example", "hint: It must begin with `https://`"),
        ("add x http:/bad", "Did you mean `http://bad`?"),
        ("add x localhost:9/mcp", "Did you mean `http://localhost:9/mcp`?"),
        ("add x 127.0.0.1:9", "Did you mean `http://127.0.0.1:9`?"),
        ("add x box:9/mcp", "Did you mean `https://box:9/mcp`?"),
        ("add x a.example/mcp", "Did you mean `https://a.example/mcp`?"),
        ("add x https:/me:hunter2@b", "error: what is given is not an address"),
        ("add x https://a.example/mcp extra args", "`extra`, `args` are too many"),
        ("add x -t sse -- y", "hint: An address begins with `https://`"),
        ("add x uvx git --repository R", "after `--`: `aggregator add x -- uvx …`"),
        ("add", "hint: For example: `aggregator add fetch -- uvx mcp-server-fetch`"),
        ("add x -- ${", "has a `${` that is not"),
        ("remove gitub", "hint: Did you mean `github`?"),
        ("remove x", "hint: It has `notes`, `github`"),
    ],
)
def test_what_cannot_be_changed_is_said_and_nothing_is_written(
    shell: Shell, command: str, said: str
) -> None:
    path = shell.write_servers(COMMENTED)

    ran = shell.run(*command.split())

    assert ran.status in (ExitStatus.USAGE, ExitStatus.ERROR, ExitStatus.UNKNOWN)
    assert said in ran.err
    assert path.read_text(encoding="utf-8") == COMMENTED


def test_a_command_in_quotes_is_told_from_a_program(shell: Shell) -> None:
    ran = shell.run("add", "x", "--", "npx -y server")

    assert ran.status is ExitStatus.USAGE
    assert "hint: Write the program and its arguments after `--`" in ran.err
    assert not own(shell).exists()


def test_what_others_refer_to_is_left(shell: Shell) -> None:
    text = FORMS["anchors"]
    path = shell.write_servers(text)

    ran = shell.run("remove", "a")

    assert ran.status is ExitStatus.ERROR
    assert "cannot be changed safely" in ran.err
    assert path.read_text(encoding="utf-8") == text


def test_importing_goes_to_the_file_for_everywhere_and_names_what_became_of_a_place(
    shell: Shell,
) -> None:
    shell.give("vscode", "project")

    ran = shell.run("import", "vscode", "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    assert list(servers(own(shell))) == ["tracker"]
    assert f"Wrote `{own(shell)}`" in ran.err
    assert f"`${{workspaceFolder}}` became `{shell.project}`" in ran.err
