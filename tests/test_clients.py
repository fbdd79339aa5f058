import subprocess
import sys

import pytest

from aggregator.clients import (
    CLIENTS,
    UNKNOWN,
    Client,
    SurfaceChoice,
    is_meant,
    known_clients,
    likely_meant,
    profile,
    said_of,
    sent_names,
)


@pytest.mark.parametrize(
    ("name", "relists"),
    [
        ("claude-code", "same-turn"),
        ("codex-mcp-client", "never"),
        ("copilot-cli", "after-result"),
        ("gemini-cli-mcp-client", "same-turn"),
        ("opencode", "same-turn"),
        ("@cline/core", "never"),
        ("continue-cli-client", "never"),
        ("inspector-cli", "never"),
        ("mcp", "never"),
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


def test_every_entry_of_the_table_has_evidence_and_names_of_its_own():
    sent = [
        name.casefold() for client in CLIENTS for each in client.profiles for name in each.names
    ]
    typed = [client.name for client in CLIENTS]

    assert len(sent) == len(set(sent)) == len(known_clients())
    assert len(typed) == len(set(typed))
    for known in known_clients().values():
        assert known.evidence
        assert known.title


def test_a_client_is_known_by_what_people_type_or_call_it_and_by_what_it_sends():
    names = sent_names()

    assert names["codex"] == names["codex cli"] == "codex-mcp-client"
    assert names["claude-desktop"] == "claude-ai"
    assert names["cline"] == names["cline for vs code"] == "cline"
    assert names["@cline/core"] == names["cline cli"] == "@cline/core"
    assert set(names) >= set(known_clients()) >= set(names.values())


def test_the_table_is_read_without_what_reads_configuration():
    """Every command shows the clients in its help, also one that only tells its version."""
    program = (
        "import sys, aggregator.cli.parser\n"
        "print({'pydantic', 'tomllib', 'yaml', 'anyio'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "set()\n"


def test_profiles_are_values():
    with pytest.raises(AttributeError):
        profile("mcp", {}).title = "changed"  # pyright: ignore[reportAttributeAccessIssue]


def test_no_name_that_a_client_has_is_taken_for_another() -> None:
    assert not any(map(likely_meant, sent_names()))
    assert likely_meant("codx-mcp-client") == "codex-mcp-client"
    assert likely_meant("our own agent") is None


@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.name)
def test_a_client_is_meant_by_its_name_in_the_table_whatever_it_calls_itself(client: Client):
    for sent in (name for each in client.profiles for name in each.names):
        assert profile(sent, {client.name: "relay"}).surface == "relay"
        assert profile(sent, {client.title: "relay"}).surface == "relay"
        assert is_meant(sent, client.name)


def test_what_is_said_by_the_name_that_a_client_sends_comes_first():
    said = {"codex": "hybrid", "Codex CLI": "full", "codex-mcp-client": "relay"}
    surfaces: dict[str, SurfaceChoice] = {"cline": "hybrid", "@cline/core": "relay"}

    assert said_of("codex-mcp-client", said) == "relay"
    assert profile("@cline/core", surfaces).surface == "relay"
    assert profile("Cline", surfaces).surface == "hybrid"


def test_of_several_programs_of_a_client_a_title_means_one():
    assert is_meant("continue-cli-client", "Continue CLI")
    assert not is_meant("continue-client", "Continue CLI")
    assert not is_meant("made-up", "codex")
    assert not is_meant("codex-mcp-client", "")
