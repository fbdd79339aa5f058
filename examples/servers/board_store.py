"""A task board as values, kept in one JSON file."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal, get_args

from pydantic import TypeAdapter

Column = Literal["backlog", "todo", "doing", "review", "done"]
Priority = Literal["low", "normal", "high", "urgent"]
COLUMNS: tuple[Column, ...] = get_args(Column)


@dataclass(frozen=True)
class Comment:
    """Something said about a task."""

    author: str
    text: str
    at: str


@dataclass(frozen=True)
class Task:
    """A card on the board."""

    id: int
    title: str
    description: str = ""
    column: Column = "backlog"
    priority: Priority = "normal"
    assignee: str | None = None
    due: date | None = None
    comments: list[Comment] = field(default_factory=list[Comment])
    sprint: str | None = None
    archived: bool = False
    created: str = ""

    def overdue(self, today: date) -> bool:
        """Whether it should be done by now and is not."""
        return self.due is not None and self.due < today and self.column != "done"


@dataclass(frozen=True)
class Sprint:
    """A span of time with work planned for it."""

    name: str
    goal: str
    ends: date
    closed: bool = False


@dataclass(frozen=True)
class Board:
    """All tasks and sprints."""

    tasks: list[Task] = field(default_factory=list[Task])
    sprints: list[Sprint] = field(default_factory=list[Sprint])
    next_id: int = 1

    def task(self, task_id: int) -> Task:
        """Return a task.

        Raises:
            LookupError: No task has that number.
        """
        for task in self.tasks:
            if task.id == task_id:
                return task
        raise LookupError(f"There is no task {task_id}; `list_tasks` shows the numbers")

    def sprint(self, name: str) -> Sprint:
        """Return a sprint.

        Raises:
            LookupError: No sprint has that name.
        """
        for sprint in self.sprints:
            if sprint.name == name:
                return sprint
        known = ", ".join(f"`{sprint.name}`" for sprint in self.sprints) or "none"
        raise LookupError(f"There is no sprint `{name}`; there are: {known}")

    def with_new(self, task: Task) -> "Board":
        """Return the board with one more task."""
        return replace(self, tasks=[*self.tasks, task], next_id=self.next_id + 1)

    def with_task(self, task: Task) -> "Board":
        """Return the board with a task in the place of the one with its number."""
        tasks = [task if task.id == old.id else old for old in self.tasks]
        return replace(self, tasks=tasks)

    def with_sprint(self, sprint: Sprint) -> "Board":
        """Return the board with a sprint, in the place of the one with its name if there is one."""
        others = [old for old in self.sprints if old.name != sprint.name]
        return replace(self, sprints=[*others, sprint])


def in_order(tasks: Sequence[Task]) -> list[Task]:
    """Return tasks by column, the most urgent and the earliest due first."""
    priorities: tuple[Priority, ...] = get_args(Priority)

    def key(task: Task) -> tuple[int, int, date, int]:
        urgency = -priorities.index(task.priority)
        return COLUMNS.index(task.column), urgency, task.due or date.max, task.id

    return sorted(tasks, key=key)


def load(path: Path) -> Board:
    """Read the board; a file that is not there is an empty board.

    Raises:
        ValueError: The file is not a board.
    """
    try:
        return TypeAdapter(Board).validate_json(path.read_bytes())
    except FileNotFoundError:
        return Board()


def save(path: Path, board: Board) -> None:
    """Write the board, so that a reader sees the old one or the new one and never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    text = json.dumps(asdict(board), indent=2, ensure_ascii=False, default=str)
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(path)


def now() -> str:
    """Return this moment, as it is kept in the file."""
    return datetime.now(UTC).isoformat(timespec="seconds")
