"""What a model is told of the tools it could search for, and of what came and went since.

What was said stays where it was said, so that the cached beginning of a request never changes:
a note belongs to a place in the history, and stands for as long as the history up to there does.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from aggregator.host.pool import Tool

MAX_MENU = 6_000
"""Characters of names; beyond them servers are told by how much they have."""


class Told(NamedTuple):
    """What a model knows of the tools it could search for."""

    names: tuple[str, ...]
    pending: tuple[str, ...] = ()
    """The servers that are not connected yet."""


class Note(NamedTuple):
    """Something said beside the author's messages."""

    at: int
    """How many of them come before it."""
    digest: str
    """Tells whether they are still the same."""
    text: str
    told: Told
    changes: tuple[Mapping[str, Any], ...] = ()
    """Tools added to the conversation, or removed from it, in the words of the API."""


def told_of(tools: Iterable[Tool], pending: tuple[str, ...]) -> Told:
    """Return what is to be told of some tools."""
    return Told(tuple(tool.name for tool in tools), pending)


def announce(before: Told | None, after: Told, search: str) -> str:
    """Say what can be searched for; or, to a model that knows some of it, what is new and gone."""
    lines = list(_pool(after, search) if before is None else _delta(before, after))
    return "\n".join(["<deferred-tools>", *lines, "</deferred-tools>"]) if lines else ""


def menu(names: Iterable[str], room: int = MAX_MENU) -> list[str]:
    """Name tools by server, each server's name once, in as few tokens as possible."""
    servers: dict[str, list[str]] = {}
    for name in names:
        server, divided, tool = name.partition("__")
        servers.setdefault(server if divided else "", []).append(tool or name)
    lines = [f"{server}: {', '.join(each)}" for server, each in servers.items()]
    if sum(map(len, lines)) <= room:
        return [line.removeprefix(": ") for line in lines]
    counts = ", ".join(f"{server} ({len(each):,} tools)" for server, each in servers.items())
    return [counts if len(counts) <= room else f"{counts[:room]} ..."]


def standing(notes: Sequence[Note], digests: Sequence[str]) -> tuple[Note, ...]:
    """Return the notes up to the first that does not belong to a history any more."""
    kept: list[Note] = []
    for note in notes:
        if note.at >= len(digests) or digests[note.at] != note.digest:
            break
        kept.append(note)
    return tuple(kept)


def digests(history: Sequence[Any]) -> list[str]:
    """Return what tells each beginning of a history from others, the empty one first."""
    running = hashlib.sha256()
    each = [running.hexdigest()]
    for message in history:
        running.update(json.dumps(message, sort_keys=True, default=repr).encode())
        each.append(running.hexdigest())
    return each


def _pool(told: Told, search: str) -> Iterator[str]:
    if told.names:
        yield f"{search} loads these; names are `<server>__<tool>`."
        yield from menu(told.names)
    if told.pending:
        yield f"Not connected yet: {', '.join(told.pending)}."


def _delta(before: Told, after: Told) -> Iterator[str]:
    known, there = frozenset(before.names), frozenset(after.names)
    added = [name for name in after.names if name not in known]
    gone = [name for name in before.names if name not in there]
    if added:
        yield "New:"
        yield from menu(added)
    if gone:
        yield "Gone:"
        yield from menu(gone)
    if late := [name for name in after.pending if name not in before.pending]:
        yield f"Not connected now: {', '.join(late)}."
