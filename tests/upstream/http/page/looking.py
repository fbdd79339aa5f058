"""A person who looks at the page, and what their browser was seen to do meanwhile."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, Dialog, Error, Page, Request, expect

from tests.loopback.door import Open
from tests.patience import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)

TABS = ("servers", "tools", "search", "try", "activity", "saved")


@dataclass
class Seen:
    """What a browser did."""

    requests: list[Request] = field(default_factory=list[Request])
    errors: list[str] = field(default_factory=list[str])
    dialogs: list[str] = field(default_factory=list[str])

    @property
    def addresses(self) -> list[str]:
        return [request.url for request in self.requests]


@asynccontextmanager
async def looking(
    browser: Browser, site: Open, address: str | None = None, **options: Any
) -> AsyncGenerator[tuple[Page, Seen], None]:
    """Open the page as `aggregator open` does; afterwards nothing may have gone wrong in it."""
    context = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE * 1000)
    page, seen = await context.new_page(), Seen()

    async def dismiss(dialog: Dialog) -> None:
        seen.dialogs.append(dialog.message)
        await dialog.dismiss()

    def fail(error: Error) -> None:
        seen.errors.append(str(error))

    def note(request: Request) -> None:
        seen.requests.append(request)

    page.on("request", note)
    page.on("pageerror", fail)
    page.on("dialog", dismiss)
    await page.goto(address or f"{site.origin}/#token={site.token}")
    try:
        yield page, seen
    finally:
        await context.close()
    assert seen.errors == []
    assert seen.dialogs == []
    assert [each for each in seen.addresses if not each.startswith((site.origin, "data:"))] == []


async def go(page: Page, tab: str) -> None:
    """Choose a tab."""
    await page.locator(f"#tab-{tab}").click()
    await expect(page.locator(f"#panel-{tab}")).to_be_visible()
