"""Say what is wrong with a value, without quoting it: it may hold a secret."""

from collections.abc import Iterable

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from aggregator.config.document import Document, Location, dotted
from aggregator.config.form import LimitsForm, NamesForm, ServerForm, ToolsForm, keys, top_keys
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

_EXAMPLES = {
    "servers": "fetch: {command: uvx, args: [mcp-server-fetch]}",
    "env": "env: {NAME: value}",
    "headers": "headers: {X-Team: blue}",
    "limits": "limits: {memory: 4GiB, files: 256}",
    "tools": "tools: {allow: [read_*]}",
    "rename": "rename: {get_it: get_issue}",
    "describe": "describe: {get_issue: Returns an issue by its number}",
    "searchHints": "searchHints: {get_issue: bug ticket}",
    "clients": "clients: {claude-code: relay}",
    "names": "names: {search: FindTools}",
}
"""What mappings look like, by their keys; a server's is under that of all servers."""

_FORMS: dict[str, type[BaseModel]] = {
    "tools": ToolsForm,
    "limits": LimitsForm,
    "names": NamesForm,
}
"""What is inside of a mapping, by its key."""

LEAST_BEGINNING = 3
"""Letters that say which key they begin."""
LIKENESS = 0.6
"""How alike a key and a known one are, of 1, if it is that, mistyped."""
CHOICE_LIKENESS = 0.7
"""And a value and one of a few: one that is less like it may be its opposite."""

NEVER = frozenset({"never", "no", "off", "false", "none", "disabled"})
"""What is written for a server that is not to be started at all."""


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
    kind = error["type"]
    if kind == "extra_forbidden":
        return nearest(str(location[-1]), _keys_beside(location))
    if kind == "string_type" and location[-2:-1] == ("env",):
        name = location[-1]
        return f'Write `{name}: ${{{name}}}` to pass a variable on, `{name}: ""` for an empty one'
    if kind == "literal_error":
        given, expected = str(error["input"]), str(error.get("ctx", {}).get("expected", ""))
        if location[-1] == "start" and given.lower() in NEVER:
            return "`enabled: false` under a server never starts it"
        return nearest(given, tuple(expected.split("'")[1::2]), CHOICE_LIKENESS)
    return example(location) if kind in {"dict_type", "model_type"} else None


def example(location: Location) -> str | None:
    """Return how a mapping could be written there."""
    here, above = location[-1], location[-2:-1]
    is_server = above in {("servers",), ("mcpServers",)}
    found = _EXAMPLES.get("servers" if is_server else str(here))
    return f"Write, for example, `{found}`" if found else None


def _keys_beside(location: Location) -> tuple[str, ...]:
    if len(location) > 1 and (form := _FORMS.get(str(location[-2]))):
        return keys(form)
    return top_keys() if len(location) == 1 else keys(ServerForm)


def nearest(word: str, known: tuple[str, ...], likeness: float = LIKENESS) -> str | None:
    """Return a suggestion of the known word that looks most like this one."""
    from difflib import get_close_matches  # noqa: PLC0415 a start without errors does not need it

    by_lower = {each.lower().replace("_", ""): each for each in known}
    sought = word.lower().replace("_", "").replace("-", "")
    begun = [each for each in by_lower if each.startswith(sought)]
    found = get_close_matches(sought, by_lower, 1, likeness)
    found += begun if len(sought) >= LEAST_BEGINNING else []
    return f"Did you mean `{by_lower[found[0]]}`?" if found else None
