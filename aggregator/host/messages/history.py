"""What the messages of a conversation say of the tools that were found in it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aggregator.basics.json import JsonObject, as_object, is_object, items
from aggregator.host.gates import Carry
from aggregator.host.speech import names_loaded

Message = dict[str, Any]


class Change(NamedTuple):
    """A tool that a conversation came to have, or lost."""

    name: str
    by: Carry
    at: int
    """The place of the message that says so."""
    is_added: bool = True


def discovered(messages: Sequence[JsonObject], search: str = "ToolSearch") -> tuple[str, ...]:
    """Return every tool that was ever found in a conversation, in that order."""
    added = (change.name for change in changes(messages, search) if change.is_added)
    return tuple(dict.fromkeys(added))


def in_effect(
    messages: Sequence[JsonObject], carry: Carry, search: str = "ToolSearch"
) -> tuple[str, ...]:
    """Return the tools that the API itself offers to the model, by what the messages carry."""
    start = compacted_at(messages)
    held: dict[str, None] = {}
    for change in changes(messages, search):
        if change.at < start or (change.by != carry and change.at != start):
            continue
        if change.is_added:
            held[change.name] = None
        else:
            held.pop(change.name, None)
    return tuple(held) if carry in ("reference", "inline") else ()


def compacted_at(messages: Sequence[JsonObject]) -> int:
    """Return the place of the last message that stands for all before it; -1 if there is none."""
    return max((at for at, each in enumerate(messages) if compactions(each)), default=-1)


def compactions(message: JsonObject) -> list[JsonObject]:
    """Return the compaction blocks of a message that are not mere failures."""
    return [
        block
        for block in blocks(message)
        if block.get("type") == "compaction" and block.get("content") is not None
    ]


def blocks(message: JsonObject) -> list[JsonObject]:
    """Return the content of a message that is not a mere text."""
    return [each for each in items(message.get("content")) if is_object(each)]


def changes(messages: Sequence[JsonObject], search: str = "ToolSearch") -> Iterator[Change]:
    """Yield the tools that came and went, in the order in which it is said."""
    searches: set[object] = set()
    for at, message in enumerate(messages):
        for block in blocks(message):
            if block.get("type") == "tool_use" and block.get("name") == search:
                searches.add(block.get("id"))
            is_ours = block.get("tool_use_id") in searches
            yield from _of_block(block, at, is_ours=is_ours)


def referred(block: JsonObject) -> list[str]:
    """Return the tools that the content of a block refers to."""
    return [each.name for each in _references(items(block.get("content")), 0)]


def _of_block(block: JsonObject, at: int, *, is_ours: bool) -> Iterator[Change]:
    match block.get("type"):
        case "tool_result":
            yield from _references(items(block.get("content")), at)
            # Only the answer to a search says so: anything might stand in that of another tool.
            yield from _in_words(block, at) if is_ours else ()
        case "tool_search_tool_result":
            inside = as_object(block.get("content"))
            yield from _references(items(inside.get("tool_references")), at)
        case "tool_addition" | "tool_removal":
            yield from _of_change(block, at)
        case "compaction":
            for each in items(block.get("tool_changes")):
                yield from _of_change(as_object(each), at)
        case _:
            pass


def _in_words(block: JsonObject, at: int) -> Iterator[Change]:
    for each in map(as_object, items(block.get("content"))):
        for name in names_loaded(str(each.get("text", ""))):
            yield Change(name, "plain", at)


def _references(content: list[Any], at: int) -> Iterator[Change]:
    for each in map(as_object, content):
        if each.get("type") == "tool_reference" and isinstance(each.get("tool_name"), str):
            yield Change(each["tool_name"], "reference", at)


def _of_change(block: JsonObject, at: int) -> Iterator[Change]:
    tool = as_object(block.get("tool"))
    holder = as_object(tool.get("definition")) if "definition" in tool else tool
    if isinstance(name := holder.get("name"), str):
        yield Change(name, "inline", at, is_added=block.get("type") == "tool_addition")


def compacted_references(messages: Sequence[JsonObject]) -> tuple[str, ...]:
    """Return the tools that the last compaction refers to: those a request must define."""
    at = compacted_at(messages)
    held = compactions(messages[at]) if at >= 0 else []
    tools = (
        as_object(as_object(each).get("tool"))
        for block in held
        for each in items(block.get("tool_changes"))
    )
    return tuple(str(tool["name"]) for tool in tools if tool.get("type") == "tool_reference")
