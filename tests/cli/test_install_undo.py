"""Undoing an installation, to the byte and whatever was written since."""

import pytest

from aggregator.cli.clients.documents import format_of, found
from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Ran, Shell, sample
from tests.cli.test_install import NAMES, SERVERS, servers_of


@pytest.fixture
def shell(shell: Shell) -> Shell:
    """Keep the servers with the project, where there is no file yet."""
    shell.variables["AGGREGATOR_CONFIG"] = "servers.yaml"
    return shell


def edit(shell: Shell, client: str, *, new: str, gone: str | None = None) -> None:
    """Do as a client does that saves its file with another set of servers."""
    file = shell.file_of(client)
    form = format_of(file.path)
    text = file.path.read_text(encoding="utf-8")
    text = form.drop(text, (*file.keys, gone)) if gone else text
    text = form.put(text, (*file.keys, new), {"name": new, "command": "x"}, listed=file.listed)
    file.path.write_text(text, encoding="utf-8")


def install_other(shell: Shell, client: str, *options: str) -> Ran:
    """Install again, with another file of servers."""
    other = shell.project / "team.yaml"
    other.write_text(SERVERS, encoding="utf-8")
    return shell.run("install", client, "--yes", "--config", str(other), *options)


@pytest.mark.parametrize("client", NAMES)
def test_a_file_that_was_not_there_is_made_and_taken_away(shell: Shell, client: str) -> None:
    shell.write_servers(SERVERS)
    file = shell.file_of(client)
    path = file.path

    made = shell.run("install", client, "--yes")
    assert made.status is ExitStatus.FINE
    assert "Backups" not in made.err
    assert f"install {client} --undo` takes that back" in " ".join(made.err.split())
    servers = found(format_of(path).read(path.read_text(encoding="utf-8")), file.keys)
    assert isinstance(servers, list if client == "continue" else dict)

    undone = shell.run("install", client, "--undo", "--yes")
    assert undone.status is ExitStatus.FINE
    assert undone.out.splitlines()[:2] == [f"--- {path}", "+++ /dev/null"]
    assert not path.exists()


def test_a_folder_of_the_project_goes_with_its_only_file(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    made = shell.run("install", "vscode", "--scope", "project", "--yes")
    assert made.status is ExitStatus.FINE
    assert "mcp.json` names programs and files of this machine" in made.err
    assert shell.run("install", "vscode", "--scope", "project", "--undo", "--yes").status is (
        ExitStatus.FINE
    )

    assert [path.name for path in shell.project.iterdir()] == ["servers.yaml"]


def test_a_folder_that_was_there_stays_when_it_is_empty_again(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    (shell.home / ".cursor").mkdir()

    for _twice in range(2):
        shell.run("install", "cursor", "--yes")
    assert shell.run("install", "cursor", "--undo", "--yes").status is ExitStatus.FINE

    assert [*(shell.home / ".cursor").iterdir()] == []


@pytest.mark.parametrize("client", ["cursor", "zed", "goose"])
def test_folders_that_were_made_go_with_their_only_file(shell: Shell, client: str) -> None:
    shell.write_servers(SERVERS)
    before = {*shell.home.rglob("*")}

    shell.run("install", client, "--yes")
    assert shell.run("install", client, "--undo", "--yes").status is ExitStatus.FINE

    left = {*shell.home.rglob("*")} - before
    assert all(each.is_relative_to(shell.home / ".local") for each in left)


def test_what_the_client_wrote_in_the_meantime_is_kept(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    path = shell.give("claude-code")
    shell.run("install", "claude-code", "--move", "--yes")
    path.write_text(path.read_text(encoding="utf-8").replace("42", "43"), encoding="utf-8")

    undone = shell.run("install", "claude-code", "--undo", "--yes")

    assert undone.status is ExitStatus.FINE
    assert "has been changed since" in undone.err
    form = format_of(path)
    expected = sample("claude-code").read_text(encoding="utf-8").replace("42", "43")
    assert form.read(path.read_text(encoding="utf-8")) == form.read(expected)


def test_installing_again_keeps_the_first_backup(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    path = shell.give("cursor")
    before = path.read_bytes()
    shell.run("install", "cursor", "--yes")
    other = shell.project / "team.yaml"
    other.write_text(SERVERS, encoding="utf-8")

    again = shell.run("install", "cursor", "--yes", "--config", str(other))
    same = shell.run("install", "cursor", "--yes", "--config", str(other))
    shell.run("install", "cursor", "--undo", "--yes")

    assert again.status is ExitStatus.FINE
    assert "already" in same.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("edited_again", [False, True])
@pytest.mark.parametrize("client", NAMES)
def test_undoing_two_installations_leaves_what_the_client_wrote_between_them(
    shell: Shell, client: str, edited_again: bool
) -> None:
    shell.write_servers(SERVERS)
    path = shell.give(client)
    before = servers_of(shell, client)
    shell.run("install", client, "--yes")
    gone = next(name for name in before if name != "developer")
    edit(shell, client, gone=gone, new="added")
    expected = {name: before[name] for name in before if name != gone}

    install_other(shell, client)
    if edited_again:
        edit(shell, client, gone="added", new="later")
    undone = shell.run("install", client, "--undo", "--yes")

    assert undone.status is ExitStatus.FINE, undone.err
    assert "no longer starts the aggregator" in undone.err
    added = "later" if edited_again else "added"
    assert servers_of(shell, client) == {**expected, added: {"name": added, "command": "x"}}
    assert path.read_text(encoding="utf-8").count("servers.yaml") == 0


@pytest.mark.parametrize("client", [name for name in NAMES if name != "librechat"])
def test_undoing_two_moves_gives_back_the_servers_of_both(shell: Shell, client: str) -> None:
    shell.give(client)
    before = servers_of(shell, client)
    shell.run("install", client, "--move", "--yes")
    edit(shell, client, new="added")

    moved = install_other(shell, client, "--move")
    shell.run("install", client, "--undo", "--yes")

    assert "`added` from" in moved.err
    added = {"added": {"name": "added", "command": "x"}}
    assert servers_of(shell, client) == {**before, **added}


def test_undoing_a_move_leaves_what_was_written_since(shell: Shell) -> None:
    shell.give("cursor")
    shell.run("install", "cursor", "--move", "--yes")
    taken = shell.project / "servers.yaml"
    taken.write_text(taken.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    edit(shell, "cursor", new="tracker")

    undone = shell.run("install", "cursor", "--undo", "--yes")

    assert undone.status is ExitStatus.FINE
    assert f"`{taken}` has been changed since; it stays as it is" in undone.err
    assert taken.read_text(encoding="utf-8").endswith("# mine\n")
    assert servers_of(shell, "cursor") == {"tracker": {"name": "tracker", "command": "x"}}


def test_undoing_says_so_if_the_aggregator_was_registered_before(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    path = shell.file_of("cursor").path
    path.parent.mkdir()
    path.write_text(
        '{"mcpServers": {"toolbox": {"command": "aggregator", "args": ["serve"]}}}',
        encoding="utf-8",
    )
    before = path.read_bytes()
    shell.run("install", "cursor", "--yes")

    undone = shell.run("install", "cursor", "--undo", "--yes")

    assert path.read_bytes() == before
    assert "Cursor still starts the aggregator as `toolbox`" in undone.err
    again = shell.run("install", "cursor", "--undo", "--yes", "--name", "toolbox")
    assert "no longer starts the aggregator" in again.err


def test_a_link_to_a_file_stays_a_link(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    real = shell.home / "dotfiles.json"
    real.write_bytes(sample("cursor").read_bytes())
    path = shell.file_of("cursor").path
    path.parent.mkdir()
    path.symlink_to(real)

    shell.run("install", "cursor", "--yes")

    assert path.is_symlink()
    assert "toolbox" in real.read_text(encoding="utf-8")
