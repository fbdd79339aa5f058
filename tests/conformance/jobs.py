"""Jobs of the fixture: tools that answer with a task, and what clients ask about one.

Nothing runs meanwhile: how a job stands is reckoned from the clock whenever somebody asks.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, NoReturn

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError

from tests.conformance.exchange import Exchange
from tests.conformance.offers import Json, form
from tests.conformance.tools import NAME, filled_in, said

Context = ServerRequestContext[Any, Any]

TASKS = "io.modelcontextprotocol/tasks"
KEPT = 60_000
"""Milliseconds for which a job is said to be kept; it is kept as long as the fixture runs."""
POLLED = 100
"""Milliseconds that a client had better wait before it asks again."""


class TaskParams(types.RequestParams):
    """Which task a client asks about."""

    task_id: str


class UpdateParams(TaskParams):
    """What a client answers a task that has asked it something."""

    input_responses: Json


@dataclass
class Job:
    """What is worked on after a call was answered."""

    end: Callable[[Json], Json]
    """Says what has come of it, given the answers to its questions."""
    seconds: float = 0.0
    questions: Json = field(default_factory=dict[str, Any])
    answers: Json = field(default_factory=dict[str, Any])
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        self.touched = self.began

    def state(self) -> Json:
        """Say how it stands, and what it asks or what has come of it."""
        due = self.touched + timedelta(seconds=self.seconds)
        is_due = due <= datetime.now(UTC)
        if self.questions:
            stand: Json = {"status": "input_required", "inputRequests": self.questions}
        elif is_due:
            stand = self.end(self.answers)
        else:
            stand = {"status": "working"}
        return {**self._known(due if is_due else self.touched), **stand}

    def handle(self) -> Json:
        """Say that it has begun."""
        return {"resultType": "task", **self._known(self.began), "status": "working"}

    def update(self, answers: Json) -> None:
        """Take the answers to what it asks, to some of it or to all."""
        given = {key: each for key, each in answers.items() if key in self.questions}
        if given:
            self.answers |= given
            self.questions = {key: each for key, each in self.questions.items() if key not in given}
            self.touched = datetime.now(UTC)

    def cancel(self) -> None:
        """End it, unless it is over."""
        if self.state()["status"] in ("working", "input_required"):
            self.end, self.seconds, self.questions = cancelled, 0.0, {}
            self.touched = datetime.now(UTC)

    def _known(self, updated: datetime) -> Json:
        return {
            "createdAt": self.began.isoformat(),
            "lastUpdatedAt": updated.isoformat(),
            "ttlMs": KEPT,
            "pollIntervalMs": POLLED,
        }


class Jobs:
    """All of them, each under the id that its client was given."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    async def begin(self, name: str, exchange: Exchange) -> Json:
        """Call a tool: answer with a task, or with the result if need be and if it can be had.

        Raises:
            InputNeededError: The client is asked something before.
            MCPError: There can be no task, and nothing else is of use.
        """
        if not exchange.knows(TASKS) and name not in AT_ONCE:
            refuse()
        job = await JOBS[name](exchange)
        if not exchange.knows(TASKS):
            await anyio.sleep(job.seconds)
            return job.end(job.answers)["result"]
        task = token_hex(8)
        self._jobs[task] = job
        return {"taskId": task, **job.handle()}

    async def get(self, ctx: Context, params: TaskParams) -> Json:
        job = self._known(ctx, params)
        return {"taskId": params.task_id, **job.state()}

    async def update(self, ctx: Context, params: UpdateParams) -> Json:
        self._known(ctx, params).update(params.input_responses)
        return {}

    async def cancel(self, ctx: Context, params: TaskParams) -> Json:
        self._known(ctx, params).cancel()
        return {}

    def _known(self, ctx: Context, params: TaskParams) -> Job:
        if not Exchange(ctx).knows(TASKS):
            refuse()
        if params.task_id not in self._jobs:
            raise MCPError(types.INVALID_PARAMS, "Task not found")
        return self._jobs[params.task_id]


def refuse() -> NoReturn:
    """Tell a client that it would have to know of tasks.

    Raises:
        MCPError: Always.
    """
    raise MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "The client must be able to follow a task",
        {"requiredCapabilities": {"extensions": {TASKS: {}}}},
    )


def completed(result: Json) -> Json:
    return {"status": "completed", "result": result}


def cancelled(_answers: Json) -> Json:
    return {"status": "cancelled"}


async def compute(exchange: Exchange) -> Job:
    label = exchange.arguments["label"]
    result = completed(said(f"Computed {label}"))
    return Job(lambda _: result, seconds=exchange.arguments["seconds"])


async def fail(_exchange: Exchange) -> Job:
    result = completed({**said("The job has failed"), "isError": True})
    return Job(lambda _: result, seconds=1)


async def break_down(_exchange: Exchange) -> Job:
    error = {"code": types.INTERNAL_ERROR, "message": "The job has broken down"}
    return Job(lambda _: {"status": "failed", "error": error})


async def delete(exchange: Exchange) -> Job:
    name = exchange.arguments["filename"]

    def end(answers: Json) -> Json:
        is_meant = filled_in(answers["confirm"]).get("confirm")
        return completed(said(f"{name} is {'deleted' if is_meant else 'kept'}"))

    question = form(f"Delete {name}?", confirm={"type": "boolean"})
    return Job(end, questions={"confirm": asking(question)})


async def ask_twice(_exchange: Exchange) -> Job:
    def end(answers: Json) -> Json:
        names = [filled_in(answers[key]).get("name") for key in ("first", "second")]
        return completed(said(f"There are {names[0]} and {names[1]}"))

    return Job(end, questions={"first": asking(NAME), "second": asking(NAME)})


async def greet_later(exchange: Exchange) -> Job:
    exchange.state()
    answers = await exchange.ask_all({"user_name": asking(NAME)}, "asked")
    result = completed(said(f"Hello, {filled_in(answers['user_name']).get('name')}!"))
    return Job(lambda _: result)


def asking(question: Json) -> Json:
    return {"method": "elicitation/create", "params": question}


JOBS: dict[str, Callable[[Exchange], Awaitable[Job]]] = {
    "slow_compute": compute,
    "failing_job": fail,
    "protocol_error_job": break_down,
    "confirm_delete": delete,
    "multi_input": ask_twice,
    "test_tool_with_task": greet_later,
}
AT_ONCE = frozenset(("slow_compute",))
"""Those that answer with the result where there can be no task."""
