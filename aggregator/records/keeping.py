"""Takes events to where they are kept, a moment after they happened, and keeps nobody waiting."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio

from aggregator.basics.files import in_words
from aggregator.records.events import BY_HAND, CallEnded, Event, ListServed, Searched, Stream
from aggregator.records.gathering import Gathering
from aggregator.secrecy import Redaction

logger = logging.getLogger(__name__)

PAUSE = 1.0
"""Seconds to gather events before they are written."""
MOST = 20_000
"""Events that wait to be written; more are only counted."""

Kept = CallEnded | Searched | ListServed


def stats_path(state: Path) -> Path:
    """Return the directory of what is counted, beside a user's other state."""
    return state.with_name("stats")


async def keep_stats(
    stream: Stream, directory: Path, config: Path, redact: Callable[[], Redaction]
) -> None:
    """Write what is counted until cancelled; then once more.

    What is needed for that is loaded when there is something to write: no client waits for it.
    """
    gathering = Gathering[Kept](MOST)
    is_told = False

    def hear(event: Event) -> None:
        if isinstance(event, Kept) and event.origin.client not in BY_HAND:
            gathering.put(event)

    def write(events: list[Kept], lost: int) -> int:
        """Write what there is; return how many events are missing from what is written."""
        nonlocal is_told
        if not events:
            return lost
        # The first list does not wait for it.
        from aggregator.records.segments import Segments  # noqa: PLC0415 - see above
        from aggregator.records.stats import lines_of  # noqa: PLC0415 - see above

        lines = lines_of(events, lost, config, redact())
        try:
            Segments(directory).append(lines, time.time())
        except OSError as error:
            if not is_told:
                logger.warning("stats cannot be written: %s", in_words(error))
            is_told = True
            return len(events) + lost
        return 0

    with stream.heard_by(hear):
        try:
            while True:
                await gathering.wait()
                await anyio.sleep(PAUSE)
                # Where no thread can be started, it waits for the next time.
                with suppress(RuntimeError):
                    gathering.put_back([], await gathering.hand_over(write))
        finally:
            write(*gathering.take())
