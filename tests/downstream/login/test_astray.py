"""Where the login to a server must not lead, whoever names it."""

import socket
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from aggregator.downstream.http.address import Address
from aggregator.downstream.http.tokens import carrier, getter, sender
from aggregator.downstream.login.credentials import RenewalError, Send
from aggregator.downstream.login.discovery import astray
from aggregator.downstream.login.renewal import Ask
from tests.loopback.web import listening
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

FAR, HERE = "https://mcp.example.com/mcp", "http://127.0.0.1:8000/mcp"


@pytest.mark.parametrize(
    ("url", "server", "wrong"),
    [
        ("https://auth.example.com/token", FAR, None),
        ("https://10.0.0.5/token", FAR, None),
        ("http://127.0.0.1:9000/token", HERE, None),
        ("http://auth.example.com/token", HERE, None),
        ("https://localhost:9000/token", "http://localhost/mcp", None),
        ("http://auth.example.com/token", FAR, "not encrypted"),
        ("https://127.0.0.1:9000/token", FAR, "on this machine"),
        ("https://[::1]/token", FAR, "on this machine"),
        ("https://2130706433/token", FAR, "on this machine"),
        ("https://0x7f.1/token", FAR, "on this machine"),
        ("https://[::ffff:127.0.0.1]/token", FAR, "on this machine"),
        ("https://0.0.0.0/token", FAR, "on this machine"),
        ("https://169.254.169.254/latest/meta-data", FAR, "on this machine"),
        ("https://localhost/token", FAR, "on this machine"),
        ("https://x.LOCALHOST./token", FAR, "on this machine"),
        ("https://accounts.example.com@evil.example/token", FAR, "before its host"),
        ("javascript:alert(1)", FAR, "no address of the web"),
        ("file:///etc/passwd", HERE, "no address of the web"),
    ],
)
def test_a_server_elsewhere_has_no_business_here(url: str, server: str, wrong: str | None) -> None:
    found = astray(url, server)

    assert (found is None) is (wrong is None)
    assert (wrong or "") in (found or "")


async def test_nothing_is_sent_where_a_login_must_not_lead() -> None:
    address = Address(url=FAR)
    evil = "https://169.254.169.254/token"
    for sent in (
        carrier(address)(httpx2.Request("GET", evil)),
        getter(address)(evil),
        sender(address)(Ask(evil, {}, {})),
    ):
        with pytest.raises(RenewalError, match=r"leads to .* which is on this machine"):
            await sent


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every name lead to this machine."""
    look_up = socket.getaddrinfo

    def lead_here(_host: object, *rest: Any, **options: Any) -> Any:
        return look_up("127.0.0.1", *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lead_here)


async def test_a_name_that_leads_to_this_machine_is_told_nothing(names: None) -> None:
    """It may have led elsewhere when somebody looked it up: what counts is the connection."""
    with listening() as sock:
        evil = f"https://auth.example.com:{sock.getsockname()[1]}/token"
        with pytest.raises(RenewalError, match=r"leads to .* which is on this machine"):
            await sender(Address(url=FAR))(Ask(evil, {}, {"code": "hunter22"}))
        connection, _ = sock.accept()
        with connection:
            connection.settimeout(PATIENCE)
            assert connection.recv(1) == b""


async def test_a_server_may_be_its_own_authorisation_server_wherever_it_is(names: None) -> None:
    with listening() as sock:
        port = sock.getsockname()[1]
        address = Address(url=f"https://mcp.example.com:{port}/mcp")
        async with anyio.create_task_group() as group:
            group.start_soon(_fail, sender(address), f"https://mcp.example.com:{port}/token")
            connection, _ = await anyio.to_thread.run_sync(sock.accept)
            with connection:
                connection.settimeout(PATIENCE)
                # It is greeted, as TLS begins.
                assert await anyio.to_thread.run_sync(connection.recv, 1) == b"\x16"


async def _fail(send: Send, url: str) -> None:
    with pytest.raises(RenewalError, match="its authorisation server"):
        await send(Ask(url, {}, {}))
