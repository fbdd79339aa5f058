"""Two servers without prefixes that have a tool of the same name."""

import logging

import pytest

from tests.peers import ERAS, Era, Peer, aggregating, connect_to, ready, text_of, visiting

pytestmark = pytest.mark.anyio

PLAIN = {"prefix": ""}


@pytest.mark.parametrize("era", ERAS)
async def test_the_second_says_why_it_offers_nothing(
    era: Era, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Peer("send"), Peer("send")
    ways = {"mail": connect_to(first), "chat": connect_to(second)}

    with caplog.at_level(logging.WARNING):
        async with aggregating(ways, mail=PLAIN, chat=PLAIN) as upstream:
            await ready(upstream)
            async with visiting(upstream, era) as client:
                overview = text_of(await client.call_tool("ToolSearch", {"query": "server:"}))
                await client.call_tool("send", {})

    why = "`send` cannot be reached: `mail` comes first; give one of them a `prefix`"
    assert f"- chat (0 tools; {why})" in overview
    assert "- mail (1 tool)" in overview
    assert [record.message for record in caplog.records].count(why) == 1
    assert (len(first.calls), len(second.calls)) == (1, 0)


async def test_rules_that_match_nothing_are_said_once_at_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = {"deny": ("delete_*",), "always_load": ("sendd",), "search_hints": {"x": "y"}}

    with caplog.at_level(logging.WARNING):
        async with aggregating({"mail": connect_to(Peer("send"))}, mail=options) as upstream:
            await ready(upstream)

    said = [record.message for record in caplog.records]
    assert said == [
        "`sendd` in `alwaysLoad` matches none of its tools; did you mean `send`?",
        "`delete_*` in `tools.deny` matches none of its tools",
        "`x` in `searchHints` matches none of its tools",
    ]
