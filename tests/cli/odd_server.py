"""A server whose tools end in every way a tool can: error, refusal, image, progress, questions."""

import json
import sys
from typing import Any

PIXEL = "iVBORw0KGgo="
RESULTS: dict[str, dict[str, Any]] = {
    "fail": {"content": [{"type": "text", "text": "there is no such note"}], "isError": True},
    "mourn": {"content": [{"type": "text", "text": "The server `odd` went away"}], "isError": True},
    "draw": {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
    "count": {"content": [], "structuredContent": {"count": 3}},
    "nothing": {"content": []},
}
SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "tags": {"type": "array"}},
}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer(message["id"], message["method"], message.get("params") or {})


def answer(number: int, method: str, params: dict[str, Any]) -> None:
    match method, params.get("name"):
        case "initialize", _:
            result: dict[str, Any] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
            send({"id": number, "result": result})
        case "tools/list", _:
            names = [*RESULTS, "refuse", "say"]
            tools = [{"name": name, "description": name, "inputSchema": SCHEMA} for name in names]
            send({"id": number, "result": {"tools": tools}})
        case "tools/call", "say":
            text = json.dumps(params["arguments"], sort_keys=True)
            send({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
        case "tools/call", name if name in RESULTS:
            report(params)
            send({"id": number, "result": RESULTS[name]})
        case _:
            send({"id": number, "error": {"code": -32601, "message": "not today"}})


def report(params: dict[str, Any]) -> None:
    meta: dict[str, Any] = params.get("_meta") or {}
    token = meta.get("progressToken")
    if token is not None:
        progress: dict[str, Any] = {
            "progressToken": token,
            "progress": 1,
            "total": 2,
            "message": "half done",
        }
        send({"method": "notifications/progress", "params": progress})


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
