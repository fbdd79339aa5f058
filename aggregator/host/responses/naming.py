"""Tools in namespaces, one for each server, and the way back to their names."""

from collections.abc import Callable, Iterable
from typing import Any

from aggregator.host.definitions import for_responses
from aggregator.host.pool import Tool

Item = dict[str, Any]


def namespaces(tools: Iterable[Tool], define: Callable[[Tool], Item]) -> list[Item]:
    """Define tools by server; one whose name does not begin with a server's stands alone."""
    alone: list[Item] = []
    spaces: dict[str, list[Item]] = {}
    for tool in tools:
        space, divided, name = tool.name.partition("__")
        if tool.server and divided and space and name:
            spaces.setdefault(space, []).append(for_responses(tool, name))
        else:
            alone.append(define(tool))
    return [*alone, *(_namespace(name, functions) for name, functions in spaces.items())]


def full_name(name: str, namespace: object) -> str:
    """Return the name of a tool as the aggregator knows it."""
    return f"{namespace}__{name}" if namespace else name


def _namespace(name: str, functions: list[Item]) -> Item:
    about = f"Tools of the server {name}."
    return {"type": "namespace", "name": name, "description": about, "tools": functions}
