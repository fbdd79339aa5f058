"""The forms of a query, as clients of both eras send them."""

import pytest

from tests.peers import Era, Peer, aggregating, connect_to, ready, text_of, visiting

pytestmark = pytest.mark.anyio

READING = {"description": "Looks a row up", "annotations": {"readOnlyHint": True}}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("mcp__weather_api__look", ["weather_api__look_up"]),
        ("+weather-api", ["weather_api__look_up", "weather_api__look_out", "weather_api__drop"]),
        ("readonly:", ["weather_api__look_up"]),
        ("destructive: drop", ["weather_api__drop"]),
        ("/^weather.*(up|out)$/", ["weather_api__look_up", "weather_api__look_out"]),
    ],
)
async def test_each_form_works_in_both_eras(
    query: str, found: list[str], client_era: Era, server_era: Era
) -> None:
    weather = Peer("look_out", "drop", look_up=READING)

    servers = {"weather-api": connect_to(weather, server_era), "notes": connect_to(Peer("add"))}
    async with aggregating(servers) as upstream:
        await ready(upstream)
        async with visiting(upstream, client_era) as client:
            result = await client.call_tool("ToolSearch", {"query": query})

    matches = (result.meta or {})["aggregator/search"]["matches"]
    assert set(found) <= set(matches)
    assert not any(name.startswith("notes") for name in matches)


async def test_names_alone_are_told_in_both_eras(client_era: Era) -> None:
    async with aggregating({"notes": connect_to(Peer("add", "find"))}) as upstream:
        await ready(upstream)
        async with visiting(upstream, client_era) as client:
            result = await client.call_tool("ToolSearch", {"names": True})

    assert "notes__: add, find" in text_of(result)
