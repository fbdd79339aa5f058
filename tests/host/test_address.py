"""A toolbox for an aggregator that serves at an address already."""

from pathlib import Path
from typing import Any

import pytest

from aggregator.host import AsyncToolbox
from aggregator.host.connection import token_for
from tests.host.test_conversations import MODEL, Agent
from tests.host.vendors import MessagesApi, use
from tests.loopback.door import door
from tests.peers import Peer, connect_to, ready

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_tools_at_an_address_are_found_and_called(tmp_path: Path) -> None:
    async with door({"notes": connect_to(Peer("add"))}, tmp_path) as open_door:
        await ready(open_door.upstream)
        variables = {"AGGREGATOR_TOKEN": open_door.token}
        async with AsyncToolbox(url=open_door.url, environment=variables) as box:
            agent = Agent(box.anthropic(MODEL), MessagesApi(), MODEL)
            agent.ask("note this")
            await agent.step(use("ToolSearch", query="select:notes__add"))
            added = await agent.step(use("notes__add"))

    told: Any = added[-1]["content"][0]["content"]
    assert told == [{"type": "text", "text": "add: {}"}]


def test_the_token_of_this_machine_is_shown_on_this_machine_alone(tmp_path: Path) -> None:
    state = tmp_path / "mcp-tool-aggregator"
    state.mkdir()
    (state / "http-token").write_text("ours\n", encoding="utf-8")
    variables = {"XDG_STATE_HOME": str(tmp_path)}

    assert token_for("http://127.0.0.1:1/mcp", variables) == "ours"
    assert token_for("http://example.org/mcp", variables) is None
    assert token_for("http://127.0.0.1:1/mcp", {}) is None
    assert token_for("http://example.org/mcp", {"AGGREGATOR_TOKEN": "given"}) == "given"
    (state / "http-token").unlink()
    assert token_for("http://127.0.0.1:1/mcp", variables) is None


async def test_an_address_where_nobody_answers_is_one_error() -> None:
    with pytest.raises(ConnectionError, match=r"answers at http://127\.0\.0\.1:9/mcp: "):
        async with AsyncToolbox(url="http://127.0.0.1:9/mcp", environment={}):
            pass


async def test_a_file_that_cannot_be_used_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match="the aggregator did not answer"):
        async with AsyncToolbox(tmp_path / "absent.yaml", environment={"HOME": str(tmp_path)}):
            pass


async def test_an_error_in_the_block_is_left_as_it_is(tmp_path: Path) -> None:
    async with door({"notes": connect_to(Peer("add"))}, tmp_path) as open_door:
        with pytest.raises(LookupError, match="mine"):
            async with AsyncToolbox(url=open_door.url, token=open_door.token):
                raise LookupError("mine")
