"""Messages without what the next request's model or the way to it would refuse.

Messages that need no change are the very same objects.
"""

from collections.abc import Callable, Collection, Sequence

from aggregator.basics.json import JsonObject, items
from aggregator.host.gates import Carry
from aggregator.host.messages.history import Message, blocks, referred
from aggregator.host.speech import loaded

BOUNDARY = "Tool loaded."
"""Ends a turn that consists of references, for models that would take it for unfinished."""
GONE = "These tools are not available any more: {}."

_CHANGES = ("tool_addition", "tool_removal")
_HOSTED = ("tool_search_tool_result", "server_tool_use")


def strip(messages: Sequence[Message], carry: Carry, known: Collection[str]) -> list[Message]:
    """Take out what a request cannot carry.

    Args:
        messages: The history.
        carry: What the model and the way to it can do.
        known: The tools that the request defines; the API refuses a reference to any other.
    """

    def kept(block: JsonObject) -> JsonObject | None:
        kind = block.get("type")
        if kind == "tool_result" and referred(block):
            return _resolved(block, known) if carry == "reference" else _in_words(block)
        if carry != "inline" and kind in _CHANGES:
            return None
        if carry in ("plain", "all"):
            return _without_hosted(block)
        return block

    stripped = (_mapped(message, kept) for message in messages)
    return [message for message in stripped if message is not None]


def with_boundaries(messages: Sequence[Message]) -> list[Message]:
    """End every turn that refers to tools with a text."""
    end = {"type": "text", "text": BOUNDARY}
    return [
        {**message, "content": [*items(message["content"]), end]}
        if any(map(referred, _results(message)))
        else message
        for message in messages
    ]


def with_moved_siblings(messages: Sequence[Message]) -> list[Message]:
    """Move texts that stand beside references to the next results without any."""
    moved = list(messages)
    for at, message in enumerate(moved):
        texts = [each for each in blocks(message) if each.get("type") == "text"]
        if not texts or not any(map(referred, _results(message))):
            continue
        later = (n for n in range(at + 1, len(moved)) if _takes_texts(moved[n]))
        if (there := next(later, None)) is not None:
            rest = [each for each in blocks(message) if each.get("type") != "text"]
            moved[at] = {**message, "content": rest}
            moved[there] = {**moved[there], "content": [*moved[there]["content"], *texts]}
    return moved


def _takes_texts(message: Message) -> bool:
    results = _results(message)
    return bool(results) and not any(map(referred, results))


def _results(message: Message) -> list[JsonObject]:
    return [each for each in blocks(message) if each.get("type") == "tool_result"]


def _mapped(message: Message, kept: Callable[[JsonObject], JsonObject | None]) -> Message | None:
    """Return a message with what is kept of its blocks, or None if nothing is."""
    before = blocks(message)
    after = [each for block in before if (each := kept(block)) is not None]
    if len(after) == len(before) and all(map(_is, after, before)):
        return message
    return {**message, "content": after} if after else None


def _is(one: object, other: object) -> bool:
    return one is other


def _resolved(block: JsonObject, known: Collection[str]) -> JsonObject:
    """Drop the references to tools that nothing defines."""
    gone = [name for name in referred(block) if name not in known]
    if not gone:
        return block
    content = [each for each in items(block["content"]) if not _refers_to(each, gone)]
    said = {"type": "text", "text": GONE.format(", ".join(gone))}
    return {**block, "content": content or [said]}


def _in_words(block: JsonObject) -> JsonObject:
    """Say which tools were referred to."""
    names = referred(block)
    content = [each for each in items(block["content"]) if not _refers_to(each, names)]
    return {**block, "content": [{"type": "text", "text": loaded(names)}, *content]}


def _refers_to(block: JsonObject, names: Collection[str]) -> bool:
    return block.get("type") == "tool_reference" and block.get("tool_name") in names


def _without_hosted(block: JsonObject) -> JsonObject | None:
    """Take out the vendor's own tool search, and what only its callers understand."""
    kind, name = block.get("type"), str(block.get("name", ""))
    if kind in _HOSTED and (kind == _HOSTED[0] or name.startswith("tool_search_tool")):
        return None
    if kind == "tool_use" and "caller" in block:
        return {key: value for key, value in block.items() if key != "caller"}
    return block
