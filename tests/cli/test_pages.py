"""The catalog as text for people."""

import json
from typing import Any

import pytest

from aggregator.cli.pages import overview, server_page, tool_page
from aggregator.cli.paper import Paper

SERVER: dict[str, Any] = {
    "name": "mail",
    "description": "Mail",
    "state": "ready",
    "reason": None,
    "seconds": 1.0,
    "tools": 0,
    "tokens": 0,
    "protocol": "2026-07-28",
    "version": "mail 1.0",
    "refused": ["`a` is listed twice; the first is kept"],
    "unmatched": ["`delete_*` in `tools.deny` matches none of its tools"],
    "stderr": [],
}


def test_what_is_refused_and_what_matches_nothing_is_shown() -> None:
    page = overview({"servers": [SERVER], "tools": [], "visible": []}, Paper(100))
    own = server_page({**SERVER, "tools": []}, Paper(100))

    assert "mail: `a` is listed twice; the first is kept" in page
    assert "mail: `delete_*` in `tools.deny` matches none of its tools" in page
    assert "refused: `a` is listed twice; the first is kept" in own
    assert "without effect: `delete_*` in `tools.deny` matches none of its tools" in own


def test_no_time_is_told_of_what_has_just_failed() -> None:
    gone = {**SERVER, "state": "failed", "reason": "it exited"}

    now, later = (
        overview({"servers": [{**gone, "seconds": each}], "tools": [], "visible": []}, Paper(100))
        for each in (0.0, 2.0)
    )

    assert "mail: it exited" in now.splitlines()
    assert "mail: it exited (for 2 s)" in later.splitlines()


def test_what_a_server_writes_besides_messages_is_counted() -> None:
    own = server_page({**SERVER, "tools": [], "noise": 1234}, Paper(200))
    quiet = server_page({**SERVER, "tools": [], "noise": 0}, Paper(200))

    assert "It wrote 1,234 lines besides messages to its standard output" in own
    assert "besides messages" not in quiet


def test_a_server_that_each_client_has_says_so_and_how_many_do() -> None:
    alone = server_page({**SERVER, "tools": [], "perClient": True}, Paper(200))
    shared = server_page({**SERVER, "tools": [], "perClient": True, "processes": 3}, Paper(200))
    one = server_page({**SERVER, "tools": [], "perClient": True, "processes": 1}, Paper(200))

    assert "each has its own process\n" in f"{alone}\n"
    assert "each has its own process: 3 processes now" in shared
    assert "1 process now" in one


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["ready", "ready"], "2 of 2 servers ready, 0 tools"),
        (["idle", "idle"], "2 of 2 servers ready, all of them idle until called, 0 tools"),
        (["idle"], "1 of 1 server ready, idle until called, 0 tools"),
        (["ready", "idle", "failed"], "2 of 3 servers ready, 1 of them idle until called, 0 tools"),
    ],
)
def test_servers_that_wait_to_be_called_are_ready(states: list[str], said: str) -> None:
    servers = [{**SERVER, "name": f"s{at}", "state": each} for at, each in enumerate(states)]

    page = overview({"servers": servers, "tools": [], "visible": []}, Paper(100))

    assert said in page.splitlines()


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (["new", "new"], "mail: 2 tools new since approved"),
        (["removed"], "mail: 1 tool gone since approved"),
        (["new", "description"], "mail: 2 tools changed since approved"),
    ],
)
def test_tools_that_were_not_there_are_new_and_not_changed(kinds: list[str], said: str) -> None:
    drift = [
        {"tool": f"t{at}", "name": None, "kind": kind, "details": ["is so"], "withheld": False}
        for at, kind in enumerate(kinds)
    ]

    page = overview({"servers": [{**SERVER, "drift": drift}], "tools": [], "visible": []}, Paper())

    assert said in page.splitlines()


def test_what_a_tool_says_of_itself_is_wrapped_and_its_definition_is_not() -> None:
    schema = {"type": "object", "description": "as long as " * 9}
    definition = {"description": f"{'Send a letter. ' * 8}\n\n- one\n- two", "inputSchema": schema}
    about = {"server": "mail", "alwaysLoad": False, "tokens": 1234, "definition": definition}

    page = tool_page({"name": "mail__send_a_letter", **about}, Paper(40))

    text, _, rest = page.partition("\n{")
    assert all(len(line) <= 40 for line in text.splitlines())
    assert "\n\n  - one\n  - two\n" in text
    assert json.loads("{" + rest) == {"inputSchema": schema}
