"""When Python looks for garbage: rarely, and not among what is kept anyway.

A look at everything takes a tenth of a second when there are thousands of tools, and everybody
waits for it. Modules and the catalog stay, so they are put aside; most garbage needs no looking
for, and the rest is found while it is young.
"""

import gc

THRESHOLDS = (2_000, 20, 100)
"""How many new objects, and looks at those, there are before the next older ones are looked at."""

GROWTH = 500
"""Tools by which the catalog has grown when it is put aside."""


def put_aside() -> None:
    """Look no more at what there is now."""
    gc.collect(1)
    gc.freeze()


def begin() -> None:
    """Put aside all modules, which are loaded by now, and look for garbage from here on."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
