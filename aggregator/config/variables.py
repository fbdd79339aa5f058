"""Put the values of variables in the place of `${NAME}`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from aggregator.basics.frozen import frozen
from aggregator.config.document import Location, Value
from aggregator.config.keychain import NAME, PREFIX

_MAX_NESTING = 8
"""Defaults that may stand inside defaults."""

_DOLLAR = re.compile(r"\$[${]")
_REFERENCE = re.compile(
    rf"({PREFIX}{NAME}|[A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL | re.ASCII
)
# Clients also write `${env:NAME}`, and `${input:id}` for what they ask the person.
_CLIENT_REFERENCE = re.compile(
    rf"(?:env:)?({PREFIX}{NAME}|(?:input:)?[A-Za-z_][A-Za-z0-9_-]*?)(?::-(.*))?",
    re.DOTALL | re.ASCII,
)


class MissingVariableError(Exception):
    """A variable that has neither a value nor a default."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class BadReferenceError(Exception):
    """A `${` that does not begin a reference to a variable."""


@frozen(slots=False)
class Dialect:
    """How a kind of file writes variables."""

    reference: re.Pattern[str]
    doubled: str
    """What `$$` stands for."""
    strict: bool
    """Whether an unknown `${…}` is an error; otherwise it stays as it is."""


OURS = Dialect(_REFERENCE, "$", strict=True)
THEIRS = Dialect(_CLIENT_REFERENCE, "$$", strict=False)


@dataclass
class Expansion:
    """Expands every text in a value, and collects what could not be."""

    variables: Mapping[str, str]
    dialect: Dialect = OURS
    missing: dict[Location, str] = field(default_factory=dict[Location, str])
    """The first missing variable of each text that has one."""
    bad: list[Location] = field(default_factory=list[Location])
    used: dict[str, str] = field(default_factory=dict[str, str])
    """What was put in the place of references, by the names of the variables."""

    def expand(self, value: Value, location: Location) -> Value:
        """Return the value with every text in it expanded."""
        if isinstance(value, str):
            return self._text(value, location)
        if isinstance(value, list):
            return [self.expand(item, (*location, at)) for at, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.expand(item, (*location, key)) for key, item in value.items()}
        return value

    def empty_in(self, value: Value) -> list[str]:
        """Return the variables in a value that are set to nothing."""
        own = Expansion(self.variables, self.dialect)
        own.expand(value, ())
        return [name for name, each in own.used.items() if not each]

    def _text(self, text: str, location: Location) -> str:
        try:
            return expand(text, self.variables, self.dialect, used=self.used)
        except MissingVariableError as error:
            self.missing[location] = error.name
        except BadReferenceError:
            if self.dialect.strict:
                self.bad.append(location)
        return text


def expand(
    text: str,
    variables: Mapping[str, str],
    dialect: Dialect = OURS,
    nesting: int = 0,
    used: dict[str, str] | None = None,
) -> str:
    """Return the text with `${NAME}` and `${NAME:-default}` replaced, and `$$` made `$`.

    What stands in the place of each is noted in `used`.

    Raises:
        MissingVariableError: A variable has neither a value nor a default.
        BadReferenceError: A `${` does not begin a reference.
    """
    parts: list[str] = []
    position = 0
    while found := _DOLLAR.search(text, position):
        parts.append(text[position : found.start()])
        if found.group() == "$$":
            parts.append(dialect.doubled)
            position = found.end()
            continue
        position = _closing(text, found.end())
        body = text[found.end() : position - 1]
        parts.append(_resolved(body, variables, dialect, nesting, used))
    return "".join([*parts, text[position:]])


def _closing(text: str, start: int) -> int:
    """Return the position after the brace that closes the one before `start`."""
    open_braces = 1
    for position in range(start, len(text)):
        open_braces += {"{": 1, "}": -1}.get(text[position], 0)
        if open_braces == 0:
            return position + 1
    raise BadReferenceError


def _resolved(
    body: str,
    variables: Mapping[str, str],
    dialect: Dialect,
    nesting: int,
    used: dict[str, str] | None,
) -> str:
    found = dialect.reference.fullmatch(body)
    if nesting > _MAX_NESTING or (found is None and dialect.strict):
        raise BadReferenceError
    if found is None:
        return f"${{{body}}}"
    value = variables.get(found[1])
    if found[2] is None and value is None:
        raise MissingVariableError(found[1])
    # As in a shell, a default also stands in for an empty value.
    value = value or (expand(found[2], variables, dialect, nesting + 1, used) if found[2] else "")
    if used is not None:
        used[found[1]] = value
    return value
