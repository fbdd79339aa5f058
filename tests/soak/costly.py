"""An MCP server of both eras whose lists are small to send and costly to work with.

Which of them is told by its arguments: python costly.py [PART…]
"""

import json
import sys
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {},
}
IDENTITY = {"name": "costly", "version": "1"}


def recursive(number: int) -> Json:
    """Describe an object that needs as many more of its own kind."""
    names = [f"p{each}" for each in range(number)]
    properties = {name: {"$ref": "#"} for name in names}
    return {"type": "object", "properties": properties, "required": names}


def wide(number: int) -> Json:
    """Describe an object that is its own definition, with many keys beside."""
    keys = {f"k{each}": 1 for each in range(number)}
    return {"$ref": "#", **recursive(number // 4), "required": ["p0"], **keys}


SCHEMAS = {
    "recursive20": recursive(20),
    "recursive40": recursive(40),
    "wide3500": wide(3_500),
    "choices": {"properties": {"p": {"anyOf": [{"type": "string"}] * 6_000}}},
    "change": {"type": "object"},
}


MANY = 5_000

CROWDS: dict[str, Callable[[int], str]] = {
    "long names": lambda number: f"{number:05}" + "Name of a tool, " * 15,
    "one word": lambda number: "a" * 120 + f"{number:05x}" + "b" * 120,
    "accents": lambda number: f"{number:05}" + "é\u0301" * 120,
    "numbers": str,
    "signs": lambda number: "_-" * (number % 80) + "mcp__x__" * 10 + str(number),
}
"""The names that many tools and prompts have, by their number."""


class Server:
    """Answers line by line."""

    def __init__(self, parts: list[str]) -> None:
        self.parts = parts
        self.changes = 0

    def run(self) -> None:
        for line in sys.stdin:
            message: Json = json.loads(line)
            if "id" in message and "method" in message:
                result = self.answer(message["method"], message.get("params") or {})
                write({"id": message["id"], "result": {"resultType": "complete", **result}})

    def answer(self, method: str, params: Json) -> Json:
        match method:
            case "initialize":
                version = params["protocolVersion"]
                return {
                    "protocolVersion": version,
                    "capabilities": CAPABILITIES,
                    "serverInfo": IDENTITY,
                }
            case "tools/list":
                return {"tools": [tool(name) for name in self.names()]}
            case "prompts/list":
                return {"prompts": [{"name": name} for name in self.crowd()]}
            case "resources/list":
                number = 5_000 if "resources" in self.parts else 1
                return {"resources": [{"uri": f"r://{n}", "name": "r"} for n in range(number)]}
            case "resources/templates/list":
                number = 5_000 if "templates" in self.parts else 0
                texts = [f"x://{{+a}}a{{b}}a{{+c}}a{n}" for n in range(number)]
                return {"resourceTemplates": [{"uriTemplate": each, "name": "t"} for each in texts]}
            case "tools/call" if params["name"] == "change":
                self.changes += 1
                write({"method": "notifications/tools/list_changed"})
            case _:
                pass
        return {"content": []}

    def names(self) -> list[str]:
        return [*SCHEMAS, *(f"made{number}" for number in range(self.changes)), *self.crowd()]

    def crowd(self) -> list[str]:
        """Name the many of the kind that was asked for."""
        kinds = [CROWDS[part] for part in self.parts if part in CROWDS]
        return [name(number) for name in kinds for number in range(MANY - len(SCHEMAS) - 9)]


def tool(name: str) -> Json:
    return {"name": name, "inputSchema": SCHEMAS.get(name, {"type": "object"})}


def write(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Server(sys.argv[1:]).run()
