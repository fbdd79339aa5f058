"""Logins as other clients write them down."""

import json
from pathlib import Path

import pytest
import yaml

from aggregator.cli.environment import ExitStatus
from aggregator.config import parse_config
from aggregator.config.client_oauth import translate_oauth
from aggregator.config.document import Value
from aggregator.config.oauth import OAuth
from aggregator.names import ServerName
from tests.downstream.login.test_commands import Seat


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("false", "false"),
        ("oauth", None),
        ({}, None),
        ({"enabled": "true"}, None),
        ({"enabled": "false", "clientId": "x"}, "false"),
        (
            {"clientId": "x", "callbackPort": "3118"},
            {"clientId": "x", "redirectUri": "http://localhost:3118/callback"},
        ),
        (
            {"CLIENT_ID": "x", "CLIENT_SECRET": "y", "scopes": ["a", "b"], "odd": "z"},
            {"clientId": "x", "clientSecret": "y", "scopes": ["a", "b"]},
        ),
        ({"client_id": "x", "scope": "a b"}, {"clientId": "x", "scopes": ["a", "b"]}),
    ],
)
def test_a_login_of_a_client_is_understood(written: Value, ours: Value) -> None:
    assert translate_oauth(written) == ours


def test_an_entry_of_a_client_stands_in_our_file_as_it_is(tmp_path: Path) -> None:
    entry = {"url": "https://x/mcp", "oauth": {"clientId": "a", "callbackPort": 3118}}
    text = json.dumps({"mcpServers": {"slack": entry}})

    config = parse_config(text, tmp_path / "servers.yaml", {})

    assert config.servers[ServerName("slack")].oauth == OAuth(
        client_id="a", redirect_uri="http://localhost:3118/callback", authorization_params={}
    )


def test_what_would_need_a_login_is_said_before_it_is_taken_over(tmp_path: Path) -> None:
    seat = Seat(tmp_path, "https://other/mcp")
    seat.file.unlink()
    source = tmp_path / "mcp.json"
    entry = {"url": "https://slack/mcp", "auth": {"CLIENT_ID": "abc", "scopes": ["chat"]}}
    keyed = {"url": "https://keyed/mcp", "headers": {"X-Api-Key": "${KEY}"}}
    source.write_text(
        json.dumps({"mcpServers": {"slack": entry, "keyed": keyed}}), encoding="utf-8"
    )

    assert seat.type("import", str(source), "--into", str(seat.file), "--yes") == ExitStatus.FINE

    said = seat.err.getvalue()
    assert f"`aggregator login slack --config {seat.file}`" in said
    assert "aggregator login keyed" not in said
    written = yaml.safe_load(seat.file.read_text(encoding="utf-8"))
    assert written["servers"]["slack"]["oauth"] == {"clientId": "abc", "scopes": ["chat"]}


@pytest.mark.parametrize(
    ("oauth", "is_shown"),
    [("", True), ("oauth: false", False), ("headers: {authorization: Bearer x}", False)],
)
def test_a_login_is_shown_where_nothing_else_is(
    tmp_path: Path, oauth: str, *, is_shown: bool
) -> None:
    text = f"servers:\n  web:\n    url: https://x/mcp\n    {oauth}\n"

    server = parse_config(text, tmp_path / "servers.yaml", {}).servers[ServerName("web")]

    assert server.may_log_in is is_shown
