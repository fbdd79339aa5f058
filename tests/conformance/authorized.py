"""Our downstream half as the client whose logins the suite tests, and a person who is willing.

`python -m tests.conformance.authorized URL` puts the aggregator in front of the suite's own
server. Where that needs a login, what `aggregator login` does is done, with a browser that goes
where it is sent; where a call needs more rights, the same with the scope that the error names.
"""

import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import httpx2

from aggregator.app.life import IDENTITY
from aggregator.catalog import Failed, Pending
from aggregator.config import Config, ServerConfig, Settings
from aggregator.config.oauth import OAuth
from aggregator.downstream.http.reach import reach
from aggregator.downstream.login.callback import Callback, LoginError
from aggregator.downstream.login.flow import log_in
from aggregator.downstream.login.place import Logins
from aggregator.errors import ERROR_META
from aggregator.fleet.fleet import Fleet
from aggregator.memory import NoMemory
from aggregator.names import ServerName
from aggregator.upstream.client_memory import ClientMemory
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.server import Upstream
from tests.raw import Json, RawClient, raw_client

NAME = ServerName("suite")
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""What the suite takes for a document that says who we are."""
MAX_LOGINS = 2
"""Times that even a willing person logs in."""


class Person:
    """Logs in whenever asked, but not for ever."""

    def __init__(self, server: ServerConfig, logins: Logins) -> None:
        self._server = server
        self._logins = logins
        self._times = 0

    async def log_in(self, scope: str = "") -> bool:
        """Log in; say whether that came about."""
        self._times += 1
        if self._times > MAX_LOGINS:
            return False
        met: list[Callback] = []

        async def show(address: str, _issuer: str) -> None:
            async with httpx2.AsyncClient(trust_env=False) as browser:
                met[0].paste((await browser.get(address)).headers["location"])

        try:
            await log_in(
                self._server,
                self._logins.file(self._server),
                show=show,
                meet=met.append,
                scopes=tuple(scope.split()),
            )
        except LoginError as error:
            print(f"not logged in: {error}", file=sys.stderr)  # noqa: T201 - a command
            return False
        return True


async def main(url: str) -> None:
    """Use everything there is behind an address, with whatever login that takes."""
    with tempfile.TemporaryDirectory() as directory:
        logins = Logins(Path(directory) / "logins", Path(directory) / "servers.yaml")
        server = ServerConfig(NAME, "", type="http", url=url, oauth=configured())
        person = Person(server, logins)
        config = Config(logins.config, {NAME: server}, Settings(surface="full"))
        connected = ConnectedClients()
        fleet = Fleet(
            config, connect=lambda each: reach(each, logins), identity=IDENTITY, events=connected
        )
        upstream = Upstream(fleet, connected, ClientMemory(NoMemory(), config.path))
        async with anyio.create_task_group() as group:
            group.start_soon(fleet.run)
            group.start_soon(upstream.announce_changes)
            with anyio.fail_after(60):
                await settled(upstream, person)
            async with raw_client(upstream, "handshake", {}) as client:
                await use(client, person)
            group.cancel_scope.cancel()


def configured() -> OAuth:
    """Return what the suite says we are registered as."""
    context: Json = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    grants = os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/client-credentials")
    key = context.get("private_key_pem")
    return OAuth(
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        private_key=None if key is None else kept(key),
        client_metadata_url=DOCUMENT,
        grant="client_credentials" if grants else "authorization_code",
    )


def kept(key: str) -> Path:
    """Put a key where `privateKey` can name it."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as file:
        file.write(key)
    return Path(file.name)


async def settled(upstream: Upstream, person: Person) -> None:
    """Wait until the server has been listed, logging in where that is asked for."""
    fleet = upstream.fleet
    while True:
        state = fleet.now.catalog.servers[NAME]
        if isinstance(state, Failed):
            if state.login is None or not await person.log_in(scope_in(state.login)):
                return
            fleet.server(NAME).wake()
            await fleet.changed.wait()
        elif isinstance(state, Pending) and state.phase == "starting":
            await fleet.changed.wait()
        else:
            # It is there, or has said what it thinks of us: the suite has seen enough.
            return


async def use(client: RawClient, person: Person) -> None:
    """Call every tool, logging in for more where an error says so."""
    for tool in (await client.request("tools/list"))["tools"]:
        call: dict[str, Any] = {"name": tool["name"], "arguments": {}}
        result = await client.request("tools/call", call)
        while (scope := wanted(result)) is not None and await person.log_in(scope):
            result = await client.request("tools/call", call)


def wanted(result: Json) -> str | None:
    """Return the scope that a call needs, by what its error tells programs."""
    login = result.get("_meta", {}).get(ERROR_META, {}).get("login")
    if login is None:
        return None
    return scope_in(login["command"])


def scope_in(command: str) -> str:
    """Return the scope that a command asks for."""
    words = shlex.split(command)
    return words[words.index("--scope") + 1] if "--scope" in words else ""


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
