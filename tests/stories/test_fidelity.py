"""What arrives through us is what arrives directly."""

import base64
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.peers import ERAS, Era, aggregating, ready
from tests.raw import (
    Dispatch,
    Json,
    RawServer,
    direct_client,
    raw_client,
    without_envelope,
)

CORPUS: dict[str, Json] = {
    "plain": {"content": [{"type": "text", "text": "plain"}]},
    "unicode": {
        "content": [
            {"type": "text", "text": "Grüße 🧑‍🚀 \u202e \u0000 \u2028 ﷽ e\u0301 \U0010ffff"},
            {"type": "text", "text": ""},
        ]
    },
    "huge numbers": {
        "content": [],
        "structuredContent": {"big": 2**200, "small": -(2**63) - 1, "tiny": 5e-324, "one": 1.0},
    },
    "nested nulls": {
        "content": [{"type": "text", "text": "x", "annotations": None}],
        "structuredContent": {"a": None, "b": [None, {"c": None}], "": {"": [[], {}]}},
        "isError": None,
    },
    "binary": {
        "content": [
            {
                "type": "image",
                "data": base64.b64encode(bytes(range(256))).decode(),
                "mimeType": "x",
            },
            {"type": "resource", "resource": {"uri": "x://y", "blob": "AAECAw==", "extra": 0}},
        ]
    },
    "unknown content type": {"content": [{"type": "hologram", "depth": [1, {"deep": None}]}]},
    "unknown fields": {
        "content": [{"type": "text", "text": "x", "x-vendor": {"a": 1}, "_meta": {"v/k": None}}],
        "x-vendor": [1, None, "2"],
        "_meta": {"vendor/key": {"n": None}, "other": 1},
    },
    "an error of its own": {"content": [{"type": "text", "text": "no"}], "isError": True},
    "without content": {"structuredContent": {"ok": True}},
    "links and icons": {
        "content": [
            {
                "type": "resource_link",
                "uri": "odd:uri with spaces",
                "name": "",
                "icons": [{"src": "data:,", "sizes": ["any"], "theme": "dark"}],
                "size": 12345678901234567890,
            }
        ]
    },
}

DEFINITION: Json = {
    "title": "Odd",
    "description": "An odd tool",
    "inputSchema": {"type": "object", "properties": {}, "x-vendor": [None, 1.5]},
    "outputSchema": {"type": "object", "additionalProperties": True, "$comment": "kept"},
    "annotations": {"title": "Odd", "readOnlyHint": True, "x-hint": None},
    "icons": [{"src": "data:,", "mimeType": "image/png"}],
    "execution": {"taskSupport": "forbidden"},
    "_meta": {"vendor/key": {"nested": [None]}},
    "x-vendor": {"kept": True},
}


def odd(era: Era, result: Json) -> RawServer:
    async def answer(_context: Dispatch, _params: Json) -> Json:
        return dict(result)

    server = RawServer(era)
    server.tool("odd", answer, **DEFINITION)
    return server


async def both_ways(result: Json, client_era: Era, server_era: Era) -> tuple[Json, Json]:
    """Return what a call answers directly, and through us."""
    async with direct_client(odd(server_era, result)) as direct:
        expected = await direct.request("tools/call", {"name": "odd", "arguments": {}})
    async with aggregating({"peer": odd(server_era, result).connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era) as client:
            arrived = await client.request("tools/call", {"name": "peer__odd", "arguments": {}})
    return without_envelope(expected), without_envelope(arrived)


@pytest.mark.anyio
@pytest.mark.parametrize("name", CORPUS)
async def test_an_odd_result_arrives_as_it_was_sent(
    name: str, client_era: Era, server_era: Era
) -> None:
    expected, arrived = await both_ways(CORPUS[name], client_era, server_era)

    assert arrived == expected
    assert repr(arrived) == repr(expected)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
"""Those that JSON has."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(payload=JSON, client_era=st.sampled_from(ERAS), server_era=st.sampled_from(ERAS))
def test_any_result_arrives_as_it_was_sent(payload: Any, client_era: Era, server_era: Era) -> None:
    result = {"content": [{"type": "text", "text": "x", "odd": payload}], "x-odd": payload}

    expected, arrived = anyio.run(both_ways, result, client_era, server_era)

    assert arrived == expected


@pytest.mark.anyio
async def test_a_definition_is_listed_as_its_server_describes_it(
    client_era: Era, server_era: Era
) -> None:
    server = odd(server_era, {"content": []})

    async with aggregating({"peer": server.connect}, peer={"always_load": True}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era) as client:
            tools = (await client.request("tools/list"))["tools"]

    (listed,) = [tool for tool in tools if tool["name"] == "peer__odd"]
    assert listed["_meta"].pop("anthropic/alwaysLoad") is True
    assert listed == {"name": "peer__odd", **DEFINITION}


@pytest.mark.anyio
async def test_params_reach_the_server_as_they_were_sent_but_for_what_is_of_one_hop(
    client_era: Era, server_era: Era
) -> None:
    server = odd(server_era, {"content": []})
    arguments: Json = {"big": 2**70, "none": None, "deep": [{"": []}], "text": "\u0000é"}
    params: Json = {
        "name": "peer__odd",
        "arguments": arguments,
        "x-vendor": [None],
        "task": {"ttl": 1},
        "_meta": {"vendor/key": {"n": None}, "progressToken": "theirs"},
    }

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era) as client:
            await client.request("tools/list")
            await client.request("tools/call", params)

    (received,) = [params for method, params in server.received if method == "tools/call"]
    meta = received.pop("_meta")
    assert received == {"name": "odd", "arguments": arguments, "x-vendor": [None]}
    assert meta["vendor/key"] == {"n": None}
    assert meta["progressToken"] != "theirs"
    assert (types_of_hop(meta) != set()) == (server_era == "modern")


def types_of_hop(meta: Json) -> set[str]:
    return {key for key in meta if key.startswith("io.modelcontextprotocol/")}
