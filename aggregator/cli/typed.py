"""Arguments as they are typed, made what a tool's schema asks for."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from aggregator.basics.json import JsonObject, as_object, is_object
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.toolsearch import conform


def typed(pairs: Sequence[str], text: str | None, environment: Environment) -> dict[str, Any]:
    """Return the arguments that a person typed, whatever they are for.

    Raises:
        CommandError: They are not understood.
    """
    whole = environment.read_all() if text == "-" else text
    given = {} if whole is None else _object("`--json`", whole)
    for each in pairs:
        given |= _object(f"`{each}`", each) if _is_object(each) else {}
    return given | _pairs([each for each in pairs if not _is_object(each)])


def fitted(
    given: Mapping[str, Any], definition: JsonObject, environment: Environment
) -> dict[str, Any]:
    """Return the arguments of a call to the tool that is defined so.

    Raises:
        CommandError: They do not fit it.
    """
    schema = as_object(definition.get("inputSchema"))
    conformed = conform(given, schema)
    for key in _strange(given, schema):
        likely = get_close_matches(key, _properties(schema), 1)
        meant = f"; did you mean `{likely[0]}`?" if likely else ""
        environment.warn(f"`{key}` is none of the arguments that the tool describes{meant}")
    if conformed.problems:
        raise _misfit("; ".join(conformed.problems), definition)
    return dict(conformed.arguments)


def _is_object(typed: str) -> bool:
    """Tell whether somebody left out `--json`."""
    return typed.lstrip().startswith("{")


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise _wrong(f"{name} is not JSON: {_slip(text, error)}") from None
    if not is_object(value):
        raise _wrong(f'{name} must be an object, such as \'{{"title": "Milk"}}\'')
    return dict(value)


_NO_COMMA = "Expecting ',' delimiter"
_SLIPS = {
    _NO_COMMA: "a `,` is missing",
    "Expecting ':' delimiter": "a `:` is missing",
    "Expecting property name enclosed in double quotes": 'a key needs double quotes (`{"key": 1}`)',
    "Expecting value": "a value is missing, or text is without its quotes",
    "Extra data": "more follows behind its end",
    "Unterminated string starting at": "a quotation mark is never closed",
    "Illegal trailing comma before end of object": "a `,` has nothing behind it",
}
"""What the parser says, and what a person did."""


def _slip(text: str, error: json.JSONDecodeError) -> str:
    """Say what is wrong with a text that should be JSON, and where."""
    said = _SLIPS.get(error.msg, error.msg)
    if error.pos < len(text.rstrip()):
        return f"{said} at `{text[error.pos :][:20]}`"
    missing = "]" if text.count("[") > text.count("]") else "}"
    return f"a `{missing}` is missing at the end" if error.msg == _NO_COMMA else said


def _pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """Read `key=value` as text, `key:=value` as JSON; a key that is repeated makes a list."""
    found: dict[str, list[Any]] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.rstrip(":"):
            raise _wrong(f"`{pair}` is not `key=value`")
        found.setdefault(key.rstrip(":"), []).append(_json(key, text) if key[-1] == ":" else text)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def _json(key: str, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        raise _wrong(f"`{key}={text}` is not JSON after the `=`") from None


def _wrong(problem: str) -> CommandError:
    return CommandError(
        problem,
        "Write `key=value`, `key:=JSON`, or all of them in one JSON object",
        ExitStatus.USAGE,
    )


def _strange(given: Mapping[str, Any], schema: JsonObject) -> list[str]:
    """Return the arguments that are most likely misspelt: tools ignore what they do not know."""
    says_more = schema.keys() & {"additionalProperties", "patternProperties", "oneOf", "anyOf"}
    known = _properties(schema)
    return [key for key in given if known and not says_more and key not in known]


def _misfit(problem: str, definition: JsonObject) -> CommandError:
    schema = as_object(definition.get("inputSchema"))
    required: Sequence[str] = schema.get("required") or ()
    known = [_parameter(name, about, required) for name, about in _properties(schema).items()]
    hint = f"It takes {', '.join(known)}" if known else "It takes no arguments"
    return CommandError(problem, hint, ExitStatus.USAGE)


def _properties(schema: JsonObject) -> Mapping[str, Any]:
    return as_object(schema.get("properties"))


def _parameter(name: str, about: object, required: Sequence[str]) -> str:
    kind = as_object(about).get("type")
    optional = "" if name in required else ", optional"
    return f"`{name}` ({kind if isinstance(kind, str) else 'any'}{optional})"
