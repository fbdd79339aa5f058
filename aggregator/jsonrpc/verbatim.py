"""Long strings of messages that pass as they were written, to the byte.

What a large result holds is mostly one text. It has to be read, since others look into results;
to write it anew, character by character, takes longer than all else that is done with it. So its
bytes are kept beside it, for as long as it is the same string.
"""

from collections.abc import Iterator
from secrets import token_hex
from sys import getsizeof
from typing import Any, Self

from pydantic_core import from_json

from aggregator.basics.json import is_array, is_plain_object, items

LEAST_BYTES, MOST_BYTES = 32 * 1024, 4 * 1024 * 1024
"""Bytes of a message whose long strings are kept twice: fewer are not worth it, more too much."""
LONG_BYTES = 16 * 1024
"""Bytes from which a string is a long one."""
MAX_LONG, MAX_BESIDE = 4, 8 * 1024
"""Long strings that a message has, and bytes beside them, at the most."""
SHORT_BYTES = 128
"""Bytes that any other string counts for: to find each takes a while."""
MAX_QUOTES = 1000
"""Quotation marks in a string that are looked at one by one."""
END_BYTES = 2048
"""Bytes in which the end of a string with more of them is looked for, from where it is likely."""
RUN_BYTES = 64
"""Backslashes in a row that are counted."""
MAX_VALUES = 500
"""Values of a result that are looked through for long strings."""

QUOTE = b'"'
_MORE = b',"structuredContent":'
"""What stands between two long strings, if there are two: within one, its marks are escaped."""
_STANDS_FOR = token_hex(16)
"""What a long string is replaced by for a moment: nobody else knows it."""


class Verbatim(str):
    """A long string, and how it was written."""

    __slots__ = ("literal",)

    literal: bytes

    def __new__(cls, value: str, literal: bytes) -> Self:
        """Be the string that was written so."""
        self = super().__new__(cls, value)
        self.literal = literal
        return self

    @classmethod
    def read(cls, literal: bytes) -> Self | None:
        """Read a string from JSON, unless that is more than one string, or none."""
        try:
            value: object = from_json(literal, cache_strings="none")
        except ValueError:
            return None
        return cls(value, literal) if isinstance(value, str) else None

    def __sizeof__(self) -> int:
        return super().__sizeof__() + getsizeof(self.literal)


def parsed(line: bytes) -> object:
    """Return the value that a message is, or nothing if it has to be read in the usual way.

    Each long string is read by itself, and the rest with something short in its place: if both are
    JSON, the whole is, and nothing can be in it that was not seen.
    """
    places = list(_places(line))
    if not places or len(line) - sum(end - start for start, end in places) > MAX_BESIDE:
        return None
    rest: list[bytes] = []
    position = 0
    for number, (start, end) in enumerate(places):
        rest += (line[position:start], b'"%b%d"' % (_STANDS_FOR.encode(), number))
        position = end
    try:
        value: object = from_json(b"".join((*rest, line[position:])), allow_inf_nan=False)
    except ValueError:
        return None
    strings: dict[str, Verbatim] = {}
    for number, (start, end) in enumerate(places):
        if (string := Verbatim.read(line[start:end])) is None:
            return None
        strings[f"{_STANDS_FOR}{number}"] = string
    value = _put_back(value, strings)
    return None if strings else value


def _places(line: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the long strings are, as far as that can be told soon."""
    beside, found, position = 0, 0, 0
    while beside <= MAX_BESIDE and found < MAX_LONG:
        opening = line.find(QUOTE, position)
        position = -1 if opening < 0 else _end(line, opening)
        if position < 0:
            return
        if position - opening >= LONG_BYTES:
            found += 1
            yield opening, position
        else:
            beside += max(position - opening, SHORT_BYTES)


def _end(line: bytes, opening: int) -> int:
    """Return where a string ends, or less than nothing if that cannot be told."""
    at = opening
    for _ in range(MAX_QUOTES):
        at = line.find(QUOTE, at + 1)
        if at < 0 or not _is_escaped(line, at):
            return at + 1 or at
    more = line.find(_MORE, at)
    end = len(line) if more < 0 else more
    at = max(at, end - END_BYTES)
    while (at := line.find(QUOTE, at + 1, end)) >= 0 and _is_escaped(line, at):
        pass
    return at + 1 or at


def _is_escaped(line: bytes, at: int) -> bool:
    run = line[max(at - RUN_BYTES, 0) : at]
    return (len(run) - len(run.rstrip(b"\\"))) % 2 == 1


def _put_back(value: object, strings: dict[str, Verbatim]) -> object:
    """Return a value with the long strings in their places, each taken out of what is given."""
    if isinstance(value, str):
        return strings.pop(value, value)
    if is_plain_object(value):
        return {key: _put_back(each, strings) for key, each in value.items()}
    if is_array(value):
        return [_put_back(each, strings) for each in value]
    return value


def is_within(result: dict[str, Any]) -> bool:
    """Whether a result holds a long string where results do."""
    blocks = items(result.get("content") or result.get("contents"))
    # From among more than that none is taken out.
    for block in blocks if len(blocks) <= MAX_VALUES else ():
        if is_plain_object(block):
            for value in block.values():
                if type(value) is Verbatim:
                    return True
    return False


class Lifting:
    """Takes the long strings out of a result, so that all else can be written as usual."""

    def __init__(self, result: dict[str, Any]) -> None:
        self._literals: list[bytes] = []
        self._values = 0
        self.rest = {key: self._lift(each) for key, each in result.items()}
        """The result, with something short in the place of each."""

    def _lift(self, value: object) -> object:
        self._values += 1
        if isinstance(value, Verbatim):
            self._literals.append(value.literal)
            return f"{_STANDS_FOR}{len(self._literals) - 1}"
        if is_plain_object(value) and self._values + len(value) <= MAX_VALUES:
            return {key: self._lift(each) for key, each in value.items()}
        if is_array(value) and self._values + len(value) <= MAX_VALUES:
            return [self._lift(each) for each in value]
        return value

    def put_into(self, written: bytes) -> bytes:
        """Return what was written of the rest, with the long strings as they came."""
        pieces: list[bytes] = []
        for number, literal in enumerate(self._literals):
            before, _, written = written.partition(b'"%b%d"' % (_STANDS_FOR.encode(), number))
            pieces += (before, literal)
        return b"".join((*pieces, written))
