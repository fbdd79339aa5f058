"""A server whose tools are in a file, beside what it is told to echo."""

import json
import os
import sys
from pathlib import Path
from typing import Any


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            said = Path("instructions.txt")
            return {
                "protocolVersion": "2025-11-25",
                "instructions": said.read_text(encoding="utf-8") if said.exists() else "",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "listing", "version": "1"},
            }
        case "tools/list":
            if (theirs := Path("theirs.lock")).exists():
                # Somebody else approves something while we are asked.
                theirs.replace("servers.lock")
            text = Path(sys.argv[1]).read_text(encoding="utf-8")
            return {"tools": json.loads(text.replace("$TOKEN", os.environ.get("TOKEN", "")))}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"called {params['name']}"}]}
        case _:
            return None


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if (number := message.get("id")) is None:
            continue
        result = answer(message["method"], message.get("params", {}))
        error = {"code": -32601, "message": "Method not found"}
        outcome = {"error": error} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": number, **outcome}), flush=True)  # noqa: T201
