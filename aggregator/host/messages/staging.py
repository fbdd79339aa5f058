"""The next request to the Anthropic Messages API: its tools, its messages, its headers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NotRequired, TypedDict

from aggregator.basics.json import JsonObject, as_object
from aggregator.host.announcing import digests, standing
from aggregator.host.definitions import for_messages
from aggregator.host.gates import INLINE_BETAS
from aggregator.host.messages import answering
from aggregator.host.messages.history import (
    Message,
    compacted_references,
    discovered,
    in_effect,
)
from aggregator.host.messages.noting import annotated, takes_note
from aggregator.host.messages.stripping import strip, with_boundaries, with_moved_siblings
from aggregator.host.plain import plain
from aggregator.host.pool import Pool, Tool
from aggregator.host.results import Finding, Result
from aggregator.host.staging import Staging
from aggregator.host.uses import Use

VANISHED = "This tool is not available any more."


class MessagesRequest(TypedDict):
    """What to give to `client.beta.messages.create`, beside the model and its limits."""

    tools: list[Any]
    messages: list[Any]
    extra_headers: NotRequired[dict[str, str]]


class MessagesStaging(Staging[MessagesRequest]):
    """Makes the requests of one conversation with an Anthropic model."""

    _held: frozenset[str] = frozenset()
    """The tools that the last request offered."""
    _is_first = True
    """Whether nothing is cached yet that more tools at the beginning would cost."""

    def uses(self, response: object) -> list[Use]:
        """Return what a model asks for, in its order."""
        return answering.uses(response)

    def answered(
        self, response: object, outcomes: Sequence[tuple[Use, Finding | Result]]
    ) -> list[Message]:
        """Return what to append to a conversation: what the model said, and the answer to it."""
        findings = [outcome for _, outcome in outcomes if isinstance(outcome, Finding)]
        found = {tool.name: tool for each in findings for tool in each.tools}
        messages = answering.answered(response, outcomes, self._options.carry)
        new = [tool for name, tool in found.items() if name not in self._held]
        if self._options.carry == "inline" and new:
            added = [_addition(self.defined(tool)) for tool in new]
            messages.append({"role": "system", "content": added})
        return messages

    def found(self, messages: Iterable[object], search: str) -> tuple[str, ...]:
        """Return every tool that was found in a conversation."""
        return discovered([plain(each) for each in messages], search)

    def defined(self, tool: Tool) -> Message:
        """Define a tool to the API, one of the author's in the author's words."""
        return self._own_definition(tool.name) or for_messages(tool)

    def _read(self, definition: JsonObject) -> Tool:
        schema = as_object(definition.get("input_schema"))
        return Tool(str(definition.get("name")), str(definition.get("description") or ""), schema)

    def _everything(self, history: Sequence[Message], pool: Pool) -> MessagesRequest:
        """Define every tool; what comes later comes behind the others."""
        self._seen_tools.add(pool.tools)
        theirs = [for_messages(tool) for tool in self._seen_tools.base if tool.name in pool.tools]
        messages = strip(history, "all", ())
        return {"tools": [*self._undeferred, *theirs], "messages": messages}

    def _deferred(
        self, history: Sequence[Message], snapshot: tuple[str, ...], pool: Pool
    ) -> MessagesRequest:
        """Define the tools at the beginning, and hold back those that the messages refer to."""
        carry, marks = self._options.carry, digests(history)
        self._notes = standing(self._notes, marks)
        wanted = (*snapshot, *discovered(history, pool.search.name))
        changes = self._settle(history, wanted, pool)
        self._is_first = False
        if takes_note(history, carry):
            self._note(len(history), marks[-1], pool, changes)
        messages = annotated(history, self._notes, carry)
        tools = list(self._tools(messages, pool))
        names = frozenset(str(each.get("name")) for each in tools)
        self._held = names.union(in_effect(messages, carry, pool.search.name))
        return self._finished(tools, strip(messages, carry, names))

    def _finished(self, tools: list[Message], messages: list[Message]) -> MessagesRequest:
        if self._options.move_siblings:
            messages = with_moved_siblings(messages)
        if self._options.boundary:
            messages = with_boundaries(messages)
        request: MessagesRequest = {"tools": tools, "messages": messages}
        if self._options.carry == "inline":
            request["extra_headers"] = {"anthropic-beta": ",".join(INLINE_BETAS)}
        return request

    def _settle(
        self, history: Sequence[Message], wanted: Iterable[str], pool: Pool
    ) -> tuple[JsonObject, ...]:
        """Have every tool defined that the conversation is to have, and return what must be said.

        What the messages do not carry themselves is defined among the tools.
        """
        carry, seen_tools = self._options.carry, self._seen_tools
        held = in_effect(annotated(history, self._notes, carry), carry, pool.search.name)
        missing = [name for name in dict.fromkeys(wanted) if name not in held]
        if carry != "inline" or self._is_first:
            seen_tools.add(missing)
        if carry != "inline":
            return ()
        there = {**pool.tools, **self.mine}
        gone = [_removal(name) for name in held if name not in there]
        back = [name for name in missing if name in there and not seen_tools.holds(name)]
        return (*gone, *(_addition(self.defined(there[name])) for name in back))

    def _tools(self, messages: Sequence[Message], pool: Pool) -> Iterator[Message]:
        seen_tools, mine = self._seen_tools, self.mine
        yield from (each for each in self._own if each.get("name") not in mine)
        if self._searches(pool):
            yield for_messages(pool.search)
        yield from map(self.defined, seen_tools.base)
        must = dict.fromkeys(compacted_references(messages))
        if self._options.carry == "reference":
            held = in_effect(messages, "reference", pool.search.name)
            must.update(dict.fromkeys(name for name in held if name in seen_tools.seen))
        for name in must:
            if not seen_tools.holds(name):
                tool = seen_tools.seen.get(name) or Tool(name, VANISHED, {})
                yield {**self.defined(tool), "defer_loading": True}


def _addition(definition: JsonObject) -> Message:
    tool = {"type": "tool_definition", "definition": definition}
    return {"type": "tool_addition", "tool": tool}


def _removal(name: str) -> Message:
    return {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}
