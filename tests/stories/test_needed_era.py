"""Servers of both eras that can ask their questions in the older one alone."""

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Ready
from aggregator.memory import Notebook
from aggregator.names import ServerName
from aggregator.upstream.server import Upstream
from tests.peers import (
    ERAS,
    Context,
    Era,
    Mortal,
    Peer,
    aggregating,
    connect_to,
    error_of,
    ready,
    text_of,
    until,
    visiting,
)
from tests.raw import RawServer

pytestmark = pytest.mark.anyio

NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.fixture(params=ERAS)
def client_era(request: pytest.FixtureRequest) -> Era:
    return request.param


class Asking(Peer):
    """Asks for a name on its back-channel, which the modern era does not have."""

    def __init__(self, *, says: str | None = None) -> None:
        super().__init__("greet", "work")
        self._says = says

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name != "greet":
            return await super()._call(ctx, params)
        if self._says is not None and ctx.protocol_version == "2026-07-28":
            said = types.TextContent(type="text", text=self._says)
            return types.CallToolResult(content=[said], is_error=True)
        answer = await ctx.session.elicit_form("Who are you?", NAME, ctx.request_id)
        text = f"Hello {(answer.content or {}).get('name')}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def ann(_context: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ann"})


def protocol(upstream: Upstream) -> str:
    state = upstream.fleet.now.catalog.servers[ServerName("one")]
    return state.protocol_version if isinstance(state, Ready) else ""


def visiting_ann(upstream: Upstream, era: Era) -> Any:
    return visiting(upstream, era, elicitation_callback=ann)


async def greet(client: Client) -> types.CallToolResult:
    return await client.call_tool("one__greet", {})


PYTHON = "this transport context has no back-channel for server-initiated requests."
TYPESCRIPT = "Server-to-client requests are not available on protocol revision 2026-07-28: …"


@pytest.mark.parametrize("says", [None, f"Error calling tool: {PYTHON}", TYPESCRIPT])
async def test_a_server_that_cannot_ask_is_connected_again_in_the_era_it_needs(
    client_era: Era, says: str | None
) -> None:
    way = Mortal(connect_to(Asking(says=says)))
    memory = Notebook(None)

    async with aggregating({"one": way}, memory=memory) as upstream:
        await ready(upstream)
        before = protocol(upstream)
        async with visiting_ann(upstream, client_era) as client:
            missed = await greet(client)
            await until(lambda: protocol(upstream) == "2025-11-25", lambda: upstream.fleet.changed)
            asked = await greet(client)

    assert before == "2026-07-28"
    assert error_of(missed) == {"kind": "wrong-era", "server": "one"}
    assert "connected again in the handshake era now" in text_of(missed)
    assert text_of(asked) == "Hello Ann"
    assert len(way.opened) == 2

    async with aggregating({"one": way}, memory=memory) as upstream:
        await ready(upstream)
        remembered = protocol(upstream)
        async with visiting_ann(upstream, client_era) as client:
            asked = await greet(client)

    assert (remembered, text_of(asked)) == ("2025-11-25", "Hello Ann")
    assert len(way.opened) == 3


async def test_a_process_that_was_worked_with_is_not_restarted_for_it(client_era: Era) -> None:
    """What it holds is worth more than one tool, and a person can decide otherwise."""
    way = Mortal(connect_to(Asking()))
    memory = Notebook(None)

    async with aggregating({"one": way}, memory=memory) as upstream:
        await ready(upstream)
        async with visiting_ann(upstream, client_era) as client:
            await client.call_tool("one__work", {})
            missed = [await greet(client), await greet(client)]
            await anyio.sleep(60)
            stayed = len(way.opened)
            way.cut()
            await anyio.sleep(5)
            asked = await greet(client)

    for each in missed:
        assert "`era: handshake` under it in servers.yaml restarts it at once" in text_of(each)
    assert stayed == 1
    assert text_of(asked) == "Hello Ann"


async def test_calls_under_way_are_not_lost_when_the_era_changes(client_era: Era) -> None:
    peer = Asking()
    peer.tools |= {"block": {}}
    way = Mortal(connect_to(peer))
    results: list[types.CallToolResult] = []

    async with aggregating({"one": way}, one={"call_timeout": 9.0}) as upstream:
        await ready(upstream)
        async with visiting_ann(upstream, client_era) as client:

            async def block() -> None:
                results.append(await client.call_tool("one__block", {}))

            async with anyio.create_task_group() as group:
                group.start_soon(block)
                await peer.blocked.wait()
                await greet(client)
                await anyio.sleep(5)
                assert len(way.opened) == 1
            await until(lambda: protocol(upstream) == "2025-11-25", lambda: upstream.fleet.changed)

    assert "did not answer within 9 s" in text_of(results[0])


async def test_a_call_right_after_waits_for_the_new_connection(client_era: Era) -> None:
    async with aggregating({"one": connect_to(Asking())}) as upstream:
        await ready(upstream)
        async with visiting_ann(upstream, client_era) as client:
            missed = await greet(client)
            asked = await greet(client)

    assert error_of(missed)["kind"] == "wrong-era"
    assert text_of(asked) == "Hello Ann"


async def test_a_page_that_quotes_such_an_error_says_nothing_of_the_era(client_era: Era) -> None:
    page = f"The page cannot be shown.\nIt says: {PYTHON}"

    async with aggregating({"one": connect_to(Asking(says=page))}) as upstream:
        await ready(upstream)
        async with visiting_ann(upstream, client_era) as client:
            result = await greet(client)

    assert text_of(result) == page


@pytest.mark.parametrize("era", ERAS)
async def test_an_era_that_is_configured_is_spoken_and_no_other(client_era: Era, era: Era) -> None:
    way = connect_to(Asking())

    async with aggregating({"one": way}, one={"era": era}) as upstream:
        await ready(upstream)
        spoken = protocol(upstream)
        async with visiting_ann(upstream, client_era) as client:
            if era == "handshake":
                assert text_of(await greet(client)) == "Hello Ann"
            else:
                with pytest.raises(MCPError, match="back-channel"):
                    await greet(client)
            assert protocol(upstream) == spoken

    assert spoken == {"handshake": "2025-11-25", "modern": "2026-07-28"}[era]


async def test_a_server_of_the_older_era_is_not_reached_in_the_modern_one() -> None:
    way = connect_to(Peer("x"), "handshake")

    async with aggregating({"one": way}, one={"era": "modern"}) as upstream:
        await anyio.sleep(10)

        assert upstream.fleet.now.catalog.pending == ("one",)


async def test_a_server_that_no_longer_speaks_the_era_it_needed_is_found_out_about_anew() -> None:
    memory = Notebook(None)
    async with aggregating({"one": connect_to(Asking())}, memory=memory) as upstream:
        await ready(upstream)
        async with visiting_ann(upstream, "handshake") as client:
            await greet(client)
    newer = RawServer("modern")

    async with aggregating({"one": newer.connect}, memory=memory) as upstream:
        await ready(upstream)

        assert protocol(upstream) == "2026-07-28"
