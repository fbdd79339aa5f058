"""How every example server starts, and where it keeps its data."""

import importlib
import time
from pathlib import Path

import pytest

from tests.examples.example_client import Load


@pytest.mark.parametrize(
    ("arguments", "variable", "delay"),
    [([], None, 0), (["--start-delay", "1.5"], None, 1.5), ([], "2.5", 2.5), ([], "-1", 0)],
)
def test_a_server_can_be_told_to_start_slowly(
    load: Load,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    variable: str | None,
    delay: float,
):
    events: list[float | str] = []
    server = load("units")
    monkeypatch.setattr(time, "sleep", events.append)
    monkeypatch.setattr(server, "run", lambda: events.append("serve"))
    if variable is not None:
        monkeypatch.setenv("START_DELAY", variable)
    importlib.import_module("serving").serve(server, arguments)
    assert events == [delay, "serve"]


def test_a_server_that_is_interrupted_ends_quietly(load: Load, monkeypatch: pytest.MonkeyPatch):
    def interrupt() -> None:
        raise KeyboardInterrupt

    server = load("units")
    monkeypatch.setattr(server, "run", interrupt)
    importlib.import_module("serving").serve(server, [])


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"NOTES_DB": "/data/n.db"}, "/data/n.db"),
        ({"NOTES_DB": "~/n.db", "HOME": "/home/me"}, "/home/me/n.db"),
        ({"XDG_STATE_HOME": "/state"}, "/state/mcp-tool-aggregator/examples/notes.db"),
        ({"HOME": "/home/me"}, "/home/me/.local/state/mcp-tool-aggregator/examples/notes.db"),
    ],
)
def test_data_is_kept_where_the_variable_says_or_with_the_users_state(
    load: Load, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], place: str
):
    for name in ("NOTES_DB", "XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    state_path = importlib.import_module("serving").state_path
    assert state_path("NOTES_DB", "notes.db") == Path(place)
