import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer

from tests.examples.example_client import SERVERS, Connect, Load, connector


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["legacy", "auto"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """The directory that the files server serves."""
    directory = tmp_path / "sandbox"
    directory.mkdir()
    return directory


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sandbox: Path) -> Iterator[Load]:
    """Import example servers, with their data in a temporary directory."""
    monkeypatch.setattr(sys, "path", [str(SERVERS), *sys.path])
    monkeypatch.setenv("NOTES_DB", str(tmp_path / "notes.db"))
    monkeypatch.setenv("BOARD_FILE", str(tmp_path / "board.json"))
    monkeypatch.setenv("FILES_ROOT", str(sandbox))

    def load_server(name: str) -> MCPServer[Any]:
        return importlib.import_module(name).server

    yield load_server
    # The one server that changes as it runs; the others keep nothing but their data.
    sys.modules.pop("board", None)


@pytest.fixture
def connect(load: Load, mode: str) -> Connect:
    return connector(load, mode)
