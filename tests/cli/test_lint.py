"""What `check` says before it starts anything."""

import sys
from pathlib import Path

import pytest

from aggregator.cli.lint import lint, unpinned
from aggregator.config import load_config


def findings(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "servers.yaml"
    path.write_text(text, encoding="utf-8")
    return [str(each) for each in lint(load_config(path, {}), {"PATH": "/bin:/usr/bin"})]


@pytest.mark.parametrize(
    ("command", "arguments", "package"),
    [
        ("npx", ["-y", "tracker"], "tracker"),
        ("npx", ["-y", "@acme/tracker"], "@acme/tracker"),
        ("npx", ["@acme/tracker@latest"], "@acme/tracker@latest"),
        ("npx", ["-y", "@acme/tracker@1.2.3", "x"], None),
        ("npx", ["--package", "tracker@1", "run"], None),
        ("/usr/bin/npx.cmd", ["tracker"], "tracker"),
        ("uvx", ["tracker"], "tracker"),
        ("uvx", ["tracker==1.0"], None),
        ("uvx", ["tracker@1.0"], None),
        ("uvx", ["--from", "git+https://example.com/x", "x"], None),
        ("uvx", ["--from"], None),
        ("pipx", ["run", "tracker"], "tracker"),
        ("docker", ["run", "acme/tracker:latest"], "acme/tracker:latest"),
        ("docker", ["run", "acme/tracker:1"], None),
        ("python", ["tracker.py"], None),
        ("npx", [], None),
    ],
)
def test_a_package_without_a_version_is_noticed(
    command: str, arguments: list[str], package: str | None
) -> None:
    assert unpinned(command, arguments) == package


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("uvx, args: [tracker]", "newest on PyPI is run; write `PACKAGE==VERSION` in `args`"),
        ("npx, args: [-y, tracker]", "newest on npm is run; write `PACKAGE@VERSION` in `args`"),
        (
            "docker, args: [run, 'a:latest']",
            "newest on its registry is run; write `PACKAGE:VERSION` in",
        ),
    ],
)
def test_how_a_version_is_pinned_is_said(tmp_path: Path, program: str, said: str) -> None:
    found = findings(tmp_path, f"servers: {{a: {{command: {program}, description: x}}}}")

    assert any(f"no version is pinned, so the {said}" in each for each in found)


def test_a_secret_in_the_file_is_pointed_at_but_not_quoted(tmp_path: Path) -> None:
    found = findings(
        tmp_path,
        "env: {DB_PASSWORD: correcthorse}\n"
        "servers:\n"
        "  a: {command: sh, description: x, args: [sk-0123456789], env: {API_KEY: abcdef123}}\n"
        "  b: {url: 'https://me:hunter22@example.com/', description: x}\n"
        "mcpServers:\n"
        "  c: {command: sh, description: x, env: {TOKEN: '${TOKEN:-}'}}\n",
    )

    assert [each.partition("`")[2].partition("`")[0] for each in found] == [
        *("env.DB_PASSWORD", "env.API_KEY", "args[0]", "url")
    ]
    assert not any(secret in str(found) for secret in ("abcdef123", "sk-0", "hunter22", "correct"))


@pytest.mark.parametrize(
    ("server", "finding"),
    [
        ("{command: no-such-program, description: x}", "error: a: the program `no-such-program`"),
        ("{command: sh, cwd: nowhere, description: x}", "error: a: the directory"),
        ("{command: '${NOPE}', description: x}", "error: a: the variable `NOPE` must be set"),
        ("{command: sh}", "hint: a: no `description`"),
        (
            "{url: 'http://example.com/', headers: {X-Team: a}, description: x}",
            "warning: a: headers are sent over plain HTTP",
        ),
    ],
)
def test_what_is_wrong_with_a_server_is_said(tmp_path: Path, server: str, finding: str) -> None:
    (found,) = findings(tmp_path, f"servers: {{a: {server}}}")

    assert found.startswith(finding)


def test_a_server_whose_name_is_too_like_another_is_told_what_it_is_called(tmp_path: Path) -> None:
    servers = "servers: {a-b: {command: sh, description: x%s}, a_b: {command: sh, description: x}}"

    (found,) = findings(tmp_path, servers % "")

    assert found == (
        "warning: a-b: its tools are called `a_b_d44362__…`, since those of `a_b` are called "
        "`a_b__…`; rename one of the two, or give it a `prefix`"
    )
    assert findings(tmp_path, servers % ", prefix: ab") == []


def test_files_that_others_may_touch_are_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=b\n", encoding="utf-8")
    (tmp_path / ".env").chmod(0o644)
    path = tmp_path / "servers.yaml"
    path.write_text("envFile: .env\nservers: {a: {command: sh, description: x}}", encoding="utf-8")
    path.chmod(0o666)

    found = [str(each) for each in lint(load_config(path, {}), {"PATH": "/bin"})]

    assert "can be changed by every user" in found[0]
    assert "can be read by every user" in found[1]


def test_an_address_that_has_no_parts_waits_until_all_of_the_server_is_known(
    tmp_path: Path,
) -> None:
    text = "servers:\n  a: {url: 'http://[::1', headers: {X: '${MISSING}'}}\n"
    assert not any("encryp" in each for each in findings(tmp_path, text))


def test_loopback_needs_no_encryption(tmp_path: Path) -> None:
    text = "servers: {a: {url: 'http://localhost:1/', headers: {X: y}, description: x}}"

    assert findings(tmp_path, text) == []


def test_a_server_that_is_taken_to_be_one_clients_is_named(tmp_path: Path) -> None:
    browser = "command: sh, args: [node_modules/@playwright/mcp/cli.js], description: x"
    (found,) = findings(tmp_path, f"servers: {{a: {{{browser}}}}}")

    assert found.startswith(
        "hint: a: each client that shares it gets its own process, because it drives"
    )
    assert found.endswith("; `perClient: false` gives all clients the same process")
    assert findings(tmp_path, f"servers: {{a: {{{browser}, perClient: false}}}}") == []
    assert findings(tmp_path, "servers: {a: {command: sh, perClient: true, description: x}}") == []


def test_withholding_without_a_lock_is_noticed(tmp_path: Path) -> None:
    text = f"{{drift: block, servers: {{a: {{command: {sys.executable}, description: d}}}}}}"
    words = "`drift: block` withholds nothing: there is no `servers.lock`"

    assert any(words in each for each in findings(tmp_path, text))
    (tmp_path / "servers.lock").write_text("{}", encoding="utf-8")
    assert not any(words in each for each in findings(tmp_path, text))


def test_a_client_that_is_misnamed_is_warned_of_and_one_that_is_not_known_is_not(
    tmp_path: Path,
) -> None:
    found = findings(
        tmp_path,
        "clients:\n"
        "  claud-code: promote\n"
        "  vscode: {maxResultTokens: 9000}\n"
        "  Claude-Code: relay\n"
        "  nosuch: hybrid\n"
        "  our own agent: relay\n"
        "profiles: {r: {clients: [cursor-vscod, cursor-vscode]}}\n"
        "servers: {a: {command: sh, description: x}}\n",
    )

    unknown = "no known client is called"
    own = "is not a known client; this applies to any of this name"
    assert found == [
        f"warning: `clients`: {unknown} `claud-code`. Did you mean `claude-code`?",
        f"hint: `clients`: `nosuch` {own}",
        f"hint: `clients`: `our own agent` {own}",
        f"warning: `profiles.r.clients`: {unknown} `cursor-vscod`. Did you mean `cursor-vscode`?",
    ]
