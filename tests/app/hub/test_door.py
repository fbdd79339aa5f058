"""Clients over HTTP and clients on pipes, served by one hub from one set of servers."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import IO
from urllib.parse import urlsplit

import anyio
import pytest

from tests.app.hub.hub_setup import PROGRAM, ROOT, HubSetup
from tests.cli.shell import FAULTY
from tests.ends import await_ends
from tests.patience import PATIENCE
from tests.peers import ERAS, Era
from tests.soak.web import WebClient

TOKEN = "a-token-of-forty-characters-for-the-tests"  # noqa: S105 - of no use elsewhere


class Door:
    """The process that has opened a door, and where it is."""

    def __init__(self, process: "subprocess.Popen[str]", said: list[str], errors: IO[str]) -> None:
        self.process = process
        self.said = said
        self.errors = errors

    @property
    def url(self) -> str:
        return next(word for word in self.said[-1].split() if word.startswith("http://"))

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def call(self, era: Era, tool: str, **arguments: str) -> str:
        """Call a tool as a client over HTTP."""

        async def ask() -> str:
            client = WebClient(self.url, TOKEN, era)
            async with client.present():
                given = {"name": tool, "arguments": arguments}
                answer = await client.request("tools/call", given)
                return answer["result"]["content"][0]["text"]

        return anyio.run(ask)


@contextmanager
def door(hub_setup: HubSetup, *words: str) -> Generator[Door]:
    """Have a door until the end of the block, at which it is told to close if it is open."""
    command = [sys.executable, "-c", PROGRAM.format(patience=10 * PATIENCE), "serve"]
    command += ["--http", "0", "--shared", "--config", str(hub_setup.config), *words]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**hub_setup.variables, "AGGREGATOR_TOKEN": TOKEN},
        cwd=ROOT,
    )
    assert process.stderr is not None
    with process, process.stderr as errors:
        said: list[str] = []
        for line in errors:
            said.append(line)
            if "serving clients at" in line:
                break
        try:
            yield Door(process, said, errors)
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.mark.parametrize("era", ERAS)
def test_clients_over_http_and_on_pipes_share_one_fleet(hub_setup: HubSetup, era: Era) -> None:
    client = hub_setup.client(era, AGGREGATOR_TOKEN=TOKEN)
    client.call("test__echo", text="hello")
    servers, hubs = hub_setup.servers(), hub_setup.hubs()

    with door(hub_setup) as opened:
        said = [opened.call(each, "test__echo", text=f"hello {each}") for each in ERAS]
        told = hub_setup.run("status").stdout

        assert said == [f"hello {each}" for each in ERAS]
        assert hub_setup.servers() == servers
        assert hub_setup.hubs() == hubs
        assert (
            f"clients over HTTP at 127.0.0.1:{opened.port} (process {opened.process.pid})" in told
        )
    assert opened.process.returncode == 0
    assert client.call("test__echo", text="still here") == "still here"


def test_whoever_closes_a_door_is_told_what_that_waits_for(hub_setup: HubSetup) -> None:
    pipe = hub_setup.directory / "received"
    os.mkfifo(pipe)
    arguments = [str(FAULTY), "ok", "--log", str(pipe)]
    hub_setup.write({"servers": {"test": {"command": sys.executable, "args": arguments}}})
    with (
        pipe.open("r+b", buffering=0) as received,
        door(hub_setup, "--drain", "300s") as opened,
        subprocess.Popen(
            [sys.executable, "-m", "aggregator", "call", "test__wait", "--url", opened.url],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**hub_setup.variables, "AGGREGATOR_TOKEN": TOKEN},
            cwd=ROOT,
        ),
    ):
        assert any(b"tools/call" in line for line in received)
        opened.process.send_signal(signal.SIGINT)
        said = next(line for line in opened.errors if line.startswith("waiting"))
        opened.process.send_signal(signal.SIGINT)

        assert opened.process.wait(PATIENCE) == 128 + signal.SIGINT
    assert said == "waiting up to 300 s for 1 call; Ctrl-C again ends it at once\n"


def test_a_door_starts_the_hub_that_others_join_and_keeps_it(hub_setup: HubSetup) -> None:
    with door(hub_setup) as opened:
        assert opened.call("modern", "test__echo", text="hello") == "hello"
        servers, hubs = hub_setup.servers(), hub_setup.hubs()
        client = hub_setup.client()

        assert client.call("test__echo", text="hello") == "hello"
        assert len(servers) == len(hubs) == 1
        assert (hub_setup.servers(), hub_setup.hubs()) == (servers, hubs)
        assert client.leave() == 0


def test_a_door_whose_hub_has_gone_says_so_and_gives_up_its_port(hub_setup: HubSetup) -> None:
    with door(hub_setup) as opened:
        opened.call("handshake", "test__echo", text="hello")
        (hub,) = hub_setup.hubs()
        hub_setup.run("stop")

        assert opened.process.wait(PATIENCE) == 0
        assert hub not in hub_setup.hubs()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", opened.port))


def test_a_door_whose_hub_is_killed_ends_with_it(hub_setup: HubSetup) -> None:
    """Whoever watches over it is to start it anew."""
    with door(hub_setup) as opened:
        (hub,) = hub_setup.hubs()
        os.kill(hub, signal.SIGKILL)

        assert opened.process.wait(PATIENCE) == 1
    await_ends(hub_setup.servers(), PATIENCE)


def test_whoever_does_not_know_the_token_stays_outside(hub_setup: HubSetup) -> None:
    with door(hub_setup) as opened:
        connection = HTTPConnection("127.0.0.1", opened.port, timeout=PATIENCE)
        connection.request("POST", "/mcp", b"{}", {"Authorization": "Bearer another"})

        assert connection.getresponse().status == 401
        connection.close()


def test_where_there_can_be_no_hub_the_door_serves_by_itself(hub_setup: HubSetup) -> None:
    hub_setup.runtime.rmdir()
    with door(hub_setup) as opened:
        assert "not shared: " in opened.said[0]
        assert opened.call("modern", "test__echo", text="hello") == "hello"
        assert not hub_setup.hubs()


def test_where_people_log_in_the_hub_asks_the_issuer(hub_setup: HubSetup) -> None:
    access = [{"scope": "tools.all", "allow": "*"}]
    issuer = {"issuer": "http://127.0.0.1:9", "audience": "https://tools.example.com/mcp"}
    document = json.loads(hub_setup.config.read_text(encoding="utf-8"))
    hub_setup.write({**document, "http": {**issuer, "access": access}})
    with door(hub_setup) as opened:
        connection = HTTPConnection("127.0.0.1", opened.port, timeout=PATIENCE)
        connection.request("POST", "/mcp", b"{}", {"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        connection.close()

    assert answer.status == 401
    assert "oauth-protected-resource/mcp" in (answer.getheader("www-authenticate") or "")
