"""Who counts what definitions cost: a tokenizer in a process of its own, or a vendor."""

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Any

import anyio
import httpx2
from anyio import to_thread

from aggregator import __version__
from aggregator.basics.json import JsonObject, as_object
from aggregator.catalog import ToolEntry
from aggregator.config.tokens import ENDINGS, TokenCounter, Tokenizer
from aggregator.downstream.failure import shortened
from aggregator.host.definitions import for_messages, for_responses
from aggregator.host.pool import Tool

PATIENCE = 60.0
"""Seconds that counting the tools of one server may take."""
AT_ONCE = 500
"""Tools in one request to a vendor."""
MAX_BYTES = 64 * 1024
"""Bytes that its answer may have."""
FIXED = Tool("a", "a", {"type": "object"})
"""A tool that is in every request: what comes with any tools at all is not counted twice."""
OK = 200
REFUSED = (401, 403, 404)
"""Statuses that no other request would change."""

Count = Callable[[Sequence[ToolEntry]], Awaitable[int]]


class CountingError(Exception):
    """Nobody can say what some definitions cost."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final
        """Whether it is the same for all others."""


def open_counter(source: Tokenizer | TokenCounter) -> Count:
    """Return what counts the tokens of definitions; it raises a `CountingError`."""
    if isinstance(source, Tokenizer):
        return _by_tokenizer(source)
    return _Vendor(source).count


def _by_tokenizer(source: Tokenizer) -> Count:
    # Without -P the folder we were started in could stand in for any module.
    command = [sys.executable, "-P", "-m", "aggregator.fleet.tokenizer"]

    async def count(entries: Sequence[ToolEntry]) -> int:
        asked = await to_thread.run_sync(_question, source, entries)
        with anyio.move_on_after(PATIENCE):
            ended = await anyio.run_process(command, input=asked, check=False)
            return _answer(ended, source)
        raise CountingError(f"`{source.package}` took longer than {PATIENCE:g} s", is_final=True)

    return count


def _question(source: Tokenizer, entries: Sequence[ToolEntry]) -> bytes:
    texts = [f"{each.name}\n{each.description}\n{each.schema_text}" for each in entries]
    # With escapes, also half of a pair of them can be written.
    return json.dumps({"package": source.package, "name": source.name, "texts": texts}).encode()


def _answer(ended: "subprocess.CompletedProcess[bytes]", source: Tokenizer) -> int:
    answer = _read_object(ended.stdout)
    if isinstance(tokens := answer.get("tokens"), int):
        return tokens
    *_, last = ended.stderr.decode(errors="replace").strip().rpartition("\n")
    why = shortened(last) or f"it ended with {ended.returncode}"
    reason = answer.get("problem") or f"`{source.package}` cannot use `{source.name}`: {why}"
    raise CountingError(str(reason), is_final=True)


def _read_object(text: bytes) -> JsonObject:
    """Return what a text says, nothing if that is no object."""
    try:
        return as_object(json.loads(text))
    except ValueError:
        return {}


class _Vendor:
    """A vendor's counter."""

    def __init__(self, source: TokenCounter) -> None:
        self._source = source
        self._is_responses = ENDINGS[source.url.rpartition("/")[2]] == "responses"
        self._fixed: int | None = None

    async def count(self, entries: Sequence[ToolEntry]) -> int:
        """Return what definitions cost beside what comes with any tools at all."""
        try:
            with anyio.fail_after(PATIENCE):
                async with httpx2.AsyncClient(timeout=PATIENCE) as client:
                    return await self._counted(client, entries)
        except (TimeoutError, httpx2.HTTPError, OSError) as error:
            why = "took too long" if isinstance(error, TimeoutError) else "cannot be reached"
            raise CountingError(f"{self._host} {why}") from error

    async def _counted(self, client: httpx2.AsyncClient, entries: Sequence[ToolEntry]) -> int:
        if self._fixed is None:
            self._fixed = await self._ask(client, ())
        tokens, left = 0, iter(entries)
        while some := tuple(islice(left, AT_ONCE)):
            tokens += await self._ask(client, some) - self._fixed
        return tokens

    async def _ask(self, client: httpx2.AsyncClient, entries: Sequence[ToolEntry]) -> int:
        body = await to_thread.run_sync(self._body, entries)
        request = client.build_request(
            "POST", self._source.url, content=body, headers=self._headers()
        )
        response = await client.send(request, stream=True, follow_redirects=False)
        try:
            read = await self._read(response)
        finally:
            await response.aclose()
        if response.status_code != OK:
            # What it says of it may name tools that not every client is to know.
            raise CountingError(
                f"{self._host} answered {response.status_code}",
                is_final=response.status_code in REFUSED,
            )
        tokens = _read_object(read).get("input_tokens")
        if not isinstance(tokens, int):
            raise CountingError(f"{self._host} does not say `input_tokens`", is_final=True)
        return tokens

    async def _read(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        # To the end: a stream that is left earlier is not closed by everybody.
        async for chunk in response.aiter_raw():
            body += chunk[: MAX_BYTES + 1 - len(body)]
        if len(body) > MAX_BYTES:
            raise CountingError(f"{self._host} sent more than {MAX_BYTES:,} bytes")
        return bytes(body)

    def _body(self, entries: Sequence[ToolEntry]) -> bytes:
        tools = [FIXED, *(Tool(each.name, each.description, each.input_schema) for each in entries)]
        asked: dict[str, Any] = {"model": self._source.model}
        if self._is_responses:
            asked |= {"input": "x", "tools": [for_responses(each) for each in tools]}
        else:
            asked["messages"] = [{"role": "user", "content": "x"}]
            asked["tools"] = [for_messages(each) for each in tools]
        return json.dumps(asked, default=dict).encode()

    def _headers(self) -> dict[str, str]:
        ours = {
            "content-type": "application/json",
            "accept-encoding": "identity",
            "user-agent": f"mcp-tool-aggregator/{__version__}",
        }
        key = self._source.key
        if self._is_responses:
            return {**ours, **({"authorization": f"Bearer {key}"} if key else {})}
        return {**ours, "anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}

    @property
    def _host(self) -> str:
        return f"`{httpx2.URL(self._source.url).host}`"
