"""Calls over HTTP that are like one before, answered where they are read."""

import gc
import json
import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import mcp_types as types
import pytest

from aggregator.config import Settings
from aggregator.upstream.http.bodies import SMALL_BYTES
from aggregator.upstream.http.keys import Keys, Ring
from aggregator.upstream.http.shortcut import Offer
from aggregator.upstream.http.time_limits import HAS_HTTPTOOLS
from aggregator.upstream.replica import ELSEWHERE
from tests.loopback.door import door
from tests.loops import LOOPS
from tests.patience import PATIENCE
from tests.peers import ERAS, Era, ready, until
from tests.raw import Dispatch, Json, RawServer
from tests.upstream.http.wired import CALL, Wire, connected, serving
from tests.upstream.usual import Usual

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not HAS_HTTPTOOLS, reason="without it all goes the usual way"),
]


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


async def test_a_call_like_one_before_is_answered_as_that_was(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path, era) as served:
        wire = served.wire
        head, body = wire.call()
        other = head.replace(b"accept", b"x: y\r\naccept")
        answers = [
            await wire.ask(head + body),
            await wire.ask(head, body),
            await wire.ask(head + body[:5], body[5:]),
            await wire.ask(other + body),
        ]
        rests = [repr(each) for each in (served.opened.upstream.fleet.server("one").requests,)]  # pyright: ignore[reportArgumentType]

    assert len(served.usual.calls) == 1
    first, *others = ((each.status, each.headers, each.messages) for each in answers)
    assert all(
        (status, {**headers, "date": ""}, messages)
        == (first[0], {**first[1], "date": ""}, first[2])
        for status, headers, messages in others
    )
    assert "0 of" in rests[0]
    assert len(served.peer.calls) == 5


@pytest.mark.parametrize("beside", [{}, {"requestState": None}, {"inputResponses": {}}])
async def test_a_server_is_sent_the_same_whichever_way_a_call_goes(
    era: Era, beside: Json, tmp_path: Path
) -> None:
    async def echo(_context: Dispatch, _params: Json) -> Json:
        return {"content": []}

    server = RawServer(era)
    server.tool("echo", echo)
    async with door({"one": server.connect}, tmp_path, outside={"drain_time": 0.05}) as opened:
        await ready(opened.upstream)
        usual = Usual(opened.upstream)
        async with connected(opened, era) as wire:
            for _ in range(2):
                params = {"name": "one__echo", "arguments": {"n": 1}, **beside}
                assert (await wire.ask(*wire.request(CALL, params))).status == 200

    first, second = (
        {key: value for key, value in params.items() if key != "_meta"}
        for method, params in server.received
        if method == CALL
    )
    assert usual.calls == ["one__echo"]
    assert first == second


async def test_a_large_call_is_weighed_and_none_is_known_by_it(era: Era, tmp_path: Path) -> None:
    large = {"name": "one__plain", "arguments": {"text": "x" * SMALL_BYTES}}
    async with (
        serving(tmp_path, era) as served,
        connected(served.opened, era, served.wire) as wire,
    ):
        for _ in range(2):
            assert (await wire.ask(b"".join(wire.request(CALL, large)))).status == 200
        for _ in range(3):
            assert (await wire.ask(*wire.call())).status == 200

    assert len(served.usual.calls) == 3


@pytest.mark.parametrize("code", [types.INVALID_PARAMS, types.HEADER_MISMATCH, ELSEWHERE, 7])
async def test_an_error_of_a_server_is_told_as_on_a_fresh_connection(
    era: Era, code: int, tmp_path: Path
) -> None:
    params = {"name": "one__plain", "arguments": {"refused": code}}
    async with serving(tmp_path, era) as served:
        known = await served.wire.ask(*served.wire.request(CALL, params))
        assert served.usual.calls == []
        async with connected(served.opened, era, served.wire) as other:
            other.number = served.wire.number - 1
            fresh = await other.ask(*other.request(CALL, params))

    assert (known.status, known.messages) == (fresh.status, fresh.messages)
    assert {**known.headers, "date": ""} == {**fresh.headers, "date": ""}


async def test_each_of_several_tools_is_known(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path, era) as served:
        for _ in range(3):
            for tool in ("one__plain", "one__other"):
                await served.wire.ask(*served.wire.call(tool))

    assert len(served.usual.calls) == (1 if era == "modern" else 0)
    assert len(served.peer.calls) == 7


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": ""}, 401),
        ({"host": "elsewhere"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"accept": "application/json"}, 406),
        ({"content_type": "text/plain"}, 415),
    ],
)
async def test_a_head_that_is_another_is_looked_at(
    era: Era, change: dict[str, str], status: int, tmp_path: Path
) -> None:
    async with serving(tmp_path, era) as served:
        answer = await served.wire.ask(*served.wire.call(waits=False, **change))
        after = await served.wire.ask(*served.wire.call())

    assert answer.status == status
    assert after.status == 200
    assert len(served.peer.calls) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"not json",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        b'{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"one__plain"}}',
        b'{"jsonrpc":"2.0","id":true,"method":"tools/call","params":{"name":"one__plain"}}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"one__plain"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}',
    ],
)
async def test_what_is_no_plain_call_is_answered_as_on_a_fresh_connection(
    era: Era, body: bytes, tmp_path: Path
) -> None:
    async with serving(tmp_path, era) as served:
        known = await served.wire.ask(served.wire.sized(body))
        async with connected(served.opened, era, served.wire) as other:
            fresh = await other.ask(other.sized(body))

    assert (known.status, known.messages) == (fresh.status, fresh.messages)


async def test_in_the_modern_era_a_call_is_the_one_that_its_head_names(tmp_path: Path) -> None:
    async with serving(tmp_path, "modern") as served:
        _, body = served.wire.call("one__other")
        answer = await served.wire.ask(served.wire.sized(body))

    assert answer.status == 400
    assert "error" in answer.messages[0]
    assert len(served.peer.calls) == 1


async def test_what_is_told_before_the_answer_makes_it_a_stream(era: Era, tmp_path: Path) -> None:
    params = {"name": "one__count", "arguments": {}, "_meta": {"progressToken": "mine"}}
    async with serving(tmp_path, era) as served:
        wire = served.wire
        await wire.ask(*wire.call("one__count"))
        served.usual.calls.clear()
        answer = await wire.ask(*wire.request(CALL, params))
        after = await wire.ask(*wire.call())

    assert served.usual.calls == []
    told = [each.get("method") for each in answer.messages]
    assert told == ["notifications/progress"] * 3 + [None]
    assert {each["params"]["progressToken"] for each in answer.messages[:3]} == {"mine"}
    assert answer.text == "count: {}"
    assert after.text == "plain: {}"


async def test_a_question_is_asked_on_the_way_of_the_call(tmp_path: Path) -> None:
    async with serving(tmp_path, "handshake") as served:
        wire = served.wire
        async with connected(served.opened, "handshake", wire) as other:
            await wire.send(wire.call("one__ask"))
            with anyio.fail_after(PATIENCE):
                came = b""
                while b"elicitation/create" not in came or not came.endswith(b"\r\n\r\n\r\n"):
                    came += await wire.stream.receive()
            number = json.loads(came.partition(b"data: ")[2].partition(b"\r\n")[0])["id"]
            answer = {"jsonrpc": "2.0", "id": number, "result": {"action": "decline"}}
            taken = await other.ask(other.sized(json.dumps(answer).encode()))
            with anyio.fail_after(PATIENCE):
                while b"they decline" not in came:
                    came += await wire.stream.receive()

    assert taken.status == 202
    assert served.usual.calls == []


async def test_a_call_that_is_taken_back_is_said_to_be_and_cancelled(tmp_path: Path) -> None:
    async with serving(tmp_path, "handshake") as served:
        wire = served.wire
        async with connected(served.opened, "handshake", wire) as other:
            await wire.send(wire.call(waits=True))
            await served.peer.blocked.wait()
            number = wire.number
            notice = {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": str(number)},
            }
            assert (await other.ask(other.sized(json.dumps(notice).encode()))).status == 202
            answer = await wire.answer()
            with anyio.fail_after(PATIENCE):
                await served.peer.cancelled.wait()
            after = await wire.ask(*wire.call())

    assert served.usual.calls == []
    assert [(each["id"], each["error"]["code"]) for each in answer.messages] == [(number, -32800)]
    assert after.text == "plain: {}"


async def test_only_in_the_modern_era_a_client_that_goes_takes_its_call_back(
    era: Era, tmp_path: Path
) -> None:
    async with serving(tmp_path, era) as served:
        async with connected(served.opened, era, served.wire) as wire:
            await wire.ask(*wire.call())
            await wire.send(wire.call(waits=True))
            await served.peer.blocked.wait()
        if era == "modern":
            with anyio.fail_after(PATIENCE):
                await served.peer.cancelled.wait()
        assert (await served.wire.ask(*served.wire.call())).status == 200
        assert served.peer.cancelled.is_set() is (era == "modern")


async def test_a_session_that_ends_ends_what_is_under_way(tmp_path: Path) -> None:
    async with serving(tmp_path, "handshake") as served:
        wire = served.wire
        await wire.send(wire.call(waits=True))
        await served.peer.blocked.wait()
        async with connected(served.opened, "handshake", wire) as other:
            head, _ = other.call()
            gone = head.replace(b"POST", b"DELETE").partition(b"content-length")[0] + b"\r\n"
            assert (await other.ask(gone)).status == 200
        answer = await wire.answer()
        after = await wire.ask(*wire.call())

    assert "It may have taken effect" in answer.messages[0]["error"]["message"]
    assert (after.status, after.messages[0]["error"]["message"]) == (404, "Session not found")


@pytest.mark.parametrize("size", [100, 700, 1_000_000])
async def test_what_is_sent_before_an_answer_is_answered_after_it(
    era: Era, size: int, tmp_path: Path
) -> None:
    tools = ("plain", "count", "plain", "other", "plain", "plain")
    texts: list[str] = []
    async with serving(tmp_path, era) as served:
        wire = served.wire
        await wire.ask(*wire.call("one__count"))
        together = b"".join(part for tool in tools for part in wire.call(f"one__{tool}"))
        async with anyio.create_task_group() as group:
            pieces = [together[at : at + size] for at in range(0, len(together), size)]
            group.start_soon(wire.send, pieces)
            texts += [(await wire.answer()).text for _ in tools]

    assert texts == [f"{tool}: {{}}" for tool in tools]


async def test_what_is_sent_while_a_call_is_under_way_is_answered_after_it(
    era: Era, tmp_path: Path
) -> None:
    lingering = {"name": "one__plain", "arguments": {"lingers": True}}
    async with serving(tmp_path, era) as served:
        wire, peer = served.wire, served.peer
        await wire.send(wire.request(CALL, lingering))
        await peer.blocked.wait()
        await wire.send(wire.call())
        async with connected(served.opened, era, wire) as other:
            # What it sent is read by the time that somebody else is answered.
            assert (await other.ask(*other.call())).status == 200
        peer.let_through.set()
        answers = [await wire.answer(), await wire.answer(), await wire.ask(*wire.call())]

    assert [each.messages[0]["id"] for each in answers] == list(
        range(wire.number - 2, wire.number + 1)
    )
    assert [each.text for each in answers] == ["plain: {'lingers': True}", "plain: {}", "plain: {}"]


@pytest.mark.parametrize("anyio_backend", LOOPS)
async def test_a_call_comes_to_its_end_whose_client_has_sent_another_and_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counting = {"name": "one__count", "arguments": {"lingers": True}}
    async with serving(tmp_path, "handshake") as served:
        peer = served.peer
        async with connected(served.opened, "handshake", served.wire) as wire:
            tokened = {**counting, "_meta": {"progressToken": 1}}
            await wire.send((*wire.request(CALL, tokened), *wire.call()))
            await peer.blocked.wait()
        # That it has gone is known by the time that somebody else is answered.
        assert (await served.wire.ask(*served.wire.call())).status == 200
        peer.let_through.set()
        for _ in range(3):
            assert (await served.wire.ask(*served.wire.call())).status == 200

    assert ("count", counting["arguments"]) in peer.calls
    assert not [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]


async def test_a_door_that_closes_lets_a_call_come_to_its_end(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path, era) as served:
        wire = served.wire
        await wire.send(wire.call(waits=True))
        await served.peer.blocked.wait()
        served.opened.stop.set()
        answer = await wire.answer()
        with (
            anyio.fail_after(PATIENCE),
            pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)),
        ):
            await wire.stream.receive()

    assert "error" in answer.messages[0]


async def test_who_is_not_let_in_any_more_is_not_by_a_head_that_was(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", "x")
    token = ring.add("ann", None, None)
    keys = Keys(ring)
    async with serving(tmp_path, "modern", keys=keys) as served:
        wire = served.wire
        wire.token = token
        for _ in range(3):
            assert (await wire.ask(*wire.call())).status == 200
        # Each call of somebody with a name is counted for them.
        assert len(served.usual.calls) == 3
        ring.revoke("ann")
        keys.look()
        assert (await wire.ask(*wire.call())).status == 401


async def test_what_changes_is_looked_at_anew(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path, era) as served:
        wire, fleet = served.wire, served.opened.upstream.fleet
        await wire.ask(*wire.call())
        assert served.usual.calls == []
        before = fleet.now
        await served.peer.change(new={"description": "Is new"})
        with anyio.fail_after(PATIENCE):
            while fleet.now is before:
                await fleet.changed.wait()
        for _ in range(3):
            assert (await wire.ask(*wire.call())).status == 200

    assert len(served.usual.calls) == 1


async def test_what_changes_while_a_call_comes_is_looked_at_anew(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "modern") as served,
        connected(served.opened, "modern", served.wire) as wire,
    ):
        fleet, config = served.opened.upstream.fleet, served.opened.upstream.fleet.now.config
        head, body = wire.call()
        await wire.send([head])
        assert (await served.wire.ask(*served.wire.call())).status == 200
        # Clients of this era are not served any more, but for whoever has been let in.
        fleet.reconfigure(replace(config, settings=Settings(surface="promote")))
        await until(lambda: fleet.now.config is not config, lambda: fleet.changed)
        statuses = [(await wire.ask(body)).status, (await wire.ask(*wire.call())).status]

    assert statuses == [200, 400]


async def test_a_request_leaves_nothing_to_be_collected(tmp_path: Path) -> None:
    async with serving(tmp_path, "handshake") as served:
        gc.collect()
        gc.disable()
        try:
            for _ in range(9):
                await served.wire.ask(*served.wire.request("tools/list"))
            left = [each for each in gc.get_objects() if isinstance(each, Offer)]
        finally:
            gc.enable()

    # Of the call by which the others are known, and of the last request.
    assert len(left) <= 2


async def until_pinged(wire: Wire) -> bytes:
    """Call what takes long, and return what has come by the first sign of life."""
    await wire.send(wire.call(waits=True))
    came = b""
    while b": ping" not in came:
        came += await wire.stream.receive()
    return came


async def test_a_client_that_waits_long_hears_that_it_is_not_forgotten(
    era: Era, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aggregator.upstream.http.keepalive.TICK", 0.01)
    async with serving(tmp_path, era) as served:
        with anyio.fail_after(PATIENCE):
            came = await until_pinged(served.wire)

    assert b"text/event-stream" in came
    assert served.usual.calls == []


GARBAGE = [
    b"this is no request\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\n" + b"a: b\r\n" * 20_000,
    b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n" * 40 + b"\0",
]
"""What cannot be taken behind a call: at once, in its head, in its body, or for its number."""


async def until_closed(wire: Wire) -> bytes:
    came = b""
    with anyio.fail_after(PATIENCE), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            came += await wire.stream.receive()
    return came


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("calls", [0, 1, 2])
async def test_a_call_is_answered_whatever_stands_behind_it(
    era: Era, calls: int, garbage: bytes, tmp_path: Path
) -> None:
    lingering = {"name": "one__plain", "arguments": {"lingers": True}}
    async with serving(tmp_path, era) as served:
        wire = served.wire
        await wire.send(wire.request(CALL, lingering))
        await served.peer.blocked.wait()
        await wire.send(part for _ in range(calls) for part in wire.call())
        with suppress(anyio.BrokenResourceError):
            await wire.stream.send(garbage)
        async with connected(served.opened, era, wire) as other:
            # What it sent is read by the time that somebody else is answered.
            assert (await other.ask(*other.call())).status == 200
        served.peer.let_through.set()
        texts = [(await wire.answer()).text for _ in range(1 + calls)]
        rest = await until_closed(wire)

    assert texts == ["plain: {'lingers': True}", *["plain: {}"] * calls]
    assert b"HTTP/1.1 400" not in rest
    assert b"HTTP/1.1 431" not in rest


async def test_a_call_is_answered_though_the_next_is_never_whole(era: Era, tmp_path: Path) -> None:
    lingering = {"name": "one__plain", "arguments": {"lingers": True}}
    async with serving(tmp_path, era, patience=0.1) as served:
        async with connected(served.opened, era, served.wire) as wire:
            await wire.send(wire.request(CALL, lingering))
            await served.peer.blocked.wait()
            await wire.stream.send(b"POST")
            async with connected(served.opened, era, wire) as other:
                # Whoever dawdles later is hung up on later.
                await other.stream.send(b"POST")
                assert (await until_closed(other)).startswith(b"HTTP/1.1 408")
            served.peer.let_through.set()
            answer = await wire.answer()
            assert await until_closed(wire) == b""

    assert answer.text == "plain: {'lingers': True}"


async def test_nothing_stands_in_the_middle_of_an_answer(
    era: Era, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aggregator.upstream.http.keepalive.TICK", 0.01)
    lingering = {"name": "one__plain", "arguments": {"lingers": True}}
    async with serving(tmp_path, era) as served:
        wire, came = served.wire, b""
        await wire.send(wire.request(CALL, lingering))
        with anyio.fail_after(PATIENCE):
            while b": ping" not in came:
                came += await wire.stream.receive()
        await wire.stream.send(b"this is no request\r\n\r\n")
        async with connected(served.opened, era, wire) as other:
            assert (await other.ask(*other.call())).status == 200
        served.peer.let_through.set()
        came += await until_closed(wire)

    assert came.count(b"HTTP/1.1") == 1
    assert b"plain: {'lingers': True}" in came
    assert came.endswith(b"\r\n0\r\n\r\n")
