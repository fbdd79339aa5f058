"""`aggregator open`: the page of a door that is open, or of one opened for it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from aggregator.cli.doorway import Door, code_of, page_of
from tests.cli.shell import ROOT, Shell
from tests.patience import PATIENCE
from tests.upstream.http.certificates import issued, make, trusting

pytestmark = pytest.mark.slow

SERVERS = "servers: {away: {command: nothing, enabled: false}}\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    found = Shell(tmp_path, tmp_path, variables={"XDG_STATE_HOME": str(tmp_path / "state")})
    found.write_servers(SERVERS)
    return found


@contextmanager
def started(shell: Shell, *arguments: str, **variables: str) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "aggregator", *arguments],
        cwd=shell.project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **shell.all_variables(), "PYTHONPATH": str(ROOT), **variables},
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def status_at(address: str) -> int:
    page, _, token = address.partition("#token=")
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.get(f"{page}stats", headers=headers, trust_env=False).status_code


def test_it_serves_the_page_until_it_is_ended_and_is_found_meanwhile(shell: Shell) -> None:
    with started(shell, "open", "--no-browser") as process:
        address = line(process)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}", address)
        answered = status_at(address)
        again = shell.run("open", "--no-browser")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)

    assert answered == 200
    assert (again.status, again.out.strip()) == (0, address)
    assert process.returncode == 0
    assert address.partition("=")[2] not in said
    assert "Traceback" not in said
    (left,) = (shell.project / "state").rglob("doors/*.json")
    assert left.read_text() == ""
    assert left.stat().st_mode & 0o077 == 0


def test_whoever_has_no_token_is_not_told_of_an_option_of_another_command(shell: Shell) -> None:
    with started(shell, "open", "--no-browser") as process:
        page = line(process).partition("#")[0]
        status = httpx2.get(f"{page}stats", trust_env=False).status_code
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)

    assert status == 401
    assert "it has no token; clients must send" in said
    assert "--no-auth" not in said


def test_it_shows_the_page_of_a_door_that_serves_the_same_file(shell: Shell) -> None:
    with started(shell, "serve", "--http", "0") as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        process.stderr.readline()
        found = shell.run("open", "--no-browser")
        (token,) = (shell.project / "state").rglob("http-token")
        process.terminate()
        process.communicate(timeout=PATIENCE)

    page = url.removesuffix("mcp")
    assert found.out.strip() == f"{page}#token={token.read_text().strip()}"


def test_it_finds_a_door_behind_tls_and_knows_it_by_its_certificate(shell: Shell) -> None:
    chain = make(shell.project, "one")
    browser, told = program(shell)
    words = ("--tls-cert", str(chain), "--tls-key", str(chain.with_suffix(".key")))
    with started(shell, "serve", "--http", "0", *words) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        printed = shell.run("open", "--no-browser")
        with started(shell, "open", BROWSER=str(browser)) as opening:
            address = told.read_text()
            opening.communicate(timeout=PATIENCE)
        page, _, code = address.partition("#code=")
        shown, context = {"aggregator-code": code}, trusting(chain)
        exchanged = httpx2.post(f"{page}exchange", headers=shown, trust_env=False, verify=context)
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert url.startswith("https://127.0.0.1:")
    assert page == url.removesuffix("mcp")
    assert printed.out.startswith(f"{page}#token=")
    assert exchanged.json() == {"token": printed.out.strip().partition("=")[2]}


def test_a_page_is_shown_under_the_name_that_its_certificate_is_for(shell: Shell) -> None:
    chain = str(make(shell.project, "one"))

    assert page_of(Door("127.0.0.1:1", None, None, chain, "tools.example:1")) == (
        "https://tools.example:1/"
    )
    assert page_of(Door("127.0.0.1:1", None, None, chain)) == "https://127.0.0.1:1/"


def test_a_token_is_not_shown_to_who_has_another_certificate_of_the_same_issuer(
    shell: Shell,
) -> None:
    issuer = make(shell.project, "issuer")
    ours, theirs = (issued(shell.project, name, issuer) for name in ("ours", "theirs"))
    words = ("--tls-cert", str(theirs), "--tls-key", str(theirs.with_suffix(".key")))
    token = "0123456789abcdef" * 3
    with started(shell, "serve", "--http", "0", *words, AGGREGATOR_TOKEN=token) as process:
        assert process.stderr is not None
        authority = process.stderr.readline().split()[-1].split("/")[2]
        known = code_of(Door(authority, certificate=str(theirs)), token)
        unknown = code_of(Door(authority, certificate=str(ours)), token)
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert known is not None
    assert unknown is None


def test_a_token_that_was_given_in_confidence_is_not_written_down(shell: Shell) -> None:
    token = "0123456789abcdef" * 3
    with started(shell, "serve", "--http", "0", AGGREGATOR_TOKEN=token) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        found = shell.run("open", "--no-browser")
        (left,) = (shell.project / "state").rglob("doors/*.json")
        kept = left.read_text()
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert token not in kept
    assert found.out.strip() == url.removesuffix("mcp")


def program(shell: Shell) -> tuple[Path, Path]:
    """Write a browser that tells what it is given; return it, and where it tells."""
    told = shell.project / "told"
    os.mkfifo(told)
    written = shell.project / "browser"
    written.write_text(f'#!/bin/sh\nprintf %s "$1" > {told}\n')
    written.chmod(0o700)
    return written, told


def test_a_browser_is_given_an_address_without_the_token(shell: Shell) -> None:
    browser, told = program(shell)
    with started(shell, "open", BROWSER=str(browser)) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        address = told.read_text() if said.startswith("Your browser opens") else ""
        page, _, code = address.partition("#code=")
        shown = {"aggregator-code": code}
        exchanged = httpx2.post(f"{page}exchange", headers=shown, trust_env=False)
        again = httpx2.post(f"{page}exchange", headers=shown, trust_env=False)
        (left,) = (shell.project / "state").rglob("doors/*.json")
        token = json.loads(left.read_text())["token"]
        process.send_signal(signal.SIGINT)
        out, more = process.communicate(timeout=PATIENCE)

    assert out == ""
    assert code not in said + more
    assert f"Your browser opens {page}" in said
    # All users of the machine see what a program is started with.
    assert token not in address
    assert exchanged.json() == {"token": token}
    assert again.status_code == 403


def test_what_a_crash_left_behind_leads_nowhere(shell: Shell) -> None:
    with started(shell, "open", "--no-browser") as process:
        first = line(process)
        process.kill()
        process.communicate(timeout=PATIENCE)
    with started(shell, "open", "--no-browser") as process:
        second = line(process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)

    assert first != second
