"""A server of the handshake era that asks the person something before it answers a call."""

import json
import sys
from typing import Any

FORM: dict[str, Any] = {
    "message": "Which table?",
    "requestedSchema": {
        "type": "object",
        "required": ["people"],
        "properties": {
            "people": {"type": "integer", "minimum": 1, "maximum": 8, "title": "People"},
            "place": {"enum": ["in", "out"], "enumNames": ["Inside", "Outside"], "default": "in"},
            "note": {"type": "string", "maxLength": 5},
        },
    },
}
PLACE: dict[str, Any] = {
    "mode": "url",
    "elicitationId": "1",
    "message": "Log in",
    "url": "https://example.org/login?x=1",
}
QUESTIONS = {"book": FORM, "visit": PLACE}


class Server:
    """Answers one call at a time."""

    def __init__(self) -> None:
        self.call: Any = None
        self.was_there = False

    def take(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": "initialize", "id": number}:
                info = {"name": "asking", "version": "1", "title": "Asks before it answers"}
                able: dict[str, Any] = {"tools": {}}
                send(number, protocolVersion="2025-11-25", capabilities=able, serverInfo=info)
            case {"method": "tools/list", "id": number}:
                names = [*QUESTIONS, "refuse"]
                send(number, tools=[{"name": n, "inputSchema": {"type": "object"}} for n in names])
            case {"method": "tools/call", "id": number, "params": {"name": name}}:
                self.ask(number, name)
            case {"id": "?", "result": answer}:
                send(self.call, content=[{"type": "text", "text": json.dumps(answer)}])
            case {"method": _, "id": number}:
                write({"id": number, "error": {"code": -32601, "message": "not here"}})
            case _:
                pass

    def ask(self, number: object, name: str) -> None:
        if name in QUESTIONS:
            self.call = number
            write({"id": "?", "method": "elicitation/create", "params": QUESTIONS[name]})
        elif self.was_there:
            send(number, content=[{"type": "text", "text": "welcome"}])
        else:
            error = {"code": -32042, "message": "first", "data": {"elicitations": [PLACE]}}
            write({"id": number, "error": error})
            self.was_there = True


def main() -> None:
    server = Server()
    for line in sys.stdin:
        server.take(json.loads(line))


def send(number: object, **result: Any) -> None:
    write({"id": number, "result": result})


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
