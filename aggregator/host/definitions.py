"""Definitions in the forms that model APIs accept."""

from typing import Any

from aggregator.basics.json import JsonObject, as_object, is_array, items
from aggregator.host.pool import Tool

CHOICES = ("oneOf", "anyOf", "allOf")
"""What an input schema may not consist of, though JSON Schema allows it."""


def for_messages(tool: Tool, *, is_deferred: bool = False) -> dict[str, Any]:
    """Define a tool to the Anthropic Messages API."""
    deferring = {"defer_loading": True} if is_deferred else {}
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": accepted_schema(tool.input_schema),
        **deferring,
    }


def for_responses(tool: Tool, name: str | None = None) -> dict[str, Any]:
    """Define a tool to the OpenAI Responses API, by the name it has in its namespace."""
    return {
        "type": "function",
        "name": name or tool.name,
        "description": tool.description,
        "parameters": accepted_schema(tool.input_schema),
        # Foreign schemas are seldom in the subset that can be enforced.
        "strict": False,
    }


def accepted_schema(schema: JsonObject) -> dict[str, Any]:
    """Return an input schema as an object without choices at its top, which both vendors refuse.

    Whatever any of the choices allows is allowed; the server has the last word.
    """
    whole = {key: value for key, value in schema.items() if key not in CHOICES}
    whole["type"] = "object"
    parts = [as_object(each) for choice in CHOICES for each in items(schema.get(choice))]
    declared = [as_object(each.get("properties")) for each in (*reversed(parts), schema)]
    properties = {name: value for each in declared for name, value in each.items()}
    whole["properties"] = properties
    needed = [each for part in items(schema.get("allOf")) for each in _required(as_object(part))]
    if required := list(dict.fromkeys([*_required(schema), *needed])):
        whole["required"] = required
    elif "required" in whole:
        del whole["required"]
    if parts:
        whole.pop("additionalProperties", None)
    return whole


def _required(schema: JsonObject) -> list[str]:
    names = schema.get("required")
    return [each for each in names if isinstance(each, str)] if is_array(names) else []
