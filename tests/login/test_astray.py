"""Where the login to a server must not lead, whoever names it."""

import httpx2
import pytest

from aggregator.downstream.http.endpoint import Address
from aggregator.downstream.http.tokens import carrier, getter, sender
from aggregator.downstream.login.credentials import RenewalError
from aggregator.downstream.login.discovery import astray
from aggregator.downstream.login.renewal import Ask

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
