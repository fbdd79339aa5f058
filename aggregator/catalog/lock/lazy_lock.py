"""A file as it is used while serving: taken apart in small steps, each tool read when needed.

Ten thousand tools are twenty megabytes. Whoever serves looks at each of them once, when its server
lists what it has, and nearly all are as they were: so only where each is written is found out at
first, and no more is kept than the file itself.
"""

import json
import re
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from aggregator.basics.effort import Turn, finished
from aggregator.basics.json import JsonObject, is_plain_object
from aggregator.catalog.lock.record import Lock, Record, fingerprint, kept
from aggregator.catalog.lock.text import FACTS, LockError, check_version, no_server
from aggregator.names import ServerName

MAX_TOOL_BYTES = 2 * 1024 * 1024
"""Bytes that what is said of one tool may have: what a server may send of it, written out."""
WINDOWS = (4 * 1024, 64 * 1024, MAX_TOOL_BYTES)
"""Bytes in which the end of a value is looked for, one after the other."""
MAX_KEY_BYTES = 16 * 1024
"""Bytes that a name may have, written out."""
MAX_INDENT = 64
"""Bytes that stand before the name of a tool."""
STEPS = 8
"""Steps that it takes to find one tool."""

_SPACE = rb"[ \t\r\n]*"
_OPENING = re.compile(_SPACE + rb"\{")
_CLOSING = re.compile(_SPACE + rb"\}")
_END = re.compile(_SPACE + rb"\Z")
_TEXT = rb'("[^"\\]*(?:\\.[^"\\]*)*")'
_STRING = re.compile(_TEXT, re.DOTALL)
_KEY = _SPACE + _TEXT + _SPACE + b":" + _SPACE
_FIRST_KEY = re.compile(_KEY, re.DOTALL)
_NEXT_KEY = re.compile(_SPACE + b"," + _KEY, re.DOTALL)
_DECODER = json.JSONDecoder()


class Span(NamedTuple):
    """Where something is written."""

    start: int
    end: int


class LockedServer(NamedTuple):
    """What a file says of one server."""

    data: bytes
    facts: Mapping[str, str]
    spans: Mapping[str, Span]
    """Where each tool is, by the name it has on its server."""

    @property
    def source(self) -> str:
        """What stands for how the server is reached."""
        return self.facts.get("source", "")

    def entry(self, name: str) -> JsonObject | None:
        """Return all that is said of a tool; nothing if it is not as it was written.

        Nobody has seen it so.
        """
        found = self._block(name)
        try:
            is_whole = found is not None and found.pop("sha256", None) == fingerprint(found)
        except RecursionError:
            return None
        return found if is_whole else None

    def tool(self, name: str) -> JsonObject | None:
        """Return what a tool is known to say of itself, in the same way."""
        entry = self.entry(name)
        return None if entry is None else kept(entry)

    def claim(self, name: str) -> JsonObject | None:
        """Return what a tool says of itself by the file, whoever has written that.

        To see whether it fits what stands for it takes as long as to read it.
        """
        found = self._block(name)
        return None if found is None else kept(found)

    def _block(self, name: str) -> dict[str, Any] | None:
        """Return what is written of a tool, if that can be read."""
        span = self.spans.get(name)
        if span is None or span.end - span.start > MAX_TOOL_BYTES:
            return None
        try:
            text = self.data[span.start : span.end].decode()
            found, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            return None
        return found if end == len(text) and is_plain_object(found) else None


LazyLock = Mapping[ServerName, LockedServer]
"""What a file says of each server."""


def taken_apart(data: bytes) -> Generator[None, None, LazyLock]:
    """Find out where each tool is written; yield where a turn is over.

    Raises:
        LockError: It is no lock, or damaged, or of a version that is not known.
    """
    try:
        return (yield from _Reading(data, is_careful=False).lazy_lock())
    except LockError:
        # It may be in order and indented as nobody indents.
        return (yield from _Reading(data, is_careful=True).lazy_lock())


def read(data: bytes) -> Lock:
    """Return all that a file says, as whoever serves reads it.

    Raises:
        LockError: It is none, or damaged, or of a version that is not known.
    """
    return {name: _record(locked) for name, locked in finished(taken_apart(data)).items()}


def _record(locked: LockedServer) -> Record:
    found = {name: locked.entry(name) for name in locked.spans}
    return Record(
        **{key: each for key, each in locked.facts.items() if key in FACTS},
        tools={name: each for name, each in found.items() if each is not None},
        altered=tuple(name for name, each in found.items() if each is None),
    )


def _text(written: bytes) -> str:
    """Return what a JSON string says."""
    text = written.decode()
    # Most are plain, and to ask for a parser takes longer than to see that.
    is_plain = "\\" not in text and text.isprintable()
    return text[1:-1] if is_plain else json.loads(text)


class _Reading:
    """A place in a file, and how it is gone on from there."""

    def __init__(self, data: bytes, *, is_careful: bool) -> None:
        self._data = data
        self._is_careful = is_careful
        self._at = 0
        self._key_at = 0
        self._turn = Turn()
        self._spent = 0

    def lazy_lock(self) -> Generator[None, None, LazyLock]:
        try:
            return (yield from self._document())
        except RecursionError:
            raise LockError("is nested too deep") from None
        except ValueError as error:
            raise self._damaged() from error

    def _document(self) -> Generator[None, None, LazyLock]:
        version: object = None
        servers: dict[ServerName, LockedServer] | None = None
        if _OPENING.match(self._data) is None:
            raise LockError("is no file of `aggregator lock`")
        for key in self._keys():
            yield from self._pause()
            if key == "servers":
                servers = {}
                for name in self._keys():
                    servers[ServerName(name)] = yield from self._locked_server(name)
            elif key == "lock":
                version = self._value()
                check_version(version)
            else:
                self._passed()
        if _END.match(self._data, self._at) is None:
            raise self._damaged()
        check_version(version)
        if servers is None:
            raise LockError("names no servers")
        return servers

    def _locked_server(self, server: str) -> Generator[None, None, LockedServer]:
        if _OPENING.match(self._data, self._at) is None:
            raise no_server(server)
        facts: dict[str, str] = {}
        spans: dict[str, Span] | None = None
        for key in self._keys():
            yield from self._pause()
            if key == "tools":
                spans = {}
                for name in self._keys():
                    spans[name] = self._passed()
                    # There are thousands, and another generator for each would take its time.
                    if self._turn.is_over(self._spent):
                        yield
            elif isinstance(value := self._value(), str):
                facts[key] = value
        if spans is None:
            raise no_server(server)
        return LockedServer(self._data, facts, spans)

    def _pause(self) -> Generator[None, None, None]:
        """Let others have their turn, if it is over."""
        if self._turn.is_over(self._spent):
            yield

    def _keys(self) -> Generator[str, None, None]:
        """Enter an object and yield each key; whoever takes it goes on behind its value."""
        opening = _OPENING.match(self._data, self._at)
        if opening is None:
            raise self._damaged()
        self._at = opening.end()
        form, seen = _FIRST_KEY, set[str]()
        while (found := form.match(self._data, self._at, self._at + MAX_KEY_BYTES)) is not None:
            key = _text(found[1])
            self._spent = STEPS
            if key in seen:
                raise LockError(f"has {json.dumps(key)[:80]} twice")
            seen.add(key)
            self._key_at, self._at = found.start(1), found.end()
            form = _NEXT_KEY
            yield key
        closing = _CLOSING.match(self._data, self._at)
        if closing is None:
            raise self._damaged()
        self._at = closing.end()

    def _passed(self) -> Span:
        """Go past a value, of which no more is known than where it is."""
        start, self._spent = self._at, STEPS
        end = None if self._is_careful else self._end_by_indent()
        if end is None:
            self._value()
            # To look for an end is nothing beside reading what is before it.
            self._spent += (self._at - start) // 64
        else:
            self._at = end
        return Span(start, self._at)

    def _end_by_indent(self) -> int | None:
        """Return where an object ends of which every line is further in than its ends.

        No text in it can hold the end of a line.
        """
        data, start = self._data, self._at
        if not data.startswith((b"{\n", b"{\r"), start):
            return None
        line = data.rfind(b"\n", max(0, self._key_at - MAX_INDENT), self._key_at)
        if line < 0:
            return None
        closing = data[line : self._key_at] + b"}"
        end = data.find(closing, start, start + MAX_TOOL_BYTES)
        return None if end < 0 else end + len(closing)

    def _value(self) -> Any:  # noqa: ANN401 - JSON has no narrower type
        """Read a value, of which no more is looked at than it may have."""
        if (found := _STRING.match(self._data, self._at, self._at + MAX_TOOL_BYTES)) is not None:
            self._at = found.end()
            self._spent += len(found[0]) // 64
            return _text(found[0])
        for window in WINDOWS:
            end = self._whole_character(self._at + window)
            text = self._data[self._at : end].decode()
            is_all = end == len(self._data)
            try:
                value, length = _DECODER.raw_decode(text)
            except ValueError:
                if is_all:
                    raise
                continue
            # What ends with the window, such as a number, may go on behind it.
            if is_all or length < len(text):
                self._spent += length // 64
                self._at += length if text.isascii() else len(text[:length].encode())
                return value
        raise LockError("has an entry that is too large")

    def _whole_character(self, end: int) -> int:
        """Return where the character begins that a place is in the middle of."""
        end = min(end, len(self._data))
        while self._at < end < len(self._data) and self._data[end] & 0xC0 == 0x80:  # noqa: PLR2004
            end -= 1
        return end

    def _damaged(self) -> LockError:
        line = self._data.count(b"\n", 0, self._at) + 1
        return LockError(f"is damaged at line {line:,}")
