"""Looking with `--url` at what is no aggregator."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.serving import SERVERS, serving
from tests.cli.shell import Shell

Answer = Callable[[dict[str, Any]], tuple[int, object]]

UNKNOWN = {"code": -32602, "message": "Unknown resource: catalog://servers"}
NO_SESSION = {"code": -32600, "message": "Bad Request: Missing session ID"}


def modern(request: dict[str, Any]) -> tuple[int, object]:
    """Answer as a server of the modern era that has tools, and no such resource."""
    head = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "tools/list":
        return 200, {**head, "result": {"tools": []}}
    return 200, {**head, "error": UNKNOWN}


def handshake(_request: dict[str, Any]) -> tuple[int, object]:
    """Answer as one of the handshake era, which wants `initialize` first."""
    return 400, {"jsonrpc": "2.0", "id": "server-error", "error": NO_SESSION}


def nameless(_request: dict[str, Any]) -> tuple[int, object]:
    return 400, {"jsonrpc": "2.0", "id": None, "error": NO_SESSION}


def talkative(request: dict[str, Any]) -> tuple[int, object]:
    """Answer whatever is read with a text of its own."""
    head = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "tools/list":
        return 200, {**head, "result": {"tools": []}}
    return 200, {**head, "result": {"contents": [{"text": "whatever you like"}]}}


@contextmanager
def answering(answer: Answer) -> Generator[str]:
    """Answer on a free port, and yield where."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, message = answer(request)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(message).encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library has it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("answer", [modern, handshake, nameless, talkative])
@pytest.mark.parametrize("command", ["search x", "inspect", "check", "call x"])
def test_a_server_that_is_no_aggregator_is_said_to_be_none(
    shell: Shell, answer: Answer, command: str
) -> None:
    with answering(answer) as place:
        ran = shell.run(*command.split(), "--url", f"{place}/mcp")

    assert ran.status is ExitStatus.UNREACHED
    assert f"error: `{place}` is an MCP server, but not an aggregator\n" in ran.err


def test_what_sends_no_messages_has_not_answered(shell: Shell) -> None:
    with answering(lambda _: (200, ["hello"])) as place:
        ran = shell.run("inspect", "--url", f"{place}/mcp")

    assert ran.status is ExitStatus.UNREACHED
    assert f"`{place}` did not answer: what it sent is not a message of MCP" in ran.err


@pytest.mark.slow
def test_an_aggregator_that_serves_the_handshake_era_alone_is_said_to(shell: Shell) -> None:
    with serving(shell, f"surface: promote\n{SERVERS}") as (url, _said):
        ran = shell.run("inspect", "--url", url)

    assert ran.status is ExitStatus.UNREACHED
    assert "serves the handshake era alone" in ran.err
    assert "`surface: promote`" in ran.err
