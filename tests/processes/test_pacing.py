"""Many servers that start with us are each started once, whatever the machine has to give."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.processes.driver import aggregator, faulty
from tests.processes.test_lazy_start import until_all

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SERVERS = 16
HEAVY = """
import sys, time
from pathlib import Path

log, name, *server = sys.argv[1:]
with Path(log).open("a", encoding="ascii") as file:
    file.write(name + "\\n")
while time.process_time() < 0.1:
    pass
sys.argv = server
sys.path.insert(0, str(Path(server[0]).parent))
exec(compile(Path(server[0]).read_text("utf-8"), server[0], "exec"))
"""
"""Notes that it was started, and has a processor work for a while before it can be spoken to."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_each_of_many_heavy_servers_is_started_once(tmp_path: Path) -> None:
    log, heavy = tmp_path / "log", tmp_path / "heavy.py"
    heavy.write_text(HEAVY, "utf-8")
    servers: dict[str, Any] = {}
    for number in range(SERVERS):
        server = faulty()
        args = [str(heavy), str(log), f"s{number}", *server["args"]]
        servers[f"s{number}"] = {**server, "args": args}
    async with aggregator(tmp_path, servers) as client:
        await client.ask("tools/list")
        await until_all(client, "ready")

    started = Counter(log.read_text("ascii").split())
    assert started == {f"s{number}": 1 for number in range(SERVERS)}
