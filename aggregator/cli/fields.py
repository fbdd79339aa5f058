"""One field of a form that a server asks for: how it is asked, and what an answer must be."""

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from aggregator.basics.glyphs import on_one_line
from aggregator.basics.json import JsonObject, as_object, is_array, items
from aggregator.cli.paper import cut

MAX_CHOICES = 40
"""Values that are shown to choose from."""
MAX_SHOWN = 300
"""Characters shown of what a server says of a field."""

_YES = frozenset({"y", "yes", "true", "1", "on"})
_NO = frozenset({"n", "no", "false", "0", "off"})
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


class MisfitError(Exception):
    """An answer that a field does not take, with what it does take."""


class Choice(NamedTuple):
    """A value that can be chosen, and what it is called."""

    value: str
    title: str


class Field(NamedTuple):
    """A field, as its schema describes it."""

    name: str
    schema: JsonObject
    is_required: bool

    @property
    def about(self) -> str:
        """What it is called, and what it is for."""
        title = self.schema.get("title")
        called = f"{title} ({self.name})" if isinstance(title, str) and title else self.name
        description = self.schema.get("description")
        more = f": {description}" if isinstance(description, str) and description else ""
        return shown(called + more)

    @property
    def takes(self) -> str:
        """What is to be typed."""
        kinds = {"boolean": "yes or no", "integer": "a whole number", "number": "a number"}
        what = kinds.get(str(self.schema.get("type")), _FORMATS.get(self._format, "text"))
        if self.choices:
            what = "one of them, or its number"
        if self.is_list:
            what = "some of them or their numbers, with commas" if self.choices else "with commas"
        if "default" in self.schema:
            return f"{what}; empty for {shown(_written(self.schema['default']))}"
        return what if self.is_required else f"{what}; may be left empty"

    @property
    def is_list(self) -> bool:
        """Whether several values can be chosen."""
        return self.schema.get("type") == "array"

    @property
    def choices(self) -> list[Choice]:
        """The values to choose from, if not every value will do."""
        schema = as_object(self.schema.get("items")) if self.is_list else self.schema
        titled = [as_object(each) for key in ("oneOf", "anyOf") for each in items(schema.get(key))]
        found = [
            Choice(str(each["const"]), str(each.get("title") or each["const"]))
            for each in titled
            if "const" in each
        ]
        values = [str(each) for each in items(schema.get("enum"))]
        titles = [str(each) for each in items(schema.get("enumNames"))]
        names = titles if len(titles) == len(values) else values
        return [*found, *map(Choice, values, names)][:MAX_CHOICES]

    def read(self, typed: str) -> Any:  # noqa: ANN401 - whatever JSON the schema asks for
        """Return the value of an answer, or `None` for one that was left out.

        Raises:
            MisfitError: The field does not take it.
        """
        text = typed.strip()
        if not text:
            if "default" in self.schema:
                return self.schema["default"]
            if self.is_required:
                raise MisfitError("it is required")
            return None
        if self.is_list:
            return self._several(text)
        return self._one(text)

    @property
    def _format(self) -> str:
        return str(self.schema.get("format"))

    def _several(self, text: str) -> list[str]:
        values = [self._choose(part.strip()) for part in text.split(",") if part.strip()]
        values = list(dict.fromkeys(values))
        _check_bounds(len(values), self.schema, "minItems", "maxItems", "values")
        return values

    def _one(self, text: str) -> str | float | bool:
        match self.schema.get("type"):
            case "boolean":
                return _truth(text)
            case "integer" | "number" as kind:
                return self._number(text, whole=kind == "integer")
            case _:
                return self._choose(text) if self.choices else self._text(text)

    def _choose(self, text: str) -> str:
        choices = self.choices
        if not choices:
            return text
        for each in choices:
            if text in each:
                return each.value
        alike = [each for each in choices if text.casefold() in (part.casefold() for part in each)]
        if len(alike) == 1:
            return alike[0].value
        if text.isdecimal() and text.isascii() and 1 <= int(text) <= len(choices):
            return choices[int(text) - 1].value
        raise MisfitError(f"`{shown(text)}` is none of them")

    def _number(self, text: str, *, whole: bool) -> float:
        try:
            number = int(text) if whole else float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise MisfitError("it must be a whole number" if whole else "it must be a number")
        _check_bounds(number, self.schema, "minimum", "maximum")
        return number

    def _text(self, text: str) -> str:
        _check_bounds(len(text), self.schema, "minLength", "maxLength", "characters")
        if self._format in _FORMATS and not _has_format(text, self._format):
            raise MisfitError(f"it must be {_FORMATS[self._format]}")
        return text


_FORMATS: Mapping[str, str] = {
    "email": "an e-mail address",
    "uri": "an address such as https://example.org/",
    "date": "a date such as 2026-12-31",
    "date-time": "a date and time such as 2026-12-31T12:00:00Z",
}


def fields_of(schema: JsonObject) -> list[Field]:
    """Return the fields of a form in its order."""
    required = items(schema.get("required"))
    return [
        Field(name, as_object(each), name in required)
        for name, each in as_object(schema.get("properties")).items()
    ]


def shown(text: str) -> str:
    """Return what a server says, on one line and not too long."""
    return cut(on_one_line(text), MAX_SHOWN)


def _truth(text: str) -> bool:
    said = text.casefold()
    if said not in _YES | _NO:
        raise MisfitError("it must be yes or no")
    return said in _YES


def _check_bounds(number: float, schema: JsonObject, least: str, most: str, what: str = "") -> None:
    low, high = schema.get(least), schema.get(most)
    of = f" {what}" if what else ""
    if isinstance(low, int | float) and number < low:
        raise MisfitError(f"it must be at least {low:g}{of}")
    if isinstance(high, int | float) and number > high:
        raise MisfitError(f"it must be at most {high:g}{of}")


def _has_format(text: str, form: str) -> bool:
    try:
        match form:
            case "email":
                return _EMAIL.fullmatch(text) is not None
            case "uri":
                return bool(urlsplit(text).scheme)
            case "date":
                return bool(date.fromisoformat(text))
            case _:
                return bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _written(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case _ if is_array(value):
            return ", ".join(map(str, value))
        case _:
            return str(value)
