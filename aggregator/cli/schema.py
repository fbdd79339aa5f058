"""`aggregator schema`: the JSON Schema of `servers.yaml`, for editors."""

import argparse
import json
from typing import Any

from aggregator.cli.environment import Environment, ExitStatus
from aggregator.config.file_form import FileForm

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The one that every editor knows."""

_REFERENCE = r"\$\{"


def run(_options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Print the schema."""
    environment.hand_over(schema_text().rstrip("\n"))
    return ExitStatus.FINE


def schema_text() -> str:
    """Return the schema as the text of a file."""
    generated = FileForm.model_json_schema(by_alias=True)
    generated["$defs"]["ServerForm"]["anyOf"] = [{"required": ["command"]}, {"required": ["url"]}]
    schema = {"$schema": DIALECT, "title": "servers.yaml", **_as_written(generated)}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _as_written(schema: dict[str, Any]) -> dict[str, Any]:
    """Describe what may be written, where the form describes what is read from it."""
    named = schema.get("properties")
    known = {key: _walked(value) for key, value in schema.items() if key not in _ADDED}
    if isinstance(named, dict):
        known["properties"] = {key: _walked(value) for key, value in named.items()}  # pyright: ignore[reportUnknownVariableType] - JSON
    if schema.get("type") == "string" and "enum" not in schema:
        # Scalars are read as the text that was written.
        known["type"] = ["string", "number", "boolean"]
    elif schema.get("type") in ("integer", "boolean"):
        # A variable may stand for anything.
        known["type"] = [schema["type"], "string"]
        known["pattern"] = _REFERENCE
    return known


def _walked(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return _as_written(value)  # pyright: ignore[reportUnknownArgumentType] - JSON
    if isinstance(value, list):
        return [_walked(each) for each in value]  # pyright: ignore[reportUnknownVariableType] - JSON
    return value


_ADDED = ("title", "properties")
"""Titles only repeat the keys; among properties, a title is one of them."""
