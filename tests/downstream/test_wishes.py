"""How many tools a server may put into every client's first list by itself."""

from typing import Any

import pytest

from aggregator.catalog import Ready
from aggregator.config import ServerConfig
from aggregator.downstream.intake import take_in
from aggregator.downstream.review import reviewed
from aggregator.downstream.wishes import MAX_GRANTED, MAX_GRANTED_TOKENS, MAX_WEIGHED
from aggregator.exposure import ALWAYS_LOAD, approximate_tokens
from aggregator.names import ServerName
from tests.peers import Era, Peer, aggregating, connect_to, ready
from tests.raw import raw_client

SERVER = ServerConfig(ServerName("s"), "s")


def wishing(name: str, characters: int = 10) -> dict[str, Any]:
    return {"name": name, "description": "x" * characters, "_meta": {ALWAYS_LOAD: True}}


def wishes(number: int, characters: int = 10) -> list[dict[str, Any]]:
    return [wishing(f"t{each}", characters) for each in range(number)]


def test_a_few_wishes_are_granted_without_a_word() -> None:
    entries, refused = take_in(SERVER, wishes(MAX_GRANTED))

    assert all(each.always_load for each in entries)
    assert refused == []


def test_the_first_tools_are_granted_and_the_rest_is_reported() -> None:
    entries, (sentence,) = take_in(SERVER, wishes(5_000))

    assert [each.own_name for each in entries if each.always_load] == [
        f"t{number}" for number in range(MAX_GRANTED)
    ]
    assert sentence.startswith("It wants 5,000 tools in every client's first list; 10 are")
    assert sentence.endswith("name those you need in `alwaysLoad`")


def test_tokens_are_a_limit_too_and_one_large_tool_does_not_stand_before_small_ones() -> None:
    entries, (sentence,) = take_in(SERVER, [wishing("large", 9_000), *wishes(4, 2_000)])

    granted = [each for each in entries if each.always_load]

    assert [each.own_name for each in granted] == ["t0", "t1"]
    assert sum(map(approximate_tokens, granted)) <= MAX_GRANTED_TOKENS
    assert "It wants 5 tools" in sentence


def test_what_a_person_configures_is_neither_limited_nor_counted() -> None:
    server = ServerConfig(ServerName("s"), "s", always_load=("own_*",))
    own = [wishing(f"own_{number}", 2_000) for number in range(100)]

    entries, refused = take_in(server, [*own, *wishes(MAX_GRANTED)])

    assert all(each.always_load for each in entries)
    assert refused == []


def test_no_more_wishes_are_weighed_than_somebody_could_mean() -> None:
    entries, _ = take_in(SERVER, [*wishes(MAX_WEIGHED, 9_000), wishing("late")])

    assert not any(each.always_load for each in entries)


def test_another_configuration_grants_the_same() -> None:
    state = Ready(tuple(take_in(SERVER, wishes(50))[0]))

    anew = reviewed(ServerConfig(ServerName("s"), "s", call_timeout=9), state)

    assert all(map(lambda one, other: one is other, anew.entries, state.entries))


@pytest.mark.anyio
async def test_a_first_list_stays_short_and_the_rest_is_found(
    client_era: Era, server_era: Era
) -> None:
    wanting = {"description": "Grows tulips", "_meta": {ALWAYS_LOAD: True}}
    server = Peer(**{f"tulip{number}": wanting for number in range(40)})

    async with aggregating({"peer": connect_to(server, server_era)}) as upstream:
        await ready(upstream)
        (state,) = upstream.fleet.now.catalog.servers.values()
        async with raw_client(upstream, client_era) as client:
            listed = (await client.request("tools/list", {}))["tools"]
            called = await client.request("tools/call", {"name": "peer__tulip39"})

    assert [each["name"] for each in listed if each["name"].startswith("peer__")] == [
        f"peer__tulip{number}" for number in range(MAX_GRANTED)
    ]
    assert isinstance(state, Ready)
    assert len(state.refused) == 1
    assert called["content"][0]["text"] == "tulip39: {}"
