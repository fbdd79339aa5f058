"""What a search tells a client: as it is configured, and why if that is asked."""

from dataclasses import replace

import pytest

from aggregator.config import Settings
from aggregator.toolsearch import EXPLAIN, TOOL_SEARCH
from tests.peers import ERAS, Era, Peer, aggregating, connect_to, ready, visiting

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.mark.parametrize("era", ERAS)
async def test_the_number_of_tools_that_is_told_is_the_one_that_is_configured(era: Era) -> None:
    settings = replace(Settings(), max_results=2)
    several = Peer("read_one", "read_two", "read_three")

    async with aggregating({"db": connect_to(several)}, settings=settings) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            search = (await client.list_tools()).tools[0]
            found = await client.call_tool(TOOL_SEARCH, {"query": "read"})

    assert search.input_schema["properties"]["max_results"]["default"] == 2
    assert len((found.meta or {})["aggregator/search"]["matches"]) == 2


@pytest.mark.parametrize("era", ERAS)
async def test_a_search_explains_its_own_ranking_to_who_asks(era: Era) -> None:
    async with aggregating({"db": connect_to(Peer("read", "write"))}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            plain = await client.call_tool(TOOL_SEARCH, {"query": "read it"})
            told = await client.call_tool(TOOL_SEARCH, {"query": "read it"}, meta={EXPLAIN: True})

    facts = (told.meta or {})["aggregator/search"]
    assert "explained" not in (plain.meta or {})["aggregator/search"]
    assert [each["name"] for each in facts["explained"]] == facts["matches"] == ["db__read"]
    assert facts["explained"][0]["why"][0]["word"] == "read"
