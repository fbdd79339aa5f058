"""Servers behind TLS: who they are is checked against the right certificates, and only then."""

import socket
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from anyio import to_thread

from aggregator.catalog import Failed, Pending, Ready
from aggregator.config import ServerConfig, parse_config
from aggregator.downstream.http.address import Address
from aggregator.downstream.http.endpoint import open_endpoint
from aggregator.downstream.http.reach import address, reach
from aggregator.downstream.http.tokens import getter
from aggregator.downstream.login.credentials import RenewalError
from aggregator.fleet.fleet import Fleet
from aggregator.names import ServerName
from tests.loopback.scripted import Scripted
from tests.loopback.web import QuietServer, listening
from tests.patience import PATIENCE
from tests.peers import aggregating

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

WEB = ServerName("web")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that nobody else trusts, with its key beside it."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ("-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", str(path.with_suffix(".key")), "-out", str(path))
    subprocess.run([*make.split(), *names, *files], check=True, capture_output=True)
    return path


@asynccontextmanager
async def secure(certificate: Path, **options: Any) -> AsyncGenerator[str, None]:
    """Serve a scripted server behind TLS; gives its URL."""
    sock = listening()
    config = uvicorn.Config(
        Scripted(),
        lifespan="off",
        log_config=None,
        ws="none",
        ssl_certfile=certificate,
        ssl_keyfile=certificate.with_suffix(".key"),
        **options,
    )
    server = QuietServer(config)
    with sock:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [sock])
            try:
                yield f"https://127.0.0.1:{sock.getsockname()[1]}/mcp"
            finally:
                server.should_exit = server.force_exit = True


async def outcome(url: str, **options: Any) -> str:
    """Return `ready`, or why not."""
    server = ServerConfig(WEB, "web", type="http", url=url, **options)
    async with aggregating({"web": reach(server)}) as upstream:
        return await _settled(upstream.fleet)


async def _settled(fleet: Fleet) -> str:
    while True:
        changed, state = fleet.changed, fleet.now.catalog.servers[WEB]
        if isinstance(state, Ready):
            return "ready"
        if isinstance(state, Pending | Failed) and state.reason:
            return state.reason
        with anyio.fail_after(PATIENCE):
            await changed.wait()


async def test_a_server_that_nobody_vouches_for_is_not_spoken_to(certificate: Path) -> None:
    async with secure(certificate) as url:
        reason = await outcome(url)

    assert "CERTIFICATE_VERIFY_FAILED" in reason


async def test_a_server_is_known_by_the_certificates_of_its_entry(certificate: Path) -> None:
    async with secure(certificate) as url:
        assert await outcome(url, ca_file=certificate) == "ready"


async def test_who_a_server_is_can_be_left_unchecked(certificate: Path) -> None:
    async with secure(certificate) as url:
        assert await outcome(url, verify=False) == "ready"


async def test_we_can_show_a_certificate_of_our_own(certificate: Path) -> None:
    key = certificate.with_suffix(".key")
    demand = {"ssl_cert_reqs": 2, "ssl_ca_certs": str(certificate)}
    async with secure(certificate, **demand) as url:
        without = await outcome(url, ca_file=certificate)
        shown = await outcome(url, ca_file=certificate, client_cert=certificate, client_key=key)

    assert without != "ready"
    assert shown == "ready"


async def test_a_missing_certificate_is_for_the_configuration_to_mend(tmp_path: Path) -> None:
    reason = await outcome("https://127.0.0.1:1/mcp", ca_file=tmp_path / "none.pem")

    assert "No such file" in reason


def test_the_configuration_says_how_to_reach_a_server(tmp_path: Path) -> None:
    text = (
        "servers:\n  web:\n    url: https://example.com/mcp\n    caFile: ca.pem\n"
        "    verify: false\n    clientCert: me.pem\n    clientKey: me.key\n"
        "    proxy: http://proxy.example.com:3128\n"
    )
    server = parse_config(text, tmp_path / "servers.yaml", {}).servers[WEB]

    assert (server.ca_file, server.verify) == (tmp_path / "ca.pem", False)
    assert (server.client_cert, server.client_key) == (tmp_path / "me.pem", tmp_path / "me.key")
    assert server.proxy == "http://proxy.example.com:3128"


async def test_who_does_not_check_a_server_still_checks_who_is_asked_for_a_login(
    certificate: Path,
) -> None:
    """Whoever answers in the place of an authorisation server is given passwords and secrets."""
    async with secure(certificate) as url:
        elsewhere = Address("https://127.0.0.1:1/mcp", verify=False)
        with pytest.raises(RenewalError, match="CERTIFICATE_VERIFY_FAILED"):
            await getter(elsewhere)(url)

        # Its own address is the one that nobody wants to have checked; or somebody says so.
        assert (await getter(Address(url, verify=False))(url)).status
        assert (await getter(replace(elsewhere, verify_login=False))(url)).status


def test_what_is_not_checked_is_said_of_each() -> None:
    text = "servers: {web: {url: 'https://x.example/mcp', verify: false, oauth: {%s}}}"
    lax = parse_config(text % "verify: false", Path("servers.yaml"), {}).servers[WEB]
    strict = parse_config(text % "clientId: me", Path("servers.yaml"), {}).servers[WEB]

    assert [(each.verify, each.verify_login) for each in map(address, (lax, strict))] == [
        (False, False),
        (False, True),
    ]


class Planting:
    """A server that sends more than it was asked for in one go, cut where that is hard to see."""

    def __init__(self, certificate: Path) -> None:
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        # Or what is said of them stands between what is read.
        self._context.num_tickets = 0
        self.visits = 0

    def serve(self, listener: socket.socket) -> None:
        """Answer two connections, the first with one answer too many."""
        first, second = said(b"1" * (FIRST_BYTES - len(said(b"")) - 4)), said(b"planted")
        for parts in ((first, second), (said(b"2"),)):
            connection, _ = listener.accept()
            self.visits += 1
            with connection:
                self._answer(connection, parts)

    def _answer(self, connection: socket.socket, parts: tuple[bytes, ...]) -> None:
        inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        encrypted = self._context.wrap_bio(inward, outward, server_side=True)
        for step in (encrypted.do_handshake, encrypted.read):
            while True:
                with suppress(ssl.SSLWantReadError):
                    step()
                    break
                connection.sendall(outward.read())
                inward.write(connection.recv(65536))
        for part in parts:
            encrypted.write(part)
        connection.sendall(outward.read())
        while inward.write(connection.recv(65536)):
            with suppress(ssl.SSLWantReadError):
                encrypted.read()
                # It was kept, and is used for the next.
                break


def said(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


FIRST_BYTES = 65536 - 4 * 22
"""Bytes that are as many as TLS takes at once, with what it adds to each of four parts."""


async def test_what_comes_behind_a_response_is_not_read_as_the_next(certificate: Path) -> None:
    server, bodies = Planting(certificate), list[bytes]()
    with listening() as listener:
        where = Address(f"https://127.0.0.1:{listener.getsockname()[1]}/mcp", ca_file=certificate)
        async with anyio.create_task_group() as group, open_endpoint(where) as endpoint:
            group.start_soon(
                partial(to_thread.run_sync, abandon_on_cancel=True), server.serve, listener
            )
            with anyio.fail_after(PATIENCE):
                for _ in range(2):
                    async with endpoint.send("POST", {"accept": "*/*"}, b"{}") as response:
                        bodies.append(await endpoint.read(response))
            group.cancel_scope.cancel()

    assert len(bodies[0]) == FIRST_BYTES - len(said(b"")) - 4
    assert bodies[1] == b"2"
    assert server.visits == 2
