"""`GET /stats`: what was counted in the last 30 days, as `aggregator stats --json` has it."""

import time
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.records.segments import DAYS, Segments
from aggregator.records.stats import file_mark
from aggregator.records.summary import document, unused
from aggregator.records.tally import tally
from aggregator.upstream.http.page.files import HEADERS

STATS = "/stats"
DAY = 24 * 3600.0
FRESH = 5.0
"""Seconds for which what was summed up is told again: there may be megabytes of it."""


class Saved:
    """Tells what was counted, where anything is."""

    def __init__(self, fleet: Fleet, directory: Path | None) -> None:
        self._fleet = fleet
        self._directory = directory
        self._summing = anyio.Lock()
        self._told: dict[str, Any] | None = None
        self._told_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = {**HEADERS, "cache-control": "no-store"}
        await JSONResponse(await self._document(), headers=headers)(scope, receive, send)

    async def _document(self) -> dict[str, Any]:
        if self._directory is None:
            return {"enabled": False}
        # One at a time: the others take what the first has summed up.
        async with self._summing:
            if self._told is None or anyio.current_time() - self._told_at > FRESH:
                self._told = await to_thread.run_sync(_sum_up, self._directory, self._fleet.now)
                self._told_at = anyio.current_time()
            return self._told


def _sum_up(directory: Path, now: Now) -> dict[str, Any]:
    since, config = time.time() - DAYS * DAY, now.config
    found = tally(Segments(directory).read(since), file_mark(config.path), since)
    entries = {name: known.entries for name, known in now.catalog.known.items()}
    idle = list(unused(found, entries, config, now.catalog.scale))
    unseen = [name for name in config.enabled if name not in entries]
    return {"enabled": True, **document(found, idle, unseen, since)}
