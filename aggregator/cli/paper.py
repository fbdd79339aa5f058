"""What a page is written on: so many columns, and text cut or wrapped to fit them.

A character is as wide as terminals draw it, and text that came from elsewhere stays on its line.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

Colour = Literal["red", "green", "yellow", "bold", "dim"]
Style = Callable[[str, Colour], str]
"""Gives a text a colour, or leaves it as it is."""

READABLE = 100
"""Columns beyond which prose is hard to follow; also what a page has where nobody looks."""

_WORD = re.compile(r"(?:`[^`]*`|\S)+")
"""A word, or what stands in backticks with what is written against them."""
_EMOJI_SIGN = "\ufe0f"
_JAMO = range(0x1160, 0x1200)
"""Vowels and finals of Korean, which are drawn into the syllable before them."""


class Paper(NamedTuple):
    """How wide a page is, and how it is written."""

    width: int = READABLE
    paint: Style = lambda text, _colour: text
    ellipsis: str = "…"

    def fill(self, text: str, indent: str = "", hanging: str | None = None) -> str:
        """Wrap prose at words; what has no place to break, such as a path, stays whole."""
        return fill(text, min(self.width, READABLE), indent, hanging)

    def cut(self, text: str, room: int) -> str:
        """Return as much of a text as there is room for, at a word if one ends near."""
        return cut(text, room, self.ellipsis)


def width_of(text: str) -> int:
    """Return how many columns a text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def cut(text: str, room: int, ellipsis: str = "…") -> str:
    """Return as much of a text as there is room for, at a word if one ends near."""
    if width_of(text) <= room:
        return text
    kept = _beginning(text, room - width_of(ellipsis))
    words, space, _ = kept.rpartition(" ")
    near = space and text[len(kept)] != " " and width_of(words) >= room // 2
    return _beginning(f"{(words if near else kept).rstrip(' ,;:')}{ellipsis}", max(0, room))


def fill(text: str, width: int, indent: str = "", hanging: str | None = None) -> str:
    """Wrap a text at words, each of its lines by itself; later lines begin with `hanging`."""
    rest = f"{indent}  " if hanging is None else hanging
    lines = [_wrapped(line, width, indent, rest) for line in text.split("\n")]
    return "\n".join(each for line in lines for each in line)


def _wrapped(text: str, width: int, indent: str, hanging: str) -> Iterator[str]:
    own = text[: len(text) - len(text.lstrip(" "))]
    if width_of(indent + text) <= width:
        yield (indent + text).rstrip()
        return
    indent, hanging = indent + own, hanging + own
    line, is_begun = indent, False
    for gap, piece in _pieces(text, width - width_of(hanging)):
        longer = f"{line}{gap if is_begun else ''}{piece}"
        if is_begun and width_of(longer) > width:
            yield line
            longer = hanging + piece
        line, is_begun = longer, True
    yield line


def _pieces(text: str, room: int) -> Iterator[tuple[str, str]]:
    """Yield what must stay together, each with the space before it."""
    for word in _words(text, room):
        gap, piece = " ", ""
        for each in word:
            if piece and _may_part(piece[-1], each):
                yield gap, piece
                gap, piece = "", ""
            piece += each
        yield gap, piece


def _words(text: str, room: int) -> Iterator[str]:
    """Yield the words of a text; a command in backticks is one where a line has room for it."""
    for word in _WORD.findall(text):
        yield from (word,) if width_of(word) <= room else word.split()


def _may_part(before: str, after: str) -> bool:
    """Return whether a line may end between two characters, as in scripts without spaces."""
    closes = unicodedata.category(after) in ("Po", "Pe", "Pf")
    return _width(after) > 0 and not closes and (_is_wide(before) or _is_wide(after))


def _is_wide(character: str) -> bool:
    return not character.isascii() and unicodedata.east_asian_width(character) in ("W", "F")


def _width(character: str) -> int:
    if character.isascii():
        return 1
    if character == _EMOJI_SIGN:
        # It makes a wide picture of the narrow sign before it.
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or ord(character) in _JAMO:
        return 0
    return 2 if _is_wide(character) else 1


def _beginning(text: str, room: int) -> str:
    used = 0
    for at, each in enumerate(text):
        used += _width(each)
        if used > room:
            return text[:at]
    return text
