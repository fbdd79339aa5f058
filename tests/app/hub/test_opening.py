"""A door that is handed to a hub in this process, and one that no hub can take."""

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path

import pytest
from anyio import to_thread

from aggregator.app.hub.report import report
from aggregator.cli.environment import Environment
from aggregator.cli.shared_door import open_in_hub
from aggregator.config import Config
from aggregator.entry.shim import ACCEPTED, DOOR, begin
from aggregator.upstream.http.binding import Binding
from aggregator.upstream.http.serving import Access, Listener
from aggregator.upstream.http.site import ALIVE
from tests.app.hub.hub_setup import HubSetup
from tests.app.hub.test_hub import come, hear, running
from tests.patience import PATIENCE


@pytest.fixture
def listener() -> Iterator[Listener]:
    opened = Listener(Access(Binding("127.0.0.1", 0), None))
    yield opened
    opened.close()


def answered(port: int) -> int:
    """Return with what a look at a door is answered."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", ALIVE)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_door_is_open_until_whoever_opened_it_leaves(
    hub_setup: HubSetup, listener: Listener
) -> None:
    hub_setup.write({"servers": {}})
    port = listener.binding.port
    async with running(hub_setup) as hub:
        opener = come(hub_setup, hub, f"{DOOR} {json.dumps(listener.told())}")
        assert await hear(opener) == ACCEPTED
        given = (listener.descriptor, listener.descriptor, 2)
        assert await to_thread.run_sync(begin, opener, given)
        listener.close()

        assert await to_thread.run_sync(answered, port) == 200
        (fleet,) = report(hub.fleets, hub.since, hub.hub_socket.log)["fleets"]
        assert [each["name"] for each in fleet["clients"]] == [
            f"clients over HTTP at 127.0.0.1:{port}"
        ]
        opener.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("platform", "path", "reason"),
    [
        ("darwin", "servers.yaml", "only on Linux"),
        ("linux", "/dev/null", "no regular file"),
        ("linux", "servers.yaml", "cannot be made"),
    ],
)
def test_a_door_that_no_hub_can_take_is_left_to_whoever_opened_it(
    tmp_path: Path, listener: Listener, platform: str, path: str, reason: str
) -> None:
    (tmp_path / "servers.yaml").write_text("servers: {}\n", encoding="utf-8")
    said = StringIO()
    variables = {"XDG_RUNTIME_DIR": str(tmp_path / "gone")}
    environment = Environment(StringIO(), said, variables, tmp_path, platform=platform)

    assert open_in_hub(listener, Config(tmp_path / path), environment) is None
    assert said.getvalue().startswith("not shared: ")
    assert reason in said.getvalue()
    assert listener.descriptor > 0
