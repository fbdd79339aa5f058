"""The pages on this machine: who may open them, and how often."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest

from aggregator.downstream.login.callback import Callback, open_callback
from aggregator.downstream.login.page import invitation
from tests.loopback.door import NO_CERTIFICATES

pytestmark = pytest.mark.anyio

ADDRESS = "https://auth.example.com/authorize?state=st&x=%3Cy%3E"


@asynccontextmanager
async def opened(server: str = "web") -> AsyncGenerator[tuple[Callback, httpx2.AsyncClient, str]]:
    """Have a page and somebody who can open it."""
    invited = invitation(server, "https://mcp.example.com/mcp", ADDRESS, "https://id.example.com")
    async with open_callback("web", None) as callback:
        callback.expect(ADDRESS)
        page = callback.invite(invited)
        assert page is not None
        async with httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES) as browser:
            yield callback, browser, page


async def test_a_page_leads_on_once() -> None:
    async with opened("<b>web") as (_callback, browser, page):
        looked = await browser.get(page)
        assert (looked.status_code, (await browser.head(page)).status_code) == (200, 405)
        assert "&lt;b&gt;web is the MCP server at mcp.example.com" in looked.text
        assert "by auth.example.com in the name of https://id.example.com." in looked.text
        assert ADDRESS not in looked.text
        led = await browser.post(page)
        assert (led.status_code, led.headers["location"]) == (303, ADDRESS)
        for again in (await browser.post(page), await browser.get(page)):
            assert (again.status_code, "location" in again.headers) == (410, False)
            assert "This page has been used" in again.text


@pytest.mark.parametrize("host", [b"evil.example", b"127.0.0.1.evil.example", b"[", b"\xff"])
async def test_a_name_that_leads_here_is_not_ours(host: bytes) -> None:
    """A page elsewhere can have its own name lead to this machine, and then read what is here."""
    async with opened() as (callback, browser, page):
        for method, target in (("GET", page), ("POST", page), ("GET", f"{callback.uri}?state=st")):
            refused = await browser.request(method, target, headers=[(b"host", host)])
            assert refused.status_code == 421
        assert (await browser.post(page)).status_code == 303


async def test_another_page_cannot_press_the_button() -> None:
    async with opened() as (_callback, browser, page):
        for site in ("cross-site", "same-site", "none"):
            refused = await browser.post(page, headers={"sec-fetch-site": site})
            assert refused.status_code == 403
        led = await browser.post(page, headers={"sec-fetch-site": "same-origin"})
        assert led.status_code == 303


async def test_nothing_else_is_here() -> None:
    async with opened() as (callback, browser, page):
        for method, target, status in (
            ("GET", f"{page}x", 410),
            ("GET", callback.uri.replace("/callback", "/"), 404),
            ("POST", f"{callback.uri}?code=c&state=st", 404),
            ("DELETE", page, 405),
            ("GET", f"{callback.uri}?code=c&state=other", 400),
        ):
            assert (await browser.request(method, target)).status_code == status
        assert (await browser.get(f"{callback.uri}?code=c&state=st")).status_code == 200
        assert (await browser.get(f"{callback.uri}?code=d&state=st")).status_code == 400
        assert (await callback.returned()).code == "c"


async def test_where_a_person_comes_back_elsewhere_there_is_no_page() -> None:
    async with open_callback("web", "https://elsewhere.example.com/callback") as callback:
        assert callback.invite(invitation("web", "https://m", ADDRESS, "https://i")) is None
