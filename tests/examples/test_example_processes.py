"""The example servers as the processes they are in life."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.examples.example_client import NAMES, SERVERS
from tests.patience import PATIENCE

ENVELOPE = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "clientInfo": {"name": "test", "version": "1"},
    "capabilities": {},
}
MODERN: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": ENVELOPE},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": ENVELOPE},
]
HANDSHAKE: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]


def start(name: str, home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, SERVERS / f"{name}.py", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "XDG_STATE_HOME": str(home)},
        cwd=home,
        encoding="utf-8",
    )


@pytest.mark.slow
@pytest.mark.parametrize("messages", [HANDSHAKE, MODERN], ids=["handshake", "modern"])
@pytest.mark.parametrize("name", NAMES)
def test_a_server_starts_lists_and_ends_with_its_input(
    name: str, messages: list[dict[str, Any]], tmp_path: Path
):
    with start(name, tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.writelines(json.dumps(message) + "\n" for message in messages)
        process.stdin.flush()
        # Read before the input ends: what is not answered by then is not answered at all.
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        rest, errors = process.communicate(timeout=PATIENCE)
    results = {answer["id"]: answer["result"] for answer in answers}
    assert "instructions" in results[1]
    assert len(results[2]["tools"]) >= 10
    assert (process.returncode, rest, errors) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_option_that_is_not_there_is_a_usage_error(tmp_path: Path):
    with start("units", tmp_path, "--start-later") as process:
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (2, "")
    assert "unrecognized arguments: --start-later" in errors
