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

CONTAINER, VALUE, STRING = 200, 60, 60
"""Bytes of memory that an object or array, one more value in it, and a string take at most."""

WIDEST = 4
"""Bytes that a character takes if one of its string's characters needs as many."""

BLOCK_BYTES = 64 * 1024
"""Bytes looked at together, so that looking takes no memory either."""


def is_affordable(line: bytes, limit: int) -> bool:
    """Say whether the line and what it is parsed to fit in four times the limit and the slack."""
    budget = 4 * limit + SLACK - RESERVE - len(line)
    if len(line) * MOST_PER_BYTE <= budget:
        return True
    budget -= len(line) * (1 if line.isascii() and b"\\u" not in line else WIDEST)
    return _structure(line) <= budget or _structure_outside_strings(line, budget) <= budget


def _structure(text: bytes) -> int:
    containers = text.count(b"{") + text.count(b"[")
    return containers * CONTAINER + text.count(b",") * VALUE + text.count(b'"') // 2 * STRING


def _structure_outside_strings(line: bytes, enough: int) -> int:
    """Count again, without the commas and brackets that are only text."""
    bare = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside, weight = 0, 0
    for start in range(0, len(bare), BLOCK_BYTES):
        pieces = bare[start : start + BLOCK_BYTES].split(b'"')
        weight += _structure(b"".join(pieces[inside::2])) + len(pieces) // 2 * STRING
        inside ^= (len(pieces) - 1) & 1
        if weight > enough:
            break
    return weight
