"""A modern server's stream of changes, kept open with what is wanted of it."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import anyio
import anyio.abc
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from aggregator.basics.json import JsonObject, as_object
from aggregator.basics.signals import Signal
from aggregator.downstream.transport import ConnectionClosedError, UndeliveredError

LISTEN_PATIENCE = 5.0
"""Seconds to wait for a server to acknowledge that it will tell of changes."""

Open = Callable[[str, JsonObject], Awaitable[dict[str, Any]]]
"""Sends `subscriptions/listen` under an id; returns when the stream has ended."""


@dataclass(eq=False)
class _Stream:
    """One request to be told of changes."""

    number: str
    settled: anyio.Event = field(default_factory=anyio.Event)
    """Set once it is acknowledged, or over."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_over: bool = False
    is_refused: bool = False


class Listening:
    """What is wanted of a server's changes; a new stream is open before the old one is closed."""

    def __init__(self, *, missed: Callable[[], None]) -> None:
        self._kinds: tuple[str, ...] = ()
        self._missed = missed
        self._uris: frozenset[str] = frozenset()
        self._numbers = count(1)
        self._latest = _Stream("")
        self._refused: list[JsonObject] = []
        """What the server did not want to tell of, since something else was last wanted."""
        self._is_due = False
        """Whether something else is wanted than was last asked for."""
        self._stirred = Signal()
        """Sent when something else is wanted or settled, or a stream has ended."""
        self._was_interrupted = False
        self._is_settled = False
        """Whether the server has been asked for what is wanted now, and has had its say."""

    async def until_settled(self) -> None:
        """Wait, within bounds, until the server has acknowledged what is wanted now."""
        with anyio.move_on_after(LISTEN_PATIENCE):
            while not self._is_settled:
                await self._stirred.wait()

    async def want(self, uris: Iterable[str]) -> None:
        """Be told also when these resources change, and no others."""
        self._uris = frozenset(uris)
        self._is_settled = False
        self._refused.clear()
        self._is_due = True
        self._stirred.send()
        await self.until_settled()

    def acknowledge(self, params: JsonObject) -> None:
        """Take the server's word that a stream is open."""
        number = as_object(params.get("_meta")).get(SUBSCRIPTION_ID_META_KEY)
        if number in (None, self._latest.number):
            self._latest.settled.set()
        if self._was_interrupted:
            self._was_interrupted = False
            self._missed()

    async def run(self, kinds: Iterable[str], open_stream: Open) -> None:
        """Hold a stream of the changes of these lists open until the server refuses."""
        self._kinds = tuple(kinds)
        async with anyio.create_task_group() as group:
            held = None
            while True:
                self._is_due = False
                held = await self._replace(held, group, open_stream)
                self._is_settled = True
                self._stirred.send()
                await self._rest(held)

    async def _replace(
        self, held: _Stream | None, group: anyio.abc.TaskGroup, open_stream: Open
    ) -> _Stream | None:
        """Close the earlier stream once a fresh one is open; keep it if that was refused."""
        while wanted := self._filter():
            fresh = self._latest = _Stream(f"listen-{next(self._numbers)}")
            group.start_soon(self._hold, open_stream, fresh, wanted)
            with anyio.move_on_after(LISTEN_PATIENCE):
                await fresh.settled.wait()
            if not fresh.is_refused:
                if held is not None:
                    held.scope.cancel()
                return fresh
            if held is not None and not held.is_over:
                return held
        return None

    def _filter(self) -> JsonObject:
        """Return what to ask for: all that is wanted, or lists alone if that was refused."""
        lists = {f"{kind}ListChanged": True for kind in self._kinds}
        whole = lists | ({"resourceSubscriptions": sorted(self._uris)} if self._uris else {})
        left = [each for each in (whole, lists) if each not in self._refused]
        return left[0] if left else {}

    async def _hold(self, open_stream: Open, stream: _Stream, wanted: JsonObject) -> None:
        try:
            with stream.scope:
                await open_stream(stream.number, {"notifications": wanted})
        except UndeliveredError:
            # A stream that broke is opened again; one that was refused is not offered.
            return
        except (MCPError, ConnectionClosedError):
            if not stream.settled.is_set():
                stream.is_refused = True
                self._refused.append(wanted)
        finally:
            stream.is_over = True
            stream.settled.set()
            if not (stream.is_refused or stream.scope.cancel_called):
                # What changes until the next acknowledgement goes untold.
                self._was_interrupted = True
            self._stirred.send()

    async def _rest(self, held: _Stream | None) -> None:
        """Wait until something else is wanted, or the stream is to be opened again."""
        while not self._is_due and (held is None or not held.is_over):
            await self._stirred.wait()
        if held is not None and held.is_over:
            await anyio.sleep(LISTEN_PATIENCE)
