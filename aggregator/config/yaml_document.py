"""Read YAML text into plain values, within bounds, remembering the line of each."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml
from yaml import events

from aggregator.basics.frozen import frozen
from aggregator.config.complaints import Complaint, complaint
from aggregator.config.document import (
    MAX_DEPTH,
    MAX_VALUES,
    Document,
    Location,
    Value,
    beginning,
    dotted,
    is_json,
)
from aggregator.errors import ConfigError

_Loader = Callable[[str], Any]

# Not every build of PyYAML has the parser written in C.
_FAST_LOADER: _Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str, path: str) -> Document:
    """Return what the text says.

    Raises:
        ConfigError: It is not one document of plain YAML within the bounds.
    """
    try:
        return _Builder(path, _events(text, _FAST_LOADER)).document()
    except yaml.YAMLError:
        # The slower parser explains itself better, and reads JSON's surrogate pairs.
        return _read_slowly(text, path)


def _read_slowly(text: str, path: str) -> Document:
    # JSON may be indented with tabs, YAML may not; inside JSON text a bare tab is not allowed.
    plain = text.replace("\t", " ") if text.lstrip().startswith("{") else text
    try:
        return _Builder(path, _events(plain, yaml.SafeLoader)).document()
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error, text, path) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = f"U+{ord(text[error.position]):04X}"
        raise ConfigError(path, f"contains the control character {character}", line=line) from None


def _events(text: str, loader: _Loader) -> Iterator[events.Event]:
    parser = loader(text)
    while parser.check_event():
        yield parser.get_event()


def _not_yaml(error: yaml.MarkedYAMLError, text: str, path: str) -> ConfigError:
    found = complaint(error)
    hint = _advice(found, _LINE_BREAK.split(text)[found.line - 1])
    kind = "JSON" if is_json(path) and text.lstrip().startswith(("{", "[")) else "YAML"
    return ConfigError(path, f"is not valid {kind}: {found.problem}", line=found.line, hint=hint)


_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""Where lines end for a YAML parser."""


def _advice(found: Complaint, written: str) -> str | None:
    """Return what to do about a parser's complaint about a line."""
    if "<document start>" in found.context:
        return "Is it TOML? `aggregator import FILE` takes over the servers of such a file"
    if "a tab is" in found.problem:
        return "Indent with spaces"
    if "${" in written:
        return 'Inside [ ] and { }, put quotes around "${…}"'
    if "in quotes" in found.problem:
        return "Put quotes around text that begins with a special character"
    if "mapping values" in found.context:
        return (
            "Indent keys of one server alike, and put quotes around text that contains a colon "
            "and a space"
        )
    return None


@frozen(slots=False)
class _Built:
    """A value with what it weighs, so that aliases of it can be counted without walking it."""

    value: Value
    size: int = 1
    depth: int = 0


@dataclass
class _Mapping:
    """A mapping being read."""

    data: dict[str, Value] = field(default_factory=dict[str, Value])
    merges: list[Value] = field(default_factory=list[Value])
    size: int = 1
    depth: int = 0


class _Builder:
    """Builds values from parser events, and refuses what is out of bounds as soon as it is seen."""

    def __init__(self, path: str, stream: Iterator[events.Event]) -> None:
        self._path = path
        self._stream = stream
        self._anchors: dict[str, _Built] = {}
        self._lines: dict[Location, int] = {(): 1}
        self._values = 0

    def document(self) -> Document:
        next(self._stream)  # the start of the stream
        if not isinstance(next(self._stream), events.DocumentStartEvent):
            raise ConfigError(self._path, "is empty", hint=beginning(self._path), is_of_file=True)
        data = self._value(next(self._stream), ()).value
        next(self._stream)  # the end of the document
        following = next(self._stream)
        if isinstance(following, events.DocumentStartEvent):
            self._refuse("contains more than one document", following, "Remove the `---`")
        return Document(data, lambda: self._lines)

    def _value(self, event: events.Event, location: Location) -> _Built:
        self._lines.setdefault(location, _line(event))
        if isinstance(event, events.AliasEvent):
            return self._alias(event, location)
        if getattr(event, "tag", None) is not None:
            self._refuse("uses a YAML tag; tags are not supported", event)
        built = self._anchorless(event, location)
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = built
        return built

    def _anchorless(self, event: events.Event, location: Location) -> _Built:
        self._count(1, event)
        if isinstance(event, events.ScalarEvent):
            return _Built(self._scalar(event))
        self._check_depth(len(location) + 1, event)
        is_list = isinstance(event, events.SequenceStartEvent)
        return self._sequence(location) if is_list else self._mapping(location)

    def _alias(self, event: events.AliasEvent, location: Location) -> _Built:
        built = self._anchors.get(event.anchor or "")
        if built is None:
            self._refuse(f"refers to `*{event.anchor}`, which is not defined above", event)
        self._count(built.size, event)
        self._check_depth(len(location) + built.depth, event)
        return built

    def _scalar(self, event: events.ScalarEvent) -> str | None:
        if event.implicit[0] and event.value in {"", "~", "null", "Null", "NULL"}:
            return None
        text = event.value
        if "\0" in text:
            self._refuse("contains a NUL character", event)
        try:
            # JSON writes characters beyond the basic plane as two halves.
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._refuse("contains half of a character", event)

    def _sequence(self, location: Location) -> _Built:
        data: list[Value] = []
        size, depth = 1, 0
        while not isinstance(event := next(self._stream), events.SequenceEndEvent):
            item = self._value(event, (*location, len(data)))
            data.append(item.value)
            size, depth = size + item.size, max(depth, item.depth)
        return _Built(data, size, depth + 1)

    def _mapping(self, location: Location) -> _Built:
        mapping = _Mapping()
        while not isinstance(event := next(self._stream), events.MappingEndEvent):
            self._pair(mapping, event, location)
        for merged in mapping.merges:
            self._merge(mapping.data, merged, location)
        return _Built(mapping.data, mapping.size, mapping.depth + 1)

    def _pair(self, mapping: _Mapping, event: events.Event, location: Location) -> None:
        key = self._key(event)
        here = (*location, key)
        if key in mapping.data:
            first = self._lines[here]
            self._refuse(f"`{dotted(here)}` is defined twice, first on line {first}", event)
        self._lines[here] = _line(event)
        item = self._value(next(self._stream), here)
        mapping.size += item.size
        mapping.depth = max(mapping.depth, item.depth)
        if key == "<<":
            mapping.merges.extend(item.value if isinstance(item.value, list) else [item.value])
        else:
            mapping.data[key] = item.value

    def _key(self, event: events.Event) -> str:
        if not isinstance(event, events.ScalarEvent) or event.tag is not None:
            self._refuse("has a key that is not plain text", event)
        # An empty one is for whoever knows what it should have been.
        return self._scalar(event) or event.value

    def _merge(self, data: dict[str, Value], merged: Value, location: Location) -> None:
        if not isinstance(merged, dict):
            raise ConfigError(
                self._path,
                "`<<` needs a mapping, or a list of mappings",
                line=self._lines[(*location, "<<")],
            )
        for key, value in merged.items():
            data.setdefault(key, value)

    def _count(self, size: int, event: events.Event) -> None:
        self._values += size
        if self._values > MAX_VALUES:
            self._refuse(f"holds more than {MAX_VALUES:,} values", event)

    def _check_depth(self, depth: int, event: events.Event) -> None:
        if depth > MAX_DEPTH:
            self._refuse(f"is nested more than {MAX_DEPTH} levels deep", event)

    def _refuse(
        self, problem: str, event: events.Event | None, hint: str | None = None
    ) -> NoReturn:
        line = _line(event) if event else None
        raise ConfigError(self._path, problem, line=line, hint=hint)


def _line(event: events.Event) -> int:
    """Return the line of the file an event is on; the first for one that does not say."""
    return event.start_mark.line + 1 if event.start_mark else 1
