"""The beginning and the end of a result that is too large to be given to a model whole."""

from collections.abc import Generator
from typing import NamedTuple

from aggregator.basics.effort import Turn
from aggregator.basics.json import JsonObject, as_object
from aggregator.upstream.results.parts import (
    FRAME,
    WORDLESS,
    Part,
    Whole,
    end_of,
    size_of,
    start_of,
)

MAX_NAMED = 10
"""Things between beginning and end that are named one by one."""
ENOUGH = FRAME + 4
"""Bytes with which a text is still worth cutting: one character of any kind fits."""


class Shortened(NamedTuple):
    """What is shown of a result."""

    head: list[JsonObject]
    middle: list[JsonObject]
    """What lies between and is no text, such as an image."""
    tail: list[JsonObject]
    until: int
    """Where the beginning ends, in characters of the whole."""
    since: int
    """Where the end begins."""


class _End(NamedTuple):
    """What is shown at one end."""

    blocks: list[JsonObject]
    number: int
    """The first part that is not shown whole."""
    position: int
    """Up to where, or from where on, the text is shown."""


def shorten(whole: Whole, room: int, uri: str) -> Generator[None, None, Shortened]:
    """Return as much of both ends as fits in some bytes; yield where a turn is over.

    What is no text is shown if it is small enough, and else named by its place below `uri`.
    """
    for_head = room * 2 // 3
    head = yield from _head(whole, for_head, uri)
    tail = yield from _tail(whole, room - for_head, uri, head)
    middle = yield from _between(whole, head.number, tail.number, uri)
    return Shortened(head.blocks, middle, tail.blocks, head.position, tail.position)


def _head(whole: Whole, left: int, uri: str) -> Generator[None, None, _End]:
    turn, blocks, position = Turn(), list[JsonObject](), 0
    for number, part in enumerate(whole.parts):
        if turn.is_over(2):
            yield
        block = _stand_in(part, number, uri, left)
        left -= (spent := _spent(part, block, left))
        if left < 0:
            end = _cut(part.text, left + spent)
            if end:
                blocks.append(piece_of(part, part.text[:end]))
            return _End(blocks, number, part.start + end)
        blocks.append(block)
        position = part.end
    return _End(blocks, len(whole.parts), position)


def _cut(text: str, room: int) -> int:
    return end_of(text, 0, room - FRAME) if room >= ENOUGH else 0


def _tail(whole: Whole, left: int, uri: str, head: _End) -> Generator[None, None, _End]:
    turn, blocks, position = Turn(), list[JsonObject](), whole.length
    for number in range(len(whole.parts) - 1, head.number - 1, -1):
        if turn.is_over(2):
            yield
        part = whole.parts[number]
        block = _stand_in(part, number, uri, left)
        left -= (spent := _spent(part, block, left))
        if left < 0 or number == head.number:
            shown = max(head.position - part.start, 0)
            room = left + spent
            start = start_of(part.text, shown, room - FRAME) if room >= ENOUGH else len(part.text)
            if start < len(part.text):
                blocks.append(piece_of(part, part.text[start:]))
                position = part.start + start
            return _End(blocks[::-1], number, position)
        blocks.append(block)
        position = part.start
    return _End(blocks[::-1], head.number, position)


def _between(
    whole: Whole, first: int, last: int, uri: str
) -> Generator[None, None, list[JsonObject]]:
    """Return what lies between two parts and can be shown, or at least named."""
    turn, found, named = Turn(), list[JsonObject](), 0
    for number in range(first + 1, last):
        part = whole.parts[number]
        if part.block.get("type") in WORDLESS:
            found.append(part.block)
        elif part.blob and named < MAX_NAMED:
            named += 1
            found.append(_stand_in(part, number, uri, 0))
        if turn.is_over(1):
            yield
    return found


def piece_of(part: Part, text: str) -> JsonObject:
    """Return a piece of a part as a block; whom it is for stays said."""
    said = {"annotations": part.block["annotations"]} if "annotations" in part.block else {}
    return {"type": "text", "text": text, **said}


def _spent(part: Part, block: JsonObject, left: int) -> int:
    if part.block.get("type") in WORDLESS:
        return 0
    if block is not part.block:
        return FRAME + len(block["text"])
    return FRAME + len(part.blob) + size_of(part.text, left)


def _stand_in(part: Part, number: int, uri: str, left: int) -> JsonObject:
    """Return a part as it is shown where there is room for it: what holds too much is named."""
    if not part.blob or FRAME + len(part.blob) <= left:
        return part.block
    kind = str(as_object(part.block.get("resource")).get("mimeType") or "data")[:80]
    size = len(part.blob) * 3 // 4
    return {"type": "text", "text": f"[{kind}, about {size:,} bytes: resource {uri}/{number}]"}
