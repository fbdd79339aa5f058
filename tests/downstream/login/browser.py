"""A browser without a screen: goes to an address and wherever it is sent from there."""

import sys

import httpx2

from tests.loopback.door import NO_CERTIFICATES


async def browse(address: str) -> httpx2.Response:
    """Go to an address, and to where that leads."""
    async with httpx2.AsyncClient(trust_env=False, timeout=30, verify=NO_CERTIFICATES) as client:
        return await client.get(address, follow_redirects=True)


async def press(address: str) -> httpx2.Response:
    """Go to a page with one button, press it, and go wherever that leads."""
    async with httpx2.AsyncClient(trust_env=False, timeout=30, verify=NO_CERTIFICATES) as client:
        await client.get(address)
        return await client.post(address, follow_redirects=True)


async def redirected(address: str) -> str:
    """Go to an address, and return where that leads without going there."""
    async with httpx2.AsyncClient(trust_env=False, timeout=30, verify=NO_CERTIFICATES) as client:
        return (await client.get(address)).headers["location"]


if __name__ == "__main__":
    with httpx2.Client(trust_env=False, timeout=30, verify=NO_CERTIFICATES) as browser:
        browser.get(sys.argv[1], follow_redirects=True)
