"""Logging in from inside a client that can show its person a page."""

import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import HTTPConnection

from aggregator.config import Settings
from aggregator.downstream.http.reach import reach
from aggregator.downstream.login.home import Home
from aggregator.errors import ERROR_META
from aggregator.upstream.caller import PEER, is_near
from aggregator.upstream.server import Upstream
from tests.downstream.login.authority import Authority, World, world
from tests.downstream.login.browser import browse, press
from tests.downstream.login.logins import WEB, logins_in, server_at
from tests.patience import PATIENCE
from tests.peers import Era, Peer, aggregating, connect_to, ready
from tests.raw import Json, RawClient, raw_client

pytestmark = pytest.mark.anyio

ABLE: Json = {"elicitation": {"form": {}, "url": {}}}
CALL: Json = {"name": "web__login", "arguments": {}}
ACCEPT: Json = {"action": "accept"}

Person = Callable[[str], Coroutine[Any, Any, Any]]


@asynccontextmanager
async def aggregator_for(
    there: World, directory: Path, settings: Settings | None = None, **options: Any
) -> AsyncGenerator[Upstream, None]:
    """Stand in front of a server that wants a login, and one that does not."""
    logins = logins_in(directory)
    connect = {
        "web": reach(server_at(there.url, **options), logins),
        "near": connect_to(Peer("near")),
    }
    home = Home(logins.directory, logins.config)
    address = {"type": "http", "url": there.url, **options}
    async with aggregating(connect, settings, logins=home, web=address) as upstream:
        await ready(upstream)
        yield upstream


def text(result: Json) -> str:
    return "\n".join(each["text"] for each in result["content"])


async def called(client: RawClient, person: Person, call: Json | None = None) -> Json:
    """Call the tool, and have a person do what they are asked to; return the last result."""
    call = call or CALL
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:

            def asked(params: Json) -> Json:
                group.start_soon(person, params["url"])
                return ACCEPT

            client.answers["elicitation/create"] = asked
            result = await client.request("tools/call", call)
            while result.get("resultType") == "input_required":
                (key, question), *_ = result["inputRequests"].items()
                client.questions.append((question["method"], question["params"]))
                answers = {key: asked(question["params"])}
                again = {"inputResponses": answers, "requestState": result["requestState"]}
                result = await client.request("tools/call", {**call, **again})
            return result
    raise AssertionError


@pytest.mark.parametrize(
    ("peer", "headers", "near"),
    [
        ("127.0.0.1", {"host": "127.0.0.1:8000"}, True),
        ("::1", {"host": "localhost:8000"}, True),
        ("192.168.0.7", {"host": "127.0.0.1:8000"}, False),
        ("127.0.0.1", {"host": "tools.example.com"}, False),
        ("127.0.0.1", {"host": "localhost", "x-forwarded-for": "203.0.113.9"}, False),
        ("127.0.0.1", {"host": "localhost", "forwarded": "for=203.0.113.9"}, False),
    ],
)
def test_only_a_client_on_this_machine_is_shown_a_page_of_it(
    peer: str, headers: dict[str, str], near: bool
) -> None:
    wire = [(name.encode(), value.encode()) for name, value in headers.items()]
    asked = HTTPConnection({"type": "http", "client": (peer, 1), "headers": wire, "path": "/mcp"})
    assert is_near(asked) is near
    assert is_near(None)
    # A gateway that was named may say nothing of its clients.
    assert not is_near(HTTPConnection({**asked.scope, PEER: (peer, 1)}))


def names_of(listing: Json) -> set[str]:
    return {each["name"] for each in listing["tools"]}


async def test_a_person_logs_in_where_their_client_shows_them(
    tmp_path: Path, client_era: Era, server_era: Era
) -> None:
    async with (
        world(era=server_era) as there,
        aggregator_for(there, tmp_path, Settings(surface="full")) as upstream,
        raw_client(upstream, client_era, ABLE) as client,
    ):
        assert "web__login" in names_of(await client.request("tools/list"))

        result = await called(client, press)

        assert not result.get("isError")
        assert text(result) == "web: logged in. It has 2 tools now: web__go, web__write."
        assert result["_meta"]["aggregator/login"]["tools"] == ["web__go", "web__write"]
        ((method, params),) = client.questions
        assert (method, params["mode"]) == ("elicitation/create", "url")
        assert ("elicitationId" in params) is (client_era == "handshake")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login/[\w-]{32}", params["url"])
        assert there.authority.origin.removeprefix("http://") in params["message"]
        told = f"{client.questions} {result}"
        assert not any(each in told for each in there.authority.given)
        if client_era == "handshake":
            done = await client.until_heard("notifications/elicitation/complete")
            assert done == {"elicitationId": params["elicitationId"]}
        names = names_of(await client.request("tools/list"))
        assert {"web__go", "web__write"} <= names
        assert "web__login" not in names
        gone = await client.request("tools/call", {"name": "web__go", "arguments": {}})
        assert text(gone) == "go: {}"


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}, {"elicitation": {"form": {}}}])
async def test_whoever_cannot_be_shown_a_page_is_told_the_command(
    tmp_path: Path, client_era: Era, capabilities: Json
) -> None:
    async with (
        world() as there,
        aggregator_for(there, tmp_path, Settings(surface="full")) as upstream,
        raw_client(upstream, client_era, capabilities) as client,
    ):
        assert "web__login" not in names_of(await client.request("tools/list"))
        result = await client.request("tools/call", CALL)

        assert result["isError"]
        assert f"aggregator login web --config {tmp_path}/servers.yaml" in text(result)
        assert "web__login" not in text(result)


async def test_a_client_that_takes_a_question_for_a_failure_is_told_the_command(
    tmp_path: Path, client_era: Era
) -> None:
    """It says that it can show a page, and in the modern era cannot read who asks it to."""
    async with (
        world() as there,
        aggregator_for(there, tmp_path, Settings(surface="full")) as upstream,
        raw_client(upstream, client_era, ABLE, name="copilot-cli") as client,
    ):
        listed = names_of(await client.request("tools/list"))
        assert ("web__login" in listed) is (client_era == "handshake")
        if client_era == "modern":
            result = await client.request("tools/call", CALL)
            assert f"aggregator login web --config {tmp_path}/servers.yaml" in text(result)


async def test_a_search_finds_it_and_says_how_it_is_called(tmp_path: Path, client_era: Era) -> None:
    async with (
        world() as there,
        aggregator_for(there, tmp_path, Settings(surface="relay")) as upstream,
        raw_client(upstream, client_era, ABLE) as client,
    ):

        async def search(query: str) -> Json:
            call = {"name": "ToolSearch", "arguments": {"query": query}}
            return await client.request("tools/call", call)

        for query in ("server:web", "web issues", "how to login", "select:web__login", "web__*"):
            found = (await search(query))["_meta"]["aggregator/search"]
            assert (query, found["matches"][0]) == (query, "web__login")
            assert found["tools"][0]["call"] == "CallTool"
        assert "web__login" not in text(await search("near"))
        nothing = await search("xylophone")
        assert "Call web__login with CallTool to have them do so now, or ask" in text(nothing)
        (told,) = nothing["_meta"]["aggregator/search"]["failed_mcp_servers"]
        assert told["login"]["tool"] == "web__login"
        assert "web__login" not in names_of(await client.request("tools/list"))

        call = {"name": "CallReadOnlyTool", "arguments": {"name": "web__login"}}
        refused = await client.request("tools/call", call)
        assert "web__login" in text(refused)
        assert refused["isError"]
        done = await called(client, press, {**call, "name": "CallTool"})
        assert text(done).startswith("web: logged in. It has 2 tools now")


async def test_where_found_tools_join_the_list_it_does_too(tmp_path: Path) -> None:
    async with (
        world() as there,
        aggregator_for(there, tmp_path, Settings(surface="promote")) as upstream,
        raw_client(upstream, "handshake", ABLE) as client,
    ):
        call = {"name": "ToolSearch", "arguments": {"query": "web"}}
        await client.request("tools/call", call)
        assert "web__login" in names_of(await client.request("tools/list"))
        await called(client, press)
        assert "web__login" not in names_of(await client.request("tools/list"))


async def test_another_tool_of_the_server_says_what_helps(tmp_path: Path, client_era: Era) -> None:
    async with (
        world() as there,
        aggregator_for(there, tmp_path) as upstream,
        raw_client(upstream, client_era, ABLE) as client,
    ):
        result = await client.request("tools/call", {"name": "web__go", "arguments": {}})

        assert result["isError"]
        assert text(result).endswith("To have them log in now, call `web__login`")


async def test_a_person_may_not_want_to(tmp_path: Path, client_era: Era) -> None:
    async with (
        world() as there,
        aggregator_for(there, tmp_path) as upstream,
        raw_client(upstream, client_era, ABLE) as client,
    ):
        decline: Json = {"action": "decline"}
        client.answers["elicitation/create"] = lambda _params: decline
        result = await client.request("tools/call", CALL)
        if client_era == "modern":
            answers = dict.fromkeys(result["inputRequests"], decline)
            again = {"inputResponses": answers, "requestState": result["requestState"]}
            result = await client.request("tools/call", {**CALL, **again})

        assert result["isError"]
        assert text(result) == (
            "Nobody has logged in to `web`: your user did not want to. Ask your user whether to "
            f"try again, or to run: aggregator login web --config {tmp_path}/servers.yaml"
        )
        error = result["_meta"][ERROR_META]
        command = f"aggregator login web --config {tmp_path}/servers.yaml"
        assert error == {"kind": "needs-login", "server": "web", "login": {"command": command}}
        assert logins_in(tmp_path).file(server_at(there.url)).read() is None
        # The next attempt is a new one.
        assert not (await called(client, press)).get("isError")


async def test_a_login_outlives_the_call_that_began_it(tmp_path: Path, client_era: Era) -> None:
    """A client may give up on a call long before a person has found their password."""
    async with (
        world() as there,
        aggregator_for(there, tmp_path) as upstream,
        raw_client(upstream, client_era, ABLE) as client,
    ):
        shown = anyio.Event()
        pages: list[str] = []

        async def dawdle(page: str) -> None:
            pages.append(page)
            shown.set()

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(called, client, dawdle)
                await shown.wait()
                group.cancel_scope.cancel()
            await press(pages[0])
            await until_ready(upstream)
        go = await client.request("tools/call", {"name": "web__go", "arguments": {}})
        assert text(go) == "go: {}"


async def until_ready(upstream: Upstream) -> None:
    while upstream.fleet.now.catalog.servers[WEB].known is None:
        await upstream.fleet.changed.wait()


async def test_two_who_ask_at_once_wait_for_one_login(tmp_path: Path) -> None:
    async with (
        world() as there,
        aggregator_for(there, tmp_path) as upstream,
        raw_client(upstream, "handshake", ABLE) as first,
        raw_client(upstream, "modern", ABLE) as second,
    ):
        pages: list[str] = []
        both = anyio.Event()

        async def wait(page: str) -> None:
            pages.append(page)
            if len(pages) == 2:
                both.set()
                await press(page)

        results: list[Json] = []

        async def call(client: RawClient) -> None:
            results.append(await called(client, wait))

        async with anyio.create_task_group() as group:
            group.start_soon(call, first)
            group.start_soon(call, second)

        assert len(set(pages)) == 1
        assert len(there.authority.queries) == 1
        assert [text(each).startswith("web: logged in") for each in results] == [True, True]


async def test_the_page_says_who_asks_and_can_be_used_once(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def look(page: str) -> None:
        seen.append(await browse(page))
        seen.append(await browse(page))
        await press(page)

    async with (
        world() as there,
        aggregator_for(there, tmp_path) as upstream,
        raw_client(upstream, "handshake", ABLE) as client,
    ):
        await called(client, look)

        host = there.authority.origin.removeprefix("http://")
        for page in seen:
            assert page.status_code == 200
            assert "Log in to web?" in page.text
            assert f"by {host}. Go on only" in page.text
            assert there.url.split("/")[2] in page.text
            assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


async def test_whoever_is_given_no_page_is_told_why(tmp_path: Path) -> None:
    async with (
        world(Authority(registers=False)) as there,
        aggregator_for(there, tmp_path) as upstream,
        raw_client(upstream, "handshake", ABLE) as client,
    ):
        result = await client.request("tools/call", CALL)

        assert "nobody can register at" in text(result)
        assert client.questions == []
