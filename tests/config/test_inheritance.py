"""What of our environment servers are given."""

import re
from pathlib import Path

import pytest

from aggregator.config.inheritance import NECESSITIES, TABLE, Environment
from aggregator.names import ServerName
from tests.config.reading import config_of, server_of

PAGE = Path(__file__).parents[2] / "docs" / "environment.md"


def given(text: str, **environ: str) -> dict[str, str]:
    """Return what the one server of a file inherits."""
    return dict(config_of(text, **environ).servers[ServerName("one")].inherited)


ONE = "servers: {one: {command: x}}"


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"),
        *("HTTPS_PROXY", "https_proxy", "no_proxy", "NO_PROXY", "all_proxy"),
        *("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("DISPLAY", "WAYLAND_DISPLAY", "SSH_AUTH_SOCK", "DOCKER_HOST", "DOCKER_CONFIG"),
        *(
            "npm_config_registry",
            "NPM_CONFIG_CACHE",
            "UV_INDEX_URL",
            "PIP_INDEX_URL",
            "UV_CACHE_DIR",
        ),
        *("SystemRoot", "APPDATA", "ProgramFiles(x86)", "PATHEXT"),
    ],
)
def test_what_programs_need_to_run_here_is_passed_on(name: str) -> None:
    assert given(ONE, **{name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, "x")
            for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "EDITOR", "PYTHONPATH")
        ),
        *((name, "x") for name in ("npm_config__authToken", "NPM_CONFIG__AUTHTOKEN")),
        ("npm_config_//registry.npmjs.org/:_authToken", "x"),
        ("npm_config__auth", "x"),
        ("npm_config__password", "x"),
        ("UV_INDEX_CORP_PASSWORD", "x"),
        ("UV_PUBLISH_TOKEN", "x"),
        ("YARN_NPM_AUTH_TOKEN", "x"),
        ("PIP_INDEX_URL", "https://me:hunter2@pypi.example/simple"),
        ("UV_INDEX", "corp=https://ghp_abcdefghijklmnop@pypi.example/simple"),
        ("PIP_LOG", "ghp_abcdefghijklmnop"),
        ("PUPPETEER_WS_ENDPOINT", "wss://browser.example/?token=hunter2"),
        ("PLAYWRIGHT_SERVICE_URL", "wss://browser.example/x?region=eu&accessKey=hunter2"),
        ("npm_config_otp", "123456"),
        ("PATH", "() { :; }; echo"),
        ("AGGREGATOR_TOKEN", "x"),
    ],
)
def test_what_looks_like_a_secret_or_concerns_nobody_is_not(name: str, value: str) -> None:
    assert given(ONE, **{name: value}) == {}


def test_a_proxy_is_named_in_the_table_and_so_keeps_its_password() -> None:
    """Without it nothing would be reached; its name says that it is for every program."""
    proxy = {"HTTPS_PROXY": "http://me:hunter2@proxy.example:3128"}

    assert given(ONE, **proxy) == proxy


def test_globs_that_a_person_writes_do_what_they_say() -> None:
    environ = {"HOME": "/h", "AWS_SECRET_ACCESS_KEY": "x", "aws_profile": "y", "GITHUB_TOKEN": "z"}

    assert given("inheritEnv: ['AWS_*']\n" + ONE, **environ) == {
        "HOME": "/h",
        "AWS_SECRET_ACCESS_KEY": "x",
        "aws_profile": "y",
    }


def test_true_is_everything_but_what_is_ours_and_false_is_the_least() -> None:
    environ = {"HOME": "/h", "LANG": "C", "GITHUB_TOKEN": "z", "AGGREGATOR_TOKEN": "ours"}

    assert given("inheritEnv: true\n" + ONE, **environ) == {
        "HOME": "/h",
        "LANG": "C",
        "GITHUB_TOKEN": "z",
    }
    assert given("inheritEnv: false\n" + ONE, **environ) == {"HOME": "/h"}


def test_what_a_server_says_stands_in_the_place_of_what_the_top_says() -> None:
    text = (
        "inheritEnv: [A]\n"
        "servers: {one: {command: x, inheritEnv: B}, two: {command: x}, three: {url: 'http://x'}}"
    )

    config = config_of(text, A="a", B="b", LANG="C")

    inherited = [dict(server.inherited) for server in config.servers.values()]
    assert inherited == [{"B": "b", "LANG": "C"}, {"A": "a", "LANG": "C"}, {}]


def test_variables_at_the_top_are_given_to_every_program_and_a_server_has_the_last_word() -> None:
    text = (
        "env: {LEVEL: '${LEVEL}', MODE: a}\n"
        "servers: {one: {command: x, env: {MODE: b}}, two: {url: 'http://x'}}"
    )

    config = config_of(text, LEVEL="debug")

    assert [dict(server.env) for server in config.servers.values()] == [
        {"LEVEL": "debug", "MODE": "b"},
        {},
    ]


def test_the_file_at_the_top_is_as_good_as_the_environment(tmp_path: Path) -> None:
    """Secrets for one server are in it, too: they go where they are named, and nowhere else."""
    file = tmp_path / ".env"
    file.write_text("HTTPS_PROXY=http://proxy\nLANG=de\nGITHUB_TOKEN=x\nDEBUG=1\n", "utf-8")
    head = f"envFile: {file}\n"

    usual = given(head + ONE, LANG="fr")
    asked = given(head + "inheritEnv: [DEBUG]\n" + ONE, LANG="fr")

    assert usual == {"HTTPS_PROXY": "http://proxy", "LANG": "fr"}
    assert asked == {**usual, "DEBUG": "1"}


def test_what_is_inherited_is_not_in_the_representation() -> None:
    assert "hunter2" not in repr(server_of("command: x", HTTPS_PROXY="http://me:hunter2@proxy"))


def test_every_server_without_wishes_is_given_the_same() -> None:
    environment = Environment({"HOME": "/h", "LANG": "C"})

    assert environment.inherited(()) == environment.inherited(()) == {"HOME": "/h", "LANG": "C"}


def test_the_page_has_the_whole_table() -> None:
    page = PAGE.read_text(encoding="utf-8")

    rows = re.findall(r"^\| ([^|`]+) \| (`.*`) \|$", page, re.MULTILINE)

    shown = {need.reason: ", ".join(f"`{name}`" for name in need.names) for need in TABLE}
    assert dict(rows) == shown
    assert [reason for reason, _ in rows[: len(NECESSITIES)]] == [each[0] for each in NECESSITIES]
