"""Connections without a token are few, so that there is room for those with one."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from aggregator.upstream.http.unauthenticated import MAX_STRANGERS, Unauthenticated
from tests.loopback.door import NO_CERTIFICATES
from tests.patience import PATIENCE
from tests.upstream.http.certificates import make, trusting

TOKEN = "t" * 40
FILES = 200
"""Open files that the aggregator may have here."""
STRANGERS = 260
"""More than that, and than wait to be accepted."""

HANDSHAKE = {
    "protocolVersion": LATEST_HANDSHAKE_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "known", "version": "1"},
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "known", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def test_the_oldest_goes_when_there_are_too_many() -> None:
    left: list[str] = []
    unauthenticated = Unauthenticated(2)
    for name in "abcd":
        unauthenticated.admit((name, 1), lambda name=name: left.append(name))
        if name == "a":
            unauthenticated.release(("a", 1))

    assert left == ["b"]


@pytest.mark.parametrize(
    ("files", "most"), [(1, 1), (256, 64), (1024, 256), (1_000_000, MAX_STRANGERS)]
)
def test_they_take_only_a_part_of_what_there_is(files: int, most: int) -> None:
    left: list[int] = []
    unauthenticated = Unauthenticated.among(files)
    for port in range(most + 1):
        unauthenticated.admit(("x", port), lambda port=port: left.append(port))

    assert left == [0]


@contextmanager
def serving(
    directory: Path, options: str = ""
) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    """Run the aggregator with few files; give it and its address."""
    config = directory / "servers.yaml"
    config.write_text("servers: {away: {command: nothing, enabled: false}}\n")
    serve = f"ulimit -n {FILES} && exec {sys.executable} -m aggregator serve --http 0"
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"{serve} --config '{config}' {options}"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(directory), "AGGREGATOR_TOKEN": TOKEN},
    )
    with process:
        try:
            assert process.stderr is not None
            yield process, re.findall(r"https?://\S+", process.stderr.readline())[0]
        finally:
            process.kill()


def message(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def half_open(port: int, beginning: bytes) -> socket.socket:
    """Begin a request that never ends, or say nothing at all."""
    stranger = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    stranger.sendall(beginning)
    return stranger


@pytest.mark.slow
@pytest.mark.parametrize("is_secure", [False, True])
def test_more_strangers_than_there_are_files_starve_nobody_with_a_token(
    tmp_path: Path, *, is_secure: bool
) -> None:
    chain = make(tmp_path, "one") if is_secure else None
    context = NO_CERTIFICATES if chain is None else trusting(chain)
    options = "" if chain is None else f"--tls-cert {chain} --tls-key {chain.with_suffix('.key')}"
    # Where there is TLS, who says nothing has not even begun to be secured.
    beginning = b"" if is_secure else b"POST /mcp HTTP/1.1\r\n"
    with serving(tmp_path, options) as (process, url), ExitStack() as unauthenticated:
        port = httpx2.URL(url).port or 0
        for _ in range(STRANGERS):
            unauthenticated.enter_context(half_open(port, beginning))
        headers = {
            "authorization": f"Bearer {TOKEN}",
            "accept": "application/json, text/event-stream",
        }
        with httpx2.Client(
            headers=headers, timeout=PATIENCE, trust_env=False, verify=context
        ) as client:
            statuses = [client.post(url, json=message("initialize", HANDSHAKE)).status_code]
            # The connection is one that has shown the token: nobody pushes it out.
            for _ in range(STRANGERS):
                unauthenticated.enter_context(half_open(port, beginning))
            modern = message("tools/list", {"_meta": ENVELOPE})
            era = {"mcp-protocol-version": LATEST_MODERN_VERSION, "mcp-method": "tools/list"}
            answer = client.post(url, json=modern, headers=era)
            statuses.append(answer.status_code)

        assert process.poll() is None
    assert statuses == [200, 200]
    assert '"tools":' in answer.text
