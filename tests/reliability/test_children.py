"""What a child process is given, and what becomes of one that cannot be run."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aggregator.config.inheritance import Environment
from aggregator.downstream.stdio.watchdog import COOKIE
from tests.soak.client import aggregator, faulty, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_command_that_cannot_be_run_is_given_up_until_something_changes(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script"
    script.write_text("no program", encoding="ascii")
    servers: Mapping[str, Any] = {
        "missing": {"command": "/no/such/command"},
        "forbidden": {"command": str(script)},
        "homeless": faulty(cwd="/no/such/directory"),
    }

    async with aggregator(tmp_path, servers) as client:
        await client.until(
            lambda found: all(server["state"] == "failed" for server in found.values())
        )
        reasons = {name: server["reason"] for name, server in (await client.servers()).items()}

    assert reasons["missing"] == "the command `/no/such/command` does not exist"
    assert "is not executable" in reasons["forbidden"]
    assert "the working directory `/no/such/directory` does not exist" in reasons["homeless"]


async def test_a_child_is_given_a_few_variables_its_own_and_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODY_ELSES_TOKEN", "secret")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        async with aggregator(tmp_path, {"one": faulty(env={"OWN": "mine"})}) as client:
            await client.ready()
            told = json.loads(text_of(await client.call("one__environment")))
    finally:
        os.close(read)
        os.close(write)

    inherited = Environment({**os.environ, "XDG_STATE_HOME": ""}).inherited(())
    assert set(told["environ"]) <= {*inherited, "OWN", COOKIE, "LC_CTYPE"}
    assert "SOMEBODY_ELSES_TOKEN" not in told["environ"]
    assert told["environ"]["OWN"] == "mine"
    # The fourth is the directory it reads to find them out.
    assert told["descriptors"] == [0, 1, 2, 3]
    assert told["leads_session"]
