"""`aggregator login` and `logout` as a person types them."""

import io
import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from aggregator.cli.environment import Environment, ExitStatus
from aggregator.cli.main import main
from aggregator.downstream.login.place import Logins
from tests.cli.warm import warm_python
from tests.downstream.login.authority import Authority, World, world
from tests.downstream.login.browser import redirected
from tests.downstream.login.logins import had, login, logins_in, server_at
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

BROWSER = f"{sys.executable} -m tests.downstream.login.browser"
ROOT = Path(__file__).parents[3]


class Seat:
    """Where a person sits: what they type, and what they see."""

    def __init__(self, directory: Path, url: str, **variables: str) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.file = directory / "servers.yaml"
        self.file.write_text(f"servers:\n  web:\n    url: {url}\n", encoding="utf-8")
        self.directory = directory
        # Coverage and the like are told where to look by variables of ours.
        self.variables = {
            "XDG_STATE_HOME": str(directory / "state"),
            "HOME": str(directory),
            "PYTHONPATH": str(ROOT),
            **variables,
        }

    @property
    def logins(self) -> Logins:
        return Logins(self.directory / "state" / "mcp-tool-aggregator" / "logins", self.file)

    def type(self, *words: str) -> ExitStatus:
        self.out, self.err = io.StringIO(), io.StringIO()
        stdin = io.StringIO()
        environment = Environment(
            self.out,
            self.err,
            self.variables,
            self.directory,
            stdin=stdin,
            python=warm_python(),
        )
        return main(words, environment)


@asynccontextmanager
async def seated(directory: Path, **variables: str) -> AsyncGenerator[tuple[World, Seat], None]:
    async with world() as there:
        yield there, Seat(directory, there.url, **variables)


async def typed(seat: Seat, *words: str) -> ExitStatus:
    with anyio.fail_after(PATIENCE):
        return await to_thread.run_sync(lambda: seat.type(*words))


async def test_where_nobody_can_register_that_is_all_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(Authority(registers=False)) as there:
        seat = Seat(tmp_path, there.url)

        assert await typed(seat, "login", "web", "--no-browser") == ExitStatus.ERROR

        said = seat.err.getvalue()
        assert said.startswith(f"error: `web`: nobody can register at `{there.authority.origin}/`")
        assert "Register a client there by hand" in said
        assert caplog.messages == []


async def test_a_person_logs_in_with_a_browser_looks_and_logs_out(tmp_path: Path) -> None:
    async with seated(tmp_path, BROWSER=BROWSER) as (there, seat):
        assert await typed(seat, "login", "web") == ExitStatus.FINE, seat.err.getvalue()
        assert seat.out.getvalue().startswith("web: logged in, 2 tools; scopes ")
        assert seat.out.getvalue().endswith("; renews by itself\n")
        assert f"log in to web (127.0.0.1, by {there.authority.origin}/)" in seat.err.getvalue()

        assert await typed(seat, "login") == ExitStatus.FINE
        assert "renews by itself" in seat.out.getvalue()
        assert await typed(seat, "login", "--json") == ExitStatus.FINE
        (row,) = json.loads(seat.out.getvalue())["logins"]
        assert (row["server"], row["issuer"]) == ("web", f"{there.authority.origin}/")

        assert await typed(seat, "logout", "web") == ExitStatus.FINE
        assert seat.out.getvalue() == "web: logged out; it is revoked\n"
        assert all(grant.is_revoked for grant in there.authority.refresh.values())
        assert await typed(seat, "logout", "web") == ExitStatus.FINE
        assert "there is no login" in seat.err.getvalue()
        assert await typed(seat, "login") == ExitStatus.FINE
        assert "none" in seat.out.getvalue()


async def test_whoever_does_not_log_in_in_time_keeps_what_there_was(tmp_path: Path) -> None:
    async with seated(tmp_path) as (there, seat):
        file = seat.logins.file(server_at(there.url))
        before = had(there.authority, file, time.time)

        status = await typed(seat, "login", "web", "--no-browser", "--timeout", "500ms")

        assert status == ExitStatus.ERROR
        assert "nobody logged in within 0.5 s" in seat.err.getvalue()
        assert file.read() == before


async def test_a_logout_forgets_also_what_cannot_be_revoked(tmp_path: Path) -> None:
    seat = Seat(tmp_path, "https://mcp.example.com/mcp")
    file = seat.logins.file(server_at("https://mcp.example.com/mcp"))
    file.write(login())

    assert await typed(seat, "logout", "web") == ExitStatus.FINE

    assert "has no way to revoke it: end it at https://auth.example.com" in seat.out.getvalue()
    assert not file.look()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("command: cat", "is a program on this machine"),
        ("url: https://x/mcp\n    oauth: false", "is given its credentials in servers.yaml"),
        ("url: https://x/mcp\n    headers: {Authorization: Bearer x}", "is given its credentials"),
        (
            "url: https://x/mcp\n    oauth: {grant: client_credentials, clientId: x}",
            "is used without a person",
        ),
    ],
)
async def test_what_nobody_logs_in_to_is_said(tmp_path: Path, entry: str, says: str) -> None:
    seat = Seat(tmp_path, "https://x/mcp")
    seat.file.write_text(f"servers:\n  web:\n    {entry}\n", encoding="utf-8")

    assert await typed(seat, "login", "web") == ExitStatus.USAGE
    assert says in seat.err.getvalue()
    assert await typed(seat, "login", "wep") == ExitStatus.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "mode", "says"),
    [
        ({"expires_at": 1.0, "refresh_token": None}, 0o600, "expired"),
        ({"expires_at": 1.0, "lost": "invalid_grant"}, 0o600, "lost: invalid_grant"),
        ({"expires_at": 1.0}, 0o600, "renewed when it is used"),
        ({"expires_at": None, "refresh_token": None}, 0o600, "valid"),
        ({"expires_at": 1e11, "refresh_token": None}, 0o600, "valid until 5138"),
        ({}, 0o644, "unusable: others can read"),
    ],
)
async def test_the_table_tells_how_good_each_is(
    tmp_path: Path, changes: dict[str, Any], mode: int, says: str
) -> None:
    seat = Seat(tmp_path, "https://mcp.example.com/mcp", COLUMNS="400")
    file = seat.logins.file(server_at("https://mcp.example.com/mcp"))
    file.write(login(**changes))
    file.path.chmod(mode)

    assert await typed(seat, "login") == ExitStatus.FINE

    assert says in seat.out.getvalue()
    assert "access-1" not in seat.out.getvalue()


async def test_where_nothing_says_whose_state_it_is_no_login_is_kept(tmp_path: Path) -> None:
    seat = Seat(tmp_path, "https://mcp.example.com/mcp")
    seat.variables = {}

    assert await typed(seat, "login", "--config", str(seat.file)) == ExitStatus.ERROR
    assert "no place to keep a login" in seat.err.getvalue()
    assert logins_in(tmp_path).directory == tmp_path / "logins"


@pytest.mark.slow
async def test_check_inspect_and_doctor_tell_a_login_from_what_is_broken(tmp_path: Path) -> None:
    async with seated(tmp_path, PATH=os.environ["PATH"]) as (there, seat):
        command = f"aggregator login web --config {seat.file}"
        assert await typed(seat, "check") == ExitStatus.NEEDS_LOGIN
        assert "needs login" in seat.out.getvalue()
        assert command in " ".join(seat.out.getvalue().split())
        assert await typed(seat, "inspect", "--json") == ExitStatus.NEEDS_LOGIN
        (state,) = json.loads(seat.out.getvalue())["servers"]
        assert (state["state"], state["login"]["command"]) == ("needs login", command)
        assert await typed(seat, "doctor") == ExitStatus.NEEDS_LOGIN
        assert command in " ".join(seat.out.getvalue().split())

        there.authority.gives_refresh = False
        had(there.authority, seat.logins.file(server_at(there.url)), time.time)

        assert await typed(seat, "check") == ExitStatus.FINE
        assert await typed(seat, "doctor") == ExitStatus.FINE
        assert "you will be asked to log in again at" in " ".join(seat.out.getvalue().split())


@pytest.mark.slow
async def test_without_a_browser_the_address_that_one_ends_up_at_is_pasted(tmp_path: Path) -> None:
    async with seated(tmp_path) as (there, seat):
        command = [sys.executable, "-m", "aggregator", "login", "web", "--no-browser"]
        with anyio.fail_after(PATIENCE):
            async with await anyio.open_process(
                [*command, "--config", str(seat.file)],
                env={**os.environ, **seat.variables},
                cwd=ROOT,
            ) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                assert process.stderr is not None
                said = ""
                async for chunk in process.stderr:
                    said += chunk.decode()
                    if "and paste here" in said:
                        break
                (address,) = [line.strip() for line in said.splitlines() if "/authorize?" in line]
                await process.stdin.send(b"nonsense\n")
                pasted = await redirected(address)
                await process.stdin.send(f"{pasted}\n".encode())
                out = b"".join([chunk async for chunk in process.stdout]).decode()
                assert await process.wait() == ExitStatus.FINE

        assert out.startswith("web: logged in, 2 tools")
        assert seat.logins.file(server_at(there.url)).read() is not None
