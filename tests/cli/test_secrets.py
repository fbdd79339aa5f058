"""Secrets are told from settings, and variables of every client become references."""

from pathlib import Path
from typing import Any

import pytest

from aggregator.cli.clients.dialects import Dialect
from aggregator.cli.clients.vault import Vault, env_lines, references, secrets_in
from aggregator.config.dotenv import read_env_file
from aggregator.config.variables import expand
from aggregator.secrecy import is_secret, secret_arguments

EVERY_WAY = ("env", "braces", "place", "input", "file", "bare", "percent", "curly", "secrets")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "abcdef123456"),
        ("githubToken", "abcdef123456"),
        ("Authorization", "Bearer abcdef123456"),
        ("X-Api-Key", "abcdef123456"),
        ("DB_PASSWORD", "hunter22"),
        ("ANYTHING", "ghp_0123456789abcdef"),
        ("ANYTHING", "sk-proj-0123456789"),
        ("ANYTHING", "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl"),
    ],
)
def test_a_secret_is_known_by_its_name_or_its_look(name: str, value: str) -> None:
    assert is_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "${API_KEY}"),
        ("Authorization", "Bearer ${TOKEN}"),
        ("TOKEN_LIMIT", "100000"),
        ("KEY_FILE", "/etc/keys/mine"),
        ("MONKEY", "see no evil"),
        ("LEVEL", "information"),
        ("USE_AUTH", "true"),
        ("PASSWORD", "short"),
        ("COMPASS", "north-north-west"),
    ],
)
def test_a_setting_is_not_taken_for_a_secret(name: str, value: str) -> None:
    assert not is_secret(name, value)


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("${TOKEN}", "${TOKEN}"),
        ("${TOKEN:-a b}", "${TOKEN:-a b}"),
        ("${A:-${B}}", "${A:-${B}}"),
        ("${env:TOKEN}", "${TOKEN}"),
        ("$TOKEN/x", "${TOKEN}/x"),
        ("%TOKEN%", "${TOKEN}"),
        ("{env:TOKEN}", "${TOKEN}"),
        ("${{ secrets.TOKEN }}", "${TOKEN}"),
        ("${input:my-token}", "${MY_TOKEN}"),
        ("${file:/run/my-token}", "${MY_TOKEN}"),
        ("{file:~/my-token.txt}", "${MY_TOKEN}"),
        ("${userHome}/x", "${HOME}/x"),
        ("${workspaceFolder}/x", "/work/app/x"),
        ("${workspaceFolderBasename}", "app"),
        ("a${/}b", "a/b"),
        ("50$ and 5%", "50$ and 5%"),
        ("${not a variable}", "$${not a variable}"),
        ("a$$b", "a$$${b}"),
        ("a$$", "a$$$"),
    ],
)
def test_each_way_to_write_a_variable_becomes_ours(written: str, ours: str) -> None:
    dialect = Dialect(EVERY_WAY, Path("/home/me"), Path("/work/app"))

    assert dialect.translate(written) == ours


def test_where_there_are_no_variables_nothing_is_one() -> None:
    dialect = Dialect((), Path("/home/me"), Path("/work/app"))

    assert dialect.translate("${HOME} $HOME {env:HOME}") == "$${HOME} $HOME {env:HOME}"


def test_secrets_leave_every_part_of_a_server() -> None:
    vault = Vault({"API_KEY": "of another server"})

    emptied = vault.emptied(
        "git-hub",
        {
            "command": "x",
            "args": ["--token", "tttttttt", "--key=kkkkkkkk", "sk-0123456789", "--port", "8080"],
            "env": {"API_KEY": "aaaaaaaa", "LEVEL": "info"},
            "headers": {"Authorization": "Bearer bbbbbbbb", "X-Api-Key": "cccccccc"},
            "url": "https://me:pppppppp@example.com/mcp?api_key=qqqqqqqq&page=1",
        },
    )

    assert emptied == {
        "command": "x",
        "args": [
            *("--token", "${GIT_HUB_TOKEN_2}", "--key=${GIT_HUB_KEY}", "${GIT_HUB_SECRET}"),
            *("--port", "8080"),
        ],
        "env": {"API_KEY": "${GIT_HUB_API_KEY}", "LEVEL": "info"},
        "headers": {
            "Authorization": "Bearer ${GIT_HUB_TOKEN}",
            "X-Api-Key": "${GIT_HUB_X_API_KEY}",
        },
        "url": "https://me:${GIT_HUB_PASSWORD}@example.com/mcp?api_key=${GIT_HUB_API_KEY_2}&page=1",
    }
    assert set(vault.taken.values()) == {
        *("tttttttt", "kkkkkkkk", "sk-0123456789", "aaaaaaaa"),
        *("bbbbbbbb", "cccccccc", "pppppppp", "qqqqqqqq"),
    }


@pytest.mark.parametrize(
    ("written", "emptied", "taken"),
    [
        ("postgresql://app:hunter2@db/x", "postgresql://app:${DB_PASSWORD}@db/x", "hunter2"),
        ("https://admin1:admin@db/admin", "https://admin1:${DB_PASSWORD}@db/admin", "admin"),
        ("redis://:p%40ss%2Fw@db:6379", "redis://:${DB_PASSWORD}@db:6379", "p%40ss%2Fw"),
        ("amqp://u:p@ss@db", "amqp://u:${DB_PASSWORD}@db", "p@ss"),
        ("mongodb://u:pw@a:1,b:2/x", "mongodb://u:${DB_PASSWORD}@a:1,b:2/x", "pw"),
        ("--db=mysql://u:pw@db", "--db=mysql://u:${DB_PASSWORD}@db", "pw"),
        ("psql pg://u:pw@db/x -c 1", "psql pg://u:${DB_PASSWORD}@db/x -c 1", "pw"),
        ("pg://${U:-me}:pw@db", "pg://${U:-me}:${DB_PASSWORD}@db", "pw"),
        ("${URL:-pg://u:pw@db}", "${URL:-pg://u:${DB_PASSWORD}@db}", "pw"),
        ("pg://u:a$${b@db", "pg://u:${DB_PASSWORD}@db", "a${b"),
        ("http://[db:pw@x", "http://[db:${DB_PASSWORD}@x", "pw"),
        ("https://db/?apiKey=a%2Fbcdefg", "https://db/?apiKey=${DB_APIKEY}", "a%2Fbcdefg"),
        (
            "https://db/?x=longer&token=longer#y",
            "https://db/?x=longer&token=${DB_TOKEN}#y",
            "longer",
        ),
    ],
)
def test_a_password_leaves_an_address_wherever_it_stands(
    written: str, emptied: str, taken: str
) -> None:
    for entry, expected in everywhere(written, emptied):
        vault = Vault({})
        assert vault.emptied("db", entry) == expected
        assert list(vault.taken.values()) == [taken]
        assert taken in secrets_in(entry)
        assert expand(emptied, {**vault.taken, "U": "me"}) == expand(written, {"U": "me"})


@pytest.mark.parametrize(
    "written",
    [
        "postgresql://app:${DB_PASSWORD}@db/x",
        "postgresql://${DB_USER}:${DB_PASSWORD:-a@b}@db/x",
        "postgresql://${DB_USER:-a:b}@db/x",
        "postgresql://app@db/x",
        "postgresql://app:@db/x",
        "http://localhost:8080/users/me@example.com",
        "http://localhost:8080 me@example.com",
        "@acme/server:1@2.0.0",
        "https://db/?token=${DB_TOKEN}&page=longer",
    ],
)
def test_an_address_without_a_password_stays_as_it_is(written: str) -> None:
    vault = Vault({})

    for entry, expected in everywhere(written, written):
        assert vault.emptied("db", entry) == expected
    assert vault.taken == {}


def everywhere(written: str, emptied: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return a server for each place where an address may stand, as it is and as it is to be."""
    return [
        ({"url": written}, {"url": emptied}),
        ({"args": ["-v", written]}, {"args": ["-v", emptied]}),
        ({"env": {"DATABASE_URL": written}}, {"env": {"DATABASE_URL": emptied}}),
        ({"headers": {"X-Upstream": written}}, {"headers": {"X-Upstream": emptied}}),
    ]


def test_secrets_leave_a_command_that_holds_its_arguments() -> None:
    vault = Vault({})

    emptied = vault.emptied(
        "pg",
        {"command": ["x", "-e", "LEVEL=info", "-e", "KEY=kkkkkkkk", "--token", "tttttttt"]},
    )

    assert emptied == {
        "command": ["x", "-e", "LEVEL=info", "-e", "KEY=${PG_KEY}", "--token", "${PG_TOKEN}"]
    }
    assert vault.taken == {"PG_KEY": "kkkkkkkk", "PG_TOKEN": "tttttttt"}


def test_what_is_not_a_text_stays_as_it_is() -> None:
    entry = {"env": {"API_KEY": None}, "headers": {"X-Api-Key": None}, "args": [None]}

    assert Vault({}).emptied("a", entry) == entry


def test_each_password_has_a_variable_of_its_own() -> None:
    vault = Vault({"A_PASSWORD": "of another"})
    two = {"args": ["pg://u:first@x", "pg://u:second@x"], "env": {"URL": "pg://u:first@y"}}

    of_a, of_b = vault.emptied("a", two), vault.emptied("b", two)

    assert of_a["args"] == ["pg://u:${A_PASSWORD_2}@x", "pg://u:${A_PASSWORD_3}@x"]
    assert of_a["env"] == {"URL": "pg://u:${A_PASSWORD_2}@y"}
    assert of_b["args"] == ["pg://u:${B_PASSWORD}@x", "pg://u:${B_PASSWORD_2}@x"]


def test_the_same_secret_is_kept_once() -> None:
    vault = Vault({"API_KEY": "aaaaaaaa"})

    emptied = vault.emptied("a", {"env": {"API_KEY": "aaaaaaaa"}})

    assert emptied == {"env": {"API_KEY": "${API_KEY}"}}
    assert vault.taken == {}


def test_an_env_file_gives_back_what_was_put_in(tmp_path: Path) -> None:
    variables = {
        "PLAIN": "abc-123",
        "SPACED": "a b # c",
        "QUOTED": 'say "hi" \\ there',
        "LINES": "one\ntwo\tthree",
        "DOLLAR": "a$b",
    }
    path = tmp_path / ".env"
    path.write_text(env_lines(variables), encoding="utf-8")

    assert read_env_file(path) == variables


def test_every_secret_of_a_file_is_known_before_it_is_shown() -> None:
    tree = {
        "servers": [{"args": ["--token=tttttttt"], "url": "https://a:pppppppp@b/"}],
        "nested": {"env": {"API_KEY": "Bearer kkkkkkkk"}},
        "number": 3,
    }

    assert {"tttttttt", "pppppppp", "kkkkkkkk"} <= secrets_in(tree)


def test_the_name_of_a_variable_is_no_secret_but_a_secret_in_its_place_is() -> None:
    named = {
        "bearer_token_env_var": "GITHUB_TOKEN",
        "env_http_headers": {"X-Api-Key": "API_KEY"},
        "env_vars": ["API_KEY", "GITHUB_TOKEN"],
    }

    assert secrets_in(named) == set()
    for mistaken in ("ghp_0123456789abcdef", "AKIA0123456789ABCDEF", "abcdef123456"):
        assert secrets_in({"bearer_token_env_var": mistaken}) == {mistaken}


def test_every_variable_that_a_server_refers_to_is_known() -> None:
    entry = {"args": ["${A}/$${B}", "$$${C:-${D}}"], "env": {"E": "${E}"}, "timeout": 3}

    assert references(entry) == {"A", "C", "D", "E"}


def test_secrets_are_found_among_the_arguments_of_a_command() -> None:
    arguments = ["-m", "server", "--token", "abcdef123456", "--api-key=ghijkl789012", "--port=8080"]

    assert list(secret_arguments(arguments)) == [
        ("--token", "abcdef123456"),
        ("--api-key", "ghijkl789012"),
    ]


def test_a_variable_that_is_set_to_something_else_is_not_taken_for_the_secret() -> None:
    """The environment wins over an env file, and would replace it without a word."""
    vault = Vault({}, set_here={"API_KEY": "of the shell", "HUB_API_KEY": "s3cret-value"})

    entry = vault.emptied("hub", {"env": {"API_KEY": "s3cret-value"}})

    assert entry == {"env": {"API_KEY": "${HUB_API_KEY}"}}
    assert vault.taken == {"HUB_API_KEY": "s3cret-value"}
