"""What the headers of a modern request have to say, and what they tell of tools."""

from pathlib import Path
from typing import Any

import pytest
from mcp_types import HEADER_MISMATCH, METHOD_NOT_FOUND

from aggregator.config import Settings
from aggregator.config.profile import Profile
from aggregator.upstream.http.keys import Keys, Ring
from tests.loopback.door import door
from tests.peers import Peer, connect_to, ready
from tests.upstream.http import wired
from tests.upstream.http.test_endpoint import http, modern, serving

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"mcp_method": "tools/list"}, 400),
        ({"mcp_name": "one__other"}, 400),
        ({"mcp_protocol_version": "2099-01-01"}, 400),
    ],
)
async def test_the_headers_of_a_modern_request_repeat_its_body(
    headers: dict[str, str], status: int, tmp_path: Path
) -> None:
    async with serving(tmp_path, "modern") as (opened, client, peer):
        given = {"mcp_name": "one__plain", **headers}
        asking = modern("tools/call", {"name": "one__plain", "arguments": {}}, **given)
        answer = await client.post(opened.url, **asking)

    assert answer.status_code == status
    assert answer.json()["id"] == 1
    assert len(peer.calls) == (status == 200)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_what_is_asked_about_a_task_names_it_in_a_header(method: str, tmp_path: Path) -> None:
    about: dict[str, Any] = {"taskId": "one", "inputResponses": {}}
    async with serving(tmp_path, "modern") as (opened, client, _):
        answers = [
            await client.post(opened.url, **modern(method, about, **named))
            for named in ({}, {"mcp_name": "another"}, {"mcp_name": "=?base64?b25l?="})
        ]

    codes = [each.json()["error"]["code"] for each in answers]
    assert codes == [HEADER_MISMATCH, HEADER_MISMATCH, METHOD_NOT_FOUND]
    assert [each.status_code for each in answers] == [400, 400, 404]


@pytest.mark.usefixtures("parser")
async def test_blanks_around_what_a_header_says_are_no_part_of_it(tmp_path: Path) -> None:
    async with wired.serving(tmp_path, "modern") as served:
        head, body = served.wire.call()
        name = b"mcp-name: one__plain"
        answer = await served.wire.ask(head.replace(name, b"mcp-name: \t one__plain \t "), body)

    assert name in head
    assert answer.status == 200


async def test_a_header_that_routes_is_there_once(tmp_path: Path) -> None:
    async with serving(tmp_path, "modern") as (opened, client, peer):
        asking = modern("tools/call", {"name": "one__plain"}, mcp_name="one__plain")
        twice = [*asking["headers"].items(), ("mcp-name", "one__plain")]
        answer = await client.post(opened.url, json=asking["json"], headers=twice)

    assert answer.status_code == 400
    assert "appears more than once" in answer.json()["error"]["message"]
    assert peer.calls == []


async def test_in_the_modern_era_there_are_only_requests(tmp_path: Path) -> None:
    async with serving(tmp_path, "modern") as (opened, client, _):
        headers = modern("ping")["headers"]
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        answers = [
            await client.post(opened.url, json=notice, headers=headers),
            await client.post(
                opened.url, json=notice, headers={"mcp-protocol-version": "2099-01-01"}
            ),
            await client.post(
                opened.url, json={"jsonrpc": "2.0", "id": 1, "result": {}}, headers=headers
            ),
            await client.get(opened.url, headers=headers),
            await client.delete(opened.url, headers=headers),
            await client.post(opened.url, **modern("no/such")),
        ]

    assert [each.status_code for each in answers] == [202, 400, 400, 405, 405, 404]
    assert answers[3].headers["allow"] == "POST"


async def test_arguments_that_a_tool_wants_in_headers_are_compared_with_them(
    tmp_path: Path,
) -> None:
    wanted = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": wanted, "note": {"type": "string"}}}
    peer = Peer(place={"inputSchema": schema})
    given = {"name": "one__place", "arguments": {"region": "here", "note": "x"}}
    named = {"mcp_name": "one__place"}
    async with door({"one": connect_to(peer)}, tmp_path) as opened, http(opened) as client:
        await ready(opened.upstream)
        answers = [
            await client.post(opened.url, **modern("tools/call", given, **named, **more))
            for more in ({}, {"mcp_param_region": "there"}, {"mcp_param_region": "here"})
        ]

    assert [each.status_code for each in answers] == [400, 400, 200]
    assert peer.calls == [("place", {"region": "here", "note": "x"})]


@pytest.mark.parametrize("profile", ["reading", "removed"])
async def test_headers_tell_nothing_of_a_tool_that_a_token_does_not_show(
    profile: str, tmp_path: Path
) -> None:
    wanted = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": wanted}}
    peer = Peer(place={"inputSchema": schema}, move={"inputSchema": schema})
    ring = Ring(tmp_path / "tokens.json", "/etc/servers.yaml")
    token = {"authorization": f"Bearer {ring.add('anna', profile, None)}"}
    settings = Settings(profiles={"reading": Profile("reading", deny=("move",))})
    answers: list[tuple[int, str]] = []
    async with (
        door({"one": connect_to(peer)}, tmp_path, settings, keys=Keys(ring)) as opened,
        http(opened) as client,
    ):
        await ready(opened.upstream)
        for name in ("one__move", "one__none", "one__place"):
            given = {"name": name, "arguments": {"region": "here"}}
            headers = {"mcp_name": name, "mcp_param_region": "there", **token}
            answer = await client.post(opened.url, **modern("tools/call", given, **headers))
            answers.append((answer.status_code, answer.text.replace(name, "NAME")))

    hidden, unknown, shown = answers
    assert hidden == unknown
    assert (shown == unknown) == (profile == "removed")
    assert peer.calls == []
