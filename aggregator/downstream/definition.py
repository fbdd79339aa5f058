"""One thing that a server lists: measured as it came, and only then cleaned, a turn at a time."""

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple

from aggregator.basics.effort import Turn
from aggregator.basics.glyphs import clean
from aggregator.basics.json import JsonObject, is_array, is_object

MAX_CHARACTERS = 256 * 1024
"""Characters a definition may have, keys and values together."""
MAX_DEPTH = 64
"""Levels a definition may be nested."""
MAX_NODES = 20_000
"""Values a definition may hold, keys among them."""
MAX_DESCRIPTION = 16 * 1024
"""Characters kept of a description."""
VALUE = 32
"""Characters that are cleaned in the time that a value and its key take without them."""
SHORT = 4 * 1024
"""Characters up to which a text is cleaned whole."""
PIECE = 16 * 1024
"""Characters that are cleaned before it is asked whose turn it is."""


class Size(NamedTuple):
    """How large a definition is."""

    characters: int
    nodes: int
    problem: str | None = None
    """What is too much about it."""


def beginning(text: str, limit: int) -> str:
    """Return the beginning of a text, clean; twice as much is looked at, as some may go."""
    return clean(text[: 2 * limit])[:limit]


def measured(definition: JsonObject, turn: Turn) -> Generator[None, None, Size]:
    """Count what a definition holds, but for a description, which is cut to size instead.

    Without recursion, since its depth is the server's choice; yields where a turn is over.
    """
    nodes, characters = 0, -_length(definition.get("description"))
    level: list[object] = [definition]
    for _depth in range(MAX_DEPTH):
        following: list[object] = []
        for value in level:
            if isinstance(value, str):
                characters += len(value)
            elif breadth := _breadth(value):
                if nodes + len(following) + breadth > MAX_NODES:
                    return Size(characters, nodes + len(following), "that is too large")
                following.extend(_children(value))
                if turn.is_over(breadth):
                    yield
        nodes += len(following)
        if not following:
            is_long = characters > MAX_CHARACTERS
            return Size(characters, nodes, "that is too large" if is_long else None)
        level = following
    return Size(characters, nodes, f"nested more than {MAX_DEPTH} levels deep")


def _breadth(value: object) -> int:
    """Count the children of a value without looking at them."""
    if is_object(value):
        return 2 * len(value)
    return len(value) if is_array(value) else 0


def _children(value: object) -> Iterable[object]:
    if is_object(value):
        return [*value.keys(), *value.values()]
    return value if is_array(value) else ()


def cleaned(definition: JsonObject, turn: Turn) -> Generator[None, None, dict[str, Any]]:
    """Clean every text of a definition that has been measured; yield where a turn is over."""
    whole: dict[str, Any] = {}
    begun: list[tuple[Any, Any]] = [(_outlined(definition), whole)]
    # What is inside of something comes after it, in a list that grows meanwhile.
    for held, made in begun:
        spent = 0
        for key, value in held.items() if is_object(held) else enumerate(held):
            place: Any = key
            if isinstance(key, str):
                spent += len(key)
                place = clean(key) if len(key) <= SHORT else (yield from _in_pieces(key, turn))
            if isinstance(value, str):
                spent += len(value)
                is_short = len(value) <= SHORT
                made[place] = clean(value) if is_short else (yield from _in_pieces(value, turn))
            elif (part := _begun(value)) is not value:
                begun.append((value, part))
                made[place] = part
            else:
                made[place] = value
            spent += VALUE
            if spent > PIECE:
                yield from _spend(spent, turn)
                spent = 0
        yield from _spend(spent, turn)
    return _shortened(whole, definition)


def _spend(characters: int, turn: Turn) -> Generator[None, None, None]:
    if turn.is_over(1, cleaned=characters):
        yield


def _shortened(whole: dict[str, Any], definition: JsonObject) -> dict[str, Any]:
    """Return a clean definition with what is kept of its description, marked if that was cut."""
    if len(description := whole.get("description", "")) > MAX_DESCRIPTION or _is_cut(definition):
        whole["description"] = description[:MAX_DESCRIPTION] + " […]"
    return whole


def _outlined(definition: JsonObject) -> JsonObject:
    """Return a definition with as much of its description as can be kept when it is clean."""
    if not isinstance(description := definition.get("description", ""), str):
        return {key: value for key, value in definition.items() if key != "description"}
    if not _is_cut(definition):
        return definition
    return {**definition, "description": description[: 2 * MAX_DESCRIPTION]}


def _is_cut(definition: JsonObject) -> bool:
    return _length(definition.get("description")) > 2 * MAX_DESCRIPTION


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0


def _begun(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Return what the clean parts of a value will be put into, or the value if it has none."""
    if isinstance(value, int | float | None):
        return value
    return {} if is_object(value) else [None] * len(value)


def _in_pieces(text: str, turn: Turn) -> Generator[None, None, str]:
    """Clean a long text: what ends with a line ends no sequence that would have been taken out."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + PIECE) + 1 or start + PIECE
        pieces.append(clean(text[start:end]))
        if turn.is_over(cleaned=end - start):
            yield
        start = end
    return "".join(pieces)
