"""npm's `oidc-provider`: an authorisation server that is not ours, in a process of its own."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.loopback.door import NO_CERTIFICATES
from tests.loopback.web import listening
from tests.patience import PATIENCE

PACKAGE = "oidc-provider@9.13.3"
PROGRAM = Path(__file__).with_name("provider.mjs")
INSTALLING = 120.0
MAX_PAGES = 20

_ACTION = re.compile(r'<form[^>]* action="([^"]+)"')
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


def installed() -> Path:
    """Return where npm has put it, outside the repository; without npm, there is no test."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("there is no npm here")
    named = os.environ.get("OIDC_CACHE", Path(tempfile.gettempdir()) / "mcp-oidc-provider")
    cache = Path(named)
    if (cache / "node_modules/oidc-provider/package.json").exists():
        return cache
    cache.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(cache), PACKAGE]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALLING)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("npm could not install oidc-provider")
    return cache


@asynccontextmanager
async def provider(package: Path, resource: str, scope: str = "use") -> AsyncGenerator[str, None]:
    """Run the authorisation server; give who it is."""
    with listening() as free:
        port = free.getsockname()[1]
    command = ["node", str(PROGRAM), str(port), resource, scope]
    async with await anyio.open_process(command, cwd=package, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            said = BufferedByteReceiveStream(process.stdout)
            assert await said.receive_until(b"ready\n", 10_000) is not None
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


async def logged_in(page: str, back: str, name: str) -> dict[str, str]:
    """Be a person who logs in and agrees to everything; return what comes back to the client."""
    async with httpx2.AsyncClient(
        trust_env=False, verify=NO_CERTIFICATES, timeout=PATIENCE
    ) as browser:
        answer = await browser.get(page)
        for _ in range(MAX_PAGES):
            place = urljoin(str(answer.url), answer.headers.get("location", ""))
            if place.startswith(back):
                return {key: value for key, [value] in parse_qs(urlsplit(place).query).items()}
            if answer.has_redirect_location:
                answer = await browser.get(place)
                continue
            action = _ACTION.search(answer.text)
            assert action is not None, answer.text
            form = {**dict(_HIDDEN.findall(answer.text)), "login": name, "password": "x"}
            answer = await browser.post(urljoin(str(answer.url), action[1]), data=form)
    raise AssertionError("it did not end")
