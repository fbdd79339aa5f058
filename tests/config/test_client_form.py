"""A file in the form that clients write is accepted as it is."""

import json
from pathlib import Path
from typing import Any

import pytest

from aggregator.config import Config, ServerConfig
from aggregator.names import ServerName
from tests.config.reading import PATH, config_of


def config_with(entry: dict[str, Any], **environ: str) -> Config:
    return config_of(json.dumps({"mcpServers": {"one": entry}}), **environ)


def server_with(entry: dict[str, Any], **environ: str) -> ServerConfig:
    return config_with(entry, **environ).servers[ServerName("one")]


def test_a_file_of_claude_desktop_is_read() -> None:
    text = """
{
\t"globalShortcut": "Ctrl+Space",
\t"mcpServers": {
\t\t"GitHub Tools": {
\t\t\t"command": "npx",
\t\t\t"args": ["-y", "server-github", "\\/path", "\\ud83d\\ude00"],
\t\t\t"env": {"TOKEN": "${KEY}", "LEVEL": 3, "DEBUG": true}
\t\t}
\t}
}
"""
    config = config_of(text, KEY="t0ken")
    assert config.servers[ServerName("GitHub Tools")] == ServerConfig(
        name=ServerName("GitHub Tools"),
        prefix="GitHub_Tools",
        command="npx",
        args=("-y", "server-github", "/path", "\N{GRINNING FACE}"),
        env={"TOKEN": "t0ken", "LEVEL": "3", "DEBUG": "true"},
        cwd=PATH.parent,
    )
    assert config.warnings == ("Ignored, as it means nothing here: `globalShortcut`",)


def test_what_means_nothing_is_warned_of() -> None:
    config = config_with({"command": "x", "autoApprove": ["a"], "alwaysAllow": [], "trust": True})
    assert config.warnings == (
        "`one`: ignored, as it means nothing here: `autoApprove`, `alwaysAllow`, `trust`",
    )


def test_a_long_list_of_foreign_keys_is_cut() -> None:
    text = json.dumps({"mcpServers": {"a": {"command": "x"}}} | {f"k{at}": 1 for at in range(11)})
    assert config_of(text).warnings == (
        "Ignored, as it means nothing here: "
        + ", ".join(f"`k{at}`" for at in range(8))
        + " and 3 more",
    )


@pytest.mark.parametrize(("written", "enabled"), [(True, False), (False, True)])
def test_disabled_is_the_opposite_of_enabled(written: bool, enabled: bool) -> None:
    assert server_with({"command": "x", "disabled": written}).enabled is enabled


@pytest.mark.parametrize(("written", "seconds"), [(60000, 60), (60, 60), (1500, 1.5), ("2m", 120)])
def test_a_timeout_is_in_milliseconds_unless_it_cannot_be(
    written: float | str, seconds: float
) -> None:
    assert server_with({"command": "x", "timeout": written}).call_timeout == seconds


@pytest.mark.parametrize("key", ["url", "httpUrl", "serverUrl"])
def test_an_address_has_many_names(key: str) -> None:
    server = server_with({key: "https://h/mcp", "headers": {"A": "b"}})
    assert (server.type, server.url, server.headers) == ("http", "https://h/mcp", {"A": "b"})


@pytest.mark.parametrize(
    ("written", "kind"),
    [("http", "http"), ("streamableHttp", "http"), ("streamable-http", "http"),
     ("remote", "http"), ("sse", "sse")],
)  # fmt: skip
def test_the_kind_of_an_address_has_many_names(written: str, kind: str) -> None:
    assert server_with({"url": "https://h", "type": written}).type == kind


def test_a_local_server_in_one_array_is_read() -> None:
    server = server_with(
        {"type": "local", "command": ["bun", "x"], "environment": {"A": "b"}, "enabled": True}
    )
    assert (server.type, server.command, server.args, server.env) == (
        "stdio",
        "bun",
        ("x",),
        {"A": "b"},
    )


def test_keys_without_meaning_beside_an_address_are_dropped() -> None:
    config = config_with({"url": "https://h", "args": [], "env": {"A": "b"}, "cwd": ""})
    assert config.warnings == ("`one`: ignored, as it means nothing here: `env`",)


def test_headers_beside_a_command_are_dropped() -> None:
    config = config_with({"command": "x", "headers": {"A": "b"}})
    assert config.warnings == ("`one`: ignored, as it means nothing here: `headers`",)


@pytest.mark.parametrize(
    ("keys", "allowed"),
    [
        ({"tools": ["*"]}, {"read", "write"}),
        ({"tools": ["read"]}, {"read"}),
        ({"tools": []}, set[str]()),
        ({"tools": {"deny": ["read"]}}, {"write"}),
        ({"includeTools": ["read"]}, {"read"}),
        ({"includeTools": []}, {"read", "write"}),
        ({"excludeTools": ["read"]}, {"write"}),
        ({"includeTools": ["read", "write"], "disabledTools": ["write"]}, {"read"}),
    ],
)
def test_the_tools_a_client_offers_are_those_we_offer(
    keys: dict[str, Any], allowed: set[str]
) -> None:
    server = server_with({"command": "x"} | keys)
    assert {tool for tool in ("read", "write") if server.allows(tool)} == allowed


def test_our_own_keys_work_there_too() -> None:
    server = server_with({"command": "x", "description": "Notes", "alwaysLoad": True})
    assert (server.description, server.always_load) == ("Notes", True)


@pytest.mark.parametrize(
    ("written", "expanded"),
    [
        ("${A}", "one"),
        ("${env:A}", "one"),
        ("${NO:-two}", "two"),
        ("${workspaceFolder}/x", f"{PATH.parent}/x"),
        ("${userHome}/x", f"{Path.home()}/x"),
        ("pa$$word", "pa$$word"),
        ("${unclosed", "${unclosed"),
        ("${file:/x}", "${file:/x}"),
    ],
)
def test_the_variables_of_clients_are_understood(written: str, expanded: str) -> None:
    assert server_with({"command": "x", "args": [written]}, A="one").args == (expanded,)


def test_what_a_client_would_ask_for_is_a_problem_of_that_server() -> None:
    server = server_with({"command": "x", "env": {"A": "${input:token}"}})
    assert server.problem == (
        "`${input:token}` is asked for by a client; write a variable such as `${TOKEN}`"
    )


def test_a_list_of_named_servers_is_read() -> None:
    config = config_of("mcpServers:\n  - name: one\n    command: x\n  - {name: two, command: y}\n")
    assert [(server.name, server.command) for server in config.servers.values()] == [
        ("one", "x"),
        ("two", "y"),
    ]


def test_both_forms_may_stand_in_one_file() -> None:
    text = "servers: {a: {command: x}}\nmcpServers: {b: {command: y, disabled: true}}\nwatch: false"
    config = config_of(text)
    assert list(config.servers) == ["a", "b"]
    assert not config.settings.watch


def test_what_stands_inside_a_transport_is_read() -> None:
    """So Cline's own program writes it."""
    transport = {"type": "streamableHttp", "url": "https://a.example/mcp", "headers": {"X": "1"}}

    server = server_with({"transport": transport, "timeout": 60})

    assert (server.type, server.url, server.headers) == ("http", transport["url"], {"X": "1"})
    assert server.call_timeout == 60
