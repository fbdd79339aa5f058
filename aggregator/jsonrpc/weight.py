"""Tell, before a message is parsed, whether the values in it would fill the memory.

Sixteen megabytes of `{},{},{},` are five million objects, and half a gigabyte. Strings are
counted by their bytes, which is why text of any kind and almost any size passes. What is costly
to parse or to write rather than large weighs more than it takes: nobody is served meanwhile.
"""

from collections.abc import Generator

from aggregator.basics.effort import finished

SLACK = 16 * 1024 * 1024
"""Bytes that memory may grow by beside four times the limit of one message."""

RESERVE = 1024 * 1024
"""Bytes of the slack that are kept for everything but the message."""

MOST_PER_BYTE = 48
"""Bytes of memory that one byte of JSON can come to at most."""

UNWEIGHED_BYTES = 768 * 1024
"""Bytes up to which anything can be parsed while everybody waits."""

CONTAINER, VALUE, STRING, KEY = 200, 60, 60, 80
"""Bytes of memory that an object or array, a value in it, a string and a key take at most."""

FEW_KEYS, SPARE_KEY = 64, 120
"""Keys to an object, and what each beyond them weighs more: a huge object is moved as it grows."""

LONG_DIGITS, LONG_NUMBER = 20, 400
"""Digits of a number that is too long for the processor, and what as many of them weigh."""

HUGE_DIGITS, HUGE_NUMBER = 300, 14_000
"""Digits that no number of a plain result has, and what as many of them weigh beside that."""

_DIGITS = b" " * 48 + b"0" * 10 + b" " * 198
_LONG, _HUGE = b"0" * LONG_DIGITS, b"0" * HUGE_DIGITS

WIDEST = 4
"""Bytes that a character takes if one of its string's characters needs as many."""

SKIPPED_STRINGS = 64
"""Strings at the beginning of a message that are skipped one by one."""

BACKSLASH = ord("\\")

COUNTED_BYTES = 512 * 1024
"""Bytes counted together, so that counting can end when it is clear what comes of it."""

BLOCK_BYTES = 64 * 1024
"""Bytes looked at together, so that looking takes no memory either."""


def weighing(line: bytes, limit: int) -> Generator[None, None, bool]:
    """Say whether the line and what it is parsed to fit in four times the limit and the slack.

    In steps of some milliseconds, between which others have their turn.
    """
    budget = 4 * limit + SLACK - RESERVE - len(line)
    if len(line) <= min(UNWEIGHED_BYTES, budget // MOST_PER_BYTE):
        return True
    # An escape may stand for a wide character; to look for those that do would take longer.
    budget -= len(line) * (1 if line.isascii() and b"\\" not in line else WIDEST)
    for weigh in (_structure, _structure_outside_strings):
        if (yield from weigh(line, budget)) <= budget:
            return True
    return False


def weight(line: bytes, limit: int) -> int:
    """Estimate the memory that an affordable line and what it is parsed to take, rather high."""
    most = min(len(line) * MOST_PER_BYTE, 4 * limit + SLACK)
    return min(most, len(line) * (1 + WIDEST) + finished(_structure(line, most)))


def _structure(line: bytes, enough: int) -> Generator[None, None, int]:
    """Estimate the values; the first strings, of which one may be the whole message, are skipped.

    Counting takes ten times as long as parsing does, and finding the end of a string no time.
    """
    weight, position = 0, 0
    for _ in range(SKIPPED_STRINGS):
        opening = line.find(b'"', position)
        closing = line.find(b'"', opening + 1)
        if opening < 0 or closing < 0 or line[closing - 1] == BACKSLASH:
            break
        weight += yield from _counted(line, position, opening + 1, enough)
        position = closing + 1
    return weight + (yield from _counted(line, position, len(line), enough - weight))


def _counted(line: bytes, start: int, end: int, enough: int) -> Generator[None, None, int]:
    weight = 0
    while start < end and weight <= enough:
        piece = line[start : min(start + COUNTED_BYTES, end)]
        weight += _count(piece)
        start += len(piece)
        if start < end:
            yield
    return weight


def _structure_outside_strings(line: bytes, enough: int) -> Generator[None, None, int]:
    """Count again, without the commas and brackets that are only text."""
    inside, weight, cut = 0, 0, b""
    for start in range(0, len(line), BLOCK_BYTES):
        yield
        block = cut + line[start : start + BLOCK_BYTES]
        # A backslash that escapes what is in the next block goes with it.
        cut = block[:0] if (len(block) - len(block.rstrip(b"\\"))) % 2 == 0 else block[-1:]
        bare = block.removesuffix(cut).replace(b"\\\\", b"").replace(b'\\"', b"")
        pieces = bare.split(b'"')
        weight += _count(b"".join(pieces[inside::2])) + len(pieces) // 2 * STRING
        inside ^= (len(pieces) - 1) & 1
        if weight > enough:
            break
    return weight


def _count(text: bytes) -> int:
    containers = text.count(b"{") + text.count(b"[")
    values, quotes, keys = text.count(b","), text.count(b'"'), text.count(b":")
    spare = max(keys - FEW_KEYS * (containers + 1), 0)
    digits = text.translate(_DIGITS)
    long = digits.count(_LONG)
    huge = digits.count(_HUGE) if long * LONG_DIGITS >= HUGE_DIGITS else 0
    strings = (quotes + 1) // 2
    return (
        containers * CONTAINER
        + values * VALUE
        + strings * STRING
        + keys * KEY
        + spare * SPARE_KEY
        + long * LONG_NUMBER
        + huge * HUGE_NUMBER
    )
