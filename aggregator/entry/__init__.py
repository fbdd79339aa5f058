"""What is done before anything heavy is loaded, with the standard library alone.

Importing what serves a client takes most of a second. Here stands what need not wait for it.
"""

import sys
from collections.abc import Sequence

from aggregator.entry.typed import Typed, typed


def enter(arguments: Sequence[str]) -> int | None:
    """Do what can be done at once; return the exit status if nothing is left to do."""
    serving = typed(arguments)
    return None if serving is None else _serve(serving)


def _serve(serving: Typed) -> int | None:
    """Hand a client on to whoever serves it already; otherwise it is served here."""
    if serving.shared and sys.platform != "win32":
        # Nothing has been read from the descriptors that are handed over.
        from aggregator.entry.shim import hand_over  # noqa: PLC0415 - most are served here

        return hand_over(serving)
    return None
