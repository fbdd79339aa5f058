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

from tests.cli.shell import Shell
from tests.loopback.web import listening
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

SERVERS = "servers: {away: {command: nothing, enabled: false}}\n"


@contextmanager
def started(
    directory: Path, *arguments: str, servers: str = SERVERS, **variables: str
) -> Generator[subprocess.Popen[str], None, None]:
    """Run the command in a directory of its own."""
    config = directory / "servers.yaml"
    config.write_text(servers)
    command = [sys.executable, "-m", "aggregator", "serve", "--config", str(config), *arguments]
    environment = {**os.environ, "XDG_STATE_HOME": str(directory / "state"), **variables}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    with process:
        yield process
        if process.poll() is None:
            process.kill()


def end(directory: Path, *arguments: str, servers: str = SERVERS) -> tuple[int, str]:
    """Return the exit status and what was said."""
    with started(directory, *arguments, servers=servers) as process:
        _, said = process.communicate(timeout=PATIENCE)
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
        said, more = process.communicate(timeout=PATIENCE)

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
    ("arguments", "says"),
    [
        (("--http", "0.0.0.0:0", "--no-auth"), "a token is required"),
        (("--http", "192.0.2.1:0"), "no address of this machine"),
    ],
)
def test_what_cannot_be_served_does_not_start(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    status, said = end(tmp_path, *arguments)

    assert status == 1
    assert says in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--http", "nonsense"), "does not end in a port"),
        (("--http", "99999"), "there is no port `99999`"),
        (("--http", "https://localhost:8765"), "there is only plain HTTP here"),
        (("--no-auth",), "`--no-auth` is of use only with `--http`"),
        (("--allow-host", "x"), "`--allow-host` is of use only with `--http`"),
        (("--token-file", "x"), "`--token-file` is of use only with `--http`"),
    ],
)
def test_what_makes_no_sense_is_not_served(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, tmp_path)
    shell.write_servers(SERVERS)

    ran = shell.run("serve", *arguments)

    assert ran.status == 2
    assert says in ran.err


@pytest.mark.parametrize(
    ("keys", "arguments", "variables", "says"),
    [
        ("state: redis://a", (), {}, "`http.state` needs `--state-key`"),
        ("", ("--state", "redis://a"), {}, "`--state` needs `--state-key`"),
        ("state: redis://a, stateKey: key", ("--state", "x"), {}, "the store is not a"),
        ("state: redis://a, stateKey: key", (), {"AGGREGATOR_STATE": "x"}, "the store is not a"),
        ("stateKey: open", (), {}, "open` can be read by others"),
        ("stateKey: key", ("--state-key", "open"), {}, "open` can be read by others"),
        ("stateKey: key", ("--shared",), {}, "`http.stateKey` and `--shared` exclude"),
    ],
)
def test_what_was_typed_about_replicas_is_stronger_than_the_file(
    keys: str,
    arguments: tuple[str, ...],
    variables: dict[str, str],
    says: str,
    tmp_path: Path,
) -> None:
    shell = Shell(tmp_path, tmp_path, variables=variables)
    shell.write_servers(f"servers: {{}}\nhttp: {{{keys}}}\n")
    (shell.project / "open").touch(0o644)

    ran = shell.run("serve", "--http", "0", *arguments)

    assert ran.status != 0
    assert says in ran.err


def test_a_token_is_taken_from_the_file_that_is_named_or_from_the_environment(
    tmp_path: Path,
) -> None:
    token, named = "0123456789abcdef" * 3, tmp_path / "token"
    arguments = ("--http", "http://127.0.0.1:0/mcp")
    with started(tmp_path, *arguments, AGGREGATOR_TOKEN=token) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        said = process.stderr.readline()
        let_in = httpx2.get(url, headers={"authorization": f"Bearer {token}"}, trust_env=False)
        refused = httpx2.get(url, trust_env=False)
        log = process.stderr.readline()
    with started(tmp_path, *arguments, "--token-file", str(named), AGGREGATOR_TOKEN=token) as again:
        assert again.stderr is not None
        again.stderr.readline()
        other = again.stderr.readline()

    assert said.rstrip().endswith("with the token in `AGGREGATOR_TOKEN`")
    assert let_in.status_code != 401
    assert refused.status_code == 401
    assert "a request was answered 401: it has no token; clients must send" in log
    assert str(named) in other
    assert named.read_text().strip() != token


def test_who_listens_beyond_this_machine_is_warned_that_nothing_is_encrypted(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "--http", "0.0.0.0:0") as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(3)]

    assert said[2].startswith("warning: others on the network can read the token")


def test_stdio_does_not_wait_for_what_http_takes() -> None:
    script = "import sys, aggregator.app.life, aggregator.cli.serve; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not [
        each
        for each in loaded
        if each.startswith(("aggregator.upstream.http", "aggregator.downstream.http"))
    ]
