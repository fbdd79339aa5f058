"""A session that one replica has opened is served by the other, to its owner and nobody else."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest

from aggregator.config import Settings
from aggregator.config.profile import Profile
from aggregator.upstream.http.keys import Keys, Ring
from aggregator.upstream.http.replicas.cipher import SharedCipher
from aggregator.upstream.http.replicas.key_file import ensure_keys
from aggregator.upstream.http.replicas.passes import LIFETIME, MAX_PASS, read_pass, write_pass
from aggregator.upstream.http.session import Introduction
from aggregator.upstream.http.sessions import Owner
from aggregator.upstream.replica import Replica
from aggregator.upstream.seal import Binding, ForeignStateError, Sealer, written
from tests.loopback.door import Open
from tests.peers import ERAS, Era, Peer, connect_to
from tests.raw import Json
from tests.upstream.digger import CALL, CAN, REMOTE, Digger
from tests.upstream.http.replicas.pair import pair
from tests.upstream.http.test_endpoint import (
    ENVELOPE,
    HELLO,
    Asker,
    asked,
    begin,
    call,
    events,
    modern,
)

pytestmark = pytest.mark.anyio

SESSION = "mcp-session-id"
MANY = {f"tool_{number}": {"description": f"Does thing {number}"} for number in range(60)}


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


def plain() -> dict[str, Any]:
    return {"one": connect_to(Peer("plain", "count"), "handshake")}


async def say(
    client: httpx2.AsyncClient, opened: Open, message: dict[str, Any], session: dict[str, str]
) -> httpx2.Response:
    return await client.post(opened.url, json=message, headers=session)


async def test_any_replica_serves_any_request(era: Era, tmp_path: Path) -> None:
    async with pair(plain, tmp_path) as (one, two, client):
        session = await begin(client, one) if era == "handshake" else {}
        for number in range(20):
            opened = (one, two)[number % 2]
            params = {"name": "one__plain", "arguments": {"number": number}}
            request: dict[str, Any] = modern("tools/call", params, mcp_name="one__plain")
            if era == "handshake":
                request = {"json": asked("tools/call", params), "headers": session}
            answer = await client.post(opened.url, **request)

            assert answer.status_code == 200
            text = answer.json()["result"]["content"][0]["text"]
            assert text == f"plain: {{'number': {number}}}"


@pytest.mark.parametrize("options", [{}, REMOTE], ids=["process", "address"])
async def test_a_task_is_followed_where_what_works_on_it_is(options: Json, tmp_path: Path) -> None:
    digger = Digger()
    able: Json = {"_meta": {**ENVELOPE, types.CLIENT_CAPABILITIES_META_KEY: CAN}}

    async def ask(opened: Open, method: str, name: str, params: Json) -> Json:
        request = modern(method, params, mcp_name=name)
        request["json"]["params"] |= able
        return (await client.post(opened.url, **request)).json()

    servers = {"peer": digger.connect}
    async with pair(lambda: servers, tmp_path, peer=options) as (one, two, client):
        handle = await ask(one, "tools/call", "peer__dig", CALL)
        task = handle["result"]["taskId"]
        here, there = [await ask(each, "tasks/get", task, {"taskId": task}) for each in (one, two)]

    assert here["result"]["status"] == "working"
    if options:
        assert there["result"]["status"] == "working"
    else:
        assert "This task is at the replica" in there["error"]["message"]


async def test_who_was_told_that_a_client_is_ready_does_not_matter(tmp_path: Path) -> None:
    async with pair(plain, tmp_path) as (one, two, client):
        answer = await client.post(one.url, json=asked("initialize", HELLO))
        session = {SESSION: answer.headers[SESSION]}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await say(client, two, ready, session)).status_code == 202
        assert (await say(client, one, call("one__plain"), session)).status_code == 200
        assert (await say(client, one, ready, session)).status_code == 202

        for opened in (one, two):
            (known,) = opened.upstream.conversations
            assert known.client == "somebody"
            assert known.capabilities == {"elicitation": {}}
            assert known.is_attended


async def test_many_first_requests_at_once_open_one_session(tmp_path: Path) -> None:
    statuses: list[int] = []
    async with pair(plain, tmp_path) as (one, two, client):
        session = await begin(client, one)

        async def ask() -> None:
            statuses.append((await say(client, two, call("one__plain"), session)).status_code)

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(ask)

        assert len(list(two.upstream.conversations)) == 1

    assert statuses == [200] * 20


async def test_a_client_that_listens_at_one_hears_what_changes_there(tmp_path: Path) -> None:
    peers: list[Peer] = []

    def servers() -> dict[str, Any]:
        peers.append(Peer("plain"))
        return {"one": connect_to(peers[-1])}

    async def change(peer: Peer) -> None:
        """Change until somebody notices: at first nobody may be there to be told."""
        while True:
            await peer.change(**{f"late_{len(peer.tools)}": {"description": "Comes later"}})
            await anyio.sleep(0.2)

    heard: dict[str, Any] = {}
    async with pair(servers, tmp_path, Settings(surface="full")) as (one, two, client):
        session = await begin(client, one)
        async with (
            client.stream("GET", two.url, headers=session) as stream,
            anyio.create_task_group() as group,
        ):
            assert stream.status_code == 200
            group.start_soon(change, peers[1])
            heard = await anext(events(stream))
            group.cancel_scope.cancel()

    assert heard["method"] == "notifications/tools/list_changed"


async def test_a_search_does_not_change_the_list_that_another_may_answer(tmp_path: Path) -> None:
    def servers() -> dict[str, Any]:
        return {"one": connect_to(Peer(**MANY))}

    settings = Settings(surface="hybrid")
    async with pair(servers, tmp_path, settings) as (one, two, client):
        session = await begin(client, one)
        before = (await say(client, one, asked("tools/list"), session)).json()["result"]["tools"]
        search = call("ToolSearch", query="thing 7")
        found = (await say(client, one, search, session)).json()["result"]["content"][0]["text"]
        lists = [
            (await say(client, each, asked("tools/list"), session)).json()["result"]["tools"]
            for each in (one, two)
        ]

    assert "one__tool_7" in found
    assert lists == [before, before]


async def test_an_id_is_no_credential(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "tokens.json", "x")
    anna, bert = ring.add("anna", None, None), ring.add("bert", None, None)
    settings = Settings(profiles={"few": Profile("few")})

    async with pair(plain, tmp_path, settings, keys=(Keys(ring), Keys(ring))) as (one, two, client):
        client.headers["authorization"] = f"Bearer {anna}"
        session = await begin(client, one)
        statuses = dict[str, int]()
        for name, token, path in (
            ("its owner", anna, ""),
            ("another profile", anna, "/few"),
            ("another token", bert, ""),
            ("the door's own token", one.token, ""),
            ("no such token", "x" * 40, ""),
        ):
            headers = {**session, "authorization": f"Bearer {token}"}
            answer = await client.post(two.url + path, json=call("one__plain"), headers=headers)
            statuses[name] = answer.status_code
        del client.headers["authorization"]
        answer = await client.post(two.url, json=call("one__plain"), headers=session)
        statuses["nothing"] = answer.status_code

    assert statuses == {
        "its owner": 200,
        "another profile": 404,
        "another token": 404,
        "the door's own token": 404,
        "no such token": 401,
        "nothing": 401,
    }


async def test_what_is_not_sealed_by_us_for_this_opens_nothing(tmp_path: Path) -> None:
    async with pair(plain, tmp_path) as (one, two, client):
        session = await begin(client, one)
        good = session[SESSION]
        other = SharedCipher(ensure_keys(tmp_path / "another-key"))
        introduction = Introduction(types.InitializeRequestParams.model_validate(HELLO), "x")
        foreign = write_pass(introduction, Owner(), Replica("two"), other)
        state = two.upstream.replica.sealer.seal({}, Binding("", "", "", ""))
        cipher = one.upstream.replica.cipher
        assert cipher is not None
        odd = [
            written(cipher.close("session", each))
            for each in (b"{}", b"[]", b"\xff", b'{"until": 9e99}')
        ]
        wrong = [
            f"{good[:30]}{'y' if good[30] == 'x' else 'x'}{good[31:]}",
            good[:-4],
            good.swapcase(),
            foreign,
            state,
            "x" * 5000,
            *odd,
        ]
        for key in (*wrong, ""):
            answer = await say(client, two, call("one__plain"), {SESSION: key})
            assert answer.status_code == 404, key
        assert len(list(two.upstream.conversations)) == 0
        assert (await say(client, two, call("one__plain"), session)).status_code == 200


async def test_a_session_that_its_client_has_ended_is_over_where_it_was_ended(
    tmp_path: Path,
) -> None:
    async with pair(plain, tmp_path) as (one, two, client):
        session = await begin(client, one)
        assert (await say(client, two, call("one__plain"), session)).status_code == 200
        assert (await client.delete(two.url, headers=session)).status_code == 200

        # Without anything else in common, the other cannot know.
        statuses = [
            (await say(client, each, call("one__plain"), session)).status_code
            for each in (two, one)
        ]

    assert statuses == [404, 200]


async def test_an_answer_that_comes_to_who_has_not_asked_is_sent_again(tmp_path: Path) -> None:
    def servers() -> dict[str, Any]:
        return {"one": connect_to(Asker("ask"), "handshake")}

    async with pair(servers, tmp_path) as (one, two, client):
        session = await begin(client, one)
        async with client.stream("POST", one.url, json=call("one__ask"), headers=session) as stream:
            heard = events(stream)
            question = await anext(heard)
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
            elsewhere = await say(client, two, answer, session)
            here = await say(client, one, answer, session)
            result = await anext(heard)

    assert elsewhere.status_code == 503
    assert elsewhere.headers["retry-after"] == "1"
    assert elsewhere.json()["error"]["data"] == {
        "kind": "elsewhere",
        "replica": "one",
        "retry": True,
    }
    assert here.status_code == 202
    assert result["result"]["content"][0]["text"] == "they decline"


async def test_a_parked_call_goes_on_where_it_waits_and_says_so_elsewhere(tmp_path: Path) -> None:
    def servers() -> dict[str, Any]:
        return {"one": connect_to(Asker("ask"), "handshake")}

    async with pair(servers, tmp_path) as (one, two, client):
        params: dict[str, Any] = {"name": "one__ask", "arguments": {}}
        request = modern("tools/call", params, mcp_name="one__ask")
        able: dict[str, Any] = {types.CLIENT_CAPABILITIES_META_KEY: {"elicitation": {"form": {}}}}
        meta = request["json"]["params"]["_meta"]
        request["json"]["params"]["_meta"] = {**meta, **able}
        first = (await client.post(one.url, **request)).json()["result"]
        assert first["resultType"] == "input_required"
        answers = {key: {"action": "decline"} for key in first["inputRequests"]}
        request["json"]["params"] |= {
            "inputResponses": answers,
            "requestState": first["requestState"],
        }
        elsewhere = await client.post(two.url, **request)
        here = await client.post(one.url, **request)

    assert elsewhere.status_code == 503
    assert elsewhere.headers["retry-after"] == "1"
    facts = elsewhere.json()["error"]["data"]["aggregator/error"]
    assert facts == {"kind": "elsewhere", "replica": "one", "retry": True}
    assert here.json()["result"]["content"][0]["text"] == "they decline"


async def test_a_state_of_a_modern_server_is_taken_by_any_replica(tmp_path: Path) -> None:
    def servers() -> dict[str, Any]:
        return {"one": connect_to(Rounds("pick"))}

    async with pair(servers, tmp_path) as (one, two, client):
        request = modern("tools/call", {"name": "one__pick", "arguments": {}}, mcp_name="one__pick")
        first = (await client.post(one.url, **request)).json()["result"]
        assert "the server's own" not in json.dumps(first)
        request["json"]["params"] |= {"requestState": first["requestState"], "inputResponses": {}}
        second = (await client.post(two.url, **request)).json()["result"]

    assert second["content"][0]["text"] == "the server's own state"


class Rounds(Peer):
    """Asks for nothing, twice, and wants its state back."""

    async def _call(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        assert ctx.session
        if params.request_state is None:
            return types.InputRequiredResult(request_state="the server's own state")
        text = types.TextContent(type="text", text=params.request_state)
        return types.CallToolResult(content=[text])


async def test_a_process_of_its_own_is_where_the_session_was_opened(tmp_path: Path) -> None:
    own: dict[str, Any] = {"is_shared": True, "one": {"per_client": True}}
    async with pair(plain, tmp_path, **own) as (one, two, client):
        session = await begin(client, one)
        elsewhere = await say(client, two, call("one__plain"), session)
        here = await say(client, one, call("one__plain"), session)
        request = modern(
            "tools/call", {"name": "one__plain", "arguments": {}}, mcp_name="one__plain"
        )
        sessionless = (await client.post(one.url, **request)).json()["result"]

    assert elsewhere.status_code == 503
    assert elsewhere.json()["error"]["data"]["aggregator/error"]["replica"] == "one"
    assert here.json()["result"]["content"][0]["text"] == "plain: {}"
    assert sessionless["isError"]
    assert "several replicas" in sessionless["content"][0]["text"]


def test_an_id_says_what_was_settled_and_ends(tmp_path: Path) -> None:
    cipher = SharedCipher(ensure_keys(tmp_path / "key"))
    client = types.InitializeRequestParams.model_validate(HELLO)
    owner = Owner("reading", "digest")
    key = write_pass(Introduction(client, "2025-06-18"), owner, Replica("b"), cipher, lambda: 100.0)

    found = read_pass(key, cipher, lambda: 100.0 + LIFETIME - 1)
    assert found is not None
    assert (found.owner, found.home) == (owner, "b")
    assert found.introduction.version == "2025-06-18"
    assert found.introduction.client.client_info.name == "somebody"
    assert read_pass(key, cipher, lambda: 100.0 + LIFETIME + 1) is None


def test_who_says_much_of_itself_has_an_id_that_gateways_take(tmp_path: Path) -> None:
    cipher = SharedCipher(ensure_keys(tmp_path / "key"))
    long: dict[str, Any] = {
        **HELLO,
        "clientInfo": {"name": "n" * 9000, "version": "v" * 9000, "title": "t" * 9000},
        "capabilities": {"sampling": {}, "extensions": {"x/y": {"z" * 9000: {}}}},
    }
    client = types.InitializeRequestParams.model_validate(long)
    key = write_pass(
        Introduction(client, "x"), Owner("p" * 60, "d" * 64), Replica("b" * 60), cipher
    )

    assert len(key) < MAX_PASS
    found = read_pass(key, cipher)
    assert found is not None
    assert found.introduction.client.capabilities.sampling is not None
    assert found.introduction.client.client_info.name == "n" * 128


def test_a_token_of_a_request_ends_by_the_clock_that_replicas_share(tmp_path: Path) -> None:
    cipher, time = SharedCipher(ensure_keys(tmp_path / "key")), 0.0
    here, there = (Sealer(cipher, lambda: time) for _ in range(2))
    binding = Binding("who", "server", "tools/call", "tool")
    token = here.seal({"state": "s"}, binding)

    assert there.open(token, binding) == {"state": "s"}
    time = 3601.0
    with pytest.raises(ForeignStateError):
        there.open(token, binding)


class Wordy(Peer):
    """Says more than anybody wants to read."""

    async def _call(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        assert ctx.session
        text = types.TextContent(type="text", text=f"{params.name} " * 20_000)
        return types.CallToolResult(content=[text])


async def test_a_result_that_was_shortened_is_read_where_it_is_kept(
    era: Era, tmp_path: Path
) -> None:
    def servers() -> dict[str, Any]:
        return {"one": connect_to(Wordy(**MANY))}

    def reading(name: str, session: dict[str, str]) -> dict[str, Any]:
        given: dict[str, Any] = {"name": name, "arguments": {}}
        params = {"name": "CallReadOnlyTool", "arguments": given}
        if era == "modern":
            return modern("tools/call", params, mcp_name="CallReadOnlyTool")
        return {"json": asked("tools/call", params), "headers": session}

    settings = Settings(max_result_tokens=2_000, surface="relay")
    async with pair(servers, tmp_path, settings) as (one, two, client):
        session = await begin(client, one) if era == "handshake" else {}
        params: dict[str, Any] = {"name": "one__tool_1", "arguments": {}}
        request: dict[str, Any] = modern("tools/call", params, mcp_name="one__tool_1")
        if era == "handshake":
            request = {"json": asked("tools/call", params), "headers": session}
        result = (await client.post(one.url, **request)).json()["result"]
        name = result["_meta"]["aggregator/result"]["name"]
        elsewhere = await client.post(two.url, **reading(name, session))
        here = await client.post(one.url, **reading(name, session))

    assert elsewhere.status_code == 503
    assert elsewhere.json()["error"]["data"]["aggregator/error"]["replica"] == "one"
    assert "tool_1 tool_1" in json.dumps(here.json()["result"]["content"])
