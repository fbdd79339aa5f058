"""What replicas know of each other's sessions by a real Redis or Valkey, and without it again."""

import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import coredis
import pytest

from aggregator.basics.json import as_object
from aggregator.config import Settings
from aggregator.upstream.http.keys import Keys, Ring
from aggregator.upstream.http.replicas.store import MAIL, SCOPE
from tests.loopback.door import Open
from tests.patience import PATIENCE
from tests.peers import Peer, connect_to
from tests.replicas.cluster import STORE, Storehouse, storehouse
from tests.upstream.http.replicas.pair import pair
from tests.upstream.http.replicas.test_adoption import MANY, SESSION, plain, say
from tests.upstream.http.test_endpoint import (
    Asker,
    asked,
    begin,
    call,
    events,
    modern,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(STORE is None, reason="there is neither Redis nor Valkey here"),
]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Storehouse, None]:
    async with storehouse(tmp_path) as running:
        yield running


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something has come about elsewhere."""
    with anyio.fail_after(PATIENCE):
        while not await holds():  # noqa: ASYNC110 - it is asked over HTTP
            await anyio.sleep(0.02)


def many() -> dict[str, Any]:
    return {"one": connect_to(Peer(**MANY))}


async def test_a_session_that_its_client_has_ended_is_over_everywhere(
    tmp_path: Path, store: Storehouse
) -> None:
    async with pair(plain, tmp_path, store=store.url) as (one, two, client):
        known, unknown = await begin(client, one), await begin(client, one)
        assert (await say(client, two, call("one__plain"), known)).status_code == 200
        for session in (known, unknown):
            assert (await client.delete(one.url, headers=session)).status_code == 200

        async def is_over() -> bool:
            answers = [await say(client, two, asked("ping"), each) for each in (known, unknown)]
            return [each.status_code for each in answers] == [404, 404]

        # One of them the other has heard of, and of the other it has asked.
        await until(is_over)


async def test_what_one_has_loaded_is_in_the_list_of_the_other(
    tmp_path: Path, store: Storehouse
) -> None:
    settings = Settings(surface="hybrid", relist_wait=0.0)
    async with pair(many, tmp_path, settings, store=store.url) as (one, two, client):
        session = await begin(client, one)
        heard: dict[str, Any] = {}
        async with client.stream("GET", two.url, headers=session) as stream:
            assert stream.status_code == 200
            search = call("ToolSearch", query="select:one__tool_7")
            assert (await say(client, one, search, session)).status_code == 200
            with anyio.fail_after(PATIENCE):
                heard = await anext(events(stream))

        async def is_listed() -> bool:
            answer = await say(client, two, asked("tools/list"), session)
            return "one__tool_7" in {tool["name"] for tool in answer.json()["result"]["tools"]}

        await until(is_listed)
        other = await begin(client, one)
        assert (await say(client, one, search, other)).status_code == 200

        async def is_kept() -> bool:
            async with coredis.Redis.from_url(store.url) as direct:
                return len([key async for key in direct.scan_iter(f"{SCOPE}:loaded:*")]) == 2

        await until(is_kept)
        answer = await say(client, two, asked("tools/list"), other)
        names = [tool["name"] for tool in answer.json()["result"]["tools"]]

    assert heard["method"] == "notifications/tools/list_changed"
    # It had not been there before.
    assert "one__tool_7" in names


async def test_an_answer_reaches_who_has_asked_wherever_it_comes(
    tmp_path: Path, store: Storehouse
) -> None:
    def servers() -> dict[str, Any]:
        return {"one": connect_to(Asker("ask"), "handshake")}

    async with pair(servers, tmp_path, store=store.url) as (one, two, client):
        session = await begin(client, one)
        async with client.stream("POST", one.url, json=call("one__ask"), headers=session) as stream:
            heard = events(stream)
            question = await anext(heard)
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
            assert (await say(client, two, answer, session)).status_code == 202
            result = await anext(heard)

    assert result["result"]["content"][0]["text"] == "they decline"


async def test_a_call_is_taken_back_wherever_it_is(tmp_path: Path, store: Storehouse) -> None:
    peers = [Peer("block"), Peer("block")]
    rest = iter(peers)

    def servers() -> dict[str, Any]:
        return {"one": connect_to(next(rest))}

    async with pair(servers, tmp_path, store=store.url) as (one, two, client):
        session = await begin(client, one)
        async with anyio.create_task_group() as group:
            group.start_soon(say, client, one, call("one__block"), session)
            with anyio.fail_after(PATIENCE):
                await peers[0].blocked.wait()
                message = {"method": "notifications/cancelled", "params": {"requestId": 1}}
                await say(client, two, {"jsonrpc": "2.0", **message}, session)
                await peers[0].cancelled.wait()


async def test_a_token_that_one_machine_revokes_opens_nothing_on_the_other(
    tmp_path: Path, store: Storehouse
) -> None:
    first, second = Ring(tmp_path / "one.json", "x"), Ring(tmp_path / "two.json", "x")
    anna = first.add("anna", None, None)
    second.path.write_bytes(first.path.read_bytes())
    second.path.chmod(0o600)
    keys = Keys(first), Keys(second)
    async with pair(plain, tmp_path, store=store.url, keys=keys) as (one, two, client):
        client.headers["authorization"] = f"Bearer {anna}"
        session = await begin(client, one)
        assert (await say(client, two, call("one__plain"), session)).status_code == 200
        first.revoke("anna")

        async def is_refused() -> bool:
            answer = await say(client, two, call("one__plain"), session)
            return answer.status_code == 401

        await until(is_refused)


async def test_who_listens_at_one_hears_that_the_list_of_the_other_has_changed(
    tmp_path: Path, store: Storehouse
) -> None:
    peers = [Peer("plain"), Peer("plain")]
    rest = iter(peers)

    def servers() -> dict[str, Any]:
        return {"one": connect_to(next(rest))}

    listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    settings = Settings(surface="full")
    told: list[str] = []
    async with pair(servers, tmp_path, settings, store=store.url) as (one, two, client):
        session = await begin(client, two)
        # The one whose list changes has to have shown another.
        assert (await say(client, one, asked("tools/list"), session)).status_code == 200

        async def hear(method: str, **request: Any) -> None:
            async with client.stream(method, two.url, **request) as stream:
                async for message in events(stream):
                    if "list_changed" in message["method"]:
                        told.append(method)
                        return

        async def change() -> None:
            while len(told) < 2:
                name = f"late_{len(peers[0].tools)}"
                await peers[0].change(**{name: {"description": "Comes later"}})
                await anyio.sleep(0.3)

        async with anyio.create_task_group() as group:
            group.start_soon(change)
            group.start_soon(lambda: hear("GET", headers=session))
            group.start_soon(lambda: hear("POST", **listen))

    assert sorted(told) == ["GET", "POST"]


async def test_a_call_asks_the_store_nothing(tmp_path: Path, store: Storehouse) -> None:
    async with pair(plain, tmp_path, store=store.url) as (one, two, client):
        session = await begin(client, one)
        for opened in (one, two):
            assert (await say(client, opened, call("one__plain"), session)).status_code == 200
        before = await operations(store)
        for number in range(20):
            opened = (one, two)[number % 2]
            request = modern("tools/call", {"name": "one__plain"}, mcp_name="one__plain")
            assert (await client.post(opened.url, **request)).status_code == 200
            assert (await say(client, opened, call("one__plain"), session)).status_code == 200
        after = await operations(store)

    # One that asks how many there were.
    assert after - before == 1


async def test_a_process_of_its_own_is_where_its_client_first_needs_it(
    tmp_path: Path, store: Storehouse
) -> None:
    own: dict[str, Any] = {"is_shared": True, "one": {"per_client": True}}
    request = modern("tools/call", {"name": "one__plain", "arguments": {}}, mcp_name="one__plain")
    async with pair(plain, tmp_path, store=store.url, **own) as (one, two, client):
        session = await begin(client, one)
        here = [await say(client, two, call("one__plain"), session)]
        elsewhere = [await say(client, one, call("one__plain"), session)]
        here += [await say(client, two, call("one__plain"), session)]
        here += [await client.post(one.url, **request)]
        elsewhere += [await client.post(two.url, **request)]
        here += [await client.post(one.url, **request)]

    assert [each.json()["result"]["content"][0]["text"] for each in here] == ["plain: {}"] * 4
    assert [each.status_code for each in elsewhere] == [503, 503]
    assert all("retry-after" in each.headers for each in elsewhere)
    facts = [each.json()["error"]["data"]["aggregator/error"] for each in elsewhere]
    assert [each["replica"] for each in facts] == ["two", "one"]


async def operations(store: Storehouse) -> int:
    """Return how many commands of any kind the store has taken, by its own count."""
    async with coredis.Redis.from_url(store.url) as direct:
        counted = await direct.info("commandstats")
    # Who connects, and who has been silent for a while, says that it is there.
    beside = ("hello", "client", "select", "subscribe", "ping")
    return sum(
        int(as_object(facts)["calls"])
        for name, facts in counted.items()
        if name.removeprefix("cmdstat_").partition("|")[0] not in beside
    )


async def test_without_the_store_it_is_as_if_there_were_none_and_it_comes_back_by_itself(
    tmp_path: Path, store: Storehouse, caplog: pytest.LogCaptureFixture
) -> None:
    async with pair(plain, tmp_path, store=store.url) as (one, two, client):
        session, other = await begin(client, one), await begin(client, one)
        assert (await say(client, two, call("one__plain"), other)).status_code == 200
        assert await stated(client, one) == {"status": "ready", "store": "up"}
        store.stop()

        async def is_noticed() -> bool:
            states = [await stated(client, each) for each in (one, two)]
            return states == [{"status": "ready", "store": "down"}] * 2

        await until(is_noticed)
        # A session is opened here that was opened there, and one is ended.
        assert (await say(client, two, call("one__plain"), session)).status_code == 200
        assert (await client.delete(one.url, headers=other)).status_code == 200
        assert (await say(client, two, call("one__plain"), other)).status_code == 200
        await store.start()

        async def is_over() -> bool:
            return (await say(client, two, call("one__plain"), other)).status_code == 404

        await until(is_over)
        assert await stated(client, two) == {"status": "ready", "store": "up"}

    said = [each.getMessage() for each in caplog.records if "the store" in each.getMessage()]
    assert sum("going on as without it" in each for each in said) == 2
    assert sum("there again" in each for each in said) == 2


async def stated(client: Any, opened: Open) -> dict[str, str]:
    return (await client.get(f"{opened.origin}/readyz")).json()


async def test_what_somebody_without_the_key_tells_is_not_heard_and_what_is_odd_ends_nothing(
    tmp_path: Path, store: Storehouse
) -> None:
    async with pair(plain, tmp_path, store=store.url) as (one, two, client):
        session = await begin(client, one)
        assert (await say(client, two, call("one__plain"), session)).status_code == 200
        cipher = one.upstream.replica.cipher
        assert cipher is not None
        end = {"kind": "ended", "from": "nobody", "session": session[SESSION]}
        async with coredis.Redis.from_url(store.url) as direct:
            endless = {
                "kind": "spent",
                "from": "x",
                "holders": {"anna": [math.inf, [[0, 0]], True]},
            }
            odd = [{}, {"kind": "revoked"}, {"kind": "loaded", "session": "x"}, {"kind": ["x"]}]
            sealed = [cipher.close(MAIL, json.dumps(each).encode()) for each in (*odd, endless, 1)]
            for message in (json.dumps(end).encode(), b"", b"\x01" * 50, *sealed):
                assert await direct.publish(f"{SCOPE}:mail", message) == 2
        # What is told afterwards is heard after it.
        other = await begin(client, one)
        assert (await say(client, two, call("one__plain"), other)).status_code == 200
        await client.delete(one.url, headers=other)

        async def is_over() -> bool:
            return (await say(client, two, call("one__plain"), other)).status_code == 404

        await until(is_over)
        assert (await say(client, two, call("one__plain"), session)).status_code == 200
