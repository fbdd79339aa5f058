"""What the example servers say of their tools, which is all a model has to choose by."""

import pytest
from mcp_types import Tool

from tests.examples.example_client import NAMES, Connect

pytestmark = pytest.mark.anyio


async def definitions(connect: Connect) -> list[Tool]:
    tools: list[Tool] = []
    for name in NAMES:
        async with connect(name) as server:
            if name == "board":
                await server.call("enable_sprints")
            tools += (await server.client.list_tools()).tools
    return tools


async def test_every_tool_and_every_parameter_is_described(connect: Connect):
    for tool in await definitions(connect):
        assert tool.title
        assert tool.description
        assert "  " not in tool.description
        assert "\n" not in tool.description
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"


async def test_every_tool_says_what_it_may_do(connect: Connect):
    for tool in await definitions(connect):
        hints = tool.annotations
        assert hints is not None, tool.name
        assert hints.open_world_hint is False
        if not hints.read_only_hint:
            assert None not in {hints.destructive_hint, hints.idempotent_hint}, tool.name


async def test_what_deletes_or_overwrites_is_marked_destructive(connect: Connect):
    destructive = {
        tool.name
        for tool in await definitions(connect)
        if tool.annotations and tool.annotations.destructive_hint
    }
    assert destructive == {
        *("update_note", "delete_note"),
        *("write_file", "replace_in_file", "move_path", "delete_file", "delete_directory"),
        *("edit_task", "close_sprint"),
    }


async def test_together_they_have_many_tools_and_no_name_twice(connect: Connect):
    names = [tool.name for tool in await definitions(connect)]
    assert len(names) == len(set(names)) >= 60
