"""A door behind TLS: its certificate, files that cannot be used, and a change while it is open."""

import re
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import httpx2
import pytest

from aggregator.upstream.http.binding import BindingError, parse_binding
from aggregator.upstream.http.tls import Certificate
from tests.app.hub.conftest import hub_setup
from tests.app.hub.hub_setup import HubSetup
from tests.app.hub.test_door import TOKEN
from tests.app.hub.test_door import door as shared_door
from tests.cli.shell import Shell
from tests.loopback.door import door
from tests.loops import LOOPS
from tests.patience import PATIENCE
from tests.peers import Era, Peer, connect_to, ready, text_of
from tests.upstream.http.certificates import make, trusting

__all__ = ["hub_setup"]


def of(chain: Path) -> Certificate:
    return Certificate(chain, chain.with_suffix(".key"))


def shown(response: httpx2.Response) -> str:
    """Return whose certificate a response came with."""
    stream = response.extensions["network_stream"]
    subject = stream.get_extra_info("ssl_object").getpeercert()["subject"]
    return dict(each[0] for each in subject)["commonName"]


@pytest.mark.anyio
@pytest.mark.usefixtures("parser")
async def test_clients_of_both_eras_come_by_tls(client_era: Era, tmp_path: Path) -> None:
    chain = make(tmp_path, "one")
    outside = {"certificate": of(chain)}
    async with door({"a": connect_to(Peer("go"))}, tmp_path, outside=outside) as opened:
        await ready(opened.upstream)
        assert opened.url.startswith("https://127.0.0.1:")
        async with opened.client(client_era, verify=trusting(chain)) as client:
            assert text_of(await client.call_tool("a__go", {})) == "go: {}"
        with pytest.raises(httpx2.HTTPError):
            await _alive(opened.url.replace("https", "http"), trusting(chain))
        with pytest.raises(httpx2.ConnectError):
            await _alive(opened.url, trusting(make(tmp_path, "other")))


async def _alive(url: str, context: ssl.SSLContext) -> int:
    async with httpx2.AsyncClient(trust_env=False, verify=context, timeout=PATIENCE) as http:
        return (await http.get(url.replace("/mcp", "/healthz"))).status_code


@pytest.mark.anyio
@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("anyio_backend", LOOPS)
async def test_a_client_that_shakes_hands_at_once_is_let_in(tmp_path: Path) -> None:
    chain = make(tmp_path, "one")
    context = trusting(chain)
    async with door({}, tmp_path, outside={"certificate": of(chain)}) as opened:
        url = httpx2.URL(opened.url)

        def ask() -> bytes:
            """Ask as a client of another process does, which nothing of ours slows down."""
            head = b"GET /healthz HTTP/1.1\r\nhost: %b\r\n\r\n" % url.netloc
            address = (url.host, url.port or 0)
            with (
                socket.create_connection(address, PATIENCE) as plain,
                context.wrap_socket(plain, server_hostname=url.host) as stream,
            ):
                stream.sendall(head)
                return stream.recv(1024)

        for _ in range(20):
            answer = await anyio.to_thread.run_sync(ask)
            assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.anyio
async def test_a_new_certificate_is_shown_and_no_connection_is_lost(tmp_path: Path) -> None:
    chain, later = make(tmp_path, "one"), make(tmp_path, "two")
    context, certificate = trusting(chain, later), of(chain)
    async with door({}, tmp_path, outside={"certificate": certificate}) as opened:
        url = opened.url.replace("/mcp", "/healthz")
        async with httpx2.AsyncClient(trust_env=False, verify=context, timeout=PATIENCE) as old:
            assert shown(await old.get(url)) == "one"

            later.replace(chain)
            certificate.look()
            # The key is not there yet: nothing changes until both belong together.
            async with httpx2.AsyncClient(trust_env=False, verify=context) as between:
                assert shown(await between.get(url)) == "one"
            later.with_suffix(".key").replace(chain.with_suffix(".key"))
            certificate.look()

            async with httpx2.AsyncClient(trust_env=False, verify=context) as new:
                assert shown(await new.get(url)) == "two"
            assert shown(await old.get(url)) == "one"


HURRY = 0.2
"""Seconds that a client may take here."""


@pytest.mark.anyio
@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("anyio_backend", LOOPS)
@pytest.mark.parametrize("said", [b"", b"\x16\x03", b"GET / HTTP/1.1\r\n\r\n"])
async def test_who_does_not_shake_hands_is_left(said: bytes, tmp_path: Path) -> None:
    outside = {"certificate": of(make(tmp_path, "one"))}
    async with door({}, tmp_path, patience=HURRY, outside=outside) as opened:
        port = httpx2.URL(opened.url).port or 0
        with anyio.fail_after(PATIENCE):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(said)
                with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while True:
                        await stream.receive()


def _missing(directory: Path) -> Certificate:
    return Certificate(directory / "none.pem")


def _mismatched(directory: Path) -> Certificate:
    one, two = make(directory, "one"), make(directory, "two")
    return Certificate(one, two.with_suffix(".key"))


def _encrypted(directory: Path) -> Certificate:
    return of(make(directory, "one", "-passout", "pass:secret"))


def _swapped(directory: Path) -> Certificate:
    one = make(directory, "one")
    return Certificate(one.with_suffix(".key"), one)


def _without_key(directory: Path) -> Certificate:
    return Certificate(make(directory, "one"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (_missing, "none.pem` cannot be read: no such file"),
        (_mismatched, "do not belong together"),
        (_encrypted, "is encrypted, and nobody is here to type its password"),
        (_swapped, "is no certificate in PEM form"),
        (_without_key, "does not hold a certificate and its key"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_a_sentence(
    given: Callable[[Path], Certificate], said: str, tmp_path: Path
) -> None:
    with pytest.raises(BindingError, match=re.escape(said)) as raised:
        given(tmp_path)

    assert raised.value.hint


def test_an_address_says_whether_it_is_secured() -> None:
    assert parse_binding("https://127.0.0.1:1/mcp", is_secure=True).port == 1
    for text, is_secure in (("https://127.0.0.1:1", False), ("http://127.0.0.1:1", True)):
        with pytest.raises(BindingError, match="there is only"):
            parse_binding(text, is_secure=is_secure)


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "servers.yaml").write_text("servers: {}\n")
    shell = Shell(tmp_path, tmp_path)

    alone = shell.run("serve", "--http", "0", "--tls-key", "x")
    nothing = shell.run("serve", "--http", "0", "--tls-cert", "none.pem")
    stdio = shell.run("serve", "--tls-cert", "none.pem")

    assert (alone.status, nothing.status, stdio.status) == (2, 1, 2)
    assert "`--tls-key` is of use only with `--tls-cert`" in alone.err
    assert "cannot be read: no such file" in nothing.err
    assert "`--tls-cert` is of use only with `--http`" in stdio.err


@pytest.mark.slow
def test_a_hub_serves_a_door_behind_tls(hub_setup: HubSetup, tmp_path: Path) -> None:
    chain = make(tmp_path, "one")
    words = ("--tls-cert", str(chain), "--tls-key", str(chain.with_suffix(".key")))
    with shared_door(hub_setup, *words) as opened:
        url = re.findall(r"https://\S+", opened.said[-1])[0]
        answer = httpx2.get(
            url.replace("/mcp", "/healthz"),
            headers={"authorization": f"Bearer {TOKEN}"},
            verify=trusting(chain),
            trust_env=False,
        )

    assert answer.json() == {"status": "alive"}
