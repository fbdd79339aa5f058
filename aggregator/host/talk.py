"""One conversation with a model, without any waiting: what to ask for, and what to make of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from aggregator.basics.json import JsonObject
from aggregator.host.mine import search_mine
from aggregator.host.options import Options
from aggregator.host.pool import Pool, Tool, read_pool
from aggregator.host.results import Finding, Result, read_finding, read_result
from aggregator.host.staging import Staging
from aggregator.host.uses import Use
from aggregator.host.weighing import Weighing

RequestT = TypeVar("RequestT")

Function = Callable[[dict[str, Any]], object]
"""What is behind a tool of the author's: takes its arguments, returns a text or JSON."""
Run = Mapping[str, Function]

USUAL_RESULTS = 5
"""Tools that a search returns unless it is told."""


class Talk(Generic[RequestT]):
    """The state of one conversation."""

    def __init__(self, options: Options, staging: Staging[RequestT]) -> None:
        self.options = options
        self._staging = staging
        self._weighing = Weighing(options)
        self._search = "ToolSearch"
        self._pool: tuple[JsonObject, Pool] | None = None
        """The pool that was read last, and what it was read from."""

    def pool(self, document: JsonObject) -> Pool:
        """Read every tool there is now."""
        if self._pool is None or self._pool[0] is not document:
            self._pool = document, read_pool(document)
        pool = self._pool[1]
        self._search = pool.search.name
        return pool

    def uncounted(self, pool: Pool) -> Sequence[Tool]:
        """Return the tools whose tokens are to be counted before a request can be made."""
        return self._weighing.uncounted(pool)

    def defined(self, tools: Iterable[Tool]) -> list[Any]:
        """Define tools to the API."""
        return [self._staging.defined(tool) for tool in tools]

    def learn(self, tools: Sequence[Tool], tokens: int) -> None:
        """Remember what a vendor's counter says of a request with some tools."""
        self._weighing.learn(tools, tokens)

    def request(
        self,
        messages: Iterable[object],
        tools: Iterable[object],
        snapshot: Iterable[str],
        pool: Pool,
    ) -> RequestT:
        """Make a request for the tools that there are."""
        deferring = self._weighing.is_worth_it(pool)
        return self._staging.request(messages, tools, snapshot, pool, deferring=deferring)

    def uses(self, response: object, run: Run) -> list[tuple[Use, Function | None]]:
        """Return what a model asks for, with the functions of the author's own tools.

        Raises:
            LookupError: A tool of the author's has no function.
        """
        return [(use, self._function(use, run)) for use in self._staging.uses(response)]

    def asked(self, use: Use) -> str:
        """Return the tool of the aggregator that a model uses."""
        return self._search if self._is_search(use) else use.name

    def outcome(self, use: Use, result: JsonObject) -> Finding | Result:
        """Read what the aggregator gave."""
        if not self._is_search(use):
            return read_result(result)
        query = use.arguments.get("query")
        text = query if isinstance(query, str) else ""
        return read_finding(result, search_mine(text, self._staging.mine, USUAL_RESULTS))

    def answered(
        self, response: object, outcomes: Sequence[tuple[Use, Finding | Result]]
    ) -> list[dict[str, Any]]:
        """Return what to append to a history."""
        return self._staging.answered(response, outcomes)

    def found(self, messages: Iterable[object]) -> list[str]:
        """Return every tool that was found in a history."""
        return list(self._staging.found(messages, self._search))

    def _is_search(self, use: Use) -> bool:
        return use.kind == "search" or use.name == self._search

    def _function(self, use: Use, run: Run) -> Function | None:
        if use.problem:
            return None
        if use.name in self._staging.own_names and use.name not in run:
            raise LookupError(f"`{use.name}` is your own tool: give its function in `run`")
        return run.get(use.name)
