"""Learns from what is counted what people call after they have searched; off the event loop."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
from anyio import to_thread

from aggregator.search.hits import Experience

FIRST = 1.0
"""Seconds before the first look: clients have their first list by then."""
EVERY = 600.0
"""Seconds between two looks."""
MOST_LINES = 50_000
"""Lines that are looked at, the latest."""


async def keep_learning(directory: Path, config: Path, teach: Callable[[Experience], None]) -> None:
    """Teach what is known now, and again what is known later, until cancelled."""
    await anyio.sleep(FIRST)
    while True:
        # Without a thread or a file to be had it waits for the next time, and nobody ends for it.
        with suppress(OSError, RuntimeError, ImportError):
            learned = await to_thread.run_sync(
                experience, directory, config, abandon_on_cancel=True
            )
            if learned is not None:
                teach(learned)
        await anyio.sleep(EVERY)


def experience(directory: Path, config: Path) -> Experience | None:
    """Return what the lines of one configuration teach, if there is anything to learn."""
    # No client waits for it to be loaded.
    from aggregator.records.segments import Segments  # noqa: PLC0415 - see above
    from aggregator.records.stats import file_mark  # noqa: PLC0415 - see above
    from aggregator.records.tally import lessons  # noqa: PLC0415 - see above
    from aggregator.search.habits import Habits  # noqa: PLC0415 - see above

    lines = deque(Segments(directory).read(0.0), maxlen=MOST_LINES)
    learned = lessons(lines, file_mark(config))
    return Habits(learned) if learned else None
