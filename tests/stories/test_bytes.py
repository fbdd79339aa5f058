"""The bytes themselves, from one real process through another to a third."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.app.hub.hub_setup import PROGRAM
from tests.patience import PATIENCE
from tests.ways import way

Json = dict[str, Any]

SERVER = """
import json, sys
answer = open(sys.argv[1], encoding="utf-8").read()
listing = {"tools": [{"name": "odd", "inputSchema": {"type": "object"}}]}
hello = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "odd", "version": "1"},
}
for line in sys.stdin:
    message = json.loads(line)
    results = {
        "initialize": json.dumps(hello), "tools/list": json.dumps(listing), "tools/call": answer,
    }
    if "id" not in message:
        continue
    head = '{"jsonrpc": "2.0", "id": %s, ' % json.dumps(message["id"])
    if message["method"] in results:
        print(head + '"result": ' + results[message["method"]] + "}", flush=True)
    else:
        print(head + '"error": {"code": -32601, "message": "No"}}', flush=True)
"""

ANSWERS = {
    "numbers": """{"content": [], "structuredContent": {"a": 123456789012345678901234567890,
        "b": -0.1, "c": 1.0, "d": 5e-324, "e": 1.7976931348623157e308, "f": 0, "g": [1, 1.5]}}""",
    "text": r"""{"content": [{"type": "text", "text":
        "\ud83e\uddd1\u200d\ud83d\ude80 Gr\u00fc\u00dfe \u0000 \u2028 \u2029 \ufeff \\ \" \/"}]}""",
    "nulls": '{"content": [{"type": "what", "x": null}], "y": {"": [null, [], {}]}, "z": null}',
}


@contextmanager
def serving(directory: Path, answer: str) -> Generator[tuple[IO[str], IO[str]], None, None]:
    """Run the aggregator in front of a server that answers like this."""
    (directory / "server.py").write_text(SERVER, encoding="utf-8")
    (directory / "answer.json").write_text(answer.replace("\n", ""), encoding="utf-8")
    odd = {"command": sys.executable, "args": ["server.py", "answer.json"]}
    config = directory / "servers.yaml"
    config.write_text(json.dumps({"state": False, "servers": {"peer": odd}}), encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM.format(patience=10 * PATIENCE), "serve"]
    command += ["--config", str(config), *(["--shared"] if way().is_shared else [])]
    variables = {**os.environ, "XDG_RUNTIME_DIR": str(directory)}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=variables,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdin, process.stdout
        process.stdin.close()
    stop = [sys.executable, "-m", "aggregator", "stop"]
    said = subprocess.check_output(stop, env=variables, text=True, timeout=PATIENCE)
    assert ("has ended" in said) == way().is_shared


def ask(streams: tuple[IO[str], IO[str]], number: int, method: str, params: Json) -> str:
    """Ask something and return the line that answers it."""
    stdin, stdout = streams
    stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
    )
    stdin.flush()
    for line in stdout:
        if json.loads(line).get("id") == number:
            return line
    raise EOFError


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_process_writes_is_what_a_client_reads(name: str, tmp_path: Path) -> None:
    with serving(tmp_path, ANSWERS[name]) as streams:
        ask(
            streams,
            1,
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "bytes", "version": "1"},
            },
        )
        streams[0].write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        line = ask(streams, 2, "tools/call", {"name": "peer__odd", "arguments": {}})

    sent = json.loads(ANSWERS[name].replace("\n", ""), parse_int=str, parse_float=float)
    assert json.loads(line, parse_int=str, parse_float=float)["result"] == sent
