"""One conversation with a model: its next request, and the answer to its response."""

import json
from collections.abc import Iterable
from inspect import isawaitable
from typing import Any, Generic, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from aggregator.host.connection import Connection
from aggregator.host.results import Finding, Result
from aggregator.host.talk import Function, Run, Talk
from aggregator.host.uses import Use

RequestT = TypeVar("RequestT")
Outcome = Finding | Result


class Spoken(Generic[RequestT]):
    """What a conversation knows without asking anybody."""

    def __init__(self, connection: Connection, talk: Talk[RequestT]) -> None:
        self._connection = connection
        self._talk = talk

    @property
    def carry(self) -> str:
        """How found tools reach the model."""
        return self._talk.options.carry

    def snapshot(self, messages: Iterable[object]) -> list[str]:
        """Return the tools that were found, to be kept while a history is shortened."""
        return self._talk.found(messages)


class AsyncConversation(Spoken[RequestT]):
    """A conversation, for authors who await."""

    async def request(
        self,
        messages: Iterable[object],
        tools: Iterable[object] = (),
        *,
        snapshot: Iterable[str] = (),
    ) -> RequestT:
        """Return the tools, the messages and, where it takes some, the headers of a request.

        Args:
            messages: The history as the author keeps it; it is not changed.
            tools: The author's own tools; one with `defer_loading` has to be found first.
            snapshot: What `snapshot` gave before the history was shortened.
        """
        pool = self._talk.pool(await self._connection.pool())
        uncounted, count = self._talk.uncounted(pool), self._talk.options.count
        if uncounted and count is not None:
            tokens = count(self._talk.defined(uncounted))
            self._talk.learn(uncounted, await tokens if isawaitable(tokens) else tokens)
        return self._talk.request(messages, tools, snapshot, pool)

    async def answer(self, response: object, run: Run | None = None) -> list[dict[str, Any]]:
        """Run what a model asks for, and return what to append: its message, and the answer.

        Args:
            response: What the API gave, as a dictionary or a value of its package.
            run: The functions behind the author's own tools, by name.

        Raises:
            LookupError: The model uses a tool of the author's that has no function.
        """
        uses = self._talk.uses(response, run or {})
        outcomes: dict[int, Outcome] = {}

        async def put(at: int, use: Use, function: Function | None) -> None:
            if function is None:
                outcomes[at] = await outcome(self._connection, self._talk, use)
                return
            given = function(dict(use.arguments))
            outcomes[at] = told(await given if isawaitable(given) else given)

        async with anyio.create_task_group() as group:
            for at, (use, function) in enumerate(uses):
                group.start_soon(put, at, use, function)
        return self._talk.answered(
            response, [(use, outcomes[at]) for at, (use, _) in enumerate(uses)]
        )


class Conversation(Spoken[RequestT]):
    """A conversation, for authors who do not await; their functions run where they are called."""

    def __init__(
        self, connection: Connection, portal: BlockingPortal, talk: Talk[RequestT]
    ) -> None:
        super().__init__(connection, talk)
        self._portal = portal

    def request(
        self,
        messages: Iterable[object],
        tools: Iterable[object] = (),
        *,
        snapshot: Iterable[str] = (),
    ) -> RequestT:
        """Return the tools, the messages and, where it takes some, the headers of a request.

        Args:
            messages: The history as the author keeps it; it is not changed.
            tools: The author's own tools; one with `defer_loading` has to be found first.
            snapshot: What `snapshot` gave before the history was shortened.
        """
        pool = self._talk.pool(self._portal.call(self._connection.pool))
        uncounted, count = self._talk.uncounted(pool), self._talk.options.count
        if uncounted and count is not None:
            tokens = count(self._talk.defined(uncounted))
            if not isinstance(tokens, int):
                raise TypeError("`count` must return a number here; an `AsyncToolbox` awaits it")
            self._talk.learn(uncounted, tokens)
        return self._talk.request(messages, tools, snapshot, pool)

    def answer(self, response: object, run: Run | None = None) -> list[dict[str, Any]]:
        """Run what a model asks for, and return what to append: its message, and the answer.

        Args:
            response: What the API gave, as a dictionary or a value of its package.
            run: The functions behind the author's own tools, by name.

        Raises:
            LookupError: The model uses a tool of the author's that has no function.
        """
        uses = self._talk.uses(response, run or {})
        theirs = [use for use, function in uses if function is None]
        outcomes = self._portal.call(self._outcomes, theirs)
        own = {use.id: told(function(dict(use.arguments))) for use, function in uses if function}
        return self._talk.answered(
            response, [(use, own.get(use.id) or outcomes[use.id]) for use, _ in uses]
        )

    async def _outcomes(self, uses: Iterable[Use]) -> dict[str, Outcome]:
        """Search and call, all at the same time."""
        outcomes: dict[str, Outcome] = {}

        async def put(use: Use) -> None:
            outcomes[use.id] = await outcome(self._connection, self._talk, use)

        async with anyio.create_task_group() as group:
            for use in uses:
                group.start_soon(put, use)
        return outcomes


async def outcome(connection: Connection, talk: Talk[RequestT], use: Use) -> Outcome:
    """Search, or call a tool of a server."""
    if use.problem:
        return Result((use.problem,), is_error=True)
    return talk.outcome(use, await connection.call(talk.asked(use), use.arguments))


def told(given: object) -> Result:
    """Return what a function of the author's gave."""
    return Result((given if isinstance(given, str) else json.dumps(given, default=str),))
