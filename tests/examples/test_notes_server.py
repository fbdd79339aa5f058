import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types import TextContent, TextResourceContents

from tests.examples.example_client import Connect

pytestmark = pytest.mark.anyio


async def test_a_note_is_created_read_and_deleted(connect: Connect):
    async with connect("notes") as notes:
        answer = await notes.call("create_note", title="Tea", body="Earl Grey", tags=["#Drinks"])
        assert answer == "Created note 1: Tea"
        note = await notes.call("get_note", note_id=1)
        assert (note["title"], note["body"], note["tags"]) == ("Tea", "Earl Grey", ["drinks"])
        assert await notes.call("delete_note", note_id=1) == "Deleted note 1: Tea"
        assert "There is no note 1; `list_notes`" in await notes.refusal("get_note", note_id=1)


async def test_a_quick_note_takes_its_first_line_as_title(connect: Connect):
    async with connect("notes") as notes:
        answer = await notes.call("quick_note", text="\nBuy milk\nand bread")
        assert answer == "Created note 1: Buy milk"
        assert await notes.call("quick_note", text=" \n ") == "Created note 2: Untitled"


async def test_search_wants_every_word_and_prefers_titles(connect: Connect):
    async with connect("notes") as notes:
        await notes.call("create_note", title="Green tea", body="brew at 80 degrees")
        await notes.call("create_note", title="Shopping", body="green TEA, honey")
        await notes.call("create_note", title="Green apples")
        found = await notes.call("search_notes", query="Tea green")
        assert [note["title"] for note in found["notes"]] == ["Green tea", "Shopping"]
        assert (await notes.call("search_notes", query="green", limit=1))["total"] == 3
        assert (await notes.call("search_notes", query="100%_"))["notes"] == []


async def test_notes_are_listed_in_order_page_by_page_and_by_tag(connect: Connect):
    async with connect("notes") as notes:
        for title in ("b", "C", "a"):
            await notes.call("create_note", title=title, body="x " * 200, tags=["t" + title])

        async def titles(**arguments: Any) -> list[str]:
            listing = await notes.call("list_notes", **arguments)
            return [note["title"] for note in listing["notes"]]

        assert await titles() == ["a", "C", "b"]
        assert await titles(order="oldest") == ["b", "C", "a"]
        assert await titles(order="title", limit=2, offset=1) == ["b", "C"]
        assert await titles(tag="#TB") == ["b"]
        assert "order" in await notes.refusal("list_notes", order="sideways")
        listing = await notes.call("list_notes", limit=1)
        assert listing["notes"][0]["snippet"].endswith("…")


async def test_an_update_replaces_or_appends(connect: Connect):
    async with connect("notes") as notes:
        await notes.call("create_note", title="List", body="milk")
        note = await notes.call("update_note", note_id=1, body="eggs", mode="append")
        assert note["body"] == "milk\neggs"
        note = await notes.call("update_note", note_id=1, title="New", body="", mode="replace")
        assert (note["title"], note["body"]) == ("New", "")
        refusal = await notes.refusal("update_note", note_id=1, body="lost?")
        assert "Set `mode` to `replace` or `append`" in refusal


async def test_many_notes_made_at_once_are_all_kept(connect: Connect):
    async with connect("notes") as notes:
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(lambda number=number: notes.call("quick_note", text=str(number)))
        titles = [note["title"] for note in (await notes.call("list_notes"))["notes"]]
        assert sorted(titles) == list("01234567")


async def test_tags_are_added_counted_and_removed(connect: Connect):
    async with connect("notes") as notes:
        await notes.call("create_note", title="One", tags=["work"])
        await notes.call("create_note", title="Two")
        await notes.call("tag_note", note_id=2, tags=["Work", "home"])
        assert (await notes.call("list_tags"))["tags"] == [
            {"tag": "work", "notes": 2},
            {"tag": "home", "notes": 1},
        ]
        note = await notes.call("untag_note", note_id=2, tags=["work", "unknown"])
        assert note["tags"] == ["home"]
        assert "There is no note 9" in await notes.refusal("tag_note", note_id=9, tags=["x"])


async def test_links_show_on_both_notes_and_go_with_them(connect: Connect):
    async with connect("notes") as notes:
        for title in ("One", "Two"):
            await notes.call("create_note", title=title)
        answer = await notes.call("link_notes", source=1, target=2)
        assert answer == "Linked note 1 (One) to note 2 (Two)"
        assert (await notes.call("get_note", note_id=2))["linked_from"] == [1]
        assert "itself" in await notes.refusal("link_notes", source=1, target=1)
        await notes.call("unlink_notes", source=1, target=2)
        assert "There is no link" in await notes.refusal("unlink_notes", source=1, target=2)
        await notes.call("link_notes", source=1, target=2)
        await notes.call("delete_note", note_id=2)
        assert (await notes.call("get_note", note_id=1))["links_to"] == []


async def test_an_export_reports_progress(connect: Connect):
    reports: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with connect("notes") as notes:
        await notes.call("create_note", title="One", body="first", tags=["a"])
        await notes.call("create_note", title="Two")
        await notes.call("link_notes", source=1, target=2)
        exported = await notes.client.call_tool("export_notes", progress_callback=on_progress)
        assert reports == [(1, 2, "Exported 1 note"), (2, 2, "Exported 2 notes")]
        (block,) = exported.content
        assert isinstance(block, TextContent)
        assert block.text == "# Two\n\n# One\n\n#a\n\nfirst\n\nSee also: note 2"
        document = json.loads(await notes.call("export_notes", form="json", tag="a"))
        assert [note["title"] for note in document] == ["One"]
        nothing = await notes.call("export_notes", tag="none")
        assert nothing == "There are no notes to export"


async def test_notes_are_resources_and_there_is_a_prompt(connect: Connect):
    async with connect("notes") as notes:
        await notes.call("create_note", title="Tea", body="Earl Grey")
        (contents,) = (await notes.client.read_resource("notes://recent")).contents
        assert isinstance(contents, TextResourceContents)
        assert (contents.text, contents.mime_type) == ("- 1: Tea", "text/markdown")
        (contents,) = (await notes.client.read_resource("notes://note/1")).contents
        assert isinstance(contents, TextResourceContents)
        assert contents.text == "# Tea\n\nEarl Grey"
        for missing in ("7", "x"):
            with pytest.raises(MCPError, match=f"There is no note {missing}"):
                await notes.client.read_resource(f"notes://note/{missing}")
        prompt = await notes.client.get_prompt("summarise_notes", {"topic": "tea"})
        (message,) = prompt.messages
        assert isinstance(message.content, TextContent)
        assert "- note 1: Tea" in message.content.text


async def test_one_tool_is_always_loaded_and_some_have_search_hints(connect: Connect):
    async with connect("notes") as notes:
        tools = (await notes.client.list_tools()).tools
    always = [tool.name for tool in tools if (tool.meta or {}).get("anthropic/alwaysLoad")]
    assert always == ["quick_note"]
    hinted = {tool.name for tool in tools if "anthropic/searchHint" in (tool.meta or {})}
    assert {"create_note", "search_notes", "export_notes"} <= hinted


async def test_a_file_that_is_no_database_is_refused_readably(connect: Connect, tmp_path: Path):
    (tmp_path / "notes.db").write_text("not a database " * 100, encoding="utf-8")
    async with connect("notes") as notes:
        assert "cannot be used: file is not a database" in await notes.refusal("list_tags")
