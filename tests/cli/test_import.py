"""Taking over the servers of every client, in the words of `servers.yaml`."""

import json

import pytest
import yaml

from aggregator.cli.environment import ExitStatus
from aggregator.config import load_config
from tests.cli.session import run
from tests.cli.shell import Shell, sample

TRACKER_TOKEN = {"TRACKER_TOKEN": "${TRACKER_TOKEN}"}
DOCS = "https://docs.example.com/mcp"

EXPECTED: dict[str, dict[str, object]] = {
    "claude-code": {
        "github": {
            "url": "https://api.githubcopilot.com/mcp/",
            "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"},
        },
        "tracker": {
            "command": "npx",
            "args": ["-y", "@acme/tracker@1.2.3", "--host", "${TRACKER_HOST:-localhost}"],
            "env": TRACKER_TOKEN,
            "alwaysLoad": True,
        },
    },
    "claude-desktop": {
        "files": {
            "command": "/usr/local/bin/file-server",
            "args": ["/home/me/Documents", "literal $${NOT_A_VARIABLE}"],
        }
    },
    "codex": {
        "github": {
            "url": "https://api.githubcopilot.com/mcp/",
            "headers": {"X-Team": "${TEAM_ID}", "Authorization": "Bearer ${GITHUB_TOKEN}"},
        },
        "tracker": {
            "command": "tracker-mcp",
            "args": ["--stdio"],
            "env": {"LEVEL": "info", **TRACKER_TOKEN},
            "connectTimeout": "20s",
            "callTimeout": "90s",
            "tools": {"allow": ["list_issues", "get_issue"]},
        },
    },
    "gemini-cli": {
        "github": {
            "url": "https://api.githubcopilot.com/mcp/",
            "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"},
        },
        "old": {"url": "https://example.com/sse", "type": "sse", "callTimeout": "30s"},
        "tracker": {
            "command": "tracker-mcp",
            "env": {**TRACKER_TOKEN, "ROOT": "${APPDATA}"},
            "tools": {"allow": ["list_issues"], "deny": ["delete_issue"]},
        },
    },
    "copilot-cli": {
        "tracker": {
            "command": "tracker-mcp",
            "args": ["--team", "${TEAM}"],
            "env": {"TRACKER_TOKEN": "${TRACKER_TOKEN:-none}"},
        },
        "docs": {"url": DOCS, "tools": {"allow": ["search_docs"]}},
    },
    "vscode": {
        "tracker": {
            "command": "tracker-mcp",
            "args": ["--root", "PROJECT/data"],
            "env": {**TRACKER_TOKEN, "HOST": "${TRACKER_HOST}"},
            "envFile": "PROJECT/.tracker.env",
        }
    },
    "cursor": {
        "tracker": {
            "command": "tracker-mcp",
            "args": ["--cache", "${HOME}/.cache/tracker"],
            "env": TRACKER_TOKEN,
        }
    },
    "windsurf": {"docs": {"url": DOCS, "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}}},
    "cline": {
        "tracker": {"command": "tracker-mcp", "callTimeout": "120s", "enabled": False},
        "docs": {"url": DOCS},
    },
    "roo": {
        "tracker": {
            "command": "tracker-mcp",
            "env": TRACKER_TOKEN,
            "tools": {"deny": ["delete_issue"]},
        }
    },
    "zed": {
        "tracker": {"command": "tracker-mcp", "args": ["--stdio"], "env": {"LEVEL": "info"}},
        "older": {"command": "old-mcp", "args": ["-x"]},
    },
    "goose": {
        "tracker": {
            "command": "tracker-mcp",
            "args": ["--stdio"],
            "env": {"LEVEL": "info", **TRACKER_TOKEN},
            "callTimeout": "300s",
        }
    },
    "opencode": {
        "tracker": {
            "command": ["npx", "-y", "tracker-mcp@2.0.0"],
            "env": {**TRACKER_TOKEN, "KEY": "${TRACKER_KEY}"},
        },
        "docs": {
            "url": DOCS,
            "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"},
            "enabled": False,
        },
    },
    "continue": {
        "tracker": {"command": "tracker-mcp", "args": ["--stdio"], "env": TRACKER_TOKEN},
        "My-docs": {"url": DOCS, "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}},
    },
    "librechat": {
        "tracker": {
            "command": "tracker-mcp",
            "args": ["--stdio"],
            "env": TRACKER_TOKEN,
            "callTimeout": "60s",
        },
        "docs": {"url": DOCS, "headers": {"X-User": "me"}},
    },
}


@pytest.fixture
def shell(shell: Shell) -> Shell:
    """Keep the servers with the project, where there is no file yet."""
    shell.variables["AGGREGATOR_CONFIG"] = "servers.yaml"
    return shell


@pytest.mark.parametrize("client", EXPECTED)
def test_the_servers_of_a_client_are_taken_over(shell: Shell, client: str) -> None:
    shell.give(client)

    ran = shell.run("import", client, "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    path = shell.project / "servers.yaml"
    text = path.read_text(encoding="utf-8").replace(str(shell.project), "PROJECT")
    assert yaml.safe_load(text)["servers"] == EXPECTED[client]
    assert set(load_config(path, shell.variables).servers) == set(EXPECTED[client])


@pytest.mark.parametrize("client", EXPECTED)
def test_a_file_tells_its_servers_wherever_it_lies(shell: Shell, client: str) -> None:
    copy = shell.project / sample(client).name
    copy.write_bytes(sample(client).read_bytes())

    ran = shell.run("import", copy.name, "--into", "taken.yaml", "--yes")

    assert ran.status is ExitStatus.FINE, ran.err
    taken = yaml.safe_load((shell.project / "taken.yaml").read_text(encoding="utf-8"))
    assert set(taken["servers"]) == set(EXPECTED[client])


def test_without_a_name_every_client_is_read(shell: Shell) -> None:
    shell.give("cursor")
    shell.give("zed")
    shell.give("windsurf")

    ran = shell.run("import", "--yes")

    taken = yaml.safe_load((shell.project / "servers.yaml").read_text(encoding="utf-8"))
    assert list(taken["servers"]) == ["tracker", "docs", "older"]
    assert "another server of that name; to have both, rename one" in ran.err


def test_the_broken_file_of_one_client_does_not_keep_others_from_being_read(shell: Shell) -> None:
    broken = shell.give("cursor")
    broken.write_text('{\n  "mcpServers": {\n', encoding="utf-8")
    shell.give("codex")

    one = shell.run("import", "codex", "--config", "one.yaml", "--yes")
    every = shell.run("import", "--into", "every.yaml", "--yes")
    listed = shell.run("import", "--into", "listed.yaml", "--json")
    itself = shell.run("import", "cursor", "--yes")

    problem = f"`{broken}` cannot be understood: it ends too early, in line 2"
    assert one.status is every.status is ExitStatus.FINE
    assert "cursor" not in one.err
    assert f"warning: Cursor is skipped: {problem}" in every.err
    assert set(load_config(shell.project / "every.yaml", {}).servers) == {"github", "tracker"}
    assert len(json.loads(listed.out)["servers"]) == 2
    assert itself.status is ExitStatus.ERROR
    assert itself.err.startswith(f"error: {problem}\n\nhint: ")


@pytest.mark.slow
def test_a_directory_that_may_not_be_read_is_skipped(shell: Shell) -> None:
    closed = shell.give("cursor").parent
    closed.chmod(0)
    shell.give("codex")
    try:
        ran = run(shell, "import", "--json")
    finally:
        closed.chmod(0o700)

    assert ran.status is ExitStatus.FINE, ran.err
    assert "Cursor is skipped" in ran.err
    assert "permission denied" in ran.err
    assert len(json.loads(ran.out)["servers"]) == 2


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", b'{\n"a": nope}', "line 2 is not JSON"),
        ("a.json", b'{\n"a": "b', "line 2 has a string that is not JSON"),
        ("a.json", b'{\n"a" 1}', "line 2 lacks a colon"),
        ("a.json", b'{"a": 1\n"b": 2}', "line 2 lacks a comma"),
        ("a.json", b'{\n"a": [', "it ends too early, in line 2"),
        ("a.json", b'{"a": "\xff"}', "it is not UTF-8 text"),
        ("a.yaml", b"a: 1\nb: [", "in line 2"),
        ("a.yaml", b"a: \x01", "special characters are not allowed"),
        ("a.toml", b"a = 1\nb =", "at end of document"),
        ("a.toml", b"a = 1\nb = = 2", "at line 2"),
    ],
)
def test_where_a_file_is_broken_is_said(shell: Shell, name: str, text: bytes, problem: str) -> None:
    (shell.project / name).write_bytes(text)

    ran = shell.run("import", name)

    assert problem in ran.err.splitlines()[0]
    assert "hint: Fix the file" in ran.err


def test_comments_of_a_file_that_is_there_survive(shell: Shell) -> None:
    written = "# mine\nservers:\n  notes:   # old\n    command: x\n\n# the end\n"
    path = shell.write_servers(written)
    shell.give("cursor")

    shell.run("import", "cursor", "--yes")

    after = path.read_text(encoding="utf-8")
    assert [line for line in written.splitlines() if line not in after] == []
    assert list(load_config(path, {}).servers) == ["notes", "tracker"]


def test_importing_twice_changes_nothing(shell: Shell) -> None:
    shell.give("claude-code")
    shell.run("import", "claude-code", "--yes")
    before = {path: path.read_bytes() for path in shell.project.iterdir()}

    again = shell.run("import", "claude-code", "--yes")

    assert "Nothing is to be changed" in again.err
    assert {path: path.read_bytes() for path in shell.project.iterdir()} == before


def test_the_file_that_was_written_is_the_one_to_check(shell: Shell) -> None:
    shell.give("cursor")

    usual = shell.run("import", "cursor", "--yes")
    other = shell.run("import", "cursor", "--into", "my team.yaml", "--yes")

    assert "`aggregator check` says" in usual.err
    assert "`aggregator check --config 'my team.yaml'` says" in other.err


def test_a_name_that_had_to_be_changed_is_said(shell: Shell) -> None:
    servers = {"we ird/näme": {"command": "x"}, "we-ird-n-me": {"command": "y"}}
    (shell.project / "m.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")

    ran = shell.run("import", "m.json", "--yes")

    source = shell.project / "m.json"
    assert f"`we-ird-n-me` (there `we ird/näme`) from `{source}`\n" in ran.err
    assert f"warning: `we-ird-n-me` from `{source}` is left out" in ran.err


def test_the_diff_comes_first_and_a_no_is_a_no(shell: Shell) -> None:
    shell.give("cursor")

    ran = shell.run("import", "cursor", typed="n\n")

    assert "+    command: tracker-mcp" in ran.out
    assert ran.status is ExitStatus.ERROR
    assert not (shell.project / "servers.yaml").exists()


def test_what_can_be_imported_is_listed_for_programs_and_not_written(shell: Shell) -> None:
    shell.give("cursor")

    listed = shell.run("import", "cursor", "--json")
    written = shell.run("import", "cursor", "--json", "--yes")

    target = shell.project / "servers.yaml"
    assert listed.status is ExitStatus.FINE
    assert [each["name"] for each in json.loads(listed.out)["servers"]] == ["tracker"]
    assert json.loads(listed.out)["files"] == [str(target)]
    assert listed.err == ""
    assert json.loads(written.out) == json.loads(listed.out)
    assert target.exists()


def test_our_own_registration_is_not_taken_for_a_server(shell: Shell) -> None:
    shell.write_servers("servers:\n  notes:\n    command: x\n")
    shell.run("install", "cursor", "--yes")

    ran = shell.run("import", "cursor", "--yes")

    assert "Nothing is to be changed" in ran.err


@pytest.mark.parametrize(
    ("source", "text", "problem"),
    [
        ("nope.json", None, "does not exist"),
        ("cursr", None, "there is no client `cursr`"),
        ("cursor", None, "Cursor has no servers"),
        ("bad.json", "{", "cannot be understood"),
        ("bad.yaml", "a: [", "cannot be understood"),
        ("bad.toml", "a =", "cannot be understood"),
        ("none.json", '{"a": 1}', "names no servers"),
        (None, None, "no client with servers"),
    ],
)
def test_what_cannot_be_imported_is_said_in_one_line(
    shell: Shell, source: str | None, text: str | None, problem: str
) -> None:
    if source and text is not None:
        (shell.project / source).write_text(text, encoding="utf-8")

    ran = shell.run("import", *([source] if source else []), "--yes")

    assert ran.status in (ExitStatus.ERROR, ExitStatus.USAGE)
    assert ran.err.startswith("error: ")
    assert problem in ran.err.splitlines()[0]


def test_an_entry_that_makes_no_sense_is_left_out_and_named(shell: Shell) -> None:
    (shell.project / "m.json").write_text(
        '{"mcpServers": {"empty": {}, "fine": {"command": "x"}}}', encoding="utf-8"
    )

    ran = shell.run("import", "m.json", "--yes")

    assert "`empty` is left out: `empty` has neither `command` nor `url`" in ran.err
    assert list(load_config(shell.project / "servers.yaml", {}).servers) == ["fine"]


@pytest.mark.parametrize(
    ("url", "entry", "said"),
    [
        ("https://a.example/mcp", {}, "write `type: sse` if it does not connect"),
        ("https://a.example/sse/", {"type": "sse"}, ""),
    ],
)
def test_a_transport_that_a_client_tries_out_is_settled(
    shell: Shell, url: str, entry: dict[str, str], said: str
) -> None:
    path = shell.file_of("gemini-cli").path
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": {"a": {"url": url}}}), encoding="utf-8")

    ran = shell.run("import", "gemini-cli", "--into", "taken.yaml", "--yes")

    taken = yaml.safe_load((shell.project / "taken.yaml").read_text(encoding="utf-8"))
    assert taken["servers"]["a"] == {"url": url, **entry}
    assert said in ran.err
    assert ("warning: " in ran.err) == bool(said)


def test_finding_nothing_of_use_is_an_error(shell: Shell) -> None:
    (shell.project / "mcp.json").write_text('{"mcpServers": {"a": {"x": 1}}}', encoding="utf-8")

    ran = shell.run("import", "mcp.json", "--into", "taken.yaml", "--yes")

    assert ran.status is ExitStatus.ERROR
    assert "`a` is left out: " in ran.err
