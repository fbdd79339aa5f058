"""A real server that asks its questions in the older era alone, behind us."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.patience import PATIENCE
from tests.peers import ERAS, MODES, Era, error_of, text_of
from tests.processes.driver import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ASKER = """
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

class Answer(BaseModel):
    name: str

server = MCPServer("asker")

@server.tool()
async def greet(ctx: Context) -> str:
    "Greet whoever is there."
    answer = await ctx.elicit("Who are you?", Answer)
    return f"Hello {answer.data.name}"

server.run("stdio")
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ann(context: Any, params: Any) -> types.ElicitResult:
    _ = context, params
    return types.ElicitResult(action="accept", content={"name": "Ann"})


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_is_spoken_to_in_the_era_it_needs_also_in_the_next_run(
    tmp_path: Path, era: Era
) -> None:
    program, config = tmp_path / "asker.py", tmp_path / "servers.yaml"
    program.write_text(ASKER, encoding="utf-8")
    servers = {"asker": {"command": sys.executable, "args": [str(program)]}}
    config.write_text(json.dumps({"servers": servers}), encoding="utf-8")
    ours = StdioServerParameters(
        command=sys.executable,
        args=["-m", "aggregator", "serve", "--config", str(config)],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        cwd=ROOT,
    )
    answers: list[types.CallToolResult] = []

    with anyio.fail_after(3 * PATIENCE):
        for calls in (2, 1):
            way = stdio_client(ours)
            async with Client(way, mode=MODES[era], elicitation_callback=ann) as client:
                answers += [await client.call_tool("asker__greet", {}) for _ in range(calls)]

    assert error_of(answers[0])["kind"] == "wrong-era"
    assert [text_of(each) for each in answers[1:]] == ["Hello Ann", "Hello Ann"]
