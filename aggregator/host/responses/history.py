"""What the items of a conversation say of the tools that were found in it."""

import json
from collections.abc import Iterator, Sequence

from aggregator.basics.json import JsonObject, as_object, is_object, items
from aggregator.host.gates import Carry
from aggregator.host.responses.naming import Item, full_name
from aggregator.host.speech import loaded, names_loaded

_HOLDING = ("tool_search_output", "additional_tools")
_OUTPUTS = ("function_call_output", "tool_search_output", "additional_tools")
_ASKING = ("user", "developer", "system")


def discovered(history: Sequence[JsonObject], search: str = "ToolSearch") -> tuple[str, ...]:
    """Return every tool that was ever found in a conversation, in that order."""
    searches: set[object] = set()
    found: list[str] = []
    for item in history:
        if item.get("type") == "function_call" and item.get("name") == search:
            searches.add(item.get("call_id"))
        elif item.get("type") == "function_call_output" and item.get("call_id") in searches:
            found += names_loaded(str(item.get("output")))
        found += defined_by(item)
    return tuple(dict.fromkeys(found))


def in_effect(history: Sequence[JsonObject]) -> tuple[str, ...]:
    """Return the tools that the API itself offers to the model, by what the items carry."""
    found = (name for item in history[compacted_at(history) + 1 :] for name in defined_by(item))
    return tuple(dict.fromkeys(found))


def compacted_at(history: Sequence[JsonObject]) -> int:
    """Return the place of the last item that stands for all before it; -1 if there is none."""
    places = (at for at, item in enumerate(history) if item.get("type") == "compaction")
    return max(places, default=-1)


def defined_by(item: JsonObject) -> tuple[str, ...]:
    """Return the tools that an item defines."""
    return tuple(_names(items(item.get("tools")))) if item.get("type") in _HOLDING else ()


def takes_note(history: Sequence[JsonObject]) -> bool:
    """Whether something can be said at the end of a history: it must be the model's turn."""
    last = as_object(history[-1] if history else None)
    return last.get("type") in _OUTPUTS or last.get("role") in _ASKING


def note(text: str) -> Item:
    """Return an item that says something beside what the person said."""
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "developer", "content": content}


def strip(history: Sequence[Item], carry: Carry, search: str) -> list[Item]:
    """Say in plain calls and outputs what a model that cannot search would not understand."""
    if carry == "inline":
        return list(history)
    plain = (_plain(item, search) for item in history)
    return [item for item in plain if item is not None]


def _plain(item: Item, search: str) -> Item | None:
    match item.get("type"):
        case "tool_search_call" if item.get("execution") != "server":
            return {
                "type": "function_call",
                "call_id": item.get("call_id"),
                "name": search,
                "arguments": json.dumps(item.get("arguments")),
            }
        case "tool_search_output" if item.get("execution") != "server":
            return {
                "type": "function_call_output",
                "call_id": item.get("call_id"),
                "output": loaded(defined_by(item)) if defined_by(item) else "Nothing was found.",
            }
        case "tool_search_call" | "tool_search_output" | "additional_tools":
            return None
        case "function_call" if item.get("namespace"):
            kept = {key: value for key, value in item.items() if key != "namespace"}
            return {**kept, "name": full_name(str(item.get("name")), item["namespace"])}
        case _:
            return item


def _names(tools: Sequence[object]) -> Iterator[str]:
    for tool in filter(is_object, tools):
        space = tool.get("name") if tool.get("type") == "namespace" else None
        inside = items(tool.get("tools")) if space else [tool]
        for each in map(as_object, inside):
            if isinstance(name := each.get("name"), str):
                yield full_name(name, space)
