"""What a client of either era sees of the endpoint itself: its statuses, its forms, its ends."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from aggregator.upstream.requesters import MAX_INTRODUCTION
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.patience import PATIENCE
from tests.peers import ERAS, Context, Era, Peer, connect_to, ready

pytestmark = pytest.mark.anyio


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


BOTH = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO: Mapping[str, Any] = {
    "protocolVersion": LATEST_HANDSHAKE_VERSION,
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "somebody", "version": "1"},
}
ENVELOPE: Mapping[str, Any] = {
    types.PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
    types.CLIENT_CAPABILITIES_META_KEY: {},
}

Served = tuple[Open, httpx2.AsyncClient, Peer]


def asked(method: str, params: Mapping[str, Any] | None = None, number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params or {})}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return asked("tools/call", {"name": tool, "arguments": arguments})


def modern(method: str, params: Mapping[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    """Return a request of the modern era as httpx2 takes it."""
    message = asked(method, {**(params or {}), "_meta": ENVELOPE})
    named = {"mcp-protocol-version": LATEST_MODERN_VERSION, "mcp-method": method}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    return {"json": message, "headers": named}


@asynccontextmanager
async def http(opened: Open) -> AsyncGenerator[httpx2.AsyncClient, None]:
    async with httpx2.AsyncClient(
        headers={**opened.credentials, **BOTH},
        timeout=PATIENCE,
        trust_env=False,
        verify=NO_CERTIFICATES,
    ) as client:
        yield client


async def begin(client: httpx2.AsyncClient, opened: Open) -> dict[str, str]:
    """Shake hands; return what later requests of the session are sent with."""
    answer = await client.post(opened.url, json=asked("initialize", HELLO))
    session = {"mcp-session-id": answer.headers["mcp-session-id"]}
    session["mcp-protocol-version"] = answer.json()["result"]["protocolVersion"]
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await client.post(opened.url, json=message, headers=session)).status_code == 202
    return session


async def events(response: httpx2.Response) -> AsyncGenerator[dict[str, Any], None]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line[6:])


class Asker(Peer):
    """Asks whoever calls it before it answers."""

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        if params.name != "ask":
            return await super()._call(ctx, params)
        question = types.ElicitRequestFormParams(
            message="Sure?", requested_schema={"type": "object", "properties": {}}
        )
        answer = await ctx.session.send_request(
            types.ElicitRequest(params=question),
            types.ElicitResult,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
        text = types.TextContent(type="text", text=f"they {answer.action}")
        return types.CallToolResult(content=[text])


@asynccontextmanager
async def serving(directory: Path, era: Era = "handshake") -> AsyncGenerator[Served, None]:
    """Serve one server with a few tools; give the door, a client of it, and the server."""
    peer = Asker("plain", "count", "ask", "block")
    async with (
        door({"one": connect_to(peer, era)}, directory) as opened,
        http(opened) as client,
    ):
        await ready(opened.upstream)
        yield opened, client, peer


async def test_an_answer_that_is_all_there_is_to_say_is_json(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path) as (opened, client, _):
        answer = await client.post(opened.url, **await request_of(era, client, opened, "plain"))

    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.json()["id"] == 1
    assert answer.json()["result"]["content"][0]["text"] == "plain: {}"


async def test_what_is_told_before_the_answer_makes_it_a_stream(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path) as (opened, client, _):
        asking = await request_of(era, client, opened, "count")
        asking["json"]["params"].setdefault("_meta", {})["progressToken"] = "mine"
        answer = await client.post(opened.url, **asking)

    told = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data:")]
    assert answer.headers["content-type"] == "text/event-stream"
    assert [each.get("method") for each in told] == ["notifications/progress"] * 3 + [None]
    assert {each["params"]["progressToken"] for each in told[:3]} == {"mine"}
    assert told[-1]["result"]["content"][0]["text"] == "count: {}"


async def test_a_question_is_asked_on_the_stream_of_the_call_and_answered_by_another_request(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as (opened, client, _):
        session = await begin(client, opened)
        async with client.stream(
            "POST", opened.url, json=call("one__ask"), headers=session
        ) as response:
            heard = events(response)
            question = await anext(heard)
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
            taken = await client.post(opened.url, json=answer, headers=session)
            result = await anext(heard)

    assert question["method"] == "elicitation/create"
    assert taken.status_code == 202
    assert result["result"]["content"][0]["text"] == "they decline"


async def test_an_answer_to_nothing_that_was_asked_is_taken_and_forgotten(tmp_path: Path) -> None:
    async with serving(tmp_path) as (opened, client, _):
        session = await begin(client, opened)
        stray: dict[str, Any] = {"jsonrpc": "2.0", "id": 99, "result": {}}
        statuses = [
            (await client.post(opened.url, json=each, headers=session)).status_code
            for each in (stray, {**stray, "id": "x"}, asked("ping"))
        ]

    assert statuses == [202, 202, 200]


async def test_a_call_that_is_taken_back_is_said_to_be_and_cancelled(tmp_path: Path) -> None:
    async with serving(tmp_path) as (opened, client, peer):
        session = await begin(client, opened)
        told: list[dict[str, Any]] = []

        async def wait() -> None:
            async with client.stream(
                "POST", opened.url, json=call("one__block"), headers=session
            ) as response:
                told.extend([each async for each in events(response)])

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await peer.blocked.wait()
            # Some clients send for a string what they sent as a number.
            taken_back = {"requestId": "1", "reason": "enough"}
            notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": taken_back}
            await client.post(opened.url, json=notice, headers=session)
            with anyio.fail_after(PATIENCE):
                await peer.cancelled.wait()

    assert [(each["id"], each["error"]["code"]) for each in told] == [(1, -32800)]


async def test_only_in_the_modern_era_a_client_that_goes_takes_its_call_back(
    era: Era, tmp_path: Path
) -> None:
    async with serving(tmp_path) as (opened, client, peer):
        asking = await request_of(era, client, opened, "block")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: client.post(opened.url, **asking))
            await peer.blocked.wait()
            group.cancel_scope.cancel()
        if era == "modern":
            with anyio.fail_after(PATIENCE):
                await peer.cancelled.wait()
        else:
            # A later call of the session is answered, so the server has had every chance to hear.
            headers = asking["headers"]
            later = await client.post(opened.url, json=call("one__plain"), headers=headers)
            assert later.status_code == 200
        assert peer.cancelled.is_set() is (era == "modern")


async def test_a_session_that_its_client_ends_is_over_for_what_is_under_way(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as (opened, client, peer):
        session = await begin(client, opened)
        told: list[httpx2.Response] = []

        async def wait() -> None:
            asking = call("one__block")
            told.append(await client.post(opened.url, json=asking, headers=session))

        async with (
            client.stream("GET", opened.url, headers=session) as stream,
            anyio.create_task_group() as group,
        ):
            group.start_soon(wait)
            await peer.blocked.wait()
            assert (await client.delete(opened.url, headers=session)).status_code == 200
            assert [each async for each in events(stream)] == []
        after = await client.post(opened.url, json=asked("ping"), headers=session)

    assert peer.cancelled.is_set()
    assert "It may have taken effect" in told[0].text
    assert '"data":{"aggregator/error":{"kind":"session-ended"}}' in told[0].text
    assert (after.status_code, after.json()["error"]["message"]) == (404, "Session not found")


async def test_a_second_stream_of_a_session_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    async with serving(tmp_path) as (opened, client, _):
        session = await begin(client, opened)
        async with client.stream("GET", opened.url, headers=session) as first:
            second = await client.get(opened.url, headers=session)
        with anyio.fail_after(PATIENCE):
            while True:
                # What was sent before is no reason to hear anything again: nothing has a number.
                resumed = {**session, "last-event-id": "7"}
                async with client.stream("GET", opened.url, headers=resumed) as third:
                    if third.status_code == 200:
                        break

    assert (first.status_code, second.status_code) == (200, 409)


@pytest.mark.parametrize(
    ("changed", "body", "status"),
    [
        ({"accept": "application/json"}, asked("ping"), 406),
        ({"accept": "text/event-stream"}, asked("ping"), 406),
        ({"accept": "application/jsonp, text/event-stream"}, asked("ping"), 406),
        ({"accept": "*/*"}, asked("ping"), 200),
        ({"accept": "application/*;q=0.1, text/*"}, asked("ping"), 200),
        ({"content-type": "text/plain"}, asked("ping"), 415),
        ({"content-type": "application/json-seq"}, asked("ping"), 415),
        ({"content-type": "application/json; charset=utf-8"}, asked("ping"), 200),
        ({}, [asked("ping")], 400),
        ({}, "hello", 400),
        ({}, {"jsonrpc": "2.0", "id": None, "method": "ping"}, 400),
        ({}, {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, 400),
        ({}, {"jsonrpc": "1.0", "id": 1, "method": "ping"}, 400),
        ({}, {"jsonrpc": "2.0", "id": 1}, 400),
        ({"mcp-session-id": "made up"}, asked("ping"), 404),
    ],
)
async def test_what_cannot_be_taken_is_refused_with_its_status(
    changed: dict[str, str], body: Any, status: int, tmp_path: Path
) -> None:
    async with serving(tmp_path) as (opened, client, _):
        session = await begin(client, opened)
        answer = await client.post(opened.url, json=body, headers={**session, **changed})

    assert answer.status_code == status
    assert answer.json()["jsonrpc"] == "2.0"


async def test_a_request_without_a_session_is_told_what_it_lacks(tmp_path: Path) -> None:
    async with serving(tmp_path) as (opened, client, _):
        answers = [
            await client.post(opened.url, json=asked("ping")),
            await client.get(opened.url),
            await client.delete(opened.url),
            await client.post(opened.url, content=b"{"),
        ]
        refused = await client.post(opened.url, json=asked("initialize", {"nothing": True}))

    assert [each.status_code for each in answers] == [400] * 4
    assert "Missing session ID" in answers[0].json()["error"]["message"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (200, -32602)
    assert "mcp-session-id" not in refused.headers


async def request_of(
    era: Era, client: httpx2.AsyncClient, opened: Open, tool: str
) -> dict[str, Any]:
    """Return a call as a client of an era sends it."""
    name = f"one__{tool}"
    if era == "handshake":
        return {"json": call(name), "headers": await begin(client, opened)}
    return modern("tools/call", {"name": name, "arguments": {}}, mcp_name=name)


async def test_no_session_is_opened_for_a_client_that_says_too_much_of_itself(
    tmp_path: Path,
) -> None:
    titled: dict[str, Any] = {**HELLO["clientInfo"], "title": "x" * MAX_INTRODUCTION}

    async with serving(tmp_path) as (opened, client, _):
        hello = asked("initialize", {**HELLO, "clientInfo": titled})
        answer = await client.post(opened.url, json=hello)

    assert "mcp-session-id" not in answer.headers
    assert answer.json()["error"]["code"] == types.INVALID_PARAMS
    assert "`clientInfo` is too long" in answer.json()["error"]["message"]
