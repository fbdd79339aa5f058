"""How what a server offers now differs from what it offered when it was approved."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from aggregator.basics.glyphs import on_one_line
from aggregator.basics.json import JsonObject, as_object, is_array, is_object, items
from aggregator.catalog.lock.record import MAX_DEPTH, Record, fingerprint, kept

MAX_NAMED = 5
"""Parameters that are named in one sentence."""
MAX_NAME = 40
"""Characters of the name of each."""


class Kind(IntEnum):
    """Ways in which a tool can differ, the gravest first."""

    PERMISSION = 0
    """It may do more than it said."""
    REQUIRED = 1
    """It needs an argument that it did not need."""
    DESCRIPTION = 2
    """It says something else of itself."""
    INSTRUCTIONS = 3
    """Its server says something else of all of them."""
    DEFINITION = 4
    """Something else about it is different."""
    NEW = 5
    REMOVED = 6
    NOTATION = 7
    """It is written in another way and says the same."""


class Drift(NamedTuple):
    """One tool that differs, or what its server says of all of them."""

    tool: str
    """The name it has on its server; none for the server itself."""
    kind: Kind
    """The gravest of the ways in which it differs."""
    details: tuple[str, ...] = ()
    """What differs, in words that follow its name."""

    def __str__(self) -> str:
        subject = f"`{_cut(self.tool)}`" if self.tool else "it"
        return f"{subject} {', '.join(self.details)}"


def drifts(record: Record, tools: Mapping[str, JsonObject]) -> list[Drift]:
    """Return what differs between what was known of a server's tools and now, gravest first."""
    told = (
        edited(name) if name in record.altered else drift_of(name, record.tools.get(name), tool)
        for name, tool in tools.items()
    )
    found = [each for each in told if each is not None]
    return ordered([*found, *map(removed, record.tools.keys() - tools.keys())])


def drift_of(name: str, before: JsonObject | None, after: JsonObject) -> Drift | None:
    """Return how a tool differs from what was known of it, if it does."""
    if before is None:
        return Drift(name, Kind.NEW, ("is new",))
    before, after = kept(before), kept(after)
    return None if _is_same(before, after) else _difference(name, before, after)


def retold(before: str, after: str, details: str = "has other instructions") -> Drift | None:
    """Return that a server says something else of how it is used, if it does.

    A model reads that as it reads a description.
    """
    return None if before == after else Drift("", Kind.INSTRUCTIONS, (details,))


def removed(name: str) -> Drift:
    """Return what is said of a tool that is no longer there."""
    return Drift(name, Kind.REMOVED, ("is gone",))


def edited(name: str) -> Drift:
    """Return what is said of a tool of which the file says what nobody has approved."""
    return Drift(name, Kind.NEW, ("has an entry in the lock file that was edited by hand",))


def ordered(found: Iterable[Drift]) -> list[Drift]:
    """Return what differs with the gravest first."""
    return sorted(found, key=lambda drift: (drift.kind, drift.tool))


def _is_same(before: JsonObject, after: JsonObject) -> bool:
    # Nearly all are, and to compare them is far quicker than to work out what stands for each.
    try:
        return before == after or fingerprint(before) == fingerprint(after)
    except RecursionError:
        # A server may have none that is so deep.
        return False


def _difference(name: str, before: JsonObject, after: JsonObject) -> Drift:
    told = sorted(_ways(before, after), key=lambda way: way[0])
    kind = told[0][0] if told else Kind.NOTATION
    details = tuple(words for _, words in told) or ("is written in another way",)
    return Drift(name, kind, details)


def _ways(before: JsonObject, after: JsonObject) -> Iterator[tuple[Kind, str]]:
    yield from ((Kind.PERMISSION, words) for words in _gained(before, after))
    if needed := _required(after) - _required(before):
        yield Kind.REQUIRED, f"now needs {_listed(needed)}"
    for key in ("description", "title"):
        if before.get(key) != after.get(key):
            yield Kind.DESCRIPTION, f"has another {key}"
    yield from ((Kind.DEFINITION, words) for words in _others(before, after))


def _gained(before: JsonObject, after: JsonObject) -> Iterator[str]:
    """Say what a tool may do that it said it does not."""
    old, new = (as_object(each.get("annotations")) for each in (before, after))
    if old.get("readOnlyHint") is True and new.get("readOnlyHint") is not True:
        yield "no longer says that it only reads"
    # Whoever says nothing about it may destroy.
    is_tame = new.get("readOnlyHint") is True
    if old.get("destructiveHint") is False and new.get("destructiveHint") is not False:
        yield from () if is_tame else ("no longer says that it destroys nothing",)


def _others(before: JsonObject, after: JsonObject) -> Iterator[str]:
    old, new = (_plain_schema(each.get("inputSchema")) for each in (before, after))
    if old != new:
        yield _parameters(old, new)
    for key in sorted((before.keys() | after.keys()) - _TOLD):
        values = [each.get(key) for each in (before, after)]
        if key == "outputSchema":
            values = [_plain_schema(each) for each in values]
        if values[0] != values[1]:
            yield f"has other {key}" if key == "annotations" else f"has another {key}"


_TOLD = frozenset({"description", "title", "inputSchema"})


def _parameters(before: Any, after: Any) -> str:  # noqa: ANN401 - JSON has no narrower type
    old, new = (as_object(as_object(each).get("properties")) for each in (before, after))
    changed = [name for name in new if name in old and old[name] != new[name]]
    parts = [
        f"{verb} {_listed(names)}"
        for verb, names in (
            ("takes", new.keys() - old.keys()),
            ("no longer takes", old.keys() - new.keys()),
            ("has another form of", changed),
        )
        if names
    ]
    return ", ".join(parts) or "has another form of its arguments"


def _required(tool: JsonObject) -> set[str]:
    schema = as_object(tool.get("inputSchema"))
    return {each for each in items(schema.get("required")) if isinstance(each, str)}


def _plain_schema(value: Any, depth: int = MAX_DEPTH, name: str = "") -> Any:  # noqa: ANN401 - JSON
    """Return a schema without what changes nothing about what it describes."""
    if not depth:
        return value
    if is_array(value):
        return [_plain_schema(each, depth - 1) for each in value]
    if not is_object(value):
        return value
    return {
        key: _plain_names(each, depth - 1) if key in _NAMING else _plain_schema(each, depth - 1)
        for key, each in value.items()
        if not _is_notation(key, each, name)
    }


def _plain_names(value: Any, depth: int) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Return an object whose keys are names, whatever they are."""
    if not is_object(value) or not depth:
        return value
    return {name: _plain_schema(each, depth - 1, name) for name, each in value.items()}


_NAMING = frozenset({"properties", "patternProperties", "$defs", "definitions"})


def _is_notation(key: str, value: object, name: str) -> bool:
    if key == "$schema":
        return isinstance(value, str) and _DIALECT.fullmatch(value) is not None
    if key == "title":
        # A model reads what else it says.
        is_name = isinstance(value, str) and _is_spelling(value, name)
        return is_name or (not name and isinstance(value, str) and bool(_WORD.fullmatch(value)))
    if key == "additionalProperties":
        return value is False
    return key in ("required", "properties") and not value


_WORD = re.compile(r"\w{1,40}", re.ASCII)
"""What programs write as the title of a schema that has no name."""
_DIALECT = re.compile(r"https?://json-schema\.org/[\w./-]{1,40}#?")


_SPELLING = re.compile(r"[\w .-]+", re.ASCII)
"""How programs write a name as a title."""


def _is_spelling(title: str, name: str) -> bool:
    """Whether a title is a name written in another way, and has nothing else to be read."""
    is_short = len(title) <= 2 * len(name)
    is_plain = is_short and _SPELLING.fullmatch(title) is not None
    return is_plain and _letters(title) == _letters(name)


def _letters(text: str) -> str:
    """Return what of a name is left in whatever way it is written."""
    return "".join(filter(str.isalnum, text)).casefold()


def _listed(names: Collection[str]) -> str:
    some = sorted(names)[:MAX_NAMED]
    rest = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(f"`{_cut(name)}`" for name in some) + rest


def _cut(name: str) -> str:
    """Return as much of a name as a person reads; it is a server's word, and may be anything."""
    plain = on_one_line(name[: 2 * MAX_NAME])
    return plain if len(plain) <= MAX_NAME else f"{plain[:MAX_NAME]}…"
