import dataclasses
import tomllib
from pathlib import Path

import pytest

import aggregator
from aggregator.clients import UNKNOWN, known_clients, profile


@pytest.mark.parametrize(
    ("name", "relists"),
    [
        ("claude-code", "same-turn"),
        ("codex-mcp-client", "never"),
        ("copilot-cli", "same-turn"),
        ("gemini-cli-mcp-client", "same-turn"),
        ("opencode", "same-turn"),
        ("@cline/core", "never"),
        ("continue-cli-client", "never"),
        ("mcp", "unknown"),
    ],
)
def test_the_names_clients_send_are_known(name: str, relists: str):
    assert name in known_clients()
    assert profile(name, {}).relists == relists


def test_a_client_nobody_has_studied_gets_the_unknown_profile():
    assert profile("made-up", {}) == UNKNOWN
    assert profile("", {}) == UNKNOWN
    assert UNKNOWN.calls_late_tools is None
    assert UNKNOWN.max_result_chars is None


def test_letter_case_and_the_mark_of_a_bridge_do_not_hide_a_client():
    plain = profile("claude-ai", {})

    assert profile("Claude-AI", {}) == plain
    assert profile("claude-ai (via mcp-remote 0.1.37)", {}) == plain


def test_configuration_sets_the_surface_of_a_client_known_or_not():
    configured = profile("codex-mcp-client", {"Codex-MCP-Client": "hybrid"})

    assert configured.surface == "hybrid"
    assert configured.relists == "never"
    assert profile("made-up", {"made-up": "relay"}).surface == "relay"
    assert profile("other", {"made-up": "relay"}) == UNKNOWN


def test_a_client_that_hides_late_tools_cannot_call_them_although_it_lists_again():
    claude_code = profile("claude-code", {})

    assert claude_code.relists == "same-turn"
    assert claude_code.calls_late_tools is False


def test_a_client_that_cuts_short_results_has_a_small_budget():
    budget = profile("@cline/core", {}).max_result_chars

    assert budget is not None
    assert budget < 7_950


def test_every_row_of_the_table_has_evidence_and_a_name_of_its_own():
    text = Path(aggregator.__file__).with_name("clients.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["client"]
    names = [name.casefold() for row in rows for name in row["names"]]

    assert len(names) == len(set(names)) == len(known_clients())
    for row in rows:
        assert row["evidence"]
        assert row["relists"] in {"same-turn", "never", "unknown"}


def test_profiles_are_values():
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile("mcp", {}).title = "changed"  # pyright: ignore[reportAttributeAccessIssue]
