"""A server that misbehaves on demand, in plain JSON-RPC over stdio and without the SDK.

    python tests/faulty.py [MODE] [--option [VALUE]] ...

Tools: `echo` (`text`) answers; `wait` answers when `release` is called; `environment` tells what
the process was given; `fault` (`kind`, `size`) does what `faults.FAULTS` has under that name, or
under MODE, so that the same process can be asked afterwards whether it is still of use.

MODE is a fault's name, `ok`, or what is wrong before any tool is called:
  exit_at_start confess_at_start hang_initialize hang_list slow_start flood
  cursor_same cursor_aba cursor_empty cursor_infinite
  duplicates bad_tools schema_bomb deep_schema megabyte_description redos
  notify_on_list change_on_restart

Options:
  --era both|handshake|modern   answer `initialize`, `server/discover`, or both
  --log PATH       append every line received, and that the input has ended if that is ignored
  --state PATH     a file that counts starts, for `change_on_restart`
  --until PIPE     the named pipe that `slow_start` waits for a line of
  --size N         how much of it
  --tools N        list so many tools more
  --sign TEXT      begin what `echo` answers with it
  --ignore-eof --ignore-term    do not end when asked to
  --fork --daemon  leave a process behind: in the group, or out of it
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults import (
    CHANGED,
    FAULTS,
    Json,
    Wire,
    confession,
    leave_behind,
    sleep_for_ever,
    text_result,
)

MODERN = "2026-07-28"


class Server(Wire):
    """Reads requests and answers them, or not."""

    def __init__(self, mode: str, options: dict[str, str]) -> None:
        self.mode = mode
        self.options = options
        self.era = options.get("era", "both")
        self.waiting: list[Any] = []
        self.starts = self._count_starts()

    def size(self, default: int) -> int:
        return int(self.options.get("size", default))

    def run(self) -> None:
        for line in sys.stdin.buffer:
            self._log(line)
            message = json.loads(line)
            if message.get("method") and "id" in message:
                self.handle(message["id"], message["method"], message.get("params") or {})
        if "ignore-eof" in self.options:
            self._log(b"end of input\n")
            sleep_for_ever()

    def handle(self, identifier: object, method: str, params: Json) -> None:
        if method == "server/discover" and self.era != "handshake":
            self._introduce(identifier, discover_result())
        elif method == "initialize" and self.era != "modern":
            self._introduce(identifier, initialize_result(params))
        elif method == "subscriptions/listen" and self.era != "handshake":
            self._acknowledge(identifier, params)
        elif method == "tools/list":
            self._list(identifier, params.get("cursor"))
        elif method == "tools/call":
            self._call(identifier, params)
        elif method == "ping":
            self.answer(identifier, {})
        else:
            error = {"code": -32601, "message": f"Method not found: {method}"}
            self.send({"jsonrpc": "2.0", "id": identifier, "error": error})

    def _introduce(self, identifier: object, result: Json) -> None:
        if self.mode != "hang_initialize":
            self.answer(identifier, result)

    def _acknowledge(self, identifier: object, params: Json) -> None:
        accepted = {
            "notifications": params.get("notifications", {}),
            "_meta": {"io.modelcontextprotocol/subscriptionId": identifier},
        }
        method = "notifications/subscriptions/acknowledged"
        self.send({"jsonrpc": "2.0", "method": method, "params": accepted})

    def _list(self, identifier: object, cursor: str | None) -> None:
        if self.mode == "hang_list":
            return
        page: Json = {"tools": listed_tools(self), "ttlMs": 0, "cacheScope": "private"}
        following = CURSORS.get(self.mode, no_cursor)(cursor)
        if following is not None:
            page["nextCursor"] = following
        self.answer(identifier, page | {"resultType": "complete"})
        if self.mode == "notify_on_list":
            self.send(CHANGED)

    def _call(self, identifier: object, params: Json) -> None:
        arguments: Json = params.get("arguments") or {}
        match params.get("name"):
            case "echo":
                sign = self.options.get("sign", "")
                self.text(identifier, f"{sign}{arguments.get('text', '')}")
            case "wait":
                self.waiting.append(identifier)
            case "release":
                for each in [*self.waiting, identifier]:
                    self.text(each, "released")
                self.waiting.clear()
            case "environment":
                self.text(identifier, json.dumps(surroundings()))
            case "fault":
                kind = arguments.get("kind") or self.mode
                size = int(arguments.get("size") or self.size(0))
                FAULTS[kind](self, identifier, size)
            case other:
                self.answer(identifier, text_result(f"Unknown tool: {other}") | {"isError": True})

    def _log(self, line: bytes) -> None:
        if path := self.options.get("log"):
            with open(path, "ab") as file:  # noqa: PTH123 - pathlib would slow the start
                file.write(line)

    def _count_starts(self) -> int:
        path = self.options.get("state")
        if not path:
            return 1
        with open(path, "ab+") as file:  # noqa: PTH123 - pathlib would slow the start
            file.write(b".")
            return file.tell()


def initialize_result(params: Json) -> Json:
    return {
        "protocolVersion": params.get("protocolVersion", "2025-11-25"),
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "faulty", "version": "1"},
    }


def discover_result() -> Json:
    return {
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {"listChanged": True}},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "faulty", "version": "1"}},
    }


def surroundings() -> Json:
    descriptors = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []  # noqa: PTH112, PTH208
    return {
        "environ": dict(os.environ),
        "descriptors": sorted(int(each) for each in descriptors),
        "cwd": os.getcwd(),  # noqa: PTH109 - pathlib would slow the start
        "arguments": sys.argv[1:],
        "leads_session": os.getsid(0) == os.getpid(),
        "sigpipe_ignored": signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN,
    }


# Listings


def tool(name: str, **rest: object) -> Json:
    return {"name": name, "description": f"The {name} tool", "inputSchema": SCHEMA} | rest


def listed_tools(server: Server) -> list[Any]:
    rest: Json = {"inputSchema": REDOS, "outputSchema": REDOS} if server.mode == "redos" else {}
    named = [tool(name, **rest) for name in ("echo", "wait", "release", "environment", "fault")]
    more = [tool(f"extra_{number}") for number in range(int(server.options.get("tools", 0)))]
    return [*named, *more, *BAD_TOOLS.get(server.mode, no_tools)(server)]


def no_tools(_server: Server) -> list[Any]:
    return []


def nested_schema(depth: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


SCHEMA: Json = {"type": "object"}
HUGE_SCHEMA: Json = {"type": "object", "enum": list(range(100_000))}
REDOS: Json = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}

BAD_TOOLS: dict[str, Callable[[Server], list[Any]]] = {
    "duplicates": lambda _: [tool("echo", description="An impostor"), tool("echo")],
    "bad_tools": lambda _: [
        7,
        None,
        {},
        {"name": 7},
        {"name": "", "inputSchema": SCHEMA},
        {"name": "no_schema"},
        {"name": "text_schema", "inputSchema": "none"},
        {"name": "odd_description", "description": ["a"], "inputSchema": SCHEMA},
    ],
    "schema_bomb": lambda _: [tool("bomb", inputSchema=HUGE_SCHEMA)],
    "deep_schema": lambda _: [tool("deep", inputSchema=nested_schema(90))],
    "megabyte_description": lambda _: [tool("long", description="word " * 200_000)],
    "redos": lambda _: [tool("redos", outputSchema=REDOS)],
    "change_on_restart": lambda server: [tool(f"start_{server.starts}")],
}


def no_cursor(_cursor: str | None) -> str | None:
    return None


CURSORS: dict[str, Callable[[str | None], str | None]] = {
    "cursor_same": lambda _: "same",
    "cursor_aba": lambda cursor: "b" if cursor == "a" else "a",
    "cursor_empty": lambda _: "",
    "cursor_infinite": lambda cursor: str(int(cursor or 0) + 1),
}


def main(mode: str, options: dict[str, str]) -> None:
    if "ignore-term" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for kind in {"fork", "daemon"} & set(options):
        leave_behind(daemon=kind == "daemon")
    server = Server(mode, options)
    if mode == "confess_at_start":
        confession()
    if mode in ("exit_at_start", "confess_at_start"):
        sys.stderr.write("cannot start: no such database\n")
        raise SystemExit(1)
    if mode == "slow_start":
        with Path(options["until"]).open(encoding="ascii") as pipe:
            pipe.readline()
    while mode == "flood":
        server.write((b"y" * int(options.get("size", 1)) + b"\n") * 30_000)
    server.run()


def parse(arguments: list[str]) -> tuple[str, dict[str, str]]:
    mode, options, words = "ok", dict[str, str](), list(arguments)
    if words and not words[0].startswith("--"):
        mode = words.pop(0)
    while words:
        name = words.pop(0).removeprefix("--")
        options[name] = words.pop(0) if words and not words[0].startswith("--") else ""
    return mode, options


if __name__ == "__main__":
    main(*parse(sys.argv[1:]))
