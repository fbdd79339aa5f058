"""What a file says, as plain values: read from YAML or JSON, within bounds.

Scalars stay the text that was written: whether `8080` or `1.10` is a number is for its key to
say, and an environment variable must get exactly what the person typed.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property

from aggregator.basics.frozen import frozen
from aggregator.basics.json import is_object, items
from aggregator.errors import ConfigError

MAX_CHARACTERS = 1 << 20
"""Characters a file may have: no one writes that much by hand."""
MAX_DEPTH = 32
"""Lists and mappings that may stand inside each other."""
MAX_VALUES = 50_000
"""Values a file may hold once its aliases are written out."""

Value = str | None | list["Value"] | dict[str, "Value"]
"""What a file can say: text, nothing, a list, or a mapping."""

Location = tuple[str | int, ...]
"""The keys and positions that lead to a value."""


@frozen(slots=False)
class Document:
    """What a file says, and where it says it."""

    data: Value
    find_lines: Callable[[], Mapping[Location, int]]

    @cached_property
    def lines(self) -> Mapping[Location, int]:
        """The line of each value."""
        return self.find_lines()

    def line(self, location: Location) -> int:
        """Return the line of a value, or of the nearest thing around it."""
        while location not in self.lines:
            location = location[:-1]
        return self.lines[location]


def read_document(text: str, path: str) -> Document:
    """Return what the text says.

    Raises:
        ConfigError: It is not one document of plain YAML, of which JSON is one, within the bounds;
            in a file of JSON there may be comments.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(path, "is larger than 1 MiB")
    found = _read_json(text, path)
    return found or (_read_commented if is_json(path) else _read_yaml)(text, path)


def beginning(path: str) -> str:
    """Return how to begin a file, in the form that its name promises."""
    if is_json(path):
        return 'Begin with `{"mcpServers": {`, and list the servers in it'
    return "Begin with `servers:`, and list the servers indented under it"


def is_json(path: str) -> bool:
    """Return whether a file is one of JSON by its name."""
    return path.lower().endswith((".json", ".jsonc"))


def _read_commented(text: str, path: str) -> Document:
    """Return what JSON with comments says, or YAML that is called JSON."""
    # Most files have none, and do not wait for what finds them.
    from aggregator.basics.jsonc import bare  # noqa: PLC0415 - see above

    plain = bare(text)
    if not plain.lstrip().startswith(("{", "[")):
        return _read_yaml(text, path)
    if (found := _read_json(plain, path)) is not None:
        return found
    # What YAML makes of a comment may be a key.
    if not _is_sound(plain):
        with suppress(ConfigError):
            return _read_yaml(text, path)
    return _read_yaml(plain, path)


def _is_sound(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _read_yaml(text: str, path: str) -> Document:
    # A file of JSON does not wait for what YAML takes, unless something is wrong with it.
    from aggregator.config.yaml_document import read_yaml  # noqa: PLC0415 - see above

    return read_yaml(text, path)


def _read_json(text: str, path: str) -> Document | None:
    """Return what the text says, if it is JSON of which YAML would make the same."""
    # Beyond ASCII there are characters that YAML refuses, or takes for the ends of lines; and
    # what has no more characters than there may be values has no more values.
    is_plain = text.isascii() and "\x7f" not in text and len(text) <= MAX_VALUES
    if not is_plain or not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(
            text, object_pairs_hook=_once, parse_int=str, parse_float=str, parse_constant=str
        )
        data = _plain(found, MAX_DEPTH)
    except (ValueError, RecursionError):
        return None
    return Document(data, lambda: _lines(text, path))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a mapping of which each key is written once, and none merges another into it."""
    data = dict(pairs)
    if len(data) < len(pairs) or "<<" in data:
        raise ValueError
    return data


def _plain(value: object, depth: int) -> Value:
    """Return what JSON says as YAML would, with as many levels inside of it as a depth.

    Raises:
        ValueError: It is not allowed.
    """
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if not depth:
        raise ValueError
    if is_object(value):
        return {_text(key): _plain(each, depth - 1) for key, each in value.items()}
    return [_plain(each, depth - 1) for each in items(value)]


def _text(written: str) -> str:
    # What has half of a character in it cannot be encoded.
    if b"\0" in written.encode():
        raise ValueError
    return written


def _lines(text: str, path: str) -> Mapping[Location, int]:
    try:
        return _read_yaml(text, path).lines
    except ConfigError:
        # JSON may have line breaks where YAML may not: then the file is all that is known.
        return {(): 1}


def dotted(location: Location) -> str:
    """Return a location as people write it: `servers.notes.args[0]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")
