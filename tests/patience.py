"""How long tests wait for what must come."""

import trio
from trio.testing import MockClock

PATIENCE = 60.0
"""Seconds, on the clock of the machine, after which something is taken never to come.

It tells a test that hangs from one that waits for a busy machine, so it is longer than any of
them is busy; what must be fast is measured by `python -m tests.soak`, and timing that is decided
by us is tested on the virtual clock.
"""

VIRTUAL_PATIENCE = 5.0
"""The same on the virtual clock, where no machine is busy."""


def patience() -> float:
    """Return how long to wait by the clock in use."""
    try:
        clock = trio.lowlevel.current_clock()
    except RuntimeError:
        return PATIENCE
    return VIRTUAL_PATIENCE if isinstance(clock, MockClock) else PATIENCE
