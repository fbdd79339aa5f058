"""No token, code, verifier or secret is in anything that is written, shown or answered."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.downstream.login.authority import World, world
from tests.downstream.login.logins import server_at
from tests.downstream.login.test_commands import BROWSER, Seat
from tests.patience import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
META: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def output(seat: Seat, *words: str, said: bytes = b"") -> str:
    """Run a command in a process of its own; return all that it writes."""
    with anyio.fail_after(2 * PATIENCE):
        done = await anyio.run_process(
            [sys.executable, "-m", "aggregator", *words, "--config", str(seat.file)],
            input=said,
            stderr=subprocess.STDOUT,
            check=False,
            env={**os.environ, **seat.variables},
            cwd=ROOT,
        )
    return done.stdout.decode()


def asked(*methods: tuple[str, dict[str, object]]) -> bytes:
    """Return what a client writes to ask these."""
    lines = [
        json.dumps(
            {"jsonrpc": "2.0", "id": at, "method": method, "params": {**params, "_meta": META}}
        )
        for at, (method, params) in enumerate(methods)
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def secrets_of(there: World, seat: Seat) -> set[str]:
    """Return all that nobody is to see."""
    found = set(there.authority.given)
    for form in there.authority.forms:
        found |= {form[name] for name in ("code_verifier", "code", "refresh_token") if name in form}
    kept = seat.logins.file(server_at(there.url)).read()
    found |= {kept.client.secret} if kept and kept.client.secret else set()
    return found


def texts_in(directory: Path) -> list[str]:
    """Return what is in all files below a directory."""
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths]


async def test_nothing_that_is_written_says_what_must_not_be_seen(tmp_path: Path) -> None:
    async with world() as there:
        seat = Seat(tmp_path, there.url, BROWSER=BROWSER, PYTHONASYNCIODEBUG="1")
        questions = asked(
            ("tools/list", {}),
            ("tools/call", {"name": "web__go", "arguments": {}}),
            ("tools/call", {"name": "ToolSearch", "arguments": {"query": "go"}}),
            ("resources/read", {"uri": "catalog://servers"}),
        )
        written = [await output(seat, "login", "web"), await output(seat, "login")]
        assert "web: logged in" in written[0]
        there.authority.forget_access()
        written.append(await output(seat, "serve", "-vv", said=questions))
        assert there.authority.refreshed == 1
        there.authority.revoke_all()
        written.append(await output(seat, "serve", "-vv", said=questions))
        written += [await output(seat, "inspect", "web"), await output(seat, "doctor")]
        hidden = secrets_of(there, seat)
        written.append(await output(seat, "logout", "web"))

        assert len(hidden) >= 5
        assert [each for each in hidden if any(each in text for text in written)] == []
        assert not any(each in text for each in hidden for text in texts_in(tmp_path))
