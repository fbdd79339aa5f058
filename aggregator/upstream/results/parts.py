"""A result as what a model reads of it: a text of several parts, each with its place in the whole.

What it costs is counted in bytes of UTF-8, of which a token has about as many as of characters in
English: for other scripts that is nearer to the truth than characters are, and never too little.
"""

import json
from collections.abc import Generator, Iterable
from math import ceil
from sys import getsizeof
from typing import NamedTuple

from aggregator.basics.effort import CHARACTERS, Turn
from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, as_object, is_array, is_object
from aggregator.catalog import CHARACTERS_PER_TOKEN

FRAME = 8
"""What each block of a result costs beside its text."""
WORDLESS = ("image", "audio")
"""Blocks that a model sees or hears, at a price that has nothing to do with their size here."""
NEAR = 8
"""One in so many characters may be left out, so that a text is cut where a line ends."""


class Part(NamedTuple):
    """One block of a result."""

    start: int
    """Where its text begins in the whole, in characters."""
    text: str
    """What a model reads of it; nothing of what is no text."""
    block: JsonObject
    """As it came."""

    @property
    def end(self) -> int:
        """Where its text ends."""
        return self.start + len(self.text)

    @property
    def blob(self) -> str:
        """What it holds that neither can be read nor is shown as what it is."""
        return _blob(self.block)


@frozen
class Whole:
    """All of a result, or all of its structured content."""

    parts: tuple[Part, ...]
    length: int
    """Characters of its text."""
    weight: int
    """Bytes of memory that it takes, about."""


def room_of(tokens: int, ratio: float = CHARACTERS_PER_TOKEN) -> int:
    """Return how many bytes a model may be given for so many tokens of so many characters."""
    return int(tokens * ratio)


def tokens_of(characters: int, ratio: float = CHARACTERS_PER_TOKEN) -> int:
    """Return about how many tokens so many characters cost a model."""
    return ceil(characters / ratio)


def size_of(text: str, enough: int) -> int:
    """Return how many bytes a text has, or more than enough if it has."""
    if len(text) > enough or text.isascii():
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


def cost(blocks: Iterable[object], enough: int) -> int:
    """Return what blocks cost a model; no more is looked at than is enough."""
    spent = 0
    for block in blocks:
        spent += FRAME + _cost(as_object(block), enough)
        if spent > enough:
            break
    return spent


def cost_of_value(value: object, enough: int) -> int:
    """Return what a JSON value costs a model, about; no more is looked at than is enough."""
    spent, left = 0, [value]
    while left and spent <= enough:
        each = left.pop()
        spent += 2
        if isinstance(each, str):
            spent += size_of(each, enough)
        elif is_object(each) or is_array(each):
            if len(each) * FRAME > enough:
                return enough + 1
            if is_object(each):
                spent += sum(len(key) + 4 for key in each)
            left.extend(each.values() if is_object(each) else each)
        else:
            spent += 4
    return spent


def _cost(block: JsonObject, enough: int) -> int:
    if block.get("type") in WORDLESS:
        return 0
    if (text := _plain(block)) is not None:
        return size_of(text, enough)
    return len(_blob(block)) or cost_of_value(block, enough)


def whole_of(blocks: Iterable[object]) -> Generator[None, None, Whole]:
    """Return a result as what can be read of it; yield where a turn is over."""
    parts, start, weight, turn = list[Part](), 0, 0, Turn()
    for each in blocks:
        block = as_object(each)
        text = _plain(block)
        if text is None:
            is_text = block.get("type") not in WORDLESS and not _blob(block)
            text = (yield from written(block)) if is_text else ""
        part = Part(start, text, block)
        parts.append(part)
        start += len(text)
        # All of a block is kept, whatever a server has put beside what is read of it.
        weight += getsizeof(part) + (yield from weighed(block))
        weight += 0 if text is block.get("text") else getsizeof(text)
        if turn.is_over(4):
            yield
    return Whole(tuple(parts), start, weight)


def weighed(value: object) -> Generator[None, None, int]:
    """Return how many bytes of memory a value takes, about; yield where a turn is over."""
    turn, weight, left = Turn(), 0, [value]
    while left:
        each = left.pop()
        weight += getsizeof(each)
        if is_object(each):
            # Names are the same text in all objects that one document has.
            left.extend(each.values())
        elif is_array(each):
            left.extend(each)
        if turn.is_over(1):
            yield
    return weight


def written(value: object) -> Generator[None, None, str]:
    """Return a value as JSON; yield where a turn is over."""
    turn, pieces = Turn(), list[str]()
    # All at once would be written by C, in which nobody else has a turn.
    for piece in json.JSONEncoder(ensure_ascii=False, default=dict).iterencode(value):
        pieces.append(piece)
        if turn.is_over(1 + len(piece) // CHARACTERS):
            yield
    return "".join(pieces)


def _plain(block: JsonObject) -> str | None:
    """Return the text of a block that is one, or is a resource which holds one."""
    holder = as_object(block.get("resource")) if block.get("type") == "resource" else block
    text = holder.get("text")
    is_text = block.get("type") in ("text", "resource") and isinstance(text, str)
    return text if is_text else None


def _blob(block: JsonObject) -> str:
    blob = as_object(block.get("resource")).get("blob") if block.get("type") == "resource" else None
    return blob if isinstance(blob, str) else ""


def end_of(text: str, start: int, room: int) -> int:
    """Return where a piece ends that begins at `start` and has at most `room` bytes."""
    piece = text[start : start + room]
    if not piece.isascii():
        raw = piece.encode("utf-8", "surrogatepass")
        if len(raw) > room:
            cut = room
            while _is_inside(raw[cut]):
                cut -= 1
            piece = raw[:cut].decode("utf-8", "surrogatepass")
    end = start + len(piece)
    if end < len(text):
        line = text.rfind("\n", end - len(piece) // NEAR, end)
        end = end if line < 0 else line + 1
    return end


def start_of(text: str, least: int, room: int) -> int:
    """Return where a piece begins, not before `least`, that ends with the text and fits a room."""
    piece = text[max(least, len(text) - room) :]
    if not piece.isascii():
        raw = piece.encode("utf-8", "surrogatepass")
        if len(raw) > room:
            cut = len(raw) - room
            while cut < len(raw) and _is_inside(raw[cut]):
                cut += 1
            piece = raw[cut:].decode("utf-8", "surrogatepass")
    start = len(text) - len(piece)
    if start > least:
        line = text.find("\n", start, start + len(piece) // NEAR)
        start = start if line < 0 else line + 1
    return start


def _is_inside(byte: int) -> bool:
    """Whether a byte of UTF-8 is not the first of its character."""
    return byte & 0xC0 == 0x80  # noqa: PLR2004 - the two bits that say so
