"""One tool as text: its definition, its signature, and how to call it."""

from collections.abc import Iterator, Mapping, Sequence

from aggregator.catalog import ToolEntry
from aggregator.exposure import Way
from aggregator.json import as_object, is_array
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

FULL = Detail(description=1000, parameter=400)
MEDIUM = Detail(description=400, parameter=160)
COMPACT = Detail(description=200, parameter=80)
BARE = Detail(description=120, parameter=0)
FLAT = Detail(description=120, parameter=0, depth=1)
"""Every parameter, and not a word about it."""
LEAST = Detail(description=0, parameter=0, depth=1, values=40)
"""For a tool whose parameters have more values than an answer has room."""
SMALL = (COMPACT, BARE, FLAT, LEAST)

MAX_SIGNATURE = 300
"""Characters of a tool told on one line."""
MAX_EXAMPLE = 400
"""Characters of the arguments in an example call."""
MAX_SAMPLE_DEPTH = 3
"""Levels of objects and arrays in an example call."""


def definition(entry: ToolEntry, way: Way | None, detail: Detail, room: int) -> str:
    """Return a tool's definition, left off where it exceeds the room there is."""
    lines = parameter_lines(entry.input_schema, detail, room)
    text = "\n".join(
        [
            _heading(entry),
            *([f"Call: {example(entry, way)}"] if way else []),
            *_quoted(entry.description, detail.description),
            *(["Parameters:", *lines] if lines else ["No parameters."]),
        ]
    )
    spared = detail.parameter == 0 or detail.depth < MAX_DEPTH
    return f"{text}\n{_whole(entry)}" if spared or CUT in text else text


def squeezed(
    entry: ToolEntry,
    way: Way | None,
    room: int,
    details: Sequence[Detail] = (FULL, MEDIUM, *SMALL),
) -> str:
    """Return as much of a tool's definition as fits: descriptions go first, parameters last."""
    text = ""
    for detail in details:
        text = definition(entry, way, detail, room)
        if len(text) <= room:
            return text
    note = _whole(entry)
    return "\n".join([*fitting(text.split("\n")[:-1], room - len(note) - 1), note])


def signature(entry: ToolEntry) -> str:
    """Return a tool on one line: its parameters with their types, and what it does."""
    shown: list[str] = []
    for text in _signed(entry.input_schema):
        if sum(map(len, shown)) + len(text) > MAX_SIGNATURE:
            shown.append("...")
            break
        shown.append(text)
    about = one_line(entry.description, 120)
    return f"- {entry.name}({', '.join(shown)})" + (f" | {about}" if about else "")


def example(entry: ToolEntry, way: Way) -> str:
    """Return a call of the tool as this client has to write it."""
    root = entry.input_schema
    text = compact(_sample_object(resolved(root, root), root))
    text = text if len(text) <= MAX_EXAMPLE else "{...}"
    if way == "direct":
        return f"{entry.name} {text} (it is in your tool list)"
    return f'{way} {{"name": "{entry.name}", "arguments": {text}}}'


def _heading(entry: ToolEntry) -> str:
    return f"## {entry.name} (server {entry.server}{', read-only' if entry.read_only else ''})"


def _whole(entry: ToolEntry) -> str:
    return f"Shortened; whole in the resource catalog://tools/{entry.name}"


def _quoted(text: str, limit: int) -> Iterator[str]:
    """Yield a server's words line by line, up to a limit, each line marked as quoted."""
    kept = text if len(text) <= limit else text[:limit].rstrip() + CUT
    for line in kept.splitlines():
        if told := " ".join(printable(line).split()):
            yield f"| {told}"


def _signed(schema: Schema) -> Iterator[str]:
    """Yield each parameter as a signature has it, required ones first."""
    top = resolved(schema, schema)
    needed = required(top)
    names = dict.fromkeys([*needed, *properties(top)])
    for name in names:
        told = kind(properties(top).get(name), Place(schema)) or "see definition"
        mark = "" if name in needed else "?"
        yield f"{one_line(name, 60)}{mark}: {told}"


def _sample(name: str, schema: Json, root: Schema, depth: int = 0) -> Json:
    """Return a value to show where an argument goes."""
    known = resolved(as_object(schema), root)
    for keyword in ("const", "default"):
        if keyword in known:
            return known[keyword]
    if is_array(values := known.get("enum")) and values:
        return values[0]
    match next(iter(_kinds(known, root)), ""):
        case "object":
            return _sample_object(known, root, depth + 1)
        case "array" if depth < MAX_SAMPLE_DEPTH and "items" in known:
            return [_sample(name, known["items"], root, depth + 1)]
        case other:
            return _SAMPLES.get(other, f"<{one_line(name, 40)}>")


def _sample_object(schema: Schema, root: Schema, depth: int = 0) -> dict[str, Json]:
    """Return an object with what it must have."""
    declared = properties(schema)
    needed = required(schema) if depth <= MAX_SAMPLE_DEPTH else ()
    return {name: _sample(name, declared.get(name), root, depth) for name in needed}


def _kinds(schema: Schema, root: Schema) -> Iterator[str]:
    """Yield the types a value may have, those of alternatives among them."""
    yield from type_names(schema)
    for option in alternatives(schema):
        yield from type_names(resolved(as_object(option), root))


_SAMPLES: Mapping[str, Json] = {
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "null": None,
}
