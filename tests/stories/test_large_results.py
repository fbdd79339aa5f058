"""Results that are too large for a model: shortened, kept for their client, and read again."""

import json
import re
from dataclasses import replace
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Scale
from aggregator.config import Settings
from aggregator.config.profile import Profile
from aggregator.names import ServerName
from aggregator.records.events import CallEnded, Event
from aggregator.upstream.results.parts import room_of
from aggregator.upstream.results.telling import RESULT_META
from aggregator.upstream.visitor import Visitor
from tests.peers import (
    Context,
    Era,
    Mortal,
    Peer,
    aggregating,
    connect_to,
    error_of,
    never,
    ready,
    text_of,
    until,
    visiting,
)
from tests.raw import Dispatch, Json, RawServer
from tests.stories.test_server_dies import in_turn

pytestmark = pytest.mark.anyio

LIMIT = 10_000
GUARDED = Settings(max_result_tokens=LIMIT, surface="relay")
LARGE = "".join(
    f"line {number:06} of the log: é\U0001f600 all is well\n" for number in range(12_000)
)
SCHEMA = {"type": "object", "properties": {"lines": {"type": "array"}}, "required": ["lines"]}
IMAGE = types.ImageContent(type="image", data="aGVsbG8=", mime_type="image/png")
ONE, TWO = Visitor("one", "/", 1), Visitor("two", "/", 2)
CODEX = types.Implementation(name="codex-mcp-client", version="1")
CLINE = types.Implementation(name="@cline/core", version="1")
CLAUDE = types.Implementation(name="claude-code", version="1")


class Logs(Peer):
    """A server with results of any size."""

    def __init__(self, *, hint: bool = True) -> None:
        plain: dict[str, Any] = {"annotations": {"readOnlyHint": True}} if hint else {}
        super().__init__(
            read=plain, several=plain, fail=plain, list=plain | {"outputSchema": SCHEMA}
        )

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        assert ctx.session
        size = int((params.arguments or {}).get("size", 400_000))
        text = types.TextContent(type="text", text=LARGE[:size])
        match params.name:
            case "several":
                middle = types.TextContent(type="text", text=f"needle {LARGE[:50_000]}")
                return types.CallToolResult(content=[text, IMAGE, middle])
            case "list":
                lines = LARGE[:size].splitlines()
                said = types.TextContent(type="text", text=json.dumps({"lines": lines}))
                return types.CallToolResult(content=[said], structured_content={"lines": lines})
            case _:
                return types.CallToolResult(content=[text], is_error=params.name == "fail")


@pytest.fixture(params=["handshake", "modern"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


def spent(result: types.CallToolResult) -> int:
    """Return how many bytes a model is given, but for images."""
    return len(text_of(result).encode())


def facts(result: types.CallToolResult) -> dict[str, Any]:
    return (result.meta or {})[RESULT_META]


def calls_in(result: types.CallToolResult) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that a model is told to copy."""
    found = re.findall(r"(CallReadOnlyTool) (\{.*?\}\})", text_of(result))
    return [(name, json.loads(arguments)) for name, arguments in found]


async def read_all(client: Client, call: tuple[str, dict[str, Any]]) -> str:
    """Read a result from its beginning, page by page, as the answers say."""
    name, arguments = call
    text, arguments = "", {**arguments, "arguments": {"from": 0}}
    while True:
        page = await client.call_tool(name, arguments)
        assert not page.is_error
        assert spent(page) <= room_of(LIMIT)
        text += "".join(each.text for each in page.content[1:] if each.type == "text")
        if "next" not in facts(page):
            return text
        ((name, arguments),) = calls_in(page)


@pytest.mark.parametrize("through", [None, "CallTool", "CallReadOnlyTool"])
async def test_a_large_result_costs_its_limit_and_is_read_again_to_the_last_byte(
    era: Era, through: str | None
) -> None:
    name, arguments = "logs__read", dict[str, Any](size=400_000)
    if through is not None:
        name, arguments = through, {"name": name, "arguments": arguments}
    async with aggregating({"logs": connect_to(Logs())}, GUARDED) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            shown = await client.call_tool(name, arguments)

            assert spent(shown) <= room_of(LIMIT)
            note, head, _gap, tail = [each.text for each in shown.content if each.type == "text"]
            assert "This result has 400,000 characters, about 160,000 tokens" in note
            assert LARGE[:400_000].startswith(head)
            assert LARGE[:400_000].endswith(tail)
            assert len(head) > len(tail) > 1_000
            read, find = calls_in(shown)
            assert await read_all(client, read) == LARGE[:400_000]
            whole = await client.read_resource(facts(shown)["uri"])
            (content,) = whole.contents
            assert isinstance(content, types.TextResourceContents)
            assert content.text == LARGE[:400_000]

            name, arguments = find
            sought = {**arguments, "arguments": {"find": "007654 well"}}
            found = await client.call_tool(name, sought)
            assert "line 007654 of the log" in text_of(found)
            assert spent(found) <= room_of(LIMIT)
            best = facts(found)["found"][0]
            assert LARGE[best["at"] :][:6] in ("007654", "well\nl")
            assert best["words"] == 2


async def test_tokens_are_as_large_as_they_were_counted_to_be(era: Era) -> None:
    async with aggregating({"logs": connect_to(Logs())}, GUARDED) as upstream:
        await ready(upstream)
        upstream.fleet.weigh(Scale.of({ServerName("logs"): 5.0}, is_growing=True), None)
        async with visiting(upstream, era) as client:
            shown = await client.call_tool("logs__read", {"size": 400_000})
            (name, arguments), _find = calls_in(shown)
            page = await client.call_tool(name, arguments)

    assert "about 80,000 tokens" in text_of(shown)
    for each in (shown, page):
        assert room_of(LIMIT) < spent(each) <= room_of(LIMIT, 5.0)


async def test_what_is_not_too_large_passes_as_it_came(era: Era) -> None:
    async with aggregating({"logs": connect_to(Logs())}, GUARDED) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            result = await client.call_tool("logs__read", {"size": 10_000})

    assert text_of(result) == LARGE[:10_000]
    assert RESULT_META not in (result.meta or {})


async def test_nothing_is_shortened_where_nothing_is_said(era: Era) -> None:
    async with aggregating({"logs": connect_to(Logs())}, Settings(surface="relay")) as upstream:
        await ready(upstream)
        for visitor, known in ((ONE, None), (TWO, CLAUDE)):
            async with visiting(upstream, era, visitor, client_info=known) as client:
                result = await client.call_tool("logs__read", {})
                assert text_of(result) == LARGE[:400_000]


@pytest.mark.parametrize(("known", "limit"), [(CODEX, 16_000), (CLINE, 2_400)])
async def test_clients_that_lose_the_rest_are_spared_by_default(
    known: types.Implementation, limit: int, era: Era
) -> None:
    settings = Settings(surface="relay")
    async with aggregating({"logs": connect_to(Logs())}, settings) as upstream:
        await ready(upstream)
        async with visiting(upstream, era, client_info=known) as client:
            result = await client.call_tool("logs__read", {})

    assert spent(result) <= room_of(limit)


async def test_what_is_said_of_a_client_comes_before_what_is_said_of_all(era: Era) -> None:
    settings = Settings(surface="relay", max_result_tokens=LIMIT, result_limits={"Codex": 0})
    async with aggregating({"logs": connect_to(Logs())}, settings) as upstream:
        await ready(upstream)
        named = types.Implementation(name="codex", version="1")
        async with visiting(upstream, era, ONE, client_info=named) as client:
            assert text_of(await client.call_tool("logs__read", {})) == LARGE[:400_000]
        async with visiting(upstream, era, TWO) as client:
            assert spent(await client.call_tool("logs__read", {})) <= room_of(LIMIT)


async def test_images_and_errors_stay_what_they_are(era: Era) -> None:
    async with aggregating({"logs": connect_to(Logs())}, GUARDED) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            several = await client.call_tool("logs__several", {})
            failed = await client.call_tool("logs__fail", {})
            read, _find = calls_in(several)
            joined = await read_all(client, read)

    assert IMAGE.data in [each.data for each in several.content if each.type == "image"]
    assert joined == f"{LARGE[:400_000]}needle {LARGE[:50_000]}"
    assert failed.is_error
    assert spent(failed) <= room_of(LIMIT)


async def test_a_promised_structure_is_kept_where_a_client_would_refuse_its_absence(
    era: Era,
) -> None:
    settings = Settings(max_result_tokens=LIMIT)
    async with aggregating({"logs": connect_to(Logs())}, settings) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            await client.call_tool("ToolSearch", {"query": "select:logs__list"})
            # The SDK's client refuses a result that does not fit the schema it has listed.
            direct = await client.call_tool("logs__list", {})
            relay: dict[str, Any] = {"name": "logs__list", "arguments": {}}
            relayed = await client.call_tool("CallReadOnlyTool", relay)
            part = [call for call in calls_in(relayed) if call[1]["name"].endswith("/structured")]
            joined = await read_all(client, part[0])

    assert direct.structured_content == {"lines": LARGE[:400_000].splitlines()}
    assert spent(direct) <= room_of(LIMIT)
    assert relayed.structured_content is None
    assert spent(relayed) <= room_of(LIMIT)
    assert json.loads(joined) == direct.structured_content


async def test_nobody_else_reads_a_result_and_nothing_is_left_of_it(era: Era) -> None:
    async with aggregating({"logs": connect_to(Logs())}, GUARDED, is_shared=True) as upstream:
        await ready(upstream)
        async with visiting(upstream, era, ONE) as client, visiting(upstream, era, TWO) as other:
            shown = await client.call_tool("logs__read", {})
            (name, arguments), _find = calls_in(shown)

            refused = await other.call_tool(name, arguments)
            with pytest.raises(MCPError, match="There is no resource"):
                await other.read_resource(facts(shown)["uri"])

            assert error_of(refused)["kind"] == "unknown-result"
            assert not (await client.call_tool(name, arguments)).is_error
            assert (len(upstream.kept), upstream.kept.weight > 400_000) == (1, True)
        await until(lambda: not len(upstream.kept), lambda: upstream.kept.changed)
        assert upstream.kept.weight == 0


async def test_an_unknown_result_is_told_with_what_to_do(era: Era) -> None:
    async with aggregating({"logs": connect_to(Logs())}, GUARDED) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            answer = await client.call_tool("CallReadOnlyTool", {"name": "result:nope"})
            with pytest.raises(MCPError, match="There is no resource"):
                await client.read_resource("catalog://results/nope")
            shown = await client.call_tool("logs__read", {})
            wrong = {"name": facts(shown)["name"], "arguments": {"from": "x"}}
            misread = await client.call_tool("CallReadOnlyTool", wrong)

    assert error_of(answer)["kind"] == "unknown-result"
    assert "Call the tool again" in text_of(answer)
    assert error_of(misread)["kind"] == "invalid-arguments"


async def test_whoever_listens_is_told_of_the_whole_result(era: Era) -> None:
    async with aggregating({"logs": connect_to(Logs())}, GUARDED) as upstream:
        await ready(upstream)
        heard: list[Event] = []
        hearing = upstream.fleet.stream.heard_by(heard.append, content=True)
        async with visiting(upstream, era) as client:
            with hearing:
                await client.call_tool("logs__read", {})

    (ended,) = [each for each in heard if isinstance(each, CallEnded)]
    assert ended.content is not None
    assert ended.content.result is not None
    assert ended.content.result["content"][0]["text"] == LARGE[:400_000]


VIEW = Profile("view")
HIDING = (
    {"view": replace(VIEW, deny=("read",))},
    {"view": replace(VIEW, allow=("logs__several",))},
    {"view": replace(VIEW, servers=("other",))},
    {"view": replace(VIEW, read_only=True)},
    dict[str, Profile](),
)
"""Edits after which a tool is hidden."""


async def test_a_result_is_not_read_again_once_its_tool_is_hidden(era: Era) -> None:
    servers = {"logs": connect_to(Logs(hint=False)), "other": connect_to(Peer("go"))}
    shown_to = replace(GUARDED, profiles={"view": VIEW})
    async with aggregating(servers, shown_to, is_shared=True) as upstream:
        await ready(upstream)
        config = upstream.fleet.now.config
        async with visiting(upstream, era, Visitor("one", "/", 1, "view")) as client:
            for profiles in HIDING:
                upstream.fleet.reconfigure(config)
                shown = await client.call_tool("logs__read", {})
                (name, arguments), find = calls_in(shown)
                assert not (await client.call_tool(name, arguments)).is_error

                edited = replace(shown_to, profiles=profiles)
                upstream.fleet.reconfigure(replace(config, settings=edited))

                for asked in (arguments, find[1]):
                    refused = await client.call_tool("CallReadOnlyTool", asked)
                    assert error_of(refused)["kind"] == "unknown-result"
                with pytest.raises(MCPError, match="There is no resource"):
                    await client.read_resource(facts(shown)["uri"])


async def test_a_result_of_a_prompt_or_a_resource_is_hidden_with_it(
    era: Era, server_era: Era
) -> None:
    server = RawServer(server_era)
    server.prompts = [{"name": "tell"}]
    server.resources = [{"uri": "log://all", "name": "all"}]

    async def get(_context: Dispatch, _params: Json) -> Json:
        content = {"type": "text", "text": LARGE[:100_000]}
        return {"messages": [{"role": "user", "content": content}]}

    async def read(_context: Dispatch, params: Json) -> Json:
        return {"contents": [{"uri": params["uri"], "text": LARGE[:100_000]}]}

    server.handlers |= {"prompts/get": get, "resources/read": read}
    settings = replace(GUARDED, profiles={"view": VIEW})
    seen = Visitor("one", "/", 1, "view")
    async with aggregating({"logs": server.connect}, settings, is_shared=True) as upstream:
        await ready(upstream)
        async with visiting(upstream, era, seen) as client:
            uris: list[str] = []
            for name in ("prompt:logs__tell", "resource:log://all"):
                shown = await client.call_tool("CallTool", {"name": name, "arguments": {}})
                uris.append(facts(shown)["uri"])
                await client.read_resource(uris[-1])
            narrow = replace(VIEW, allow=("logs__other",))
            edited = replace(settings, profiles={"view": narrow})
            upstream.fleet.reconfigure(replace(upstream.fleet.now.config, settings=edited))

            for uri in uris:
                with pytest.raises(MCPError, match="There is no resource"):
                    await client.read_resource(uri)


async def test_a_result_is_read_again_while_its_server_is_away(era: Era) -> None:
    mortal = Mortal(in_turn(connect_to(Logs()), never()))
    async with aggregating({"logs": mortal}, GUARDED) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            shown = await client.call_tool("logs__read", {})
            mortal.cut()
            await until(
                lambda: not upstream.fleet.now.catalog.entries, lambda: upstream.fleet.changed
            )
            (name, arguments), _find = calls_in(shown)
            read = await client.call_tool(name, arguments)

    assert not read.is_error


class Crumbs(Peer):
    """A server whose results have very many parts."""

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        assert ctx.session, params.name
        texts = [types.TextContent(type="text", text=f"{number} ") for number in range(20_000)]
        return types.CallToolResult(content=[*texts, IMAGE, *texts])


async def test_a_result_of_very_many_parts_is_read_whole_as_few(era: Era) -> None:
    async with aggregating({"logs": connect_to(Crumbs("read"))}, GUARDED) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            shown = await client.call_tool("logs__read", {})
            whole = await client.read_resource(facts(shown)["uri"])
            part = await client.read_resource(f"{facts(shown)['uri']}/20001")

    crumbs = "".join(f"{number} " for number in range(20_000))
    first, image, last = whole.contents
    assert isinstance(image, types.BlobResourceContents)
    assert [
        each.text for each in (first, last) if isinstance(each, types.TextResourceContents)
    ] == [crumbs] * 2
    assert [
        each.text for each in part.contents if isinstance(each, types.TextResourceContents)
    ] == ["0 "]
