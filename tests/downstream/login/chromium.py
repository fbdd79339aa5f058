"""A real browser without a screen, told what to do through the pipes it has for that."""

import json
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--remote-debugging-pipe"),
)
MAX_MESSAGE = 1 << 22

_READ = "({url: location.href, text: document.body ? document.body.innerText : ''})"
_SUBMIT = """(() => {
  const form = document.querySelector("form");
  if (!form || window.isSent) return;
  window.isSent = true;
  for (const field of form.querySelectorAll("input[type=text], input[type=password]"))
    field.value = "somebody";
  form.querySelector("button, [type=submit]").click();
})()"""


def find_chromium() -> str | None:
    """Return the browser of this machine, if it has one."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    return next(filter(None, map(shutil.which, names)), None)


class Tab:
    """One page of the browser."""

    def __init__(self, said: BufferedByteReceiveStream, told: int) -> None:
        self._said = said
        self._told = told
        self._number = 0
        self._loaded = 0
        """Pages that have been loaded since the last was looked at."""
        self._session: str | None = None
        self.seen: list[str] = []
        """What it says on each page it has been to."""

    async def open(self, address: str) -> None:
        """Open a page."""
        target = await self.ask("Target.createTarget", url="about:blank")
        attached = await self.ask(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        await self.ask("Page.enable")
        await self.ask("Page.navigate", url=address)

    async def submit_until(self, words: str) -> None:
        """Fill in and send off whatever form comes, until a page says something."""
        while True:
            await self._until_loaded()
            page = await self._evaluate(_READ)
            self.seen.append(f"{page['url'].partition('?')[0]}\n{page['text']}")
            if words in page["text"]:
                return
            await self._evaluate(_SUBMIT)

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Have the browser do something; return what it answers."""
        self._number += 1
        number = self._number
        asked: dict[str, Any] = {"id": number, "method": method, "params": params}
        asked |= {"sessionId": self._session} if self._session else {}
        os.write(self._told, json.dumps(asked).encode() + b"\0")
        while (message := await self._next()).get("id") != number:
            continue
        assert "result" in message, message
        return message["result"]

    async def close(self) -> None:
        """Have the browser end."""
        self._session = None
        await self.ask("Browser.close")

    async def _evaluate(self, expression: str) -> Any:
        done = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return done["result"].get("value")

    async def _until_loaded(self) -> None:
        while not self._loaded:
            await self._next()
        self._loaded = 0

    async def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self._said.receive_until(b"\0", MAX_MESSAGE))
        # It may be told before the answer to what has led to it.
        self._loaded += message.get("method") == "Page.loadEventFired"
        return message


class _Pipe(anyio.abc.ByteReceiveStream):
    """Reads a pipe without a thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.wait_readable(self._descriptor)
        if not (chunk := os.read(self._descriptor, max_bytes)):
            raise anyio.EndOfStream
        return chunk

    async def aclose(self) -> None:
        os.close(self._descriptor)


@asynccontextmanager
async def browsing(program: str, directory: Path) -> AsyncGenerator[Tab, None]:
    """Run a browser with an empty profile for the length of the block."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # It reads what it is told from 3 and answers on 4.
    shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
    command = ["bash", "-c", shell, "--", program, *FLAGS, f"--user-data-dir={directory}"]
    async with await anyio.open_process(
        command,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        pass_fds=(theirs_in, theirs_out),
        start_new_session=True,
    ) as process:
        os.close(theirs_in)
        os.close(theirs_out)
        async with BufferedByteReceiveStream(_Pipe(ours_in)) as said:
            tab = Tab(said, ours_out)
            try:
                yield tab
                await tab.close()
                await process.wait()
            finally:
                os.close(ours_out)
                if process.returncode is None:
                    process.kill()
