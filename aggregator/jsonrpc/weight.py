"""Tell, before a message is parsed, whether the values in it would fill the memory.

Sixteen megabytes of `{},{},{},` are five million objects, and half a gigabyte. Strings are
counted by their bytes, which is why text of any kind and almost any size passes.
"""

SLACK = 16 * 1024 * 1024
"""Bytes that memory may grow by beside four times the limit of one message."""

RESERVE = 1024 * 1024
"""Bytes of the slack that are kept for everything but the message."""

MOST_PER_BYTE = 48
"""Bytes of memory that one byte of JSON can come to at most."""

CONTAINER, VALUE, STRING, KEY = 200, 60, 60, 80
"""Bytes of memory that an object or array, a value in it, a string and a key take at most."""

WIDEST = 4
"""Bytes that a character takes if one of its string's characters needs as many."""

SKIPPED_STRINGS = 64
"""Strings at the beginning of a message that are skipped one by one."""

BACKSLASH = ord("\\")

COUNTED_BYTES = 1024 * 1024
"""Bytes counted together, so that counting can end when it is clear what comes of it."""

BLOCK_BYTES = 64 * 1024
"""Bytes looked at together, so that looking takes no memory either."""


def is_affordable(line: bytes, limit: int) -> bool:
    """Say whether the line and what it is parsed to fit in four times the limit and the slack."""
    budget = 4 * limit + SLACK - RESERVE - len(line)
    if len(line) * MOST_PER_BYTE <= budget:
        return True
    # An escape may stand for a wide character; to look for those that do would take longer.
    budget -= len(line) * (1 if line.isascii() and b"\\" not in line else WIDEST)
    return any(weigh(line, budget) <= budget for weigh in (_structure, _structure_outside_strings))


def _structure(line: bytes, enough: int) -> int:
    """Estimate the values; the first strings, of which one may be the whole message, are skipped.

    Counting takes ten times as long as parsing does, and finding the end of a string no time.
    """
    weight, position = 0, 0
    for _ in range(SKIPPED_STRINGS):
        opening = line.find(b'"', position)
        closing = line.find(b'"', opening + 1)
        if opening < 0 or closing < 0 or line[closing - 1] == BACKSLASH:
            break
        weight += _count(line, position, opening + 1)
        position = closing + 1
    while position < len(line) and weight <= enough:
        weight += _count(line, position, position + COUNTED_BYTES)
        position += COUNTED_BYTES
    return weight


def _structure_outside_strings(line: bytes, enough: int) -> int:
    """Count again, without the commas and brackets that are only text."""
    bare = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside, weight = 0, 0
    for start in range(0, len(bare), BLOCK_BYTES):
        pieces = bare[start : start + BLOCK_BYTES].split(b'"')
        outside = b"".join(pieces[inside::2])
        weight += _count(outside, 0, len(outside)) + len(pieces) // 2 * STRING
        inside ^= (len(pieces) - 1) & 1
        if weight > enough:
            break
    return weight


def _count(text: bytes, start: int, end: int) -> int:
    containers = text.count(b"{", start, end) + text.count(b"[", start, end)
    values, quotes = text.count(b",", start, end), text.count(b'"', start, end)
    keys = text.count(b":", start, end)
    return containers * CONTAINER + values * VALUE + (quotes + 1) // 2 * STRING + keys * KEY
