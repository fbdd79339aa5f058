"""One tool as text: its definition, its signature, and how to call it."""

from collections.abc import Iterator, Mapping, Sequence

from aggregator.basics.effort import CLEANED, Effort
from aggregator.basics.json import as_object, is_array
from aggregator.catalog import ToolEntry
from aggregator.exposure import Way
from aggregator.toolsearch.definition_cache import DefinitionCache
from aggregator.toolsearch.kinds import MAX_DEPTH, Place, kind
from aggregator.toolsearch.parameters import Detail, parameter_lines
from aggregator.toolsearch.schema import (
    Json,
    Schema,
    alternatives,
    properties,
    required,
    resolved,
    type_names,
)
from aggregator.toolsearch.wording import CUT, compact, fitting, one_line, printable

WHOLE = Detail(description=0, parameter=4000)
"""What is said of a tool that was asked for by its name; of its description, as much as fits."""
FULL = Detail(description=1000, parameter=400)
MEDIUM = Detail(description=400, parameter=160)
COMPACT = Detail(description=200, parameter=80)
BARE = Detail(description=120, parameter=0)
FLAT = Detail(description=120, parameter=0, depth=1)
"""Every parameter, and not a word about it."""
LEAST = Detail(description=0, parameter=0, depth=1, values=40)
"""For a tool whose parameters have more values than an answer has room."""
SMALL = (COMPACT, BARE, FLAT, LEAST)

_signatures = DefinitionCache[str]()

MAX_SIGNATURE = 300
"""Characters of a tool told on one line."""
LEFT_OPEN = "{...}"
"""Arguments that are not shown, or not here."""
MAX_EXAMPLE = 400
"""Characters of the arguments in an example call."""
MAX_SAMPLE_DEPTH = 3
"""Levels of objects and arrays in an example call."""
EXAMPLE_PART = 4
"""The part of an effort that is spent on an example call: one in so many."""
TRIES = 4
"""Times that a description is cut to find out how much of it fits."""


def definition(
    entry: ToolEntry,
    way: Way | None,
    detail: Detail,
    room: int,
    effort: Effort,
    *,
    words: int | None = None,
) -> str:
    """Return a tool's definition, left off where it exceeds the room or the effort there is.

    `words` are characters of its description, if not as many as usual are to be shown.
    """
    call = [f"Call: {example(entry, way, effort)}"] if way else []
    lines = parameter_lines(entry.input_schema, detail, room, effort)
    text = "\n".join(
        [
            _heading(entry, way),
            *call,
            *_quoted(entry.description, detail.description if words is None else words),
            *(["Parameters:", *map("| {}".format, lines)] if lines else ["No parameters."]),
        ]
    )
    spared = detail.parameter == 0 or detail.depth < MAX_DEPTH
    return f"{text}\n{_whole(entry, way)}" if spared or CUT in text else text


def unshortened(
    entry: ToolEntry, way: Way | None, room: int, effort: Effort, *, partly: bool
) -> str | None:
    """Return a tool's definition in all its words, if there is room; `partly` cuts the description.

    What it then says at the least is what it usually does.
    """
    for detail in (WHOLE, FULL) if partly else (WHOLE,):
        words = min(len(entry.description), room)
        for _ in range(TRIES):
            # To show them, each is looked at.
            if not effort.spend(words // CLEANED):
                return None
            text = definition(entry, way, detail, room, effort, words=words)
            if effort.is_spent:
                return None
            if len(text) <= room and (partly or CUT not in text):
                return text
            words -= len(text) - room + len(CUT) + len(_whole(entry, way)) + 1
            if not partly or words < FULL.description:
                break
    return None


def squeezed(
    entry: ToolEntry,
    way: Way | None,
    room: int,
    effort: Effort,
    details: Sequence[Detail] = (FULL, MEDIUM, *SMALL),
) -> str:
    """Return as much of a tool's definition as fits: descriptions go first, parameters last."""
    text = ""
    for left, detail in zip(range(len(details), 0, -1), details, strict=True):
        # What the first forms cost leaves enough to tell the last.
        text = definition(entry, way, detail, room, effort.part(left))
        if len(text) <= room:
            return text
    note = _whole(entry, way)
    return "\n".join([*fitting(text.split("\n")[:-1], room - len(note) - 1), note])


def signature(entry: ToolEntry, effort: Effort) -> str:
    """Return a tool on one line: its parameters with their types, and what it does."""
    if (known := _signatures.find(entry, None, 0, effort)) is not None:
        return known
    before = effort.left
    text = _signature(entry, effort)
    if effort.is_spent:
        return text
    return _signatures.keep(entry, None, text, length=0, steps=before - effort.left)


def _signature(entry: ToolEntry, effort: Effort) -> str:
    shown: list[str] = []
    for text in _signed(entry.input_schema, effort):
        if sum(map(len, shown)) + len(text) > MAX_SIGNATURE:
            shown.append("...")
            break
        shown.append(text)
    about = one_line(entry.description, 120)
    return f"- {entry.name} | ({', '.join(shown)}) {about}".rstrip()


def example(entry: ToolEntry, way: Way, effort: Effort) -> str:
    """Return a call of the tool as this client has to write it, the server's words at its end."""
    text = _sampled(entry.input_schema, effort.part(EXAMPLE_PART))
    has_words = text not in ("{}", LEFT_OPEN)
    if way.through:
        call = f'{{"name": "{entry.name}", "arguments": {text}}}'
        return f"{way.through} {'| ' if has_words else ''}{call}"
    listed = f"({'it is' if way.listed else 'once it is'} in your tool list)"
    return f"{entry.name} {listed} | {text}" if has_words else f"{entry.name} {text} {listed}"


def _heading(entry: ToolEntry, way: Way | None) -> str:
    whose = [f"server {entry.server}"] if entry.server else []
    if way and way.kind:
        whose = [f"a {way.kind} of {whose[0]}" if whose else f"a {way.kind} of this machine"]
    marks = ["read-only"] if entry.read_only else []
    marks += [way.standing] if way and way.standing else []
    return f"## {entry.name} ({', '.join([*whose, *marks])})"


def _whole(entry: ToolEntry, way: Way | None) -> str:
    if way and way.kind:
        return "Shortened"
    return f"Shortened; whole in the resource catalog://tools/{entry.name}"


def _quoted(text: str, limit: int) -> Iterator[str]:
    """Yield a server's words line by line, up to a limit, each line marked as quoted."""
    kept = text if len(text) <= limit else text[:limit].rstrip() + CUT
    for line in kept.splitlines():
        if told := " ".join(printable(line).split()):
            yield f"| {told}"


def _signed(schema: Schema, effort: Effort) -> Iterator[str]:
    """Yield each parameter as a signature has it, required ones first."""
    place = Place(schema, effort)
    top = resolved(schema, schema, effort)
    declared, needed = properties(top), dict.fromkeys(required(top))
    effort.gather(len(declared) + len(needed))
    for name in {**needed, **declared}:
        told = kind(declared.get(name), place) or "see definition"
        mark = "" if name in needed else "?"
        yield f"{one_line(name, 60)}{mark}: {told}"


class _TooLongError(Exception):
    """An example is longer than anybody wants to read."""


def _sampled(schema: Schema, effort: Effort) -> str:
    """Return the arguments of an example call, if they are few enough to be an example."""
    sampling = _Sampling(schema, effort)
    try:
        text = compact(sampling.of_object(resolved(schema, schema, effort)))
    except _TooLongError:
        return LEFT_OPEN
    return text if len(text) <= MAX_EXAMPLE else LEFT_OPEN


class _Sampling:
    """Values to show where arguments go, as long as they have room in an example."""

    def __init__(self, root: Schema, effort: Effort) -> None:
        self._root = root
        self._effort = effort
        self._room = MAX_EXAMPLE

    def of_object(self, schema: Schema, depth: int = 0) -> dict[str, Json]:
        """Return an object with what it must have."""
        declared = properties(schema)
        needed = required(schema) if depth <= MAX_SAMPLE_DEPTH else ()
        # Written out, each takes its name, quotes, a colon and some value.
        self._room -= 5 * len(needed)
        return {name: self._of(name, declared.get(name), depth) for name in needed}

    def _of(self, name: str, schema: Json, depth: int) -> Json:
        """Return a value to show where an argument goes.

        Raises:
            _TooLongError: It would have no room, or has taken too much effort to find.
        """
        if self._room < 0 or not self._effort.spend():
            raise _TooLongError
        known = resolved(as_object(schema), self._root, self._effort)
        for keyword in ("const", "default"):
            if keyword in known:
                return self._written(known[keyword])
        if is_array(values := known.get("enum")) and values:
            return self._written(values[0])
        match self._kind(known):
            case "object":
                return self.of_object(known, depth + 1)
            case "array" if depth < MAX_SAMPLE_DEPTH and "items" in known:
                return [self._of(name, known["items"], depth + 1)]
            case other:
                return _SAMPLES.get(other, f"<{one_line(name, 40)}>")

    def _written(self, value: Json) -> Json:
        """Return a value as its server has written it, if it has room."""
        self._room -= len(compact(value))
        return value

    def _kind(self, schema: Schema) -> str:
        """Return the first of the types a value may have, or else of its alternatives."""
        for option in (schema, *alternatives(schema)):
            known = resolved(as_object(option), self._root, self._effort)
            if names := type_names(known):
                return names[0]
            if not self._effort.spend():
                break
        return ""


_SAMPLES: Mapping[str, Json] = {
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "null": None,
}
