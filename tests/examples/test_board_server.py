from datetime import date
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ToolsListChanged
from mcp_types import ToolListChangedNotification

from tests.examples.example_client import Connect, Load
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

SPRINT_TOOLS = {"start_sprint", "plan_task", "sprint_report", "close_sprint"}


async def test_a_task_is_added_and_read(connect: Connect):
    async with connect("board") as board:
        added = await board.call("add_task", title="Paint", priority="high", due="2030-01-31")
        assert (added["id"], added["column"], added["due"]) == (1, "backlog", "2030-01-31")
        assert await board.call("get_task", task_id=1) == added
        assert "There is no task 2; `list_tasks`" in await board.refusal("get_task", task_id=2)
        assert "due" in await board.refusal("add_task", title="x", due="tomorrow-ish")


async def test_a_task_is_moved_assigned_dated_ranked_edited_and_commented(connect: Connect):
    async with connect("board") as board:
        await board.call("add_task", title="Paint")
        assert (await board.call("move_task", task_id=1, column="doing"))["column"] == "doing"
        assert (await board.call("assign_task", task_id=1, assignee="Ada"))["assignee"] == "Ada"
        assert (await board.call("assign_task", task_id=1))["assignee"] is None
        assert (await board.call("set_due_date", task_id=1, due="2030-01-31"))["due"]
        assert (await board.call("set_due_date", task_id=1))["due"] is None
        ranked = await board.call("set_priority", task_id=1, priority="urgent")
        assert ranked["priority"] == "urgent"
        edited = await board.call("edit_task", task_id=1, description="white")
        assert (edited["title"], edited["description"]) == ("Paint", "white")
        commented = await board.call("comment_on_task", task_id=1, text="Which room?", author="Bo")
        (comment,) = commented["comments"]
        assert (comment["author"], comment["text"]) == ("Bo", "Which room?")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("move_task", {"column": "done"}),
        ("assign_task", {}),
        ("set_due_date", {}),
        ("set_priority", {"priority": "low"}),
        ("edit_task", {"title": "New"}),
        ("comment_on_task", {"text": "Hm"}),
        ("archive_task", {}),
        ("restore_task", {}),
    ],
)
async def test_a_change_of_a_task_that_is_not_there_is_refused(
    connect: Connect, tool: str, arguments: dict[str, Any]
):
    async with connect("board") as board:
        assert "There is no task 7" in await board.refusal(tool, task_id=7, **arguments)


async def test_what_a_tool_cannot_do_is_refused_readably(connect: Connect):
    async with connect("board") as board:
        await board.call("add_task", title="Paint")
        assert "Give a new `title`" in await board.refusal("edit_task", task_id=1)
        assert "column" in await board.refusal("move_task", task_id=1, column="someday")


async def test_tasks_are_listed_by_column_and_urgency_and_can_be_narrowed(connect: Connect):
    async with connect("board") as board:
        await board.call("add_task", title="later", assignee="Ada")
        await board.call("add_task", title="late", column="doing", due="2000-01-01")
        await board.call("add_task", title="urgent", priority="urgent")
        await board.call("add_task", title="gone")
        await board.call("archive_task", task_id=4)

        async def titles(**arguments: Any) -> list[str]:
            listing = await board.call("list_tasks", **arguments)
            return [task["title"] for task in listing["tasks"]]

        assert await titles() == ["urgent", "later", "late"]
        assert await titles(column="doing") == ["late"]
        assert await titles(assignee="Ada") == ["later"]
        assert await titles(overdue=True) == ["late"]
        assert await titles(archived=True) == ["gone"]
        overview = await board.call("board_overview")
        assert overview["columns"] == {"backlog": 2, "todo": 0, "doing": 1, "review": 0, "done": 0}
        assert (overview["overdue"], overview["unassigned"], overview["archived"]) == ([2], 2, 1)
        await board.call("restore_task", task_id=4)
        assert "gone" in await titles()


async def test_many_changes_at_once_are_all_kept(connect: Connect):
    async with connect("board") as board, anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(lambda number=number: board.call("add_task", title=str(number)))
    async with connect("board") as board:
        tasks = (await board.call("list_tasks"))["tasks"]
        assert {task["title"] for task in tasks} == set("01234567")


async def test_sprints_are_planned_reported_and_closed(connect: Connect):
    async with connect("board") as board:
        assert "start_sprint" in await board.call("enable_sprints")
        started = await board.call("start_sprint", name="One", ends=date.max.isoformat(), goal="go")
        assert (started["goal"], started["closed"]) == ("go", False)
        again = await board.refusal("start_sprint", name="One", ends="2030-01-31")
        assert "There is a sprint `One` already" in again
        for title in ("done", "open"):
            await board.call("add_task", title=title, column=title if title == "done" else "doing")
        await board.call("plan_task", task_id=1, name="One")
        assert (await board.call("plan_task", task_id=2, name="One"))["sprint"] == "One"
        missing = await board.refusal("plan_task", task_id=2, name="Two")
        assert "There is no sprint `Two`; there are: `One`" in missing
        report = await board.call("sprint_report", name="One")
        assert (report["done"], [task["id"] for task in report["open"]]) == (1, [2])
        assert report["days_left"] > 0
        closed = await board.call("close_sprint", name="One")
        assert closed == "Closed One: 1 task went back to the backlog"
        assert (await board.call("get_task", task_id=2))["column"] == "backlog"
        assert (await board.call("sprint_report", name="One"))["sprint"]["closed"] is True


async def test_sprint_tools_come_and_go(connect: Connect):
    async with connect("board") as board:

        async def sprint_tools() -> set[str]:
            tools = (await board.client.list_tools()).tools
            return SPRINT_TOOLS & {tool.name for tool in tools}

        assert await sprint_tools() == set()
        for _twice in range(2):
            await board.call("enable_sprints")
            assert await sprint_tools() == SPRINT_TOOLS
        for _twice in range(2):
            await board.call("disable_sprints")
            assert await sprint_tools() == set()


async def test_a_handshake_client_is_told_that_the_tools_changed(load: Load):
    told = anyio.Event()

    async def on_message(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.set()

    async with Client(load("board"), mode="legacy", message_handler=on_message) as client:
        capability = client.server_capabilities.tools
        assert capability is not None
        assert capability.list_changed is True
        await client.call_tool("enable_sprints", {})
        with anyio.fail_after(PATIENCE):
            await told.wait()


async def test_a_modern_client_is_told_that_the_tools_changed(load: Load):
    async with (
        Client(load("board"), mode="auto") as client,
        client.listen(tools_list_changed=True) as events,
    ):
        await client.call_tool("enable_sprints", {})
        with anyio.fail_after(PATIENCE):
            assert await anext(aiter(events)) == ToolsListChanged()


async def test_a_file_that_is_no_board_is_refused_and_kept(connect: Connect, tmp_path: Path):
    (tmp_path / "board.json").write_text("{oops", encoding="utf-8")
    async with connect("board") as board:
        assert "is not a task board" in await board.refusal("add_task", title="Paint")
    assert (tmp_path / "board.json").read_text(encoding="utf-8") == "{oops"


async def test_a_board_that_cannot_be_written_is_refused_readably(connect: Connect, tmp_path: Path):
    (tmp_path / "board.json").mkdir()
    async with connect("board") as board:
        assert "cannot be used: Is a directory" in await board.refusal("list_tasks")
