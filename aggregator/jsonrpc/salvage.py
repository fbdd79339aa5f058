"""Find which request an unreadable answer belongs to, from the two ends of its line.

Only a line that has the outline of an answer counts: a server that prints the requests it gets
must not fail the calls they belong to.
"""

import re

from mcp_types import RequestId
from pydantic_core import from_json

SCANNED_BYTES = 1024
"""Bytes looked at from either end of a line."""

_IDENTIFIER = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")'
_MEMBER = rb'(?:"jsonrpc"\s*:\s*"2\.0"|' + _IDENTIFIER.replace(b"(-", b"(?:-", 1) + rb")"
_OPENING = re.compile(rb"\{\s*((?:" + _MEMBER + rb'\s*,\s*)*)"(?:result|error)"\s*:')
_CLOSING = re.compile(rb"((?:,\s*" + _MEMBER + rb"\s*)+)\}$")
_FOUND = re.compile(_IDENTIFIER)


def salvage_id(head: bytes, tail: bytes) -> RequestId | None:
    """Return the id of the request that a line with these ends answers, if it can be told."""
    opening = _OPENING.match(head[:SCANNED_BYTES])
    if opening is None:
        return None
    closing = _CLOSING.search(tail[-SCANNED_BYTES:].rstrip())
    members = opening[1] + (closing[1] if closing else b"")
    found = _FOUND.search(members)
    if found is None or b'"jsonrpc"' not in members:
        return None
    return _identifier(found[1])


def _identifier(literal: bytes) -> RequestId | None:
    try:
        return from_json(literal)
    except ValueError:
        return None
