"""Heads of requests that differ in nothing but how long their bodies are."""

from typing import NamedTuple

from aggregator.upstream.http.bodies import SMALL_BYTES

HEAD_END = b"\r\n\r\n"
"""What a head ends with."""
MAX_KEPT_BYTES = 8 * 1024
"""Bytes of a head that is worth being remembered."""
MAX_DIGITS = 8
"""Digits that the length of a body may have."""

_LENGTH = b"\r\ncontent-length:"
_UNUSUAL = (b"\r\ntransfer-encoding:", b"\r\nexpect:", b"\r\nupgrade:", b"\r\n ", b"\r\n\t")
"""What makes of a body, or of a connection, something else."""


class Head(NamedTuple):
    """The head of a request, without the number that says how long its body is."""

    before: bytes
    after: bytes

    @classmethod
    def of(cls, data: bytes) -> "Head | None":
        """Return the one that some bytes begin with, if no more than its body follows."""
        end = data.find(HEAD_END, 0, MAX_KEPT_BYTES) + len(HEAD_END)
        head = data[:end].lower()
        at = head.find(_LENGTH) + len(_LENGTH)
        if end < len(HEAD_END) or at < len(_LENGTH) or head.count(_LENGTH) > 1:
            return None
        if any(each in head for each in _UNUSUAL) or not _is_in_lines(head):
            return None
        at += len(head[at:]) - len(head[at:].lstrip(b" "))
        found = cls(data[:at], data[head.index(b"\r\n", at) : end])
        body = found.body(data)
        return found if body is not None and len(data) <= body.end else None

    def body(self, data: bytes) -> "Body | None":
        """Return where the body is of which some bytes begin with the head, if it is this one.

        Nothing of a larger body than needs no room: it is weighed before it is parsed, and is not
        kept in memory by whoever is like it.
        """
        if not data.startswith(self.before):
            return None
        at = len(self.before)
        end = data.find(b"\r\n", at, at + MAX_DIGITS + 2)
        digits = data[at:end]
        if end < 0 or not digits.isdigit() or not data.startswith(self.after, end):
            return None
        start, size = end + len(self.after), int(digits)
        return Body(start, start + size) if size <= SMALL_BYTES else None


class Body(NamedTuple):
    """Where a body is, behind its head."""

    start: int
    end: int


def _is_in_lines(head: bytes) -> bool:
    """Whether all lines end in the one way that nobody reads otherwise."""
    return head.count(b"\r") == head.count(b"\n") == head.count(b"\r\n")
