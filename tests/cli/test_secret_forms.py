"""In which forms people have secrets in their clients' files, and what only looks like one."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli.clients.vault import Vault, secrets_in
from aggregator.cli.environment import ExitStatus
from aggregator.config.variables import Expansion
from tests.cli.shell import Shell

PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END-----\n"

SECRETS: list[tuple[dict[str, Any], str]] = [
    ({"env": {"API_TOKEN": "hunter22hunter"}}, "hunter22hunter"),
    ({"env": {"GITHUB_PAT": "hunter22hunter"}}, "hunter22hunter"),
    ({"env": {"SSH_PASSPHRASE": "correct horse battery"}}, "correct horse battery"),
    ({"env": {"clientSecret": "hunter22hunter"}}, "hunter22hunter"),
    ({"env": {"ACCOUNTKEY": "hunter22hunter"}}, "hunter22hunter"),
    ({"env": {"DEPLOY": PEM}}, PEM),
    ({"env": {"SERVICE": "9f86d081884c7d659a2feaa0c55ad015"}}, "9f86d081884c7d659a2feaa0c55ad015"),
    ({"env": {"SERVICE": "xK9mP2vL8nQ4rT6wY1zB"}}, "xK9mP2vL8nQ4rT6wY1zB"),
    ({"env": {"SETUP": '{"apiKey": "hunter22hunter", "port": 80}'}}, "hunter22hunter"),
    ({"env": {"HEADERS": '{"Authorization": "Bearer hunter22"}'}}, "hunter22"),
    ({"headers": {"Authorization": "Bearer hunter22hunter"}}, "hunter22hunter"),
    ({"headers": {"Authorization": "Basic dXNlcjpwYXNz"}}, "dXNlcjpwYXNz"),
    ({"headers": {"X-Api-Key": "hunter22hunter"}}, "hunter22hunter"),
    ({"headers": {"Cookie": "session=hunter22hunter"}}, "hunter22hunter"),
    ({"headers": {"X-Workspace": "xK9mP2vL8nQ4rT6wY1zB"}}, "xK9mP2vL8nQ4rT6wY1zB"),
    ({"args": ["--api-key", "hunter22"]}, "hunter22"),
    ({"args": ["--token=hunter22"]}, "hunter22"),
    ({"args": ["--passphrase", "correct horse battery staple"]}, "correct horse battery staple"),
    ({"args": ["--header", "Authorization: Bearer hunter22hunter"]}, "hunter22hunter"),
    ({"args": ["--header=Authorization:Bearer hunter22hunter"]}, "hunter22hunter"),
    ({"args": ["-H", "X-Api-Key: hunter22hunter"]}, "hunter22hunter"),
    ({"args": ["--env=API_TOKEN=hunter22"]}, "hunter22"),
    ({"args": ["run", "-e", "API_TOKEN=hunter22", "image"]}, "hunter22"),
    ({"args": ["-u", "admin:hunter22"]}, "hunter22"),
    ({"args": ["-c", "API_KEY=hunter22 npx -y server"]}, "hunter22"),
    ({"args": ["-c", 'curl -H "Authorization: Bearer hunter22" https://a/']}, "hunter22"),
    ({"args": ["--config", '{"password":"hunter22"}']}, "hunter22"),
    ({"args": ["xK9mP2vL8nQ4rT6wY1zB"]}, "xK9mP2vL8nQ4rT6wY1zB"),
    ({"args": ["--workspace=xK9mP2vL8nQ4rT6wY1zB"]}, "xK9mP2vL8nQ4rT6wY1zB"),
    ({"args": ["ghp_0123456789abcdefghij"]}, "ghp_0123456789abcdefghij"),
    ({"args": ["postgresql://app:hunter22@db/x"]}, "hunter22"),
    ({"args": ["Server=db;User Id=sa;Password=hunter 22;Encrypt=true"]}, "hunter 22"),
    ({"env": {"STORE": "AccountName=a;AccountKey=aHVudGVyMjI=;EndpointSuffix=x"}}, "aHVudGVyMjI="),
    ({"env": {"PGCONN": "host=db password=hunter22 dbname=x"}}, "hunter22"),
    ({"env": {"JDBC": "jdbc:mysql://db/x?user=me&password=hunter22"}}, "hunter22"),
    ({"env": {"HOOK": "https://hooks.slack.com/services/T01/B02/hunter22"}}, "T01/B02/hunter22"),
    ({"args": ["https://discord.com/api/webhooks/123/hunter22"]}, "123/hunter22"),
    ({"env": {"BOT": "https://api.telegram.org/bot123:hunter22"}}, "123:hunter22"),
    (
        {"url": "https://mcp.example.com/s/3f786850e387550fdab836ed7e6dc881/mcp"},
        "3f786850e387550fdab836ed7e6dc881",
    ),
    (
        {"args": ["mcp-remote", "https://a.example/123e4567-e89b-12d3-a456-426614174000/sse"]},
        "123e4567-e89b-12d3-a456-426614174000",
    ),
    ({"url": "https://a.example/mcp?sig=hunter22hunter"}, "hunter22hunter"),
    ({"url": "https://a.example/mcp?code=xK9mP2vL8nQ4rT6wY1zB"}, "xK9mP2vL8nQ4rT6wY1zB"),
    ({"url": "https://a.example/mcp#access_token=hunter22"}, "hunter22"),
    ({"url": "https://xK9mP2vL8nQ4rT6wY1zB@a.example/mcp"}, "xK9mP2vL8nQ4rT6wY1zB"),
    ({"proxy": "http://me:hunter22@proxy:3128"}, "hunter22"),
    ({"env": {"PASSWORD": "9021000001"}}, "9021000001"),
    ({"env": {"DB_PASSWORD": "~hunter22"}}, "~hunter22"),
    ({"env": {"API_SECRET": "/hunter22"}}, "/hunter22"),
    ({"env": {"API_SECRET": ".hunter22"}}, ".hunter22"),
    ({"env": {"API_SECRET": "/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}}, "wJalrXUtnFEMI"),
    ({"args": ["--password", "9021000001"]}, "9021000001"),
    ({"args": ["-c", "run --port 8080 --api-key hunter22 --verbose"]}, "hunter22"),
    ({"args": ["-c", "run --api-key 'hunter22'; exit"]}, "hunter22"),
    ({"command": "run --token hunter22"}, "hunter22"),
    ({"args": ["--user=me:hunter22"]}, "hunter22"),
    ({"args": ["-ume:hunter22"]}, "hunter22"),
    ({"command": "mysql", "args": ["-phunter22"]}, "hunter22"),
    ({"command": "/usr/bin/sshpass", "args": ["-p", "hunter22", "ssh"]}, "hunter22"),
    ({"args": ["run", "mysql", "mysqldump", "-phunter22"]}, "hunter22"),
    ({"url": "https://a.example/api/mcp?code=hunter22"}, "hunter22"),
]

HARMLESS: list[dict[str, Any]] = [
    {"args": ["-y", "@modelcontextprotocol/server-github@2025.4.8"]},
    {"args": ["--port", "8080", "--host=127.0.0.1", "--verbose"]},
    {"args": ["/home/me/projects/Notes2024-Archive-Final3"]},
    {"args": [r"C:\Users\me\Documents\Notes2024ArchiveFinal"]},
    {"args": ["run", "-i", "--rm", "ghcr.io/github/github-mcp-server:v0.9.1"]},
    {"args": ["mcp-server-git==2025.7.1", "--repository", "path/to/git/repo"]},
    {"args": ["--from", "git+https://github.com/o/r@3f786850e387550fdab836ed7e6dc881de23001b"]},
    {"args": ["--commit", "3f786850e387550fdab836ed7e6dc881de23001b"]},
    {"args": ["--project-id=123e4567-e89b-12d3-a456-426614174000"]},
    {"args": ["--header", "Accept: application/json, text/event-stream"]},
    {"args": ["--header", "Authorization: Bearer ${TOKEN}"]},
    {"args": ["-e", "GITHUB_TOKEN", "-e", "API_KEY", "image"]},
    {"args": ["--allow-tools=read_graph,create_entities"]},
    {"args": ["-c", "cd /srv && exec node server.js --port=3000"]},
    {"args": ["uvicorn", "main:app", "--reload"]},
    {"env": {"LOG_LEVEL": "debug", "NODE_ENV": "production", "PORT": "3000"}},
    {"env": {"NODE_OPTIONS": "--max-old-space-size=4096 --no-warnings"}},
    {"env": {"MAX_TOKENS": "4096", "TOKENIZERS_PARALLELISM": "false"}},
    {"env": {"AWS_REGION": "eu-central-1", "LANG": "en_US.UTF-8", "TZ": "Europe/Berlin"}},
    {"env": {"TOKEN_URL": "https://login.example.com/oauth2/token"}},
    {"env": {"KEY_FILE": "/run/secrets/key", "CERT_KEY_PATH": "certs/key.pem"}},
    {"env": {"AUTH_METHOD": "device-code", "SECRET_NAME": "prod/database"}},
    {"env": {"AZURE_TENANT_ID": "123e4567-e89b-12d3-a456-426614174000"}},
    {"env": {"MODEL": "claude-sonnet-4-20250514", "EMBEDDINGS": "text-embedding-3-large"}},
    {"env": {"CHANNEL": "123456789012345678", "AUTHOR": "Jane Doe <jane@example.com>"}},
    {"env": {"DATABASE_URL": "postgres://localhost:5432/notes?sslmode=require"}},
    {"env": {"REDIS": "redis://cache:6379/0", "DB": "Host=localhost;Port=5432;Database=notes"}},
    {"env": {"GLOB": "**/*.{ts,tsx}", "SINCE": "2026-01-01T00:00:00Z", "MONKEY": "see no evil"}},
    {"headers": {"Content-Type": "application/json", "X-MCP-Toolsets": "repos,issues,actions"}},
    {"headers": {"MCP-Protocol-Version": "2025-11-25", "User-Agent": "notes/1.2 (+https://a.b)"}},
    {"url": "https://api.githubcopilot.com/mcp/x/pull_requests/readonly"},
    {"url": "https://docs.example.com/getting-started-with-everything?q=send+mail&page=2"},
    {"url": "http://localhost:8080/mcp", "cwd": "~/work/notes-2024"},
    {"args": ["run", "-u", "1000:1000", "-u1000:1000", "-p", "8080:80", "-pv", "image"]},
    {"args": ["-c", "run --token-file /run/token --secret ./secret.txt --password $PASSWORD"]},
    {"env": {"DB_PASSWORD": "/run/secrets/db", "API_TOKEN": "~/token", "PASSWORD": "./pw.txt"}},
    {"env": {"GITHUB_TOKEN": "${TOKEN:-}", "LEVEL": "${LEVEL:-production}"}},
    {"command": "mysql", "args": ["-p", "--user=root", 7]},
    {"command": "/opt/homebrew/bin/node", "description": "Notes: find, write and share them"},
]


def test_there_are_enough_of_them() -> None:
    assert len(SECRETS) >= 26
    assert len(HARMLESS) >= 20


@pytest.mark.parametrize(("entry", "secret"), SECRETS, ids=lambda each: str(each)[:60])
def test_a_secret_of_every_form_becomes_a_reference(entry: dict[str, Any], secret: str) -> None:
    vault = Vault({})

    emptied = vault.emptied("web", entry)

    assert secret not in json.dumps(emptied).encode().decode("unicode_escape")
    assert any(secret in value for value in vault.taken.values())
    # What stands in its place means the same to the server.
    expansion = Expansion(vault.taken)
    assert {key: expansion.expand(each, ()) for key, each in emptied.items()} == entry
    assert expansion.missing == {}
    assert any(secret in each for each in secrets_in(entry))


@pytest.mark.parametrize("entry", HARMLESS, ids=lambda each: str(each)[:60])
def test_what_is_no_secret_stays_as_it_is(entry: dict[str, Any]) -> None:
    vault = Vault({})

    assert vault.emptied("web", entry) == entry
    assert vault.taken == {}


@pytest.mark.parametrize(
    "entry",
    [
        {"env": {"PASSWORD": "${X:-hunter22}"}},
        {"env": {"SETTING": "a ${DB_PASSWORD:-hunter22} b"}},
        {"headers": {"Authorization": "Bearer ${X:-hunter22}"}},
        {"args": ["--token", "${X:-hunter22}"]},
        {"args": ["--token=${X:-hunter22}"]},
        {"url": "https://a.example/${API_TOKEN:-hunter22}/mcp"},
    ],
    ids=str,
)
def test_a_secret_that_stands_in_for_a_variable_becomes_a_reference(entry: dict[str, Any]) -> None:
    vault = Vault({})

    emptied = vault.emptied("web", entry)

    assert "hunter22" not in str(emptied)
    assert list(vault.taken.values()) == ["hunter22"]
    before, after = Expansion({}), Expansion(vault.taken)
    assert [before.expand(entry[key], ()) for key in entry] == [
        after.expand(emptied[key], ()) for key in entry
    ]


def test_a_password_that_is_a_number_becomes_a_reference() -> None:
    vault = Vault({})

    emptied = vault.emptied("web", {"env": {"PIN_TOKEN": 90210009, "PORT": 8080, "TTY": True}})

    assert emptied == {"env": {"PIN_TOKEN": "${PIN_TOKEN}", "PORT": 8080, "TTY": True}}
    assert vault.taken == {"PIN_TOKEN": "90210009"}


@pytest.mark.no_cover
def test_no_secret_is_in_the_file_or_on_the_terminal_after_an_import(shell: Shell) -> None:
    entries = [(entry, secret) for entry, secret in SECRETS if "proxy" not in entry]
    servers = {
        f"server{number}": entry
        if "url" in entry or "headers" in entry
        else {"command": "x", **entry}
        for number, (entry, _) in enumerate(entries)
    }
    for entry in servers.values():
        if "headers" in entry:
            entry.setdefault("url", "https://example.com/mcp")
    path = shell.project / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")

    ran = shell.run("import", str(path), "--into", "servers.yaml", "--yes")

    written = (shell.project / "servers.yaml").read_text(encoding="utf-8")
    for _entry, secret in entries:
        for text in (written, ran.out, ran.err):
            assert secret not in text


def with_secret(shell: Shell) -> Path:
    path = shell.project / "mcp.json"
    server = {"command": "x", "env": {"API_TOKEN": "hunter22hunter"}}
    path.write_text(json.dumps({"mcpServers": {"web": server}}), encoding="utf-8")
    return path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o640, 0o400 | 0o200 | 0o004])
def test_an_env_file_that_others_could_read_is_private_afterwards(shell: Shell, mode: int) -> None:
    env_file = shell.project / ".env"
    env_file.write_text("OLDER=1\n", encoding="utf-8")
    env_file.chmod(mode)

    ran = shell.run("import", str(with_secret(shell)), "--into", "servers.yaml", "--yes")

    assert ran.status is ExitStatus.FINE
    assert mode_of(env_file) == 0o600
    assert env_file.read_text(encoding="utf-8") == "OLDER=1\nAPI_TOKEN=hunter22hunter\n"


def test_no_secret_goes_through_a_link_to_what_others_can_read(shell: Shell) -> None:
    shared = shell.home / "shared.env"
    shared.write_text("OLDER=1\n", encoding="utf-8")
    shared.chmod(0o644)
    (shell.project / ".env").symlink_to(shared)
    source = with_secret(shell)

    refused = shell.run("import", str(source), "--into", "servers.yaml", "--yes")

    assert refused.status is ExitStatus.ERROR
    assert "which others can read; no secret goes there" in refused.err
    assert f"chmod 600 {shared}" in refused.err
    assert shared.read_text(encoding="utf-8") == "OLDER=1\n"
    assert not (shell.project / "servers.yaml").exists()

    shared.chmod(0o600)
    ran = shell.run("import", str(source), "--into", "servers.yaml", "--yes")

    assert ran.status is ExitStatus.FINE
    assert "API_TOKEN=hunter22hunter" in shared.read_text(encoding="utf-8")
    assert mode_of(shared) == 0o600
    assert (shell.project / ".env").is_symlink()


def test_what_goes_on_over_lines_is_not_shown_in_part(shell: Shell) -> None:
    env_file = shell.project / ".env"
    env_file.write_text('PEM="first\nc2Vjb25kLXBhcnQ=\nlast"\nOLDER=1\n', encoding="utf-8")

    ran = shell.run("import", str(with_secret(shell)), "--into", "servers.yaml", "--yes")

    assert "c2Vjb25k" not in ran.out
    assert "+API_TOKEN=***" in ran.out


@pytest.mark.parametrize(
    ("entry", "expected", "taken"),
    [
        (
            {"command": "sh", "args": ["-c", "API_TOKEN=hunter22 node x.js"]},
            {"command": "sh", "args": ["-c", "API_TOKEN=${S_API_TOKEN} node x.js"]},
            {"S_API_TOKEN": "hunter22"},
        ),
        (
            {"command": "bash", "args": ["-lc", "export API_TOKEN='hunter 22'; A=1 node x.js"]},
            {
                "command": "bash",
                "args": ["-lc", "export API_TOKEN='${S_API_TOKEN}'; A=1 node x.js"],
            },
            {"S_API_TOKEN": "hunter 22"},
        ),
        (
            {"url": "https://a.example/mcp?k=hunter22&page=second"},
            {"url": "https://a.example/mcp?k=${S_K}&page=second"},
            {"S_K": "hunter22"},
        ),
        (
            {"env": {"API_TOKEN": "hunter22${REGION}retnuh"}},
            {"env": {"API_TOKEN": "${S_API_TOKEN}${REGION}${S_API_TOKEN_2}"}},
            {"S_API_TOKEN": "hunter22", "S_API_TOKEN_2": "retnuh"},
        ),
        (
            {"headers": {"Authorization": "Bearer hunter22${REST}"}},
            {"headers": {"Authorization": "Bearer ${S_AUTHORIZATION}${REST}"}},
            {"S_AUTHORIZATION": "hunter22"},
        ),
        (
            {"args": ["--token=hunter22${REST}"]},
            {"args": ["--token=${S_TOKEN}${REST}"]},
            {"S_TOKEN": "hunter22"},
        ),
        (
            {"headers": {"Authorization": "Bearer ${TOKEN}"}},
            {"headers": {"Authorization": "Bearer ${TOKEN}"}},
            {},
        ),
    ],
)
def test_only_the_secret_part_of_a_value_is_taken_out(
    entry: dict[str, Any], expected: dict[str, Any], taken: dict[str, str]
) -> None:
    vault = Vault({})

    assert vault.emptied("s", entry) == expected
    assert vault.taken == taken
