"""One real browser for all tests of a module; without one, they are skipped with a word."""

from collections.abc import AsyncGenerator

import pytest
from playwright.async_api import Browser, async_playwright

from tests.downstream.login.chromium import find_chromium

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The only one that uvicorn and playwright run on."""
    return "asyncio"


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncGenerator[Browser, None]:
    """Run the browser of this machine."""
    program = find_chromium() or pytest.skip("there is no chromium here")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        await browser.close()
