"""Say what is wrong with a value, without quoting it: it may hold a secret."""

from collections.abc import Iterable
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from aggregator.config.document import Document, Location, dotted
from aggregator.config.form import FileForm, ServerForm, ToolsForm, keys
from aggregator.config.values import ServerType, SurfaceChoice
from aggregator.errors import ConfigError

_EXPECTED = {
    "string_type": "must be text",
    "bool_parsing": "must be `true` or `false`",
    "bool_type": "must be `true` or `false`",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
}


def problems(
    error: ValidationError, document: Document, path: str, base: Location
) -> list[ConfigError]:
    """Return what is wrong with a part of a file, as errors to show."""
    found = error.errors(include_url=False, include_input=True, include_context=True)
    located = [((*base, *each["loc"]), each) for each in found]
    return [
        ConfigError(
            path,
            f"`{dotted(location)}` {_said(each)}",
            line=document.line(location),
            hint=_hint(each, location),
        )
        for location, each in located
    ]


def first_of(errors: Iterable[ConfigError]) -> ConfigError:
    """Return the first error in the order of the file, which tells of the others."""
    every = [one for error in errors for one in (error, *error.others)]
    first, *others = sorted(every, key=lambda each: each.line or 0)
    first.tell_of(others)
    return first


def _said(error: ErrorDetails) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        return "is not a known key"
    if kind == "literal_error":
        return f"must be one of {error.get('ctx', {}).get('expected', '')}".replace("'", "`")
    if kind in {"greater_than_equal", "less_than_equal"}:
        return error["msg"].replace("Input should be", "must be")
    return _EXPECTED.get(kind, error["msg"])


def _hint(error: ErrorDetails, location: Location) -> str | None:
    if error["type"] == "extra_forbidden":
        return nearest(str(location[-1]), _keys_beside(location))
    if error["type"] == "string_type" and location[-2:-1] == ("env",):
        name = location[-1]
        return f'Write `{name}: ${{{name}}}` to pass a variable on, `{name}: ""` for an empty one'
    if error["type"] == "literal_error":
        return nearest(str(error["input"]), (*get_args(SurfaceChoice), *get_args(ServerType)))
    return None


def _keys_beside(location: Location) -> tuple[str, ...]:
    form: type[BaseModel] = FileForm
    if len(location) == 3:  # noqa: PLR2004 servers, a name, a key
        form = ServerForm
    elif len(location) > 3:  # noqa: PLR2004
        form = ToolsForm
    return keys(form)


def nearest(word: str, known: tuple[str, ...]) -> str | None:
    """Return a suggestion of the known word that looks most like this one."""
    from difflib import get_close_matches  # noqa: PLC0415 a start without errors does not need it

    by_lower = {each.lower().replace("_", ""): each for each in known}
    found = get_close_matches(word.lower().replace("_", "").replace("-", ""), by_lower, 1, 0.6)
    return f"Did you mean `{by_lower[found[0]]}`?" if found else None
