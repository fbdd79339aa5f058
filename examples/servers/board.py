"""An MCP server that keeps a task board in one JSON file.

The file is `BOARD_FILE`, or `mcp-tool-aggregator/examples/board.json` in the user's state
directory; it is made by the first change. `enable_sprints` adds tools while the server runs, and
tells clients that the list of tools changed.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import board_store
from board_store import COLUMNS, Board, Column, Comment, Priority, Sprint, Task, in_order
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field
from serving import ADDS, READS, REPLACES, SETS, ExampleServer, plural, serve, state_path

TaskId = Annotated[int, Field(description="The number of the task", ge=1)]
Title = Annotated[str, Field(description="What is to be done", min_length=1, max_length=200)]
Where = Annotated[Column, Field(description="The column of the board")]
Due = Annotated[date | None, Field(description="A date such as 2026-03-31; leave out for none")]
Urgency = Annotated[Priority, Field(description="How urgent it is")]
SprintName = Annotated[str, Field(description="The name of the sprint", min_length=1)]
Assignee = Annotated[str | None, Field(description="Who does it; leave out for nobody")]

server = ExampleServer(
    "board",
    title="Task board",
    instructions="A task board: add tasks, move them from backlog to done, assign, comment, plan.",
    list_changes=True,
)


@dataclass(frozen=True)
class TaskList:
    """Tasks in the order of the board."""

    tasks: list[Task]


@dataclass(frozen=True)
class Overview:
    """The board in numbers."""

    columns: dict[str, int]
    overdue: list[int]
    unassigned: int
    archived: int


@dataclass(frozen=True)
class SprintReport:
    """How far a sprint has come."""

    sprint: Sprint
    done: int
    open: list[Task]
    days_left: int


@server.offer("Add a task", ADDS, hint="todo card ticket issue create new")
def add_task(
    title: Title,
    *,
    description: Annotated[str, Field(description="More about it, if needed")] = "",
    column: Where = "backlog",
    priority: Urgency = "normal",
    assignee: Assignee = None,
    due: Due = None,
) -> Task:
    """Put a new task on the board and return it with its number."""

    def add(board: Board) -> Board:
        task = Task(board.next_id, title, description, column, priority, assignee, due)
        return board.with_new(replace(task, created=board_store.now()))

    return _change(add).tasks[-1]


@server.offer("Read a task", READS, hint="show card ticket details")
def get_task(task_id: TaskId) -> Task:
    """Return one task whole, with its comments."""
    return _task(_board(), task_id)


@server.offer("List tasks", READS, hint="todo open work what is next overdue my tasks")
def list_tasks(
    column: Annotated[Column | None, Field(description="Only this column")] = None,
    assignee: Annotated[str | None, Field(description="Only this person's tasks")] = None,
    overdue: Annotated[bool, Field(description="Only tasks that should be done by now")] = False,
    archived: Annotated[bool, Field(description="The archive instead of the board")] = False,
) -> TaskList:
    """List tasks by column, the most urgent first; narrow by column, person or due date."""
    return TaskList(
        [
            task
            for task in in_order(_board().tasks)
            if task.archived == archived
            and column in {None, task.column}
            and assignee in {None, task.assignee}
            and (not overdue or task.overdue(_today()))
        ]
    )


@server.offer("Board overview", READS, hint="summary status kanban statistics")
def board_overview() -> Overview:
    """Count the tasks in each column, and name those that are overdue."""
    tasks = [task for task in _board().tasks if not task.archived]
    return Overview(
        columns={column: sum(task.column == column for task in tasks) for column in COLUMNS},
        overdue=[task.id for task in tasks if task.overdue(_today())],
        unassigned=sum(task.assignee is None for task in tasks),
        archived=len(_board().tasks) - len(tasks),
    )


@server.offer("Move a task", SETS, hint="status start finish complete progress column")
def move_task(task_id: TaskId, column: Where) -> Task:
    """Move a task to another column, for example to `doing` or `done`."""
    return _edit(task_id, lambda task: replace(task, column=column))


@server.offer("Assign a task", SETS, hint="owner responsible delegate person")
def assign_task(task_id: TaskId, assignee: Assignee = None) -> Task:
    """Give a task to a person, or to nobody."""
    return _edit(task_id, lambda task: replace(task, assignee=assignee))


@server.offer("Set a due date", SETS, hint="deadline schedule when")
def set_due_date(task_id: TaskId, due: Due = None) -> Task:
    """Set the day by which a task must be done, or remove it."""
    return _edit(task_id, lambda task: replace(task, due=due))


@server.offer("Set the priority", SETS, hint="urgent important")
def set_priority(task_id: TaskId, priority: Urgency) -> Task:
    """Set how urgent a task is."""
    return _edit(task_id, lambda task: replace(task, priority=priority))


@server.offer("Edit a task", REPLACES, hint="rename rewrite description")
def edit_task(
    task_id: TaskId,
    title: Annotated[str | None, Field(description="The new title, if it changes")] = None,
    description: Annotated[str | None, Field(description="The new description, if any")] = None,
) -> Task:
    """Change the title or the description of a task; what was there before is lost."""
    if title is None and description is None:
        raise ToolError("Give a new `title`, a new `description`, or both")

    def edit(task: Task) -> Task:
        kept = task.description if description is None else description
        return replace(task, title=title or task.title, description=kept)

    return _edit(task_id, edit)


@server.offer("Comment on a task", ADDS, hint="remark discuss reply")
def comment_on_task(
    task_id: TaskId,
    text: Annotated[str, Field(description="The comment", min_length=1)],
    author: Annotated[str, Field(description="Who says it")] = "assistant",
) -> Task:
    """Add a comment to a task."""
    comment = Comment(author, text, board_store.now())
    return _edit(task_id, lambda task: replace(task, comments=[*task.comments, comment]))


@server.offer("Archive a task", SETS, hint="remove close hide delete")
def archive_task(task_id: TaskId) -> Task:
    """Take a task off the board; `restore_task` brings it back."""
    return _edit(task_id, lambda task: replace(task, archived=True))


@server.offer("Restore a task", SETS, hint="unarchive undo bring back")
def restore_task(task_id: TaskId) -> Task:
    """Put an archived task back on the board."""
    return _edit(task_id, lambda task: replace(task, archived=False))


@server.offer("Enable sprints", SETS, hint="scrum iteration planning")
async def enable_sprints(ctx: Context) -> str:
    """Add the tools for sprints to this server: start, plan, report and close."""
    if not await _has_sprints():
        for title, annotations, function in SPRINT_TOOLS:
            server.offer(title, annotations)(function)
        await _announce(ctx)
    return f"Sprint tools: {', '.join(function.__name__ for *_, function in SPRINT_TOOLS)}"


@server.offer("Disable sprints", SETS, hint="scrum iteration")
async def disable_sprints(ctx: Context) -> str:
    """Take the tools for sprints away again; sprints and their tasks are kept."""
    if await _has_sprints():
        for *_, function in SPRINT_TOOLS:
            server.remove_tool(function.__name__)
        await _announce(ctx)
    return "The sprint tools are off"


def start_sprint(
    name: SprintName,
    ends: Annotated[date, Field(description="Its last day, such as 2026-03-31")],
    goal: Annotated[str, Field(description="What it is for")] = "",
) -> Sprint:
    """Start a sprint that ends on a given day."""

    def start(board: Board) -> Board:
        if any(sprint.name == name for sprint in board.sprints):
            raise ToolError(f"There is a sprint `{name}` already; choose another name")
        return board.with_sprint(Sprint(name, goal, ends))

    return _change(start).sprint(name)


def plan_task(task_id: TaskId, name: SprintName) -> Task:
    """Plan a task for a sprint."""
    _sprint(_board(), name)
    return _edit(task_id, lambda task: replace(task, sprint=name))


def sprint_report(name: SprintName) -> SprintReport:
    """Tell what of a sprint is done, what is open, and how many days are left."""
    board = _board()
    sprint = _sprint(board, name)
    tasks = in_order([task for task in board.tasks if task.sprint == name])
    unfinished = [task for task in tasks if task.column != "done"]
    days_left = max(0, (sprint.ends - _today()).days)
    return SprintReport(sprint, len(tasks) - len(unfinished), unfinished, days_left)


def close_sprint(name: SprintName) -> str:
    """Close a sprint; its unfinished tasks go back to the backlog, without a sprint."""
    report = sprint_report(name)

    def close(board: Board) -> Board:
        for task in report.open:
            board = board.with_task(replace(task, sprint=None, column="backlog"))
        return board.with_sprint(replace(report.sprint, closed=True))

    _change(close)
    return f"Closed {name}: {plural(len(report.open), 'task')} went back to the backlog"


SPRINT_TOOLS: tuple[tuple[str, ToolAnnotations, Callable[..., Any]], ...] = (
    ("Start a sprint", ADDS, start_sprint),
    ("Plan a task", SETS, plan_task),
    ("Sprint report", READS, sprint_report),
    ("Close a sprint", REPLACES, close_sprint),
)


async def advertise_list_changes(
    ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Say in the handshake that the list of tools can change, which the SDK leaves out."""
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(result, dict):
        result["capabilities"]["tools"]["listChanged"] = True
    return result


server.middleware.append(advertise_list_changes)


async def _has_sprints() -> bool:
    return any(tool.name == start_sprint.__name__ for tool in await server.list_tools())


async def _announce(ctx: Context) -> None:
    """Tell clients of both eras; each call reaches one of them and is nothing to the other."""
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()


_lock = threading.Lock()
"""Held from reading the file to writing it: tools run in threads."""


def _change(change: Callable[[Board], Board]) -> Board:
    with _lock, _readable_errors() as path:
        board = change(board_store.load(path))
        board_store.save(path, board)
    return board


def _edit(task_id: int, edit: Callable[[Task], Task]) -> Task:
    return _change(lambda board: board.with_task(edit(board.task(task_id)))).task(task_id)


def _board() -> Board:
    with _readable_errors() as path:
        return board_store.load(path)


def _task(board: Board, task_id: int) -> Task:
    with _readable_errors():
        return board.task(task_id)


def _sprint(board: Board, name: str) -> Sprint:
    with _readable_errors():
        return board.sprint(name)


@contextmanager
def _readable_errors() -> Generator[Path]:
    """Give the board's file; what goes wrong with it becomes an error the caller can read."""
    path = state_path("BOARD_FILE", "board.json")
    try:
        yield path
    except LookupError as error:
        raise ToolError(str(error)) from error
    except ValueError as error:
        raise ToolError(f"`{path}` is not a task board; move it away to start afresh") from error
    except OSError as error:
        raise ToolError(f"`{path}` cannot be used: {error.strerror}") from error


def _today() -> date:
    return datetime.now(UTC).astimezone().date()


if __name__ == "__main__":
    serve(server)
