"""`aggregator serve --http` with an issuer in `servers.yaml`, as a person types it."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.patience import PATIENCE
from tests.upstream.http.test_command import end, started

pytestmark = pytest.mark.slow

SERVERS = """
servers:
  away: {url: "https://away.example/mcp", start: lazy}
http:
  issuer: http://127.0.0.1:9
  audience: https://tools.example.com/mcp
  access: [{scope: tools.all, allow: "*"}]
"""


def test_it_says_where_people_log_in_and_what_others_do_not_see(tmp_path: Path) -> None:
    with started(tmp_path, "--http", "0", servers=SERVERS) as process:
        assert process.stderr is not None
        where, who, whose = (process.stderr.readline() for _ in range(3))
        url = re.findall(r"http://127\.0\.0\.1:\d+/mcp", where)[0]
        refused = httpx2.post(url, trust_env=False)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert "people log in at `http://127.0.0.1:9`" in who
    assert "only you see `away`" in whose
    assert refused.status_code == 401
    assert "resource_metadata=" in refused.headers["www-authenticate"]


@pytest.mark.parametrize("is_taken", [False, True])
def test_only_a_door_that_the_token_opens_is_one_for_aggregator_open(
    tmp_path: Path, *, is_taken: bool
) -> None:
    servers = f"{SERVERS}  localToken: {str(is_taken).lower()}\n"
    with started(tmp_path, "--http", "0", servers=servers) as process:
        assert process.stderr is not None
        while "people log in" not in process.stderr.readline():
            pass
        files = [each for each in tmp_path.rglob("*") if each.is_file()]
        told = [each for each in files if b'"authority"' in each.read_bytes()]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert bool(told) is is_taken


def test_who_lets_everybody_in_asks_no_issuer(tmp_path: Path) -> None:
    status, said = end(tmp_path, "--http", "0", "--no-auth", servers=SERVERS)

    assert status == 2
    assert "`--no-auth` lets everybody in" in said


def test_nobody_waits_for_what_looks_at_signatures() -> None:
    """It is loaded with the first keys that come, in a thread."""
    program = "import sys; import aggregator.upstream.http.serving; print('jwt' in sys.modules)"
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)

    assert found.stdout.strip() == "False"
