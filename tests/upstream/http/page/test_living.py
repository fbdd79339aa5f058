"""A page that is looked at for long: servers come and go, and so does the aggregator itself."""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Page, expect

from aggregator.downstream.transport import Transport
from aggregator.upstream.http.binding import Binding, BindingError, listen
from tests.loopback.door import door
from tests.peers import Mortal, Peer, connect_to, ready
from tests.upstream.http.page.looking import TABS, go, looking

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MANY = 10_000
PHONE = {"width": 390, "height": 780}


class Held:
    """A server that is there once, and again only when it is let."""

    def __init__(self) -> None:
        self.may_return = anyio.Event()
        self._times = 0
        self.mortal = Mortal(self._connect)

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[Transport, None]:
        self._times += 1
        if self._times > 1:
            await self.may_return.wait()
        async with connect_to(Peer("add"))() as transport:
            yield transport


def free_port() -> int:
    """Return a port that no connection is given by chance."""
    while True:
        port = random.randrange(20_000, 30_000)  # noqa: S311 - no secret
        try:
            listen(Binding("127.0.0.1", port)).close()
        except BindingError:
            continue
        return port


async def test_a_server_dies_and_returns_while_one_looks(browser: Browser, tmp_path: Path) -> None:
    held = Held()
    async with (
        door({"notes": held.mortal}, tmp_path) as site,
        looking(browser, site) as (page, _),
    ):
        state = page.locator("[data-server=notes] .pill").first
        await expect(state).to_have_text("ready")
        await page.locator("[data-server=notes] summary").click()
        held.mortal.cut()
        await expect(state).not_to_have_text("ready")
        await expect(page.locator("[data-server=notes] .state")).to_contain_text("pending")
        held.may_return.set()
        await expect(state).to_have_text("ready")
        await go(page, "activity")
        await expect(
            page.locator(".activity li").filter(has_text="was pending").first
        ).to_be_visible()


async def test_tools_that_come_later_appear_by_themselves(browser: Browser, tmp_path: Path) -> None:
    peer = Peer("add")
    async with door({"notes": connect_to(peer)}, tmp_path) as site:
        async with looking(browser, site) as (page, _):
            await ready(site.upstream)
            await go(page, "tools")
            await expect(page.locator(".row")).to_have_count(1)
            await peer.change(remove={"description": "Remove a note"})
            await expect(page.locator(".row")).to_have_count(2)


async def test_the_page_comes_back_by_itself_after_a_restart(
    browser: Browser, tmp_path: Path
) -> None:
    port = free_port()
    async with door({"old": connect_to(Peer("add"))}, tmp_path, port=port) as site:
        address = f"{site.origin}/#token={site.token}"
    async with door({"old": connect_to(Peer("add"))}, tmp_path, port=port) as site:
        looked = looking(browser, site, address)
        page, _ = await looked.__aenter__()
        await expect(page.locator("[data-server=old]")).to_be_visible()
    await expect(page.locator("#notice")).to_contain_text("does not answer")
    await expect(page.locator("#link")).to_have_text("Away")
    async with door({"new": connect_to(Peer("add"))}, tmp_path, port=port):
        await expect(page.locator("[data-server=new] .pill").first).to_have_text("ready")
        await expect(page.locator("[data-server=old]")).to_have_count(0)
        await expect(page.locator("#notice")).not_to_be_visible()
        await looked.__aexit__(None, None, None)


async def test_ten_thousand_tools_are_drawn_a_screen_at_a_time(
    browser: Browser, tmp_path: Path
) -> None:
    tools: dict[str, Any] = {
        f"tool_{number:05}": {"description": f"Does thing {number} of many"}
        for number in range(MANY // 2)
    }
    servers = {name: connect_to(Peer(**tools)) for name in ("some", "many")}
    async with (
        door(servers, tmp_path) as site,
        looking(browser, site) as (page, _),
    ):
        await ready(site.upstream)
        await go(page, "tools")
        rows, listed = page.locator(".row"), page.locator(".virtual")
        await expect(page.locator("#panel-tools [role=status]")).to_contain_text("10,000 tools")
        assert await rows.count() < 50
        for part in (0.25, 0.5, 1):
            await listed.evaluate(
                "(list, part) => { list.scrollTop = list.scrollHeight * part }", part
            )
            await expect(page.locator(f"[aria-posinset='{int(MANY * part)}']")).to_be_attached()
            assert await rows.count() < 50
        await expect(rows.filter(has_text="many__tool_04999")).to_be_visible()
        await page.get_by_label("Filter tools").fill("@many thing 4711")
        await expect(rows).to_have_count(1)
        await page.get_by_label("Filter tools").fill("")
        await listed.focus()
        await page.keyboard.press("End")
        await expect(page.locator(".detail h2")).to_have_text("many__tool_04999")
        await page.keyboard.press("ArrowUp")
        await expect(page.locator(".detail h2")).to_have_text("many__tool_04998")
        assert await page.evaluate("document.querySelectorAll('*').length") < 1000


async def overflow(page: Page) -> int:
    return await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


async def test_everything_fits_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    wide: dict[str, Any] = {"description": "wide" * 200}
    servers = {"notes": connect_to(Peer(a_tool_of_a_very_long_name_indeed=wide))}
    async with (
        door(servers, tmp_path) as site,
        looking(browser, site, viewport=PHONE, is_mobile=True, has_touch=True) as (page, _),
    ):
        await ready(site.upstream)
        await page.locator("[data-server=notes] summary").tap()
        assert await overflow(page) <= 0
        for tab in TABS[1:]:
            await go(page, tab)
            assert await overflow(page) <= 0, tab
        await go(page, "tools")
        await page.locator(".row").first.tap()
        await expect(page.locator(".detail h2")).to_be_visible()
        await expect(page.locator(".virtual")).not_to_be_visible()
        assert await overflow(page) <= 0
        await page.locator(".back").tap()
        await expect(page.locator(".virtual")).to_be_visible()
        await go(page, "search")
        await page.locator("#query").fill("wide")
        await page.keyboard.press("Enter")
        await expect(page.locator(".reads")).to_be_visible()
        assert await overflow(page) <= 0


async def test_all_of_it_can_be_done_with_keys_and_in_the_dark(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        door({"notes": connect_to(Peer("add"))}, tmp_path) as site,
        looking(browser, site, color_scheme="dark") as (page, _),
    ):
        await ready(site.upstream)
        await expect(page.locator("[data-server=notes]")).to_be_visible()
        basis = "getComputedStyle(document.body).backgroundColor"
        dark = await page.evaluate(basis)
        await page.keyboard.press("t")
        await expect(page.locator("html")).to_have_attribute("data-scheme", "light")
        assert await page.evaluate(basis) != dark

        for number, tab in enumerate(TABS, 1):
            await page.keyboard.press(str(number))
            await expect(page.locator(f"#tab-{tab}")).to_have_attribute("aria-selected", "true")
        await page.locator("#tab-saved").focus()
        await page.keyboard.press("ArrowRight")
        await expect(page.locator("#tab-servers")).to_be_focused()
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert await page.evaluate(outline) == "solid"
        await page.keyboard.press("?")
        await expect(page.locator("dialog")).to_contain_text("go to a tab")
        await page.keyboard.press("Escape")
        await expect(page.locator("dialog")).to_have_count(0)
        await page.keyboard.press("/")
        await expect(page.locator("#query")).to_be_focused()
