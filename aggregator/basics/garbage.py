"""When Python looks for garbage, rarely and not among what is kept, and memory is given back.

A look at everything takes a tenth of a second when there are thousands of tools, and everybody
waits for it. Modules and the catalog stay, so they are put aside; most garbage needs no looking
for, and the rest is found while it is young.
"""

import gc
from contextlib import suppress

THRESHOLDS = (2_000, 20, 100)
"""How many new objects, and looks at those, there are before the next older ones are looked at."""

GROWTH = 500
"""Tools by which the catalog has grown when it is put aside."""

LARGE_BYTES = 4 * 1024 * 1024
"""Bytes from which a block of memory is given back as soon as nobody needs it.

To be given one anew takes longer than all else that is done with an answer of a megabyte.
"""
KEPT_BYTES = 8 * 1024 * 1024
"""Bytes of smaller ones that are kept for the next time."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What the C library calls the two."""


def put_aside() -> None:
    """Look no more at what there is now."""
    gc.collect(1)
    gc.freeze()


def begin() -> None:
    """Put aside all modules, which are loaded by now, and look for garbage from here on."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()


def give_back() -> None:
    """Have large blocks of memory given back to the system once they are free.

    The allocator of glibc takes those that come and go for a habit, and keeps room for them: what
    many large answers have taken at once would stay with us for good. Others do not do so.
    """
    with suppress(ImportError, OSError, AttributeError):
        # It takes longer to load than a start may wait for.
        import ctypes  # noqa: PLC0415 - see above

        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
