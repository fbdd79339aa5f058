"""Which of its limits a process most likely died of."""

import re
import signal
from collections.abc import Iterable, Mapping

from aggregator.config.limits import Limits

_KILLS = frozenset({signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGTRAP})
"""How programs end that are refused memory and have not foreseen it."""

_WORDS: Mapping[str, str] = {
    "memory": r"(?i)\bMemoryError\b|out of memory|cannot allocate|\bENOMEM\b|\bbad_alloc\b"
    r"|(?:failed to|could not|couldn't|can't) (?:reserve|allocate|map)|allocation failed",
    "processes": r"(?i)resource temporarily unavailable|\bEAGAIN\b|start (?:a )?new (?:thread|proc)"
    r"|(?:thread|process|pthread_create|fork)\w*:? (?:creation )?failed|unable to create .*thread",
    "files": r"(?i)too many open files|\bEMFILE\b|no file descriptors",
}
"""What programs say that have reached a limit, by its name."""


def overrun(limits: Limits, status: int, words: Iterable[str]) -> str | None:
    """Return the limit that is to blame for the end of a process, if one may be."""
    if not status:
        return None
    said = "\n".join(words)
    for name, pattern in _WORDS.items():
        if getattr(limits, name) is not None and re.search(pattern, said):
            return name
    return "memory" if limits.memory is not None and -status in _KILLS else None
