"""Two files that grew from one, put together again."""

from collections.abc import Mapping

from aggregator.basics.json import JsonObject
from aggregator.catalog.lock.record import Lock, Record
from aggregator.names import ServerName

NOTHING = Record()


def merged(base: Lock, ours: Lock, theirs: Lock) -> tuple[Lock, list[str]]:
    """Return what both sides made of a file, and what only a person can decide.

    Of that, ours is kept.
    """
    found: dict[ServerName, Record] = {}
    conflicts: list[str] = []
    for name in {**ours, **theirs}:
        old, mine, other = base.get(name), ours.get(name), theirs.get(name)
        if mine is None or other is None:
            left = mine or other
            # Who took it away means it, unless the other side has changed it.
            if left is not None and left != old:
                found[name] = left
            continue
        if mine.source != other.source:
            # What one program offers says nothing of another, so no blocks of both stand together.
            found[name] = other if mine == old else mine
            conflicts += [] if old in (mine, other) else [str(name)]
            continue
        tools, undecided = _tools(old or NOTHING, mine, other)
        conflicts += [f"{name}/{each}" for each in undecided]
        conflicts += [f"{name}, its instructions"] if _say_otherwise(old, mine, other) else []
        facts = other if old is not None and _facts(mine) == _facts(old) else mine
        is_ours = old is None or mine.instructions != old.instructions
        said = mine.instructions if is_ours else other.instructions
        found[name] = facts._replace(tools=tools, instructions=said)
    return found, conflicts


def _tools(
    base: Record, ours: Record, theirs: Record
) -> tuple[Mapping[str, JsonObject], list[str]]:
    tools: dict[str, JsonObject] = {}
    undecided: list[str] = []
    for name in {**ours.tools, **theirs.tools}:
        old, mine, other = (each.tools.get(name) for each in (base, ours, theirs))
        if mine != other and old not in (mine, other):
            undecided.append(name)
        chosen = other if mine == old else mine
        if chosen is not None:
            tools[name] = chosen
    return tools, undecided


def _say_otherwise(base: Record | None, ours: Record, theirs: Record) -> bool:
    """Whether both sides have changed what a server says of how it is used, each in its way."""
    before = (base or NOTHING).instructions
    return ours.instructions != theirs.instructions and before not in (
        ours.instructions,
        theirs.instructions,
    )


def _facts(record: Record) -> Record:
    return record._replace(tools={})
