"""Takes events to where they are kept, a moment after they happened, and keeps nobody waiting."""

import logging
import time
from collections.abc import Callable, Sequence
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
Share = Callable[[str, Sequence[bytes]], None]
"""Tells others what was written, and in which place: whoever writes there, too, has it."""


def keep_to_ourselves(_place: str, _lines: Sequence[bytes]) -> None:
    """Tell nobody."""


def stats_path(state: Path) -> Path:
    """Return the directory of what is counted, beside a user's other state."""
    return state.with_name("stats")


async def keep_stats(
    stream: Stream,
    directory: Path,
    config: Path,
    redact: Callable[[], Redaction],
    share: Share = keep_to_ourselves,
) -> None:
    """Write what is counted until cancelled; then once more.

    What is needed for that is loaded when there is something to write: no client waits for it.
    """
    gathering = Gathering[Kept](MOST)
    writing = _Writing(directory, config, redact, is_shared=share is not keep_to_ourselves)

    def hear(event: Event) -> None:
        if isinstance(event, Kept) and event.origin.client not in BY_HAND:
            gathering.put(event)

    with stream.heard_by(hear):
        try:
            while True:
                await gathering.wait()
                await anyio.sleep(PAUSE)
                # Where no thread can be started, it waits for the next time.
                with suppress(RuntimeError):
                    gathering.put_back([], await gathering.hand_over(writing.write))
                if (told := writing.told()) is not None:
                    share(*told)
        finally:
            writing.write(*gathering.take())


class _Writing:
    """Writes what is counted, and knows what others are to be told of it."""

    def __init__(
        self,
        directory: Path,
        config: Path,
        redact: Callable[[], Redaction],
        *,
        is_shared: bool,
    ) -> None:
        self._directory = directory
        self._config = config
        self._redact = redact
        self._is_shared = is_shared
        self._is_complained = False
        self._untold: tuple[str, Sequence[bytes]] | None = None

    def write(self, events: list[Kept], lost: int) -> int:
        """Write what there is; return how many events are missing from what is written."""
        if not events:
            return lost
        # The first list does not wait for it.
        from aggregator.records.segments import Segments  # noqa: PLC0415 - see above
        from aggregator.records.stats import lines_of  # noqa: PLC0415 - see above

        lines = lines_of(events, lost, self._config, self._redact())
        segments = Segments(self._directory)
        try:
            segments.append(lines, time.time())
            if self._is_shared:
                self._untold = segments.place(), lines
        except OSError as error:
            if not self._is_complained:
                logger.warning("stats cannot be written: %s", in_words(error))
            self._is_complained = True
            return len(events) + lost
        return 0

    def told(self) -> tuple[str, Sequence[bytes]] | None:
        """Return what was written since it was last asked for, and in which place."""
        untold, self._untold = self._untold, None
        return untold
