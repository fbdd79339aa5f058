"""What the requests of one conversation have in common, whichever API they are for."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from aggregator.basics.json import JsonObject
from aggregator.host.announcing import Note, announce, told_of
from aggregator.host.options import Options
from aggregator.host.plain import plain
from aggregator.host.pool import Pool, Tool
from aggregator.host.results import Finding, Result
from aggregator.host.seen_tools import SeenTools
from aggregator.host.uses import Use
from aggregator.host.weighing import deferrable

RequestT = TypeVar("RequestT")


class Staging(ABC, Generic[RequestT]):
    """Makes the requests of one conversation, each beginning as the one before."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._notes: tuple[Note, ...] = ()
        self._seen_tools = SeenTools()
        self._own: Sequence[dict[str, Any]] = ()
        self._offers_search = False

    @property
    def mine(self) -> Mapping[str, Tool]:
        """The author's tools that have to be found."""
        marked = [self._read(each) for each in self._own if each.get("defer_loading") is True]
        return {tool.name: tool for tool in marked}

    @property
    def own_names(self) -> frozenset[str]:
        """The author's tools."""
        return frozenset(str(each.get("name")) for each in self._own)

    def request(
        self,
        messages: Iterable[object],
        tools: Iterable[object],
        snapshot: Iterable[str],
        pool: Pool,
        *,
        deferring: bool,
    ) -> RequestT:
        """Make the next request."""
        history = [plain(each) for each in messages]
        self._own = [plain(each) for each in tools]
        self._seen_tools.see(pool, self.mine)
        self._begin(pool, deferring=deferring)
        if self._options.carry == "all" or not self._may_search(pool, deferring=deferring):
            return self._everything(history, pool)
        return self._deferred(history, tuple(snapshot), pool)

    @abstractmethod
    def uses(self, response: object) -> list[Use]:
        """Return what a model asks for, in its order."""

    @abstractmethod
    def answered(
        self, response: object, outcomes: Sequence[tuple[Use, Finding | Result]]
    ) -> list[dict[str, Any]]:
        """Return what to append to a conversation: what the model said, and the answer to it."""

    @abstractmethod
    def found(self, messages: Iterable[object], search: str) -> tuple[str, ...]:
        """Return every tool that was found in a conversation."""

    @abstractmethod
    def _everything(self, history: Sequence[dict[str, Any]], pool: Pool) -> RequestT: ...

    @abstractmethod
    def _deferred(
        self, history: Sequence[dict[str, Any]], snapshot: tuple[str, ...], pool: Pool
    ) -> RequestT: ...

    @abstractmethod
    def _read(self, definition: JsonObject) -> Tool: ...

    @abstractmethod
    def defined(self, tool: Tool) -> dict[str, Any]:
        """Define a tool to the API."""

    def _own_definition(self, name: str) -> dict[str, Any] | None:
        """Return how the author defines a tool."""
        return next((each for each in self._undeferred if each.get("name") == name), None)

    @property
    def _undeferred(self) -> list[dict[str, Any]]:
        return [without_deferral(each) for each in self._own]

    def _begin(self, pool: Pool, *, deferring: bool) -> None:
        """Settle which tools are defined from the beginning."""
        hidden = {tool.name for tool in self._hidden(pool)} if deferring else ()
        self._seen_tools.begin(name for name in pool.tools if name not in hidden)

    def _may_search(self, pool: Pool, *, deferring: bool) -> bool:
        """Whether there is anything to search for, now or later."""
        if self._options.mode.never:
            return False
        return deferring or self._offers_search or bool(pool.pending)

    def _hidden(self, pool: Pool) -> list[Tool]:
        """Return the tools that can be searched for and are not defined from the beginning."""
        return [tool for tool in self._deferrable(pool) if not self._seen_tools.holds(tool.name)]

    def _deferrable(self, pool: Pool) -> list[Tool]:
        theirs = deferrable(pool.tools, pool.search.name, self._options.keep)
        return [*theirs, *self.mine.values()]

    def _note(self, at: int, mark: str, pool: Pool, changes: tuple[JsonObject, ...] = ()) -> None:
        """Say at the end of a history what is new, if there is anything."""
        told = told_of(self._deferrable(pool), pool.pending)
        before = self._notes[-1].told if self._notes else None
        says = self._options.announce == "names"
        text = announce(before, told, pool.search.name) if says else ""
        if text or changes:
            self._notes = (*self._notes, Note(at, mark, text, told, changes))

    def _searches(self, pool: Pool) -> bool:
        """Whether the search is offered: once it was, it is for good."""
        self._offers_search |= bool(self._hidden(pool) or pool.pending)
        return self._offers_search


def without_deferral(definition: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool that is loaded."""
    return {key: value for key, value in definition.items() if key != "defer_loading"}
