"""`aggregator serve --http` as a person types it."""

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

from tests.loopback.web import listening

pytestmark = pytest.mark.slow


@contextmanager
def started(directory: Path, *arguments: str) -> Generator[subprocess.Popen[str], None, None]:
    """Run the command in a directory of its own."""
    config = directory / "servers.yaml"
    config.write_text("servers: {away: {command: nothing, enabled: false}}\n")
    command = [sys.executable, "-m", "aggregator", "serve", "--config", str(config), *arguments]
    environment = {**os.environ, "XDG_STATE_HOME": str(directory / "state")}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    with process:
        yield process
        if process.poll() is None:
            process.kill()


def end(directory: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit status and what was said."""
    with started(directory, *arguments) as process:
        _, said = process.communicate(timeout=20)
        return process.returncode, said


def test_it_says_where_it_is_and_where_the_token_is_and_leaves_in_good_order(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "--http", "0") as process:
        assert process.stderr is not None
        where, how = process.stderr.readline(), process.stderr.readline()
        url = re.findall(r"http://127\.0\.0\.1:\d+/mcp", where)[0]
        token = Path(re.findall(r"`(/[^`]+)`", how)[0]).read_text().strip()
        alive = httpx2.get(url.replace("/mcp", "/healthz"), trust_env=False)
        process.send_signal(signal.SIGTERM)
        said, more = process.communicate(timeout=20)

    assert alive.json() == {"status": "alive"}
    assert process.returncode == 0
    assert token not in where + how + said + more
    assert said == ""


def test_a_taken_port_is_one_readable_error(tmp_path: Path) -> None:
    with listening() as taken:
        port = taken.getsockname()[1]
        status, said = end(tmp_path, "--http", str(port))

    assert status == 1
    assert said.startswith(f"error: cannot listen on `127.0.0.1:{port}`")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "expected", "says"),
    [
        (("--http", "0.0.0.0:0", "--no-auth"), 1, "a token is required"),
        (("--http", "nonsense"), 2, "does not end in a port"),
        (("--no-auth",), 2, "`--no-auth` is of use only with `--http`"),
        (("--allow-host", "x"), 2, "`--allow-host` is of use only with `--http`"),
    ],
)
def test_what_cannot_be_served_does_not_start(
    arguments: tuple[str, ...], expected: int, says: str, tmp_path: Path
) -> None:
    status, said = end(tmp_path, *arguments)

    assert status == expected
    assert says in said
    assert "Traceback" not in said


def test_stdio_does_not_wait_for_what_http_takes() -> None:
    script = "import sys, aggregator.app, aggregator.cli.serve; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not [
        each
        for each in loaded
        if each.startswith(("aggregator.upstream.http", "aggregator.downstream.http"))
    ]
