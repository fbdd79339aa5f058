"""What a client says of itself is kept for as long as it is there, so it has to be short."""

from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.upstream.requesters import MAX_INTRODUCTION
from tests.peers import Peer, aggregating, connect_to, ready
from tests.raw import raw_client

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]


def leaves(error: MCPError | ExceptionGroup[MCPError]) -> list[MCPError]:
    if isinstance(error, MCPError):
        return [error]
    return [leaf for each in error.exceptions for leaf in leaves(each)]


async def test_a_client_that_says_too_much_of_itself_is_told_what_and_not_served() -> None:
    many: dict[str, Any] = {
        "experimental": {f"n{each}": {} for each in range(MAX_INTRODUCTION // 100)}
    }

    async with aggregating({"db": connect_to(Peer("work"))}) as upstream:
        await ready(upstream)
        told: list[str] = []
        for capabilities, name in (({}, "x" * MAX_INTRODUCTION), (many, "x")):
            with pytest.RaisesGroup(MCPError, flatten_subgroups=True) as caught:
                async with raw_client(upstream, "handshake", capabilities, name=name):
                    pass
            (error,) = leaves(caught.value)
            assert error.code == types.INVALID_PARAMS
            told.append(error.message)
        async with raw_client(upstream, "handshake", name="x" * (MAX_INTRODUCTION // 2)) as client:
            listed = await client.request("tools/list")

    assert [each.split(" is too long")[0] for each in told] == ["`clientInfo`", "`capabilities`"]
    assert all("256 KiB" in each for each in told)
    assert listed["tools"]
