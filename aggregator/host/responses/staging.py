"""The next request to the OpenAI Responses API: its tools, its input."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypedDict

from aggregator.basics.json import JsonObject, as_object, is_object, items
from aggregator.host.announcing import Note, digests, standing
from aggregator.host.definitions import accepted_schema, for_responses
from aggregator.host.plain import plain
from aggregator.host.pool import Pool, Tool
from aggregator.host.responses.history import discovered, in_effect, note, strip, takes_note
from aggregator.host.responses.naming import Item, full_name, namespaces
from aggregator.host.results import Finding, Result, responses_output
from aggregator.host.speech import loaded
from aggregator.host.staging import Staging
from aggregator.host.uses import SEARCH, Use, read_use


class ResponsesRequest(TypedDict):
    """What to give to `client.responses.create`, beside the model."""

    tools: list[Any]
    input: list[Any]


class ResponsesStaging(Staging[ResponsesRequest]):
    """Makes the requests of one conversation with an OpenAI model."""

    def uses(self, response: object) -> list[Use]:
        """Return what a model asks for, in its order."""
        return [use for item in _output(response) if (use := _use(item)) is not None]

    def answered(
        self, response: object, outcomes: Sequence[tuple[Use, Finding | Result]]
    ) -> list[Item]:
        """Return what to append to a conversation: what the model said, and the answer to it."""
        findings = [outcome for _, outcome in outcomes if isinstance(outcome, Finding)]
        remarks = dict.fromkeys(each.remark for each in findings if each.remark)
        results = [self._result(use, outcome) for use, outcome in outcomes]
        return [*_output(response), *results, *map(note, remarks)]

    def found(self, messages: Iterable[object], search: str) -> tuple[str, ...]:
        """Return every tool that was found in a conversation."""
        return discovered([plain(each) for each in messages], search)

    def defined(self, tool: Tool) -> Item:
        """Define a tool to the API, one of the author's in the author's words."""
        return self._own_definition(tool.name) or for_responses(tool)

    def _read(self, definition: JsonObject) -> Tool:
        schema = as_object(definition.get("parameters"))
        return Tool(str(definition.get("name")), str(definition.get("description") or ""), schema)

    def _everything(self, history: Sequence[Item], pool: Pool) -> ResponsesRequest:
        """Define every tool; what comes later comes behind the others."""
        self._seen_tools.add(pool.tools)
        theirs = [for_responses(tool) for tool in self._seen_tools.base if tool.name in pool.tools]
        said = strip(history, "all", pool.search.name)
        return {"tools": [*self._undeferred, *theirs], "input": said}

    def _deferred(
        self, history: Sequence[Item], snapshot: tuple[str, ...], pool: Pool
    ) -> ResponsesRequest:
        """Define the tools at the beginning; what is found later is in the answers to searches."""
        carry, marks = self._options.carry, digests(history)
        self._notes = standing(self._notes, marks)
        held = in_effect(history) if carry == "inline" else ()
        wanted = dict.fromkeys((*snapshot, *discovered(history, pool.search.name)))
        missing = [name for name in wanted if name not in held]
        self._seen_tools.add(missing)
        if takes_note(history):
            self._note(len(history), marks[-1], pool)
        said = strip(_annotated(history, self._notes), carry, pool.search.name)
        return {"tools": list(self._tools(pool)), "input": said}

    def _tools(self, pool: Pool) -> Iterator[Item]:
        mine = self.mine
        yield from (each for each in self._own if each.get("name") not in mine)
        if self._searches(pool):
            is_native = self._options.carry == "inline"
            yield _search(pool.search) if is_native else for_responses(pool.search)
        yield from map(self.defined, self._seen_tools.base)

    def _result(self, use: Use, outcome: Finding | Result) -> Item:
        if isinstance(outcome, Result):
            output: str | list[Item] = responses_output(outcome)
        elif use.kind == SEARCH:
            return {
                "type": "tool_search_output",
                "call_id": use.id,
                "execution": "client",
                "status": "completed",
                "tools": namespaces(outcome.tools, self.defined),
            }
        else:
            names = [tool.name for tool in outcome.tools]
            output = loaded(names) if names else "Nothing was found."
        return {"type": "function_call_output", "call_id": use.id, "output": output}


def _output(response: object) -> list[Item]:
    return [dict(each) for each in items(plain(response).get("output")) if is_object(each)]


def _use(item: Item) -> Use | None:
    identity, arguments = str(item.get("call_id")), item.get("arguments")
    match item.get("type"):
        case "function_call":
            name = full_name(str(item.get("name")), item.get("namespace"))
            return read_use(identity, name, arguments)
        case "tool_search_call" if item.get("execution") != "server":
            return read_use(identity, "", arguments, SEARCH)
        case _:
            return None


def _search(tool: Tool) -> Item:
    return {
        "type": "tool_search",
        "execution": "client",
        "description": tool.description,
        "parameters": accepted_schema(tool.input_schema),
    }


def _annotated(history: Sequence[Item], notes: Sequence[Note]) -> list[Item]:
    """Return a history with notes at their places."""
    said: list[Item] = []
    for before, item in enumerate(history, 1):
        said.append(item)
        said += [note(each.text) for each in notes if each.at == before]
    return said
