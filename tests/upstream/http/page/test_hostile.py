"""Servers that try to run script in the page, and what a browser may give away of the token."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from playwright.async_api import Browser, Page, expect

from aggregator.downstream.transport import Transport
from aggregator.names import ServerName
from aggregator.records.events import Answer, CallEnded, LoginNeeded, Origin, Searched
from tests.loopback.door import door
from tests.peers import Context, Peer, connect_to, failing, ready
from tests.upstream.http.page.looking import TABS, go, looking

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

RUN = "window.ran=(window.ran||0)+1"
EVIL = (
    f'<img src=x onerror="{RUN}"><script>{RUN}</script><svg onload="{RUN}">'
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>"
    f'<a href="javascript:{RUN}">click</a>"\'`${{{RUN}}}</textarea></pre></style>'
)
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


class Hostile(Peer):
    """Says the same everywhere."""

    def __init__(self) -> None:
        super().__init__(
            take={
                "title": EVIL,
                "description": EVIL,
                "annotations": {"readOnlyHint": True, "title": EVIL},
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        EVIL: {"type": "string", "description": EVIL, "default": EVIL},
                        "__proto__": {"enum": [EVIL], "description": EVIL},
                        "constructor": {"type": "string", "format": EVIL},
                    },
                },
            }
        )
        self.instructions = EVIL
        self.add_request_handler("tools/call", types.CallToolRequestParams, self._answer)

    async def _answer(self, _ctx: Context, _params: Any) -> dict[str, Any]:
        svg = f"<svg xmlns='http://www.w3.org/2000/svg' onload='{RUN}'/>"
        return {
            "resultType": "complete",
            "content": [
                {"type": "text", "text": EVIL},
                {"type": "image", "mimeType": "image/png", "data": PICTURE},
                {"type": "image", "mimeType": "image/svg+xml", "data": svg},
                {"type": "image", "mimeType": f'image/png" onerror="{RUN}', "data": "x"},
                {"type": "resource_link", "uri": f"javascript:{RUN}", "name": EVIL},
            ],
            "structuredContent": {EVIL: EVIL},
        }


def dying() -> Any:
    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        async with failing(ConnectionRefusedError(EVIL))() as transport:
            yield transport

    return connect


async def ran(page: Page) -> object:
    return await page.evaluate("window.ran")


async def test_nothing_that_a_server_or_a_client_says_is_run(
    browser: Browser, tmp_path: Path
) -> None:
    servers = {"evil": connect_to(Hostile()), "gone": dying()}
    about: Any = {"evil": {"description": EVIL}, "gone": {"description": EVIL}}
    async with door(servers, tmp_path, **about) as site, looking(browser, site) as (page, seen):
        stream, somebody = site.upstream.fleet.stream, Origin(EVIL, EVIL)
        await expect(page.locator("[data-server=evil] .pill").first).to_have_text("ready")
        stream.tell(Searched(1.0, somebody, (Answer(EVIL, (EVIL,)),), 0, 10, 4, 0.1))
        stream.tell(CallEnded(1.0, somebody, 1, "", EVIL, EVIL, EVIL, 0.1))
        stream.tell(LoginNeeded(1.0, ServerName(EVIL), EVIL))

        for server in ("evil", "gone"):
            await page.locator(f"[data-server={server}] summary").click()
        await expect(page.locator("[data-server=gone] .facts")).to_contain_text("<img src=x")
        await expect(page.locator("[data-server=evil] .about")).to_contain_text("<img src=x")
        await go(page, "tools")
        await page.locator(".row").first.click()
        await expect(page.locator(".detail .prose")).to_contain_text("<script>")
        await page.locator(".detail .raw summary").click()
        await page.get_by_label("Filter tools").fill(EVIL)
        await go(page, "search")
        await page.locator("#query").fill(f"evil {EVIL}"[:190])
        await page.keyboard.press("Enter")
        await expect(page.locator(".reads pre")).to_contain_text("evil")
        await page.goto(f"{site.origin}/#try/evil__take")
        await expect(page.locator(".field")).to_have_count(3)
        await page.locator("#as-json").check()
        await page.locator("#as-json").uncheck()
        await page.locator("#panel-try").get_by_role("button", name="Call").click()
        await expect(page.locator(".said")).to_contain_text("<iframe")
        await expect(page.locator("img.picture")).to_have_count(1)
        for summary in await page.locator(".result summary").all():
            await summary.click()
        await go(page, "activity")
        await expect(page.locator(".activity")).to_contain_text("<img src=x")
        await go(page, "saved")
        await page.goto(f"{site.origin}/#tools/{EVIL}")
        await expect(page.locator(".detail")).to_contain_text("no such tool")

        assert await ran(page) is None
        assert await page.locator("iframe, body script, a[href^=javascript]").count() == 0
        assert await page.locator("[onerror], [onload]").count() == 0
        assert await page.evaluate("({}).description") is None
        assert all(
            request.resource_type != "image"
            or "icon.svg" in request.url
            or request.url.startswith("data:image/png")
            for request in seen.requests
        )


async def test_markup_cannot_be_made_of_text_even_by_mistake(
    browser: Browser, tmp_path: Path
) -> None:
    """What the policy is for: the page's own scripts could not do it if they tried."""
    async with door({}, tmp_path) as site, looking(browser, site) as (page, _):
        refused = await page.evaluate(
            "() => { try { document.body.innerHTML = '<b>x</b>'; return false } "
            "catch (error) { return error instanceof TypeError } }"
        )
        blocked = await page.evaluate(
            "() => fetch('https://example.com/').then(() => false, () => true)"
        )

    assert refused
    assert blocked


async def test_the_token_is_in_no_address_no_log_and_no_referrer(
    browser: Browser, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with (
            door({"notes": connect_to(Peer("add"))}, tmp_path) as site,
            looking(browser, site) as (page, seen),
        ):
            await ready(site.upstream)
            await expect(page.locator("[data-server=notes]")).to_be_visible()
            for tab in TABS:
                await go(page, tab)
            assert site.token not in page.url
            assert await page.evaluate("history.length") <= len(TABS) + 2
            kept = await page.evaluate(
                "[JSON.stringify(sessionStorage), JSON.stringify(localStorage)]"
            )
            headers = [await request.all_headers() for request in seen.requests]

    assert site.token in kept[0]
    assert site.token not in kept[1]
    assert [url for url in seen.addresses[1:] if site.token in url.partition("#")[0]] == []
    assert [each for each in headers if "referer" in each] == []
    shown = {name for each in headers for name, value in each.items() if site.token in value}
    assert shown == {"authorization"}
    assert site.token not in caplog.text


async def test_a_code_in_the_address_is_exchanged_for_the_token_and_taken_out(
    browser: Browser, tmp_path: Path
) -> None:
    async with door({"notes": connect_to(Peer("add"))}, tmp_path) as site:
        async with httpx2.AsyncClient(headers=site.credentials, trust_env=False) as http:
            code = (await http.post(f"{site.origin}/code")).json()["code"]
        address = f"{site.origin}/#code={code}"
        async with looking(browser, site, address) as (page, _):
            await expect(page.locator("[data-server=notes]")).to_be_visible()
            assert code not in page.url
        async with looking(browser, site, address) as (page, _):
            await expect(page.locator("dialog")).to_contain_text("has to show the token")


async def test_without_a_token_it_is_asked_for_until_it_is_the_right_one(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        door({"notes": connect_to(Peer("add"))}, tmp_path) as site,
        looking(browser, site, f"{site.origin}/") as (page, _),
    ):
        dialog = page.locator("dialog")
        await expect(dialog).to_contain_text("has to show the token")
        await page.locator("#token").fill("0" * 40)
        await page.keyboard.press("Enter")
        await expect(dialog).to_contain_text("not the right one")
        await page.locator("#token").fill(site.token)
        await page.keyboard.press("Enter")
        await expect(page.locator("[data-server=notes]")).to_be_visible()
        await expect(dialog).not_to_be_visible()
