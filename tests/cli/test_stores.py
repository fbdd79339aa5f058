"""`aggregator check` says whether replicas could be started."""

import json
from pathlib import Path

import anyio
import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell
from tests.cli.test_running import SERVERS
from tests.replicas.cluster import STORE, storehouse

HTTP = "\nhttp: {{stateKey: state-key, state: {url}}}\n"
NOWHERE = "redis://:hunter2@127.0.0.1:9/0"


def test_check_says_that_a_key_is_none_and_that_a_store_is_away(shell: Shell) -> None:
    shell.write_servers(SERVERS + HTTP.format(url=f'"{NOWHERE}"'))
    key = shell.project / "state-key"
    key.write_text("no key\n", encoding="utf-8")
    key.chmod(0o600)

    ran = shell.run("check", "--json")

    error, warning = json.loads(ran.out)["findings"]
    assert ran.status is ExitStatus.ERROR
    assert error["severity"] == "error"
    assert "has a line that is not 32 bytes in base64; `openssl rand" in error["text"]
    assert warning["severity"] == "warning"
    assert "cannot be reached from here (connection refused)" in warning["text"]
    assert "hunter2" not in ran.out + ran.err


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.skipif(STORE is None, reason="there is neither Redis nor Valkey here")
async def test_check_says_nothing_of_a_store_that_is_there_and_makes_no_key(
    shell: Shell, tmp_path: Path
) -> None:
    async with storehouse(tmp_path) as store:
        shell.write_servers(SERVERS + HTTP.format(url=f'"{store.url}"'))
        ran = await anyio.to_thread.run_sync(shell.run, "check", "--json")

    assert ran.status is ExitStatus.FINE
    assert json.loads(ran.out)["findings"] == []
    assert not (shell.project / "state-key").exists()
