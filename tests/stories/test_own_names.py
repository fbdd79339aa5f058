"""Our own tools under the names that a person has given them."""

import json
from typing import Any

import pytest
from mcp import Client

from aggregator.config import Settings
from aggregator.names import RESERVED, MetaTools
from tests.config.reading import config_of, refusal
from tests.peers import ERAS, Era, Peer, aggregating, connect_to, error_of, ready, text_of, visiting

pytestmark = pytest.mark.anyio

NAMES = MetaTools("FindTool", "UseTool", "ReadTool")
RENAMED = Settings(names=NAMES)


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    return await client.call_tool(tool, arguments)


@pytest.mark.parametrize("era", ERAS)
async def test_everything_speaks_of_them_by_those_names(era: Era) -> None:
    async with aggregating({"db": connect_to(Peer("query"))}, RENAMED) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            listed = await client.list_tools()
            found = await call(client, "FindTool", query="query")
            used = await call(client, "UseTool", name="db__query")
            told = [
                await call(client, "UseTool", name="db__no"),
                await call(client, "UseTool"),
                await call(client, "UseTool", name="FindTool"),
                await call(client, "UseTool", name="UseTool", arguments={"name": "UseTool"}),
                await call(client, "ReadTool", name="db__query"),
            ]
            spoken = f"{client.instructions}{listed.model_dump_json()}"

    assert [tool.name for tool in listed.tools] == list(NAMES)
    assert 'Call: UseTool {"name": "db__query"' in text_of(found)
    assert (found.meta or {})["aggregator/search"]["tools"][0]["call"] == "UseTool"
    assert text_of(used) == "query: {}"
    texts = [text_of(each) for each in told]
    assert all(error_of(each) for each in told)
    assert [name for name in RESERVED if name in json.dumps([spoken, text_of(found), *texts])] == []
    assert "Use `UseTool` instead" in texts[-1]


@pytest.mark.parametrize("era", ERAS)
async def test_the_first_names_still_mean_the_same_unless_a_server_has_them(era: Era) -> None:
    whose = {"own": connect_to(Peer("CallTool", "FindTool"))}
    bare = {"prefix": "", "reserved": NAMES}

    async with aggregating(whose, RENAMED, own=bare) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            found = await call(client, "ToolSearch", query="")
            theirs = await call(client, "CallTool", name="x")

    assert "1 server, 1 tool." in text_of(found)
    assert text_of(theirs) == "CallTool: {'name': 'x'}"


def test_the_file_gives_them_their_names() -> None:
    text = "servers: {a: {command: a, prefix: ''}, b: {command: b}}\nnames: {search: find_tool}"
    config = config_of(text)

    assert config.settings.names == MetaTools(search="find_tool")
    assert [each.reserved.search for each in config.servers.values()] == ["find_tool", "find_tool"]


@pytest.mark.parametrize("name", ["a__b", "", "1a", "a-b", "x" * 46, "a_mcp_b", "find tool", "_a"])
def test_a_name_that_not_every_client_takes_is_refused(name: str) -> None:
    problem = refusal(f"servers: {{}}\nnames: {{call: '{name}'}}")

    assert "names.call" in str(problem)
    assert "letters, digits and single underscores" in str(problem)


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        ("{search: CallTool}", "`CallTool` (`search`) and `CallTool` (`call`)"),
        ("{search: X1, call: xl}", "`X1` (`search`) and `xl` (`call`)"),
    ],
)
def test_names_that_can_be_taken_for_one_another_are_refused(names: str, pair: str) -> None:
    problem = str(refusal(f"servers: {{}}\nnames: {names}"))

    assert f"can be taken for one another: {pair}" in problem


def test_a_tool_of_ours_that_does_not_exist_cannot_be_named() -> None:
    assert "`names.find`" in str(refusal("servers: {}\nnames: {find: X}"))
